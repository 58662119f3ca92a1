"""The floor with tickets on a real controller: what is let in with one and without, and every wrong ticket.

The cluster is this module's own, so that the others' controller stays without a plugin.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import anyio
import pytest
from tests.system.ticket_shapes import Shape, changes, lower, shapes
from tests.system.ticket_site import AGENTS, SCRIPT, Site, private, sbatch, waiting

from slurm_agent_tools.devcluster import lifecycle
from slurm_agent_tools.models.submission_ticket import parse_admin_comment
from slurm_agent_tools.policy.loading import load, shipped

pytestmark = pytest.mark.proves("tickets-hold")

SOAK = os.environ.get("SOAK") == "1"
SUBMISSIONS, CHANGES = (400, 100) if SOAK else (48, 12)

ASK = "ask through slurm-agent-tools connect"
LARGE = ("--partition=cpu", "--nodes=1", "--time=2-00:00:00", "--mem=40G")
SMALL = ("--partition=cpu", "--nodes=1", "--time=5", "--mem=1G")
REFUSED = re.compile(r"error: (?:\d+: )?([a-z-]+): ")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with private() as made:
        yield made


def submitted(site: Site, shape: Shape, *words: str) -> tuple[str | None, str]:
    if shape.tool == "sbatch":
        return sbatch(site, *shape.words, *words)
    return waiting(site, shape.tool, *shape.words, *words)


def rules(said: str) -> list[str]:
    return REFUSED.findall(said)


def job(site: Site, job_id: str) -> str:
    return site.place.slurm("scontrol", "show", "job", job_id)


@contextmanager
def signed(site: Site) -> Iterator[None]:
    """The plugin of a site that shares no folder with its controller."""
    site.install("--tokens", site.hmac, "--spent-tickets", f"{site.tickets}/spent", *AGENTS)
    try:
        yield
    finally:
        site.install("--tokens", site.files, *AGENTS)


@pytest.fixture(params=["files", "hmac"])
def kind(request: pytest.FixtureRequest, site: Site) -> Iterator[str]:
    if request.param == "files":
        yield "files"
    else:
        with signed(site):
            yield "hmac"


def test_a_ticket_lets_in_one_job_and_goes_out_of_its_comment(site: Site, kind: str):
    without, said = sbatch(site, *LARGE)
    assert without is None
    assert ASK in said
    assert rules(said) == ["memory-per-gpu", "time-limit", "ticket"]
    word = site.give(site.ceilings(LARGE), kind=kind)
    job_id, said = sbatch(site, *LARGE, f"--comment=sat-0123 {word}")
    assert job_id, said
    shown = job(site, job_id)
    admin = re.search(r"AdminComment=(\S+)", shown)
    assert admin
    kept = parse_admin_comment(admin[1])
    assert kept is not None
    assert kept[0] in word
    assert re.search(rf"^ +Comment=sat-{kept[0][:16]} sat-0123 *$", shown, re.MULTILINE)
    assert "Requeue=0" in shown
    again, said = sbatch(site, *LARGE, f"--comment=sat-0123 {word}")
    assert again is None
    assert "used already" in said


def test_wrong_tickets_are_refused_and_logged(site: Site, kind: str):
    good = site.ceilings(LARGE)
    words = {
        "another user's": site.give(replace(good, uid=site.uid + 1), kind=kind),
        "the time of the ticket is over": site.give(replace(good, expires=int(time.time()) - 1), kind=kind),
        "is for another script": site.give(good, SCRIPT + b"# more\n", kind=kind),
        "is more than the|are more than the": site.give(replace(good, time_limit=60), kind=kind),
    }
    unknown = "never given" if kind == "files" else "not signed by this site"
    mine = site.give(good, kind=kind)
    altered = mine[:-1] + ("0" if mine[-1] != "0" else "1")
    words[unknown] = altered
    if kind == "hmac":
        words["not signed by this .ite"] = mine.replace(f"time={good.time_limit}", "time=9999")
        words["not signed .y this site"] = site.give(good, kind=kind, key=b"x" * 64)
    for part, word in words.items():
        job_id, said = sbatch(site, *LARGE, f"--comment={word}")
        assert job_id is None, (part, said)
        assert re.search(part, said), (part, said)
        assert re.search(rf"refused uid {site.uid}: [a-z-]+: .*(?:{part})", site.log())
    job_id, said = sbatch(site, *LARGE, f"--comment={mine}")
    assert job_id, said
    if kind == "hmac":
        assert sbatch(site, *LARGE, f"--comment={site.give(good, kind=kind, key=b'o' * 64)}")[0]


def test_a_ticket_is_good_for_one_of_six_that_race_for_it(site: Site, kind: str):
    word = site.give(site.ceilings(LARGE), kind=kind)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: sbatch(site, *LARGE, f"--comment={word}"), range(6)))
    assert sum(job_id is not None for job_id, _ in answers) == 1
    assert all("used already" in said for job_id, said in answers if job_id is None)


def test_a_controller_that_starts_again_forgets_no_ticket(site: Site, kind: str):
    used, fresh = (site.give(site.ceilings(LARGE), kind=kind) for _ in range(2))
    assert sbatch(site, *LARGE, f"--comment={used}")[0]
    anyio.run(lifecycle.stop_daemon, site.place.cluster, "slurmctld")
    anyio.run(lifecycle.start_daemon, site.place.cluster, "slurmctld")
    job_id, said = sbatch(site, *LARGE, f"--comment={used}")
    assert job_id is None
    assert "used already" in said
    assert sbatch(site, *LARGE, f"--comment={fresh}")[0]


def test_agents_get_nothing_in_without_a_ticket(site: Site):
    assert sbatch(site, *SMALL)[0]
    for words, user in (([*SMALL, "--account=agents"], None), (SMALL, "labmate")):
        job_id, said = sbatch(site, *words, user=user)
        assert job_id is None
        assert f"ticket: jobs of this user or account need a ticket; {ASK}" in said
    allowed = site.ceilings(SMALL, account="agents")
    job_id, said = sbatch(site, *SMALL, "--account=agents", f"--comment={site.give(allowed)}")
    assert job_id, said
    other = sbatch(site, *SMALL)[0]
    assert site.place.run(["scontrol", "update", f"JobId={other}", "Account=agents"]).returncode != 0


def test_an_environment_that_runs_other_code_is_refused_with_a_ticket(site: Site):
    word = site.give(site.ceilings(LARGE))
    argv = ["env", "BASH_ENV=/tmp/other.sh", "sbatch", "--hold", "--output=/dev/null", *LARGE, f"--comment={word}"]
    done = site.place.run(argv, stdin=SCRIPT)
    assert b"BASH_ENV runs other code before the script" in done.stderr
    assert sbatch(site, *LARGE, f"--comment={word}")[0]


def test_the_parts_of_a_heterogeneous_job_are_refused_whatever_ticket_they_have(site: Site):
    words = [f"--comment={site.give(site.ceilings(LARGE))}" for _ in range(2)]
    job_id, said = sbatch(site, *LARGE, words[0], ":", *LARGE, words[1])
    assert job_id is None
    assert "the parts of a heterogeneous job add up" in said


def test_no_requeue_and_no_change_beyond_the_ticket(site: Site):
    job_id, said = sbatch(site, *LARGE, f"--comment={site.give(site.ceilings(LARGE, time_limit=3000))}", "--requeue")
    assert job_id, said
    for change, good in (
        ("TimeLimit=3000", True), ("TimeLimit=3001", False), ("MinMemoryNode=40961", False), ("Partition=gpu", False),
        ("QOS=high", False), ("NumNodes=2", False), ("NumCPUs=2", False), ("Account=agents", False), ("Requeue=1", False),
        ("AdminComment=mine", False), ("MinMemoryNode=1000", True), ("Comment=x", True), ("TimeLimit=5", True),
    ):  # fmt: skip
        done = site.place.run(["scontrol", "update", f"JobId={job_id}", change])
        assert (done.returncode == 0) is good, (change, done.stderr)
    site.place.slurm("scontrol", "update", f"JobId={job_id}", "TimeLimit=3000")
    site.place.slurm("scontrol", "release", job_id)
    assert site.place.run(["scontrol", "requeue", job_id]).returncode != 0
    site.place.slurm("scancel", job_id)


def test_words_that_slurm_counts_otherwise_get_no_gpu_more(site: Site):
    few = ("--partition=gpu", "--nodes=1", "--gpus=1", "--mem=3G", "--time=5")
    many = pow(125, -1, 2**61)  # times 1000, as Slurm reads `kb`, it is 8
    for words in ("+8", " 8", f"{many}kb", "-18446744073709551608"):
        job_id, said = sbatch(site, *few, f"--gpus={words}")
        assert job_id is None, words
        assert "does not say plainly" in said, said
    job_id, said = sbatch(site, *few[:2], "--gres=gpu:a100:1,gpu:a100:1", "--mem=32G", "--time=5")  # the last counts
    assert job_id is None
    job_id, said = sbatch(site, *few)
    assert job_id, said
    for change in (
        "TresPerJob=xgres:gpu:8",
        "TresPerNode=xgres:gpu:8",
        "TresPerNode=gres:gpu:+8",
        "TresPerJob=gresgpu:8",
    ):
        assert site.place.run(["scontrol", "update", f"JobId={job_id}", change]).returncode != 0, change
    assert re.search(r"TRES=\S*gres/gpu=1(,|$)", job(site, job_id), re.MULTILINE)


def test_more_cpus_are_more_gpus_where_each_task_has_one(site: Site):
    job_id, said = sbatch(site, "--partition=gpu", "--ntasks=2", "--gpus-per-task=1", "--mem-per-gpu=8G", "--time=5")
    assert job_id, said
    for change in ("NumCPUs=8", "MinCPUsNode=8"):
        assert site.place.run(["scontrol", "update", f"JobId={job_id}", change]).returncode != 0, change


def test_an_account_of_agents_is_theirs_in_any_letters(site: Site):
    for name in ("Agents", "AGENTS"):
        job_id, said = sbatch(site, *SMALL, f"--account={name}")
        assert job_id is None, name
        assert ASK in said


def test_the_mark_of_a_ticket_stays_in_the_comment(site: Site):
    word = site.give(site.ceilings(SMALL))
    job_id, said = sbatch(site, *SMALL, f"--comment=sat-{'0' * 16} {word}")
    assert job_id, said
    mark = f"Comment=sat-{word.removeprefix('ticket=')[:16]}"
    for comment in ("", "mine", f"sat-{'0' * 16}"):
        site.place.slurm("scontrol", "update", f"JobId={job_id}", f"Comment={comment}")
        assert mark in job(site, job_id)


def test_each_task_of_an_array_keeps_the_ceilings(site: Site):
    words = (*LARGE, "--array=1-6%2")
    job_id, said = sbatch(site, *words, f"--comment={site.give(site.ceilings(words, time_limit=3000))}")
    assert job_id, said
    for change, good in (("TimeLimit=2900", True), ("TimeLimit=3001", False), ("MinMemoryNode=40961", False)):
        done = site.place.run(["scontrol", "update", f"JobId={job_id}_3", change])
        assert (done.returncode == 0) is good, (change, done.stderr)


def test_a_ticket_with_which_slurm_was_only_asked_is_spent(site: Site):
    word = site.give(site.ceilings(SMALL))
    assert sbatch(site, "--test-only", *SMALL, f"--comment={word}")[0] is None
    assert "used already" in sbatch(site, *SMALL, f"--comment={word}")[1]


@pytest.mark.parametrize(
    "words",
    [
        ("--partition=gpu", "--nodes=2", "--gpus-per-node=2", "--mem-per-cpu=40G", "--time=5"),
        ("--partition=cpu", "--extra-node-info=2:4", "--nodes=1", "--mem-per-cpu=20G", "--time=5"),
        ("--partition=gpu", "--nodes=1", "--ntasks=2", "--gpus-per-node=1", "--mem=17G", "--time=5"),
        ("--partition=cpu,gpu", "--ntasks=1", "--mem=17G", "--time=5"),
        ("--partition=cpu", "--qos=normal", "--account=lab", "--ntasks=1", "--mem=17G", "--time=UNLIMITED"),
    ],
)  # fmt: skip
def test_what_a_request_was_counted_as_lets_it_in(site: Site, words: tuple[str, ...]):
    assert sbatch(site, *words)[0] is None
    allowed = site.ceilings(words, account="lab" if "--account=lab" in words else None)
    job_id, said = sbatch(site, *words, f"--comment={site.give(allowed)}")
    if "UNLIMITED" in words[-1]:  # the partition's own limit comes behind the plugin
        assert not rules(said)
    else:
        assert job_id, said


def test_nodes_that_are_named_count_however_few_are_asked_for(site: Site):
    nodes = site.place.slurm("sinfo", "--noheader", "--partition=gpu", "--format=%N")
    words = ("--partition=gpu", f"--nodelist={nodes}", "--nodes=2", "--gpus-per-node=3", "--mem=3G", "--time=5")
    job_id, said = sbatch(site, *words)
    assert job_id is None
    assert "6 GPUs" in said
    job_id, said = sbatch(site, *words, f"--comment={site.give(site.ceilings(words))}")
    assert job_id, said
    few = ("--partition=gpu", "--nodes=1", "--gpus-per-node=3", "--mem=3G", "--time=5")  # and then more by a change
    job_id, said = sbatch(site, *few)
    assert job_id, said
    done = site.place.run(["scontrol", "update", f"JobId={job_id}", f"ReqNodeList={nodes}"])
    assert done.returncode != 0


def test_bare_submissions_of_every_shape_meet_the_free_limits_and_their_tickets(site: Site):
    limits, chance = load(shipped()).policy.limits, random.Random(17)  # noqa: S311 - of tests
    wrong, seen = [], Counter[str]()
    for shape in shapes(SUBMISSIONS):
        free = shape.is_free(limits)
        job_id, said = submitted(site, shape)
        seen["free" if free else "beyond"] += 1
        if (job_id is not None) is not free or bool(rules(said)) is free:
            wrong.append((free, shape, said))
        taken = shape.takes(site.uid, int(time.time()) + 600)
        if taken is None:
            continue
        script = SCRIPT if shape.tool == "sbatch" else None
        what, less = lower(taken, chance)
        for allowed, good in ((less, False), (taken, True)):
            job_id, said = submitted(site, shape, f"--comment={site.give(allowed, script)}")
            seen["with a ticket" if good else "with too small a ticket"] += 1
            if (job_id is not None) is not good or bool(rules(said)) is good:
                wrong.append((what, good, shape, allowed, said))
        site.place.run(["scancel", "--me"])
    assert not wrong, "\n".join(map(str, wrong))
    assert min(seen.values()) >= SUBMISSIONS / 5, seen


def test_changes_of_every_shape_meet_the_free_limits_and_the_ticket(site: Site):
    plain = ("--nodes=1", "--ntasks=1", "--time=60")
    kinds = {
        False: ("--partition=cpu", *plain, "--mem=4G"),
        True: ("--partition=gpu", *plain, "--gpus=2", "--mem=16G"),
    }
    wrong = []
    for change in changes(CHANGES):
        words = kinds[change.gpu]
        most = site.ceilings(words, time_limit=1500, memory_per_node=20480 * 2 if change.gpu else 20480)
        if change.gpu:
            most = replace(most, memory_per_gpu=20480)
        for good, more in ((change.free, ()), (change.ticket, (f"--comment={site.give(most)}",))):
            time.sleep(0.06)  # after twenty that are refused in a second others are refused unread
            job_id, said = sbatch(site, *words, *more)
            assert job_id, said
            done = site.place.run(["scontrol", "update", f"JobId={job_id}", *change.words.split()])
            if (done.returncode == 0) is not good:
                wrong.append((change, bool(more), done.stderr))
        site.place.run(["scancel", "--me"])
    assert not wrong, "\n".join(map(str, wrong))
