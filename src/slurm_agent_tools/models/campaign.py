"""A campaign as it went: trials, what happened to them, and what is known of it now. Bytes, seconds, UTC.

None means not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

CampaignStatus = Literal["planned", "running", "needs_decision", "finished", "stopped"]

ArmOutcome = Literal["promote", "fix", "stop", "keep"]

TrialPurpose = Literal["smoke", "baseline", "trial", "scale_up", "fix"]

Setting = int | float | bool | str


@dataclass(frozen=True, slots=True, order=True)
class TrialId:
    """Round and number of a trial: they never change. `NAME/r1/t3` in full."""

    round: int
    number: int

    def __str__(self) -> str:
        return f"r{self.round}-t{self.number}"


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """What a run of a trial asks for; memory for each node."""

    cpus: int | None
    memory_bytes: int | None
    gpus: int
    nodes: int | None
    time_limit_seconds: int
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One run that was decided on. `settings`: every parameter of its stage and each resource that a round varied.

    `arm` is the same for all runs of one configuration of a stage whatever their length; `identity` for all that run
    the same: code, configuration and data, neither memory limit nor time limit. `replaces`: the failed trial that this
    one mends; `mended`: what was changed for that, in words; `fix`: which fix of the file, by its hash. `reuses`: the
    trial, byte for byte the same, whose end counts for this one.
    """

    id: TrialId
    stage: str
    purpose: TrialPurpose
    arm: str
    identity: str
    settings: Mapping[str, Setting]
    request: TrialRequest
    repeat: int = 1
    replaces: TrialId | None = None
    mended: str | None = None
    reuses: TrialId | None = None
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """How a trial ended. Hours are those that were taken up. `passed`: the file's demands hold; else `problem`.

    `cause` tells failures apart: the same category and the same telling line are the same cause. `proposed_*`: what
    the diagnosis proposes to ask for instead, where it has grounds.
    """

    job_id: str
    state: str
    passed: bool
    problem: str | None = None
    exit_code: int | None = None
    queue_seconds: float | None = None
    run_seconds: float | None = None
    restarts: int | None = None
    started: datetime | None = None
    ended: datetime | None = None
    cpu_hours: float | None = None
    gpu_hours: float | None = None
    cost: float | None = None
    currency: str | None = None
    memory_peak_bytes: int | None = None
    memory_allocated_bytes: int | None = None
    cpu_used: float | None = None  # shares, 0..1
    gpu_used: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    category: str | None = None
    cause: str | None = None
    explanation: str | None = None
    proposed_memory_bytes: int | None = None  # for each node
    proposed_time_seconds: int | None = None


# --- What happened, in order: facts of the ledger ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RevisionBegun:
    """The file as it is from now on. `code`: a hash of what each stage runs, by the stage's name.

    `rounds_kept`: so many of the first rounds stay begun and judged as they are, and all later ones are gone through
    again; None: all stay. `order`: names of the jobs of the file's `plan`, by their starts.
    """

    revision: int
    sha256: str
    document: str
    code: Mapping[str, str]
    rounds_kept: int | None = None
    plan: str | None = None
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundDesigned:
    """Trials of a round were decided on, all or as many as can be by now. `round` counts the file's rounds from 0."""

    round: int
    revision: int
    hypothesis: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class BatchIntended:
    """These trials are about to be sent as one job: written before, so that a crash sends the very same again.

    `task_ids`: the array's task of each trial; None where it is one trial and no array.
    """

    key: str
    trials: tuple[TrialId, ...]
    script: str
    script_sha256: str
    task_ids: tuple[int, ...] | None = None
    at_once: int | None = None


@dataclass(frozen=True, slots=True)
class BatchSent:
    """Slurm has the job."""

    key: str
    job_id: int


@dataclass(frozen=True, slots=True)
class BatchRefused:
    """It was not sent. `person`: a person has to act before it can be."""

    key: str
    reason: str
    person: bool
    rules: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    manual_commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial is over."""

    trial: TrialId
    end: TrialEnd


@dataclass(frozen=True, slots=True)
class TrialsLeftOut:
    """These trials, of which it is certain that Slurm has none, are not sent."""

    trials: tuple[TrialId, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class StageStopped:
    """No further trial of this stage is sent: its runs failed alike, or its smoke run failed."""

    stage: str
    cause: str
    reason: str


@dataclass(frozen=True, slots=True)
class ArmVerdict:
    """What was found of one configuration, with the figures that decided.

    `value`: its median of the objective. `low`, `high`: 95 % interval of the gain over the baseline, as a share; None
    where too few runs tell. `runs`: how many it rests on.
    """

    stage: str
    arm: str
    verdict: ArmOutcome
    reason: str
    runs: int
    value: float | None = None
    baseline: float | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class RoundJudged:
    """A round is over. `best`: for each stage the configuration to go on with; `text`: what came of the hypothesis.

    `chance`: the share, of the 5 campaigns of 100 that may promote by chance, that its comparisons took.
    """

    round: int
    verdicts: tuple[ArmVerdict, ...]
    best: Mapping[str, str]
    text: str
    chance: float = 0.0


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A person has to decide. `choices`: word -> what it means. `about`: the cause or the batch it is about.

    `trials`: instead of that the runs it is about, of which nobody tells how they stand.
    """

    question: str
    text: str
    choices: Mapping[str, str]
    about: str | None = None
    trials: tuple[TrialId, ...] = ()


@dataclass(frozen=True, slots=True)
class PersonDecided:
    """What was answered to a question. `by`: who called and by which client; an agent may call for a person."""

    question: str
    choice: str
    by: str


@dataclass(frozen=True, slots=True)
class CampaignStopped:
    """Nothing more is sent. `by`: who said so; a rule of the file where nobody did."""

    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class CampaignFinished:
    """All rounds are judged, or the aim is reached."""

    reason: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Something else that a reader should know: a result that was saved, a lesson that was written.

    missed: the controller does not show the trial's job any more, and nobody tells how it ended; unrecorded: the
    accounting answers, and has no record of it either; seen: Slurm shows it again.
    """

    what: Literal["result", "lesson", "report", "note", "missed", "unrecorded", "seen"]
    text: str
    trial: TrialId | None = None


CampaignEvent = (
    RevisionBegun
    | RoundDesigned
    | BatchIntended
    | BatchSent
    | BatchRefused
    | TrialEnded
    | TrialsLeftOut
    | StageStopped
    | RoundJudged
    | QuestionAsked
    | PersonDecided
    | CampaignStopped
    | CampaignFinished
    | Noted
)


@dataclass(frozen=True, slots=True)
class Stamped:
    """An event with its place in the order and its time."""

    number: int
    at: datetime
    event: CampaignEvent
