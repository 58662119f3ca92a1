"""The parts in which the tests run beside each other: every test is in one of them, and in one only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from scripts.test import CHECK, COMPUTING, ELSEWHERE, EVERYTHING, ROOT, Part

FILES = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts]


def runs(part: Part, file: Path) -> bool:
    """As pytest reads its words: what is ignored counts below a path, and not where it is that path itself."""
    inside = [path for path in part.paths if file.is_relative_to(path)]
    return any(
        not any(file.is_relative_to(left) and left != path and Path(left).is_relative_to(path) for left in part.ignored)
        for path in inside
    )


@pytest.mark.parametrize(("parts", "of"), [(EVERYTHING, ("tests",)), (CHECK, COMPUTING)], ids=["test", "check"])
def test_every_file_of_tests_is_in_one_part_and_in_one_only(parts: Sequence[Part], of: Sequence[str]) -> None:
    files = [
        file for file in FILES if any(map(file.is_relative_to, of)) and not any(map(file.is_relative_to, ELSEWHERE))
    ]
    assert len(files) > 100
    times = {str(file): sum(runs(part, file) for part in parts) for file in files}
    assert {name: count for name, count in times.items() if count != 1} == {}


def test_what_a_part_names_is_there() -> None:
    named = {path for part in (*EVERYTHING, *CHECK) for path in (*part.paths, *part.ignored)}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
