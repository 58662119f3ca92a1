"""One record of the fake controller: a job, an array's rest, a task of it, or a component; and its accounting."""

from __future__ import annotations

import posixpath
import re
from copy import copy
from dataclasses import dataclass, field, replace

from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.devcluster.fake.hardware import host_list, spans
from slurm_agent_tools.devcluster.fake.job_request import FakeRequest

ACTIVE = frozenset({"PENDING", "RUNNING", "SUSPENDED", "COMPLETING"})

_NO_TASK = 4294967294


@dataclass(frozen=True, slots=True)
class Share:
    """What a job holds on one node. Memory in MB."""

    node: str
    cpus: int
    memory: int
    gpus: tuple[int, ...] = ()
    gpu_type: str = ""


@dataclass(slots=True)
class FakeStep:
    """One step as the accounting tells it. `code` None: nothing was told of its end."""

    step_id: str
    name: str
    state: str
    start: float
    end: float | None = None
    code: int | None = 0
    signal: int = 0
    memory: int | None = None


@dataclass(slots=True)
class FakeJob:
    """Times in seconds since 1970. `waiting`: task numbers of an array that have no record of their own yet."""

    number: int
    request: FakeRequest
    user: str
    uid: int
    work_dir: str
    submitted: float
    partition: str
    time_limit: int
    priority: int
    state: str = "PENDING"
    reason: str = "None"
    eligible: float | None = None
    accrued: bool = False
    start: float | None = None
    end: float | None = None
    suspended: float | None = None
    expected: float | None = None
    held: str | None = None
    array: int | None = None
    task: int | None = None
    waiting: tuple[int, ...] = ()
    het: int | None = None
    offset: int = 0
    het_size: int = 0
    dependency: str | None = None
    failed_dependency: bool = False
    begin: float | None = None
    shares: tuple[Share, ...] = ()
    code: int = 0
    signal: int = 0
    derived: tuple[int, int] = (0, 0)
    restarts: int = 0
    cancelled_by: int | None = None
    failed_node: str | None = None
    preempted: float | None = None
    steps: list[FakeStep] = field(default_factory=list)
    ending: Ending | None = None
    endings: dict[int, Ending] = field(default_factory=dict)
    told_reason: str = "None"  # what the accounting was told of why it waits
    run: int = 0  # counts its starts, so that what was planned for an earlier one is left out

    @property
    def shown_id(self) -> str:
        """The id as squeue writes it."""
        if self.het is not None:
            return f"{self.het}+{self.offset}"
        if self.array is None:
            return str(self.number)
        return f"{self.array}_{self.task}" if self.task is not None else f"{self.array}_[{self.listed}]"

    @property
    def base(self) -> int:
        """The number of the job that it is a part of."""
        return self.het or self.array or self.number

    @property
    def listed(self) -> str:
        """The waiting tasks, with the limit of the array."""
        limit = f"%{self.request.throttle}" if self.request.throttle else ""
        return stepped(self.waiting) + limit

    @property
    def active(self) -> bool:
        """Whether it is not over."""
        return self.state in ACTIVE

    @property
    def nodes(self) -> str:
        """The nodes that it has or had."""
        return host_list(share.node for share in self.shares)

    @property
    def dependency_text(self) -> str:
        """As squeue and scontrol write it."""
        return self.dependency or "(null)"

    def path(self, pattern: str | None, default: str | None = None) -> str | None:
        """A log's path with its signs filled in; None where none was asked for and there is no default."""
        text = pattern or default
        if text is None:
            return None
        if text.lower() == "none":
            return "/dev/null"
        whole = posixpath.join(self.work_dir, text)
        task = self.task if self.task is not None else _NO_TASK
        signs = {
            "j": self.number, "A": self.array or self.number, "a": task, "x": self.request.name, "u": self.user,
            "N": self.shares[0].node if self.shares else "", "n": 0, "t": 0, "s": "batch", "J": self.number,
        }  # fmt: skip
        return re.sub(r"%(\d*)([A-Za-z%])", lambda sign: _filled(signs, sign[1], sign[2]), whole)

    @property
    def stdout(self) -> str:
        """Where its standard output goes."""
        default = "slurm-%A_%a.out" if self.array is not None else "slurm-%j.out"
        return self.path(self.request.output, default) or ""

    @property
    def stderr(self) -> str:
        """Where its standard error goes."""
        return self.path(self.request.error) or self.stdout

    def split(self, task: int, number: int) -> FakeJob:
        """A record of its own for a waiting task; the array's rest keeps the others."""
        self.waiting = tuple(one for one in self.waiting if one != task)
        made = replace(self, number=number, task=task, waiting=(), steps=[], ending=self.endings.get(task, self.ending))
        made.request = replace(self.request)
        return made

    def become(self, task: int) -> None:
        """The last waiting task takes the array's own record."""
        self.task, self.waiting = task, ()
        self.ending = self.endings.get(task, self.ending)


def _filled(signs: dict[str, object], width: str, sign: str) -> str:
    if sign == "%":
        return "%"
    if sign not in signs:
        return f"%{width}{sign}"
    return str(signs[sign]).zfill(int(width or 0)) if width else str(signs[sign])


def stepped(tasks: tuple[int, ...]) -> str:
    """Task numbers as Slurm lists them: 0-3 or 1,3,5."""
    return spans(tasks)


@dataclass(frozen=True, slots=True)
class Told:
    """A job as it was at a moment, and from when on the accounting shows it."""

    job: FakeJob
    visible: float


@dataclass(slots=True)
class Accounting:
    """`delay`: seconds that a word takes. `enabled`: whether the cluster keeps accounts at all."""

    delay: float = 0.0
    enabled: bool = True
    told: dict[int, list[Told]] = field(default_factory=dict)

    def note(self, job: FakeJob, now: float) -> None:
        """Tell it of a change."""
        if not self.enabled:
            return
        kept = copy(job)
        kept.steps = [replace(step) for step in job.steps]
        kept.request = copy(job.request)
        self.told.setdefault(job.number, []).append(Told(kept, now + self.delay))

    def late(self, number: int, seconds: float) -> None:
        """Let the last word about a job come so much later."""
        told = self.told[number]
        told[-1] = replace(told[-1], visible=told[-1].visible + seconds)

    def records(self, now: float) -> list[FakeJob]:
        """What it shows now, by number."""
        found = []
        for number in sorted(self.told):
            seen = [told.job for told in self.told[number] if told.visible <= now]
            if seen:
                found.append(seen[-1])
        return found
