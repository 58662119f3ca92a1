"""What the readers of one text hand back: findings, and what should be read next."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["deny", "approve", "justify", "warn"]

Language = Literal["shell", "python", "other"]

How = Literal[
    "source", "shell", "python", "run", "module", "import", "make", "config", "notebook", "other", "multi-prog",
    "settings", "tasks",
]  # fmt: skip

_FAMILY = (
    r"(?:SINGULARITYENV_|APPTAINERENV_)?"
    r"(?:(?:CUDA|NVIDIA|HIP|ROCR)_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ZE_AFFINITY_MASK)"
)

DEVICES = re.compile(_FAMILY)
"""The variables that Slurm sets to say which devices belong to the job."""

SETS_DEVICES = re.compile(rf"(?<![A-Za-z0-9_])({_FAMILY})\s*=(?!=)")
_PLACE = r"(?:/job:\w+)?(?:/replica:\d+)?(?:/task:\d+)?/(?:device:)?"

NUMBERED = re.compile(
    rf"(?:(?<![A-Za-z])(?:cuda|hip|xpu):\d+|{_PLACE}GPU:\d+)(?![A-Za-z0-9])",
    re.IGNORECASE,
)
"""A device named by its number: cuda:1, /GPU:0."""

NUMBERED_CALL = re.compile(
    r"\b(?:CUDA|AMDGPU)\.device(?:_id)?!\(\s*\d|\bCuDevice\(\s*\d|\bgpuDevice\(\s*(?:[2-9]|1\d)|\bcuda_set_device\(\s*\d"
)
"""The same in Julia, MATLAB and R; MATLAB counts from 1, which is many a program's word for its only device."""


@dataclass(frozen=True, slots=True)
class InnerText:
    """A program inside the text; `line` is where its first line stands."""

    language: Language
    text: str
    line: int
    args: tuple[str, ...] = ()  # that it gets, as far as they are known
    zero: str | None = None  # what `$0` is, where it is not the batch script


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file that is run; `how` says by what."""

    how: How
    path: str
    line: int
    args: tuple[str, ...] = ()  # that it gets, as far as they are known
    elsewhere: str = ""  # what is told where the project has no such file


@dataclass(frozen=True, slots=True)
class PassedCommand:
    """A command that stands in arguments: the words around them, and how many arguments are gone before."""

    words: tuple[str, ...]
    line: int
    function: str | None = None
    fewest: int = 0
    most: int = 0
    own: bool = False  # in the text itself, whose arguments fill it where they are known
    quiet: bool = False  # a function that nobody calls here: no word about it


BEFORE_PYTHONS_OWN = "modules first in: "
"""A note of a folder in which Python looks before its own modules."""

LONG = 3600
"""Seconds from which on a sleep is no pause."""


@dataclass(frozen=True, slots=True)
class IdleCommand:
    """A command that only waits: `endless`, `long` (an hour or more) or a `loop` without an end.

    `workers`: the text started others in the background, for which `wait` would wait.
    """

    kind: Literal["endless", "long", "loop"]
    shown: str
    line: int
    workers: bool = False


@dataclass(slots=True)
class Program:
    """What was found in one text. `written` is what it writes to files, None where that is computed."""

    findings: dict[tuple[str, str, Level, int], None] = field(default_factory=dict)  # rule, what, level, line
    texts: list[InnerText] = field(default_factory=list)
    files: list[RunFile] = field(default_factory=list)
    written: dict[str, InnerText | None] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)  # new name -> old name
    fetched: list[str] = field(default_factory=list)  # folders that come from elsewhere while it runs
    folders: list[str] = field(default_factory=list)  # that it changes to
    passes: list[PassedCommand] = field(default_factory=list)
    idles: list[IdleCommand] = field(default_factory=list)
    variables: dict[str, list[str]] = field(default_factory=dict)  # that it sets, to what is known
    notes: set[str] = field(default_factory=set)  # what matters together with something else

    def without(self, others: Sequence[Program]) -> Program:
        """This, but for what other readings of the text found as well."""
        for other in others:
            self.findings = dict.fromkeys(found for found in self.findings if found not in other.findings)
            texts, files, idles = set(other.texts), set(other.files), set(other.idles)
            self.texts = [one for one in self.texts if one not in texts]
            self.files = [one for one in self.files if one not in files]
            self.idles = [one for one in self.idles if one not in idles]
        return self

    def find(self, rule: str, what: str, line: int, level: Level = "deny") -> None:
        """Note a finding, once per rule, text and line."""
        self.findings[rule, what, level, line] = None

    def opaque(self, what: str, line: int, level: Level = "approve") -> None:
        """Note text that runs but cannot be read."""
        self.find("opaque-code", what, line, level)

    def sets(self, name: str, line: int) -> None:
        """Note that a variable is set; only those that choose devices matter."""
        name = name.replace("\\", "")
        if DEVICES.fullmatch(name):
            self.find("cuda-visible-devices", f"it sets {name}", line)
        elif "\0" in name and name.endswith("VISIBLE_DEVICES"):
            self.find("cuda-visible-devices", "it sets a variable whose name ends in VISIBLE_DEVICES", line)


# --- How much work one reading may take, counted in steps, so that the answer is the same on every machine ------------


MAX_STEPS = 400_000  # about one microsecond each
MAX_SIGNS = 160_000  # of all texts together

_LINE_SIGNS, _LINE_STEPS = 55, 85  # of one ordinary line: a long script of such lines gets what it needs

_MOST_LINES = 12_000
_TEXT_COSTS = {"shell": 1_000, "python": 100}  # to start on one text at all

_SHELL_SIGN = 4  # the shell's parser takes about four times what Python's takes
_SIGNS = b"$|&;()<>{}[]`'\"=,:+-*/%^~@!"
_DOTS = 50  # in one line of Python, from which on they count: each is a node of its tree

_OTHERS = bytes(sorted(set(range(256)) - set(_SIGNS)))
_LONG = {"shell": 1_000, "python": 100}  # signs in one line from which on each further sign costs more

_END = re.compile(rb"(?<![|&\\(+])\n(?![+])")
_BLANKS = re.compile(rb"\n\s++")
_JOINED = 20_000_000  # letters that joining constant texts may copy


class TooLarge(Exception):
    """More work than is done for one script."""


@dataclass(slots=True)
class Effort:
    """What is left for one script."""

    steps: int = MAX_STEPS
    signs: int = MAX_SIGNS
    kept: dict[object, Any] = field(default_factory=dict)  # what was found in the tree that is being read

    @classmethod
    def sized(cls, text: bytes) -> Effort:
        """The effort that a script of so many lines is worth: in proportion, up to the longest that people write."""
        lines = text.count(b"\n")
        ordinary = lines if lines <= _MOST_LINES else 0
        return cls(max(MAX_STEPS, ordinary * _LINE_STEPS), max(MAX_SIGNS, ordinary * _LINE_SIGNS))


_CURRENT: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def within(effort: Effort) -> Iterator[None]:
    """Count what is done in this block."""
    token = _CURRENT.set(effort)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        effort.kept.clear()


def kept() -> dict[object, Any]:
    """What was found in the tree that is being read; empty outside of a reading."""
    effort = _CURRENT.get()
    return {} if effort is None else effort.kept


def spend(steps: int) -> None:
    """Count some work. Raises TooLarge when nothing is left."""
    effort = _CURRENT.get()
    if effort is not None:
        effort.steps -= steps
        if effort.steps < 0:
            raise TooLarge


def cost(text: bytes, language: str) -> int:
    """What a text costs its parser, from its words and signs; a line without an end costs by its square."""
    signs, long = _count(text), _LONG[language]
    if signs > long:
        lines = (_count(line) for line in _END.split(_BLANKS.sub(b"\n", text)) if len(line) > long)
        signs += sum(line * line // long for line in lines if line > long)
    if language == "python":
        rows = text.split(b"\n")
        signs += sum(dots for row in rows if (dots := row.count(b".")) > _DOTS)
        signs += MAX_SIGNS if text.count(b"+") * max(map(len, rows)) > _JOINED else 0
    return _TEXT_COSTS[language] + signs * (_SHELL_SIGN if language == "shell" else 1)


def _count(text: bytes) -> int:
    return len(text.split()) + len(text.translate(None, _OTHERS))


_INCLUDES = re.compile(
    r"^[^#%\n]*?\b(?:include|source|sys\.source|run)\(\s*(?:joinpath\(@__DIR__,\s*)?[\"']([\w./-]+\.(?:jl|[rR]|m))[\"']",
    re.MULTILINE,
)


def included(text: str, file: str) -> list[str]:
    """The files that a text in Julia, R or MATLAB reads in as a part of itself, beside `file` and where it runs."""
    named = list(dict.fromkeys(_INCLUDES.findall(text)))[:20]
    return list(dict.fromkeys(path for one in named for path in (posixpath.join(posixpath.dirname(file), one), one)))
