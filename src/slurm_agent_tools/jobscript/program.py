"""What the readers of one text hand back: findings, and what should be read next."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["deny", "approve", "warn"]
Language = Literal["shell", "python", "other"]
How = Literal[
    "source", "shell", "python", "run", "module", "import", "make", "config", "notebook", "other", "multi-prog"
]

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


@dataclass(frozen=True, slots=True)
class Text:
    """A program inside the text; `line` is where its first line stands."""

    language: Language
    text: str
    line: int
    args: tuple[str, ...] = ()  # that it gets, as far as they are known
    zero: str | None = None  # what `$0` is, where it is not the batch script


@dataclass(frozen=True, slots=True)
class File:
    """A file that is run; `how` says by what."""

    how: How
    path: str
    line: int
    args: tuple[str, ...] = ()  # that it gets, as far as they are known


@dataclass(frozen=True, slots=True)
class Pass:
    """A command that stands in arguments: the words around them, and how many arguments are gone before."""

    words: tuple[str, ...]
    line: int
    function: str | None = None
    fewest: int = 0
    most: int = 0
    own: bool = False  # in the text itself, whose arguments fill it where they are known
    quiet: bool = False  # a function that nobody calls here: no word about it


@dataclass(slots=True)
class Program:
    """What was found in one text. `written` is what it writes to files, None where that is computed."""

    findings: dict[tuple[str, str, Level, int], None] = field(default_factory=dict)  # rule, what, level, line
    texts: list[Text] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    written: dict[str, Text | None] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)  # new name -> old name
    fetched: list[str] = field(default_factory=list)  # folders that come from elsewhere while it runs
    folders: list[str] = field(default_factory=list)  # that it changes to
    passes: list[Pass] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)  # what matters together with something else

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
