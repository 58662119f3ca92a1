"""The guard: one order of checks, and a token that stops counting in the middle of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from tests.unit.virtual_time import in_no_time, passed
from tests.watchdog import eventually

from slurm_agent_tools.errors import SlurmMissing
from slurm_agent_tools.server.http import auth, open_sessions
from slurm_agent_tools.server.http.auth import Authenticator, _called
from slurm_agent_tools.server.http.host_check import allowed_hosts
from slurm_agent_tools.server.http.refusals import RequestRefused
from slurm_agent_tools.server.http.request_limits import RequestLimits
from slurm_agent_tools.server.http.scope_check import ScopedToolbox, visit
from slurm_agent_tools.settings import HttpSettings
from slurm_agent_tools.store.tokens import Tokens

pytestmark = pytest.mark.proves("http-lets-nobody-in")


class NoContexts:
    async def at(self, cluster: str | None) -> Any:
        raise SlurmMissing("no Slurm", hint="")

    async def close(self) -> None: ...


class Inner:
    """The SDK's place: says who came, or does not answer."""

    silent = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.silent:
            await anyio.sleep_forever()
        body = (await receive())["body"].decode()
        await PlainTextResponse(f"{scope['user'].username} {visit.get().token.scope} {body}")(scope, receive, send)


class Scene:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.tokens, self.inner, self.toolbox = Tokens(folder), Inner(), ScopedToolbox(NoContexts())
        http = HttpSettings(**settings)
        self.guard = Authenticator(
            self.inner, self.toolbox, self.tokens, allowed_hosts(["login1"], http.origins), http, "slurm_agent_"
        )
        self.reader, self.writer = self.tokens.new("r", "read"), self.tokens.new("w", "write")

    async def post(self, token: str, content: str = "{}", **headers: str) -> httpx2.Response:
        transport = httpx2.ASGITransport(self.guard)
        async with httpx2.AsyncClient(transport=transport, base_url="http://login1:8000") as client:
            usual = {"authorization": f"bearer {token}", "content-type": "application/json; charset=utf-8"}
            return await client.post("/mcp", content=content, headers=usual | headers)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    return Scene(tmp_path)


async def test_what_gets_through_carries_the_tokens_name_and_its_whole_body(scene: Scene):
    assert (await scene.post(scene.writer, "hello")).text == "w write hello"


async def test_a_writing_tool_is_seen_through_its_prefix(scene: Scene):
    call = '{"method": "tools/call", "id": "a", "params": {"name": "slurm_agent_%s"}}'
    assert (await scene.post(scene.reader, call % "get_status")).status_code == 200
    answer = await scene.post(scene.reader, call % "submit_job")
    assert (answer.status_code, answer.json()["id"]) == (403, "a")
    assert (await scene.post(scene.writer, call % "submit_job")).status_code == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"[" * 100_000, b'{"method": "tools/list"}', b"\xff"])
def test_a_body_that_calls_nothing_is_left_to_the_sdk(body: bytes):
    assert _called(body) == (None, None)


def test_a_call_without_a_name_is_a_call_of_something_unknown():
    assert _called(b'{"method": "tools/call", "params": [], "id": {}}') == ("None", None)


async def test_a_refused_name_is_told_without_its_hidden_signs(scene: Scene):
    answer = await scene.post(scene.reader, '{"method": "tools/call", "id": 1, "params": {"name": "a\\u001b[31m"}}')
    assert answer.status_code == 403
    assert answer.json()["error"]["message"].startswith("a\\x1b[31m needs a token")


async def test_a_token_holds_so_many_bytes_at_once(tmp_path: Path):
    scene = Scene(tmp_path, max_body=1024)
    scene.inner.silent = True
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(scene.post, scene.writer, "x" * 1024)
        await eventually(lambda: len(scene.guard._visits) == 8)
        answer = await scene.post(scene.writer, "x" * 1024)
        assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (429, "too_much")
        scene.inner.silent = False
        assert (await scene.post(scene.reader, "x" * 1024)).status_code == 200
        group.cancel_scope.cancel()
    assert (await scene.post(scene.writer, "x" * 1024)).status_code == 200


async def test_a_session_of_the_older_era_is_not_begun_beyond_the_tokens_share(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(open_sessions, "MOST_OF_ONE", 1)
    scene.guard._sessions.seen(
        scene.tokens.all()[1].id,
        {"type": "http", "method": "POST", "headers": []},
        {"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", b"s1")]},
    )
    refused = await scene.post(scene.writer)
    assert (refused.status_code, refused.json()["error"]["data"]["code"]) == (429, "too_many_sessions")
    assert (await scene.post(scene.writer, **{"mcp-session-id": "s1"})).status_code == 200
    assert (await scene.post(scene.writer, **{"mcp-protocol-version": "2026-07-28"})).status_code == 200
    assert (await scene.post(scene.reader)).status_code == 200


@in_no_time
async def test_an_answer_is_broken_off_soon_after_its_token_is_revoked(scene: Scene):
    async def revoke() -> None:
        await anyio.sleep(100)
        scene.tokens.revoke("w")

    scene.inner.silent = True
    async with anyio.create_task_group() as group:
        group.start_soon(scene.guard.watch)
        group.start_soon(revoke)
        answer = await scene.post(scene.writer)
        group.cancel_scope.cancel()
    assert answer.status_code == 401
    assert 100 <= passed() <= 100 + auth._REVOKED_WITHIN


@in_no_time
async def test_tokens_that_cannot_be_read_let_nobody_in_and_break_nothing_off(scene: Scene):
    scene.inner.silent = True
    async with anyio.create_task_group() as group:
        group.start_soon(scene.guard.watch)
        group.start_soon(scene.post, scene.writer)
        await anyio.sleep(100)
        scene.tokens.path.write_bytes(b"no database at all" * 100)
        answer = await scene.post(scene.writer)
        await anyio.sleep(100)
        assert len(scene.guard._visits) == 1
        group.cancel_scope.cancel()
    assert answer.status_code == 503


async def test_a_server_that_stops_takes_nothing_new(scene: Scene):
    scene.toolbox.stopping.set()
    answer = await scene.post(scene.writer)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


async def test_one_token_cannot_hold_everything(tmp_path: Path):
    scene = Scene(tmp_path, max_calls=1)
    with RequestLimits(HttpSettings(max_calls=1)).one("a"):
        assert (await scene.post(scene.writer)).status_code == 200
    scene.inner.silent = True
    async with anyio.create_task_group() as group:
        group.start_soon(scene.post, scene.writer)
        await eventually(lambda: scene.guard._visits)
        answer = await scene.post(scene.writer)
        group.cancel_scope.cancel()
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (429, "too_many_calls")


def test_the_minutes_requests_come_back_evenly():
    limits = RequestLimits(HttpSettings(per_minute=60))
    for _ in range(60):
        limits._take("a", 100.0)
    with pytest.raises(RequestRefused) as refused:
        limits._take("a", 100.5)
    assert refused.value.headers == {"retry-after": "1"}
    limits._take("a", 101.1)
    limits._take("b", 101.1)


@pytest.mark.parametrize(("host", "origin", "status"), [
    ("login1", None, None), ("LOGIN1:80", "http://login1:80", None), ("[::1]:1", "http://[::1]:1", None),
    ("login1", "https://app.example", None), ("login2", None, 421), ("login1.", None, 421), ("a@login1", None, 421),
    ("login1", "https://app.example:1", 403), ("login1:80", "http://login1:81", 403), ("login1", "", 403),
])  # fmt: skip
def test_hosts_and_origins_that_may_ask(host: str, origin: str | None, status: int | None):
    made = allowed_hosts(["Login1"], ["https://App.example/"])
    headers = Headers({"host": host} | ({} if origin is None else {"origin": origin}))
    if status is None:
        made.check(headers)
        return
    with pytest.raises(RequestRefused) as refused:
        made.check(headers)
    assert refused.value.status == status
