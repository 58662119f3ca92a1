"""Jobs, one job, decisions, campaigns, plans, cost and the fleet: what they show, whoever wrote it, and notes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.api.campaigns import CampaignScene, to_the_end
from tests.unit.server.web.browsing import Browser, looking
from tests.unit.server.web.test_now_page import HOSTILE, rows
from tests.unit.services.scenes import NEEDS_A_PERSON, Scene, failed, sent

from slurm_agent_tools.api import serialize
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.dashboard_app import PAGES
from slurm_agent_tools.server.web.pages import jobs_page
from slurm_agent_tools.server.web.pages.nodes_page import KINDS, by_kind, kind_of, node_map
from slurm_agent_tools.server.web.web_page import PageAsked


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def visiting(scene: Scene) -> Browser:
    made = looking(scene.box)
    await made.enter()
    return made


async def test_every_page_is_there_on_an_empty_cluster(scene: Scene):
    visit = await visiting(scene)
    for name in PAGES:
        if name not in {"job", "approve"}:
            seen = await visit.see(name)
            assert [attributes["href"] for tag, attributes in seen.tags if attributes.get("aria-current")] == [name]
            assert len([tag for tag, _ in seen.tags if tag == "h1"]) == 1
    assert (await visit.ask(visit.place + "job/99999")).status_code == 404
    assert (await visit.ask(visit.place + "job/x")).status_code == 404


async def test_a_failed_job_is_shown_with_its_output_its_cause_and_what_was_decided(scene: Scene):
    job_id = await failed(scene)
    visit = await visiting(scene)
    seen = await visit.see(f"job/{job_id}")
    assert "FAILED" in seen.text
    assert "No module named 'torch'" in seen.text
    assert "Diagnosis" in seen.text
    assert "Decision of the guard" in seen.text
    assert "allow" in seen.text
    assert "logs/x.out" in seen.text
    assert f"job/{job_id}" in [attributes.get("href") for _, attributes in (await visit.see("jobs")).tags]


async def test_jobs_are_found_by_words_state_and_tag(scene: Scene):
    first = await sent(scene, job_name="alpha", seconds=70)
    scene.write("train.sh", scene.project.joinpath("train.sh").read_text().replace("sleep 60", "sleep 61"))
    second = await sent(scene, job_name="beta")
    visit = await visiting(scene)

    async def found(query: str) -> set[str]:
        links = [attributes.get("href") or "" for _, attributes in (await visit.see(f"jobs?{query}")).tags]
        return {link.removeprefix("job/") for link in links if link.startswith("job/")}

    assert await found("") == {first, second}
    assert await found("q=alpha") == {first}
    assert await found("state=RUNNING") == {second}
    assert await found("tag=completed") == {first}
    assert await found("q=%3Cscript%3E") == set()


@pytest.mark.proves("pages-show-text", "text-is-data")
async def test_hostile_text_is_text_on_every_page(scene: Scene):
    scene.slurm.next_job(exit_code=1, after=10, output=f"{HOSTILE}\n", errors=f"Error: {HOSTILE}\n")
    job_id = await sent(scene, seconds=60, justification=HOSTILE)
    ask = serialize.parse(
        serialize.BY_NAME["plan_jobs"],
        {
            "jobs": [{"name": HOSTILE[:60], "expected": "60s", "resources": {"gpus": 1}}],
            "seconds": 0,
            "pool": {"gpus": 2},
        },
    )
    plan = (await scene.box.call("plan_jobs", ask)).uri.rpartition("/")[2]
    scene.write("campaigns/bad.yaml", f"campaign: 1\n'{HOSTILE}': 1\n".replace("\x1b", ""))
    scene.slurm.submit("#!/bin/bash\nsleep 900\n", f"--job-name={HOSTILE}", "--begin=now+1hour")
    scene.slurm.fail_node("gpu01", why=HOSTILE.replace("\x1b", ""))
    visit = await visiting(scene)
    pages = [
        *(one for one in PAGES if one not in {"job", "approve"}),
        f"job/{job_id}",
        f"plans/{plan}",
        f"jobs?q={HOSTILE[:40]}",
    ]
    for page in pages:
        answer = await visit.ask(visit.place + page)
        assert answer.status_code == 200, (page, answer.text)
        assert "<img" not in answer.text, page
        assert answer.text.count("<script") <= 1, page
        assert "\x1b" not in answer.text, page
    seen = await visit.see(f"job/{job_id}")
    assert "<script>alert(1)</script>" in seen.text


async def test_a_megabyte_of_one_line_is_bounded(scene: Scene):
    scene.slurm.next_job(exit_code=1, after=10, output="x" * 2**20 + "\n")
    job_id = await sent(scene, seconds=60)
    visit = await visiting(scene)
    assert len((await visit.ask(visit.place + f"job/{job_id}")).content) < 150_000


@pytest.mark.proves("pages-only-look")
async def test_no_page_notes_anything_down(scene: Scene):
    job_id = await failed(scene)
    visit = await visiting(scene)
    before, log = rows(scene.context.store.path), scene.lines()
    for page in [*(one for one in PAGES if one not in {"job", "approve"}), f"job/{job_id}"]:
        await visit.see(page)
    assert rows(scene.context.store.path) == before
    assert scene.lines() == log


async def test_refusals_and_open_questions_are_shown_with_their_reasons(scene: Scene):
    scene.write("big.sh", NEEDS_A_PERSON)
    blocked = await scene.submit("big.sh")
    await scene.submit()
    visit = await visiting(scene)
    seen = await visit.see("decisions")
    approval = scene.context.store.approvals.open(scene.context.owner)[0].id
    assert f"slurm-agent-tools approve {approval}" in seen.text
    assert "memory-per-gpu" in seen.text
    assert blocked.decision.verdict == "approve"
    only = (await visit.see("decisions?verdict=allow")).text
    assert "train.sh" in only
    assert "memory-per-gpu" not in only


async def test_decisions_of_other_projects_are_not_shown(scene: Scene):
    await scene.submit()
    path = scene.context.store.decisions
    line = json.loads(path.read_text().splitlines()[0])
    with path.open("a") as file:
        file.write(json.dumps(line | {"project": "/elsewhere", "script": "secret-work.sh"}) + "\n")
    assert "secret-work.sh" not in (await (await visiting(scene)).see("decisions")).text


async def test_a_campaign_is_shown_with_its_trials_and_plots(tmp_path: Path):
    scene = CampaignScene(tmp_path)
    scene.slurm.on_start(lambda _: Ending(after=30, output="val_loss=0.5\n"))
    await to_the_end(scene)
    visit = await visiting(scene)
    listed = await visit.see("campaigns")
    assert "campaigns/rates" in [attributes.get("href") for _, attributes in listed.tags]
    seen = await visit.see("campaigns/rates")
    assert "finished" in seen.text
    assert "val_loss" in seen.text
    assert any(tag == "svg" for tag, _ in seen.tags)
    assert not [tag for tag, attributes in seen.tags if tag == "style" or "style" in attributes]
    assert (await visit.ask(visit.place + "campaigns/none")).status_code == 404
    assert (await visit.ask(visit.place + "campaigns/..%2f..%2fx")).status_code == 404


async def test_a_plan_is_shown_with_its_picture(scene: Scene):
    jobs = [{"name": f"fit{number}", "expected": "600s", "resources": {"gpus": 1}} for number in range(5)]
    ask = serialize.parse(serialize.BY_NAME["plan_jobs"], {"jobs": jobs, "seconds": 0, "pool": {"gpus": 2}})
    number = (await scene.box.call("plan_jobs", ask)).uri.rpartition("/")[2]
    visit = await visiting(scene)
    assert f"plans/{number}" in [attributes.get("href") for _, attributes in (await visit.see("plans")).tags]
    seen = await visit.see(f"plans/{number}")
    assert "00:30:00" in seen.text
    assert sum(tag == "rect" for tag, _ in seen.tags) == 5
    assert (await visit.ask(visit.place + "plans/0")).status_code == 404


async def test_the_fleet_is_drawn_by_state_and_load(tmp_path: Path):
    slurm = FakeSlurm()
    scene = Scene(tmp_path, slurm)
    slurm.submit("#!/bin/bash\nsleep 900\n", "--partition=gpu", "--gres=gpu:1")
    slurm.fail_node("gpu02")
    await slurm.clock.advance(5)
    visit = await visiting(scene)
    seen = await visit.see("fleet")
    nodes = await scene.context.slurm.nodes(max_age=0)
    assert {kind: len(members) for kind, members in by_kind(nodes).items()}["down"] == 1
    squares = [attributes["class"] for tag, attributes in seen.tags if tag == "rect" and "x" in attributes]
    assert sorted(squares) == sorted(kind_of(node) for node in nodes)
    assert {f"nodes-{kind}" for kind in KINDS} <= set(seen.ids())


async def test_two_thousand_nodes_fit_into_the_first_view(tmp_path: Path):
    names = [f"node{number:04d}" for number in range(2000)]
    partitions = [FakePartition("main", tuple(names), default=True)]
    scene = Scene(tmp_path, FakeSlurm(nodes=[FakeNode(name, gpus=4) for name in names], partitions=partitions))
    nodes = await scene.context.slurm.nodes(max_age=0)
    assert len(nodes) == 2000
    paths = node_map(nodes, by_kind(nodes))["paths"]
    assert sum(corners.count("M") for texts in paths.values() for corners in texts) == 2000
    visit = await visiting(scene)
    shown = await visit.ask(visit.place + "fleet")
    assert len(shown.content) < 150_000
    assert shown.text.count("h12v12h-12z") == 2000


async def test_what_was_used_of_what_was_asked_for_is_told_by_name(scene: Scene):
    await sent(scene, seconds=120)
    seen = await (await visiting(scene)).see("cost")
    assert "By name, what held most first" in seen.text
    assert "not known" in seen.text  # no price is set


async def test_tables_and_forms_can_be_read_aloud(scene: Scene):
    job_id = await failed(scene)
    visit = await visiting(scene)
    for page in [*(one for one in PAGES if one not in {"job", "approve"}), f"job/{job_id}"]:
        seen = await visit.see(page)
        tags = [tag for tag, _ in seen.tags]
        assert tags.count("table") == tags.count("caption"), page
        assert all(attributes.get("scope") == "col" for tag, attributes in seen.tags if tag == "th"), page
        named = {attributes.get("for") for tag, attributes in seen.tags if tag == "label"}
        fields = [attributes.get("id") for tag, attributes in seen.tags if tag in {"input", "select"}]
        assert set(fields) <= named, page
        for tag, attributes in seen.tags:
            assert tag not in {"meter", "progress"} or attributes.get("aria-label"), page
            assert tag != "html" or attributes["lang"] == "en"
        assert len(seen.ids()) == len(set(seen.ids())), page


async def test_of_many_jobs_in_the_queue_the_newest_are_shown(scene: Scene, monkeypatch):
    monkeypatch.setattr(jobs_page, "_ACTIVE", 3)
    numbers = [scene.slurm.submit("#!/bin/bash\nsleep 900\n", "--begin=now+1hour") for _ in range(5)]
    await scene.slurm.clock.advance(5)
    links = [attributes.get("href") for _, attributes in (await (await visiting(scene)).see("jobs")).tags]
    shown = [link for link in links if link and link.startswith("job/")]
    assert shown == [f"job/{number}" for number in reversed(numbers[-3:])]


async def test_a_view_is_made_of_a_plain_record_alone_so_that_other_hosts_can_show_it(scene: Scene):
    job_id = await failed(scene)
    visit = await visiting(scene)
    for name, rest in (("now", ""), ("fleet", ""), ("job", job_id)):
        record = await visit.app.collector.record(PAGES[name], PageAsked(rest))
        travelled = json.loads(json.dumps(record))
        shown = fragments.fragment(name, travelled)
        assert shown == PAGES[name].shown(record, PageAsked(rest), "")
        assert "<html" not in shown
        assert "<svg" in shown or name != "fleet"
