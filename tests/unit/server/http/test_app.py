"""The whole server over HTTP: it listens, lets nobody in without a token, and ends at a signal."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import anyio
import httpx2
import pytest
from tests.watchdog import eventually

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.http import app
from slurm_agent_tools.server.http.listener import Address
from slurm_agent_tools.settings import HttpSettings, Settings
from slurm_agent_tools.store.tokens import Tokens

LONGEST_QUEUE = int(Path("/proc/sys/net/core/somaxconn").read_text(encoding="ascii"))
"""What the kernel grants of a queue: some machines say 128."""

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "run").mkdir(mode=0o700)
    http = HttpSettings(listen=f"unix:{tmp_path}/run/s")
    return Settings(project_root=tmp_path, state_dir=tmp_path / "state", http=http)


async def hello(path: str, token: str | None) -> httpx2.Response:
    headers = {"Accept": "application/json, text/event-stream"}
    headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=path)) as client:
        return await client.post("http://localhost/mcp", json=HELLO, headers=headers)


async def test_it_answers_who_has_a_token_and_ends_at_a_signal(settings: Settings, capsys):
    token = Tokens(settings.state_dir).new("alice", "read")
    path = settings.http.listen.removeprefix("unix:")
    async with anyio.create_task_group() as group:
        group.start_soon(app.serve, settings)
        await eventually(lambda: "listening on" in capsys.readouterr().err)
        assert (await hello(path, None)).status_code == 401
        assert (await hello(path, token[:-1] + "x")).status_code == 401
        answer = await hello(path, token)
        assert answer.status_code == 200
        assert "serverInfo" in answer.text
        os.kill(os.getpid(), signal.SIGTERM)
    assert not Path(path).exists()  # noqa: ASYNC240 - it has ended, and put its socket away


async def test_a_crowd_that_comes_at_once_waits_and_nobody_of_it_is_refused(settings: Settings, capsys):
    """A Unix socket refuses at once where its queue is full, and a web server before it then answers 502."""
    path = settings.http.listen.removeprefix("unix:")
    async with anyio.create_task_group() as group:
        group.start_soon(app.serve, settings)
        await eventually(lambda: "listening on" in capsys.readouterr().err)
        assert (await hello(path, None)).status_code == 401  # it has begun: asyncio has set the queue, and so have we
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(min(300, LONGEST_QUEUE))]
        try:
            for one in crowd:  # and the server is not asked in between
                one.setblocking(False)
                one.connect(path)
        finally:
            for one in crowd:
                one.close()
        os.kill(os.getpid(), signal.SIGTERM)


async def test_without_any_token_a_person_is_told_how_to_make_one(settings: Settings, capsys):
    said: list[str] = []

    def listening() -> bool:
        said.append(capsys.readouterr().err)
        return "listening on" in "".join(said)

    async with anyio.create_task_group() as group:
        group.start_soon(app.serve, settings)
        await eventually(listening)
        os.kill(os.getpid(), signal.SIGTERM)
    assert "slurm-agent-tools token new" in "".join(said)
    assert f"listening on {settings.http.listen} (path /mcp)" in "".join(said)


async def test_what_should_not_listen_does_not(settings: Settings):
    open_to_all = settings.model_copy(update={"http": HttpSettings(listen="0.0.0.0:0")})
    with pytest.raises(ConfigError):
        await app.serve(open_to_all)


@pytest.mark.parametrize(
    ("address", "tls", "name"),
    [
        (Address(path=Path("/run/s")), False, "unix:/run/s (path /mcp)"),
        (Address(host="127.0.0.1", ip="127.0.0.1"), False, "http://127.0.0.1:{}/mcp"),
        (Address(host="::1", ip="::1"), True, "https://[::1]:{}/mcp"),
    ],
)
def test_the_address_is_told_as_a_client_writes_it(address: Address, tls: bool, name: str):
    with socket.create_server(("127.0.0.1", 0)) as made:
        assert app.name(address, made, tls=tls) == name.format(made.getsockname()[1])
