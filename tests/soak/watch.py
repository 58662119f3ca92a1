"""Looks at the live queue many times a second and counts slots by itself, without any code of the guard."""

from __future__ import annotations

import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from tests.system.faces import Place

ACTIVE = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED"}
ARGV = ["squeue", "-h", "--me", "-t", "all", "-o", "%F\t%i\t%T\t%E\t%k\t%j"]


@dataclass(frozen=True)
class Row:
    """One line of the queue: a job, or tasks of an array that are in the same state."""

    base: int
    shown: str
    state: str
    waits: frozenset[int]
    comment: str
    name: str


def rows(text: str) -> list[Row]:
    found = []
    for line in text.splitlines():
        base, shown, state, waits, comment, name = line.split("\t")
        parents = frozenset(int(number) for number in re.findall(r"after\w+:(\d+)", waits))
        found.append(Row(int(base), shown, state, parents, comment, name))
    return found


def tasks(shown: str) -> tuple[int, int | None]:
    """How many tasks one line stands for, and their throttle: `12_[0-3,7%2]` is (5, 2)."""
    inside = re.search(r"_\[([^%\]]*)(?:%(\d+))?\]", shown)
    if inside is None:
        return 1, None
    ends = [part.partition("-") for part in inside[1].split(",")]
    count = sum(int(last or first) - int(first) + 1 for first, _, last in ends)
    return count, int(inside[2]) if inside[2] else None


def slots(queue: Iterable[Row]) -> int:
    """Running and pending jobs; an array by min(tasks, throttle); the first that waits for a job shares its slot."""
    count: Counter[int] = Counter()
    throttle: dict[int, int] = {}
    waits: dict[int, frozenset[int]] = {}
    for row in queue:
        if row.state in ACTIVE:
            number, limit = tasks(row.shown)
            count[row.base] += number
            throttle |= {row.base: limit} if limit else {}
            waits[row.base] = waits.get(row.base, frozenset()) | row.waits
    width = {base: min(number, throttle.get(base, number)) for base, number in count.items()}
    chain: dict[int, int] = {}  # job -> the first of its chain
    heirs: set[int] = set()
    for base in sorted(width):
        free = [parent for parent in sorted(waits[base]) if parent in chain and parent not in heirs]
        heirs.update(free[:1])
        chain[base] = chain[free[0]] if free else base
    widest: Counter[int] = Counter()
    for base, first in chain.items():
        widest[first] = max(widest[first], width[base])
    return widest.total()


@dataclass
class Watch:
    """Samples the queue in a thread of its own from `with` to the end of the block."""

    place: Place
    pause: float = 0.05
    samples: int = 0
    peak: int = 0
    running: int = 0
    last: str = ""
    over: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    jobs: dict[int, Row] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _watch(self) -> None:
        while not self._done.wait(self.pause):
            self.sample()
        self.sample()

    def sample(self) -> None:
        done = subprocess.run(
            self.place.cluster.as_user(ARGV), capture_output=True, env=self.place.environment(), timeout=60, check=False
        )
        if done.returncode != 0:
            self.failures.append(done.stderr.decode())
            return
        text = done.stdout.decode()
        queue = rows(text)
        taken = slots(queue)
        self.samples, self.last = self.samples + 1, text
        self.peak = max(self.peak, taken)
        self.running = max(self.running, sum(row.state == "RUNNING" for row in queue))
        self.jobs |= {row.base: row for row in queue}
        if taken > 4:
            self.over.append(text)
