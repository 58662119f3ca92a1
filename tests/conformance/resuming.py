"""A fixture tool that drops its stream half-way, and the store that lets the client take it up again."""

from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.types import JSONRPCMessage

PAUSE = 0.1


class Events(EventStore):
    """Every event of this process, in order; an id is its place in the list."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._kept.append((stream_id, message))
        return str(len(self._kept) - 1)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        if not last_event_id.isdecimal() or int(last_event_id) >= len(self._kept):
            return None
        stream = self._kept[int(last_event_id)][0]
        for place, (owner, message) in enumerate(self._kept):
            if place > int(last_event_id) and owner == stream and message is not None:
                await send_callback(EventMessage(message, str(place)))
        return stream


def add(server: MCPServer[Any]) -> None:
    @server.tool()
    async def test_reconnection(ctx: Context) -> str:
        """Close the stream, then answer: the client has to come back for it."""
        await anyio.sleep(PAUSE)
        await ctx.close_sse_stream()
        await anyio.sleep(PAUSE)
        return "Reconnected."
