"""An event loop in which no real time passes: its clock jumps to the next moment that somebody waits for.

It jumps as soon as nobody has anything to do, threads included, so that every sleep, time limit and deadline of anyio
is met in its order, and `passed()` tells exactly when. For tests whose commands are answered in memory.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec

import anyio
import anyio.to_thread
from tests.watchdog import SECONDS, Hung

P = ParamSpec("P")
_BEGUN = datetime(2026, 3, 1, 12, tzinfo=UTC)
_LOOK = 0.02  # real seconds between two looks at threads that work


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Waits for nothing but threads: where the loop would sleep, time moves on."""

    jump: Callable[[float], bool]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is not None and self.jump(timeout):
            return []
        if timeout is not None:
            return super().select(_LOOK)
        ready = super().select(SECONDS)
        if not ready:
            raise Hung("everybody waits, and nobody for a time")
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time begins at 0 and moves only when everybody waits."""

    def __init__(self) -> None:
        selector = _Selector()
        selector.jump = self._jump
        self.limiter: anyio.CapacityLimiter | None = None
        self._passed = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return self._passed

    def _jump(self, seconds: float) -> bool:
        if self.limiter is None or self.limiter.borrowed_tokens:  # a thread works: what it does takes no time either
            return False
        self._passed += seconds
        return True


class VirtualClock:
    """The clock of the seam in such a loop."""

    def now(self) -> datetime:
        return _BEGUN + timedelta(seconds=passed())

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def passed() -> float:
    """Seconds since the test began, by its own clock."""
    return asyncio.get_running_loop().time()


def in_no_time(test: Callable[P, Awaitable[Any]]) -> Callable[P, None]:
    """Run a test in a loop of its own in which no real time passes."""

    async def limited(*args: P.args, **kwargs: P.kwargs) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.limiter = anyio.to_thread.current_default_thread_limiter()
        await test(*args, **kwargs)

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(limited(*args, **kwargs))

    return run
