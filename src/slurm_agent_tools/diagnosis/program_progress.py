"""How far a program came, as its log tells: counters with their total, bars that do not start again, times left."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from slurm_agent_tools.diagnosis.excerpt import LogText

_KINDS = ("epoch", "step", "bar", "left")  # the first one that holds for the whole run decides

_OUTER = "epoch|round|generation|fold|trial|outer|replica|cycle"

_INNER = "step|iteration|iter|timestep|batch|frame|sample|job|task|file|chunk|image|document|event"

_COUNTED = re.compile(
    rf"\b(?P<name>{_OUTER}|{_INNER})s?\b\]?\W{{0,4}}(?P<done>\d[\d,]*)\s*(?:/|\bof\b|\bout of\b)\s*(?P<total>\d[\d,]*)",
    re.IGNORECASE | re.ASCII,
)

_PERCENT = re.compile(
    r"(?<![\d.])(?P<percent>\d{1,3}(?:\.\d+)?)\s?%(?:\||\s*(?:done|complete[d]?|finished)\b)", re.IGNORECASE
)

_PAIR = re.compile(r"(?:^|\s)\[\s*(?P<done>\d+)\s*/\s*(?P<total>\d+)\s*\]")

_LEFT = re.compile(
    r"\b(?:eta|time left|remaining(?: time)?)\W{0,3}(?:(?P<days>\d+) days?,? )?(?P<h>\d+):(?P<m>\d\d):(?P<s>\d\d)\b",
    re.IGNORECASE,
)

_SHOWN = re.compile(r"(?i)\b(?:epoch|step|iter|iteration|batch|cycle|timestep|trial)\b\W{0,3}\d|\d%\||\b\d+/\d+ \[")

_FULL = 0.999

_FRESH = 0.1  # a run that first tells of no more than that began at the beginning


@dataclass(frozen=True, slots=True)
class Progress:
    """The share of the work that was done (0 to 1), or the seconds left, and the text that says so."""

    done: float | None
    left: int | None
    text: str
    begun: float = 0.0  # the share with which the run began, where it went on from a checkpoint


def progress(texts: Sequence[LogText]) -> Progress | None:
    """The last progress that holds for the whole run; None where the log shows none.

    A counter that fell or was full before counts something that comes again (the steps of an epoch) and is left out.
    """
    seen: dict[tuple[str, str], list[Progress]] = {}
    for text in texts:
        for line in text.lines:
            for kind, name, item in _stated(line.text):
                seen.setdefault((kind, name), []).append(item)
    for kind in _KINDS:
        last = [_since(items) for (known, _), items in seen.items() if known == kind and _whole(items)]
        if last:
            return min(last, key=lambda item: item.done or 0.0)
    return None


def shows_progress(line: str) -> bool:
    """True for a line of a program that goes on: a counter or a bar, whatever it counts."""
    return _SHOWN.search(line[:300]) is not None


def _since(items: Sequence[Progress]) -> Progress:
    """The last one, with where the run began."""
    first = items[0].done or 0.0
    return replace(items[-1], begun=first if len(items) > 1 and first > _FRESH else 0.0)


def _whole(items: Sequence[Progress]) -> bool:
    shares = [item.done for item in items if item.done is not None]
    falls = any(later < earlier - 0.02 for earlier, later in pairwise(shares))
    return not falls and not any(share >= _FULL for share in shares)


def _stated(text: str) -> Iterator[tuple[str, str, Progress]]:
    for match in _COUNTED.finditer(text):
        name = match["name"].lower()
        outer = re.fullmatch(_OUTER, name) is not None
        share = _share(match["done"], match["total"], begun=outer)
        if share is not None:
            total = match["total"]
            yield "epoch" if outer else "step", f"{name} of {total}", Progress(share, None, match[0].strip())
    for match in _PAIR.finditer(text):
        share = _share(match["done"], match["total"], begun=False)
        if share is not None:
            yield "bar", match["total"], Progress(share, None, match[0].strip())
    for match in _PERCENT.finditer(text):
        if float(match["percent"]) <= 100:
            yield "bar", "%", Progress(float(match["percent"]) / 100, None, match[0].strip("| "))
    for match in _LEFT.finditer(text):
        left = int(match["days"] or 0) * 86400 + int(match["h"]) * 3600 + int(match["m"]) * 60 + int(match["s"])
        yield "left", "", Progress(None, left, match[0].strip())


def _share(done: str, total: str, *, begun: bool) -> float | None:
    """`begun`: the counter names the one that is being worked on, so one less is done."""
    whole = int(total.replace(",", ""))
    count = int(done.replace(",", "")) - begun
    return max(0, count) / whole if whole > 1 and count <= whole else None
