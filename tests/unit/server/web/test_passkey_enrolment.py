"""The page that makes a passkey: behind its link, one key, that checks who is there, for a page of ours."""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from tests.unit.authenticators import Authenticator
from tests.watchdog import eventually

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.models.allowed_passkeys import AllowedPasskey
from slurm_agent_tools.server.http.host_check import allowed_hosts
from slurm_agent_tools.server.web.dashboard_server import make_passkey
from slurm_agent_tools.server.web.passkey_enrolment import PasskeyEnrolment
from slurm_agent_tools.settings import HttpSettings, Settings

PAGE = "http://localhost:8000"


@pytest.fixture
def app() -> PasskeyEnrolment:
    made = PasskeyEnrolment("ada", "http://localhost", allowed_hosts([], []))
    made.port = 8000
    return made


async def ask(app: PasskeyEnrolment, path: str, body: Any = None, **headers: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(app)
    said = {"content-type": "application/json"} | headers
    content = None if body is None else json.dumps(body).encode()
    async with httpx2.AsyncClient(transport=transport, base_url=PAGE) as client:
        return await client.request("GET" if body is None else "POST", path, content=content, headers=said)


async def begin(app: PasskeyEnrolment) -> tuple[str, bytes]:
    begun = (await ask(app, f"/enrol/{app.secret}/yes/begin/new", {})).json()
    text = begun["options"]["challenge"]
    return begun["number"], base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def finish(app: PasskeyEnrolment, **body: Any) -> httpx2.Response:
    return await ask(app, f"/enrol/{app.secret}/yes/finish/new", body)


async def test_the_key_that_the_browser_made_is_the_one_that_is_enrolled(app: PasskeyEnrolment):
    key = Authenticator()
    page = await ask(app, f"/enrol/{app.secret}")
    assert (page.status_code, "For ada" in page.text) == (200, True)
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert (await ask(app, "/static/passkey.js")).status_code == 200
    number, made = await begin(app)
    answer = await finish(app, number=number, answer=key.made(made, PAGE))
    assert answer.status_code == 200, answer.text
    assert app.key == key.allowed()
    assert app.done.is_set()
    number, made = await begin(app)
    again = await finish(app, number=number, answer=Authenticator(b"x").made(made, PAGE))
    assert (again.status_code, app.key) == (403, key.allowed())


@pytest.mark.parametrize("more", [{"verified": False}, {"rp_id": "evil.example"}])
async def test_a_key_that_does_not_check_who_is_there_or_is_for_another_name_is_none(app: PasskeyEnrolment, more: Any):
    number, made = await begin(app)
    assert (await finish(app, number=number, answer=Authenticator().made(made, PAGE, **more))).status_code == 403
    assert app.key is None


async def test_each_challenge_counts_once_and_for_this_page(app: PasskeyEnrolment):
    key = Authenticator()
    number, made = await begin(app)
    assert (await finish(app, number=number, answer=key.made(made, "http://localhost:9"))).status_code == 403
    assert (await finish(app, number=number, answer=key.made(made, PAGE))).status_code == 403
    number, _ = await begin(app)
    assert (await finish(app, number=number, answer=key.made(made, PAGE))).status_code == 403
    number, _ = await begin(app)
    assert (await finish(app, number=number, failed="NotAllowedError")).status_code == 403
    assert app.key is None


@pytest.mark.parametrize("path", ["/", "/enrol/", "/enrol/x", "/enrol/x/yes/begin/new", "/static/none"])
async def test_without_the_link_there_is_nothing(app: PasskeyEnrolment, path: str):
    assert (await ask(app, path)).status_code == 404
    assert (await ask(app, path, {})).status_code == 404


async def test_other_names_and_other_sites_are_turned_away(app: PasskeyEnrolment):
    assert (await ask(app, f"/enrol/{app.secret}", host="evil.example")).status_code == 421
    path = f"/enrol/{app.secret}/yes/begin/new"
    assert (await ask(app, path, {}, origin="https://evil.example")).status_code == 403


@asynccontextmanager
async def enrolling(settings: Settings) -> AsyncIterator[tuple[str, list[AllowedPasskey | None]]]:
    """The link that is told, and the key once there is one, while the page is served."""
    told: list[str] = []
    found: list[AllowedPasskey | None] = []

    async def enrol() -> None:
        found.append(await make_passkey(settings, "ada", "http://localhost", told.append))

    async with anyio.create_task_group() as group:
        group.start_soon(enrol)
        await eventually(lambda: bool(told))
        yield told[0], found


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(project_root=tmp_path, http=HttpSettings(listen="localhost:0"))


async def test_the_page_is_there_until_the_key_is_made(settings: Settings):
    key = Authenticator()
    async with enrolling(settings) as (link, found), httpx2.AsyncClient() as client:
        page = link.rpartition("/enrol/")[0]
        assert (await client.get(page)).status_code == 404
        begun = (await client.post(f"{link}/yes/begin/new", json={}, headers={"origin": page})).json()
        text = begun["options"]["challenge"]
        made = key.made(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), page)
        said = {"number": begun["number"], "answer": made}
        done = await client.post(f"{link}/yes/finish/new", json=said, headers={"origin": page})
        assert done.status_code == 200, done.text
    assert found == [key.allowed()]


async def test_no_key_is_made_where_a_signal_ends_the_page_or_others_could_reach_it(settings: Settings):
    async with enrolling(settings) as (_, found):
        os.kill(os.getpid(), signal.SIGTERM)
    assert found == [None]
    beyond = settings.model_copy(update={"http": HttpSettings(listen="0.0.0.0:0")})
    with pytest.raises(ConfigError, match="beyond loopback"):
        await make_passkey(beyond, "ada", "http://localhost", print)
