"""What a script asks for and does, and the numbers of both. Bytes and seconds; None means not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from slurm_agent_tools.units import UNLIMITED, ArraySpec, format_duration, human_memory

Source = Literal["script", "argument", "pinned"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line that proves something: `file` relative to the project where possible, `line` from 1 (0: whole)."""

    file: str
    line: int
    text: str


# --- what a script asks for ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Directive:
    """One option as sbatch reads it: `option` is the canonical long name without dashes, `value` its argument."""

    option: str
    value: str | None
    source: Source
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The effective request: script directives, then command line, last one wins per option.

    Memory in bytes (0 means `--mem=0`, the whole node), `time_limit` in seconds (-1 unlimited), None not stated.
    """

    directives: tuple[Directive, ...] = ()
    problems: tuple[Evidence, ...] = ()  # directives that cannot be read; `text` holds the reason and the line
    components: int = 1  # het job components
    interpreter: str | None = None
    name: str | None = None
    partition: str | None = None
    time_limit: int | None = None
    memory_per_node: int | None = None
    memory_per_cpu: int | None = None
    memory_per_gpu: int | None = None
    gpus: int | None = None  # --gpus
    gpus_per_node: int | None = None  # --gpus-per-node, or gpu in --gres
    gpus_per_task: int | None = None  # --gpus-per-task, or gres/gpu in --tres-per-task
    gpus_per_socket: int | None = None
    nodes: int | None = None  # minimum of --nodes
    nodes_max: int | None = None
    ntasks: int | None = None
    ntasks_per_node: int | None = None
    ntasks_per_gpu: int | None = None
    cpus_per_task: int | None = None
    cpus_per_gpu: int | None = None
    array: ArraySpec | None = None
    requeue: bool | None = None
    dependency: str | None = None
    qos: str | None = None
    chdir: str | None = None
    output: str | None = None
    error: str | None = None
    export: str | None = None
    justification: str | None = None  # text of `# JUSTIFIED: ...` behind a resource directive

    def find(self, *options: str) -> tuple[Directive, ...]:
        """Every directive for one of these canonical option names, in order of reading."""
        return tuple(d for d in self.directives if d.option in options)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a script does. `rule` is the policy rule it bears on; `fixed` where Slurm does it already."""

    rule: str
    what: str
    evidence: Evidence
    level: Literal["deny", "approve", "justify", "warn"] = "deny"


@dataclass(frozen=True, slots=True)
class ScriptReading:
    """What a job script asks and does.

    `files`: the project files that it runs, path -> sha256; `settings`: those that its programs are given.
    `layout`: where its commands stand, for a shell script in which something was found. `leads`: for chdir, output,
    error and input, where a link in the project or into it leads, relative to the project or absolute.
    """

    path: str
    sha256: str
    text: str
    request: JobRequest
    findings: tuple[Finding, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    layout: ScriptLayout | None = None
    leads: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resources:
    """A request in numbers, or what Slurm granted. Totals over all nodes; worst geometry for per-GPU memory."""

    partition: str | None = None
    nodes: int | None = None
    cpus: int | None = None
    gpus: int | None = None
    memory_bytes: int | None = None
    memory_per_gpu_bytes: int | None = None
    memory_per_node_bytes: int | None = None
    time_limit_seconds: int | None = None
    array_tasks: int | None = None
    array_concurrency: int | None = None
    array: str | None = None  # which tasks, as sbatch takes it

    @property
    def in_words(self) -> str:
        """A few words: ` to cpu: 1 CPU, 200M, 00:05:00`. What is not stated is left out."""
        counts = (
            (self.array_tasks, "array task"),
            (self.nodes if (self.nodes or 1) > 1 else None, "node"),
            (self.gpus, "GPU"),
            (self.cpus, "CPU"),
        )
        said = [f"{number} {what}{'' if number == 1 else 's'}" for number, what in counts if number]
        said += [human_memory(self.memory_bytes)] if self.memory_bytes else []
        said += [format_duration(self.time_limit_seconds)] if self.time_limit_seconds is not None else []
        destination = f" to {self.partition}" if self.partition else ""
        return f"{destination}{': ' if said else ''}{', '.join(said)}"


@dataclass(frozen=True, slots=True)
class Pin:
    """An option that the guard puts on the command line, and why."""

    option: str
    why: str


# --- In what a job is more than was allowed: its numbers as Slurm tells them, beside those that were checked ----------

DriftKind = Literal["memory", "gpus", "cpus", "nodes", "time", "array", "partition", "requeue", "file"]

_ROUNDING = 1.01
"""Slurm splits memory over CPUs in whole megabytes, so that 16G can become 16385M."""

_THREADS = 2
"""A started job holds whole cores: its CPUs are rounded up to the threads of a core."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One thing in which a job is more than, or other than, what was allowed."""

    kind: DriftKind
    what: str


@dataclass(frozen=True, slots=True)
class _Number:
    kind: DriftKind
    name: str
    value: Callable[[Resources], float | None]
    show: Callable[[int], str]
    slack: float = 1.0
    per_node: bool = False  # grows with the nodes that a started job was spread over


def _per_node(numbers: Resources) -> float | None:
    if numbers.gpus or numbers.memory_bytes is None or not numbers.nodes:
        return None  # with GPUs, memory counts by GPU
    return numbers.memory_bytes / numbers.nodes


def _time(seconds: float) -> str:
    return format_duration(UNLIMITED if seconds == float("inf") else int(seconds))


_MEMORY = (
    _Number("memory", "memory", lambda one: one.memory_bytes, human_memory, _ROUNDING, per_node=True),
    _Number("memory", "memory per GPU", lambda one: one.memory_per_gpu_bytes, human_memory, _ROUNDING),
)

_ALWAYS = (
    *_MEMORY,
    _Number("gpus", "number of GPUs", lambda one: one.gpus, str),
    _Number(
        "time",
        "time limit",
        lambda one: float("inf") if one.time_limit_seconds == UNLIMITED else one.time_limit_seconds,
        _time,
    ),
)

# Over how many nodes a started job is spread can be Slurm's choice (--nodes=1-2): there is no limit to compare with.
_STARTED = (*_ALWAYS, _Number("cpus", "number of CPUs", lambda one: one.cpus, str, _THREADS, per_node=True))

_PENDING = (
    *_ALWAYS,
    _Number("memory", "memory per node", _per_node, human_memory, _ROUNDING),
    _Number("cpus", "number of CPUs", lambda one: one.cpus, str),
    _Number("nodes", "number of nodes", lambda one: one.nodes, str),
    _Number("array", "number of array tasks at once", lambda one: one.array_concurrency, str),
)


def grown_since(allowed: Sequence[Resources], now: Resources, *, started: bool) -> list[Growth]:
    """Every number that is now larger than in all of `allowed`, and a partition that is none of theirs."""
    growths = []
    for number in _STARTED if started else _PENDING:
        value, known = number.value(now), [limit for one in allowed if (limit := number.value(one)) is not None]
        spread = _spread(allowed, now) if started and number.per_node else 1.0
        if value is not None and known and value > max(known) * number.slack * spread:
            what = f"the {number.name} is {number.show(value)}, allowed was {number.show(max(known))}"  # type: ignore[arg-type]
            growths.append(Growth(number.kind, what))
    named = {name for one in allowed for name in (one.partition or "").split(",") if name}
    others = set((now.partition or "").split(",")) - named - {""}
    if named and others:
        what = f"the partition is {now.partition}, allowed was {','.join(sorted(named))}"
        growths.append(Growth("partition", what))
    return growths


def _spread(allowed: Sequence[Resources], now: Resources) -> float:
    """How many times as many nodes as were counted."""
    counted = max((one.nodes or 0 for one in allowed), default=0)
    return max(1.0, (now.nodes or 0) / counted) if counted else 1.0


# --- Where the commands of a shell script stand in its text, so that a correction can take out just one of them -------


CommandKind = Literal[
    "call", "declaration", "arithmetic", "test", "pipe", "and", "or", "if", "while", "until", "for", "case",
    "group", "subshell", "function", "timed", "other",
]  # fmt: skip

CommandRole = Literal["body", "condition", "left", "right", "inside"]


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word or an assignment: characters `start` to `end` of the text; `text` without quotes where it is constant."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command: characters `start` to `end` of the text with its redirections, `stop` with the `;` or `&` behind.

    `index` is its place in the layout, `parent` that of the command around it (-1: none); commands of one `parent`
    and `branch` are one list. `heredocs` are the characters that its here-documents take, their last lines included.
    """

    index: int
    parent: int
    role: CommandRole
    branch: int
    kind: CommandKind
    start: int
    end: int
    stop: int
    line: int
    name: str = ""  # of a function, or of the variable of a loop
    words: tuple[ShellWord, ...] = ()
    assigns: tuple[ShellWord, ...] = ()
    redirected: bool = False
    negated: bool = False
    background: bool = False
    heredocs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptLayout:
    """The commands of a text in their order, each before those inside it."""

    commands: tuple[ShellCommand, ...] = ()

    def parent(self, command: ShellCommand) -> ShellCommand | None:
        """The command around this one."""
        return self.commands[command.parent] if command.parent >= 0 else None

    def around(self, command: ShellCommand) -> Iterator[ShellCommand]:
        """The commands around this one, from the nearest on."""
        outer = self.parent(command)
        while outer is not None:
            yield outer
            outer = self.parent(outer)

    def within(self, command: ShellCommand) -> Iterator[ShellCommand]:
        """The commands inside this one, at any depth: they follow it."""
        for inner in self.commands[command.index + 1 :]:
            if inner.start >= command.stop or inner.index == command.index:
                return
            yield inner

    def children(self, command: ShellCommand) -> list[ShellCommand]:
        """The commands directly inside this one."""
        return [inner for inner in self.within(command) if inner.parent == command.index]

    def at(self, line: int) -> list[ShellCommand]:
        """The commands that begin in this line."""
        return [command for command in self.commands if command.line == line]
