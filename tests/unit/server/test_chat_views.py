"""Views in a chat (MCP Apps): what a host is offered, what it gets beside an answer, and what a view shows of it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.client import advertise
from tests.unit.server.answers import ANSWERS, ARGUMENTS
from tests.unit.server.every_field import Filled, leaves, spellings
from tests.unit.server.web.browsing import Seen

from slurm_agent_tools.api import brief, serialize
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models import arguments, campaign_answer, fleet_answer, plan_answer, report, shapes
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.chat_views import MARKUP, VIEWS
from slurm_agent_tools.settings import Settings

EXTENSION, MIME = "io.modelcontextprotocol/ui", "text/html;profile=mcp-app"

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\" ' onload=x </style></pre>"

MODELS = {
    "get_fleet": fleet_answer.FleetReply,
    "plan_jobs": plan_answer.PlanReply,
    "get_campaign": campaign_answer.CampaignReply,
    "wait_for_job": report.WaitReply,
}

GANTT = "slurm://plans/0123456789abcdef/gantt"


def filled(tool: str, around: str = "") -> shapes.Reply:
    """An answer with something in every field."""
    make = Filled(around)
    given: dict[str, Any] = {"plan_jobs": {"gantt_uri": GANTT}}.get(tool, {})
    if tool == "get_campaign":
        given = {"table": [[f"column{around}"], [f"cell{around}"], [7]]}
    return make.of(MODELS[tool], **given)


class Box:
    """Answers what it is given, and has one picture."""

    def __init__(
        self, replies: dict[str, shapes.Reply], picture: str | Exception = "<svg><text>drawn</text></svg>"
    ) -> None:
        self.replies, self.picture = replies, picture

    async def call(self, name: str, ask: arguments.ToolArguments, **_: Any) -> shapes.Reply:
        return self.replies[name]

    async def view(self, name: str, given: Any, **_: Any) -> str:
        assert name == "plan-gantt"
        if isinstance(self.picture, Exception):
            raise self.picture
        return self.picture


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def host(box: Box, era: str = "auto", *, shows: bool = True, **settings: Any) -> AsyncIterator[Client]:
    """A client; `shows`: it says that it shows views."""
    offers = [advertise(EXTENSION, {"mimeTypes": [MIME]})] if shows else []
    async with Client(build_server(box, Settings(**settings)), mode=era, extensions=offers) as client:
        yield client


async def drawn(box: Box, tool: str) -> str:
    async with host(box) as client:
        return (await client.call_tool(tool, ARGUMENTS[tool])).meta[MARKUP]


async def test_each_view_is_listed_read_and_named_by_its_tool(era: str):
    async with host(Box({}), era) as client:
        tools = {tool.name: tool.meta for tool in (await client.list_tools()).tools if tool.meta}
        listed = {str(one.uri): one for one in (await client.list_resources()).resources}
        assert set(tools) == set(VIEWS)
        for meta in tools.values():
            uri = meta["ui/resourceUri"]
            assert meta["ui"] == {"resourceUri": uri, "visibility": ["model", "app"]}
            (read,) = (await client.read_resource(uri)).contents
            assert (listed[uri].mime_type, read.mime_type) == (MIME, MIME)
            assert listed[uri].meta == read.meta == {"ui": {"csp": {}, "prefersBorder": True}}
            assert read.text.startswith("<!doctype html>")
        assert {uri for uri in listed if uri.startswith("ui:")} == {meta["ui/resourceUri"] for meta in tools.values()}


@pytest.mark.parametrize("tool", VIEWS)
async def test_a_document_loads_nothing_and_asks_only_its_own_tool(tool: str):
    async with host(Box({}), tool_prefix="slurm_agent_") as client:
        (read,) = (await client.read_resource(VIEWS[tool].uri)).contents
    seen = Seen(read.text)
    assert not {name for _, names in seen.tags for name in names} & {"src", "href", "action", "onclick", "style"}
    assert not re.search(r"https?:|@import|url\(", read.text)
    assert [tag for tag, _ in seen.tags].count("script") == 1 == [tag for tag, _ in seen.tags].count("style")
    (main,) = [names for tag, names in seen.tags if tag == "main"]
    assert main["data-tool"] == f"slurm_agent_{tool}"
    more = json.loads(main["data-more"])
    serialize.parse(serialize.BY_NAME[tool], ARGUMENTS[tool] | more)
    assert more["detail"] == "full"
    assert serialize.BY_NAME[tool].read_only


async def test_where_a_toolset_is_switched_off_its_views_are_too():
    async with host(Box({}), toolsets=("core", "fleet")) as client:
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        assert {uri for uri in listed if uri.startswith("ui:")} == {
            VIEWS[tool].uri for tool in ("wait_for_job", "get_fleet")
        }
        with pytest.raises(Exception, match="Unknown resource"):
            await client.read_resource(VIEWS["plan_jobs"].uri)


@pytest.mark.parametrize("tool", VIEWS)
async def test_only_hosts_that_show_views_and_views_themselves_get_markup(tool: str, era: str):
    box = Box(ANSWERS)
    async with host(box, era, shows=False) as client:
        assert not ((await client.call_tool(tool, ARGUMENTS[tool])).meta or {}).get(MARKUP)
        asked = await client.call_tool(tool, ARGUMENTS[tool] | dict(VIEWS[tool].more))
    async with host(box, era) as client:
        short = await client.call_tool(tool, ARGUMENTS[tool])
        other = await client.call_tool("get_status", {})
    assert asked.meta[MARKUP] == short.meta[MARKUP]
    assert MARKUP not in (other.meta or {})
    assert MARKUP not in json.dumps([short.structured_content, short.content[0].text])


async def test_a_wait_in_full_that_no_view_makes_draws_none():
    async with host(Box(ANSWERS), shows=False) as client:
        waited = {"job_id": "7", "timeout_seconds": 60, "detail": "full"}
        assert MARKUP not in ((await client.call_tool("wait_for_job", waited)).meta or {})


TOLD_OTHERWISE = re.compile(
    r"""data_only | status | (next_poll|suggested_timeout)_seconds   # for the agent
      | gantt_uri                          # the picture itself is there
      | tasks_not_shown                    # of those that went well, which are there
      | cost[.]running_at_most[.]what      # the row says it""",
    re.VERBOSE,
)


@pytest.mark.parametrize("tool", VIEWS)
async def test_a_view_shows_every_fact_of_the_text_beside_it(tool: str):
    reply = filled(tool)
    text = Seen(await drawn(Box({tool: reply}), tool)).text
    missing = [
        (way, value)
        for way, value in leaves(brief.brief(reply))
        if not TOLD_OTHERWISE.fullmatch(way) and not any(told in text for told in spellings(value))
    ]
    assert missing == []


@pytest.mark.proves("pages-show-text", "text-is-data")
@pytest.mark.parametrize("tool", VIEWS)
async def test_hostile_text_is_text_in_every_view(tool: str):
    reply = filled(tool, around=HOSTILE + "\x1b[31m\u202e")
    markup = await drawn(Box({tool: reply}), tool)
    seen = Seen(markup)
    names = {name for _, found in seen.tags for name in found}
    allowed, attributes = lists()
    assert {tag for tag, _ in seen.tags} <= allowed
    assert {name.lower() for name in names} <= {name.lower() for name in attributes} | {"data-said"}
    assert "<script>alert(1)</script><img src=x onerror=alert(2)>" in seen.text
    assert not {"\x1b", "\u202e"} & set(markup)


def lists() -> tuple[set[str], set[str]]:
    """The elements and attributes that the view's script lets through."""
    source = (fragments.FOLDER / "static" / "chat.js").read_text()
    found = [
        " ".join(re.findall(r'"([^"]*)"', part))
        for part in re.findall(r"new Set\(\s*\((.*?)\)\.split", source, re.DOTALL)
    ]
    tags, attributes = (set(one.split()) for one in found)
    return tags, attributes


def test_what_the_script_lets_through_cannot_run_load_or_lead_away():
    tags, attributes = lists()
    assert not tags & {
        "script",
        "style",
        "a",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "link",
        "meta",
        "base",
        "use",
        "image",
    }
    assert not [
        name for name in attributes if name.startswith("on") or name in {"style", "href", "src", "action", "xlink:href"}
    ]


async def test_a_plan_shows_its_picture_and_does_without():
    reply = filled("plan_jobs")
    assert "<svg><text>drawn</text></svg>" in await drawn(Box({"plan_jobs": reply}), "plan_jobs")
    gone = Box({"plan_jobs": reply}, picture=StorageError("The plan cannot be read"))
    assert "<svg" not in await drawn(gone, "plan_jobs")


async def test_a_view_that_cannot_be_drawn_or_is_too_long_fails_no_call(monkeypatch):
    box = Box(ANSWERS)
    for markup in (lambda *_: 1 / 0, lambda *_: "x" * 2**20):
        monkeypatch.setattr(fragments, "fragment", markup)
        async with host(box) as client:
            result = await client.call_tool("get_fleet", {})
        assert not result.is_error
        assert result.content[0].text.startswith("ok: 4 GPUs are free.")
        assert MARKUP not in (result.meta or {})
