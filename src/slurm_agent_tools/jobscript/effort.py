"""How much work one reading may take, counted in steps, so that the answer is the same on every machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

MAX_STEPS = 400_000  # about one microsecond each
MAX_SIGNS = 160_000  # of all texts together
_LINE_SIGNS, _LINE_STEPS = 55, 85  # of one ordinary line: a long script of such lines gets what it needs
_MOST_LINES = 12_000
_TEXT_COSTS = {"shell": 1_000, "python": 100}  # to start on one text at all
_SHELL_SIGN = 4  # the shell's parser takes about four times what Python's takes
_SIGNS = b"$|&;()<>{}[]`'\"=,:+-*/%"
_OTHERS = bytes(sorted(set(range(256)) - set(_SIGNS)))
_LONG = {"shell": 1_000, "python": 100}  # signs in one line from which on each further sign costs more
_END = re.compile(rb"(?<![|&\\(+])\n(?!\s*[+])")
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
        lines = (_count(line) for line in _END.split(text) if len(line) > long)
        signs += sum(line * line // long for line in lines if line > long)
    if language == "python" and text.count(b"+") * max(map(len, text.split(b"\n"))) > _JOINED:
        signs += MAX_SIGNS
    return _TEXT_COSTS[language] + signs * (_SHELL_SIGN if language == "shell" else 1)


def _count(text: bytes) -> int:
    return len(text.split()) + len(text.translate(None, _OTHERS))
