"""Replay of a workload on one pool of processors, under one strategy: when would each job have started.

Jobs start by events: a submission, an end, a prediction that has expired. Backfilling is EASY (Lifka 1995): the first
in the queue gets a reservation at the earliest moment at which enough processors will be free as far as is expected,
and others may start before it when they delay it by nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.schedule_check import schedule_faults
from slurm_agent_tools.planning.strategies import Expectation, Strategy, UserShares, UsualWaits
from slurm_agent_tools.planning.workload import TracedJob, Workload

_END, _EXPIRED, _READY = 0, 1, 2

DEPTH = 1000
"""Waiting jobs, from the front, that may pass the first at one moment, as bf_max_job_test bounds it in Slurm."""

_SHORTEST = 1.0  # seconds: an estimate of nothing would let everything through


@dataclass(frozen=True, slots=True)
class Replay:
    """When each job of the workload could start (`ready`), and when it did, in the order of `workload.jobs`.

    `corrected`: how often a job ran longer than was expected, so that the expectation was mended.
    """

    workload: Workload
    strategy: Strategy
    processors: int
    ready: tuple[float, ...]
    starts: tuple[float, ...]
    corrected: int

    @property
    def waits(self) -> tuple[float, ...]:
        """Seconds from when each could start until it did."""
        return tuple(start - since for start, since in zip(self.starts, self.ready, strict=True))

    @property
    def placed(self) -> list[tuple[TracedJob, float]]:
        """Every job with its start."""
        return list(zip(self.workload.jobs, self.starts, strict=True))

    @property
    def faults(self) -> list[str]:
        """What the independent checker finds wrong with it; nothing, unless the replay itself is."""
        return schedule_faults(self.placed, self.processors)


def replay(
    workload: Workload,
    strategy: Strategy,
    *,
    processors: int | None = None,
    expectation: Expectation | None = None,
) -> Replay:
    """The starts of all jobs under a strategy on `processors`, by default those that the workload names.

    `expectation` says what is expected of jobs in place of the strategy's own estimate. Raises InputError for a job
    that is larger than the pool, has no limit where one is needed, or waits for one that is not there.
    """
    size = pool_size(workload, processors)
    check_jobs(workload.jobs, size)
    return _Engine(workload, strategy, size, expectation).run()


def pool_size(workload: Workload, processors: int | None) -> int:
    """So many processors, by default those that the workload names. Raises InputError where neither says it."""
    size = processors if processors is not None else workload.processors
    if size is None or size < 1:
        hint = "Say how many processors the machine had, e.g. --processors 128."
        raise InputError("processors", size, "must be known and at least 1", hint=hint)
    return size


def check_jobs(jobs: Sequence[TracedJob], processors: int) -> None:
    """Raise InputError for a job that can never start, and names it."""
    before: set[int] = set()
    for job in jobs:
        label = f"job {job.number}"
        if job.processors > processors:
            hint = f"The pool has {processors}. Give a larger one with --processors, or leave the job out."
            raise InputError(f"{label}, processors", job.processors, "is more than the pool has", hint=hint)
        if job.processors < 1 or not 0 <= job.run < math.inf or not 0 <= job.submit < math.inf:
            raise InputError(label, job, "has a size below 1, or a time that is negative or without end")
        if job.after is not None and job.after not in before:
            hint = "A job can wait for one that is submitted before it; drop the dependency or add the other job."
            raise InputError(f"{label}, after", job.after, "is no job that is submitted before it", hint=hint)
        before.add(job.number)


class _Engine:
    """The state of one replay. Jobs are known by their place in the workload."""

    def __init__(
        self,
        workload: Workload,
        strategy: Strategy,
        processors: int,
        expectation: Expectation | None,
    ) -> None:
        self.workload, self.jobs, self.strategy, self.total = workload, workload.jobs, strategy, processors
        self.size = [job.processors for job in self.jobs]
        self.ready = [job.submit for job in self.jobs]
        self.start = [-1.0] * len(self.jobs)
        self.expected = [0.0] * len(self.jobs)  # seconds of run time
        self.ends_at = [0.0] * len(self.jobs)  # as expected, of what runs
        self.predict, self.observe = strategy.estimates(expectation)
        self.free = processors
        self.queue: list[int] = []
        self.running: list[tuple[float, int]] = []  # by expected end
        self.events: list[tuple[float, int, int]] = []
        self.corrected = 0
        self.children: defaultdict[int, list[int]] = defaultdict(list)
        self.shares = UserShares(self.jobs, processors, strategy.weights) if strategy.weights else None
        self.usual = UsualWaits(strategy.patience) if strategy.patience else None
        self.shadow, self.extra = math.inf, 0

    def run(self) -> Replay:
        """Play all events in the order of time."""
        arrivals = self._arrivals()
        events, queue, position, count = self.events, self.queue, 0, len(arrivals)
        while position < count or events:
            at = arrivals[position][0] if position < count else math.inf
            now = min(at, events[0][0]) if events else at
            changed = not queue
            while events and events[0][0] == now:
                changed = True
                _, kind, index = heappop(events)
                if kind == _END:
                    self._end(now, index)
                elif kind == _EXPIRED:
                    self._expire(now, index)
                else:
                    self._enter(index, now)
            first = len(queue)
            while position < count and arrivals[position][0] == now:
                self._enter(arrivals[position][1], now)
                position += 1
            if changed or (self.shares is not None and self.shares.due(now, len(self.queue))):
                self._pass(now)
            elif self.strategy.backfills and first < DEPTH:
                self._fill(now, queue[first:])
        return Replay(self.workload, self.strategy, self.total, tuple(self.ready), tuple(self.start), self.corrected)

    def _arrivals(self) -> list[tuple[float, int]]:
        """Jobs that wait for no other; the others come in when it has ended."""
        place = {job.number: index for index, job in enumerate(self.jobs)}
        for index, job in enumerate(self.jobs):
            if job.after is not None:
                self.children[place[job.after]].append(index)
        return [(job.submit, index) for index, job in enumerate(self.jobs) if job.after is None]

    def _enter(self, index: int, now: float) -> None:
        job = self.jobs[index]
        self.ready[index] = now
        self.expected[index] = max(_SHORTEST, self.predict(job))
        self.queue.append(index)

    # --- events ------------------------------------------------------------------------------------------------------

    def _begin(self, now: float, index: int) -> None:
        job = self.jobs[index]
        self.start[index] = now
        self.free -= self.size[index]
        self.ends_at[index] = expected = now + self.expected[index]
        insort(self.running, (expected, index))
        end = now + job.run
        heappush(self.events, (end, _END, index))
        if expected < end and self.strategy.correction != "none":
            heappush(self.events, (expected, _EXPIRED, index))
        if self.usual is not None:
            self.usual.add(now - self.ready[index])
        if self.shares is not None:
            self.shares.change(job.user, job.processors, now)

    def _end(self, now: float, index: int) -> None:
        """Free its processors, and let those come that waited for it."""
        del self.running[bisect_left(self.running, (self.ends_at[index], index))]
        self.free += self.size[index]
        job = self.jobs[index]
        self.observe(job)
        if self.shares is not None:
            self.shares.change(job.user, -job.processors, now)
        for child in self.children.pop(index, ()):
            heappush(self.events, (max(now, self.jobs[child].submit), _READY, child))

    def _expire(self, now: float, index: int) -> None:
        """It runs longer than was expected: expect more."""
        job, at = self.jobs[index], self.ends_at[index]
        del self.running[bisect_left(self.running, (at, index))]
        self.corrected += 1
        self.ends_at[index] = mended = self.start[index] + self.strategy.corrected(job, now - self.start[index])
        insort(self.running, (mended, index))
        if mended < self.start[index] + job.run:
            heappush(self.events, (mended, _EXPIRED, index))

    # --- who starts --------------------------------------------------------------------------------------------------

    def _pass(self, now: float) -> None:
        """Start whoever may: those in front while they fit, then others around the reservation."""
        queue, size = self.queue, self.size
        if self.shares is not None and (len(queue) <= DEPTH or self.shares.due(now, len(self.queue))):
            self.shares.sort(queue, self.ready, now)
        head = self._head(now)
        while head is not None and size[head] <= self.free:
            queue.remove(head)
            self._begin(now, head)
            head = self._head(now)
        if queue and self.strategy.backfills:
            self.shadow, self.extra = (math.inf, 0) if head is None else self._reservation(now, size[head])
            self._fill(now, [index for index in queue[:DEPTH] if index != head])

    def _head(self, now: float) -> int | None:
        """Whoever gets a reservation: the first, or with shortest-first the first of those who are overdue."""
        if not self.queue:
            return None
        if self.usual is None:
            return self.queue[0]
        first = self.queue[0]  # nobody waits longer
        return first if now - self.ready[first] > self.usual.bound else None

    def _reservation(self, now: float, need: int) -> tuple[float, int]:
        """When so many processors will be free, and how many more will be at that moment."""
        available, size = self.free, self.size
        shadow = now
        for end, index in self.running:
            if available >= need and end > shadow:
                break
            available += size[index]
            shadow = max(now, end)
        return shadow, available - need

    def _fill(self, now: float, candidates: Sequence[int]) -> None:
        """Start those that fit now and leave the reservation where it is."""
        free, size, expected, shadow, extra = self.free, self.size, self.expected, self.shadow, self.extra
        fitting = [index for index in candidates if size[index] <= free]
        if self.strategy.fill == "shortest":
            fitting.sort(key=expected.__getitem__)
        started: list[int] = []
        for index in fitting:
            need = size[index]
            if need > self.free:
                continue
            if now + expected[index] > shadow:
                if need > extra:
                    continue
                extra -= need
            self._begin(now, index)
            started.append(index)
        self.extra = extra
        for index in started:
            self.queue.remove(index)
