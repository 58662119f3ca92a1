r"""Texts that were cut in the middle of a character, and bytes that are no UTF-8: told to the caller, not passed on.

JSON can spell half of a character (`\ud83d` alone), and some clients send it. Readers of JSON refuse the whole message,
which then has no id that could be answered. So such a half is replaced before by a sign that is no character either,
and an argument that holds either is an error that names it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import BinaryIO

HINT = "Write whole characters as UTF-8; a text that is cut has to be cut between two of them."

PROBLEM = "holds half of a character, or bytes that are no UTF-8"

_STAND_IN = rb"\ufdd0"  # what Unicode keeps for no character, as long as what it stands for

# Every escape is looked at, so that `\\ud83d` is seen as the two that it is.
_ESCAPE = re.compile(
    rb"\\(?:(?P<whole>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)

_HALF = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

MOST = 100_000  # values at or below one that are looked at


def without_halves(json: bytes) -> bytes:
    """JSON of the same length in which each escape of half a character stands for no character."""
    if rb"\u" not in json:
        return json
    return _ESCAPE.sub(lambda match: _STAND_IN if match["half"] else match[0], json)


def is_half(text: str) -> bool:
    """Whether a text holds what is no character."""
    return not text.isascii() and _HALF.search(text) is not None


def half_place(name: str, value: object) -> tuple[str, str] | None:
    """The first place (`config.model[2]`) at or below a value that holds what is no character, and its text.

    Raises ValueError for a value that holds more than MOST.
    """
    waiting: list[tuple[str, object]] = [(name, value)]
    for _ in range(MOST):
        if not waiting:
            return None
        place, item = waiting.pop()
        if isinstance(item, str) and is_half(item):
            return place, item
        if isinstance(item, Mapping):
            waiting += [(f"{place}.{key}", inner) for key, inner in item.items()]
            waiting += [(place, key) for key in item]
        elif isinstance(item, list):
            waiting += [(f"{place}[{index}]", inner) for index, inner in enumerate(item)]
    raise ValueError(f"holds more than {MOST} values")


class WholeLines(io.RawIOBase):
    """Lines of JSON from a stream, without halves of characters; a line is there as soon as it has come.

    `mend`: what is made of a line before it is read on.
    """

    def __init__(self, lines: BinaryIO, mend: Callable[[bytes], bytes] = bytes) -> None:
        super().__init__()
        self._lines, self._line, self._mend = lines, io.BytesIO(), mend

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer comes here as this
        """Fill the buffer with what is left of a line, or with the next one; 0 at the end."""
        read = self._line.readinto(buffer)
        if not read:
            self._line = io.BytesIO(self._mend(without_halves(self._lines.readline())))
            read = self._line.readinto(buffer)
        return read
