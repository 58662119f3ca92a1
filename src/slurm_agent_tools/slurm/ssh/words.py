"""The text of an SSH configuration: lines, words, patterns, conditions, tokens, as ssh_config(5) has them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_BLANK = " \t\r\f"
_TOKEN = re.compile(r"%(.?)")
_VARIABLE = re.compile(r"\$\{(.*?)\}")
_ALONE = frozenset({"all", "canonical", "final"})  # conditions without a value


def lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """(number, keyword in small letters, the rest of the line). OSError."""
    text = path.read_bytes().decode("utf-8", "surrogateescape").removeprefix("\ufeff")  # as editors on Windows write
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"([^\s=\"#]+)[ \t]*=?[ \t]*(.*)", line.strip(_BLANK))
        if found is not None:
            yield number, found[1].lower(), found[2]


def split(text: str) -> list[str]:
    """Split at blanks; quotes hold together, a backslash keeps a quote, a blank or itself, `#` ends. ValueError."""
    found: list[str] = []
    word: str | None = None
    quote, place = "", 0
    while place < len(text):
        char, after = text[place], text[place + 1 : place + 2]
        place += 1
        if char == "\\" and after and (after in "\\\"'" or (after == " " and not quote)):
            word, place = (word or "") + after, place + 1
        elif char == quote:
            quote = ""
        elif not quote and char in "\"'":
            word, quote = word or "", char
        elif not quote and char in _BLANK:
            found, word = found if word is None else [*found, word], None
        elif not quote and char == "#" and word is None:
            break
        else:
            word = (word or "") + char
    if quote:
        raise ValueError("a quote is not closed")
    return found if word is None else [*found, word]


def fits(patterns: Sequence[str], text: str) -> bool:
    """Whether a pattern fits and none that is negated does."""
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return any(_fits(each, text) for each in wanted) and not any(_fits(each, text) for each in unwanted)


def _fits(pattern: str, text: str) -> bool:
    parts = ({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def conditions(given: Sequence[str]) -> list[tuple[bool, str, str]]:
    """What Match names, as (negated, name, value). ValueError."""
    found: list[tuple[bool, str, str]] = []
    rest = list(given)
    while rest:
        name, _, value = rest.pop(0).partition("=")
        negated, name = name.startswith("!"), name.removeprefix("!").lower()
        if name not in _ALONE:
            if not value and rest[:1] == ["="]:
                rest.pop(0)
            if not value and not rest:
                raise ValueError(f"Match {name} has no value")
            value = value or rest.pop(0)
        found.append((negated, name, value))
    if not found:
        raise ValueError("Match has no condition")
    return found


def expanded(text: str, tokens: Mapping[str, str]) -> str:
    """Put in what %h and its kin stand for. ValueError for one that is not known."""

    def known(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        if found[1] not in tokens:
            raise ValueError(f"{found[0]} stands for nothing here")
        return tokens[found[1]]

    return _TOKEN.sub(known, text)


def placed(text: str) -> str:
    """A path with its ${VARIABLES} and home folder. ValueError."""

    def known(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise ValueError(f"the variable {found[1]} is not set")
        return os.environ[found[1]]

    return os.path.expanduser(_VARIABLE.sub(known, text))  # noqa: PTH111 - Path would drop a last slash and raise
