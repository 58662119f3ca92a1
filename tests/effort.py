"""How much tests by chance try: all of it under `make test`, a quarter under `make check`, which sets SHORT_TESTS."""

from __future__ import annotations

import os

PART = 4 if os.environ.get("SHORT_TESTS") else 1


def tries(many: int) -> int:
    """How many of so many seeds, examples or lines made by chance are tried."""
    return max(3, many // PART)
