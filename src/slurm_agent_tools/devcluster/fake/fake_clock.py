"""A clock that only moves when somebody sleeps or tells it to; no real time passes."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime

import anyio
import anyio.lowlevel
import anyio.to_thread

START = datetime(2025, 6, 2, 8, 0, tzinfo=UTC)
"""Before every real now: parsers leave out ends that lie in the future of this machine."""

_ROUNDS, _QUIET = 50, 3  # of the event loop, in which all others who can go on do so; of them with nobody who could

_LOOKS, _LOOK = (
    2000,
    0.001,
)  # at threads that work, and real seconds between two; one that waits for us is not waited for


class FakeClock:
    """The seam's Clock, in memory.

    Whoever sleeps moves the time on, to the earliest moment that anybody waits for, once nobody else has anything to
    do. With `steady=True` only `advance` moves it: sleepers wait until the test is done with a moment.
    """

    def __init__(self, start: datetime = START, *, steady: bool = False) -> None:
        self._seconds = start.timestamp()
        self._steady = steady
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._sleepers: dict[int, anyio.Event] = {}
        self._moved_on = False

    @property
    def seconds(self) -> float:
        """Seconds since 1970."""
        return self._seconds

    def now(self) -> datetime:
        """UTC now."""
        return datetime.fromtimestamp(self._seconds, UTC)

    def call_at(self, seconds: float, action: Callable[[], None]) -> None:
        """Run `action` when the time comes; those of one moment run in the order in which they were asked for."""
        heapq.heappush(self._due, (max(seconds, self._seconds), next(self._order), action))

    async def sleep(self, seconds: float) -> None:
        """Wait until the time has come."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        due, key = self._seconds + seconds, next(self._order)
        self.call_at(due, lambda: self._stir(key))
        try:
            while self._seconds < due:
                self._sleepers[key] = anyio.Event()
                if self._steady or self._moved_on:
                    await self._sleepers[key].wait()
                else:
                    await self._move_on(due)
        finally:
            self._sleepers.pop(key, None)
            if self._sleepers and not self._moved_on:
                self._stir(next(iter(self._sleepers)))

    async def _move_on(self, due: float) -> None:
        """Of all sleepers one moves the time, so that those who are woken act before it goes on."""
        self._moved_on = True
        try:
            while self._seconds < due:
                await _everybody_else()
                if self._seconds < due:
                    self.move(self._due[0][0] - self._seconds)
        finally:
            self._moved_on = False

    def _stir(self, key: int) -> None:
        if key in self._sleepers:
            self._sleepers[key].set()

    async def advance(self, seconds: float) -> None:
        """Let so much time pass: all that is due happens in its order, and sleepers wake in time."""
        await _everybody_else()  # who was only just started falls asleep now, not when the time has passed
        end = self._seconds + seconds
        while self._due and self._due[0][0] <= end:
            self.move(self._due[0][0] - self._seconds)
            await _everybody_else()
        self._seconds = max(self._seconds, end)
        await _everybody_else()

    def move(self, seconds: float) -> None:
        """As `advance`, for code that waits for nothing; sleepers go on when the event loop comes round to them."""
        end = self._seconds + max(0.0, seconds)
        while self._due and self._due[0][0] <= end:
            moment, _, action = heapq.heappop(self._due)
            self._seconds = max(self._seconds, moment)
            action()
        self._seconds = max(self._seconds, end)


async def _everybody_else() -> None:
    """Until nobody has anything to do, threads included: what the ledger writes takes no time of this clock."""
    threads = anyio.to_thread.current_default_thread_limiter()
    for _ in range(_LOOKS):
        await _rounds()
        if not threads.borrowed_tokens:
            return
        await anyio.sleep(_LOOK)


async def _rounds() -> None:
    """Let others go on, until nobody has for a few rounds: the loop is asked what it runs next, we are not in it."""
    following = getattr(asyncio.get_running_loop(), "_ready", (None,))  # of another kind of loop nothing is known
    quiet = 0
    for _ in range(_ROUNDS):
        await anyio.lowlevel.checkpoint()
        quiet = 0 if following else quiet + 1
        if quiet == _QUIET:
            return
