"""Replay of jobs that need several GPUs at once, all or none, on one pool; jobs that checkpoint may be put aside.

The orders are those that Tiresias (Gu et al., NSDI 2019) compares: in the order of submission, the shortest remaining
time, the smallest remaining service (time by GPUs), and the least attained service in two queues, which knows nothing
of how long a job will run: whoever has used less than a GPU hour goes before whoever has used more.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import merge

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.schedule_check import schedule_faults
from slurm_agent_tools.planning.simulate import DEPTH, check_jobs
from slurm_agent_tools.planning.workload import TracedJob, Workload

GPU_HOUR = 3600.0
"""GPU seconds after which a job goes into the second queue."""

_Rank = tuple[float, float, float, int]


@dataclass(frozen=True, slots=True)
class GangOrder:
    """Who gets the GPUs, again at each submission and end. `preempts`: whoever runs may be put aside.

    `attainable`: it needs to know nothing that nobody can know.
    """

    name: str
    what: str
    preempts: bool
    head_blocks: bool = False
    attainable: bool = True


@dataclass(frozen=True, slots=True)
class GangReplay:
    """First starts and ends in the order of `workload.jobs`, in seconds; `stretches`: job's place, begin, end."""

    workload: Workload
    order: GangOrder
    gpus: int
    starts: tuple[float, ...]
    ends: tuple[float, ...]
    stretches: tuple[tuple[int, float, float], ...]

    @property
    def mean_completion(self) -> float:
        """Mean seconds from submission to end."""
        took = [end - job.submit for job, end in zip(self.workload.jobs, self.ends, strict=True)]
        return math.fsum(took) / len(took) if took else 0.0

    @property
    def pieces(self) -> list[tuple[TracedJob, float]]:
        """Every stretch as a job by itself with its start, for whoever checks the schedule."""
        jobs = self.workload.jobs
        return [
            (replace(jobs[index], number=number, run=end - begin), begin)
            for number, (index, begin, end) in enumerate(self.stretches)
        ]

    @property
    def faults(self) -> list[str]:
        """What the independent checker finds wrong with it; nothing, unless the replay itself is."""
        return schedule_faults(self.pieces, self.gpus)

    @property
    def restarts(self) -> int:
        """How often a job was put aside and went on later."""
        return len(self.stretches) - len(self.starts)


GANG_ORDERS = {
    order.name: order
    for order in (
        GangOrder("first-blocks", "in the order of submission, nobody passes", preempts=False, head_blocks=True),
        GangOrder("whoever-fits", "in the order of submission, whoever fits", preempts=False),
        GangOrder(
            "shortest-remaining",
            "the shortest remaining time first, as if it were known",
            preempts=True,
            attainable=False,
        ),
        GangOrder(
            "smallest-remaining",
            "the smallest remaining GPU time first, as if it were known",
            preempts=True,
            attainable=False,
        ),
        GangOrder("least-attained", "whoever has used less than a GPU hour first; nothing is known", preempts=True),
    )
}


def replay_gangs(
    workload: Workload, order: GangOrder, *, gpus: int | None = None, restart: float = 0.0, service: float = GPU_HOUR
) -> GangReplay:
    """Ends of all jobs on `gpus`; their `processors` are GPUs, which a job gets all at once or not at all.

    Of those that wait the first DEPTH are looked at.

    `restart`: seconds that are lost each time a job goes on. `service`: GPU seconds of the first queue. Raises
    InputError for a job that is larger than the pool or waits for another, which is not played here.
    """
    size = gpus if gpus is not None else workload.processors
    if size is None or size < 1:
        raise InputError("gpus", size, "must be known and at least 1", hint="Say how many GPUs the pool has.")
    if not 0 <= restart < math.inf or not service > 0:
        raise InputError("restart", restart, "must be 0 or more seconds, and the service above 0")
    check_jobs(workload.jobs, size)
    chained = next((job for job in workload.jobs if job.after is not None), None)
    if chained is not None:
        raise InputError(
            f"job {chained.number}, after", chained.after, "is a dependency, which gangs are played without"
        )
    return _Gangs(workload, order, size, restart, service).run()


class _Gangs:
    """The state of one replay. Jobs are known by their place in the workload."""

    def __init__(self, workload: Workload, order: GangOrder, gpus: int, restart: float, service: float) -> None:
        self.workload, self.jobs, self.order, self.gpus = workload, workload.jobs, order, gpus
        self.restart, self.service = restart, service
        self.left = [job.run for job in self.jobs]
        self.attained = [0.0] * len(self.jobs)
        self.start, self.end = [math.nan] * len(self.jobs), [math.nan] * len(self.jobs)
        self.began: dict[int, float] = {}  # whoever runs, since when
        self.waiting: list[tuple[_Rank, int]] = []
        self.stretches: list[tuple[int, float, float]] = []
        self.rank = self._ranking()

    def run(self) -> GangReplay:
        """From one event to the next: a submission, an end, a job that leaves the first queue."""
        now, position, jobs = 0.0, 0, self.jobs
        while position < len(jobs) or self.began:
            due = {index: self._next(index, now) for index in self.began}
            then = min((at for at, _ in due.values()), default=math.inf)
            then = min(then, jobs[position].submit) if position < len(jobs) else then
            self._advance(then - now)
            now = then
            for index in [index for index, (at, _) in due.items() if at <= now]:
                self._reach(index, now, ends=due[index][1])
            while position < len(jobs) and jobs[position].submit <= now:
                insort(self.waiting, (self.rank(position), position))
                position += 1
            self._share(now)
        return GangReplay(
            self.workload, self.order, self.gpus, tuple(self.start), tuple(self.end), tuple(self.stretches)
        )

    def _next(self, index: int, now: float) -> tuple[float, bool]:
        """When something of a running job changes, and whether that is its end."""
        left, more = self.left[index], self._to_second_queue(index)
        return now + max(0.0, min(left, more)), left <= more

    def _to_second_queue(self, index: int) -> float:
        """Seconds until a job that goes on leaves the first queue; without end where it has, or there is but one."""
        if self.order.name != "least-attained" or self.attained[index] >= self.service:
            return math.inf
        return (self.service - self.attained[index]) / self.jobs[index].processors

    def _advance(self, seconds: float) -> None:
        for index in self.began:
            self.left[index] -= seconds
            self.attained[index] += seconds * self.jobs[index].processors

    def _reach(self, index: int, now: float, *, ends: bool) -> None:
        """The end of a job, or of its time in the first queue; said outright, as sums of times are never exact."""
        if ends:
            self.end[index] = now
            self._stop(index, now)
        else:
            self.attained[index] = max(self.attained[index], self.service)

    def _stop(self, index: int, now: float) -> None:
        self.stretches.append((index, self.began.pop(index), now))

    def _share(self, now: float) -> None:
        """Give out the GPUs by rank; whoever runs and gets none is put aside."""
        running = sorted((self.rank(index), index) for index in self.began)
        free, chosen = self.gpus, set[int]()
        for _, index in merge(running, self.waiting[:DEPTH]):
            need = self.jobs[index].processors
            if need <= free:
                free -= need
                chosen.add(index)
            elif self.order.head_blocks:
                break
            if free == 0:
                break
        aside = [index for index in self.began if index not in chosen]
        fresh = [index for index in chosen if index not in self.began]
        for index in aside:
            self._stop(index, now)
        for index in sorted(fresh):
            del self.waiting[bisect_left(self.waiting, (self.rank(index), index))]
            self._begin(index, now)
        for index in aside:
            insort(self.waiting, (self.rank(index), index))

    def _begin(self, index: int, now: float) -> None:
        if math.isnan(self.start[index]):
            self.start[index] = now
        else:
            self.left[index] += self.restart
        self.began[index] = now

    def _ranking(self) -> Callable[[int], _Rank]:
        """The order as a function of a job's place: the lowest comes first."""
        jobs, left, attained, began = self.jobs, self.left, self.attained, self.began
        if self.order.name == "shortest-remaining":
            return lambda index: (left[index], 0.0, jobs[index].submit, index)
        if self.order.name == "smallest-remaining":
            return lambda index: (left[index] * jobs[index].processors, 0.0, jobs[index].submit, index)
        if self.order.name == "least-attained":
            return lambda index: (
                float(attained[index] >= self.service), float(index not in began), jobs[index].submit, index
            )  # fmt: skip
        return lambda index: (float(index not in began), 0.0, jobs[index].submit, index)
