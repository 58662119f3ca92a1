"""A client of the SDK that starts a server as it is told: `initialize`, every tool, and one that needs no Slurm."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

TOOLS = {"get_status", "submit_job", "wait_for_job", "analyze_log", "validate_config", "save_result"}


async def main() -> None:
    """Exits with what is wrong."""
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with Client(server, mode="legacy") as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("validate_config", {"config_path": "train.yaml"})
    if not listed >= TOOLS:
        raise SystemExit(f"these tools are not listed: {', '.join(sorted(TOOLS - listed))}")
    if answer.is_error or answer.structured_content is None or "is valid" not in answer.structured_content["summary"]:
        raise SystemExit(f"validate_config answers {answer}")


asyncio.run(main())
