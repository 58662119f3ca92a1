"""Workloads that were: jobs of a trace in the Standard Workload Format (SWF), or of a cluster's own accounting.

SWF is the format of the Parallel Workloads Archive: one line a job, 18 columns, -1 where a value is not known, comments
behind a semicolon (Chapin et al. 1999, "Benchmarks and standards for the evaluation of parallel job schedulers").
"""

from __future__ import annotations

import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NoReturn

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.job import Job

MOST_JOBS = 500_000

MOST_BYTES = 128 * 2**20
"""Bytes of a trace, unpacked."""

_LONGEST_LINE = 1000

_LATEST = 1e10  # seconds: three hundred years

_MOST_PROCESSORS = 10**8

_COLUMNS = (
    "job number", "submit time", "wait time", "run time", "allocated processors", "CPU time used", "memory used",
    "requested processors", "requested time", "requested memory", "status", "user", "group", "executable", "queue",
    "partition", "preceding job", "think time",
)  # fmt: skip

_PARTIAL = frozenset({2.0, 3.0, 4.0})  # one stretch of a job that was stopped and went on; another line has the whole

_HEADER = re.compile(r";\s*(MaxProcs|MaxNodes):\s*(\d{1,9})\s*$", re.ASCII)

NO_RUN_TIME = "no run time is known"

NO_LIMIT = "no time limit is known"

NO_TIME = "it ran for no time"

NO_PROCESSORS = "no size is known"

NO_GPU = "it asked for no GPU"

PARTIAL = "a part of a job that another line has as a whole"

NEVER_STARTED = "it never started"

NOT_OVER = "it is not over"

Unit = Literal["cpus", "gpus", "nodes"]


@dataclass(frozen=True, slots=True)
class TracedJob:
    """One job of a workload. Times are seconds since the workload's beginning. None: not known.

    `submit`: from when it could start. `run`: what it took. `limit`: what its user said it would take at most.
    `wait`: what it waited when it was run. `memory`: bytes that it asked for. `after`: the job whose end it waits for.
    """

    number: int
    submit: float
    run: float
    processors: int
    limit: float | None
    user: str
    wait: float | None = None
    memory: float | None = None
    after: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs by submission, the size of the machine that ran them, and what was left out: reasons with their counts."""

    name: str
    jobs: tuple[TracedJob, ...]
    processors: int | None
    left_out: Mapping[str, int]

    @property
    def span(self) -> float:
        """Seconds from the first submission to the last."""
        return self.jobs[-1].submit - self.jobs[0].submit if self.jobs else 0.0


def ordered(name: str, jobs: Iterable[TracedJob], processors: int | None, left_out: Mapping[str, int]) -> Workload:
    """A workload of jobs in any order."""
    return Workload(name, tuple(sorted(jobs, key=lambda job: (job.submit, job.number))), processors, dict(left_out))


def playable(workload: Workload) -> Workload:
    """The same for a replay: jobs that ran for no time, or state no limit, are left out and counted.

    What ran beyond its limit ends there: a scheduler that goes by limits would have ended it.
    """
    left_out = Counter(workload.left_out)
    jobs: list[TracedJob] = []
    gone: set[int] = set()
    for job in workload.jobs:
        if job.run <= 0 or job.limit is None:
            left_out[NO_TIME if job.run <= 0 else NO_LIMIT] += 1
            gone.add(job.number)
            continue
        kept = job if job.run <= job.limit else replace(job, run=job.limit)
        jobs.append(kept if kept.after not in gone else replace(kept, after=None))
    return Workload(workload.name, tuple(jobs), workload.processors, dict(left_out))


# --- The Standard Workload Format -------------------------------------------------------------------------------------


def read_swf(data: bytes, *, name: str = "trace", lines: int | None = None, limits: bool = True) -> Workload:
    """The jobs of an SWF file, plain or gzip.

    `lines`: only the first so many, comments included. `limits`: jobs that state none are left out. What is left out is
    counted by its reason. Raises InputError, which names the line, the column and the value.
    """
    jobs: list[TracedJob] = []
    left_out: Counter[str] = Counter()
    sizes: dict[str, int] = {}
    seen: set[int] = set()
    for number, line in _lines(data, name, lines):
        if line.startswith(";"):
            found = _HEADER.match(line)
            if found is not None:
                sizes[found[1]] = int(found[2])
            continue
        job = _swf_job(line, number, name, limits=limits)
        if isinstance(job, str):
            left_out[job] += 1
            continue
        if job.number in seen:
            _refuse(name, number, "job number", job.number, "is there twice")
        seen.add(job.number)
        jobs.append(job)
        if len(jobs) > MOST_JOBS:
            _refuse(name, number, "job number", job.number, f"is beyond the {MOST_JOBS:,} jobs that are read")
    whole = ordered(name, jobs, sizes.get("MaxProcs") or sizes.get("MaxNodes"), left_out)
    return replace(whole, jobs=tuple(_without_strangers(whole.jobs)))


def _without_strangers(jobs: Iterable[TracedJob]) -> Iterator[TracedJob]:
    """Nobody waits for a job that was left out, or came later: the submission in the trace is all that is known."""
    before: set[int] = set()
    for job in jobs:
        yield job if job.after is None or job.after in before else replace(job, after=None)
        before.add(job.number)


def _lines(data: bytes, name: str, most: int | None) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(io.BytesIO(unpacked(data, name)), 1):
        if most is not None and number > most:
            return
        if len(line) > _LONGEST_LINE and not line.startswith(b";"):
            _refuse(name, number, "line", line[:60].decode(errors="replace"), f"is longer than {_LONGEST_LINE} bytes")
        text = line[:_LONGEST_LINE].decode(errors="replace").strip()
        if text:
            yield number, text


def unpacked(data: bytes, name: str = "trace") -> bytes:
    """The bytes of a file that may be packed by gzip. Raises InputError for one that is broken or too large."""
    if data[:2] != b"\x1f\x8b":
        if len(data) > MOST_BYTES:
            raise InputError("trace", name, f"is larger than {MOST_BYTES // 2**20} MiB", hint="Cut it, e.g. with head.")
        return data
    unpacker = zlib.decompressobj(wbits=31)
    try:
        found = unpacker.decompress(data, MOST_BYTES + 1)
    except zlib.error as error:
        raise InputError("trace", name, f"is no whole gzip file: {error}", hint="Fetch it again.") from error
    if len(found) > MOST_BYTES:
        hint = "Unpack it and cut it, e.g. with head."
        raise InputError("trace", name, f"is larger than {MOST_BYTES // 2**20} MiB unpacked", hint=hint)
    if not unpacker.eof:
        raise InputError("trace", name, "is no whole gzip file: its end is missing", hint="Fetch it again.")
    return found


def _swf_job(line: str, number: int, name: str, *, limits: bool) -> TracedJob | str:
    """One line; a text says why it is left out."""
    cells = line.split()
    if len(cells) != len(_COLUMNS):
        _refuse(name, number, "line", line[:60], f"has {len(cells)} columns, not {len(_COLUMNS)}")
    value = _values(cells, number, name)
    for column in (0, 1):
        if value[column] < 0:
            _refuse(name, number, _COLUMNS[column], cells[column], "must be known")
    if value[16] >= value[0]:
        _refuse(name, number, _COLUMNS[16], cells[16], "is no job before this one")
    if value[10] in _PARTIAL:
        return PARTIAL
    processors = value[7] if value[7] > 0 else value[4]
    if value[3] < 0:
        return NO_RUN_TIME
    if processors <= 0:
        return NO_PROCESSORS
    if limits and value[8] <= 0:
        return NO_LIMIT
    return TracedJob(
        number=int(value[0]),
        submit=value[1],
        run=value[3],
        processors=int(processors),
        limit=value[8] if value[8] > 0 else None,
        user=cells[11],
        wait=value[2] if value[2] >= 0 else None,
        memory=value[9] * 1024 * processors if value[9] > 0 else None,  # SWF: KB of each processor
        after=int(value[16]) if value[16] > 0 else None,
        name="" if value[13] < 0 else f"executable {cells[13]}",
    )


def _values(cells: Sequence[str], number: int, name: str) -> list[float]:
    """The numbers of one line, -1 for what is not known."""
    found: list[float] = []
    for column, cell in zip(_COLUMNS, cells, strict=True):
        try:
            value = float(cell)
        except ValueError:
            _refuse(name, number, column, cell, "is no number")
        if "_" in cell:  # which Python takes, and no format of numbers does
            _refuse(name, number, column, cell, "is no number")
        if not value >= -1:
            _refuse(name, number, column, cell, "is less than -1, which stands for not known")
        most = _MOST_PROCESSORS if column.endswith("processors") else _LATEST
        if value > most and column not in {"memory used", "requested memory"}:
            _refuse(name, number, column, cell, f"is more than {most:.0e}")
        found.append(value)
    return found


def _refuse(name: str, line: int, column: str, value: object, problem: str) -> NoReturn:
    hint = "Correct or delete the line. One line is one job in the 18 columns of the Standard Workload Format."
    where = f"{name}, line {line}" if column == "line" else f"{name}, line {line}, {column}"
    raise InputError(where, value, problem, hint=hint)


# --- A cluster's own accounting ---------------------------------------------------------------------------------------


def from_accounting(
    records: Iterable[Job], *, name: str = "accounting", unit: Unit = "cpus", processors: int | None = None
) -> Workload:
    """Jobs and array tasks as the accounting has them; `unit` is what is counted as a processor.

    A job's submission is when it could start: what waited for another job, or for a time, was not in the way before.
    Raises InputError where there are more than MOST_JOBS.
    """
    found: list[tuple[datetime, TracedJob]] = []
    left_out: Counter[str] = Counter()
    used: set[int] = set()
    for record in records:
        job = _accounted(record, unit)
        if isinstance(job, str):
            left_out[job] += 1
            continue
        since, traced = job
        number = traced.number if traced.number not in used else -1 - len(used)  # a het component, or a run before
        used.add(number)
        found.append((since, replace(traced, number=number)))
        if len(found) > MOST_JOBS:
            raise InputError(name, str(record.job_id), f"is beyond the {MOST_JOBS:,} jobs that are read")
    begin = min((since for since, _ in found), default=None)
    jobs = (replace(job, submit=(since - begin).total_seconds()) for since, job in found if begin is not None)
    return ordered(name, jobs, processors, left_out)


def _accounted(record: Job, unit: Unit) -> tuple[datetime, TracedJob] | str:
    since = record.eligible or record.submitted
    if record.submitted is not None and since is not None:
        since = max(since, record.submitted)
    if record.active:
        return NOT_OVER
    if record.started is None or since is None:
        return NEVER_STARTED
    run = record.elapsed_seconds
    if run is None or run < 0:
        return NO_RUN_TIME
    asked = record.resources
    size = {"cpus": asked.cpus, "gpus": asked.gpus, "nodes": asked.nodes}[unit]
    if not size or size < 0:
        return NO_GPU if unit == "gpus" else NO_PROCESSORS
    limit = asked.time_limit_seconds
    return since, TracedJob(
        number=record.raw_id if record.raw_id is not None else record.job_id.base,
        submit=0.0,
        run=float(run),
        processors=size,
        limit=float(limit) if limit is not None and limit > 0 else None,
        user=record.user or "",
        wait=max(0.0, (record.started - since).total_seconds()),
        memory=float(asked.memory_bytes) if asked.memory_bytes is not None else None,
        name=record.name,
    )
