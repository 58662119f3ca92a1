"""What a reading keeps while it goes on: the texts that wait, the files that were asked for, the findings."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.jobscript.effort import Effort
from slurm_agent_tools.jobscript.letters import shown
from slurm_agent_tools.jobscript.program import File, Level, Text
from slurm_agent_tools.jobscript.words import Node
from slurm_agent_tools.model import Evidence, Finding

MAX_ALIKE = 100  # findings of one rule and level
MAX_IMPORTED_SIGNS = 80_000


@dataclass(frozen=True, slots=True)
class NeedShell:
    """Parse this shell text; the answer is its tree, or why there is none. `line` is where it begins in `file`."""

    text: bytes
    dialect: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class NeedFile:
    """Read this file of the project. The answer is its bytes, None when it is none, or why it cannot be read."""

    path: str


Need = NeedShell | NeedFile
Answer = Node | str | bytes | None


@dataclass(frozen=True, slots=True)
class Source:
    """A text to be read: part of `file`, whose lines are `lines`, from line `line` on."""

    language: str
    content: str
    file: str
    line: int
    lines: Sequence[str]
    depth: int
    args: tuple[str, ...] | None = None  # that the program gets, where they are known
    zero: str | None = None  # its `$0`, where that is not the script

    def evidence(self, line: int) -> Evidence:
        """The line of the file, as it stands there."""
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        return Evidence(self.file, line, shown(text[:300]))


@dataclass(slots=True)
class State:
    """All that is known so far of one script."""

    script: str
    args: Sequence[str] | None
    folders: list[str]
    home: str = ""  # the folder of the script
    findings: list[Finding] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    written: dict[str, tuple[Text | None, Source]] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    seen: set[tuple[str, str, tuple[str, ...] | None, str | None]] = field(default_factory=set)
    todo: deque[Source] = field(default_factory=deque)
    wanted: deque[tuple[File, Source]] = field(default_factory=deque)
    effort: Effort = field(default_factory=Effort)
    texts: int = 0
    size: int = 0
    counts: Counter[tuple[str, Level]] = field(default_factory=Counter)
    scanned: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)  # of the files that were asked for
    opened: set[tuple[str, str, tuple[str, ...]]] = field(default_factory=set)  # path, by what it is run, with what
    modules: Counter[str] = field(default_factory=Counter)  # of the project, that Python imports: read and asked for
    imported: Effort = field(default_factory=lambda: Effort(signs=MAX_IMPORTED_SIGNS))

    def find(self, rule: str, what: str, place: Evidence, level: Level = "deny") -> None:
        """Note a finding; of many alike, which decide nothing new, the first ones."""
        self.counts[rule, level] += 1
        if self.counts[rule, level] == MAX_ALIKE:
            what = f"{what}, and there are more lines like it"
        if self.counts[rule, level] <= MAX_ALIKE:
            self.findings.append(Finding(rule, shown(what), place, level))
