"""A job in numbers: what it asks for or was given, in what it grew, and how many of its user's jobs count at once.

Bytes and seconds; None means not known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from slurm_agent_tools.units import UNLIMITED, format_duration, human_memory, parse_array

if TYPE_CHECKING:
    from slurm_agent_tools.models.job import Job


@dataclass(frozen=True, slots=True)
class Resources:
    """A request in numbers, or what Slurm granted. Totals over all nodes; worst geometry for per-GPU memory."""

    partition: str | None = None
    nodes: int | None = None
    cpus: int | None = None
    gpus: int | None = None
    memory_bytes: int | None = None
    memory_per_gpu_bytes: int | None = None
    memory_per_node_bytes: int | None = None
    time_limit_seconds: int | None = None
    array_tasks: int | None = None
    array_concurrency: int | None = None
    array: str | None = None  # which tasks, as sbatch takes it

    @property
    def in_words(self) -> str:
        """A few words: ` to cpu: 1 CPU, 200M, 00:05:00`. What is not stated is left out."""
        counts = (
            (self.array_tasks, "array task"),
            (self.nodes if (self.nodes or 1) > 1 else None, "node"),
            (self.gpus, "GPU"),
            (self.cpus, "CPU"),
        )
        said = [f"{number} {what}{'' if number == 1 else 's'}" for number, what in counts if number]
        said += [human_memory(self.memory_bytes)] if self.memory_bytes else []
        said += [format_duration(self.time_limit_seconds)] if self.time_limit_seconds is not None else []
        destination = f" to {self.partition}" if self.partition else ""
        return f"{destination}{': ' if said else ''}{', '.join(said)}"


# --- In what a job is more than was allowed: its numbers as Slurm tells them, beside those that were checked ----------

DriftKind = Literal["memory", "gpus", "cpus", "nodes", "time", "array", "partition", "requeue", "file"]

_ROUNDING = 1.01
"""Slurm splits memory over CPUs in whole megabytes, so that 16G can become 16385M."""

_THREADS = 2
"""A started job holds whole cores: its CPUs are rounded up to the threads of a core."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One thing in which a job is more than, or other than, what was allowed."""

    kind: DriftKind
    what: str


@dataclass(frozen=True, slots=True)
class _Number:
    kind: DriftKind
    name: str
    value: Callable[[Resources], float | None]
    show: Callable[[int], str]
    slack: float = 1.0
    per_node: bool = False  # grows with the nodes that a started job was spread over


def _per_node(numbers: Resources) -> float | None:
    if numbers.gpus or numbers.memory_bytes is None or not numbers.nodes:
        return None  # with GPUs, memory counts by GPU
    return numbers.memory_bytes / numbers.nodes


def _time(seconds: float) -> str:
    return format_duration(UNLIMITED if seconds == float("inf") else int(seconds))


_MEMORY = (
    _Number("memory", "memory", lambda one: one.memory_bytes, human_memory, _ROUNDING, per_node=True),
    _Number("memory", "memory per GPU", lambda one: one.memory_per_gpu_bytes, human_memory, _ROUNDING),
)

_ALWAYS = (
    *_MEMORY,
    _Number("gpus", "number of GPUs", lambda one: one.gpus, str),
    _Number(
        "time",
        "time limit",
        lambda one: float("inf") if one.time_limit_seconds == UNLIMITED else one.time_limit_seconds,
        _time,
    ),
)

# Over how many nodes a started job is spread can be Slurm's choice (--nodes=1-2): there is no limit to compare with.
_STARTED = (*_ALWAYS, _Number("cpus", "number of CPUs", lambda one: one.cpus, str, _THREADS, per_node=True))

_PENDING = (
    *_ALWAYS,
    _Number("memory", "memory per node", _per_node, human_memory, _ROUNDING),
    _Number("cpus", "number of CPUs", lambda one: one.cpus, str),
    _Number("nodes", "number of nodes", lambda one: one.nodes, str),
    _Number("array", "number of array tasks at once", lambda one: one.array_concurrency, str),
)


def grown_since(allowed: Sequence[Resources], now: Resources, *, started: bool) -> list[Growth]:
    """Every number that is now larger than in all of `allowed`, and a partition that is none of theirs."""
    growths = []
    for number in _STARTED if started else _PENDING:
        value, known = number.value(now), [limit for one in allowed if (limit := number.value(one)) is not None]
        spread = _spread(allowed, now) if started and number.per_node else 1.0
        if value is not None and known and value > max(known) * number.slack * spread:
            what = f"the {number.name} is {number.show(value)}, allowed was {number.show(max(known))}"  # type: ignore[arg-type]
            growths.append(Growth(number.kind, what))
    named = {name for one in allowed for name in (one.partition or "").split(",") if name}
    others = set((now.partition or "").split(",")) - named - {""}
    if named and others:
        what = f"the partition is {now.partition}, allowed was {','.join(sorted(named))}"
        growths.append(Growth("partition", what))
    return growths


def _spread(allowed: Sequence[Resources], now: Resources) -> float:
    """How many times as many nodes as were counted."""
    counted = max((one.nodes or 0 for one in allowed), default=0)
    return max(1.0, (now.nodes or 0) / counted) if counted else 1.0


# --- How many of a caller's jobs count at once: arrays by their width, chains once ------------------------------------

_WAITED_FOR = re.compile(r"(?:afterok|afterany|afterburstbuffer):([^,?]+)")

_PARENT = re.compile(r"(\d{1,10})(_\*)?(?:\([a-z]+\))?", re.ASCII)  # no job of Slurm's has a longer number


@dataclass(frozen=True, slots=True)
class Claim:
    """One submission's claim: `width` tasks at once, after the end of the jobs `after`.

    `parts`: by what it has more than one row, or would have: tasks of an array, or components of a het job.
    """

    base: int
    width: int
    after: frozenset[int] = frozenset()
    parts: Literal["tasks", "components"] | None = None


def claims(jobs: Iterable[Job]) -> tuple[Claim, ...]:
    """One claim per submission from the rows of the queue; array tasks and het components are put together."""
    rows: dict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.active:
            rows[job.job_id.base].append(job)
    ids = [job.job_id for group in rows.values() for job in group]
    arrays = {one.base for one in ids if one.task is not None or one.tasks is not None}
    return tuple(_claim(base, group, arrays) for base, group in sorted(rows.items()))


def waits_for(dependency: str | None, arrays: Container[int]) -> frozenset[int]:
    """Base ids of the jobs whose whole end a dependency surely waits for, as sbatch takes it or squeue prints it.

    Of alternatives (`?`) one is enough; a task or a component ends while others of its job run on; with aftercorr each
    task follows another task; afternotok is met by a job that is held in SPECIAL_EXIT and may go on; and what names all
    tasks (`7_*`) of a job that is none of `arrays` is lifted at once: such a job may run beside what it names.
    """
    if not dependency or "?" in dependency:
        return frozenset()
    items = [item for listed in _WAITED_FOR.findall(dependency) for item in listed.split(":")]
    found = [(int(match[1]), match[2]) for match in map(_PARENT.fullmatch, items) if match is not None]
    return frozenset(base for base, tasks in found if tasks is None or base in arrays)


def named_jobs(dependency: str | None) -> frozenset[int]:
    """Base ids of every job that a dependency names, whatever it waits for."""
    return frozenset(int(found) for found in re.findall(r":(\d{1,10})(?!\d)", dependency or "", re.ASCII))


def named_tasks(dependency: str | None) -> frozenset[tuple[int, str]]:
    """Every task that a dependency names, with the base id of its array; `*` for all of them."""
    found = re.findall(r":(\d{1,10})_(\*|\d{1,9}(?!\d))", dependency or "", re.ASCII)
    return frozenset((int(base), task) for base, task in found)


def count_slots(claimed: Sequence[Claim]) -> int:
    """Slots that these claims, one for each job, take together.

    Running plus pending jobs; an array by the tasks that may run at once; a job that waits for the end of another
    takes over its slot, so a chain counts once, by its widest link; every further dependent of the same job counts on
    its own.
    """
    return sum(chain_widths(claimed).values())


def chain_widths(claimed: Sequence[Claim]) -> dict[int, int]:
    """The slots of each chain of jobs, by the one at its end: whoever waits for that one takes them over."""
    ends: dict[int, int] = {}
    split = {claim.base for claim in claimed if claim.parts == "components"}  # Slurm waits for the first one alone
    for claim in sorted(claimed, key=lambda item: item.base):
        # Ids grow with time, so a parent is always older: links can never form a ring.
        free = [parent for parent in claim.after if parent in ends and parent not in split]
        ends[claim.base] = max(claim.width, ends.pop(min(free)) if free else 0)
    return ends


def _claim(base: int, rows: list[Job], arrays: Container[int]) -> Claim:
    """Tasks can be made to wait each by itself: the array waits for what all of its rows wait for."""
    width, limit, started = 0, None, 0
    for job in rows:
        started += job.state != "PENDING" and job.job_id.component in {None, 0}
        if job.job_id.tasks is not None:
            spec = parse_array(job.job_id.tasks)
            width += spec.count
            limit = spec.limit or limit
        elif job.job_id.component in {None, 0}:
            width += 1
    after = frozenset[int].intersection(*(waits_for(job.dependency, arrays) for job in rows))
    split = any(job.job_id.component is not None for job in rows)
    # A throttle that is made less ends no task: those that run count each.
    width = max(1, started, width if limit is None else min(width, limit))
    return Claim(base, width, after, "components" if split else "tasks" if base in arrays else None)


def reserved(widths: Iterable[int]) -> tuple[Claim, ...]:
    """The slots of submissions that the queue does not show and whose fate is not known, each so many wide."""
    return tuple(Claim(-1 - index, width) for index, width in enumerate(widths))
