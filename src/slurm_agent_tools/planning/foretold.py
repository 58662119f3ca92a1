"""What is foretold of this user's next job, by records and waits as they are kept here; and how often that held. Pure.

Run times come from the user's own jobs that ended, waits from the jobs of all users that started here lately. What was
foretold at a submission is what its end is compared with, and what the next intervals are corrected by.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.models.job import EndedEstimate, GivenEstimate, Job, JobRecord, KnownBefore, PastWait
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.submission_answer import Foretold
from slurm_agent_tools.planning.calibration import ComparedEstimate, Quantiles, calibration
from slurm_agent_tools.planning.predict_run import RunPrediction, RunPredictor, RunQuestion, estimates_in_order
from slurm_agent_tools.planning.predict_wait import WaitPrediction, WaitPredictor, WaitQuestion, waits_in_order
from slurm_agent_tools.planning.workload import TracedJob

MOST_RUNS, MOST_WAITS = 500, 600
"""Jobs that are learned from at most: the last ones."""

TOLD = 10
"""With fewer estimates that were compared it is not told how often they held."""

_GPU = 1000  # in the size of a job one GPU counts more than all CPUs of a node

_ENDS = frozenset({"COMPLETED", "TIMEOUT"})


def _limit(asked: Resources) -> float | None:
    limit = asked.time_limit_seconds
    return float(limit) if limit is not None and limit > 0 else None


def _size(asked: Resources) -> int:
    return _GPU * (asked.gpus or 0) + (asked.cpus or 1)


def _raw(given: Iterable[EndedEstimate], kind: str) -> dict[int, Quantiles]:
    return {one.job_id: Quantiles(*one.said.raw) for one in given if one.said.kind == kind}


# --- run times --------------------------------------------------------------------------------------------------------


class RunHistory:
    """The jobs of one user that completed or used up their limit; what failed says nothing of a whole run."""

    def __init__(self, known: KnownBefore) -> None:
        kept = [one for one in known.records if one.state in _ENDS and one.job_id not in known.short][:MOST_RUNS]
        self._scripts = {one.name: one.script_path for one in reversed(kept) if one.script_path}
        jobs = sorted(filter(None, map(self._traced, kept)), key=lambda job: (job.submit, job.number))
        self._predictor = RunPredictor()
        for _ in estimates_in_order(jobs, self._predictor, _raw(known.ended, "run")):
            pass

    def _traced(self, record: JobRecord) -> TracedJob | None:
        run = record.usage.elapsed_seconds if record.usage is not None else None
        one = record.tasks == 1 and (record.requested.array_tasks or 1) == 1  # an array runs in turns
        if run is None and one and record.started is not None and record.ended is not None:
            run = round((record.ended - record.started).total_seconds())
        if not run or not record.job_id.isdecimal():
            return None
        submit = record.submitted.timestamp()
        wait = None if record.started is None else max(0.0, record.started.timestamp() - submit)
        likeness = record.script_path or self._scripts.get(record.name, record.name)
        asked = record.requested
        return TracedJob(
            int(record.job_id), submit, float(run), _size(asked), _limit(asked), "", wait=wait, name=likeness
        )

    def estimate(self, name: str, script: str | None, asked: Resources) -> RunPrediction:
        """Of a job of this name or script. Jobs of the same script count as alike whatever they are called."""
        likeness = script or self._scripts.get(name, name)
        return self._predictor.estimate(RunQuestion(_size(asked), _limit(asked), "", likeness))


# --- waits ------------------------------------------------------------------------------------------------------------


class RecentStarts:
    """The jobs of all users that started here lately; of an array the part that started first."""

    def __init__(self, known: KnownBefore, most: int = MOST_WAITS) -> None:
        """`most`: jobs that are learned from; 600 take 0.2 s of CPU."""
        first: dict[int, PastWait] = {}
        for one in known.starts:
            if one.ready is not None and (one.job not in first or one.seconds < first[one.job].seconds):
                first[one.job] = one
        jobs = sorted(first.values(), key=lambda one: (_ready(one), one.job))[-most:]
        self._predictor = WaitPredictor()
        for _ in waits_in_order(_questions(jobs), self._predictor, _raw(known.ended, "wait")):
            pass

    def estimate(
        self, asked: Resources, user: str, active: Iterable[Job], at: float, slurm: float | None = None
    ) -> WaitPrediction:
        """Of a job that this user submits at `at`, beside these of the same user. `slurm`: its own estimate.

        `asked.partition` is where it goes; of several the first counts.
        """
        kind = _kind(asked)
        waiting = [job for job in active if job.state == "PENDING" and not job.held and job.dependency is None]
        mine = {job.job_id.base: _kind(job.resources) for job in waiting}
        ahead, alike = len(mine), sum(1 for one in mine.values() if one == kind)
        return self._predictor.estimate(
            WaitQuestion(
                at, user, kind[0], _size(asked), _limit(asked), own_ahead=ahead, alike_ahead=alike,
                own_waiting=ahead + 1, alike_waiting=alike + 1, slurm=slurm,
            )
        )  # fmt: skip


def _ready(one: PastWait) -> float:
    return 0.0 if one.ready is None else one.ready.timestamp()


def _kind(asked: Resources) -> tuple[str, int, float | None]:
    return (asked.partition or "").split(",")[0], _size(asked), _limit(asked)


def _questions(jobs: Sequence[PastWait]) -> Iterator[tuple[WaitQuestion, float]]:
    """Each at the moment from which it could run, with how many of its user's waited then."""
    queued: defaultdict[str, deque[tuple[float, tuple[str, int, float | None]]]] = defaultdict(deque)
    for one in jobs:
        at, kind = _ready(one), _kind(one.asked)
        kept = deque(pair for pair in queued[one.user] if pair[0] > at)
        ahead, alike = len(kept), Counter(each for _, each in kept)[kind]
        kept.append((at + one.seconds, kind))
        queued[one.user] = kept
        question = WaitQuestion(
            at, one.user, one.partition, kind[1], kind[2], own_ahead=ahead, alike_ahead=alike, own_waiting=ahead + 1,
            alike_waiting=alike + 1, number=one.job,
        )  # fmt: skip
        yield question, float(one.seconds)


# --- one submission ---------------------------------------------------------------------------------------------------

_FEW_WAITS = 200  # while somebody waits for the submission


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job that is about to be submitted at `at` (seconds since 1970), beside `active` ones of its user.

    `slurm`: how many seconds it waits as Slurm says. `runs`, `waits`: whether it is asked about.
    """

    name: str
    script: str
    asked: Resources
    user: str
    at: float
    active: Sequence[Job] = ()
    slurm: float | None = None
    runs: bool = True
    waits: bool = True


def of_submission(job: SubmittedJob, known: KnownBefore) -> tuple[tuple[GivenEstimate, ...], Foretold | None]:
    """How long it will run and wait: as facts, and in words."""
    run = wait = None
    if job.runs:
        run = RunHistory(known).estimate(job.name, job.script, job.asked)
    if job.waits:
        starts = RecentStarts(known, _FEW_WAITS)
        wait = starts.estimate(job.asked, job.user, job.active, job.at, job.slurm)
    return given(run, wait), in_words(run, wait)


# --- as it is kept and told -------------------------------------------------------------------------------------------


def given(run: RunPrediction | None, wait: WaitPrediction | None) -> tuple[GivenEstimate, ...]:
    """As facts, to be compared with what happens; what rests on no job is no estimate of ours."""
    found = []
    if run is not None and run.expected is not None and run.raw is not None and run.basis:
        raw = (run.raw.low, run.raw.median, run.raw.high)
        found.append(GivenEstimate("run", run.expected, run.low, run.high, run.basis, raw))
    if wait is not None and wait.expected is not None and wait.raw is not None and wait.basis:
        raw = (wait.raw.low, wait.raw.median, wait.raw.high)
        found.append(GivenEstimate("wait", wait.expected, wait.low, wait.high, wait.basis, raw))
    return tuple(found)


def in_words(run: RunPrediction | None, wait: WaitPrediction | None) -> Foretold | None:
    """The same for an answer; None where nothing is known."""
    told = Foretold(
        run=None if run is None or not run.basis else run.text,
        wait=None if wait is None or not wait.basis else wait.text,
    )
    return told if told.run or told.wait else None


def how_often_held(ended: Iterable[EndedEstimate]) -> str | None:
    """One sentence for run times and one for waits, each where enough were compared; None where neither was."""
    outcomes: dict[str, list[ComparedEstimate]] = {"run": [], "wait": []}
    for one in ended:
        said = one.said
        outcomes[said.kind].append(ComparedEstimate(said.expected, said.low, said.high, one.happened))
    names: Mapping[str, str] = {"run": "Run times", "wait": "Waits"}
    judged = {names[kind]: calibration(compared) for kind, compared in outcomes.items()}
    told = [f"{what}: {found.text}." for what, found in judged.items() if found.estimates >= TOLD]
    return " ".join(told) or None
