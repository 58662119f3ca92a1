"""The server over HTTP as a real process without Slurm, through a real HTTP client and raw sockets."""

from __future__ import annotations

import os
import resource
import socket
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from tests.system.http.slow import LARGEST, MOST, code, hear, knock
from tests.system.web import HEADERS, Web, call, decisions, serving, stateless

from slurm_agent_tools.api.catalogue import TOOLS
from slurm_agent_tools.store.tokens import Tokens

pytestmark = pytest.mark.proves("http-lets-nobody-in")
ERAS = ["2026-07-28", "legacy"]
IDLE = 1000


@pytest.mark.parametrize(
    "given", [None, "Basic d3JpdGVyOng=", "Bearer", "Bearer nonsense", "Bearer sat_" + "0" * 16 + "_" + "A" * 43]
)
def test_a_request_without_a_token_that_counts_is_told_which_kind_is_needed(web: Web, given: str | None):
    answer = web.ask(
        "POST", json=call("get_status"), headers=HEADERS | ({} if given is None else {"authorization": given})
    )
    assert code(answer) == (401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer realm=")


def test_a_token_in_the_address_is_no_token(web: Web, writer: str):
    assert web.ask("POST", f"/mcp?access_token={writer}", json=call("get_status"), headers=HEADERS).status_code == 401


def test_a_token_counts_from_the_moment_it_is_made_until_it_is_revoked(web: Web, tokens: Tokens):
    token = tokens.new("guest", "read")
    body, headers = call("validate_config", config_path="train.yaml"), stateless("validate_config")
    assert web.post(token, body, **headers).json()["result"]["structuredContent"]["status"] == "valid"
    tokens.revoke("guest")
    answer = web.post(token, body, **headers)
    assert code(answer) == (401, "unauthorized")
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_an_expired_token_is_refused(web: Web, tokens: Tokens, monkeypatch: pytest.MonkeyPatch):
    class Past(datetime):
        @classmethod
        def now(cls, tz: Any) -> datetime:
            return datetime(2020, 1, 1, tzinfo=tz)

    with monkeypatch.context() as patched:
        patched.setattr("slurm_agent_tools.store.tokens.datetime", Past)
        token = tokens.new("old", "write", days=1)
    answer = web.post(token, call("get_status"), **stateless("get_status"))
    assert code(answer) == (401, "unauthorized")
    assert "expired" in answer.json()["error"]["message"]


@pytest.mark.parametrize("tool", ["submit_job", "save_result", "generate_script", "cancel_job", "unheard_of"])
def test_a_reading_token_cannot_write_and_the_try_is_in_the_decision_log(web: Web, home: Path, reader: str, tool: str):
    answer = web.post(reader, call(tool, number=7), **stateless(tool))
    assert code(answer) == (403, "insufficient_scope")
    assert answer.json()["id"] == 7
    challenge = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="write"' in challenge
    last = decisions(home / "state")[-1]
    assert (last["event"], last["tool"], last["principal"], last["verdict"]) == ("refused", tool, "reader", "deny")


@pytest.mark.parametrize("mode", ERAS)
async def test_an_agent_with_a_reading_token_reads_and_is_told_what_writing_needs(web: Web, reader: str, mode: str):
    async with web.client(reader, mode) as client:
        assert len((await client.list_tools()).tools) == len(TOOLS)
        read = await client.call_tool("validate_config", {"config_path": "train.yaml"})
        assert read.structured_content["status"] == "valid"
        with pytest.raises(MCPError, match="needs a token of scope write"):
            await client.call_tool("submit_job", {"script": "job.sh"})
        assert not (await client.call_tool("validate_config", {"config_path": "train.yaml"})).is_error


def test_a_call_that_is_hidden_from_the_first_look_is_refused_by_the_second(web: Web, reader: str):
    hidden = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_status"},'
    hidden += '"params":{"name":"save_result","arguments":{"name":"x","status":"success"}}}'
    answer = web.ask("POST", token=reader, content=hidden, headers=HEADERS | stateless("save_result"))
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost@evil.example", "127.0.0.1:x", ""]
)
@pytest.mark.parametrize("path", ["/mcp", "/healthz"])
def test_a_name_that_was_rebound_to_this_machine_is_not_answered(web: Web, writer: str, host: str, path: str):
    assert code(web.ask("POST", path, writer, json=call("get_status"), headers=HEADERS | {"host": host})) == (
        421,
        "wrong_host",
    )


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "http://127.0.0.1", "file://"])
def test_a_page_of_another_site_is_not_answered(web: Web, writer: str, origin: str):
    answer = web.post(writer, call("get_status"), origin=origin)
    assert code(answer) == (403, "foreign_origin")
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:22"])
def test_a_forwarded_port_is_answered(web: Web, reader: str, host: str):
    body, headers = call("validate_config", config_path="train.yaml"), stateless("validate_config")
    assert web.post(reader, body, host=host, origin=f"http://{host}", **headers).status_code == 200


async def test_a_session_is_of_no_use_with_another_token(web: Web, writer: str, reader: str):
    begin = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
    }  # fmt: skip
    session = web.post(writer, begin).headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    more = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    assert web.post(reader, listing, **more).status_code == 404
    assert web.ask("DELETE", token=reader, headers=HEADERS | more).status_code == 404
    assert web.post(writer, listing, **more).status_code == 200
    assert web.ask("DELETE", token=writer, headers=HEADERS | more).status_code == 200
    assert web.post(writer, listing, **more).status_code == 404


# --- how much is taken ------------------------------------------------------------------------------------------


def test_a_body_that_declares_too_much_is_refused_before_it_comes(web: Web, writer: str):
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {writer}\r\nContent-Length: 100001\r\n\r\n"
    with knock(web, head) as conn:
        conn.settimeout(5)
        assert conn.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused_however_it_comes(web: Web, writer: str, chunked: bool):
    text = b"x" * 200_000
    content = iter([text[:50_000]] * 4) if chunked else text
    answer = web.ask("POST", token=writer, content=content, headers=HEADERS)
    assert code(answer) == (413, "too_large")


def test_a_stream_without_end_is_cut_off(web: Web, writer: str):
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {writer}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    piece, sent = b"2000\r\n" + b"x" * 0x2000 + b"\r\n", 0
    with knock(web, head) as conn, suppress(ConnectionError):
        while sent < 100 * LARGEST:
            conn.sendall(piece)
            sent += len(piece)
            time.sleep(0.01)
    assert LARGEST < sent < 100 * LARGEST


def test_a_head_that_is_too_large_is_refused(web: Web):
    with knock(web, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: " + "x" * 40_000) as conn:
        assert hear(conn).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("token", [True, False])
def test_a_body_that_comes_slowly_is_not_waited_for(web: Web, writer: str, token: bool):
    auth = f"Authorization: Bearer {writer}\r\n" if token else ""
    with knock(web, f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{auth}Content-Length: 1000\r\n\r\n{{") as conn:
        assert hear(conn).startswith(b"HTTP/1.1 408 " if token else b"HTTP/1.1 401 ")


def test_a_head_that_comes_letter_by_letter_is_not_waited_for(web: Web):
    with knock(web, "GET /healthz HTTP/1.1\r\n") as conn:
        conn.settimeout(0.05)
        said, sent = b"", 0
        while not said and sent < 60 / 0.05:  # it goes on as long as the server listens
            with suppress(TimeoutError):
                said = conn.recv(100)
            sent += 0 if said else conn.send(b"x")
    assert said.startswith(b"HTTP/1.1 408 ")
    assert sent > 5


def test_a_silent_connection_is_closed(web: Web):
    with knock(web) as conn:
        assert hear(conn) == b""


def test_a_caller_that_is_too_fast_is_told_when_to_come_back_and_stops_nobody_else(
    web: Web, tokens: Tokens, reader: str
):
    token, headers = tokens.new("fast", "read"), stateless("validate_config")
    body, good = call("validate_config", config_path="train.yaml"), 0
    with httpx2.Client(headers=HEADERS | headers | {"authorization": f"Bearer {token}"}) as client:
        while (answer := client.post(web.url + "/mcp", json=body)).status_code == 200:
            good += 1
            assert good < MOST
    assert good >= 60
    assert code(answer) == (429, "too_fast")
    assert answer.headers["retry-after"] == "1"
    assert web.post(reader, body, **headers).status_code == 200


def test_a_thousand_idle_connections_stop_nobody(env: dict[str, str], home: Path, tokens: Tokens, reader: str):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096) if hard >= 0 else 4096, hard))
    patient = env | {"SLURM_AGENT_HTTP__HEAD_TIMEOUT": "60"}
    conns: list[socket.socket] = []
    try:
        with serving(["--listen", "127.0.0.1:0"], patient, home / "project") as web:
            before = memory(web)
            conns.extend(knock(web, "GET /mcp HTTP/1.1\r\n") for _ in range(IDLE))
            assert (
                web.post(
                    reader, call("validate_config", config_path="train.yaml"), **stateless("validate_config")
                ).status_code
                == 200
            )
            files = len(os.listdir(f"/proc/{web.process.pid}/fd"))  # noqa: PTH208
            grown = memory(web) - before
            print(f"idle connections {IDLE}: {files} files, {grown / 1024:.1f} MiB more")  # noqa: T201
            assert 700 < files < 850
            assert grown < 40 * 1024
    finally:
        for conn in conns:
            conn.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def memory(web: Web) -> int:
    """Resident memory in KiB."""
    status = Path(f"/proc/{web.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def test_when_every_connection_is_busy_a_new_one_is_told_so(
    env: dict[str, str], home: Path, tokens: Tokens, writer: str
):
    few = env | {"SLURM_AGENT_HTTP__MAX_CONNECTIONS": "4", "SLURM_AGENT_HTTP__BODY_TIMEOUT": "20"}
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {writer}\r\nContent-Length: 10\r\n\r\n"
    with serving(["--listen", "127.0.0.1:0"], few, home / "project") as web:
        busy = [knock(web, head) for _ in range(4)]
        time.sleep(0.5)  # until they are seen
        with knock(web) as late:
            assert hear(late).startswith(b"HTTP/1.1 503 ")
        for conn in busy:
            conn.close()
