"""The signatures of failures, read once from the package's own data (signatures.yaml tells the fields)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import groupby
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from slurm_agent_tools.diagnosis.harmless_lines import marked_harmless, passing

Tier = Literal["certain", "cause", "generic", "weak", "effect", "last"]
"""How much a matching line tells: `certain` are Slurm's own words; `last` counts where nothing else is there."""

_NUMBER = re.compile(r"\d+")

_LONG = 500  # characters: from here on a line may keep a pattern busy for milliseconds

_MOST = 50  # of such lines, the last ones, are tried with each signature: programs that say why they end are short

_ERE = re.compile(r"[\\.^$*+?()\[{|]")  # what POSIX gives a meaning outside brackets (re_format(7)); ] and } have none

_Match = tuple["Signature", re.Match[str]]


class Signature(BaseModel):
    """One kind of failure; the facts are texts like `state=TIMEOUT`, with * for any text."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    id: str
    words: tuple[str, ...] = Field(min_length=1)
    certain: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    decides: tuple[str, ...] = ()
    suggests: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    tier: Literal["cause", "generic", "effect"] = "cause"
    recoverable: bool = False
    doubtful: bool = False
    explains: tuple[str, ...] = ()
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
        return self.search(line) if self.concerns(line.lower()) else None

    def search(self, line: str) -> re.Match[str] | None:
        """The match of one that holds one of the words."""
        match = _first(self._certain, line)
        if match is None and (self.any_level or not marked_harmless(line)):
            match = _first(self._others, line)
            match = None if match is not None and passing(line) else match  # asked last: it takes the longest
        return None if match is None or _first(self._unless, line) else match

    # Most logs need few of them: each is compiled when a line is first held against it.
    @cached_property
    def _certain(self) -> Sequence[re.Pattern[str]]:
        return compiled(self.certain)

    @cached_property
    def _others(self) -> Sequence[re.Pattern[str]]:
        return compiled((*self.causes, *self.patterns, *self.weak, *self.last))

    @cached_property
    def _unless(self) -> Sequence[re.Pattern[str]]:
        return compiled(self.unless)

    def strength(self, match: re.Match[str]) -> Tier:
        """How much a match of this signature tells."""
        pattern = match.re.pattern
        if pattern in self.certain:
            return "certain"
        if pattern in self.causes:
            return "cause"
        if pattern in self.patterns:
            return self.tier
        return "weak" if pattern in self.weak else "last"


def compiled(patterns: Iterable[str]) -> list[re.Pattern[str]]:
    """The patterns of a signature as they are searched for: digits and words are those of ASCII."""
    return [re.compile(pattern, re.ASCII) for pattern in patterns]


def _first(patterns: Sequence[re.Pattern[str]], line: str) -> re.Match[str] | None:
    return next((match for pattern in patterns if (match := pattern.search(line)) is not None), None)


@cache
def signatures() -> tuple[Signature, ...]:
    """All of them, the surest first. The file is part of the package: a fault in it is a fault of the program."""
    text = resources.files(__package__).joinpath("signatures.yaml").read_text(encoding="utf-8")
    quick = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where PyYAML was built with it
    return tuple(Signature.model_validate(entry) for entry in yaml.load(text, Loader=quick))  # noqa: S506 - safe


@cache
def by_id() -> dict[str, Signature]:
    """The signatures by their category."""
    return {signature.id: signature for signature in signatures()}


@cache
def words() -> list[str]:
    """The words of all signatures, those left out that hold another one; sorted."""
    return sorted(shortest({word for signature in signatures() for word in signature.words}))


def shortest(texts: Iterable[str]) -> set[str]:
    """The texts without those that hold another one."""
    found: dict[str, tuple[str, ...]] = {}  # by their first letter
    for text in sorted(texts, key=len):
        if not any(text.startswith(found.get(letter, ()), at) for at, letter in enumerate(text)):
            found[text[:1]] = (*found.get(text[:1], ()), text)
    return {text for alike in found.values() for text in alike}


@cache
def ere() -> list[str]:
    """POSIX extended regular expressions, to be joined by | and used without regard to case (grep -i -E).

    A line in which none of them matches cannot match a signature.
    """
    return [escaped(word) for word in words()]


def escaped(word: str) -> str:
    """A word as a POSIX extended regular expression that matches nothing else."""
    return _ERE.sub(r"\\\g<0>", word)


def matching(lines: Sequence[str]) -> Sequence[tuple[int, Signature, re.Match[str]]]:
    """(index, signature, match) of every line that a signature matches, in order of the lines."""
    return _matches(tuple(lines))


@lru_cache(maxsize=4)  # a diagnosis asks for the same lines several times
def _matches(lines: tuple[str, ...]) -> tuple[tuple[int, Signature, re.Match[str]], ...]:
    found = [(index, lines[index].lower()) for index in _with_words("\n".join(lines).lower())]
    whole = "\n".join({_NUMBER.sub("", lowered) for _, lowered in found})
    # A log is often full of one word: the others are looked for once, not in each of its lines.
    live = [
        (signature, [word for word in signature.words if _NUMBER.sub("", word) in whole]) for signature in signatures()
    ]
    live = [(signature, said) for signature, said in live if said]
    tried: Counter[str] = Counter()
    known: dict[str, list[_Match]] = {}  # of a short line, which a log may repeat without end
    last_first: list[tuple[int, list[_Match]]] = []
    for index, lowered in reversed(found):
        line = lines[index]
        matches = known.get(line)
        if matches is None:
            matches = _on_line(line, lowered, live, tried)
            if len(line) <= _LONG:
                known[line] = matches
        last_first.append((index, matches))
    return tuple((index, *match) for index, matches in reversed(last_first) for match in matches)


def _on_line(line: str, lowered: str, live: Sequence[tuple[Signature, list[str]]], tried: Counter[str]) -> list[_Match]:
    """What matches one line; `tried` counts the long lines that each signature has been tried on."""
    concerned = [signature for signature, said in live if any(word in lowered for word in said)]
    if len(line) > _LONG:
        concerned = [signature for signature in concerned if tried[signature.id] < _MOST]
        tried.update(signature.id for signature in concerned)
    matches = ((signature, signature.search(line)) for signature in concerned)
    return [(signature, match) for signature, match in matches if match is not None]


def _with_words(whole: str) -> Iterator[int]:
    """Indices of the lines of a text in small letters that hold one of the words."""
    position, index = 0, 0
    while match := _tree().search(whole, position):
        index += whole.count("\n", position, match.start())
        yield index
        position = whole.find("\n", match.end())
        if position < 0:
            return


@cache
def _tree() -> re.Pattern[str]:
    """All words as one expression that shares their beginnings: several times faster than one word after another.

    `inf` is such a word and a number that is none; `info` is not: it stands on every line of many logs.
    """
    return re.compile(_branches(words()) + "(?!(?<=inf)o)")


def _branches(texts: Sequence[str]) -> str:
    """`texts` sorted."""
    if "" in texts:
        return ""
    alike = groupby(texts, key=lambda text: text[0])
    parts = [re.escape(head) + _branches([text[1:] for text in same]) for head, same in alike]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
