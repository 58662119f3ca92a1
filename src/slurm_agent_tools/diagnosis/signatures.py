"""The signatures of failures, read once from the package's own data (signatures.yaml tells the fields)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import yaml

from slurm_agent_tools.diagnosis import excerpt

Tier = Literal["cause", "generic", "effect"]
Escalation = Literal["critical", "high", "medium", "none"]

# Lines that say themselves that they are no failure: Python's and bash's warnings, log levels, glog's W and I.
_HARMLESS = re.compile(r"\b(?:\w*Warning|WARN(?:ING)?|warning|Warn|INFO|DEBUG|NOTICE|info)\b(?!\S*/)|^\[?[WI]\d{4}\b|\[[WI] ")


@dataclass(frozen=True, slots=True)
class Signature:
    """One kind of failure; the facts are texts like `state=TIMEOUT`, with * for any text."""

    id: str
    words: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    certain: tuple[re.Pattern[str], ...]
    decides: tuple[str, ...]
    suggests: tuple[str, ...]
    supports: tuple[str, ...]
    contradicts: tuple[str, ...]
    tier: Tier
    recoverable: bool
    any_level: bool
    change: Literal["memory", "time"] | None
    explanation: str
    suggestions: tuple[str, ...]
    escalation: Escalation
    samples: tuple[str, ...]
    near_misses: tuple[str, ...]

    def match(self, line: str) -> re.Match[str] | None:
        """The match of one cleaned line without its rank's prefix; a harmless line never matches."""
        lowered = line.lower()
        if not any(word in lowered for word in self.words):
            return None
        if not self.any_level and harmless(line):
            return None
        return next(self._hits(line), None)

    def sure(self, line: str) -> bool:
        """True for Slurm's own words, which decide like its records."""
        return any(pattern.search(line) for pattern in self.certain)

    def _hits(self, line: str) -> Iterator[re.Match[str]]:
        for pattern in (*self.certain, *self.patterns):
            match = pattern.search(line)
            if match is not None:
                yield match


def harmless(line: str) -> bool:
    """True for a line that is marked as a warning or as information, and does not carry an exception."""
    return _HARMLESS.search(line) is not None and not line.startswith("Traceback")


def rest(line: str) -> tuple[str, str]:
    """(prefix of the rank, what it wrote)."""
    return excerpt.split_rank(line)


@cache
def signatures() -> tuple[Signature, ...]:
    """All of them, the surest first. The file is part of the package: a fault in it is a fault of the program."""
    text = resources.files(__package__).joinpath("signatures.yaml").read_text(encoding="utf-8")
    return tuple(_signature(entry) for entry in yaml.safe_load(text))


@cache
def by_id() -> dict[str, Signature]:
    """The signatures by their category."""
    return {signature.id: signature for signature in signatures()}


_LISTS = ("decides", "suggests", "supports", "contradicts", "suggestions", "samples", "near_misses", "words")


def _signature(entry: dict[str, object]) -> Signature:
    fields: dict[str, object] = {
        "tier": "cause", "recoverable": False, "any_level": False, "change": None, "certain": [], "patterns": [],
        **dict.fromkeys(_LISTS, []),
    } | entry  # fmt: skip
    lists = {name: tuple(_texts(fields[name])) for name in _LISTS}
    compiled = {name: tuple(re.compile(text) for text in _texts(fields[name])) for name in ("certain", "patterns")}
    return Signature(**fields | lists | compiled)  # type: ignore[arg-type] - a test reads every entry


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"a list of texts is needed, not {value!r}")
    return value
