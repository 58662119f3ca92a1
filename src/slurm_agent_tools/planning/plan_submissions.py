"""From a plan to the fewest submissions that start its jobs in its order, under the cap of jobs at once.

Copies of one kind are one array, with as many tasks at once as the plan ever runs. What follows on the end of one other
is chained to it. What would be one too many for the cap is submitted once those before it have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from slurm_agent_tools.planning.schedule import JobSchedule, PlacedJob


@dataclass(frozen=True, slots=True)
class PlannedSubmission:
    """One call of submit_job. `job`: the kind. `width`: tasks at once.

    `chained`: kinds whose jobs it waits for inside of Slurm; `needs_success`: it starts only if they end well, as the
    caller said. `behind`: kinds that have ended before it is submitted, as no slot is free until then. Times in
    seconds from now; `place` the pool.
    """

    job: str
    how: Literal["array", "single", "chain"]
    width: int
    start: float
    place: str
    tasks: int = 1
    chained: tuple[str, ...] = ()
    needs_success: bool = False
    behind: tuple[str, ...] = ()

    @property
    def array(self) -> str | None:
        """As sbatch --array."""
        if self.tasks == 1:
            return None
        return f"0-{self.tasks - 1}" + (f"%{self.width}" if self.width < self.tasks else "")

    @property
    def dependency(self) -> str | None:
        """As sbatch --dependency, with the names of kinds where the ids of their jobs belong."""
        if not self.chained:
            return None
        what = "afterok" if self.needs_success else "afterany"
        return f"{what}:" + ":".join(f"<{name}>" for name in self.chained)


def submissions(schedule: JobSchedule, most_at_once: int | None) -> tuple[PlannedSubmission, ...]:
    """In the order in which they are submitted. `most_at_once`: slots that are free; a chained one takes none."""
    kinds: dict[str, list[PlacedJob]] = {}
    for one in schedule.placed:
        kinds.setdefault(one.job.name, []).append(one)
    ended: dict[tuple[str, float], list[str]] = {}
    for name, copies in kinds.items():
        last = max(copies, key=lambda one: one.end)
        ended.setdefault((last.pool, last.end), []).append(name)
    found = [_submission(copies, kinds, ended) for copies in kinds.values()]
    return tuple(found) if most_at_once is None else _under_cap(found, kinds, most_at_once)


def _submission(
    copies: Sequence[PlacedJob],
    kinds: dict[str, list[PlacedJob]],
    ended: dict[tuple[str, float], list[str]],
) -> PlannedSubmission:
    """One kind: its first copy says what it follows."""
    first = copies[0]
    after = first.job.after
    chained = after or _followed(first, kinds, ended)
    how: Literal["array", "single", "chain"] = "array" if len(copies) > 1 else "chain" if chained else "single"
    return PlannedSubmission(
        first.job.name, how, at_once(copies), first.start, first.pool, len(copies), chained, bool(after)
    )


def _followed(
    first: PlacedJob, kinds: dict[str, list[PlacedJob]], ended: dict[tuple[str, float], list[str]]
) -> tuple[str, ...]:
    """The kind on whose end it starts: one that has wholly ended by then, on the same GPUs where they have numbers."""
    for name in ended.get((first.pool, first.start), ()):
        if not first.gpus or any(set(one.gpus) & set(first.gpus) for one in kinds[name] if one.end == first.start):
            return (name,)
    return ()


def at_once(copies: Sequence[PlacedJob]) -> int:
    """The most of these that run at the same time."""
    events = sorted([(one.start, 1) for one in copies] + [(one.end, -1) for one in copies])
    running = most = 0
    for _, change in events:
        running += change
        most = max(most, running)
    return most


def _under_cap(
    found: Sequence[PlannedSubmission], kinds: dict[str, list[PlacedJob]], most: int
) -> tuple[PlannedSubmission, ...]:
    """Those that no slot is free for wait until enough of those before them have ended.

    A slot passes from a job to the one that is chained to it, and through it to the next.
    """
    ends = {name: max(one.end for one in copies) for name, copies in kinds.items()}
    slots: dict[str, int] = {}  # of kinds that are submitted and hold slots
    placed: list[PlannedSubmission] = []
    for one in found:
        width = min(one.width, most)
        heir = next((name for name in one.chained if slots.get(name, 0) >= width), None)
        if heir is not None:
            slots[heir] -= width
        slots = {name: left for name, left in slots.items() if left}
        over: list[str] = []
        for name in sorted(slots, key=lambda name: ends[name]):
            if sum(slots.values()) + width <= most:
                break
            over.append(name)
            del slots[name]
        slots[one.job] = width
        placed.append(replace(one, width=width, behind=tuple(over)))
    return tuple(placed)
