"""The pages where they are served: beside MCP over HTTP, and by `slurm-agent-tools dashboard` on a port of its own."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import anyio
import httpx2
import pytest
from tests.unit.server.over_http import needs_ipv6
from tests.watchdog import eventually

from slurm_agent_tools.cli.main import main
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.http import app
from slurm_agent_tools.server.web.dashboard_server import serve_dashboard
from slurm_agent_tools.settings import HttpSettings, Settings
from slurm_agent_tools.store.tokens import Tokens

pytestmark = pytest.mark.proves("pages-are-for-their-visitors")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "run").mkdir(mode=0o700)
    http = HttpSettings(listen=f"unix:{tmp_path}/run/s")
    return Settings(project_root=tmp_path, state_dir=tmp_path / "state", http=http)


def asker(settings: Settings) -> httpx2.AsyncClient:
    path = settings.http.listen.removeprefix("unix:")
    return httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=path), base_url="http://localhost")


async def test_beside_mcp_the_pages_are_there_for_tokens_and_nothing_else_changes(settings: Settings, capsys):
    token = {"authorization": f"Bearer {Tokens(settings.state_dir).new('alice', 'read')}"}
    monitor = {"authorization": f"Bearer {Tokens(settings.state_dir).new('watch', 'scrape')}"}
    async with anyio.create_task_group() as group:
        group.start_soon(app.serve, settings)
        await eventually(lambda: "listening on" in capsys.readouterr().err)
        async with asker(settings) as client:
            assert (await client.get("/decisions")).status_code == 401
            assert (await client.get("/decisions", headers=monitor)).status_code == 401
            shown = await client.get("/decisions", headers=token)
            assert (shown.status_code, "<h1>Decisions</h1>" in shown.text) == (200, True)
            assert (await client.get("/sign-in")).status_code == 200
            assert (await client.get("/open/none")).status_code == 403
            known = await client.get("/.well-known/oauth-protected-resource")
            assert (known.status_code, known.json()["error"]["data"]["code"]) == (404, "not_found")
            assert (await client.get("/mcp")).status_code == 401
            assert (await client.get("/decisions", headers=token | {"host": "evil.example"})).status_code == 421
        os.kill(os.getpid(), signal.SIGTERM)


async def test_without_the_toolset_there_are_no_pages(settings: Settings, capsys):
    async with anyio.create_task_group() as group:
        group.start_soon(app.serve, settings.model_copy(update={"toolsets": ("core",)}))
        await eventually(lambda: "listening on" in capsys.readouterr().err)
        async with asker(settings) as client:
            assert (await client.get("/sign-in")).status_code == 404
        os.kill(os.getpid(), signal.SIGTERM)


async def test_by_itself_it_tells_a_link_that_works_once_and_ends_at_a_signal(settings: Settings):
    told: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(serve_dashboard, settings, None, told.append)
        await eventually(lambda: bool(told))
        key = re.search(r"/open/(\S+)", told[0])[1]
        async with asker(settings) as client:
            assert (await client.get("/")).status_code == 401
            entered = await client.get(f"/open/{key}")
            place = re.search(r"/v/[0-9a-f]{32}/", entered.text)[0]
            assert (await client.get(f"{place}decisions")).status_code == 200
            assert (await client.get(f"/open/{key}")).status_code == 403
            assert (await client.post("/mcp", content=b"{}")).status_code == 404
        os.kill(os.getpid(), signal.SIGTERM)


async def test_who_knocks_and_leaves_writes_nothing_on_the_persons_terminal(settings: Settings, capsys):
    told: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(serve_dashboard, settings, None, told.append)
        await eventually(lambda: bool(told))
        head = b"POST /sign-in HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\ntoken="
        for _ in range(3):
            async with await anyio.connect_unix(settings.http.listen.removeprefix("unix:")) as stranger:
                await stranger.send(head)
        async with asker(settings) as client:
            for _ in range(3):  # by then the others are gone
                assert (await client.get("/sign-in")).status_code == 200
        os.kill(os.getpid(), signal.SIGTERM)
    assert "Traceback" not in capsys.readouterr().err


@needs_ipv6
@pytest.mark.parametrize("listen", ["127.0.0.1:0", "localhost:0", "[::1]:0"])
async def test_by_itself_it_is_localhost_under_both_addresses(settings: Settings, listen: str):
    told: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(
            serve_dashboard, settings.model_copy(update={"http": HttpSettings(listen=listen)}), None, told.append
        )
        await eventually(lambda: bool(told))
        port = re.search(r":(\d+)/open/", told[0])[1]
        async with httpx2.AsyncClient() as client:
            for host in ("127.0.0.1", "[::1]", "localhost"):
                assert (await client.get(f"http://{host}:{port}/sign-in")).status_code == 200
        os.kill(os.getpid(), signal.SIGTERM)


async def test_by_itself_it_never_listens_beyond_this_machine(settings: Settings):
    beyond = settings.model_copy(update={"http": HttpSettings(listen="0.0.0.0:0")})
    with pytest.raises(ConfigError, match="beyond loopback"):
        await serve_dashboard(beyond, None, print)


def test_the_command_says_what_is_wrong_with_where_it_shall_listen(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    assert main(["dashboard", "--listen", "0.0.0.0:8080"]) == 2
    assert "http.listen" in capsys.readouterr().err
    monkeypatch.setenv("SLURM_AGENT_TOOLSETS", '["core"]')
    assert main(["dashboard"]) == 2
    assert "toolset fleet" in capsys.readouterr().err
