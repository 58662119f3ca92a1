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
    """Keep what a real Slurm showed; scenarios that broke are an error."""
    broken = {name: one for name, one in seen.items() if isinstance(one, str)}
    if broken:
        raise AssertionError(f"not recorded: {broken}")
    _FOLDER.mkdir(exist_ok=True)
    text = json.dumps(plain(seen), indent=1, sort_keys=True, ensure_ascii=False)
    (_FOLDER / f"{version}.json").write_text(text + "\n")


@cache
def load(version: str) -> dict[str, Seen]:
    """What was kept of a version."""
    found: dict[str, Seen] = json.loads((_FOLDER / f"{version}.json").read_text())
    return found
