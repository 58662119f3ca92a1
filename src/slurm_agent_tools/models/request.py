"""What a script asks for and does. Bytes and seconds; None means not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from slurm_agent_tools.units import ArraySpec

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
    time_min: int | None = None  # --time-min, as time_limit
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
class Pin:
    """An option that the guard puts on the command line, and why."""

    option: str
    why: str


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
