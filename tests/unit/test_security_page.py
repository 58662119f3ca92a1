"""The table of SECURITY.md names, for every attacker and set-up, tests that there are."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from tests.behaviours import BEHAVIOURS

ROOT = Path(__file__).parents[2]
ATTACKERS = (
    "a model with the tools",
    "a job or shell of the same user",
    "another user of the machine",
    "a hostile project",
    "a log, or another text of a job",
)
SET_UPS = ("program", "policy", "floor", "service")


def rows() -> dict[tuple[str, str], list[str]]:
    """What holds, what does not and what shows it, by attacker and set-up."""
    lines = [line for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(row[0], row[1]): row[2:] for row in cells if row[0] in ATTACKERS}


@pytest.fixture(scope="module")
def tests() -> set[str]:
    """The names of all tests."""
    found = set[str]()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if {"node_modules", ".venv"} & set(path.parts):
            continue
        found |= set(re.findall(r"^ *(?:async )?def (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    return found


def test_every_attacker_meets_every_set_up():
    assert sorted(rows()) == sorted(product(ATTACKERS, SET_UPS))


@pytest.mark.parametrize("row", list(product(ATTACKERS, SET_UPS)), ids=" - ".join)
def test_each_row_says_what_holds_and_what_does_not_and_names_tests_that_there_are(
    row: tuple[str, str], tests: set[str]
):
    holds, does_not, shown = rows()[row]
    named = re.findall(r"`([^`]+)`", shown)

    assert (holds.endswith("."), does_not.endswith(".")) == (True, True)
    assert named
    assert [name for name in named if name not in BEHAVIOURS and name not in tests] == []


def test_the_page_of_attacks_says_what_happens_now_and_names_tests_that_there_are(tests: set[str]):
    page = (ROOT / "docs/reference/attacks.md").read_text(encoding="utf-8")
    attacks = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    told = [row for row in attacks if row[1].strip() != "now"]

    assert len(told) >= 80
    assert {len(row) for row in attacks} == {3}
    assert [row[0] for row in told if not row[1].strip()] == []
    assert sorted(set(re.findall(r"`(test_\w+)`", page)) - tests) == []
