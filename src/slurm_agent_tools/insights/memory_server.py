"""A job's record as the common memory servers store it, and handing it to one. Loads the MCP SDK only for that.

The shape is that of `store_memory`: `content` is a sentence to search by meaning, `tags` are for exact search. Tags and
type stand in `metadata` as well, since some servers look for them there.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurm_agent_tools.errors import AgentToolsError, MemoryUnreachable
from slurm_agent_tools.insights.job_search import tags
from slurm_agent_tools.models.job import JobRecord, Usage
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport.process import program
from slurm_agent_tools.units import format_duration, human_memory

if TYPE_CHECKING:
    from mcp import Client

    from slurm_agent_tools.settings import MemorySettings


MEMORY_TYPE = "slurm_job"

Memory = dict[str, Any]

_TOOLS = ("store_memory", "memory_store")  # mcp-memory-service has the first over HTTP, the second over stdio

_OWN_TYPE = {"MCP_CUSTOM_MEMORY_TYPES": f'{{"{MEMORY_TYPE}": []}}'}  # that server takes no other types

HINT = "See the settings memory.command and memory.url."


def memory(record: JobRecord) -> Memory:
    """`{content, memory_type, tags, metadata}`: visible signs only, without secrets. What is not known is left out."""
    if record.state == "UNKNOWN":  # not looked at since, or forgotten by Slurm
        record = replace(record, state="SUBMITTED")
    named = [sanitize.shown(sanitize.line(tag)) for tag in tags(record)]
    metadata = {name: value for name, value in _metadata(record).items() if value is not None}
    shown = sanitize.document(metadata)
    return {
        "content": sanitize.shown(_content(record)),
        "memory_type": MEMORY_TYPE,
        "tags": named,
        "metadata": {"tags": named, "type": MEMORY_TYPE, **shown},
    }


def _content(record: JobRecord) -> str:
    what = sanitize.line(f"{record.name} ({record.script_path})" if record.script_path else record.name)
    said = [f"SLURM JOB {record.job_id}: {what}.", f"Status: {record.state}.", _asked(record)]
    if record.ended is not None:
        said.append(_end(record))
    if record.usage is not None:
        said.append(_used(record.usage))
    return " ".join(part for part in said if part)


def _asked(record: JobRecord) -> str:
    asked = record.requested
    parts = [
        ("Partition", record.partition or asked.partition),
        ("GPUs", asked.gpus),
        ("Memory", None if asked.memory_bytes is None else human_memory(asked.memory_bytes)),
        ("Time limit", None if asked.time_limit_seconds is None else format_duration(asked.time_limit_seconds)),
    ]
    known = [f"{name}: {value}" for name, value in parts if value is not None]
    return f"{', '.join(known)}." if known else ""


def _end(record: JobRecord) -> str:
    seconds = _between(record.started, record.ended)
    parts = [
        ("Exit code", record.exit_code),
        ("Signal", record.signal or None),
        ("Runtime", None if seconds is None else f"{seconds} s"),
        ("Category", record.category if record.category != record.state else None),
    ]
    known = [f"{name}: {value}" for name, value in parts if value is not None]
    return f"{', '.join(known)}." if known else ""


def _used(usage: Usage) -> str:
    peak = usage.memory_peak_bytes
    return "" if peak is None else f"Peak memory: {human_memory(peak)}."


def _metadata(record: JobRecord) -> dict[str, Any]:
    asked = record.requested
    limit = asked.time_limit_seconds
    return {
        "job_id": record.job_id,
        "name": record.name,
        "script": sanitize.line(record.script_path) or None,
        "run_id": record.run_id,
        "status": record.state,
        "category": record.category,
        "cluster": record.cluster,
        "project": record.project,
        "user": record.user,
        "partition": record.partition or asked.partition,
        "nodes_requested": asked.nodes,
        "cpus": asked.cpus,
        "gpus": asked.gpus,
        "memory": None if asked.memory_bytes is None else human_memory(asked.memory_bytes),
        "memory_bytes": asked.memory_bytes,
        "time_limit": None if limit is None else format_duration(limit),
        "time_limit_seconds": limit,
        "submitted_at": record.submitted.isoformat(),
        "started_at": None if record.started is None else record.started.isoformat(),
        "completed_at": None if record.ended is None else record.ended.isoformat(),
        "wait_time_seconds": _between(record.submitted, record.started),
        "runtime_seconds": _between(record.started, record.ended),
        "exit_code": record.exit_code,
        "signal": record.signal,
        "result": record.result_path,
        **_measured(record.usage),
    }


def _measured(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    used, had = usage.cpu_seconds, usage.cpu_allocated_seconds
    return {
        "memory_peak_bytes": usage.memory_peak_bytes,
        "cpu_seconds": used,
        "cpu_efficiency": round(used / had, 4) if used is not None and had else None,
        "gpu_utilization": usage.gpu_utilization,
    }


def _between(first: Any, last: Any) -> int | None:
    return None if first is None or last is None else max(0, round((last - first).total_seconds()))


# --- handing it to a server ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryClient:
    """A connected memory server: its name, and the tool that stores with the arguments that the tool takes."""

    client: Client
    server: str
    tool: str
    takes: frozenset[str]

    async def store(self, made: Memory) -> str | None:
        """Hand one over; what the server said where it refused."""
        job = made["metadata"]
        # A conversation's memories may be alike: without one the server drops a job's end as a double of its start.
        given = made | {"conversation_id": f"slurm-{job['cluster']}-{job['job_id']}"}
        arguments = {name: value for name, value in given.items() if name in self.takes}
        result = await self.client.call_tool(self.tool, arguments)
        told = result.structured_content or {}
        inner = told.get("result")
        refused = result.is_error or (inner if isinstance(inner, Mapping) else told).get("success") is False
        said = " ".join(getattr(part, "text", "") for part in result.content)
        return sanitize.shown(sanitize.line(said))[:500] if refused else None


@asynccontextmanager
async def connected(settings: MemorySettings) -> AsyncIterator[MemoryClient]:
    """The memory server of the settings, as long as it is needed. Raises MemoryUnreachable; sets no time limit."""
    try:
        async with _client(settings) as client:
            yield await _keeper(client)
    except Exception as error:
        first = _first(error)
        if isinstance(first, AgentToolsError):
            raise first from error
        said = sanitize.shown(sanitize.line(str(first) or type(first).__name__))[:300]
        raise MemoryUnreachable(f"the memory server does not answer: {said}", hint=HINT) from error


@asynccontextmanager
async def _client(settings: MemorySettings) -> AsyncIterator[Client]:
    import httpx2  # noqa: PLC0415 - the command line shows records without all this, which takes a second to load
    from mcp import Client, StdioServerParameters  # noqa: PLC0415
    from mcp.client.stdio import stdio_client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    if settings.url is not None:
        token = os.environ.get(settings.token_env or "", "")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=settings.timeout, trust_env=False) as http,
            Client(streamable_http_client(settings.url, http_client=http)) as client,
        ):
            yield client
        return
    name, *words = settings.command
    command = program(name)
    if command is None:
        raise MemoryUnreachable(
            f"the memory server does not answer: {name!r} is in no folder of PATH, not counting the project's",
            hint=HINT,
        )
    passed = {name: os.environ[name] for name in settings.env if name in os.environ}
    home = Path.home()  # not the project: what begins there reads its modules and settings
    started = StdioServerParameters(command=command, args=words, env=_OWN_TYPE | passed, cwd=home)
    with Path(os.devnull).open("w") as nowhere:  # noqa: ASYNC230 - waits for nothing; what it logs is not ours to tell
        async with Client(stdio_client(started, nowhere)) as client:
            yield client


async def _keeper(client: Client) -> MemoryClient:
    offered = {tool.name: tool for tool in (await client.list_tools()).tools}
    name = next((name for name in _TOOLS if name in offered), None)
    if name is None:
        raise MemoryUnreachable(f"the memory server has none of the tools {', '.join(_TOOLS)}", hint=HINT)
    info = client.server_info
    server = "" if info is None else sanitize.line(f"{info.name} {info.version}")[:80]
    return MemoryClient(client, server, name, frozenset(offered[name].input_schema.get("properties", {})))


def _first(error: BaseException) -> BaseException:
    """The first error below groups of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
