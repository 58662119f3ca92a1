"""The queue as one answer of squeue: every row is checked, a record is made of those rows that somebody looks at.

Making 20,000 records takes longer than squeue itself. Rows are kept as texts by column: as many small containers
would make the interpreter look for garbage again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

from slurm_agent_tools.models.job import ACTIVE_STATES, Job, token_in
from slurm_agent_tools.slurm.commands.columns import state_word

_FREE = ("\x1e(null)", "\x1e")  # how the head of a job ends that waits for no other


@dataclass(slots=True)
class Columns:
    """All rows of one answer, and the records that were made of them by the job's id."""

    heads: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    made: dict[str, Job] = field(default_factory=dict)


Make = Callable[[Columns, int], Job]


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
            words = {raw for raw in self._raw_states if (state_word(raw) in ACTIVE_STATES) is on}
            self._going[on] = Queue(self._columns, self._make, [row for row in self._rows if states[row] in words])
        return self._going[on]

    def states(self) -> Counter[str]:
        """How many rows are in each state."""
        counts: Counter[str] = Counter()
        for raw, number in self._raw_states.items():
            counts[state_word(raw)] += number
        return counts

    @cached_property
    def _raw_states(self) -> Counter[str]:
        states = self._columns.states
        return Counter([states[row] for row in self._rows])

    def jobs(self, bases: Iterable[int]) -> tuple[Job, ...]:
        """The records of these jobs with all their parts."""
        wanted = tuple(bases)
        if not wanted:
            return ()
        single, rest = self._sorted
        rows_of_jobs = [[single[base]] if base in single else rest.get(base, []) for base in wanted]
        return tuple(self._job(row) for rows in rows_of_jobs for row in rows)

    @cached_property
    def bases(self) -> frozenset[int]:
        """The numbers of all jobs here; tasks and components have that of their job."""
        single, rest = self._sorted
        return frozenset(single) | rest.keys()

    @property
    def singles(self) -> tuple[frozenset[int], Queue]:
        """The numbers of single jobs that wait for no other, and the rows of all that is more than that."""
        single, rest = self._sorted
        return frozenset(single), Queue(self._columns, self._make, [row for rows in rest.values() for row in rows])

    @cached_property
    def _sorted(self) -> tuple[dict[int, int], dict[int, list[int]]]:
        """Number -> row of single jobs that wait for no other, and number -> rows of all others."""
        ids, heads = self._columns.ids, self._columns.heads
        single: dict[int, int] = {}
        rest: dict[int, list[int]] = {}
        for row in self._rows:
            name = ids[row]
            if name.isdecimal() and heads[row].endswith(_FREE):
                single[int(name)] = row
            else:
                rest.setdefault(_base(name), []).append(row)
        return single, rest

    def commented(self, token: str) -> Job | None:
        """The job with this submission's token in its comment."""
        comments = self._columns.comments
        rows = (row for row in self._rows if token in comments[row])
        return next((self._job(row) for row in rows if token_in(comments[row]) == token), None)


def _base(name: str) -> int:
    return int(name.replace("+", "_").partition("_")[0])
