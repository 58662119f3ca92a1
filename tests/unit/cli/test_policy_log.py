"""`policy log` of a log that somebody else blew up: it is read a line at a time, never held."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_agent_tools.cli import main

LINES, PADDING = 60, 200_000


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 12 MB, and at its end one line of 9 MB, which is only read."""
    folder = tmp_path_factory.mktemp("state")
    path = folder / "decisions.jsonl"
    with path.open("w") as file:
        for number in range(LINES):
            entry = {"at": "2026-11-20T12:00:00+00:00", "verdict": "deny", "job_id": number, "script": "x" * PADDING}
            file.write(json.dumps(entry) + "\n")
        file.write('{"at": "2026-11-20T12:00:00+00:00", "x": [' + "[]," * 3_000_000 + "[]]}\n")
    return folder


@pytest.fixture
def blown_up(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(state))


@contextmanager
def holding(most: int) -> Iterator[None]:
    """At most so many bytes are held at any moment."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < most


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], range(LINES - 20, LINES)), (["--last", "3"], range(LINES - 3, LINES)), (["--last", "0"], []), (["--last", "-1"], []),
        (["--last", "1000"], range(LINES)), (["--since", "2026-11-20T00:00:00+00:00"], range(LINES)), (["--job", "7"], [7]),
        (["--last", "1", "--since", "2026-11-20T00:00:00+00:00"], [LINES - 1]), (["--verdict", "allow"], []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_json", [False, True], ids=["lines", "json"])
def test_a_log_that_was_blown_up_is_shown_without_being_held(
    words: list[str], shown: range, as_json: bool, blown_up: Path, capfd: pytest.CaptureFixture[str]
):
    main.main(["policy", "log", "--last", "1"])  # what is imported and compiled for the first time counts for nothing
    capfd.readouterr()
    with holding(8 * 2**20):
        assert main.main(["policy", "log", *words, *(["--json"] if as_json else [])]) == 0
    said = capfd.readouterr()
    lines = said.out.splitlines()

    assert len(lines) == len(shown)
    assert [json.loads(line)["job_id"] for line in lines if as_json] == (list(shown) if as_json else [])
    assert all(len(line) < 9_000 for line in lines if not as_json)
    assert "1 lines of" in said.err


def test_a_log_that_was_blown_up_is_verified_without_being_held(blown_up: Path, capfd: pytest.CaptureFixture[str]):
    with holding(8 * 2**20):
        assert main.main(["policy", "log", "--verify", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)

    assert (told["lines"], told["before_the_chain"], told["cut_off"]) == (0, LINES, [LINES + 1])
