"""Views in a chat, in a real Chromium, over the real server and a real Slurm: live, as text, light and dark."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client import advertise
from tests.conformance.test_inspector_on_slurm import CAMPAIGN
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
ASKED: dict[str, dict[str, Any]] = {
    "get_fleet": {}, "wait_for_job": {"job_id": "7"}, "get_campaign": {"name": "a"}, "plan_jobs": {"jobs": [{"name": "a"}]},
}  # fmt: skip
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


async def test_a_job_in_a_chat_is_followed_to_its_end_and_no_further(fresh: Place, browser: Chromium, tmp_path: Path):
    job = fresh.slurm("sbatch", "--parsable", "--partition=cpu", "--hold", "--output=/dev/null", "--wrap=true")
    async with chat(browser, fresh.server(), tmp_path) as host:
        result = await host.client.call_tool("wait_for_job", {"job_id": job, "timeout_seconds": 0})
        await host.show("wait_for_job", {"job_id": job, "timeout_seconds": 45}, result)
        await host.until("PENDING")
        fresh.slurm("scontrol", "release", job)
        await host.until("COMPLETED")
        assert figure(host, "state") == "COMPLETED"
        assert "Report" in host.inside("return document.body.textContent")
        asked = len(host.passed_on)
        assert {json.dumps(one["arguments"], sort_keys=True) for one in host.passed_on} == {
            json.dumps({"job_id": job, "timeout_seconds": 0, "detail": "full"}, sort_keys=True)
        }
        assert host.inside("return document.getElementById('again').hidden") is False
        host.inside("document.getElementById('again').click()")
        while len(host.passed_on) == asked:
            await host.serve()
        told = await host.client.call_tool("wait_for_job", {"job_id": job, "timeout_seconds": 0})
        assert told.structured_content["job"]["state"] == "COMPLETED"
        assert "report" in told.structured_content  # new to the agent, though the view has shown it


async def test_a_plan_and_a_campaign_in_a_chat(fresh: Place, browser: Chromium, tmp_path: Path):
    (fresh.project / "campaigns").mkdir(exist_ok=True)
    (fresh.project / "campaigns/naps.yaml").write_text(CAMPAIGN)
    fresh.own()
    plan = {
        "jobs": [{"name": "sweep", "count": 3, "expected": "2h", "resources": {"gpus": 1}}],
        "pool": {"gpus": 2},
        "seconds": 0,
    }
    async with chat(browser, fresh.server(), tmp_path) as host:
        for tool, words, shown in (
            ("plan_jobs", plan, ["sweep.2", "04:00:00"]),
            ("get_campaign", {"name": "naps", "view": "plan"}, ["naps: planned", "cpu_hours 1"]),
        ):
            result = await host.client.call_tool(tool, words)
            await host.show(tool, words, result)
            await host.until(result.structured_content["summary"])
            text = host.inside("return document.body.textContent")
            assert [word for word in shown if word not in text] == []
    assert browser.complaints() == []


@pytest.mark.proves("pages-show-text", "text-is-data")
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("tool", VIEWS)
async def test_hostile_text_runs_nothing_and_leads_nowhere(browser: Chromium, tmp_path: Path, tool: str, wrapped: bool):
    box = Box({tool: filled(tool, around=HOSTILE)})
    server = build_server(box, Settings())
    async with chat(browser, server, tmp_path) as host:
        result = await host.client.call_tool(tool, ASKED[tool])
        evil = f"{result.meta[MARKUP]}{HOSTILE}<a href='https://example.org'>go</a><style>h2{{display:none}}</style>"
        result.meta[MARKUP] = (
            evil + "<svg onload='parent.postMessage(1)'></svg><meta http-equiv=refresh content='0;url=x'>"
        )
        await host.show(tool, ASKED[tool], result, wrapped=wrapped, calls=False)
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
        }


THEIRS = {
    f"--color-{name}": colour
    for name, colour in {
        "background-primary": "rgb(1, 2, 3)", "background-secondary": "rgb(20, 20, 20)", "border-primary": "rgb(90, 90, 90)",
        "text-primary": "rgb(250, 250, 250)", "text-secondary": "rgb(240, 240, 240)",
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_view_takes_the_hosts_theme_and_is_read_by_all(browser: Chromium, tmp_path: Path, theme: str):
    browser.screen(700, dark=theme == "light")
    few = dict([*THEIRS.items()][:3])
    for tool in VIEWS:
        async with chat(browser, build_server(Box({tool: filled(tool)}), Settings()), tmp_path) as host:
            result = await host.client.call_tool(tool, ASKED[tool])
            await host.show(tool, ASKED[tool], result, theme=theme, colours=few)
            await host.until(result.structured_content["summary"])
            ground = host.inside("return getComputedStyle(document.body).backgroundColor")
            assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 27)"}[theme]
            with host.frame():
                assert browser.barriers() == []
            await host.show(tool, ASKED[tool], result, theme=theme, colours=THEIRS)
            await host.until(result.structured_content["summary"])
            assert host.inside("return getComputedStyle(document.body).backgroundColor") == "rgb(1, 2, 3)"


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
