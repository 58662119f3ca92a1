"""squeue: every job in one call, with columns that are asked for by name; and the queue as its one answer.

Every row is checked, a record is made of those rows that somebody looks at: making 20,000 records takes longer than
squeue itself. Rows are kept as texts by column: as many small containers would make the interpreter look for garbage
again and again.
"""

from __future__ import annotations

import re
from codecs import IncrementalDecoder, getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from sys import intern
from typing import TypeVar, overload

from slurm_agent_tools.models.job import ACTIVE_STATES, Job, token_in
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.slurm.commands.columns import SEPARATOR, garbled
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import parse_array, parse_elapsed, parse_job_id, parse_time

# squeue(1), -o: %i job id, %A raw id, %u user, %P partition, %T state, %r reason, %V submitted, %e end, %S start,
# %l limit, %M elapsed, %N nodes, %n nodes of --nodelist, %D node count, %C CPUs, %E dependency, %k comment, %j name.
# A name may hold a newline, so an id comes behind it.
_HEAD = {"id": "%i", "raw": "%A", "user": "%u", "partition": "%P", "state": "%T"}
"""What is looked at in every row."""

_REST = {
    "reason": "%r", "submitted": "%V", "start": "%S", "end": "%e", "limit": "%l", "elapsed": "%M", "nodes": "%N",
    "required_nodes": "%n", "node_count": "%D", "cpus": "%C", "dependency": "%E",
}  # fmt: skip

_OF_USERS = {"comment": "%k", "name": "%j"}

COLUMNS = (*_HEAD, *_REST, *_OF_USERS, "again")

INNER = "\x1e"
"""Between the columns of head and rest: what Slurm itself writes there holds no control character."""

ENVIRONMENT = {"TZ": "UTC0"}
"""Times are printed as seconds. With a zone squeue looks it up for every one: a quarter of its time."""

_PARTS = 2 + len(_OF_USERS)  # separators of a row: behind the head, the rest, and what users write

_LONGEST = 2**20  # characters of one cell

_ID = re.compile(r"[1-9]\d*(?:_\d+|\+\d+|_\[[^\]]+\])?", re.ASCII)

_STATE = re.compile(r"[A-Z][A-Z_]*")


def argv(mark: str = "") -> list[str]:
    """All users' jobs, those that ended lately included. `mark`: hexadecimal, new in every call.

    Only what users write, comment and name, stands between marked separators. They come by their numbers: squeue's own
    order takes it longer to make.
    """
    parts = [INNER.join(_HEAD.values()), INNER.join(_REST.values()), *_OF_USERS.values(), _HEAD["raw"]]
    columns = f"{SEPARATOR}{mark}".join(parts)
    return ["squeue", "--noheader", "--states=all", "--sort=i", f"--format={columns}"]


_TICKET = re.compile(r"(\d+) +([0-9a-f]{32}):", re.ASCII)


def tickets_argv(user: str) -> list[str]:
    """The beginning of what the controller's plugin wrote for a user's jobs, and nothing that a user writes."""
    return ["squeue", "--noheader", "--states=all", f"--user={user}", "--Format=ArrayJobID:20,admin_comment:33"]


def parse_tickets(done: Completed) -> dict[str, int]:
    """The jobs that were let in with a ticket, by the ticket's number. Raises SlurmUnreachable and SlurmGarbled."""
    columns.check(done)
    found = (_TICKET.fullmatch(line.strip()) for line in columns.text(done.stdout).split("\n"))
    return {one[2]: int(one[1]) for one in found if one is not None}


def parse(done: Completed, now: datetime) -> Queue:
    """One row a job or part of one. Raises SlurmUnreachable and SlurmGarbled; a record may raise it later.

    An end behind `now` is what squeue expects, by the time limit, and not known yet.
    """
    return QueueReader(columns.separator(done.argv)).queue(done, now)


@dataclass(slots=True)
class Columns:
    """All rows of one answer, and the records that were made of them by the job's id."""

    ids: list[str] = field(default_factory=list)
    raws: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    rests: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    made: dict[str, Job] = field(default_factory=dict)


@dataclass(slots=True)
class QueueReader:
    """Reads rows while squeue prints them. Of 20,000 both take long, and reading keeps nobody else waiting so."""

    separator: str
    _columns: Columns = field(default_factory=Columns)
    _decoder: IncrementalDecoder = field(default_factory=partial(getincrementaldecoder("utf-8"), "backslashreplace"))
    _cells: list[str] = field(default_factory=list)
    _rest: str = "\n"
    _number: str = ""
    _fed: int = 0
    _wrong: str | None = None

    def feed(self, data: bytes) -> None:
        """The next bytes of its output. What does not fit is told by `queue`."""
        self._fed += len(data)
        if self._wrong is not None:
            return
        *cells, self._rest = (self._rest + self._decoder.decode(data)).split(self.separator)
        cells = self._cells + cells
        whole = len(cells) - len(cells) % _PARTS
        seams, rests = cells[:whole:_PARTS], cells[1:whole:_PARTS]
        if seams and not self._keep(seams, rests):
            self._wrong = next(seam for seam, rest in zip(seams, rests, strict=True) if not self._keep([seam], [rest]))
            return
        self._columns.comments += cells[2:whole:_PARTS]
        self._columns.names += cells[3:whole:_PARTS]
        self._cells = cells[whole:]
        if len(self._rest) > _LONGEST:
            self._wrong = self._rest

    def _keep(self, seams: Sequence[str], rests: Sequence[str]) -> bool:
        """Rows that are whole, column by column, which takes half the time of row by row; False if one does not fit.

        An id and the next row's head share a cell, as a name may hold a newline.
        """
        fits = {seam.count(INNER) for seam in seams} == {len(_HEAD) - 1} and {seam.count("\n") for seam in seams} == {1}
        if not fits or {rest.count(INNER) for rest in rests} != {len(_REST) - 1}:
            return False
        cells, width = INNER.join(seams).replace("\n", INNER).split(INNER), len(_HEAD) + 1
        before, ids, raws = cells[::width], cells[1::width], cells[2::width]
        pairs = zip(ids, raws, strict=True)
        bases = [int(raw) if name == raw and raw.isdecimal() else _base(name, raw) for name, raw in pairs]
        if before != [self._number, *raws[:-1]] or 0 in bases:
            return False
        rows, self._number = self._columns, raws[-1]
        rows.ids += ids
        rows.raws += raws
        rows.users += map(intern, cells[3::width])
        rows.partitions += map(intern, cells[4::width])
        rows.states += map(intern, cells[5::width])
        rows.bases += bases
        rows.rests += rests
        return True

    def queue(self, done: Completed, now: datetime) -> Queue:
        """All rows, once squeue has ended; what it was not fed is read now. Raises as `parse`."""
        columns.check(done)
        if done.truncated:
            raise garbled(done, "the answer is longer than can be read")
        if not self._fed:
            self.separator = columns.separator(done.argv)
        self.feed(done.stdout[self._fed :])
        states = self._columns.states
        if self._wrong is None and (self._cells or self._rest.strip("\n") != self._number):
            self._wrong = columns.text(done.stdout[-300:])
        for state in set(states) if self._wrong is None else ():
            if _STATE.fullmatch(columns.state_word(state)) is None:
                self._wrong = f"{state} (of {self._columns.ids[states.index(state)]})"
        if self._wrong is not None:
            raise garbled(done, self._wrong)
        return Queue(self._columns, partial(_record, replace(done, stdout=b""), now))


def _record(done: Completed, now: datetime, rows: Columns, row: int) -> Job:
    head = (rows.ids[row], rows.raws[row], rows.users[row], rows.partitions[row], rows.states[row])
    cells = (*head, *rows.rests[row].split(INNER), rows.comments[row], rows.names[row], "")
    try:
        return _job(dict(zip(COLUMNS, cells, strict=True)), now)
    except (ValueError, KeyError) as error:
        raise garbled(done, f"{'|'.join(cells)} ({error})") from error


def _job(cell: dict[str, str], now: datetime) -> Job:
    state = columns.state_word(cell["state"])
    started, end = parse_time(cell["start"]), parse_time(cell["end"])
    pending = state == "PENDING"
    elapsed = None if pending else parse_elapsed(cell["elapsed"])
    return Job(
        job_id=parse_job_id(cell["id"]),
        name=cell["name"],
        state=state,
        sources=("squeue",),
        raw_state=cell["state"],
        user=cell["user"],
        partition=cell["partition"],
        reason=columns.reason(cell["reason"], state, started=started is not None),
        submitted=parse_time(cell["submitted"]),
        started=None if pending or columns.never_ran(state, cell["nodes"], elapsed) else started,
        expected_start=started if pending else None,
        ended=end if end is not None and end <= now and state not in _GOING else None,
        elapsed_seconds=None if elapsed is None else round(elapsed),
        nodes=cell["nodes"] or None,
        required_nodes=columns.stated(cell["required_nodes"]),
        resources=Resources(
            partition=cell["partition"],
            nodes=int(cell["node_count"].split("-")[0]),
            cpus=int(cell["cpus"]),
            time_limit_seconds=columns.time_limit(cell["limit"]),
        ),
        dependency=columns.stated(cell["dependency"]),
        comment=columns.stated(cell["comment"].strip()),
        raw_id=int(cell["raw"]),
    )


_GOING = {"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED"}


# --- The queue as one answer ------------------------------------------------------------------------------------------

_FREE = (f"{INNER}(null)", INNER)  # how the rest of a job ends that waits for no other


Make = Callable[[Columns, int], Job]

T = TypeVar("T")


def _tasks(name: str) -> int:
    """How many tasks a row as `9_[2-50%4]` stands for; one where it cannot be read."""
    try:
        return parse_array(name.partition("_")[2]).count
    except ValueError:
        return 1


class Queue(Sequence[Job]):
    """Rows of the queue as jobs. `make` makes the record of a row; each is made once."""

    def __init__(self, columns: Columns, make: Make, rows: Sequence[int] | None = None) -> None:
        self._columns, self._make = columns, make
        self._rows = range(len(columns.ids)) if rows is None else rows
        self._of: dict[str, Queue] = {}
        self._going: dict[bool, Queue] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Job]:
        return map(self._job, self._rows)

    @overload
    def __getitem__(self, index: int) -> Job: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Job, ...]: ...

    def __getitem__(self, index: int | slice) -> Job | tuple[Job, ...]:
        if isinstance(index, slice):
            return tuple(map(self._job, self._rows[index]))
        return self._job(self._rows[index])

    def _job(self, row: int) -> Job:
        name, made = self._columns.ids[row], self._columns.made
        if name not in made:
            made[name] = self._make(self._columns, row)
        return made[name]

    def of(self, user: str) -> Queue:
        """One user's rows."""
        if user not in self._of:
            users = self._columns.users
            self._of[user] = Queue(self._columns, self._make, [row for row in self._rows if users[row] == user])
        return self._of[user]

    def going(self, *, on: bool = True) -> Queue:
        """The rows of jobs that go on, or of those that are over."""
        if on not in self._going:
            states = self._columns.states
            words = {raw for raw in self._raw_states if (columns.state_word(raw) in ACTIVE_STATES) is on}
            self._going[on] = Queue(self._columns, self._make, [row for row in self._rows if states[row] in words])
        return self._going[on]

    @property
    def nobody_waits(self) -> bool:
        """True where no job of anybody is pending, as far as squeue shows."""
        return "PENDING" not in map(columns.state_word, set(self._columns.states))

    def states(self) -> Counter[str]:
        """How many rows are in each state."""
        counts: Counter[str] = Counter()
        for raw, number in self._raw_states.items():
            counts[columns.state_word(raw)] += number
        return counts

    def by_partition(self) -> Counter[tuple[str, str]]:
        """How many jobs are in each partition and state; one that named several counts in all of them together.

        Of an array each task counts, also where a row stands for many that wait.
        """
        states, partitions, ids = self._columns.states, self._columns.partitions, self._columns.ids
        counts: Counter[tuple[str, str]] = Counter()
        pairs = zip(self._here(partitions), self._here(states), strict=True)
        for (partition, raw), number in Counter(pairs).items():
            counts[partition, columns.state_word(raw)] += number
        for row in self._rows:
            if "[" in ids[row]:
                counts[partitions[row], columns.state_word(states[row])] += _tasks(ids[row]) - 1
        return counts

    @cached_property
    def _raw_states(self) -> Counter[str]:
        return Counter(self._here(self._columns.states))

    def _here(self, column: list[T]) -> list[T]:
        """The cells of one column in these rows."""
        return column if len(self._rows) == len(column) else [column[row] for row in self._rows]

    def jobs(self, bases: Iterable[int]) -> tuple[Job, ...]:
        """The records of these jobs with all their parts."""
        wanted = tuple(bases)
        if not wanted:
            return ()
        whole = self._by_id
        rows_of_jobs = [[whole[name]] if (name := str(base)) in whole else self._parts.get(base, []) for base in wanted]
        return tuple(self._job(row) for rows in rows_of_jobs for row in rows)

    def newest(self, most: int) -> list[int]:
        """The highest numbers of jobs here, the lowest of them first."""
        return sorted(self.bases)[-most:] if most > 0 else []

    @cached_property
    def bases(self) -> frozenset[int]:
        """The numbers of all jobs here; tasks and components have that of their job."""
        return frozenset(self._here(self._columns.bases))

    @property
    def singles(self) -> tuple[frozenset[int], Queue]:
        """The numbers of single jobs that wait for no other, and the rows of all that is more than that."""
        ids, rests, bases = self._columns.ids, self._columns.rests, self._columns.bases
        single: set[int] = set()
        rest: list[int] = []
        for row in self._rows:
            if ids[row].isdecimal() and rests[row].endswith(_FREE):
                single.add(bases[row])
            else:
                rest.append(row)
        return frozenset(single), Queue(self._columns, self._make, rest)

    @cached_property
    def _by_id(self) -> dict[str, int]:
        """Id -> row, made in one step: of 20,000 jobs it would else take as long as to read them all."""
        return dict(zip(self._here(self._columns.ids), self._rows, strict=True))

    @cached_property
    def _parts(self) -> dict[int, list[int]]:
        """Number -> rows, of arrays and of jobs with components."""
        found: dict[int, list[int]] = {}
        ids, bases = self._columns.ids, self._columns.bases
        for row in self._rows:
            if not ids[row].isdecimal():
                found.setdefault(bases[row], []).append(row)
        return found

    def commented(self, token: str) -> Job | None:
        """The job with this submission's token in its comment."""
        comments = self._columns.comments
        rows = (row for row in self._rows if token in comments[row])
        return next((self._job(row) for row in rows if token_in(comments[row]) == token), None)


def _base(name: str, raw: str) -> int:
    """The number that `9`, `9_2`, `9_[3-5]` and `9+1` share; 0 for what is no id."""
    if not raw.isdecimal() or _ID.fullmatch(name) is None:
        return 0
    return int(name.replace("+", "_").partition("_")[0])
