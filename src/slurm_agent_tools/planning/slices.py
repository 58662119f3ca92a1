"""Jobs that checkpoint, in slices: a first one of a GPU hour, then the next, twice as long, at the back of all others.

Nothing has to be known of how long a job runs: short ones end in their first slices, long ones wait for them. That is
the least attained service of Tiresias (Gu et al., NSDI 2019) for somebody who stands in front of Slurm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.placing import parallel
from slurm_agent_tools.planning.plan_submissions import PlannedSubmission, submissions
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.schedule import JobSchedule, plan_problem

FIRST = 3600.0
"""GPU seconds of the first slice."""

_LEAST = 60.0


@dataclass(frozen=True, slots=True)
class SliceCut:
    """One slice of a job: seconds that it `takes` off it, those that it runs, its time limit; the last has none."""

    number: int
    takes: float
    seconds: float
    limit: float | None


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """One slice: a submission of its own. `time_limit` in seconds, None of the last one. `needs`: the slice before."""

    job: str
    number: int
    time_limit: float | None
    submission: PlannedSubmission


@dataclass(frozen=True, slots=True)
class SliceOffer:
    """What slices would be worth. Seconds: of the mean completion, and of what all restarts lose together."""

    mean_completion: float
    restarts: int
    lost: float
    slices: tuple[PlannedSlice, ...]


def slice_offer(
    jobs: Sequence[PlannedJob], pools: Sequence[JobPool], most_at_once: int | None, first: float = FIRST
) -> SliceOffer | None:
    """The offer; None where a job does not checkpoint, has copies or waits for another, or none is cut."""
    if not jobs or any(job.restart is None or job.array or job.after or job.sent for job in jobs):
        return None
    cut = [one for job in jobs for one in _cut(job, first)]
    numbers = {one.name: piece.number for _, piece, one in cut}
    if max(numbers.values()) == 1:
        return None
    try:
        problem = plan_problem([one for _, _, one in cut], pools)
    except InputError:  # more slices than can be planned
        return None
    rank = [float(numbers[problem.job(index).name]) for index in range(problem.size)]
    schedule = parallel(problem, rank).schedule(problem)
    steps = {step.job: step for step in submissions(schedule, most_at_once)}
    # A slice ends at its time limit, which is no success: the next one waits for its end alone.
    freed = {name: replace(step, needed=()) for name, step in steps.items()}
    found = {one.name: PlannedSlice(job.name, piece.number, piece.limit, freed[one.name]) for job, piece, one in cut}
    restarts = [job.restart or 0.0 for job, piece, _ in cut if piece.number > 1]
    return SliceOffer(_mean(jobs, schedule, found), len(restarts), sum(restarts), tuple(found[name] for name in steps))


def cuts(job: PlannedJob, first: float = FIRST) -> tuple[SliceCut, ...]:
    """The slices of what is left of a job that checkpoints: each is twice as long as the one before."""
    found: list[SliceCut] = []
    left, length = job.seconds, max(_LEAST, first / max(1, job.gpus)) * 2**job.slices_done
    while left > 0:
        number = job.slices_done + len(found) + 1
        takes = min(left, length)
        seconds = takes + ((job.restart or 0.0) if number > 1 else 0.0)
        found.append(SliceCut(number, takes, seconds, None if left <= length else seconds))
        left, length = left - takes, 2 * length
    return tuple(found)


def _cut(job: PlannedJob, first: float) -> list[tuple[PlannedJob, SliceCut, PlannedJob]]:
    """The job, a slice of it, and that slice as a job."""
    found: list[tuple[PlannedJob, SliceCut, PlannedJob]] = []
    for one in cuts(job, first):
        before = (found[-1][2].name,) if found else ()
        name = f"{job.name[:180]} slice {one.number}"
        made = replace(job, name=name, seconds=one.seconds, after=before, deadline=None, restart=None)
        found.append((job, one, made))
    return found


def _mean(jobs: Sequence[PlannedJob], schedule: JobSchedule, found: dict[str, PlannedSlice]) -> float:
    """The mean of when the last slice of each job ends, by weight."""
    ends: dict[str, float] = {}
    for one in schedule.placed:
        name = found[one.job.name].job
        ends[name] = max(ends.get(name, 0.0), one.end)
    weights = {job.name: job.priority for job in jobs}
    return sum(weights[name] * end for name, end in ends.items()) / sum(weights.values())
