"""Alerts as MCP log notifications, beside the result that holds them.

Up to 2025-11-25 a client may say from which level on it wants to hear of them (logging/setLevel), and hears of all
until it does. From 2026-07-28 on each request says it for itself, and what says nothing is told nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.server.connection import allowed_log_levels
from mcp.server.mcpserver import Context
from mcp.server.session import ServerSession
from mcp.types import (
    EmptyResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    SetLevelRequestParams,
)

from slurm_agent_tools import logs

LEVELS: Mapping[str, LoggingLevel] = {"critical": "critical", "high": "error", "medium": "warning"}
"""The level of the protocol (RFC 5424) for each severity."""
_ORDER: tuple[LoggingLevel, ...] = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip
_KEPT = "slurm_agent_tools.level"
_LOGGER = "slurm-agent-tools.alerts"
_log = logs.get_logger()


def register(server: Server[Any]) -> None:
    """Let clients of the older era choose a level; that also tells them that there is something to hear."""
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)


async def _set_level(context: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
    _scratch(context.session)[_KEPT] = params.level
    return EmptyResult()


async def tell(context: Context[Any, Any], tool: str, body: Mapping[str, Any]) -> None:
    """Send every alert of a result once, on the stream of its own request. A failure to do so fails no call."""
    for alert in body.get("alerts") or ():
        level = LEVELS[alert["severity"]]
        try:
            if _wanted(context, level):
                await _send(context, level, {"tool": tool, **alert})
        except Exception as error:  # noqa: BLE001 - the alert is in the result all the same
            _log.info("alert was not sent", code=alert["code"], error=type(error).__name__)
            return


def _wanted(context: Context[Any, Any], level: LoggingLevel) -> bool:
    asked = context.request_context
    least = _scratch(asked.session).get(_KEPT, "debug")
    allowed = allowed_log_levels(asked.protocol_version, asked.meta)
    return level in allowed and _ORDER.index(level) >= _ORDER.index(least)


async def _send(context: Context[Any, Any], level: LoggingLevel, data: Mapping[str, Any]) -> None:
    """As `Context.log` does, which is deprecated with the whole of protocol logging and warns."""
    params = LoggingMessageNotificationParams(level=level, logger=_LOGGER, data=dict(data))
    told = LoggingMessageNotification(params=params)
    await context.request_context.session.send_notification(told, related_request_id=context.request_id)


def _scratch(session: ServerSession) -> dict[str, Any]:
    """What is remembered of one connection; in the newer era of one request only."""
    return session._connection.state  # noqa: SLF001 - the SDK has no other way from a request to its connection
