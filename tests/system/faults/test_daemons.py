"""Things break on the real cluster: each gives the message that the troubleshooting page quotes, then all is well."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from tests.system import dying, shifted
from tests.system.faces import Place, call
from tests.system.faults.page import LONG, PAGE, TRIAL, quoted, says, script, submitted
from tests.system.test_crashes import Lane, age, rows, truthful
from tests.system.test_outages import jobs_named, wrapper
from tests.watchdog import SECONDS

from slurm_agent_tools.devcluster import lifecycle

# --- daemons -----------------------------------------------------------------------------------------------------


@pytest.mark.proves("faults-have-their-answer")
async def test_after_the_controller_was_down_the_same_server_goes_on(ready: Place):
    async with ready.client() as client:
        asked = {"script": script(ready, "long", 4), "job_name": "long"}
        job_id = (await call(client, "submit_job", **asked))["job_id"]
        await lifecycle.stop_daemon(ready.cluster, "slurmctld")
        try:
            status = await call(client, "get_status", refresh=True)
            says("The controller does not answer", status["summary"])
            reply = await call(client, "submit_job", script=script(ready, "while-down"))
            assert (reply["status"], reply["blocker"]) == ("blocked", "cluster_unreachable"), reply
            says("The controller does not answer", reply["summary"], 1)
            await anyio.sleep(60 if LONG else 0)
        finally:
            await lifecycle.start_daemon(ready.cluster, "slurmctld")
        reply = {}
        with anyio.fail_after(SECONDS):  # that it was down counts for as long as an answer may be old
            while reply.get("status") != "finished":
                reply = await call(client, "wait_for_job", job_id=job_id, timeout_seconds=2)
                await anyio.sleep(0.5)
        assert reply["job"]["state"] == "COMPLETED", reply
        reply = await call(client, "submit_job", script="while-down.sh")
        assert reply["status"] == "submitted", reply
    truthful(ready)


@pytest.mark.proves("faults-have-their-answer")
async def test_without_the_accounting_jobs_are_submitted_and_an_end_is_never_guessed(ready: Place):
    lane = Lane(ready)
    await lane.die("intent:after", {"script": script(ready, "broken-off"), "job_name": "broken-off"}, mcp=False)
    await lifecycle.stop_daemon(ready.cluster, "slurmdbd")
    try:
        job_id = submitted(ready, "unaccounted")
        for _ in range(600):
            if "COMPLETED" in ready.slurm("squeue", "-h", "-t", "all", "-j", job_id, "-o", "%T"):
                break
            await anyio.sleep(0.1)
        code, reply = ready.cli("wait_for_job", f"--job-id={job_id}", "--timeout=0")
        assert (code, reply["status"], reply["job"]["state"]) == (0, "finished", "COMPLETED"), reply
        says("The accounting does not answer", reply["alerts"][0]["message"])
        assert ready.cli("get_status")[0] == 0
    finally:
        await lifecycle.start_daemon(ready.cluster, "slurmdbd")
    for _ in range(60):
        code, reply = ready.cli("wait_for_job", f"--job-id={job_id}", "--timeout=5")
        if code == 0:
            break
    assert reply["job"]["state"] == "COMPLETED", reply
    truthful(ready)


@pytest.mark.proves("faults-have-their-answer")
async def test_a_killed_node_ends_its_job_in_node_fail_and_the_job_is_not_sent_again(ready: Place):
    ready.cli("submit_job", f"--script={script(ready, 'victim', 300)}")
    for _ in range(600):
        state, _, node = ready.slurm("squeue", "-h", "-n", "victim.sh", "-o", "%T %N").partition(" ")
        if state == "RUNNING":
            break
        await anyio.sleep(0.1)
    job_id = ready.slurm("squeue", "-h", "-n", "victim.sh", "-o", "%A")
    await lifecycle.signal_daemon(ready.cluster, f"slurmd.{node}", signal.SIGKILL)
    try:
        if not LONG:  # what slurmctld does by itself after SlurmdTimeout
            administer(ready, "scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")
        reply = ready.cli("wait_for_job", f"--job-id={job_id}", "--timeout=45")[1]
        assert (reply["status"], reply["job"]["state"]) == ("finished", "NODE_FAIL"), reply
        status = ready.cli("get_status", "--no-cache")[1]
        says("A node died", next(item["message"] for item in status["alerts"] if item["code"] == "nodes-down"))
        assert jobs_named(ready, "victim.sh") == [job_id]
    finally:
        await lifecycle.start_daemon(ready.cluster, f"slurmd.{node}")
        for _ in range(600):  # it comes back by itself
            if ready.slurm("sinfo", "-h", "-n", node, "-o", "%t") == "idle":
                break
            await anyio.sleep(0.1)
    truthful(ready)


def administer(place: Place, *argv: str) -> None:
    """A command of the cluster's administrator, who runs the tests."""
    environment = {"PATH": os.environ["PATH"], **place.cluster.environment()}
    done = subprocess.run(argv, env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


# --- sbatch ------------------------------------------------------------------------------------------------------

HANGING = {
    "hangs-and-sent-nothing": ("exec sleep 60", False),
    "sent-it-and-hangs": ('/usr/bin/sbatch "$@" >/dev/null; exec sleep 60', True),
    "tells-an-id-and-a-warning": ('echo "sbatch: warning: mind the gap" >&2; exec /usr/bin/sbatch "$@"', True),
    "tells-nonsense": ('/usr/bin/sbatch "$@" >/dev/null; head -c 200 /dev/urandom', True),
    "prints-more-than-the-id": ('echo "Your job goes to cpu."; exec /usr/bin/sbatch "$@"', True),
    "says-nothing": ('/usr/bin/sbatch "$@" >/dev/null', True),
    "fails-although-it-sent-it": (
        '/usr/bin/sbatch "$@" >/dev/null; echo "sbatch: error: the hook of the site failed" >&2; exit 1', True
    ),
    "says-it-is-busy": (
        'echo "sbatch: error: Batch job submission failed: Resource temporarily unavailable" >&2; exit 1', False
    ),
}  # fmt: skip


@pytest.mark.proves("faults-have-their-answer", "unconfirmed-is-found-again")
@pytest.mark.parametrize("kind", HANGING)
def test_an_sbatch_that_does_not_answer_well_sends_one_job(ready: Place, kind: str, monkeypatch: pytest.MonkeyPatch):
    body, sent = HANGING[kind]
    name = f"{kind}-{time.monotonic_ns()}"
    words = [f"--script={script(ready, name)}", f"--job-name={name}", f"--idempotency-key={name}"]
    monkeypatch.setitem(ready.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(ready, TRIAL + body))
    code, reply = ready.cli("submit_job", *words)
    monkeypatch.delitem(ready.extra, "SLURM_AGENT_SLURM__BIN_DIR")
    if not sent:
        assert (code, reply["status"]) == (4, "unconfirmed"), reply
        says("sbatch gave no answer", reply["summary"])
        assert jobs_named(ready, name) == []
        assert ready.cli("submit_job", *words)[1]["status"] == "unconfirmed"
        age(ready)
        code, reply = ready.cli("submit_job", *words)
    assert (code, reply["status"]) == (0, "submitted"), reply
    assert ready.cli("submit_job", *words)[1]["job_id"] == reply["job_id"]
    assert jobs_named(ready, name) == [reply["job_id"]]
    truthful(ready)


@pytest.mark.proves("crash-leaves-no-loose-job", "faults-have-their-answer")
async def test_a_held_job_of_a_killed_server_is_told_by_get_status_and_not_released(ready: Place):
    lane = Lane(ready)
    await lane.die("sbatch:after", {"script": script(ready, "left"), "job_name": "left"}, mcp=False)
    assert [row.phase for row in rows(ready)] == ["intent"]
    age(ready)
    status = ready.cli("get_status", "--no-cache")[1]
    says("A submission broke off", next(i["message"] for i in status["alerts"] if i["code"] == "submission-broke-off"))
    assert ready.slurm("squeue", "-h", "-n", "left", "-o", "%T %r") == "PENDING JobHeldUser"
    truthful(ready)
    assert submitted(ready, "left") == str(rows(ready)[0].job_id)


# --- callers -----------------------------------------------------------------------------------------------------


@pytest.mark.proves("cancelling-stops-the-waiting-only")
async def test_a_client_that_cancels_submit_job_leaves_one_whole_submission(ready, monkeypatch):
    slow = TRIAL + 'sleep 1; exec /usr/bin/sbatch "$@"'
    monkeypatch.setitem(ready.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(ready, slow))
    asked = {"script": script(ready, "impatient", 20), "job_name": "impatient"}
    async with ready.client() as client:
        await call(client, "get_status")
        with pytest.raises(MCPError, match=r"(?i)timed out"):
            await client.call_tool("submit_job", asked, read_timeout_seconds=0.7)
        for _ in range(600):
            if [row.phase for row in rows(ready)] == ["released"]:
                break
            await anyio.sleep(0.1)
        truthful(ready)
        again = await call(client, "submit_job", **asked)
        assert (again["status"], [again["job_id"]]) == ("submitted", jobs_named(ready, "impatient")), again
        refused = await call(client, "submit_job", **asked)  # now its answer was delivered
        assert "duplicate" in {rule["id"] for rule in refused["decision"]["rules"] if rule["outcome"] == "justify"}
        with pytest.raises(MCPError, match=r"(?i)timed out"):
            await client.call_tool(
                "wait_for_job", {"job_id": again["job_id"], "timeout_seconds": 30}, read_timeout_seconds=0.5
            )
        status = await call(client, "get_status", refresh=True)
        assert [job["job_id"] for job in status["slurm"]["jobs"]] == [again["job_id"]]
    ready.slurm("scancel", again["job_id"])


@pytest.mark.proves("faults-have-their-answer")
async def test_two_servers_on_one_ledger_know_of_each_other(ready: Place):
    ready.extra |= {f"SLURM_AGENT_SLURM__{name}_TIMEOUT": "30" for name in ("READ", "SUBMIT")}  # no fault is meant
    async with ready.client() as first, ready.client() as second:
        replies: dict[str, dict[str, Any]] = {}

        async def submit(client: Any, name: str) -> None:
            replies[name] = await call(client, "submit_job", script=script(ready, name, 10), job_name=name)

        async with anyio.create_task_group() as group:
            for number, client in enumerate((first, second, first, second)):
                group.start_soon(submit, client, f"both-{number}")
        assert {reply["status"] for reply in replies.values()} == {"submitted"}, replies
        for client in (first, second):
            status = await call(client, "get_status", refresh=True)
            assert [job["managed"] for job in status["slurm"]["jobs"]] == [True] * 4
            assert status["slurm"]["slots_left"] == 0
        refused = await call(second, "submit_job", script=script(ready, "fifth"))
        assert refused["status"] == "blocked"
    truthful(ready)


@pytest.mark.proves("faults-have-their-answer")
def test_a_submission_that_takes_too_long_is_told_to_the_next_one(ready: Place):
    lock = ready.project.parent / ".local/state/slurm-agent-tools/submit-lock.sqlite3"
    words = ["-100", "submit_job", f"--script={script(ready, 'second')}"]
    shutil.copy(shifted.__file__, ready.project.parent)
    ready.own()
    with contextlib.closing(sqlite3.connect(lock, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        done = run_shifted(ready, *words, hasty=True)
    says("Another submission is going on", done["error"]["message"])
    assert rows(ready) == []


def run_shifted(place: Place, *words: str, hasty: bool = False) -> dict[str, Any]:
    extra = ["--hasty"] if hasty else []
    done = place.run([sys.executable, str(place.project.parent / "shifted.py"), *extra, *words])
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.proves("faults-have-their-answer")
@pytest.mark.parametrize("off", [300, -300] if LONG else [300])
def test_a_clock_that_is_five_minutes_off_loses_nothing(ready: Place, off: int, monkeypatch: pytest.MonkeyPatch):
    shutil.copy(shifted.__file__, ready.project.parent)
    lose = TRIAL + '/usr/bin/sbatch "$@" >/dev/null; kill -9 $PPID'
    name = f"off-{off}-{time.monotonic_ns()}"
    words = ["submit_job", f"--script={script(ready, name)}", f"--job-name={name}", f"--idempotency-key={name}"]
    run_shifted(ready, str(off), "get_status")
    monkeypatch.setitem(ready.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(ready, lose))
    done = ready.run([sys.executable, str(ready.project.parent / "shifted.py"), str(off), *words])
    assert done.returncode == -signal.SIGKILL, done
    monkeypatch.delitem(ready.extra, "SLURM_AGENT_SLURM__BIN_DIR")
    assert ready.cli("get_status", "--no-cache")[0] == 0
    truthful(ready)
    reply = run_shifted(ready, str(off), *words)
    assert (reply["status"], [reply["job_id"]]) == ("submitted", jobs_named(ready, name)), reply
    for _ in range(40):
        wait = run_shifted(ready, str(off), "wait_for_job", f"--job-id={reply['job_id']}", "--timeout=0")
        if wait["status"] == "finished":
            break
    assert wait["job"]["state"] == "COMPLETED", wait
    assert 0 <= wait["job"]["queue_seconds"] < 60, wait["job"]
    assert ready.cli(*words)[1]["job_id"] == reply["job_id"]
    truthful(ready)


def test_every_fault_of_the_page_has_a_test_and_every_link_on_it_leads_somewhere():
    text = PAGE.read_text()
    tests = [*Path(__file__).parents[2].rglob("test_*.py")]
    sources = "\n".join(path.read_text() for path in tests)
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    for heading in headings:
        assert not quoted(heading) or f'"{heading}"' in sources, heading
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (PAGE.parent / link).is_file(), link
    assert dying.POINTS
