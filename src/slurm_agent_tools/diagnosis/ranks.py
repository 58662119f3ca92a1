"""Which task of a step ended first, as srun's own lines tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from slurm_agent_tools.diagnosis.excerpt import LogText
from slurm_agent_tools.replies import EvidenceLine

_ENDED = re.compile(r"srun: error: \S{1,80}: tasks? (?P<tasks>\d[\d,-]{0,200}): (?P<how>\S.{0,80})$")
_CODE = re.compile(r"Exited with exit code (\d+)")
_TOLD = re.compile(r"Terminated|Killed|Exited with exit code (?:143|137)\b")  # what srun's own signal leaves
_MOST = 2**16  # tasks of one line; more is no list of srun's


@dataclass(frozen=True, slots=True)
class First:
    """The line that says it, and a sentence."""

    line: EvidenceLine
    text: str


def first(texts: Sequence[LogText]) -> First | None:
    """The task that ended by itself while srun ended the others; None where its lines do not tell that."""
    for text in texts:
        found = [(match, line) for line in text.lines if (match := _ENDED.search(line.text)) is not None]
        own = [(match, line) for match, line in found if not _TOLD.match(match["how"])]
        ended = {task for match, _ in found if _TOLD.match(match["how"]) for task in _tasks(match["tasks"])}
        began = _tasks(own[0][0]["tasks"]) if own else set()
        if len(began) == 1 and ended - began:
            match, line = own[0]
            total = len({task for found_match, _ in found for task in _tasks(found_match["tasks"])})
            return First(
                line, f"Task {min(began)} of {total} ended first ({_how(match['how'])}); srun ended the others."
            )
    return None


def _how(text: str) -> str:
    code = _CODE.match(text)
    return f"exit code {code[1]}" if code is not None else text


def _tasks(text: str) -> set[int]:
    """The numbers of `0-2,4`."""
    found: set[int] = set()
    for part in text.strip(",-").split(","):
        low, _, high = part.partition("-")
        if low.isdigit() and (not high or high.isdigit()) and int(high or low) - int(low) < _MOST:
            found.update(range(int(low), int(high or low) + 1))
    return found
