"""What pytest loads in the copy of the repository that `scripts/faults.py` puts faults into.

In the first run it writes down which test reached which drawn statement (`reached` is called there) and how each test
ended; in the others it keeps the tests that were asked for, in their order. The folder of these notes is $FAULTS_NOTES;
$FAULTS_TESTS is the file of the tests that are wanted.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_NOTES = os.environ.get("FAULTS_NOTES")
_WANTED = os.environ.get("FAULTS_TESTS")
_seen: set[tuple[int, str]] = set()


def reached(number: int) -> None:
    """Note that the test that runs now came by here, also in a process that it started."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if _NOTES and test and (number, test) not in _seen:
        _seen.add((number, test))
        _note("reached", f"{number} {test}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that are wanted, in the order in which they are named."""
    if _WANTED:
        places = {name: place for place, name in enumerate(Path(_WANTED).read_text(encoding="utf-8").splitlines())}
        left = [item for item in items if item.nodeid not in places]
        items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])
        config.hook.pytest_deselected(items=left)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a test ended and how long it took."""
    if _NOTES and (report.when == "call" or not report.passed):
        _note("ended", f"{report.outcome} {report.duration:.3f} {report.nodeid}")


def _note(name: str, line: str) -> None:
    with (Path(_NOTES or "") / name).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
