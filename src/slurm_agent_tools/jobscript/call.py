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
    """One command as it stands in a text. `outside`: the job's id was taken away before."""

    program: Program
    words: Sequence[str]
    line: int
    known: Known
    script: str = ""
    outside: bool = False

    def __post_init__(self) -> None:
        spend(len(self.words))  # a row of commands that start each other costs by its square

    @property
    def name(self) -> str:
        """The command's name without its folder."""
        return name_of(self.words[0])

    @property
    def rest(self) -> list[str]:
        """The words behind the name."""
        return list(self.words[1:])
