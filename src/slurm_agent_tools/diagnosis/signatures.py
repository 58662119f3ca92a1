"""The signatures of failures, read once from the package's own data (signatures.yaml tells the fields)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

# Lines that say themselves that they are no failure: Python's and compilers' warnings, log levels, glog's W and I.
_HARMLESS = re.compile(
    r"(?<![=\w])(?:\w*Warning|WARN(?:ING)?|INFO|DEBUG|NOTICE)\b|\b(?:warning|info):|^\[?[WI]\d{4}\b|\[[WI] "
)
_EXCEPTION = re.compile(r"[\w.]*(?:Error|Exception)\b")
_MARKED = 200  # characters at a line's start in which its level stands


class Signature(BaseModel):
    """One kind of failure; the facts are texts like `state=TIMEOUT`, with * for any text."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    id: str
    words: tuple[str, ...] = Field(min_length=1)
    patterns: tuple[re.Pattern[str], ...] = ()
    certain: tuple[re.Pattern[str], ...] = ()
    decides: tuple[str, ...] = ()
    suggests: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    tier: Literal["cause", "generic", "effect"] = "cause"
    recoverable: bool = False
    any_level: bool = False
    change: Literal["memory", "time"] | None = None
    explanation: str
    suggestions: tuple[str, ...] = Field(min_length=1)
    escalation: Literal["critical", "high", "medium", "none"]
    samples: tuple[str, ...] = Field(min_length=2)
    near_misses: tuple[str, ...] = Field(min_length=1)

    def concerns(self, lowered: str) -> bool:
        """True when a text in small letters holds one of the words without which no pattern matches."""
        return any(word in lowered for word in self.words)

    def match(self, line: str) -> re.Match[str] | None:
        """The match of one cleaned line without its rank's prefix; a harmless line never matches."""
        if not self.concerns(line.lower()):
            return None
        if not self.any_level and harmless(line):
            return None
        found = (pattern.search(line) for pattern in (*self.certain, *self.patterns))
        return next((match for match in found if match is not None), None)

    def sure(self, line: str) -> bool:
        """True for Slurm's own words, which decide like its records."""
        return any(pattern.search(line) for pattern in self.certain)


def harmless(line: str) -> bool:
    """True for a line that is marked as a warning or as information and does not start with an exception."""
    return _HARMLESS.search(line[:_MARKED]) is not None and _EXCEPTION.match(line) is None


@cache
def signatures() -> tuple[Signature, ...]:
    """All of them, the surest first. The file is part of the package: a fault in it is a fault of the program."""
    text = resources.files(__package__).joinpath("signatures.yaml").read_text(encoding="utf-8")
    return tuple(Signature.model_validate(entry) for entry in yaml.safe_load(text))


@cache
def by_id() -> dict[str, Signature]:
    """The signatures by their category."""
    return {signature.id: signature for signature in signatures()}


def matching(lines: Sequence[str]) -> Iterator[tuple[int, Signature, re.Match[str]]]:
    """(index, signature, match) of every line that a signature matches, in order of the lines."""
    whole = "\n".join(lines).lower()
    live = [signature for signature in signatures() if signature.concerns(whole)]
    for index, line in enumerate(lines if live else ()):
        lowered = line.lower()
        for signature in live:
            match = signature.match(line) if signature.concerns(lowered) else None
            if match is not None:
                yield index, signature, match
