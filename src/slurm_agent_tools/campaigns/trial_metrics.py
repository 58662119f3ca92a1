"""Metrics of a trial from the text of its file or log, and whether it passed what its stage demands. Pure.

What a run wrote may be anything: only what is asked for is looked at, within limits. A pattern of the log is searched
from the log's end, in lines that hold the words of the pattern, and no longer than its worst case allows.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from slurm_agent_tools.models.campaign_file import CampaignStage
from slurm_agent_tools.text import bounded_documents
from slurm_agent_tools.text.bounded_documents import DocumentError

LARGEST = 4 * 2**20
"""Characters of a file of metrics, and of the end of a log, that are looked at."""

_MOST = 200
"""Metrics of one trial."""

_NAME = 100

_LARGEST_VALUE = 1e100
"""Beyond it a value is that of a run that diverges, as an infinite one is: nothing can be compared with it."""

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?", re.ASCII)


def metrics_of(stage: CampaignStage, text: str, source: Literal["json", "csv", "log"]) -> dict[str, float]:
    """The metrics in a text, only finite ones; nothing where the text is not of that kind.

    All numbers of a JSON object, or of the last line of a CSV file, or what the stage's patterns find in a log.
    """
    if source == "log":
        patterns = stage.metrics.pattern if stage.metrics is not None else None
        found = _of_log(text[-LARGEST:], patterns or {})
    elif len(text) > LARGEST:
        return {}
    else:
        found = _of_json(text) if source == "json" else _of_csv(text)
    kept = {name: value for name, value in found if abs(value) <= _LARGEST_VALUE and 0 < len(name) <= _NAME}
    return {name: kept[name] for name in list(kept)[:_MOST] if name.isprintable()}


def passed(
    stage: CampaignStage,
    smoke: bool,
    metrics: Mapping[str, float],
    files_there: Collection[str],
    *,
    objective: str | None = None,
) -> str | None:
    """Why a run that ended with exit code 0 did not pass; None where it did.

    `files_there`: those of the stage's `passes.files`, as the stage writes them, that exist. `objective`: the metric
    that counts, where the run is to tell it. Of a smoke run no least values are asked: it is too short for them.
    """
    demanded = dict.fromkeys([*([objective] if objective else []), *stage.passes.finite])
    absent = [name for name in demanded if not abs(metrics.get(name, math.nan)) <= _LARGEST_VALUE]
    if absent:
        return f"it told no finite value of {', '.join(absent)}"
    gone = [path for path in stage.passes.files if path not in files_there]
    if gone:
        return f"it did not write {', '.join(gone)}"
    for name, least in stage.passes.at_least.items() if not smoke else ():
        value = metrics.get(name)
        if value is None:
            return f"it told no finite value of {name}"
        if not value >= least:
            return f"{name} is {value:g}, and has to be at least {least:g}"
    return None


# --- files ------------------------------------------------------------------------------------------------------------


def _of_json(text: str) -> Iterator[tuple[str, float]]:
    """The numbers of an object, those of objects in it by names with dots."""
    try:
        value = bounded_documents.json_value(text)
    except DocumentError:
        return
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, dict):
            waiting += [(f"{place}.{key}" if place else str(key), inner) for key, inner in reversed(one.items())]
        elif place and isinstance(one, int | float) and not isinstance(one, bool):
            yield place, _number(one)


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _of_csv(text: str) -> Iterator[tuple[str, float]]:
    """The last line that has as many fields as the header: what comes behind may be half written."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return
    sign = next((one for one in ",;\t" if one in lines[0]), ",")
    header = _fields(lines[0], sign)
    for line in reversed(lines[1:]):
        fields = _fields(line, sign)
        if len(fields) == len(header):
            yield from (
                (name.strip(), float(one.strip()))
                for name, one in zip(header, fields, strict=True)
                if _NUMBER.fullmatch(one.strip())
            )
            return


def _fields(line: str, sign: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(line.strip("\r\ufeff")), delimiter=sign), [])
    except csv.Error:
        return []


# --- patterns of a log ------------------------------------------------------------------------------------------------

_LINE = 400
"""Characters of a line that a pattern is searched in."""

_WORK = 3e8
"""Steps that the search for one metric may take in its worst case: about 3 s."""

_ESCAPES = frozenset("dDwWsSbBtAZ")

_TOKEN = re.compile(
    r"\\(?P<escape>.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\((?:\?:|(?!\?)))|(?P<special>\(\?)|(?P<close>\))"
    r"|(?P<count>(?:[*+?]|\{\d*,?\d*\})[?+]?)|(?P<either>\|)|(?P<any>[.^$])|(?P<plain>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class LogPattern:
    """A pattern whose search has a bounded worst case. `word`: what every line that fits holds.

    `loops`: how many parts may be of any length; `choices`: in how many ways the rest may fit.
    """

    regex: re.Pattern[str]
    word: str
    loops: int
    choices: int

    @property
    def reach(self) -> int:
        """Characters of a line that are searched."""
        return next(length for length in range(_LINE, 0, -10) if length <= 10 or self.work(length) <= _WORK / 10)

    def work(self, length: int) -> float:
        """Steps of a search through so many characters, at worst."""
        return self.choices * (length + 1.0) ** (self.loops + 1) / math.factorial(self.loops + 1)


def _of_log(text: str, patterns: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    lines = re.split(r"[\r\n]+", text)
    for name, pattern in patterns.items():
        value = _last(lines, log_pattern(pattern))
        if value is not None:
            yield name, value


def _last(lines: Iterable[str], pattern: LogPattern) -> float | None:
    """The number in the last line that fits; None where none does before the work is over."""
    work, reach = 0.0, pattern.reach
    for line in reversed([*lines]):
        if pattern.word not in (part := line[:reach]):
            continue
        work += pattern.work(len(part))
        if work > _WORK:
            return None
        found = pattern.regex.search(part)
        told = found[1] if found is not None else None
        if told is not None and _NUMBER.fullmatch(told.strip()):
            return float(told)
    return None


@cache
def log_pattern(pattern: str) -> LogPattern:
    """A pattern of one metric, with exactly one group, around the number.

    Raises ValueError for one that is no regular expression, has no word beside the number, or whose search could take
    without end: groups that repeat, look around or refer back, and more than three parts of any length.
    """
    if len(pattern) > 200:
        raise ValueError("has more than 200 characters")
    try:
        regex = re.compile(pattern, re.ASCII)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error.msg}") from error
    if regex.groups != 1:
        raise ValueError(f"has {regex.groups} groups, and needs exactly one, around the number; write (?: ) for others")
    loops, choices, word = _shape(pattern)
    if loops > 3:
        raise ValueError(f"has {loops} parts of any length (* or +), at most 3 may be: leave out what is not needed")
    if choices > 64:
        raise ValueError("has too many parts that may or may not be there: leave out what is not needed")
    if len(word) < 2:
        raise ValueError("needs a word beside the number that every line of it has, such as val_loss=")
    return LogPattern(regex, word, loops, choices)


def _shape(pattern: str) -> tuple[int, int, str]:
    """How many parts are of any length, in how many ways the others may fit, and the longest word outside of groups."""
    loops, choices, depth, run, best, before = 0, 1, 0, "", "", ""
    for found in _TOKEN.finditer(pattern):
        kind, token = found.lastgroup or "", found[0]
        _allowed(kind, token, depth, before)
        if kind == "count":
            any_length, ways = _times(token)
            loops, choices = loops + any_length, choices * ways
            if not token.startswith("+"):
                run = run[:-1]
        choices *= 2 if kind == "either" else 1
        depth += (kind == "open") - (kind == "close")
        literal = kind == "plain" or (kind == "escape" and not found["escape"].isalnum())
        if literal and depth == 0:
            run += token[-1]
        else:
            best, run = max(best, run, key=len), ""
        before = kind
    return loops, min(choices, 10**6), max(best, run, key=len)


def _allowed(kind: str, token: str, depth: int, before: str) -> None:
    """Raises ValueError for a part whose search has no bound, or that hides what the others mean."""
    if kind == "special":
        raise ValueError("looks around, names a group or sets a flag: only ( ) and (?: ) are known here")
    if kind == "escape" and token[1].isalnum() and token[1] not in _ESCAPES:
        raise ValueError(f"has {token}, which is not known here")
    if kind == "count" and before == "close" and not token.startswith("?"):
        raise ValueError("repeats a group, whose search could take without end")
    if kind == "either" and depth == 0:
        raise ValueError("has | outside of a group: write (?:one|other)")


def _times(token: str) -> tuple[int, int]:
    """Whether a part may be of any length, and else in how many ways it may fit."""
    if token[0] in "*+":
        return 1, 1
    if token[0] == "?":
        return 0, 2
    low, sign, high = token.rstrip("?+").strip("{}").partition(",")
    if not sign:
        return 0, 1
    ways = int(high or 10**6) - int(low or 0) + 1
    return (1, 1) if ways > 20 else (0, max(ways, 1))
