"""Sessions of the older era: one token cannot take them all, and they are counted as the SDK keeps them."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_agent_tools.server.http import open_sessions
from slurm_agent_tools.server.http.open_sessions import Sessions
from slurm_agent_tools.server.http.refusals import RequestRefused

pytestmark = pytest.mark.proves("http-lets-nobody-in")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(open_sessions.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(open_sessions, "MOST_OF_ONE", 2)
    return now


def tell(
    kept: Sessions, token: str, *, method: str = "POST", asked: str = "", made: str = "", status: int = 200
) -> None:
    def raw(name: str) -> list[tuple[bytes, bytes]]:
        return [(b"mcp-session-id", name.encode())] if name else []

    scope: dict[str, Any] = {"type": "http", "method": method, "headers": raw(asked)}
    kept.seen(token, scope, {"type": "http.response.start", "status": status, "headers": raw(made)})


def full(kept: Sessions, token: str) -> bool:
    try:
        kept.admit(token)
    except RequestRefused:
        return True
    return False


def two() -> Sessions:
    kept = Sessions()
    for name in ("s1", "s2"):
        assert not full(kept, "a")
        tell(kept, "a", made=name)
    return kept


def test_one_token_has_so_many_and_the_others_keep_theirs(clock: list[float]):
    kept = two()
    with pytest.raises(RequestRefused, match="too many sessions") as refused:
        kept.admit("a")
    assert refused.value.status == 429
    assert "DELETE" in refused.value.hint
    assert not full(kept, "b")


def test_one_that_failed_to_open_is_none(clock: list[float]):
    kept = Sessions()
    for name in ("s1", "s2", "s3"):
        tell(kept, "a", made=name, status=400)
    assert not full(kept, "a")


@pytest.mark.parametrize(
    ("method", "status", "over"), [("DELETE", 200, True), ("POST", 404, True), ("POST", 200, False)]
)
def test_what_is_over_makes_room(clock: list[float], method: str, status: int, over: bool):
    kept = two()
    tell(kept, "a", method=method, asked="s1", made="s1", status=status)
    assert full(kept, "a") is not over


def test_the_answer_to_another_token_ends_nothing(clock: list[float]):
    kept = two()
    tell(kept, "b", asked="s1", status=404)
    assert full(kept, "a")


def test_one_without_a_request_for_long_makes_room_and_one_that_is_used_does_not(clock: list[float]):
    kept = two()
    with kept.used("s1"):
        clock[0] += open_sessions.IDLE_SECONDS + 1
        assert not full(kept, "a")
        tell(kept, "a", made="s3")
        assert full(kept, "a")
    clock[0] += open_sessions.IDLE_SECONDS - 1
    assert full(kept, "a")
    clock[0] += 2
    assert not full(kept, "a")


def test_a_session_that_nobody_knows_is_no_matter(clock: list[float]):
    kept = Sessions()
    for name in (None, "", "unknown"):
        with kept.used(name):
            pass
    assert not full(kept, "a")
