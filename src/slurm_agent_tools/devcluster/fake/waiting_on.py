"""Dependencies of the fake Slurm's jobs: read, judged, and written as Slurm writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from slurm_agent_tools.devcluster.fake.fake_job import FakeJob

Verdict = Literal["met", "waits", "never"]

_KINDS = frozenset({"after", "afterany", "afterok", "afternotok"})

_NEEDS_ONE = frozenset({"afterok", "afternotok"})

_ITEM = re.compile(r"(\d+)(?:_(\d+|\*))?(?:\+(\d+))?")

_GOOD = frozenset({"COMPLETED"})


@dataclass(frozen=True, slots=True)
class Condition:
    """One job that another waits for. `task` None: all of it. `delay`: seconds after its start."""

    kind: str
    base: int = 0
    task: int | None = None
    whole: bool = False
    delay: int = 0
    failed: bool = False

    def __str__(self) -> str:
        if self.kind == "singleton":
            return "singleton(unfulfilled)"
        task = "" if self.task is None else f"_{self.task}"
        delay = f"+{self.delay // 60}" if self.delay else ""
        word = "failed" if self.failed else "unfulfilled"
        return f"{self.kind}:{self.base}{'_*' if self.whole else task}{delay}({word})"


@dataclass(frozen=True, slots=True)
class Conditions:
    """All that a job waits for; `either`: one of them is enough."""

    items: tuple[Condition, ...] = ()
    either: bool = False

    @property
    def text(self) -> str | None:
        """As Slurm writes it; None where nothing is left."""
        return ("?" if self.either else ",").join(map(str, self.items)) or None


class BadDependency(ValueError):
    """What Slurm calls a dependency problem."""


def read_conditions(text: str | None, find: Callable[[int], Sequence[FakeJob]], *, strict: bool) -> Conditions:
    """`strict`: success or failure of a job that the controller does not know is an error, as since 24.11."""
    if not text:
        return Conditions()
    if "," in text and "?" in text:
        raise BadDependency(text)
    found: list[Condition] = []
    for part in re.split(r"[,?]", text):
        if part == "singleton":
            found.append(Condition("singleton"))
            continue
        kind, _, listed = part.partition(":")
        if kind not in _KINDS or not listed:
            raise BadDependency(part)
        for item in listed.split(":"):
            found += _one(kind, item, find, strict=strict)
    return Conditions(tuple(found), either="?" in text)


def _one(kind: str, item: str, find: Callable[[int], Sequence[FakeJob]], *, strict: bool) -> list[Condition]:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise BadDependency(item)
    base = int(match[1])
    known = find(base)
    whole = match[2] == "*" or (bool(known) and known[0].array is not None and match[2] is None)
    task = int(match[2]) if match[2] and match[2] != "*" else None
    condition = Condition(kind, base, task, whole, int(match[3] or 0) * 60)
    if not _parts(condition, known) and strict and kind in _NEEDS_ONE:
        raise BadDependency(item)
    return [condition]


def _parts(item: Condition, records: Sequence[FakeJob]) -> list[FakeJob]:
    """All that it names and that is there: of a job that is no array there are no tasks, not even with `*`."""
    if item.whole:
        return [one for one in records if one.array is not None]
    return [one for one in records if item.task is None or one.task == item.task or item.task in one.waiting]


def judge(
    job: FakeJob, conditions: Conditions, find: Callable[[int], Sequence[FakeJob]], now: float, alike: Sequence[FakeJob]
) -> tuple[Verdict, Conditions]:
    """Whether it may go on, and what is left of its conditions. `alike`: active jobs of this name and user."""
    left: list[Condition] = []
    verdicts: list[Verdict] = []
    for item in conditions.items:
        verdict = _singleton(job, alike) if item.kind == "singleton" else _judged(item, find(item.base), now)
        if item.failed:
            verdict = "never"
        verdicts.append(verdict)
        if verdict != "met":
            left.append(replace(item, failed=verdict == "never"))
    rest = replace(conditions, items=tuple(left))
    if conditions.either and "met" in verdicts:
        return "met", Conditions()
    if not left:
        return "met", Conditions()
    never = all(one == "never" for one in verdicts) if conditions.either else "never" in verdicts
    return ("never" if never else "waits"), rest


def _singleton(job: FakeJob, alike: Sequence[FakeJob]) -> Verdict:
    return "waits" if any(other.number < job.number and other.active for other in alike) else "met"


def _judged(item: Condition, records: Sequence[FakeJob], now: float) -> Verdict:
    parts = _parts(item, records)
    if not parts:  # forgotten: it is over, and nobody knows how
        return "met"
    if item.kind == "after":
        started = [one for one in parts if one.start is not None and one.start + item.delay <= now]
        return "met" if len(started) == len(parts) else "waits"
    if any(one.active for one in parts):
        return "waits"
    if item.kind == "afterany":
        return "met"
    good = all(one.state in _GOOD for one in parts)
    return "met" if good is (item.kind == "afterok") else "never"
