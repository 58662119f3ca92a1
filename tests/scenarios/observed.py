"""What real Slurms of each version showed in the scenarios, kept beside this file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.scenarios.bench import Seen

_FOLDER = Path(__file__).parent / "observed"
Observed = Mapping[str, Seen | str]


def plain(seen: object) -> Any:
    """As it is after it was written and read."""
    return json.loads(json.dumps(seen, sort_keys=True, default=list))


def save(version: str, seen: Observed) -> None:
    """Keep what a real Slurm showed; of a scenario that broke, what was kept before stays."""
    path = _FOLDER / f"{version}.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    kept = {name: before.get(name) if isinstance(one, str) else plain(one) for name, one in seen.items()}
    path.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


@cache
def load(version: str) -> dict[str, Seen]:
    """What was kept of a version."""
    found: dict[str, Seen] = json.loads((_FOLDER / f"{version}.json").read_text())
    return found
