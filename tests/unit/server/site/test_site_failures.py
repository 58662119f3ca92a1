"""What a caller who finds a fault of the service gets of it: words, and one traceback in the log, not thousands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.server.site.site_in_memory import Site, site
from tests.watchdog import eventually

from slurm_agent_tools.errors import SiteUnreachable
from slurm_agent_tools.server.site import service
from slurm_agent_tools.transport import site_socket

HALF = "\ud800"


async def told(made: Site, **words: Any) -> dict[str, str]:
    """The error that the service answers."""
    async with await anyio.connect_unix(made.config.socket) as stream:
        await site_socket.send(stream, site_socket.SiteFrame({"project": str(made.project), **words}))
        return dict((await site_socket.receive(stream)).words["error"])


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What the service logs as errors."""
    found: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(service._log, "error", lambda what, **facts: found.append((what, facts)))
    return found


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"call": "questions", "project": f"/{HALF}"}, "project"), ({"call": "question", "id": HALF}, "id"),
        ({"call": "answer", "id": HALF, "decline": True}, "id"), ({"call": "settle", "token": HALF}, "token"),
        ({"call": HALF}, "call"), ({"call": "question", "id": "1", HALF: 1}, r"\ud800"),
        ({"call": "judge", "arguments": {"script": f"{HALF}.sh"}, "caller": ["a", "b", "c"]}, "arguments"),
        ({"call": "judge", "arguments": {"script": "job.sh"}, "caller": ["a", HALF, "c"]}, "caller"),
    ],
    ids=ascii,
)  # fmt: skip
async def test_half_of_a_character_is_refused_with_field_value_and_mend(
    tmp_path: Path, lines: list[Any], words: dict[str, Any], field: str
):
    async with site(tmp_path) as made:
        error = await told(made, **words)
    assert error["code"] == "invalid_input", error
    assert error["message"].startswith(f"{field}: ")
    assert r"contains '\ud800', which is half of a character" in error["message"]
    assert "UTF-8" in error["hint"]
    assert lines == []


@pytest.mark.parametrize("call", [[], {}, None, 7, ["judge"]], ids=ascii)
async def test_a_call_that_is_no_word_is_refused_by_its_name(tmp_path: Path, lines: list[Any], call: object):
    async with site(tmp_path) as made:
        error = await told(made, call=call)
    assert error["message"].startswith("call: ")
    assert lines == []


async def test_a_whole_character_of_any_script_is_none_of_that(tmp_path: Path):
    async with site(tmp_path) as made:
        assert "is no question of this user" in (await told(made, call="question", id="\U0001f600 ü 字"))["message"]


async def test_a_failure_of_one_kind_is_logged_whole_once_and_then_counted(
    tmp_path: Path, lines: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
):
    errors: list[Exception] = []

    def fail(_: object) -> None:
        raise errors.pop()

    monkeypatch.setattr(service, "_project", fail)
    async with site(tmp_path) as made:
        for kind in [ValueError] * 30 + [KeyError] + [ValueError] * 20:
            errors.append(kind("it"))
            with pytest.raises(SiteUnreachable, match="failed unexpectedly"):
                await made.client().ask("questions", {})
    assert [type(facts["exc_info"]) for _, facts in lines] == [ValueError, KeyError]
    again = made.service._failures.again()
    assert [*again.values()] == [49]
    assert next(iter(again)).startswith(f"ValueError at {Path(__file__).name}:")


async def test_the_counted_ones_are_one_line_and_a_minute_later_one_is_whole_again(
    lines: list[tuple[str, dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(service, "_SWEEP", 0.01)
    async with site(tmp_path) as made:
        failures = made.service._failures
        for _ in range(3):
            failures.note(ValueError("it"))
        async with anyio.create_task_group() as group:
            group.start_soon(made.service.sweep)
            await eventually(lambda: len(lines) > 1)
            group.cancel_scope.cancel()
        failures.note(ValueError("it"))
    told = {"calls": {"ValueError at an unknown place": 2}}
    assert lines[1] == ("further calls failed unexpectedly in the same way", told)
    assert [what for what, _ in lines[::2]] == ["a call failed unexpectedly"] * 2
