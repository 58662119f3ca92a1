"""The dashboard on the real cluster: its figures are those of Slurm's commands, in HTML and in a real Chromium."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import httpx2
import pytest
from tests.system.chromium import DRIVER, PROGRAM, Chromium, chromium
from tests.system.dashboards import dashboard
from tests.system.faces import Place
from tests.watchdog import SECONDS

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
PAGES = ("now", "fleet", "jobs", "decisions", "campaigns", "cost", "plans")


@pytest.fixture
def busy(fresh: Place) -> Iterator[tuple[Place, dict[str, str]]]:
    """A job that holds GPUs, one that waits, one that failed, one that did well."""
    common = ["--time=5", "--chdir", str(fresh.project), "--parsable"]
    there = {
        "runs": ["--partition=gpu", "--gres=gpu:3", "--output=/dev/null", "--wrap=sleep 300"],
        "waits": ["--partition=cpu", "--begin=now+1hour", "--output=/dev/null", f"--job-name={HOSTILE}", "--wrap=true"],
        "failed": ["--partition=cpu", "--output=logs/slurm/f.out", "--wrap", f"echo '{HOSTILE}'; python3 -c 'import torsh'"],
        "done": ["--partition=cpu", "--output=/dev/null", "--wrap=true"],
    }  # fmt: skip
    jobs = {name: fresh.slurm("sbatch", *common, *words) for name, words in there.items()}
    wanted = {jobs["runs"]: "RUNNING", jobs["failed"]: "FAILED", jobs["done"]: "COMPLETED"}
    end = time.monotonic() + SECONDS
    while any(state(fresh, job) != state_wanted for job, state_wanted in wanted.items()):
        assert time.monotonic() < end, wanted
        time.sleep(0.5)
    yield fresh, jobs
    fresh.slurm("scancel", *jobs.values())


def state(place: Place, job: str) -> str:
    return (place.slurm("sacct", "-n", "-X", "-P", "-j", job, "-o", "state").splitlines() or [""])[0]


def figure(html: str, name: str) -> str:
    """The text of the element with this id."""
    return re.search(rf'id="{name}"[^>]*>([^<]*)<', html)[1]


def used_gpus(place: Place) -> int:
    lines = place.slurm("scontrol", "show", "nodes", "--details", "--oneliner").splitlines()
    return sum(int(number) for line in lines for number in re.findall(r"GresUsed=gpu:\w+:(\d+)", line))


@pytest.mark.proves("pages-are-for-their-visitors")
def test_the_figures_of_the_pages_are_those_of_slurm(busy: tuple[Place, dict[str, str]]):
    place, jobs = busy
    with dashboard(place) as link, httpx2.Client(base_url=link.partition("/open")[0], timeout=60) as client:
        assert client.get("/").status_code == 401
        entered = client.get(link).text
        root = re.search(r'href="(/v/[0-9a-f]+/)now"', entered)[1]
        assert client.get(link).status_code == 403
        shown = {page: client.get(root + page) for page in (*PAGES, f"job/{jobs['failed']}", f"job/{jobs['runs']}")}
        assert {page: answer.status_code for page, answer in shown.items()} == dict.fromkeys(shown, 200)
        text = {page: answer.text for page, answer in shown.items()}

    states = place.slurm("squeue", "-h", f"--user={place.cluster.user}", "-t", "pending,running", "-o", "%T").split()
    assert figure(text["now"], "count-running") == str(states.count("RUNNING"))
    assert figure(text["now"], "count-waiting") == str(states.count("PENDING"))
    nodes = [row.split("|") for row in place.slurm("sinfo", "-h", "-N", "-o", "%N|%t").splitlines()]
    there = {name for name, _ in nodes}
    assert figure(text["fleet"], "nodes") == str(len(there))
    assert sum(int(number) for number in re.findall(r'id="nodes-\w+">(\d+)<', text["fleet"])) == len(there)
    assert figure(text["fleet"], "cpus") == place.slurm("sinfo", "-h", "-o", "%C").split("/")[3]
    assert figure(text["now"], "gpus-used") == str(used_gpus(place))
    free = int(figure(text["fleet"], "gpus")) - used_gpus(place)
    assert figure(text["now"], "gpus-free") == str(free)
    assert figure(text[f"job/{jobs['failed']}"], "state") == state(place, jobs["failed"]) == "FAILED"
    assert "torsh" in text[f"job/{jobs['failed']}"]
    assert figure(text[f"job/{jobs['runs']}"], "state") == "RUNNING"
    for name in jobs.values():
        assert f'href="job/{name}"' in text["jobs"], name
    assert all("<img" not in one for one in text.values())
    nobody = "no Prometheus is set (gpu_metrics.url)"  # this cluster measures no GPU
    assert f"GPUs: {nobody}" in text[f"job/{jobs['runs']}"]
    assert nobody in text["now"]
    assert "None" not in re.sub(r"<[^>]*>", " ", text["cost"]).split()


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    assert PROGRAM.exists(), "install the need `browser`: sh scripts/setup.sh browser"
    assert DRIVER.exists()
    with chromium() as made:
        yield made


@pytest.mark.proves("pages-show-text")
def test_a_real_browser_shows_every_page_and_complains_of_nothing(
    busy: tuple[Place, dict[str, str]], browser: Chromium
):
    place, jobs = busy
    with dashboard(place) as link:
        browser.open(link)
        pages = [*PAGES, f"job/{jobs['failed']}"]
        for width, dark in ((360, False), (1280, True), (3840, False)):
            browser.screen(width, dark=dark)
            for page in pages:
                browser.see(page)
                assert browser.run("return document.documentElement.scrollWidth") <= width, page
                assert browser.run("return document.querySelectorAll('#shown script, #shown img').length") == 0
                assert browser.complaints() == [], (page, width)
        browser.see(f"job/{jobs['failed']}")
        assert HOSTILE in browser.run("return document.body.textContent")
        browser.see("now")
        assert HOSTILE in browser.run("return document.body.textContent")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        browser.screen(1280, dark=True)
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 27)"
        browser.screen(1280, media="print")
        assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"


def test_a_page_follows_the_queue_by_itself_and_shows_its_tables_without_scripts(
    busy: tuple[Place, dict[str, str]], browser: Chromium
):
    place, jobs = busy
    with dashboard(place) as link:
        browser.open(link)
        browser.screen(1280)
        browser.see("now")
        browser.run("document.querySelector('#shown .scroll').focus()")
        before = int(browser.text("count-waiting"))
        new = place.slurm(
            "sbatch", "--parsable", "--partition=cpu", "--begin=now+1hour", "--output=/dev/null", "--wrap=true"
        )
        browser.until(lambda: browser.text("count-waiting") == str(before + 1), "the new job is shown")
        assert browser.run("return document.activeElement.className") == "scroll"
        assert "waiting" in browser.text("said")
        place.slurm("scancel", new)
        browser.until(lambda: browser.text("count-waiting") == str(before), "the job is gone")
        assert browser.complaints() == []
        browser.scripts(on=False)
        browser.see("now")
        rows = browser.run("return [...document.querySelectorAll('tbody tr')].map(row => row.textContent).join()")
        assert jobs["runs"] in rows
        browser.scripts(on=True)


def test_axe_finds_nothing_serious_on_any_page_in_light_and_dark(busy: tuple[Place, dict[str, str]], browser: Chromium):
    place, jobs = busy
    with dashboard(place) as link:
        browser.open(link)
        for width, dark in ((1280, False), (1280, True), (360, False)):
            browser.screen(width, dark=dark)
            for page in (*PAGES, f"job/{jobs['failed']}", f"job/{jobs['runs']}", "jobs?q=nothing-of-this-name"):
                browser.see(page)
                assert browser.barriers() == [], (page, width, dark)
        browser.run("document.body.innerHTML += '<img src=\"none.png\">'")
        assert any("image-alt" in one for one in browser.barriers())  # it does look
        browser.see("../../sign-in")
        assert browser.barriers() == []


def test_what_is_typed_into_the_search_stays_while_the_list_follows_the_queue(
    busy: tuple[Place, dict[str, str]], browser: Chromium
):
    place, _ = busy
    with dashboard(place) as link:
        browser.open(link)
        browser.screen(1280)
        browser.see("jobs")
        browser.run("const words = document.getElementById('q'); words.focus(); words.value = 'half a wo'")
        new = place.slurm(
            "sbatch", "--parsable", "--partition=cpu", "--begin=now+1hour", "--output=/dev/null", "--wrap=true"
        )
        rows = "return [...document.querySelectorAll('tbody a')].map(link => link.textContent).join()"
        browser.until(lambda: new in browser.run(rows).split(","), "the new job is in the list")
        assert browser.run("return document.activeElement.value") == "half a wo"
        place.slurm("scancel", new)
        assert browser.complaints() == []


def test_the_first_view_is_small(busy: tuple[Place, dict[str, str]], browser: Chromium):
    place, _ = busy
    with dashboard(place) as link:
        browser.open(link)
        browser.see("now")
        kinds = "['navigation', 'resource'].flatMap(kind => performance.getEntriesByType(kind))"
        assert browser.run(f"return {kinds}.reduce((sum, one) => sum + one.transferSize, 0)") < 150_000
