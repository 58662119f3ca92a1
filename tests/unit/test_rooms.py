"""The house as it is drawn: scripts/rooms.py over the imports of the source."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "modules.md"


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("drawn_rooms", ROOT / "scripts" / "rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its records look for their types
    spec.loader.exec_module(module)
    return module


def test_the_house_breaks_none_of_its_rules(drawing: ModuleType) -> None:
    reasons = drawing.reasons(drawing.REASONS.read_text(encoding="utf-8"))
    assert drawing.complaints(drawing.read(), reasons) == []


def test_the_page_of_modules_is_the_one_that_is_drawn(drawing: ModuleType) -> None:
    assert PAGE.read_text(encoding="utf-8") == drawing.page(drawing.read()), f"scripts/rooms.py --page > {PAGE.name}"


def test_circles_shared_names_and_lone_readers_are_noticed(drawing: ModuleType) -> None:
    house = drawing.House(
        {"a.one": 100, "b.two": 7001, "a.errors": 90},
        {"a.one": frozenset({"b.two"}), "b.two": frozenset({"a.one", "a.errors"}), "a.errors": frozenset()},
        {"a": frozenset({"b"}), "b": frozenset({"a"})},
    )
    told = " ".join(drawing.complaints(house, {"gone.module"}, names=[]))
    assert "a can be reached from itself" in told
    assert "b has 7001 lines" in told
    assert "a.one is imported by b.two alone" in told
    assert "gone.module has a reason" in told
