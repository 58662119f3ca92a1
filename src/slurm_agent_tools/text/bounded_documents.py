r"""Texts that somebody else may have written, before a parser sees them: TOML and JSON within limits, whole characters.

Both parsers are quick for text of ordinary shape, and without end for some others: a key of 100,000 parts took 23 GB in
tomllib. A look at the brackets, dots and commas outside of quotes, at 10 MB a second, tells whether it is such a text.
YAML is read by yaml_documents.py, within the same limits.

JSON can spell half of a character (`\ud83d` alone), and some clients send it. Readers of JSON refuse the whole message,
which then has no id that could be answered. So such a half is replaced before by a sign that is no character either,
and an argument that holds either is an error that names it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, NoReturn

DEPTH = 50
"""Levels of tables and lists inside of each other."""

VALUES = 50_000

PARTS = 32
"""Parts of one key with dots in it (TOML)."""

WORD = 1000
"""Characters of a number, or of anything else that stands outside of quotes."""

_DEEP, _FLATTEN = f"is nested deeper than {DEPTH} levels", "Flatten it."

_MANY, _SPLIT = f"holds more than {VALUES} values", "Write what is large into a file of its own."

# A text: it is compiled by the first file of this kind.
_TOML = r'''
    \#[^\n]*+
    | """(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5})?
    | \'{3}(?:[^']++|'(?!''))*+(?:'{3,5})?
    | "(?:[^"\\\n]++|\\[^\n])*+"?
    | '[^'\n]*+'?
    | (?P<opened>[\[{]) | (?P<closed>[\]}]) | (?P<next>[=,]|\n\s*+) | (?P<dot>\.) | [^\S\n]++
    | (?P<word>[^\s"'\[\]{}=,.\#]++)
    '''

_JSON = re.compile(
    r'"(?:[^"\\]++|\\.)*+"?|(?P<opened>[\[{])|(?P<closed>[\]}])|(?P<next>[,:])|(?P<word>[^\s"\[\]{},:]++)', re.DOTALL
)


class DocumentError(ValueError):
    """A text that cannot be read, or will not be: what is wrong, said of the file, and what to do about it."""

    def __init__(self, problem: str, line: int | None = None, *, mend: str = "Correct it.") -> None:
        super().__init__(problem if line is None else f"{problem} (line {line})")
        self.mend = mend


def decoded(data: bytes) -> str:
    """The text of UTF-8 with or without a mark in front. Raises DocumentError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError("is not UTF-8", data.count(b"\n", 0, error.start) + 1) from error


def toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises DocumentError."""
    import tomllib  # noqa: PLC0415 - most projects have no such file

    _toml_shape(text)
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is such
        raise DocumentError(f"is not TOML: {_said(error)}") from error
    check(found)
    return found


def _toml_shape(text: str) -> None:
    """Brackets that are open, dots between two signs of another kind, values and words in all: below their limits."""
    depth = values = dots = parts = words = 0
    for found in re.finditer(_TOML, text, re.VERBOSE | re.DOTALL):
        kind = found.lastgroup
        if kind == "dot":
            dots, parts = dots + 1, parts + 1
            if dots >= PARTS or parts > 2 * VALUES:
                _refuse(f"holds a key of more than {PARTS} parts, or {2 * VALUES} dots", text, found.start(), _FLATTEN)
        elif kind == "word":
            words += 1
            if words > 8 * VALUES:
                _refuse(_MANY, text, found.start(), _SPLIT)
            _short(found, text)
        elif kind == "closed" and depth == 0:
            return  # the parser comes no further than this
        elif kind is not None:
            dots = 0
            depth += (kind == "opened") - (kind == "closed")
            values += kind == "opened" or found[0] in "=,"
            _within(depth, values, text, found.start())


def json_value(text: str, *, once: bool = False) -> Any:
    """The value of a JSON text; with `once`, a key that an object has twice is an error. Raises DocumentError."""
    _json_shape(text)
    try:
        value = json.loads(text, object_pairs_hook=_once if once else None)
    except json.JSONDecodeError as error:
        raise DocumentError(f"is not JSON: {error.msg}", error.lineno) from error
    except DocumentError:
        raise
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"is not JSON: {_said(error)}") from error
    check(value)
    return value


def _json_shape(text: str) -> None:
    depth = values = words = 0
    for found in _JSON.finditer(text):
        kind = found.lastgroup
        if kind == "word":
            words += 1
            if words > 2 * VALUES:  # of a valid text each is a value
                _refuse(_MANY, text, found.start(), _SPLIT)
            _short(found, text)
        elif kind == "closed" and depth == 0:
            return  # the parser comes no further than this
        elif kind is not None:
            depth += (kind == "opened") - (kind == "closed")
            values += kind != "closed"
            _within(depth, values, text, found.start())


def outermost(text: str) -> dict[str, str]:
    """The texts and numbers that a JSON object holds itself, by name, each as it is written; of a name twice the last.

    Also of a text that no parser takes: it is what tells who waits for the answer to a message that cannot be read.
    """
    found, depth, name, last = dict[str, str](), 0, "", ""
    for part in _JSON.finditer(text):
        kind = part.lastgroup
        depth += (kind == "opened") - (kind == "closed")
        if depth == 1 and kind != "closed":
            if name and kind in {None, "word"}:
                found[name.strip('"')] = part[0]
            name, last = last if part[0] == ":" else "", part[0] if kind is None else ""
    return found


def _once(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise DocumentError(f"has the key {key[:100]!r} twice in one place")
        found[key] = value
    return found


def _within(depth: int, values: int, text: str, at: int) -> None:
    if depth > DEPTH:
        _refuse(_DEEP, text, at, _FLATTEN)
    if values > 3 * VALUES:  # a comma, a colon and a bracket for each at most
        _refuse(_MANY, text, at, _SPLIT)


def _short(found: re.Match[str], text: str) -> None:
    if found.end() - found.start() > WORD:
        _refuse(f"holds a number or name of more than {WORD} characters", text, found.start(), "Shorten it.")


def _refuse(problem: str, text: str, at: int, mend: str) -> NoReturn:
    raise DocumentError(problem, text.count("\n", 0, at) + 1, mend=mend)


def _said(error: Exception) -> str:
    return "is nested too deeply" if isinstance(error, RecursionError) else str(error)[:300]


def check(value: object) -> None:
    """Depth and number of values of what was read. Raises DocumentError."""
    waiting: list[tuple[int, object]] = [(0, value)]
    count = 0
    while waiting:
        depth, item = waiting.pop()
        count += 1
        if depth > DEPTH:
            raise DocumentError(_DEEP, mend=_FLATTEN)
        if count > VALUES + 1:  # the whole is one as well
            raise DocumentError(_MANY, mend=_SPLIT)
        if isinstance(item, dict):
            waiting += [(depth + 1, inner) for inner in item.values()]
        elif isinstance(item, list):
            waiting += [(depth + 1, inner) for inner in item]


# --- Texts that were cut in the middle of a character, and bytes that are no UTF-8: told to the caller, not passed on -


WHOLE_HINT = "Write whole characters as UTF-8; a text that is cut has to be cut between two of them."

NOT_WHOLE = "holds half of a character, or bytes that are no UTF-8"

_STAND_IN = rb"\ufdd0"  # what Unicode keeps for no character, as long as what it stands for

# Every escape is looked at, so that `\\ud83d` is seen as the two that it is.
_ESCAPE = re.compile(
    rb"\\(?:(?P<whole>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)

_HALF = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

_MOST = 100_000  # values at or below one that are looked at


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

    Raises ValueError for a value that holds more than _MOST.
    """
    waiting: list[tuple[str, object]] = [(name, value)]
    for _ in range(_MOST):
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
    raise ValueError(f"holds more than {_MOST} values")


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
