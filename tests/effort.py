"""How much is tried of what takes long: all under `make test`, about an eighth under `make check` (SHORT_TESTS).

That is what is made by chance, goes on over long times, or is one of many that were made to be slow in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

PART = 8 if os.environ.get("SHORT_TESTS") else 1


def tries(many: int) -> int:
    """How many of so many seeds, examples or lines made by chance are tried."""
    return max(3, many // PART)


def some(cases: Sequence[T]) -> Sequence[T]:
    """Which of these many cases of one kind are tried: the first, and others far apart."""
    return cases[::PART]


def whole(many: int) -> range:
    """Which of so many simulations are played, each of which tells something alone."""
    return range(max(1, many // PART))
