"""The strategies that a replay can follow: who is first, who may pass, and what is expected of a run time."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.predict_run import RunPredictor
from slurm_agent_tools.planning.workload import TracedJob
from slurm_agent_tools.units import parse_time_limit


class Predictor(Protocol):
    """Tells how long jobs will run from those that have ended. It is asked at a job's submission, and told each end."""

    def predict(self, job: TracedJob) -> float | None:
        """Seconds, or None where nothing is known; the job's own `run` must not be looked at."""
        ...

    def observe(self, job: TracedJob) -> None:
        """This job has ended."""
        ...


Expectation = Predictor | Callable[[TracedJob], float | None] | Mapping[int, float]
"""What is expected of jobs: a predictor, a function of the job, or seconds by the number of the job."""

Fill = Literal["none", "queue", "shortest"]

Estimate = Literal["limit", "last-two", "similar", "exact"]

Correction = Literal["limit", "double", "none"]


@dataclass(frozen=True, slots=True)
class PriorityWeights:
    """Slurm's multifactor priority (priority_multifactor): what age, fair share and size count, in its own units.

    `max_age` and `half_life`: seconds, PriorityMaxAge and PriorityDecayHalfLife. Every user has the same share.
    """

    age: float = 1000.0
    fair_share: float = 10_000.0
    size: float = 0.0
    max_age: float = 7 * 86_400.0
    half_life: float = 7 * 86_400.0


_NEVER = 1e12  # seconds: a half-life of 0 in Slurm is none at all


def site_weights(configuration: Mapping[str, str]) -> PriorityWeights | None:
    """What slurm.conf says of priorities; None where jobs go by their submission alone (priority/basic)."""
    if configuration.get("PriorityType") != "priority/multifactor":
        return None
    usual = PriorityWeights()
    return PriorityWeights(
        age=_number(configuration.get("PriorityWeightAge")),
        fair_share=_number(configuration.get("PriorityWeightFairShare", configuration.get("PriorityWeightFairshare"))),
        size=_number(configuration.get("PriorityWeightJobSize")),
        max_age=_seconds(configuration.get("PriorityMaxAge"), usual.max_age),
        half_life=_seconds(configuration.get("PriorityDecayHalfLife"), usual.half_life),
    )


def _number(text: str | None) -> float:
    return float(text) if text is not None and text.isdecimal() else 0.0


def _seconds(text: str | None, otherwise: float) -> float:
    """A time as slurm.conf has it, `7-00:00:00`; 0 is never."""
    try:
        found = float(parse_time_limit(text)) if text else otherwise
    except ValueError:
        return otherwise
    return found if found > 0 else _NEVER


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to choose who starts.

    `fill`: who may pass the first that waits: nobody, in the queue's order, or the shortest first. `estimate`: what a
    job is expected to take; never more than its limit. `correction`: what is expected of one that ran longer.
    `weights`: the order is by priority. `patience`: shortest first, and a reservation for whoever has waited so many
    times the mean wait of the last thousand jobs. `attainable`: it needs to know nothing that nobody can know.
    """

    name: str
    what: str
    fill: Fill = "queue"
    estimate: Estimate = "limit"
    correction: Correction = "limit"
    weights: PriorityWeights | None = None
    patience: float | None = None
    attainable: bool = True

    @property
    def backfills(self) -> bool:
        """Whether anybody may pass the first that waits."""
        return self.fill != "none"

    def estimates(
        self, expectation: Expectation | None
    ) -> tuple[Callable[[TracedJob], float], Callable[[TracedJob], None]]:
        """What is asked at each submission, and what is told of each end."""
        if expectation is None:
            if self.estimate == "exact":
                return (lambda job: job.run), _nothing
            if self.estimate == "limit":
                return _limit, _nothing
            expectation = LastTwo() if self.estimate == "last-two" else RunPredictor()
        if isinstance(expectation, Mapping):
            known = expectation
            return (lambda job: _bounded(known.get(job.number), job)), _nothing
        if callable(expectation):
            ask = expectation
            return (lambda job: _bounded(ask(job), job)), _nothing
        told = expectation
        return (lambda job: _bounded(told.predict(job), job)), told.observe

    def corrected(self, job: TracedJob, ran: float) -> float:
        """The whole run time that is expected of a job that has run `ran` seconds, longer than was expected."""
        if self.correction == "limit" and job.limit is not None and job.limit > ran:
            return job.limit
        return 2 * max(ran, 1.0)


def _nothing(_job: TracedJob) -> None:
    return None


def _limit(job: TracedJob) -> float:
    if job.limit is None:
        hint = "Leave it out, or choose strategies that need no limit."
        raise InputError(f"job {job.number}, limit", None, "must be known where a strategy goes by limits", hint=hint)
    return job.limit


def _bounded(seconds: float | None, job: TracedJob) -> float:
    if seconds is None or not seconds >= 0:
        return _limit(job)
    return seconds if job.limit is None else min(seconds, job.limit)


class LastTwo:
    """The mean of the last two run times of the same user (Tsafrir, Etsion and Feitelson 2007); else nothing."""

    def __init__(self) -> None:
        self._ended: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=2))

    def predict(self, job: TracedJob) -> float | None:
        """Seconds, or None of a user of whom nothing has ended."""
        ended = self._ended.get(job.user)
        return sum(ended) / len(ended) if ended else None

    def observe(self, job: TracedJob) -> None:
        """Keep its run time."""
        self._ended[job.user].append(job.run)


# --- Shortest first: who has waited too long --------------------------------------------------------------------------

_KEPT = 1000

_SOONEST = 3600.0  # seconds: nobody is overdue before


class UsualWaits:
    """What the last thousand jobs waited. Whoever has waited `patience` times their mean is overdue.

    The bound grows with the load, because a fixed age makes everybody overdue when the machine is full, and then the
    order is that of the submissions again. It is one bound for all sizes: with one of its own, the size that is passed
    most often would raise its own bound without end (measured: waits of weeks under overload).
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._waits: deque[float] = deque(maxlen=_KEPT)
        self._sum = 0.0

    def add(self, wait: float) -> None:
        """A job has started after so many seconds."""
        if len(self._waits) == _KEPT:
            self._sum -= self._waits[0]
        self._waits.append(wait)
        self._sum += wait

    @property
    def bound(self) -> float:
        """Seconds beyond which a job is overdue."""
        return max(_SOONEST, self._patience * self._sum / len(self._waits)) if self._waits else _SOONEST


# --- Priority with shares ---------------------------------------------------------------------------------------------

_PERIOD = 300.0  # seconds between two sortings: Slurm's PriorityCalcPeriod


@dataclass(slots=True)
class _Use:
    """Processor seconds that count of one user (or all) at the moment `at`, and the processors in use since."""

    amount: float = 0.0
    rate: int = 0
    at: float = 0.0

    def settle(self, now: float, decay: float) -> float:
        """Bring it to `now`: u' = rate - decay u, solved exactly."""
        kept = math.exp(-decay * (now - self.at))
        self.amount = self.amount * kept + self.rate * (1.0 - kept) / decay
        self.at = now
        return self.amount


class UserShares:
    """Slurm's priorities of waiting jobs, where every user has the same share.

    fair share = 2^(-usage / share), of the processor time that the user was given so far, decayed by half in
    `half_life` (slurm.schedmd.com/priority_multifactor.html, the classic algorithm).
    """

    def __init__(self, jobs: Sequence[TracedJob], processors: int, weights: PriorityWeights) -> None:
        self._jobs, self._total, self._weights = jobs, processors, weights
        self._decay = math.log(2) / weights.half_life
        self._used: defaultdict[str, _Use] = defaultdict(_Use)
        self._all, self._sorted = _Use(), -math.inf
        self._users = max(1, len({job.user for job in jobs}))

    def change(self, user: str, processors: int, now: float) -> None:
        """A user gets processors, or gives them back (negative)."""
        for use in (self._used[user], self._all):
            use.settle(now, self._decay)
            use.rate += processors

    def due(self, now: float, waiting: int) -> bool:
        """Whether the order is to be made anew: every five minutes, and of a queue beyond a thousand less often."""
        return now - self._sorted >= _PERIOD * max(1.0, waiting / _KEPT)

    def sort(self, queue: list[int], ready: Sequence[float], now: float) -> None:
        """Order the queue, the highest priority first; ties by submission."""
        self._sorted = now
        if len(queue) < 2:
            return
        weights, jobs = self._weights, self._jobs
        everything = self._all.settle(now, self._decay)
        factors: dict[str, float] = {}
        keys: dict[int, tuple[float, int]] = {}
        for index in queue:
            job = jobs[index]
            if job.user not in factors:
                factors[job.user] = weights.fair_share * self._fair(job.user, everything, now)
            age = min(1.0, (now - ready[index]) / weights.max_age)
            keys[index] = -(factors[job.user] + weights.age * age + weights.size * job.processors / self._total), index
        queue.sort(key=keys.__getitem__)

    def _fair(self, user: str, everything: float, now: float) -> float:
        use = self._used.get(user)
        if use is None or everything <= 0:
            return 1.0
        return float(2.0 ** -(use.settle(now, self._decay) / everything * self._users))


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy("fcfs", "in the order of submission, nobody passes", fill="none"),
        Strategy("easy", "in the order of submission, backfilling by time limits"),
        Strategy("easy-shortest", "the same, the shortest limit first among those that backfill", fill="shortest"),
        Strategy(
            "easy-predicted", "the same by the mean of the user's last two run times, mended when they expire",
            fill="shortest", estimate="last-two",
        ),
        Strategy(
            "easy-similar", "the same by what similar jobs took that had ended, mended when it expires",
            fill="shortest", estimate="similar",
        ),
        Strategy("easy-exact", "the same if every run time were known: what prediction can gain", fill="shortest",
                 estimate="exact", attainable=False),
        Strategy("shortest", "the shortest limit first, a reservation for who has waited ten times what is usual",
                 fill="shortest", patience=10.0),
        Strategy("shares", "by age and the user's share of what was used lately, backfilling by time limits",
                 weights=PriorityWeights()),
    )
}  # fmt: skip
"""By name. What an administrator's own weights make is `shares` with them."""
