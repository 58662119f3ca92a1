"""Text <-> value for Slurm's durations, memory, TRES, array specs and job ids. Pure; errors are ValueError."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise

UNLIMITED = -1

HUNDRED_YEARS = 36_500 * 86_400
"""Seconds: what a job without a time limit counts as, wherever hours are added up or compared."""

_MEMORY = re.compile(r"\s*\+?(\d+)\s{0}([KMGT]?)B?\s*", re.IGNORECASE)

_MEMORY_FACTOR = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

_MEMORY_MAX = 2**40

_ABSENT_TIMES = frozenset({"", "Unknown", "None", "N/A", "(null)"})


def parse_memory(text: str) -> int:
    """Bytes of an sbatch memory value: base 1024, no unit means MB, K rounds up to MB (sbatch(1), --mem).

    Refuses numbers above 2^40: sbatch lets them wrap around to zero, which means the whole node.
    """
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ValueError(f"not a memory size: {text!r} (write 512M, 16G or 1T)")
    number, unit = int(match[1]), match[2].upper()
    if number > _MEMORY_MAX:
        raise ValueError(f"memory size out of range: {text!r}")
    size = number * _MEMORY_FACTOR[unit]
    return -(-size // 2**20) * 2**20


def format_memory(size: int) -> str:
    """The shortest exact Slurm spelling: 16G, 1500M, 100K, 0."""
    if size == 0:
        return "0"
    for unit in "TGMK":
        factor = _MEMORY_FACTOR[unit]
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{-(-size // 2**10)}K"


def human_memory(size: int) -> str:
    """A size for people, one decimal at most: 15.3G. What is round as people write it stays: 2000G is no 2T."""
    value, finer, units = float(size), 0.0, "BKMGT"
    while value >= 1024 and len(units) > 1:
        value, finer, units = value / 1024, value, units[1:]
    round_in = {"G": 100, "T": 1}.get(units[0])  # hundreds of M, whole G: a limit, and no measurement
    if round_in and finer % round_in == 0 and finer < 10_000 and not (value * 10).is_integer():
        return f"{finer:.0f}{'M' if units[0] == 'G' else 'G'}"
    return f"{value:.1f}".rstrip("0").rstrip(".") + units[0]


def whole_memory(size: float) -> int:
    """A size to ask for: up to whole M, from 8G on up to whole G."""
    unit = 2**30 if size >= 8 * 2**30 else 2**20
    return math.ceil(size / unit) * unit


def parse_time_limit(text: str) -> int:
    """Seconds of M, M:S, H:M:S, D-H, D-H:M or D-H:M:S, rounded up to minutes; UNLIMITED (-1) for 0 and the words.

    Source: sbatch(1), --time; measured: `0` is no limit and seconds round up.
    """
    word = text.strip()
    if word.upper() in {"UNLIMITED", "INFINITE", "-1"}:
        return UNLIMITED
    if not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}", word):
        raise ValueError(f"not a time limit: {text!r} (write MINUTES, HH:MM:SS or D-HH:MM:SS)")
    days, _, rest = word.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if days:
        parts += [0] * (3 - len(parts))
        seconds = int(days) * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2]
    elif len(parts) == 3:
        seconds = parts[0] * 3600 + parts[1] * 60 + parts[2]
    else:
        seconds = parts[0] * 60 + (parts[1] if len(parts) == 2 else 0)
    seconds = -(-seconds // 60) * 60
    return seconds or UNLIMITED


_SPAN = re.compile(
    r"(?:(\d{1,6})\s?d(?:ays?)?)?\s?(?:(\d{1,6})\s?h(?:(?:ou)?rs?)?)?\s?(?:(\d{1,8})\s?m(?:in(?:ute)?s?)?)?"
    r"\s?(?:(\d{1,9})\s?s(?:ec(?:ond)?s?)?)?",
    re.ASCII | re.IGNORECASE,
)


def parse_span(text: str) -> int:
    """Seconds of 90s, 5m, 90min, 2h, 1h30m or 1d12h as people write them, or of a time limit as Slurm writes it.

    Only for durations that never reach sbatch, which reads `5m` as nothing.
    """
    word = text.strip()
    match = _SPAN.fullmatch(word)
    if match is None or not any(match.groups()):
        return parse_time_limit(word)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = days * 86400 + hours * 3600 + minutes * 60 + seconds
    if not total:
        raise ValueError(f"no time at all: {text!r}")
    return total


def format_duration(seconds: int) -> str:
    """Slurm's spelling: HH:MM:SS, or D-HH:MM:SS from a day on; UNLIMITED for -1."""
    if seconds == UNLIMITED:
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


def parse_elapsed(text: str) -> float | None:
    """Seconds of sacct's [D-]HH:MM:SS[.mmm] or MM:SS.mmm; None for an empty or INVALID value."""
    match = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)", text.strip())
    if match is None:
        if text.strip() in _ABSENT_TIMES | {"INVALID"}:
            return None
        raise ValueError(f"not an elapsed time: {text!r}")
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)


def parse_time(text: str) -> datetime | None:
    """A UTC time from `%s` seconds (SLURM_TIME_FORMAT=%s); None for Unknown, N/A and the like."""
    word = text.strip()
    if word in _ABSENT_TIMES:
        return None
    return datetime.fromtimestamp(int(word), UTC)


def parse_tres(text: str) -> dict[str, str]:
    """`cpu=4,mem=16G,gres/gpu:a100=2` as a mapping; values stay text."""
    pairs: dict[str, str] = {}
    for item in filter(None, text.strip().split(",")):
        name, sign, value = item.partition("=")
        if not sign:
            raise ValueError(f"not a TRES list: {text!r}")
        pairs[name] = value
    return pairs


_TRES_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")


def tres_memory(text: str) -> int:
    """Bytes of a memory TRES as Slurm prints it (16G, 1500M, 2.50G); no unit means MB."""
    match = _TRES_MEMORY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a TRES memory: {text!r}")
    factor = {**_MEMORY_FACTOR, "P": 2**50}[match[2]]
    return round(float(match[1]) * factor)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """`--array`: `count` tasks, at most `limit` at once (None: no `%N`), `first` and `last` index."""

    text: str
    count: int
    limit: int | None
    first: int
    last: int

    @property
    def concurrency(self) -> int:
        """Tasks that may run at once."""
        return self.count if self.limit is None else min(self.count, self.limit)

    @property
    def ascends(self) -> bool:
        """Whether the text names each task once, the least first, as the controller's plugin reads it."""
        last = -1
        for item in self.text.strip("[]").partition("%")[0].split(","):
            first, _, to = item.partition(":")[0].partition("-")
            if int(first) <= last:
                return False
            last = int(to or first)
        return True


def parse_array(text: str) -> ArraySpec:
    """An --array value: 0-99, 1,3,5-7, 0-20:5, any with %N; [..] tolerated; %0 is no throttle (sbatch(1))."""
    match = re.fullmatch(r"\[?([0-9,:-]+)(?:%(\d+)\]?|\]%(\d+)|\])?", text.strip())
    if match is None:
        raise ValueError(f"not an array specification: {text!r} (write 0-9%4)")
    limit = int(match[2] or match[3] or 0) or None
    spans = sorted((_array_span(item, text) for item in match[1].split(",")), key=lambda span: span.start)
    if any(later.start <= span[-1] for span, later in pairwise(spans)):
        count = len(indices(match[1], text, most=_UNFOLDED))
    elif (count := sum(map(len, spans))) > _MOST_TASKS:
        raise ValueError(f"array too large: {text!r}")
    return ArraySpec(text.strip(), count, limit, spans[0].start, max(span[-1] for span in spans))


_MOST_TASKS = 1_000_000

_UNFOLDED = 2000
"""Tasks of an array whose ranges overlap: to count each once they are taken one by one."""


def indices(listed: str, whole: str | None = None, *, most: int = _MOST_TASKS) -> frozenset[int]:
    """Task ids of 1,3,5-7 or 0-20:5; `whole` is the text to name in an error."""
    spans = [_array_span(item, whole or listed) for item in listed.split(",")]
    if sum(len(span) for span in spans) > most:
        raise ValueError(f"array too large: {whole or listed!r}")
    return frozenset(index for span in spans for index in span)


def ranges(numbers: Iterable[int]) -> str:
    """1-3,7 for 1, 2, 3 and 7: task ids in ascending order as `indices` reads them."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _array_span(item: str, whole: str) -> range:
    match = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?", item)
    if match is None:
        raise ValueError(f"not an array specification: {whole!r} (write 0-9%4)")
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if last < first or step < 1:
        raise ValueError(f"array range runs backwards: {item!r} in {whole!r}")
    return range(first, last + 1, step)


@dataclass(frozen=True, slots=True)
class JobId:
    """A job id: `base`, and at most one of `task` (123_4), `tasks` (pending range 9_[2-50%4]), `component` (123+1)."""

    base: int
    task: int | None = None
    tasks: str | None = None
    component: int | None = None

    def __str__(self) -> str:
        if self.task is not None:
            return f"{self.base}_{self.task}"
        if self.tasks is not None:
            return f"{self.base}_[{self.tasks}]"
        if self.component is not None:
            return f"{self.base}+{self.component}"
        return str(self.base)

    @property
    def whole(self) -> JobId:
        """The job that the task or component belongs to."""
        return JobId(self.base)

    def any_of(self, tasks: AbstractSet[int]) -> bool:
        """True for one of these tasks of its array, and for a pending range that holds one of them."""
        if self.tasks is None:
            return self.task in tasks
        listed = self.tasks.split("%", maxsplit=1)[0]
        return "..." in listed or not tasks.isdisjoint(_pending(listed))

    def belongs_to(self, wanted: JobId) -> bool:
        """True for the job itself, for parts of a wanted whole, and for the pending range that holds a wanted task."""
        if self.base != wanted.base:
            return False
        if wanted in {wanted.whole, self}:
            return True
        return wanted.task is not None and self.tasks is not None and _holds(self.tasks, wanted.task)


def _holds(tasks: str, task: int) -> bool:
    """Whether a pending range such as 2-50%4 holds a task; a range that Slurm has cut short may."""
    listed = tasks.split("%", maxsplit=1)[0]
    return "..." in listed or task in _pending(listed)


@lru_cache(maxsize=4)
def _pending(listed: str) -> frozenset[int]:
    """The tasks of a range: each task of an array is looked for in the same one."""
    return indices(listed)


NO_TASK = str(2**32 - 2)
"""What Slurm writes for the number of a task where there is none: for a whole array, or a job that is none."""


def by_task(path: str | None) -> str | None:
    """The path of an array's output, with `%a` where each task puts its own number."""
    return path and path.replace(NO_TASK, "%a")


_JOB_ID = re.compile(r"([1-9][0-9]{0,9})(?:_([0-9]{1,9})|\+([0-9]{1,4})|_\[([0-9,:%.-]+)\])?", re.ASCII)


def parse_job_id(text: str) -> JobId:
    """123, 123_4, 123+1, or a pending range as squeue prints it, 9_[2-50%4]."""
    match = _JOB_ID.fullmatch(text)
    if match is None:
        raise ValueError(f"not a job id: {text!r} (write 123, 123_4 or 123+1)")
    base, task, component, tasks = match.groups()
    return JobId(
        int(base),
        task=None if task is None else int(task),
        tasks=tasks,
        component=None if component is None else int(component),
    )


def how_many(count: int, noun: str) -> str:
    """`1 job`, `2 jobs`, `0 jobs`: a count with its noun, whose plural ends in s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
