"""How much tests by chance and over long times try: all under `make test`, a quarter under `make check` (SHORT_TESTS)."""

from __future__ import annotations

import os

PART = 4 if os.environ.get("SHORT_TESTS") else 1


def tries(many: int) -> int:
    """How many of so many seeds, examples or lines made by chance are tried."""
    return max(3, many // PART)


def whole(many: int) -> range:
    """Which of so many simulations are played, each of which tells something alone."""
    return range(max(1, many // PART))
