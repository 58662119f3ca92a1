"""A message that the SDK cannot read is answered where its id is plain: nobody waits for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from benchmarks import start
from mcp.server import MCPServer
from mcp_types import jsonrpc_message_adapter
from tests.unit.server.over_http import served

from slurm_agent_tools.server.mcp_server import answerable
from slurm_agent_tools.text import bounded_documents

COMMAND = str(Path(sys.executable).parent / "slurm-agent-tools")


def nested(depth: int, number: int | str = 7) -> str:
    arguments = '{"name": "a", "status": "success", "metrics": {"x": ' + "[" * depth + "]" * depth + "}}"
    begun = f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, "method": "tools/call", '
    return begun + f'"params": {{"name": "save_result", "arguments": {arguments}}}}}'


UNREADABLE = [
    (nested(400), 7, -32700),
    (nested(100_000, "one"), "one", -32700),
    ('{"jsonrpc": "2.0", "id": 8, "method": "ping", "params": {"id": 9, "a": }}', 8, -32700),
    (
        '{"method": "ping", "params": {"id": 9, "method": "x", "a": tru}, "id": "ä\\"b", "jsonrpc": "2.0"}',
        'ä"b',
        -32700,
    ),
    ('{"jsonrpc": "2.0", "id": 10, "method": "ping"', 10, -32700),
    ('{"jsonrpc": "2.0", "id": 11, "method": 5}', 11, -32600),
    ('{"jsonrpc": "1.0", "id": 12, "method": "ping"}', 12, -32600),
    ('{"jsonrpc": "2.0", "id": 13, "method": "ping", "params": [1]}', 13, -32600),
]


def test_over_mcp_each_request_that_cannot_be_read_is_answered_and_the_next_one_as_well(tmp_path: Path):
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    calls = [line for line, _, _ in UNREADABLE] + ['{"jsonrpc":"2.0",\r"id":99,"method":"ping"}']
    answers = []
    with subprocess.Popen(
        [COMMAND, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=tmp_path
    ) as server:
        for call in [json.dumps(start.INITIALIZE), *calls]:
            server.stdin.write(f"{call}\n".encode())
            server.stdin.flush()
            answers.append(json.loads(server.stdout.readline()))
        server.stdin.close()

    assert [(said["id"], said["error"]["code"]) for said in answers[1:-1]] == [said[1:] for said in UNREADABLE]
    assert answers[-1]["result"] == {}


@pytest.mark.parametrize(
    "line",
    [
        nested(150), '{"jsonrpc": "2.0", "id": 1, "result": {}}', '{"jsonrpc": "2.0", "method": "x"}', "", "nothing",
        # Answers to questions of ours, notifications and what has no plain id: nobody waits for what would be said.
        '{"jsonrpc": "2.0", "id": 1, "result": ' + "[" * 400 + "]" * 400 + "}", '{"jsonrpc": "2.0", "method": "x", "params": }',
        '{"jsonrpc": "2.0", "id": null, "method": 5}', '{"params": {"id": 1, "method": "ping"}, }', '[{"id": 1, "method": 5}]',
    ],
)  # fmt: skip
def test_what_can_be_read_and_what_nobody_waits_for_is_left_as_it_is(line: str):
    assert answerable(f"{line}\n".encode()) == f"{line}\n".encode()


def test_bytes_that_are_no_text_are_no_reason_to_answer_with_an_error():
    line = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\xff"}}\n'

    assert answerable(line) == line


def test_a_message_that_says_its_id_twice_is_answered_under_the_last_one():
    stand_in = answerable(b'{"jsonrpc": "2.0", "id": 1, "id": "2", "method": "ping", "params": {]}\n')

    assert jsonrpc_message_adapter.validate_json(stand_in).model_dump()["id"] == "2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "b": "x:y", "c": {"a": 2}, "d": [3, "e", 4], "f": tr ue}', {"a": "1", "b": '"x:y"', "f": "tr"}),
        ('{"a": {"b": 1}, "c"', {}), ('[{"a": 1}]', {}), ("", {}), ('{"a" "b": 1}', {"b": "1"}), ('{"a": 1}}{"b": 2}', {"a": "1"}),
    ],
)  # fmt: skip
def test_what_an_object_holds_itself_is_found_in_a_text_that_no_parser_takes(text: str, said: dict[str, str]):
    assert bounded_documents.outermost(text) == said


async def test_over_http_a_message_that_is_nested_too_deeply_is_an_error():
    async with served(MCPServer("any")) as url, httpx2.AsyncClient() as client:
        kinds = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        answer = await client.post(url, content=nested(400), headers=kinds)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
