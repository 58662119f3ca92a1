"""/metrics and its kin over a Slurm in memory: who may read them, what a look costs, and that their text can be read."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.api import serialize
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import ConfigError, SlurmMissing
from slurm_agent_tools.fleet.fleet_metrics import MetricFamily, MetricSample
from slurm_agent_tools.server.http import listener
from slurm_agent_tools.server.http.auth import Authenticator
from slurm_agent_tools.server.http.host_check import allowed_hosts
from slurm_agent_tools.server.http.listener import Address
from slurm_agent_tools.server.http.machine_pages import MACHINE_PATHS, METRICS, DecisionCounts, rendered
from slurm_agent_tools.server.http.scope_check import ScopedToolbox
from slurm_agent_tools.server.web.visitors import Visitors
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.settings import HttpSettings
from slurm_agent_tools.store.tokens import Tokens

GPU_JOB = ("#!/bin/bash\nsleep 6000\n", "--partition=gpu", "--gres=gpu:2", "--time=2:00:00")


class Clusters:
    """The one context of a fake toolbox."""

    def __init__(self, context: Any, error: Exception | None = None) -> None:
        self.context, self.error = context, error

    async def at(self, cluster: str | None) -> Any:
        return await self.home()

    async def home(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.context

    async def close(self) -> None: ...


class Scene:
    def __init__(self, folder: Path, error: Exception | None = None, **settings: Any) -> None:
        self.slurm = FakeSlurm()
        folder.mkdir(exist_ok=True)
        self.box = fake_toolbox(folder, self.slurm)
        self.context = self.box.context
        self.tokens, self.toolbox = Tokens(folder / "tokens"), ScopedToolbox(Clusters(self.context, error))
        http = HttpSettings(**settings)

        async def inner(scope: Any, receive: Any, send: Any) -> None:
            raise AssertionError("nothing of this is for MCP")

        self.guard = Authenticator(inner, self.toolbox, self.tokens, allowed_hosts(["login1"], ()), http)
        self.token = self.tokens.new("prometheus", "scrape")

    @property
    def calls(self) -> Counter[str]:
        return Counter(self.context.slurm.calls)

    async def get(self, path: str = METRICS, token: str | None = None, method: str = "GET") -> httpx2.Response:
        transport = httpx2.ASGITransport(self.guard)
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://login1:8000") as client:
            return await client.request(method, path, headers=headers)

    async def samples(self) -> dict[tuple[str, ...], float]:
        """The values by name and the values of the labels, in their order."""
        answer = await self.get(token=self.token)
        assert answer.status_code == 200, answer.text
        return {
            (one.name, *one.labels.values()): one.value
            for family in text_string_to_metric_families(answer.text)
            for one in family.samples
        }


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.proves("metrics-need-a-token")
@pytest.mark.parametrize("path", sorted(MACHINE_PATHS))
async def test_nobody_reads_without_a_token_and_every_scope_reads(scene: Scene, path: str):
    assert (await scene.get(path)).status_code == 401
    assert (await scene.get(path, "sat_0123456789abcdef_" + "x" * 43)).status_code == 401
    assert not scene.calls
    for scope in ("read", "write"):
        assert (await scene.get(path, scene.tokens.new(scope, scope))).status_code == 200
    assert (await scene.get(path, scene.token)).status_code == 200
    assert (await scene.get(path, scene.token, "HEAD")).status_code == 200
    refused = await scene.get(path, scene.token, "POST")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.proves("metrics-need-a-token")
async def test_a_token_for_scraping_calls_no_tool(scene: Scene):
    transport = httpx2.ASGITransport(scene.guard)
    async with httpx2.AsyncClient(transport=transport, base_url="http://login1:8000") as client:
        answer = await client.post("/mcp", json={}, headers={"authorization": f"Bearer {scene.token}"})
    assert answer.status_code == 403
    assert 'scope="read"' in answer.headers["www-authenticate"]
    assert Visitors(scene.tokens).bearer(scene.token) is None  # nor opens it the pages for people


@pytest.mark.proves("metrics-need-a-token")
async def test_metrics_alone_are_open_where_a_person_opened_them(tmp_path: Path):
    scene = Scene(tmp_path, open_metrics=True)
    assert (await scene.get()).status_code == 200
    assert (await scene.get("/status")).status_code == 401
    assert (await scene.get(token="sat_wrong")).status_code == 401  # who shows a token shows a good one


@pytest.mark.proves("metrics-need-a-token")
@pytest.mark.parametrize(
    ("address", "more"),
    [
        (Address(host="10.0.0.5", port=1, ip="10.0.0.5"), {}),
        (Address(host="127.0.0.1", port=1, ip="127.0.0.1"), {"proxy": ("hpc.example.org",)}),
    ],
)
def test_open_metrics_beyond_this_machine_stop_the_server(tmp_path: Path, address: Address, more: dict[str, Any]):
    http = HttpSettings(open_metrics=True, **more)
    with pytest.raises(ConfigError, match="only for loopback"):
        listener.check(address, http, Tokens(tmp_path))
    listener.check(Address(host="127.0.0.1", port=1, ip="127.0.0.1"), HttpSettings(open_metrics=True), Tokens(tmp_path))


@pytest.mark.proves("scrapes-share-a-look")
async def test_ten_scrapes_cost_what_one_costs(scene: Scene):
    scene.slurm.submit(*GPU_JOB)
    await scene.slurm.clock.advance(30)
    await scene.get(token=scene.token)
    once = scene.calls
    assert once["squeue"] == 1
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(scene.get, METRICS, scene.token)
        for path in MACHINE_PATHS - {METRICS}:
            group.start_soon(scene.get, path, scene.token)
    assert scene.calls == once
    await scene.slurm.clock.advance(11)
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(scene.get, METRICS, scene.token)
    assert scene.calls["squeue"] == 2


@pytest.mark.proves("scrapes-share-a-look")
async def test_a_scrape_after_a_look_of_the_tools_asks_slurm_nothing(scene: Scene):
    ask = serialize.parse(serialize.BY_NAME["get_fleet"], {})
    await scene.box.call("get_fleet", ask)
    before = scene.calls
    await scene.samples()
    assert scene.calls == before


async def test_reading_the_state_is_no_look_of_the_agent(scene: Scene):
    for path in MACHINE_PATHS:
        await scene.get(path, scene.token)
    assert scene.context.store.last_read(scene.context.owner, "status") is None


async def test_the_figures_are_those_of_slurm(scene: Scene):
    for _ in range(3):
        scene.slurm.submit(*GPU_JOB)
    await scene.slurm.clock.advance(30)
    found = await scene.samples()
    assert found["slurm_agent_jobs", "gpu", "RUNNING"] == 3
    assert sum(value for name, value in found.items() if name[0] == "slurm_agent_gpus_allocated") == 6
    assert found["slurm_agent_source_up", "queue"] == 1
    assert found["slurm_agent_slurm_call_seconds_count", "squeue"] == 1
    assert found["slurm_agent_slurm_call_seconds_bucket", "squeue", "+Inf"] == 1
    assert found["slurm_agent_decisions_total", "deny"] == 0


async def test_a_slurm_that_is_silent_is_a_source_that_is_down_and_no_empty_cluster(scene: Scene):
    scene.slurm.lose_next_reply("squeue")
    found = await scene.samples()
    assert found["slurm_agent_source_up", "queue"] == 0
    assert not [name for name in found if name[0] == "slurm_agent_jobs"]


async def test_a_cluster_that_cannot_be_looked_at_is_an_error_that_says_why(tmp_path: Path):
    scene = Scene(tmp_path, SlurmMissing("there is no squeue", hint="Install it."))
    answer = await scene.get(token=scene.token)
    assert (answer.status_code, "there is no squeue" in answer.text) == (503, True)
    opened = Scene(tmp_path / "opened", SlurmMissing("there is no squeue", hint="Install it."), open_metrics=True)
    stranger = await opened.get()
    assert (stranger.status_code, "squeue" in stranger.text) == (503, False)


async def test_a_server_that_stops_is_not_scraped(scene: Scene):
    scene.toolbox.stopping.set()
    assert (await scene.get(token=scene.token)).status_code == 503


async def test_decisions_count_once_from_the_first_scrape_on(scene: Scene):
    log, context = scene.context.log_decision, scene.context
    denied = context.own_decision("deny")
    await log(Caller(), denied, "submit_job", "decided")
    await scene.samples()  # what was before is not counted
    allowed, again = context.own_decision("allow"), context.own_decision("deny")
    for decision, event in ((allowed, "decided"), (allowed, "submitted"), (again, "decided"), (again, "refused")):
        await log(Caller(), decision, "submit_job", event)
    await scene.slurm.clock.advance(11)
    found = await scene.samples()
    assert found["slurm_agent_decisions_total", "allow"] == 1
    assert found["slurm_agent_decisions_total", "deny"] == 1


async def test_rules_are_counted_and_a_log_that_began_anew_is_read_from_its_start(scene: Scene):
    store = scene.context.store
    await scene.context.log_decision(Caller(), scene.context.own_decision("allow"), "submit_job", "decided")
    counts = DecisionCounts(store.decisions)
    rule = {"id": "gpus", "outcome": "deny", "message": "too many"}
    entry = {"at": "2026-03-01T12:00:00Z", "event": "decided", "verdict": "deny", "rules": [rule, "odd"]}
    store.log_decision({**entry, "decision": "1"})
    counts.read()
    store.log.begin_anew("ada")
    store.log_decision({**entry, "decision": "2"})
    counts.read()
    assert counts.rules == {("gpus", "deny"): 2}


async def test_the_state_as_json(scene: Scene):
    scene.slurm.submit(*GPU_JOB)
    await scene.slurm.clock.advance(30)
    status = (await scene.get("/status", scene.token)).json()
    assert (status["status"], status["inventory"]["gpus"], status["free"]["gpus_used"]) == ("ok", 16, 2)
    queue = (await scene.get("/queue/status", scene.token)).json()
    assert [(one["partition"], one["running"]) for one in queue["waits"]["queue"]] == [("gpu", 1)]
    health = await scene.get("/daemons/health", scene.token)
    assert health.json()["daemons"] == {"server": "ok", "ledger": "ok", "slurmctld": "ok", "slurmdbd": "ok"}


async def test_a_daemon_that_does_not_answer_is_told_and_makes_the_page_503(scene: Scene):
    scene.slurm.lose_next_reply("scontrol show partition")
    answer = await scene.get("/daemons/health", scene.token)
    assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
    assert answer.json()["daemons"]["slurmctld"] != "ok"


def test_a_log_that_a_job_wrote_into_takes_no_more_memory_than_so_many_names(tmp_path: Path):
    path = tmp_path / "decisions.jsonl"
    path.touch()
    counts = DecisionCounts(path)
    entries = [
        {
            "at": "2026-03-01T12:00:00Z",
            "event": "decided",
            "decision": str(n),
            "verdict": f"v{n}",
            "rules": [{"id": "r" * 9000 + str(n), "outcome": f"o{n}"}],
        }
        for n in range(2000)
    ]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in entries))
    counts.read()
    assert max(len(counts.verdicts), len(counts.rules)) <= 501
    assert (counts.verdicts.total(), counts.rules.total()) == (2000, 2000)
    assert max(len(rule) for rule, _ in counts.rules) <= 100


@pytest.mark.parametrize("value", ['a"} 1\nevil{x="', "\\", "{}", "x\\n", "ä"])
def test_a_label_of_any_text_is_one_label(value: str):
    text = rendered([MetricFamily("slurm_agent_a", "gauge", "Told", (MetricSample(1, {"name": value}),))]).decode()
    (family,) = text_string_to_metric_families(text)
    assert [(one.name, one.labels) for one in family.samples] == [("slurm_agent_a", {"name": value})]
