"""The memory server that agents use most: it takes our records as they are, and finds them again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.unit.insights.test_memory_sync import NOW, submitted
from tests.unit.services.contexts import NothingReachesSlurm, toolbox

from slurm_agent_tools.cli.commands import doctor_command
from slurm_agent_tools.insights import memory_server
from slurm_agent_tools.insights.memory_sync import MemorySync
from slurm_agent_tools.settings import MemorySettings

pytestmark = pytest.mark.proves("memory-server-is-told")


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Any]:
    made = toolbox(tmp_path, NothingReachesSlurm())
    yield made
    await made.close()


async def ask(program: Path, env: dict[str, str], tool: str, **arguments: Any) -> str:
    """What a client of its own gets from the same memory."""
    started = StdioServerParameters(command=str(program), env=env)
    with Path(os.devnull).open("w") as nowhere:  # noqa: ASYNC230 - waits for nothing
        async with Client(stdio_client(started, nowhere)) as client:
            result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return "\n".join(part.text for part in result.content)


async def test_jobs_are_stored_and_found_by_tag_with_their_type(
    box: Any, memory_program: Path, memory_env: dict[str, str]
):
    memory = MemorySync(MemorySettings(command=(str(memory_program),), env=tuple(memory_env)))
    run = submitted(box, 7, run_id="sweep-3")
    submitted(box, 8)
    assert await memory.hand_over(box.context) == 2
    box.context.store.update(run, outcome="COMPLETED", exit_code=0, started=NOW, ended=NOW + timedelta(seconds=61))
    assert await memory.hand_over(box.context) == 1
    assert await memory.hand_over(box.context) == 0

    found = await ask(memory_program, memory_env, "memory_search", tags=["sweep-3"], tag_match="all")
    assert found.count("SLURM JOB 7: train (train.sh).") == 2
    assert "Status: COMPLETED" in found
    assert "SLURM JOB 8" not in found
    types = await ask(memory_program, memory_env, "memory_list", memory_type="slurm_job")
    assert types.count("SLURM JOB") == 3


async def test_an_agent_can_hand_a_record_on_unchanged(box: Any, memory_program: Path, memory_env: dict[str, str]):
    submitted(box, 7, outcome="FAILED", category="time-limit")
    (record,) = box.context.store.history(box.context.owner)
    await ask(memory_program, memory_env, "memory_store", **memory_server.memory(record))

    found = await ask(memory_program, memory_env, "memory_search", tags=["time-limit", "failed"], tag_match="all")
    assert "SLURM JOB 7: train (train.sh). Status: FAILED." in found


@contextmanager
def listening(program: Path, env: dict[str, str]) -> Iterator[str]:
    """The same server over HTTP, behind a token."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    argv = [
        program.with_name("memory"),
        "server",
        "--streamable-http",
        "--sse-host",
        "127.0.0.1",
        "--sse-port",
        str(port),
    ]
    started = env | {"MCP_API_KEY": "key-of-the-test", "MCP_CUSTOM_MEMORY_TYPES": '{"slurm_job": []}'}
    process = subprocess.Popen(argv, env=started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)


async def test_over_http_it_is_told_with_a_token_from_the_environment(
    box: Any, memory_program: Path, memory_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    submitted(box, 7)
    with listening(memory_program, memory_env) as url:
        without = await doctor_command._memory(MemorySettings(url=url))
        monkeypatch.setenv("MEMORY_KEY", "key-of-the-test")
        known = MemorySettings(url=url, token_env="MEMORY_KEY")
        step = await doctor_command._memory(known)
        assert await MemorySync(known).hand_over(box.context) == 1

    assert (without["ok"], step["ok"]) == (False, True)
    assert "key-of-the-test" not in str(without)
    assert "memory" in step["seen"]
    assert "tool memory_store" in step["seen"]
