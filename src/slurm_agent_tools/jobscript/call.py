"""One command as it stands in a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slurm_agent_tools.jobscript.effort import spend
from slurm_agent_tools.jobscript.program import Program
from slurm_agent_tools.jobscript.words import Known
from slurm_agent_tools.jobscript.wrappers import name_of


@dataclass(frozen=True, slots=True)
class Call:
    """One command as it stands in a text. `outside`: the job's id was taken away before.

    `appended`: what starts it puts more words behind or into it (xargs, find, parallel).
    """

    program: Program
    words: Sequence[str]
    line: int
    known: Known
    script: str = ""
    outside: bool = False
    appended: bool = False

    def __post_init__(self) -> None:
        spend(len(self.words))  # a row of commands that start each other costs by its square

    @property
    def name(self) -> str:
        """The command's name without its folder."""
        return name_of(self.words[0])

    def given(self, position: int) -> tuple[str, ...]:
        """The words from a position on, as the arguments of a program; none where they are not known."""
        return () if self.appended else tuple(self.words[position:])

    @property
    def rest(self) -> list[str]:
        """The words behind the name."""
        return list(self.words[1:])


def options(rest: Sequence[str]) -> list[tuple[str, str]]:
    """Each option with its value, glued or in the next word."""
    found = []
    for index, word in enumerate(rest):
        if word.startswith("-"):
            option, sign, value = word.partition("=")
            found.append((option, value if sign else "".join(rest[index + 1 : index + 2])))
    return found
