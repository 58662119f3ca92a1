"""A job as Slurm tells of it, as it was foretold, and as it is remembered. Bytes, seconds, UTC.

None means not known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.units import JobId

ACTIVE_STATES = frozenset(
    {
        "PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STAGE_OUT", "SIGNALING",
        "STOPPED", "RESIZING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD",
        "EXPEDITING", "POWER_UP_NODE", "UPDATE_DB",
    }
)  # fmt: skip
"""States of a job that is not over (squeue(1), JOB STATE CODES). Everything else Slurm reports is an end."""

HELD_UP = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
"""Active states of a job that has no nodes: it waits, for them or for a person."""

# --- what Slurm says ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One accounting line below the job: batch, extern or a number.

    `allocated` and the usages are TRES by name: CPUs and GPUs counted, memory in bytes, CPU time in seconds. Of usages
    `tot` is the sum over the tasks of each one's most, `max`, `min` and `ave` are of one task. A task that ended before
    it was sampled counts as 0.
    """

    step_id: str
    name: str
    state: str
    exit_code: int | None = None
    signal: int | None = None
    max_rss_bytes: int | None = None
    elapsed_seconds: int | None = None
    cpu_seconds: float | None = None
    tres_usage_in_max: Mapping[str, int] = field(default_factory=dict)
    tres_usage_in_tot: Mapping[str, int] = field(default_factory=dict)
    tres_usage_in_min: Mapping[str, int] = field(default_factory=dict)
    tres_usage_in_ave: Mapping[str, int] = field(default_factory=dict)
    allocated: Mapping[str, int] = field(default_factory=dict)
    tasks: int | None = None
    started: datetime | None = None
    cancelled_by: str | None = None  # uid


@dataclass(frozen=True, slots=True)
class Usage:
    """What a job, with all its array tasks, was given and used. None: not measured.

    CPU and GPU figures are sums over all parts; memory is that of the part that used most of what it had.
    """

    elapsed_seconds: int | None = None  # of the part that ran longest
    cpu_seconds: float | None = None
    cpu_allocated_seconds: float | None = None  # CPUs times elapsed
    gpu_allocated_seconds: float | None = None  # GPUs times elapsed
    gpu_utilization: float | None = None  # 0..1, where the site measures it
    gpu_memory_bytes: int | None = None
    memory_peak_bytes: int | None = None  # all tasks of the largest step, over all its nodes
    memory_allocated_bytes: int | None = None  # of the same part, over all its nodes
    memory_node_bytes: int | None = None  # most that one of its nodes needed, steps that ran at once together
    time_limit_seconds: int | None = None


# Reasons that Slurm gives for an end (squeue(1), JOB REASON CODES); others of an ended job are left from its waiting.
_ENDS = frozenset(
    {
        "NodeDown", "SystemFailure", "TimeLimit", "OutOfMemory", "DeadLine", "JobLaunchFailure", "Prolog",
        "NonZeroExitCode", "InactiveLimit",
    }
)  # fmt: skip

NOT_SET_UP = (0, 53)  # exit code and signal of a bad --chdir, --output or --error; 53 is no signal (measured)

_RAISED = "RaisedSignal"  # 23.02 and later: RaisedSignal:11(Segmentation_fault)


def end_reason(reason: str) -> bool:
    """Whether Slurm gives this reason for the end of a job."""
    return reason in _ENDS or reason.startswith(_RAISED)


@dataclass(frozen=True, slots=True)
class Job:
    """One job, array task or het component, the newest run. `state` is Slurm's base state in capitals.

    `sources` says who told it: any of squeue, scontrol, sacct. `raw_state` is Slurm's own text.
    """

    job_id: JobId
    name: str
    state: str
    sources: tuple[str, ...]
    raw_state: str = ""
    user: str | None = None
    partition: str | None = None
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    derived_exit_code: int | None = None
    derived_signal: int | None = None
    short_code: bool | None = None  # exit_code is the accounting's, which keeps the low 7 bits (sacct's text, measured)
    cancelled_by: str | None = None  # user name or uid
    submitted: datetime | None = None
    eligible: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    elapsed_seconds: int | None = None
    nodes: str | None = None  # Slurm's host list expression
    required_nodes: str | None = None  # the same, of --nodelist: it runs on all of these or does not start
    resources: Resources = Resources()
    restarts: int | None = None
    requeue: bool | None = None
    dependency: str | None = None
    comment: str | None = None
    work_dir: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    command: str | None = None
    raw_id: int | None = None  # Slurm's own number of an array task or het component
    nice: int | None = None
    expected_start: datetime | None = None  # Slurm's own estimate for a pending job
    qos: str | None = None
    admin_comment: str | None = None
    requested: Mapping[str, int] | None = None  # TRES by name as the accounting tells; memory in bytes
    allocated: Mapping[str, int] | None = None
    account: str | None = None
    reservation: str | None = None
    waited_for: str | None = None  # what kept it waiting last beside resources, of one that started as well
    steps: tuple[Step, ...] = ()

    @property
    def active(self) -> bool:
        """True while Slurm may still run it or is running it."""
        return self.state in ACTIVE_STATES

    @property
    def held(self) -> bool:
        """True while somebody keeps it from starting."""
        return self.state == "PENDING" and (self.reason or "").startswith("JobHeld")

    @property
    def other_code(self) -> int | None:
        """The exit code that it may have had as well, where the accounting alone tells of a script that failed."""
        cut = self.short_code and self.state == "FAILED" and not self.signal
        return self.exit_code + 128 if cut and self.exit_code is not None and self.exit_code < 128 else None

    @property
    def doubted_code(self) -> int | None:
        """The other code where people should hear of it: most failing programs end with 1, hardly one with 129."""
        return None if self.exit_code == 1 else self.other_code

    @property
    def code_text(self) -> str:
        """Its exit code in words: 7, or `72 (or 200: the accounting keeps 7 bits)`."""
        other = self.doubted_code
        return f"{self.exit_code}" if other is None else f"{self.exit_code} (or {other}: the accounting keeps 7 bits)"


@dataclass(frozen=True, slots=True)
class StepUse:
    """What a running step uses now, as sstat tells; `raw_id` is Slurm's own number of its job. None: not measured."""

    raw_id: int
    step_id: str
    tasks: int | None
    memory_bytes: int | None  # all its tasks, on all nodes
    task_peak_bytes: int | None  # most that one task needed so far
    cpu_seconds: float | None
    gpu_percent: float | None = None  # over all GPUs of its tasks, where the site samples gres/gpuutil


@dataclass(frozen=True, slots=True)
class PastWait:
    """One job that started, or one part of it. `seconds`: from when it could run (`ready`) until it did."""

    job: int
    partition: str
    seconds: int
    asked: Resources
    user: str = ""
    ready: datetime | None = None


@dataclass(frozen=True, slots=True)
class PastWaits:
    """Jobs of this cluster that ran in the last `hours`. `own`: only this user's are told, or no others were there.

    `note`: why nothing is known.
    """

    waits: tuple[PastWait, ...] = ()
    hours: int = 0
    own: bool = False
    note: str | None = None


# --- The comment of a job: the token of its submission, and behind a colon the caller's own run id --------------------

# No sign in it means anything to Slurm, to a shell or to the table that Slurm prints it in.

LONGEST_RUN_ID = 100

SUBMISSION_PREFIX = "sat-"

_TOKEN = re.compile(rf"\b{SUBMISSION_PREFIX}[0-9a-f]{{16}}\b", re.ASCII)

_RUN_ID = re.compile(rf"[A-Za-z0-9._:@/+-]{{1,{LONGEST_RUN_ID}}}", re.ASCII)


def is_plain_run_id(run_id: str) -> bool:
    """Whether a run id can stand in a comment: letters, digits and `._:@/+-`, at most 100 of them."""
    return _RUN_ID.fullmatch(run_id) is not None


def comment_for(token: str, run_id: str | None = None) -> str:
    """The comment of a submission. `run_id` is plain."""
    return token if run_id is None else f"{token}:{run_id}"


def token_in(comment: str | None) -> str | None:
    """The token in a comment, also where a site wrote more around it; the whole of one that we did not write."""
    if comment is None:
        return None
    match = _TOKEN.search(comment)
    return match[0] if match else comment.strip().partition(":")[0]


def is_our_comment(comment: str | None) -> bool:
    """Whether a submission of this program wrote it."""
    return (token_in(comment) or "").startswith(SUBMISSION_PREFIX)


def run_id_in(comment: str | None) -> str | None:
    """The run id in a comment, where there is one."""
    return None if comment is None else comment.strip().partition(":")[2] or None


# --- What is remembered of one job ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One submission and, once it is known, its end. None: not known, or not measured."""

    job_id: str
    cluster: str
    project: str
    user: str
    name: str
    script_path: str
    script_sha256: str
    requested: Resources
    submitted: datetime
    state: str
    partition: str | None = None
    run_id: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    category: str | None = None  # of its failure, as analyze_log found it
    usage: Usage | None = None
    result_path: str | None = None  # a saved result of this job, inside the project
    tasks: int = 1  # array tasks or components that its usage rests on
    managed: bool = True  # it came through the guard


@dataclass(frozen=True, slots=True)
class JobView:
    """A job, and its array tasks or het components where it has any.

    `missing`: why what the accounting knows is not in it; None where that was asked, or was not needed.
    """

    job: Job
    tasks: tuple[Job, ...] = ()
    missing: str | None = None

    @property
    def over(self) -> bool:
        """True when it ended, and every part of it."""
        return not any(part.active or part.state == "UNKNOWN" for part in (self.job, *self.tasks))

    def holds_task(self, task: str) -> bool:
        """Whether the controller holds this task of an array, or with `*` any."""
        held = [part.job_id for part in (self.job, *self.tasks) if {"squeue", "scontrol"} & set(part.sources)]
        if task == "*":
            return any(one.task is not None or one.tasks is not None for one in held)
        wanted = JobId(self.job.job_id.base, task=int(task))
        return any(one != one.whole and one.belongs_to(wanted) for one in held)


def by_number(jobs: Iterable[Job]) -> dict[int, tuple[Job, ...]]:
    """Records by the number of their job; by the own number of a task or component that part."""
    found: defaultdict[int, tuple[Job, ...]] = defaultdict(tuple)
    parts: dict[int, tuple[Job, ...]] = {}
    for job in jobs:
        found[job.job_id.base] += (job,)
        if job.raw_id is not None:
            parts[job.raw_id] = (job,)
    return parts | found


# --- What was foretold of a job before it was submitted, and what is known of earlier ones ----------------------------


@dataclass(frozen=True, slots=True)
class GivenEstimate:
    """What was foretold of a submission: seconds that it runs, or waits from then on, and how many jobs that rests on.

    Eight of ten lie from `low` to `high`; None where too few estimates had been compared with what happened. `raw`: the
    10, 50 and 90 % quantiles of similar jobs before that correction.
    """

    kind: Literal["run", "wait"]
    expected: float
    low: float | None
    high: float | None
    basis: int
    raw: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class EndedEstimate:
    """What was foretold of a job, and what it ran or waited in seconds."""

    job_id: int
    said: GivenEstimate
    happened: float


@dataclass(frozen=True, slots=True)
class KnownBefore:
    """What is known of earlier jobs: this user's own, what started here lately, and how estimates ended.

    `short`: ids of own jobs that are shorter by design, as smoke runs are.
    """

    records: Sequence[JobRecord] = ()
    starts: Sequence[PastWait] = ()
    ended: Sequence[EndedEstimate] = ()
    short: Collection[str] = ()
