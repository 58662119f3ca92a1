"""Which client was told what: a wait that is repeated tells each session what it has not heard."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.unit.server.over_http import served

from slurm_agent_tools.models import report, shapes
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.settings import Settings

pytestmark = pytest.mark.proves("answers-are-brief")


class Going:
    """Every call is a wait for a job that goes on."""

    async def call(self, name: str, ask: object, **more: object) -> shapes.Reply:
        now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        job = shapes.JobShown(job_id="7", name="train", state="RUNNING", nodes="n1")
        return report.WaitReply(status="running", summary="It runs.", as_of=now, job=job)


WHOLE = {"job_id": "7", "name": "train", "state": "RUNNING", "nodes": "n1"}
KNOWN = {"job_id": "7", "state": "RUNNING"}


async def waits(client: Client, **more: Any) -> dict[str, Any]:
    result = await client.call_tool("wait_for_job", {"job_id": "7"} | more)
    assert result.structured_content is not None
    job: dict[str, Any] = result.structured_content["job"]
    return job


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_on_standard_input_a_server_remembers_what_its_one_client_was_told(mode: str):
    async with Client(build_server(Going(), Settings()), mode=mode) as client:
        assert await waits(client) == WHOLE
        assert await waits(client) == KNOWN
        assert (await waits(client, detail="full"))["user"] is None
        assert await waits(client) == KNOWN


async def test_over_http_each_session_is_told_for_itself():
    async with served(build_server(Going(), Settings())) as url:
        for _ in range(2):
            async with Client(streamable_http_client(url), mode="legacy") as client:
                assert await waits(client) == WHOLE
                assert await waits(client) == KNOWN


async def test_over_http_without_sessions_every_answer_is_whole():
    async with served(build_server(Going(), Settings())) as url, Client(streamable_http_client(url)) as client:
        assert await waits(client) == WHOLE
        assert await waits(client) == WHOLE
