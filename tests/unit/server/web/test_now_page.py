"""The page Now: what it shows of jobs and GPUs, what it costs Slurm, and that it leaves no trace."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.effort import PART
from tests.unit.server.web.browsing import Browser, browser

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.server.web.dashboard_app import PAGES
from slurm_agent_tools.services import job_alerts

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}\x1b[31m"
LONG = "#!/bin/bash\nsleep 3000\n"
GPUS = ("--partition=gpu", "--gres=gpu:3", "--time=2:00:00")


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
async def visit(tmp_path, slurm) -> Browser:
    made = browser(tmp_path, slurm)
    await made.enter()
    return made


def figure(text: str, before: str) -> str:
    """The word in front of a word of the page."""
    words = text.split()
    return words[words.index(before) - 1]


async def test_jobs_and_gpus_are_shown_as_they_are(visit: Browser, slurm: FakeSlurm):
    runs = slurm.submit(LONG, "--job-name=train", *GPUS)
    waits = [slurm.submit(LONG, "--job-name=later", "--partition=gpu", "--begin=now+1hour") for _ in range(2)]
    slurm.submit(LONG, "--job-name=theirs", user="bob")
    await slurm.clock.advance(60)
    seen = await visit.see("now")
    assert figure(seen.text, "running,") == "1"
    assert figure(seen.text, "waiting.") == "2"
    assert {"train", "later", "01:59:01", str(runs), *map(str, waits)} <= set(seen.text.split())
    assert "theirs" not in seen.text
    assert figure(seen.text, "free,") == "13"
    assert "Not measured" in seen.text


def newcomers(folder: Path, slurm: FakeSlurm, many: int) -> list[Browser]:
    folder.mkdir()
    first = browser(folder, slurm)
    return [replace(first) for _ in range(many)]


async def asked_by(folder: Path, pages: int, names: Sequence[str], seconds: int) -> Counter[str]:
    """Slurm's commands while so many visitors have a page open each, which asks again every two seconds."""
    slurm = FakeSlurm()
    visits = newcomers(folder, slurm, pages)
    for visit in visits:
        await visit.enter()
    slurm.submit(LONG, *GPUS)
    slurm.submit(LONG, "--begin=now+1hour")
    told: Counter[int] = Counter()

    async def look(visit: Browser, name: str) -> None:
        told[(await visit.ask(f"{visit.place}live/{name}")).status_code] += 1

    for _ in range(seconds // 2):
        await slurm.clock.advance(2)
        async with anyio.create_task_group() as group:
            for number, visit in enumerate(visits):
                group.start_soon(look, visit, names[number % len(names)])
    assert told == {200: pages * (seconds // 2)}
    return Counter(visits[0].box.context.slurm.calls)


@pytest.mark.proves("pages-cost-one-look")
async def test_fifty_open_pages_for_ten_minutes_cost_what_one_does(tmp_path):
    seconds = 600 // PART // 10 * 10
    one, fifty = [await asked_by(tmp_path / str(pages), pages, ["now"], seconds) for pages in (1, 50)]
    assert one == fifty
    assert one["squeue"] in range(seconds // 5, seconds * 2 // 5 + 1)
    assert one["scontrol show nodes"] in range(seconds // 5, seconds * 2 // 5 + 1)


@pytest.mark.proves("pages-cost-one-look")
async def test_fifty_visitors_of_all_pages_cost_what_one_of_each_does(tmp_path):
    names = [name for name in PAGES if name not in {"job", "approve"}]
    assert await asked_by(tmp_path / "few", len(names), names, 60) == await asked_by(tmp_path / "many", 50, names, 60)


@pytest.mark.proves("pages-cost-one-look")
async def test_nobody_looks_and_nothing_is_asked(visit: Browser, slurm: FakeSlurm):
    await visit.see("now")
    asked = Counter(visit.box.context.slurm.calls)
    await slurm.clock.advance(3600)
    assert Counter(visit.box.context.slurm.calls) == asked
    await visit.see("now")
    assert visit.box.context.slurm.calls["squeue"] == asked["squeue"] + 1


async def test_a_change_is_seen_within_five_seconds(visit: Browser, slurm: FakeSlurm):
    await visit.see("now")
    slurm.submit(LONG, "--job-name=newcomer")
    await slurm.clock.advance(4)
    assert "newcomer" in (await visit.see("live/now")).text


async def test_output_is_read_for_progress_every_ten_seconds_at_most(visit: Browser, slurm: FakeSlurm, monkeypatch):
    slurm.submit(LONG, *GPUS)
    await slurm.clock.advance(5)
    looked: list[str] = []
    real = job_alerts.look

    async def counted(context, view, run):
        looked.append(str(view.job.job_id))
        return await real(context, view, run)

    monkeypatch.setattr(job_alerts, "look", counted)
    for _ in range(12):
        await visit.see("now")
        await slurm.clock.advance(2.5)
    assert len(looked) == 3
    other = slurm.submit(LONG)
    await slurm.clock.advance(3)
    await visit.see("now")
    assert looked[3:].count(str(other)) == 1


async def test_what_did_not_change_is_not_sent_again(visit: Browser, slurm: FakeSlurm):
    first = await visit.ask(visit.place + "live/now")
    again = await visit.ask(visit.place + "live/now", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.text) == (304, "")
    await slurm.clock.advance(3)
    later = await visit.ask(visit.place + "live/now", headers={"if-none-match": first.headers["etag"]})
    assert later.status_code == 200


@pytest.mark.proves("pages-show-text", "text-is-data")
async def test_hostile_names_are_text(visit: Browser, slurm: FakeSlurm):
    slurm.submit(LONG, f"--job-name={HOSTILE}")
    slurm.submit(LONG, f"--job-name={HOSTILE}", "--begin=now+1hour")
    await slurm.clock.advance(5)
    answer = await visit.ask(visit.place + "now")
    seen = await visit.see("now")
    assert "<img" not in answer.text
    assert [attributes.get("src") for tag, attributes in seen.tags if tag == "script"] == ["static/live.js"]
    assert seen.text.count("<script>alert(1)</script>") == 2
    assert "{{ 7*7 }}" in seen.text
    assert "\x1b" not in answer.text
    assert r"\x1b[31m" in seen.text


@pytest.mark.proves("pages-only-look")
async def test_what_a_person_saw_counts_for_no_agent(visit: Browser, slurm: FakeSlurm):
    slurm.submit(LONG, *GPUS)
    await slurm.clock.advance(5)
    ledger = visit.box.context.store.path
    before = rows(ledger)
    await visit.see("now")
    assert rows(ledger) == before


def rows(ledger) -> dict[str, list[tuple]]:
    with sqlite3.connect(ledger) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}  # noqa: S608 - its own names
    db.close()
    return found


async def test_a_silent_slurm_is_told_and_the_page_comes_back(visit: Browser, slurm: FakeSlurm):
    slurm.controller_down()
    answer = await visit.ask(visit.place + "now")
    assert answer.status_code == 503
    assert "Slurm" in answer.text
    slurm.controller_down(down=False)
    await slurm.clock.advance(5)
    assert (await visit.ask(visit.place + "now")).status_code == 200


async def test_the_first_view_is_small(visit: Browser, slurm: FakeSlurm):
    for number in range(40):
        slurm.submit(LONG, f"--job-name=trial-number-{number}", "--begin=now+1hour")
    await slurm.clock.advance(5)
    paths = [visit.place + "now", "/static/live.js", "/static/dashboard.css"]
    sizes = [len((await visit.ask(path)).content) for path in paths]
    assert sum(sizes) < 150_000


async def test_what_is_asked_of_a_page_is_kept_for_a_bounded_number_of_questions(visit: Browser):
    for number in range(100):
        await visit.ask(visit.place + f"live/plans/{number}")
    assert len(visit.app.collector._kept) <= 64


@pytest.mark.proves("pages-cost-one-look")
async def test_whatever_is_searched_for_slurm_is_asked_once(visit: Browser):
    await visit.see("jobs")
    asked = Counter(visit.box.context.slurm.calls)
    for query in ("q=a", "q=b&state=FAILED", "tag=x", "any=thing"):
        await visit.see(f"jobs?{query}")
    assert Counter(visit.box.context.slurm.calls) == asked


async def test_a_first_view_asks_all_that_does_not_rest_on_the_queue_at_once(tmp_path):
    slurm = FakeSlurm()
    visit = browser(tmp_path, slurm)
    await visit.enter()
    out: set[str] = set()
    together: set[str] = set()
    asker = visit.box.context.slurm._asker
    real = asker.run

    async def run(argv, **more):
        nonlocal together
        out.add(kind := " ".join(argv[:3]) if argv[0] == "scontrol" else argv[0])
        together = max(together, set(out), key=len)
        await anyio.sleep(0.01)
        try:
            return await real(argv, **more)
        finally:
            out.discard(kind)

    asker.run = run
    await visit.see("now")
    wanted = {"squeue", "sacct", "scontrol show nodes", "scontrol show partition", "scontrol show reservation"}
    assert wanted | {"scontrol show config"} <= together
