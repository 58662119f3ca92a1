"""The rooms of the source and their rules: scripts/rooms.py over the imports of the source."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from tests.unit.shipped_scripts import script

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "modules.md"


@pytest.fixture(scope="module")
def layouts() -> ModuleType:
    return script("rooms")


def test_the_source_breaks_no_rule(layouts: ModuleType) -> None:
    reasons = layouts.reasons(layouts.REASONS.read_text(encoding="utf-8"))
    assert layouts.violations(layouts.read(), reasons) == []


def test_the_committed_page_of_modules_is_the_generated_one(layouts: ModuleType) -> None:
    assert PAGE.read_text(encoding="utf-8") == layouts.page(layouts.read()), f"scripts/rooms.py --page > {PAGE.name}"


def test_circles_shared_names_and_lone_readers_are_noticed(layouts: ModuleType) -> None:
    layout = layouts.SourceLayout(
        {"a.one": 100, "b.two": 7001, "a.errors": 90},
        {"a.one": frozenset({"b.two"}), "b.two": frozenset({"a.one", "a.errors"}), "a.errors": frozenset()},
        {"a": frozenset({"b"}), "b": frozenset({"a"})},
    )
    told = " ".join(layouts.violations(layout, {"gone.module"}, names=[]))
    assert "a can be reached from itself" in told
    assert "b has 7001 lines" in told
    assert "a.one is imported by b.two alone" in told
    assert "gone.module has a reason" in told
