"""What the shell makes of texts that are constant: `${x,,}`, `${x:0:3}`, `${x/a/b}`, and what echo and printf print."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, takewhile

MAX_PATTERN = 200

MAX_MADE = 2**18

_FORMAT = re.compile(r"%(%|[-+ 0#]*\d{0,3}(?:\.\d{1,3})?(?:[sbqcdiuxXo]|\([^()]*+\)T))")

_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "r": "\r", "a": "\a", "e": "\x1b", '"': '"', "'": "'"}


def escaped(text: str) -> str:
    """Backslash sequences as printf and `echo -e` read them."""
    text = re.sub(r"\\x([0-9a-fA-F]{1,2})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"\\0?([0-7]{1,3})", lambda found: chr(int(found[1], 8) % 256), text)
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text)


def formatted(pattern: str, words: Sequence[str]) -> str | None:
    """What printf prints; the format is used again until no word is left. None where that is too much."""
    pattern = escaped(pattern)
    if len(pattern) * (len(words) + 1) > MAX_MADE:
        return None
    rest, out = iter(words), []
    count = sum(1 for found in _FORMAT.finditer(pattern) if found[1] != "%")
    left = len(words)
    while True:
        taken = iter(list(islice(rest, count)))
        out.append(_FORMAT.sub(partial(_filled, taken), pattern))
        left -= count
        if count == 0 or left <= 0:
            return "".join(out)


def _filled(words: Iterator[str], found: re.Match[str]) -> str:
    return "%" if found[1] == "%" else next(words, "")


def echoed(words: Sequence[str]) -> str:
    """What echo prints, with its line end."""
    options = list(takewhile(re.compile(r"-[neE]+").fullmatch, words))
    newline = "" if any("n" in option for option in options) else "\n"
    return " ".join(words[len(options) :]).replace("\\n", "\n") + newline


def braces(text: str, most: int = 64) -> list[str]:
    """`a{b,c}d` spread out; other texts as they are."""
    found = [text]
    for _ in range(8 if len(text) <= MAX_PATTERN * 5 else 0):
        spread = [one for item in found for one in _spread(item)][:most]
        if spread == found:
            break
        found = spread
    return found


def _spread(text: str) -> list[str]:
    match = re.search(r"(?<!\$)\{([^{}\s]*,[^{}\s]*)\}", text[:1000])
    if match is None:
        return [text]
    return [text[: match.start()] + one + text[match.end() :] for one in match[1].split(",")]


def changed(operator: str, value: str, word: str) -> str | None:
    """`${x,,}`, `${x^^}`, `${x#pattern}`, `${x%pattern}`; None for what is not read."""
    match operator:
        case ",,":
            return value.lower()
        case "^^":
            return value.upper()
        case ",":
            return value[:1].lower() + value[1:]
        case "^":
            return value[:1].upper() + value[1:]
        case "#" | "##" | "%" | "%%" if len(word) <= MAX_PATTERN and len(value) <= MAX_PATTERN:
            return _cut(operator, value, word)
        case _:
            return None


def _cut(operator: str, value: str, pattern: str) -> str:
    lengths = range(len(value) + 1)
    for length in lengths if len(operator) == 1 else reversed(lengths):
        piece = value[:length] if operator[0] == "#" else value[len(value) - length :]
        if fnmatch.fnmatchcase(piece, pattern):
            return value[length:] if operator[0] == "#" else value[: len(value) - length]
    return value


def sliced(value: str, offset: str, length: str | None) -> str | None:
    """`${x:offset:length}` with plain numbers."""
    if not re.fullmatch(r"\s*-?\d{1,6}", offset) or (length is not None and not re.fullmatch(r"\s*-?\d{1,6}", length)):
        return None
    start = int(offset)
    value = value[start:] if start >= 0 else value[len(value) + start :]
    if length is None:
        return value
    return value[: int(length)]


def replaced(value: str, pattern: str, word: str, *, everywhere: bool) -> str | None:
    """`${x/pattern/word}` with a pattern that is plain text."""
    if not pattern or any(sign in pattern for sign in "*?[") or len(value) * (len(word) + 1) > MAX_MADE:
        return None
    return value.replace(pattern, word) if everywhere else value.replace(pattern, word, 1)
