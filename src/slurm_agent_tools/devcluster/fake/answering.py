"""What every fake command gets and gives, and the ids that commands take."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.devcluster.fake.controller import Controller
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob
from slurm_agent_tools.units import indices


class UnknownCommand(NotImplementedError):
    """The fake Slurm does not know this command line: it says so instead of giving an empty answer."""

    def __init__(self, argv: Sequence[str], what: str = "") -> None:
        super().__init__(f"FakeSlurm does not know {what or 'this command'}: {list(argv)}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command prints and how it ends."""

    out: str = ""
    err: str = ""
    code: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """Who runs a command where. `extra`: what a test set up beside the jobs, by name."""

    slurm: Controller
    user: str
    uid: int
    cwd: str
    stdin: bytes = b""
    scripts: Mapping[str, bytes] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    admin: bool = False

    def may_change(self, job: FakeJob) -> bool:
        """Whether it is theirs, or they are an operator."""
        return self.admin or job.user == self.user


Command = Callable[[Session, Sequence[str]], Answer]

DENIED = "Access/permission denied"

_FULL = {(22, 5): "22.05.8", (24, 11): "24.11.5", (26, 5): "26.05.4"}

_ID = re.compile(r"(\d+)(?:_(\d+)|_\[([^\]]+)\]|\+(\d+))?")


@dataclass(frozen=True, slots=True)
class NamedJobs:
    """The records that an id on a command line means. `tasks`: those of an array's rest that have no record."""

    text: str
    jobs: tuple[FakeJob, ...] = ()
    rest: FakeJob | None = None
    tasks: tuple[int, ...] = ()

    @property
    def found(self) -> bool:
        """Whether it means anything."""
        return bool(self.jobs or self.tasks)


def named_jobs(slurm: Controller, text: str) -> NamedJobs:
    """123, 123_4, 123_[4-6] or 123+1."""
    match = _ID.fullmatch(text)
    if match is None:
        return NamedJobs(text)
    parts = slurm.parts(int(match[1]))
    if match[4] is not None:
        return NamedJobs(text, tuple(one for one in parts if one.offset == int(match[4])))
    if match[2] is None and match[3] is None:
        return NamedJobs(text, tuple(parts))
    wanted = set(indices(match[3].partition("%")[0])) if match[3] else {int(match[2])}
    own = tuple(one for one in parts if one.task in wanted)
    rest = next((one for one in parts if one.waiting), None)
    tasks = tuple(sorted(wanted & set(rest.waiting))) if rest is not None else ()
    return NamedJobs(text, own, rest, tasks)


def seconds(moment: float | None, absent: str) -> str:
    """A time as Slurm prints it where SLURM_TIME_FORMAT is %s."""
    return absent if moment is None else str(int(moment))


def short_span(length: float) -> str:
    """Seconds as squeue prints them: 0:05, 1:00:00, 2-00:00:00."""
    whole = int(length)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{left:02d}"
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def elapsed(job: FakeJob, now: float) -> float:
    """Seconds that it has run."""
    if job.start is None or (job.state == "PENDING"):
        return 0.0
    return max(0.0, (job.suspended or job.end or now) - job.start)


def megabytes(size: int) -> str:
    """Memory as Slurm prints it: 8G, 1000M, 187.50G; a larger unit where half of it divides the number."""
    value, unit = float(size), "M"
    for larger in "GT":
        if value <= 1024 or value % 512:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f}{unit}" if value == int(value) else f"{value:.2f}{unit}"


def full_version(slurm: Controller) -> str:
    """22.05 as 22.05.8."""
    return _FULL.get(slurm.version, "{}.{:02d}.1".format(*slurm.version))


# --- What goes wrong on command: lost replies, silence, slowness, garbage, refusals -----------------------------------


_CONTROLLER = frozenset({"squeue", "scontrol", "sbatch", "scancel", "sinfo", "sdiag", "sstat"})

_TIMED_OUT = "Socket timed out on send/recv operation"

_DOWN = "Unable to contact slurm controller (connect failure)"

_HEADS = {
    "squeue": "slurm_load_jobs error: ", "scancel": "scancel: error: ", "sinfo": "slurm_load_partitions: ",
    "sbatch": "sbatch: error: Batch job submission failed: ", "sdiag": "slurm_get_statistics: ",
    "scontrol": "slurm_load_ctl_conf error: ", "sstat": "sstat: error: ",
}  # fmt: skip

ACCOUNTING_DOWN = Answer(
    err=(
        "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to"
        " host:localhost:6819: Connection refused\n"
        "sacct: error: Sending PersistInit msg: Connection refused\n"
        "sacct: error: Problem talking to the database: Connection refused\n"
    ),
    code=1,
)


@dataclass(slots=True)
class Fault:
    """One thing that goes wrong. `carried_out`: the command does what it should before; `answer` None: it hangs."""

    command: str
    times: int | None = 1
    carried_out: bool = False
    answer: Answer | None = None
    before: Callable[[], None] | None = None
    error: Exception | None = None

    def meant(self, argv: Sequence[str]) -> bool:
        """Whether it is about this command: `sbatch`, or `scontrol release`."""
        words = self.command.split()
        return list(argv[: len(words)]) == words


@dataclass(slots=True)
class Faults:
    """What waits to go wrong, and what goes wrong until it is told to stop."""

    waiting: list[Fault] = field(default_factory=list)
    controller_down: bool = False
    accounting_down: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    per_second: int | None = None

    def add(self, fault: Fault) -> None:
        """Let it come."""
        self.waiting.append(fault)

    def take(self, argv: Sequence[str]) -> Fault | None:
        """The next fault that is about this command."""
        for fault in self.waiting:
            if fault.meant(argv):
                if fault.times is not None:
                    fault.times -= 1
                    if not fault.times:
                        self.waiting.remove(fault)
                return fault
        return None

    def standing(self, argv: Sequence[str]) -> Answer | None:
        """The answer while the controller or the accounting is away."""
        if argv[0] == "sacct" and self.accounting_down:  # --helpformat as well (22.05, measured)
            return ACCOUNTING_DOWN
        if argv[0] in _CONTROLLER and self.controller_down and "--version" not in argv:
            return silent(argv[0], _DOWN)
        return None


def silent(command: str, words: str = _TIMED_OUT) -> Answer:
    """What a command prints that got no answer."""
    return Answer(err=f"{_HEADS.get(command, f'{command}: error: ')}{words}\n", code=1)
