"""Who shuts others out, or makes the server read a request in two ways: by raw sockets, on a real server."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import httpx2
import pytest
from tests.system.http.slow import code, hear, knock
from tests.system.web import HEADERS, Web, call, refused, serving, stateless
from tests.watchdog import until

from slurm_agent_tools.store.tokens import Tokens

pytestmark = pytest.mark.proves("http-lets-nobody-in")
ERAS = ["2026-07-28", "legacy"]
CONNECTIONS = 6
PIECE = 200


def deaf(web: Web, request: str) -> socket.socket:
    """A connection that asks again and again and never reads, until the server takes no more of it."""
    conn = socket.socket()
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    conn.settimeout(0.3)
    conn.connect(("127.0.0.1", web.port))
    with suppress(TimeoutError, ConnectionError):
        for _ in range(200):
            conn.sendall(request.encode() * PIECE)
    return conn


def answered(ask: Callable[[], httpx2.Response], status: int) -> httpx2.Response:
    """The first answer of this status."""
    answers: list[httpx2.Response] = []

    def came() -> bool:
        answers.append(ask())
        return answers[-1].status_code == status

    until(came, status)
    return answers[-1]


def test_who_has_no_token_cannot_keep_others_out_by_never_reading(env: dict[str, str], home: Path, reader: str):
    few = env | {"SLURM_AGENT_HTTP__MAX_CONNECTIONS": str(CONNECTIONS), "SLURM_AGENT_HTTP__BODY_TIMEOUT": "60"}
    body, headers = call("validate_config", config_path="train.yaml"), stateless("validate_config")
    with serving(["--listen", "127.0.0.1:0"], few, home / "project") as web, ExitStack() as open_ones:
        for _ in range(CONNECTIONS + 2):
            open_ones.enter_context(deaf(web, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        for _ in range(CONNECTIONS):
            assert web.post(reader, body, **headers).status_code == 200


def test_an_answer_that_nobody_takes_holds_no_place_for_ever(env: dict[str, str], home: Path, reader: str):
    few = env | {
        "SLURM_AGENT_HTTP__MAX_CALLS": "1",
        "SLURM_AGENT_HTTP__PER_MINUTE": "100000",
        "SLURM_AGENT_HTTP__BODY_TIMEOUT": "5",
    }
    listing = json.dumps(call("x") | {"method": "tools/list"})
    lines = HEADERS | {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list", "host": "localhost"}
    lines |= {"authorization": f"Bearer {reader}", "content-length": str(len(listing))}
    request = "POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {text}\r\n" for name, text in lines.items())
    body, headers = call("validate_config", config_path="train.yaml"), stateless("validate_config")
    with (
        serving(["--listen", "127.0.0.1:0"], few, home / "project") as web,
        deaf(web, f"{request}\r\n{listing}"),
    ):
        ask = partial(web.post, reader, body, **headers)
        assert code(answered(ask, 429)) == (429, "too_many_calls")  # once nothing more goes out to the deaf one
        answered(ask, 200)


def test_a_caller_who_finds_every_connection_busy_can_read_why(env: dict[str, str], home: Path, writer: str):
    few = env | {"SLURM_AGENT_HTTP__MAX_CONNECTIONS": "4", "SLURM_AGENT_HTTP__BODY_TIMEOUT": "20"}
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {writer}\r\nContent-Length: 10\r\n\r\n"
    with serving(["--listen", "127.0.0.1:0"], few, home / "project") as web, ExitStack() as open_ones:
        for _ in range(4):
            open_ones.enter_context(knock(web, head))
        time.sleep(0.5)  # until they are seen
        answer = web.post(writer, call("get_status"), **stateless("get_status"))
    assert answer.status_code == 503
    assert "busy" in answer.text
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/nothing"])
def test_a_request_with_two_lengths_ends_its_connection_with_all_that_follows(web: Web, reader: str, path: str):
    hidden = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {reader}\r\nTransfer-Encoding: chunked\r\n"
    )
    with knock(web, f"{head}Content-Length: {len(hidden) + 5}\r\n\r\n0\r\n\r\n{hidden}") as conn:
        said = hear(conn)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"two_lengths" in said


@pytest.mark.parametrize(
    "line", ["Content-Length: 3\r\nContent-Length: 4", "Transfer-Encoding: identity", "Transfer-Encoding : chunked"]
)
def test_a_length_that_can_be_read_in_two_ways_is_refused_in_words(web: Web, line: str):
    with knock(web, f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{line}\r\n\r\nabcd") as conn:
        said = hear(conn)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"one valid length" in said


def test_a_body_that_goes_wrong_on_its_way_is_refused_in_words(web: Web, reader: str):
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {reader}\r\n"
    with knock(web, f"{head}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\nno length\r\n") as conn:
        said = hear(conn)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"one valid length" in said


def test_who_goes_on_sending_what_was_refused_is_closed_without_a_second_answer(web: Web):
    with knock(web, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{") as conn:
        said = conn.recv(10_000)
        conn.sendall(b"{")
        said += hear(conn)
    assert said.startswith(b"HTTP/1.1 401 ")
    assert said.count(b"HTTP/1.1 ") == 1


def test_a_later_request_too_has_to_arrive_in_time(web: Web):
    with knock(web, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") as conn:
        said = conn.recv(10_000)
        conn.sendall(b"GET /healthz HTTP/1.1\r\n")
        said += hear(conn)
    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.partition(b'{"status":"ok"}')[2].startswith(b"HTTP/1.1 408 ")


def test_what_is_no_request_of_mcp_is_told_what_one_is(web: Web, reader: str):
    assert code(web.ask("OPTIONS", token=reader)) == (405, "wrong_method")
    assert web.ask("PUT", token=reader).headers["allow"] == "GET, POST, DELETE"
    zipped = web.ask("POST", token=reader, content=b"\x1f\x8b", headers=HEADERS | {"content-encoding": "gzip"})
    assert code(zipped) == (415, "compressed")
    form = web.ask("POST", token=reader, content=b"{}", headers={"content-type": "text/plain"})
    assert code(form) == (415, "wrong_type")
    assert "Content-Type: application/json" in form.json()["error"]["message"]
    half = web.post(reader, call("get_status"), accept="application/json", **stateless("get_status"))
    assert code(half) == (406, "wrong_accept")
    assert "text/event-stream" in half.json()["error"]["message"]


@pytest.mark.parametrize("path", ["//mcp", "/./mcp", "/x/../mcp", "/mcp/", "/mcp;x", "/mcp%2f", "http://localhost/mcp"])
def test_another_spelling_of_the_path_leads_nowhere(web: Web, path: str):
    with knock(web, f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") as conn:
        assert hear(conn).startswith(b"HTTP/1.1 404 ")


def test_a_list_of_a_million_wrong_entries_holds_nobody_up(env: dict[str, str], home: Path, reader: str):
    large = env | {"SLURM_AGENT_HTTP__MAX_BODY": str(4 * 2**20)}
    text = json.dumps(call("get_status", sections=["@"])).replace('"@"', "{}," * 1_300_000 + "{}")
    with serving(["--listen", "127.0.0.1:0"], large, home / "project") as web:
        answer = web.ask("POST", token=reader, content=text, headers=HEADERS | stateless("get_status"), seconds=60)
    assert "1300001 entries" in answer.json()["result"]["structuredContent"]["error"]["message"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_revoked_token_ends_what_it_had_open(web: Web, tokens: Tokens, mode: str):
    token = tokens.new("leaver", "read")
    async with web.client(token, mode) as client:
        assert (await client.call_tool("validate_config", {"config_path": "train.yaml"})).structured_content
        tokens.revoke("leaver")
        with pytest.raises(Exception, match=r"401|nauthorized|not known"):
            await client.call_tool("validate_config", {"config_path": "train.yaml"})


def test_a_listening_stream_ends_with_its_token(web: Web, tokens: Tokens):
    token = tokens.new("listener", "read")
    begin = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
    }  # fmt: skip
    session = web.post(token, begin).headers["mcp-session-id"]
    head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n"
    with knock(web, f"GET /mcp HTTP/1.1\r\n{head}\r\n") as conn:
        assert conn.recv(100).startswith(b"HTTP/1.1 200 ")
        tokens.revoke("listener")
        hear(conn)  # until it is closed


def test_the_project_file_cannot_open_the_server(env: dict[str, str], tmp_path: Path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "slurm-agent.toml").write_text('[http]\nlisten = "0.0.0.0:0"\nproxy = ["evil.example"]\n')

    said = refused([], env, project)
    assert "http.listen" in said
    assert "SLURM_AGENT_HTTP__LISTEN" in said
