"""Views in a chat, in a real Chromium, over the real server and a real Slurm: live, as text, light and dark."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client import advertise
from tests.system.chat_host import ChatHost
from tests.system.chromium import DRIVER, PROGRAM, Chromium, chromium
from tests.system.faces import Place
from tests.unit.server.every_field import Filled
from tests.unit.server.test_chat_views import EXTENSION, HOSTILE, MIME, Box, filled

from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.server.web.chat_views import MARKUP, VIEWS
from slurm_agent_tools.settings import Settings

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not (PROGRAM.exists() and DRIVER.exists()), reason="there is no Chromium"),
]
OFFERS = [advertise(EXTENSION, {"mimeTypes": [MIME]})]


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as made:
        yield made


@asynccontextmanager
async def chat(browser: Chromium, server: Any, folder: Path, **more: Any) -> AsyncIterator[ChatHost]:
    async with Client(server, extensions=OFFERS, **more) as client:
        yield ChatHost(browser, client, folder)


def figure(host: ChatHost, name: str) -> str:
    return host.inside(f"return document.getElementById({name!r}).textContent").strip()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_fleet_in_a_chat_follows_slurm(fresh: Place, browser: Chromium, tmp_path: Path, mode: str):
    browser.screen(420)
    async with chat(browser, fresh.server(), tmp_path, mode=mode) as host:
        before = await host.client.call_tool("get_fleet", {})
        await host.show("get_fleet", {}, before)
        await host.until("GPUs")
        free = before.structured_content["free"]["gpus"]
        assert figure(host, "gpus-free") == str(free)
        assert before.structured_content["summary"] in host.inside("return document.body.textContent")
        job = fresh.slurm(
            "sbatch", "--parsable", "--partition=gpu", "--gres=gpu:1", "--output=/dev/null", "--wrap=sleep 300"
        )
        try:
            await host.until(f"{free - 1} free")
        finally:
            fresh.slurm("scancel", job)
        assert {one["name"] for one in host.passed_on} == {"get_fleet"}
        assert host.inside("return document.documentElement.scrollWidth <= innerWidth")
        assert browser.run("return told.height") > 200
    assert browser.complaints() == []


@pytest.mark.proves("pages-show-text", "text-is-data")
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("tool", VIEWS)
async def test_hostile_text_runs_nothing_and_leads_nowhere(browser: Chromium, tmp_path: Path, tool: str, wrapped: bool):
    box = Box({tool: filled(tool, around=HOSTILE)})
    server = build_server(box, Settings())
    async with chat(browser, server, tmp_path) as host:
        asked = {"wait_for_job": {"job_id": "7"}, "get_campaign": {"name": "a"}, "plan_jobs": {"jobs": [{"name": "a"}]}}
        result = await host.client.call_tool(tool, asked.get(tool, {}))
        evil = f"{result.meta[MARKUP]}{HOSTILE}<a href='https://example.org'>go</a><style>h2{{display:none}}</style>"
        result.meta[MARKUP] = (
            evil + "<svg onload='parent.postMessage(1)'></svg><meta http-equiv=refresh content='0;url=x'>"
        )
        await host.show(tool, asked.get(tool, {}), result, wrapped=wrapped)
        await host.until("<script>alert(1)</script>")
        found = host.inside("return [...document.querySelectorAll('#shown *')].map((one) => one.localName)")
        assert not {"script", "img", "a", "style", "meta"} & set(found)
        assert (
            host.inside("return document.querySelectorAll('#shown [onload], #shown [onerror], #shown [href]').length")
            == 0
        )
        write = "document.getElementById('shown').innerHTML = '<img src=x onerror=alert(1)>'"
        assert host.inside(f"try {{ {write}; return 'written' }} catch {{ return 'refused' }}") == "refused"
        heard = browser.run("return told.heard")
        assert set(heard) <= {
            "ui/initialize",
            "ui/notifications/initialized",
            "ui/notifications/size-changed",
            "tools/call",
        }


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_view_takes_the_hosts_theme(browser: Chromium, tmp_path: Path, theme: str):
    browser.screen(700, dark=theme == "light")
    async with chat(browser, build_server(Box({"get_fleet": filled("get_fleet")}), Settings()), tmp_path) as host:
        await host.show("get_fleet", {}, await host.client.call_tool("get_fleet", {}), theme=theme)
        await host.until("GPUs")
        ground = host.inside("return getComputedStyle(document.body).backgroundColor")
        quiet = host.inside("return getComputedStyle(document.querySelector('caption')).color")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 27)"}[theme]
    assert quiet == "rgb(90, 90, 90)"


async def test_an_answer_without_markup_stands_as_text_until_the_view_has_asked(browser: Chromium, tmp_path: Path):
    box = Box({"get_campaign": Filled().of(type(filled("get_campaign")))})
    async with chat(browser, build_server(box, Settings()), tmp_path) as host:
        result = await host.client.call_tool("get_campaign", {"name": "a"})
        result.meta = None
        await host.show("get_campaign", {"name": "a"}, result, calls=False)
        await host.until(result.structured_content["summary"])
        assert host.inside("return document.querySelectorAll('#shown pre').length") == 1
        assert host.inside("return document.getElementById('again').hidden")
        await host.show("get_campaign", {"name": "a"}, result)
        await host.until("Limits")
        assert host.passed_on[0] == {"name": "get_campaign", "arguments": {"name": "a", "detail": "full"}}
