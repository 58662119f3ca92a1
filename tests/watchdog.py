"""Ends a test that hangs. The limit is far beyond what anything takes on a busy machine: nothing is measured with it."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import anyio

SECONDS = 60.0


class Hung(BaseException):
    """What should have ended, or come about, long ago did not."""


@contextmanager
def ends(seconds: float = SECONDS) -> Iterator[None]:
    """End what computes in this block after so many processor seconds, inside of a regular expression too."""

    def stop(*_: object) -> None:
        raise Hung(f"it ran on for {seconds:g} s of the processor")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def until(true: Callable[[], object], what: object = "") -> None:
    """Wait for what another process brings about."""
    end = time.monotonic() + SECONDS
    while not true():
        if time.monotonic() > end:
            raise Hung(what or true)
        time.sleep(0.01)


async def eventually(true: Callable[[], object], what: object = "") -> None:
    """The same in a test that waits; others go on meanwhile."""
    with anyio.move_on_after(SECONDS):
        while not true():  # noqa: ASYNC110 - what is waited for cannot tell
            await anyio.sleep(0.01)
        return
    raise Hung(what or true)


async def answer(work: Callable[[], Awaitable[None]]) -> None:
    """Await this; Hung where it does not end."""
    with anyio.move_on_after(SECONDS):
        await work()
        return
    raise Hung(work)
