"""`make coverage` fails for every limit that is not held, and for every exception that nobody needs."""

from pathlib import Path

import pytest
from tests.unit.shipped_scripts import script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def covered():
    return script("covered")


@pytest.fixture
def told(covered):
    """What is complained of, with the shipped limits of one room and of a module."""

    def tell(lines: dict[str, tuple[int, int]], without: dict[str, str] | None = None) -> list[str]:
        modules = {f"slurm_agent_tools/{name}": covered.Lines(*counts) for name, counts in lines.items()}
        exceptions = {f"slurm_agent_tools/{name}": why for name, why in (without or {}).items()}
        return list(covered.complaints(modules, covered.Limits({"store": 90}, 75, exceptions)))

    return tell


def test_a_room_and_a_module_that_reach_their_limits_exactly_are_enough(told):
    assert told({"store/ledger.py": (75, 100), "store/other.py": (150, 150), "demo/play.py": (3, 4)}) == []


def test_a_room_below_its_limit_is_named_although_every_module_has_enough(told):
    assert told({"store/ledger.py": (80, 100), "store/other.py": (99, 100)}) == ["store has 89.5 %, wanted are 90 %"]


def test_a_module_below_the_limit_is_named_in_a_room_without_one_of_its_own(told):
    assert told({"store/ledger.py": (1, 1), "demo/play.py": (74, 100)}) == [
        "slurm_agent_tools/demo/play.py has 74.0 %, wanted are 75 %"
    ]


def test_an_exception_with_its_reason_excuses_a_module(told):
    assert told({"store/ledger.py": (1, 1), "demo/play.py": (0, 9)}, {"demo/play.py": "a process of its own"}) == []


def test_an_exception_that_is_not_needed_or_not_there_is_an_error(told):
    found = told({"store/ledger.py": (1, 1)}, {"store/ledger.py": "why", "store/gone.py": "why"})
    assert found == [
        "slurm_agent_tools/store/ledger.py has 100.0 % and needs no exception",
        "slurm_agent_tools/store/gone.py is an exception and not there",
    ]


def test_a_room_that_nobody_measured_is_an_error(told):
    assert told({"demo/play.py": (1, 1)}) == ["store was not measured"]


def test_a_module_without_code_is_covered(told):
    assert told({"store/__init__.py": (0, 0)}) == []


def test_the_three_rooms_of_the_promise_have_their_limit_and_every_exception_its_reason(covered):
    wanted = covered.limits((ROOT / "pyproject.toml").read_text())
    assert wanted.module >= 75
    assert {room: percent >= 90 for room, percent in wanted.rooms.items()} == {
        "services": True, "slurm": True, "store": True,
    }  # fmt: skip
    assert all(len(reason) > 20 for reason in wanted.without.values())
