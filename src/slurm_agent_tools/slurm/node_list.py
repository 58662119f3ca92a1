"""Slurm's host list expressions as names of nodes. Pure."""

from __future__ import annotations

import re
from itertools import product

_MOST = 100_000
"""Names that one expression may stand for; the largest cluster has fewer nodes."""

_PIECE = re.compile(r"\[([^\]]*)\]")

_SPAN = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def expand(text: str) -> frozenset[str]:
    """The names of `cpu[01-03,7],gpu1` (scontrol(1), hostlist). Raises ValueError for what is none."""
    names: set[str] = set()
    for word in _words(text):
        parts = _PIECE.split(word)
        lists = [_numbers(part, text) if index % 2 else [part] for index, part in enumerate(parts)]
        names.update(map("".join, product(*lists)))
        if len(names) > _MOST:
            raise ValueError(f"a list of more than {_MOST} nodes: {text[:80]!r}")
    return frozenset(names)


def named(nodes: str | None) -> frozenset[str]:
    """The names of a job's nodes; none where it has none, or Slurm's words are not a list of nodes."""
    try:
        return expand(nodes) if nodes else frozenset()
    except ValueError:
        return frozenset()


def _words(text: str) -> list[str]:
    """The expression cut at the commas outside of brackets."""
    cut = _PIECE.sub(lambda piece: piece[0].replace(",", "\n"), text).split(",")
    words = [word.replace("\n", ",") for word in cut]
    bad = "\n" in text or any("[" in piece for piece in _PIECE.findall(text))
    if bad or any(not word or re.search(r"[\s\[\]]", _PIECE.sub("", word)) for word in words):
        raise ValueError(f"not a list of nodes: {text[:80]!r}")
    return words


def _numbers(listed: str, text: str) -> list[str]:
    """`01-03,7` as 01, 02, 03, 7: the width of the first number of a range is kept."""
    found: list[str] = []
    for item in listed.split(","):
        span = _SPAN.fullmatch(item)
        if span is None:
            raise ValueError(f"not a list of nodes: {text[:80]!r}")
        first, last = int(span[1]), int(span[2] or span[1])
        if not first <= last < first + _MOST:
            raise ValueError(f"not a range of nodes: {item!r} in {text[:80]!r}")
        found += [f"{number:0{len(span[1])}d}" for number in range(first, last + 1)]
    return found
