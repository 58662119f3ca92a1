"""TOML and JSON that somebody else may have written, within limits that are checked before the parser sees the text.

Both parsers are quick for text of ordinary shape, and without end for some others: a key of 100,000 parts took 23 GB in
tomllib. A look at the brackets, dots and commas outside of quotes, at 10 MB a second, tells whether it is such a text.
YAML is read by yaml_documents.py, within the same limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

DEPTH = 50
"""Levels of tables and lists inside of each other."""

VALUES = 50_000

PARTS = 32
"""Parts of one key with dots in it (TOML)."""

WORD = 1000
"""Characters of a number, or of anything else that stands outside of quotes."""

_DEEP, _FLATTEN = f"is nested deeper than {DEPTH} levels", "Flatten it."

_MANY, _SPLIT = f"holds more than {VALUES} values", "Write what is large into a file of its own."

_TOML = re.compile(
    r'''
    \#[^\n]*+
    | """(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5})?
    | \'{3}(?:[^']++|'(?!''))*+(?:'{3,5})?
    | "(?:[^"\\\n]++|\\[^\n])*+"?
    | '[^'\n]*+'?
    | (?P<opened>[\[{]) | (?P<closed>[\]}]) | (?P<next>[=,]|\n\s*+) | (?P<dot>\.) | [^\S\n]++
    | (?P<word>[^\s"'\[\]{}=,.\#]++)
    ''',
    re.VERBOSE | re.DOTALL,
)

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
    for found in _TOML.finditer(text):
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
