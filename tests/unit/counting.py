"""What work costs, told by the number of calls: the same on a busy machine as on a quiet one."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from typing import TypeVar

from tests.watchdog import ends

T = TypeVar("T")


def counted(work: Callable[[], T], *, written_in_c: bool = True) -> tuple[T, int]:
    """What it returns, and how many functions and methods it called in this thread; not to count those in C is faster."""
    profile = cProfile.Profile(subcalls=False, builtins=written_in_c)
    with ends():
        found = profile.runcall(work)
    return found, sum(entry.callcount for entry in profile.getstats())
