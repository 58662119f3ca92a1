"""The MCP face over the SDK's own client, in both protocol eras, with a toolbox that only records."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.server import MCPServer
from tests.unit.server.answers import ANSWERS, ARGUMENTS, JOB

from slurm_agent_tools import __version__
from slurm_agent_tools.api import brief, catalogue, render, serialize
from slurm_agent_tools.errors import SlurmUnreachable, UnknownJob
from slurm_agent_tools.models import (
    arguments,
    shapes,
)
from slurm_agent_tools.server import mcp_server
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.settings import TOOLSETS, Settings

SNAPSHOT = Path(__file__).parent / "snapshots" / "tools.json"


class RecordingToolbox:
    """Answers from the table, or as `acts` says; keeps what it was asked."""

    def __init__(self, acts: Callable[..., Any] | None = None) -> None:
        self.asked: list[tuple[str, arguments.ToolArguments]] = []
        self.callers: list[Caller] = []
        self._acts = acts

    async def call(
        self, name: str, ask: arguments.ToolArguments, *, caller: Caller, progress: Any, consult: Any, asked: Any
    ) -> shapes.Reply:
        self.asked.append((name, ask))
        self.callers.append(caller)
        self.consult = consult
        if self._acts is not None:
            await self._acts(progress)
        return ANSWERS[name]


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def connected(box: RecordingToolbox, era: str = "auto", **settings: Any) -> AsyncIterator[Client]:
    async with Client(build_server(box, Settings(**settings)), mode=era) as client:
        yield client


async def test_the_server_says_who_it_is_and_how_to_work(era: str) -> None:
    async with connected(RecordingToolbox(), era) as client:
        assert (client.server_info.name, client.server_info.version) == ("slurm-agent-tools", __version__)
        assert client.instructions == catalogue.INSTRUCTIONS
        assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[era]


def test_our_server_touches_nothing_that_the_sdks_keeps_for_itself() -> None:
    source = Path(mcp_server.__file__).read_text()
    theirs = {name for name in (*vars(MCPServer("theirs")), *dir(MCPServer)) if name.startswith("_")}
    assert set(re.findall(r"self\.(_\w+)", source)) & theirs == set()


async def test_the_tools_are_listed_in_the_catalogues_order_with_all_four_hints(era: str) -> None:
    async with connected(RecordingToolbox(), era) as client:
        first = (await client.list_tools()).tools
        again = (await client.list_tools()).tools
    assert first == again
    assert [tool.name for tool in first] == [tool.name for tool in catalogue.TOOLS]
    for listed, meant in zip(first, catalogue.TOOLS, strict=True):
        assert listed.title == meant.title
        assert listed.annotations is not None
        assert listed.annotations.model_dump(exclude={"title"}) == {
            "read_only_hint": meant.read_only,
            "destructive_hint": meant.destructive,
            "idempotent_hint": meant.idempotent,
            "open_world_hint": meant.open_world,
        }


async def test_a_toolset_that_is_switched_off_is_neither_listed_nor_called(era: str, monkeypatch) -> None:
    tools = [replace(tool, toolset="files") if tool.name == "save_result" else tool for tool in catalogue.TOOLS]
    monkeypatch.setattr(catalogue, "TOOLS", tuple(tools))
    box = RecordingToolbox()
    async with connected(box, era, toolsets=("core", "fleet")) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        called = await client.call_tool("save_result", ARGUMENTS["save_result"])
    assert listed == [tool.name for tool in tools if tool.toolset in {"core", "fleet"}]
    assert called.is_error
    assert "Unknown tool" in called.content[0].text
    assert box.asked == []


async def listing(**settings: Any) -> list[dict[str, Any]]:
    async with connected(RecordingToolbox(), **settings) as client:
        tools = (await client.list_tools()).tools
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


async def test_the_published_catalogue_is_the_one_that_was_reviewed() -> None:
    """Clients trust a tool by its description: UPDATE_SNAPSHOTS=1 writes the new one for a person to read."""
    now = json.dumps(await listing(), indent=1, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.parent.mkdir(exist_ok=True)
        SNAPSHOT.write_text(now)
    assert now == SNAPSHOT.read_text()


@pytest.mark.proves("catalogue-is-small")
@pytest.mark.parametrize(("toolsets", "most"), [(("core",), 12_000), (TOOLSETS, 18_000)])
async def test_names_titles_descriptions_and_input_schemas_stay_small(toolsets: tuple[str, ...], most: int) -> None:
    counted = ("name", "title", "description", "inputSchema")
    named = [{key: tool[key] for key in counted} for tool in await listing(toolsets=toolsets)]
    assert len(json.dumps(named).encode()) < most


@pytest.mark.proves("catalogue-is-small")
@pytest.mark.parametrize(("toolsets", "most"), [(("core",), 32_000), (TOOLSETS, 48_000)])
async def test_all_that_is_sent_of_the_tools_stays_small(toolsets: tuple[str, ...], most: int) -> None:
    assert len(json.dumps(await listing(toolsets=toolsets)).encode()) < most


async def test_the_core_are_the_nine_tools_that_every_client_gets() -> None:
    assert [tool["name"] for tool in await listing(toolsets=("core",))] == [tool.name for tool in catalogue.TOOLS[:9]]


async def test_input_schemas_are_flat_closed_and_without_noise() -> None:
    for tool in await listing():
        schema = tool["inputSchema"]
        text = json.dumps(schema)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert "$ref" not in text
        assert '"title"' not in text
        assert '"null"' not in text


@pytest.mark.parametrize("name", ARGUMENTS)
async def test_every_tool_answers_in_full_or_in_brief_as_its_schema_says(name: str, era: str) -> None:
    box = RecordingToolbox()
    async with connected(box, era) as client:
        full = await client.call_tool(name, ARGUMENTS[name] | {"detail": "full"})
        short = await client.call_tool(name, ARGUMENTS[name])
        (schema,) = [tool.output_schema for tool in (await client.list_tools()).tools if tool.name == name]
    assert (full.is_error, short.is_error) == (False, False)
    assert full.structured_content == serialize.document(ANSWERS[name])
    assert short.structured_content == brief.brief(ANSWERS[name])
    for told in (full, short):
        Draft202012Validator(schema).validate(told.structured_content)
    assert box.asked[1:] == [(name, serialize.BY_NAME[name].ask.model_validate(ARGUMENTS[name]))]


@pytest.mark.parametrize("detail", ["full", "brief"])
async def test_an_answer_is_made_showable_once_whoever_it_goes_to(detail: str, era: str, monkeypatch) -> None:
    made: list[object] = []
    document = serialize.document
    monkeypatch.setattr(serialize, "document", lambda reply: made.append(reply) or document(reply))
    async with connected(RecordingToolbox(), era) as client:
        await client.call_tool("wait_for_job", ARGUMENTS["wait_for_job"] | {"detail": detail})
    assert made == [ANSWERS["wait_for_job"]]


@pytest.mark.parametrize("name", ARGUMENTS)
async def test_the_text_says_in_lines_what_the_structure_says_and_is_no_second_copy_of_it(name: str, era: str) -> None:
    async with connected(RecordingToolbox(), era) as client:
        result = await client.call_tool(name, ARGUMENTS[name])
    (part,) = result.content
    marks = result.structured_content.get("data_only", [])
    lines = [
        *render.lines(render.pieces(result.structured_content)),
        *([f"data_only: {', '.join(marks)}"] * bool(marks)),
    ]
    assert part.text == "\n".join(lines)
    assert part.text.startswith(f"{ANSWERS[name].status}: {ANSWERS[name].summary}")
    assert "{" not in part.text


async def test_a_refusal_is_a_result_and_not_an_error(era: str) -> None:
    async with connected(RecordingToolbox(), era) as client:
        result = await client.call_tool("submit_job", {"script": "job.sh"})
    assert not result.is_error
    assert result.structured_content["status"] == "blocked"


async def test_a_failure_says_code_message_and_hint_and_fits_the_output_schema(era: str) -> None:
    async def fail(_: object) -> None:
        raise SlurmUnreachable("the controller does not answer", hint="Ask the administrator.")

    async with connected(RecordingToolbox(fail), era) as client:
        result = await client.call_tool("get_status", {})
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
    assert result.is_error
    assert result.structured_content == {
        "error": {
            "code": "cluster_unreachable",
            "message": "the controller does not answer",
            "hint": "Ask the administrator.",
        }
    }
    assert result.content[0].text == (
        "error (cluster_unreachable): the controller does not answer\nAsk the administrator."
    )
    for schema in schemas.values():
        Draft202012Validator(schema).validate(result.structured_content)


async def test_an_output_schema_refuses_an_answer_that_is_neither_a_reply_nor_an_error() -> None:
    for tool in await listing():
        checker = Draft202012Validator(tool["outputSchema"])
        assert not checker.is_valid({})
        assert not checker.is_valid({"status": "ok"})
        assert not checker.is_valid({**serialize.document(ANSWERS[tool["name"]]), "surprise": 1})


async def test_nothing_of_an_unforeseen_error_reaches_the_client(era: str) -> None:
    async def crash(_: object) -> None:
        raise RuntimeError("secret detail")

    async with connected(RecordingToolbox(crash), era) as client:
        result = await client.call_tool("submit_job", {"script": "job.sh"})
    assert result.is_error
    assert result.structured_content["error"]["code"] == "internal"
    assert "secret detail" not in result.model_dump_json()


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("submit_job", {"script": "a.sh", "dryrun": False}, ["dryrun", "Did you mean dry_run?"]),
        ("submit_job", {"script": "a.sh", "zzz": 1}, ["zzz", "Known arguments: script"]),
        ("submit_job", {}, ["script is required", "Batch script"]),
        ("submit_job", {"script": None}, ["script", "is null"]),
        ("wait_for_job", {"job_id": "7", "timeout_seconds": -1}, ["timeout_seconds", "-1"]),
        ("wait_for_job", {"job_id": ["7"]}, ["job_id", "['7']"]),
        ("get_status", {"sections": ["cheese"]}, ["sections.0", "cheese"]),
        ("get_status", {"sections": ["cheese"] * 10_001}, ["sections", "10001 entries", "at most 10000"]),
        ("generate_script", {"name": "n", "command": "c", "checkpoint": {"folder": "x"}}, ["checkpoint.dir"]),
    ],
)
async def test_bad_arguments_are_named_and_reach_nothing(
    name: str, arguments: dict[str, Any], said: list[str], era: str
) -> None:
    box = RecordingToolbox()
    async with connected(box, era) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    error = result.structured_content["error"]
    assert error["code"] == "invalid_input"
    for words in said:
        assert words in error["message"] + " " + error["hint"]
    assert box.asked == []


async def test_a_number_for_a_job_id_and_json_text_for_a_list_are_understood(era: str) -> None:
    box = RecordingToolbox()
    async with connected(box, era) as client:
        await client.call_tool("wait_for_job", {"job_id": 123})
        await client.call_tool("submit_job", {"script": "a.sh", "args": '["x", "y"]'})
    assert box.asked[0][1] == arguments.WaitForJob(job_id="123")
    assert box.asked[1][1] == arguments.SubmitJob(script="a.sh", args=["x", "y"])


async def test_text_that_looks_like_json_stays_text_where_text_is_meant() -> None:
    box = RecordingToolbox()
    async with connected(box) as client:
        await client.call_tool("generate_script", {"name": "n", "command": "[ -f x ] && true"})
        await client.call_tool("cancel_job", {"job_id": "7", "reason": '{"a": 1}'})
    assert box.asked[0][1].command == "[ -f x ] && true"
    assert box.asked[1][1].reason == '{"a": 1}'


async def test_progress_reaches_the_client_and_only_rises(era: str) -> None:
    async def act(progress: Any) -> None:
        for done in (1.0, 3.0, 2.0, 3.0, 5.0):
            await progress(done, 10.0, f"{done} s")

    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async with connected(RecordingToolbox(act), era) as client:
        await client.call_tool("wait_for_job", {"job_id": "7"}, progress_callback=note)
    assert seen == [(1, 10, "1.0 s"), (3, 10, "3.0 s"), (5, 10, "5.0 s")]


async def test_a_client_that_gives_up_ends_the_wait(era: str) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait(_: object) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with connected(RecordingToolbox(wait), era) as client:
        call = asyncio.create_task(client.call_tool("wait_for_job", {"job_id": "7"}))
        await asyncio.wait_for(started.wait(), 5)
        call.cancel()
        await asyncio.wait_for(ended.wait(), 5)
        with pytest.raises(asyncio.CancelledError):
            await call
    assert ended.is_set()


async def test_the_prefix_is_on_every_name_and_in_every_text(era: str) -> None:
    box = RecordingToolbox()
    async with connected(box, era, tool_prefix="slurm_agent_") as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [f"slurm_agent_{tool.name}" for tool in catalogue.TOOLS]
        assert "slurm_agent_submit_job" in (tools[0].description or "")
        assert "slurm_agent_get_status, slurm_agent_validate_config" in (client.instructions or "")
        result = await client.call_tool("slurm_agent_get_status", {})
        plain = await client.call_tool("get_status", {})
    assert not result.is_error
    assert [name for name, _ in box.asked] == ["get_status"]
    assert plain.is_error


async def test_the_caller_is_named_after_the_client(era: str) -> None:
    box = RecordingToolbox()
    async with connected(box, era) as client:
        await client.call_tool("get_status", {})
    assert box.callers[0].face == "mcp"
    assert box.callers[0].client == "mcp"


async def test_an_error_of_the_toolbox_keeps_its_own_code() -> None:
    async def fail(_: object) -> None:
        raise UnknownJob("job_id", "99", "Slurm knows no such job")

    async with connected(RecordingToolbox(fail)) as client:
        result = await client.call_tool("wait_for_job", {"job_id": "99"})
    assert result.structured_content["error"]["code"] == "unknown_job"
    assert "job_id" in result.structured_content["error"]["message"]


@pytest.mark.parametrize(
    ("name", "shown"), [("caf\udce9", "caf\\xe9"), ("half \ud800", "half \\ud800"), ("größe", "größe")]
)
async def test_a_job_name_that_is_no_utf_8_is_spelled_out(
    name: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = JOB.model_copy(update={"name": name})
    monkeypatch.setitem(ANSWERS, "cancel_job", ANSWERS["cancel_job"].model_copy(update={"job": job}))
    async with connected(RecordingToolbox()) as client:
        result = await client.call_tool("cancel_job", ARGUMENTS["cancel_job"])
    assert result.structured_content["job"]["name"] == shown
