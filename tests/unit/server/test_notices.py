"""Alerts as log notifications, over the SDK's own client in both protocol eras."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import LoggingMessageNotificationParams
from tests.unit.server.over_http import served

from slurm_agent_tools.api.brief import LastAnswers
from slurm_agent_tools.models import report, shapes
from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.server.web.chat_views import VIEWS
from slurm_agent_tools.settings import Settings

ALERTS = [
    Alert(severity="critical", code="job-failed", message="Job 7 ended in FAILED.", job_id="7"),
    Alert(severity="high", code="memory-high", message="96 % of a\x1b[31m name"),
    Alert(severity="medium", code="long-wait", message="Job 8 waits."),
]


class Alarmed:
    """Every call is a wait with these alerts."""

    async def call(self, name: str, ask: object, **more: object) -> shapes.Reply:
        job = shapes.JobShown(job_id="7", name="train", state="FAILED")
        now = datetime(2026, 1, 2, tzinfo=UTC)
        return report.WaitReply(status="finished", summary="Failed.", as_of=now, job=job, alerts=ALERTS)


@asynccontextmanager
async def connected(
    mode: str, level: Any = None, way: Any = None
) -> AsyncIterator[tuple[Client, list[LoggingMessageNotificationParams]]]:
    heard: list[LoggingMessageNotificationParams] = []

    async def ear(params: LoggingMessageNotificationParams) -> None:
        heard.append(params)

    server = way or build_server(Alarmed(), Settings())
    async with Client(server, mode=mode, logging_callback=ear, log_level=level) as client:
        yield client, heard


async def wait(client: Client) -> dict[str, Any]:
    result = await client.call_tool("wait_for_job", {"job_id": "7", "detail": "full"})
    assert result.structured_content is not None
    assert not result.is_error
    return result.structured_content


@pytest.mark.proves("alerts-are-log-notifications", "both-eras")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_each_alert_is_heard_once_at_its_level_as_it_stands_in_the_result(mode: str):
    async with connected(mode, "debug") as (client, heard):
        told = (await wait(client))["alerts"]
        assert [note.level for note in heard] == ["critical", "error", "warning"]
        assert [note.data for note in heard] == [{"tool": "wait_for_job", **alert} for alert in told]
        assert heard[0].logger == "slurm-agent-tools.alerts"
        assert heard[0].data["escalation"] == "at once"
        assert "\x1b" not in heard[1].data["message"]


@pytest.mark.parametrize(
    ("level", "levels"),
    [("error", ["critical", "error"]), ("critical", ["critical"]), ("emergency", []), (None, [])],
)
async def test_in_the_newer_era_a_request_hears_what_it_asked_for(level: Any, levels: list[str]):
    async with connected("auto", level) as (client, heard):
        await wait(client)
        assert [note.level for note in heard] == levels


async def test_in_the_older_era_a_client_hears_all_until_it_says_from_where_on():
    async with connected("legacy") as (client, heard):
        await wait(client)
        assert len(heard) == 3
        assert client.server_capabilities.logging is not None
        with pytest.warns(MCPDeprecationWarning):
            await client.set_logging_level("error")
        heard.clear()
        await wait(client)
        assert [note.level for note in heard] == ["critical", "error"]


@pytest.mark.proves("alerts-are-log-notifications")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_view_that_looks_again_every_few_seconds_makes_no_alert_heard_again(mode: str):
    look = {"job_id": "7", **VIEWS["wait_for_job"].more}
    async with connected(mode, "debug") as (client, heard):
        for _ in range(3):
            assert len((await client.call_tool("wait_for_job", look)).structured_content["alerts"]) == 3
        assert len(heard) == 3
        await wait(client)
        assert len(heard) == 6


def test_an_alert_that_became_graver_or_is_of_another_job_is_heard_of_a_view_too():
    told, one = LastAnswers(), {"code": "time-left", "severity": "high", "job_id": "7"}
    assert told.alerts({"alerts": [one]}, look=True) == [one]
    graver, other = one | {"severity": "critical"}, one | {"job_id": "8"}
    assert told.alerts({"alerts": [one, graver, other]}, look=True) == [graver, other]
    assert told.alerts({"alerts": {"error": {"code": "x"}}}, look=False) == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_notification_that_cannot_be_sent_fails_no_call(mode: str, monkeypatch: pytest.MonkeyPatch):
    async def broken(*args: object, **more: object) -> None:
        raise RuntimeError("the stream is closed")

    monkeypatch.setattr(ServerSession, "send_notification", broken)
    async with connected(mode, "debug") as (client, heard):
        assert len((await wait(client))["alerts"]) == 3
        assert heard == []


# --- over HTTP ---------------------------------------------------------------------------------------------------


@pytest.mark.proves("alerts-are-log-notifications", "both-eras")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http_alerts_come_on_the_stream_of_their_call(mode: str):
    async with (
        served(build_server(Alarmed(), Settings())) as url,
        connected(mode, "error", streamable_http_client(url)) as (client, heard),
    ):
        for _ in range(2):
            await wait(client)
        levels = [note.level for note in heard]
    each = ["critical", "error"] if mode == "auto" else ["critical", "error", "warning"]
    assert levels == each * 2
