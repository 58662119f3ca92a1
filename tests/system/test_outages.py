"""Slurm down, stopped, or answering garbage: clear errors, and no job lost or doubled.

That the answers come in time is held by tests/unit/services/test_deadlines.py and measured by `make bench`.
"""

from __future__ import annotations

import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.system.faces import Place, call

from slurm_agent_tools.devcluster import lifecycle

READING = [
    ("get_status", {}),
    ("wait_for_job", {"job_id": "99999", "timeout_seconds": 5}),
    ("analyze_log", {"job_id": "99999"}),
    ("analyze_log", {"recent_errors": 3}),
]
SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --output=/dev/null\nsleep 1\n"


@pytest.fixture
def script(place: Place) -> str:
    (place.project / "job.sh").write_text(SCRIPT.replace("/dev/null", "logs/slurm/job-%j.out"))
    place.own()
    assert place.cli("get_status", "--no-cache")[0] == 0
    return "job.sh"


async def change(place: Place, outage: str, *, begin: bool) -> None:
    """Take the controller away, or give it back and wait until it answers."""
    if outage == "down":
        await (lifecycle.stop_daemon if begin else lifecycle.start_daemon)(place.cluster, "slurmctld")
    else:
        await lifecycle.signal_daemon(place.cluster, "slurmctld", signal.SIGSTOP if begin else signal.SIGCONT)
    for _ in range(0 if begin else 100):
        if place.run(["sinfo"]).returncode == 0:
            return
        await anyio.sleep(0.2)
    assert begin, "slurmctld did not come back"


@pytest.fixture(params=["down", "stopped"])
def outage(request, place, monkeypatch):
    if request.param == "stopped":  # met with a fifth of the usual time limits, to save time
        monkeypatch.setitem(place.extra, "SLURM_AGENT_SLURM__READ_TIMEOUT", "2")
    anyio.run(partial(change, place, request.param, begin=True))
    yield request.param
    anyio.run(partial(change, place, request.param, begin=False))


@pytest.mark.proves("reading-tools-answer-in-time", "unreachable-leaves-a-script", "unknown-is-said-by-slurm")
async def test_every_reading_tool_answers_and_submit_job_leaves_a_script(place, script, outage):
    async with place.client() as client:
        for tool, arguments in READING:
            reply = await call(client, tool, **arguments)
            if tool == "get_status":
                assert reply["status"] == "partial"
                assert reply["cluster"]["reachable"] is False
                assert reply["slurm"]["error"]["code"] == "cluster_unreachable"
                assert reply["slurm"]["error"]["hint"]
            elif arguments.get("recent_errors") is None:
                assert reply["error"]["code"] == "cluster_unreachable", reply
                assert reply["error"]["hint"]
        reply = await call(client, "submit_job", script=script)
    assert reply["status"] == "blocked"
    assert reply["blocker"] == "cluster_unreachable"
    assert reply["human_action_required"] is True
    [artifact] = reply["artifacts"]
    assert (place.project / artifact).read_text().startswith("#!/bin/bash\n")
    assert any(line.startswith("sbatch ") and artifact in line for line in reply["manual_commands"])


@pytest.fixture
def running(place: Place) -> Iterator[str]:
    """A job that runs, and that the accounting calls running too."""
    stdin = b"#!/bin/bash\nsleep 120\n"
    job = place.slurm("sbatch", "--parsable", "-pcpu", "-o", "/dev/null", "-t", "5", stdin=stdin)
    for _ in range(300):
        if "RUNNING" in place.slurm("sacct", "-nXj", job, "-o", "state"):
            break
        time.sleep(0.2)
    yield job
    place.run(["scancel", job])


ACTIVE = [
    ("wait_for_job", {"timeout_seconds": 0}),
    ("wait_for_job", {"timeout_seconds": 13}),
    ("analyze_log", {}),
    ("cancel_job", {"reason": "no longer needed"}),
    ("save_result", {"name": "x", "status": "success"}),
]


@pytest.mark.proves("reading-tools-answer-in-time", "unknown-is-said-by-slurm")
async def test_a_job_that_was_active_is_an_error_and_never_called_unknown(place, running, outage):
    async with place.client() as client:
        for tool, arguments in ACTIVE:
            reply = await call(client, tool, **({"job_id": running} | arguments))
            assert reply["error"]["code"] == "cluster_unreachable", reply
            assert reply["error"]["hint"]


@pytest.mark.proves("reading-tools-answer-in-time", "unknown-is-said-by-slurm", "wait-is-bounded")
@pytest.mark.parametrize("kind", ["down", "stopped"])
async def test_a_controller_that_goes_silent_while_a_job_is_waited_for_is_an_error(place, running, kind):
    async with place.client() as client:
        assert (await call(client, "wait_for_job", job_id=running, timeout_seconds=0))["status"] == "running"
        try:
            await change(place, kind, begin=True)
            reply = await call(client, "wait_for_job", job_id=running, timeout_seconds=9)
        finally:
            await change(place, kind, begin=False)
    assert reply["error"]["code"] == "cluster_unreachable", reply
    assert reply["error"]["hint"]


def wrapper(place: Place, body: str, name: str = "sbatch") -> str:
    """A folder of commands in which one is replaced by a shell script; the commands themselves are in $REAL."""
    folder = place.project.parent / f"bin-{name}-{time.monotonic_ns()}"
    folder.mkdir()
    for command in ("squeue", "scontrol", "sacct", "sinfo", "sbatch", "scancel", "sdiag"):
        (folder / command).symlink_to(place.programs / command)
    (folder / name).unlink()
    (folder / name).write_text(f"#!/bin/bash\nREAL={place.programs}\n{body}\n")
    (folder / name).chmod(0o755)
    return str(folder)


GARBAGE = {
    "nonsense": "echo 'lorem ipsum | dolor'",
    "html": "echo '<html>502 Bad Gateway</html>'",
    "binary": "head -c 4096 /dev/urandom",
    "silence-and-failure": "exit 1",
    "half-a-row": '$REAL/squeue "$@" | head -c 20',
}


@pytest.mark.proves("garbage-is-an-error")
@pytest.mark.parametrize("kind", GARBAGE)
def test_a_queue_that_answers_garbage_is_an_error_and_nothing_is_submitted(place, script, kind, monkeypatch):
    monkeypatch.setitem(place.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(place, GARBAGE[kind], "squeue"))
    sleeper = place.slurm(
        "sbatch", "--parsable", "-pcpu", "-o", "/dev/null", "-t", "5", stdin=b"#!/bin/bash\nsleep 60\n"
    )
    try:
        _, status = place.cli("get_status")
        assert "error" in status["slurm"], status
        code, reply = place.cli("submit_job", f"--script={script}")
        assert code in {1, 3}, reply
        assert reply.get("status") != "submitted"
        code, reply = place.cli("wait_for_job", f"--job-id={sleeper}", "--timeout=2")
        assert reply.get("status") != "finished", reply
    finally:
        place.slurm("scancel", sleeper)
    assert "job.sh" not in place.slurm("squeue", "-h", "-o", "%j")


def jobs_named(place: Place, name: str) -> list[str]:
    return place.slurm("squeue", "-h", "-t", "all", "-n", name, "-o", "%A").split()


@pytest.mark.proves("unconfirmed-is-found-again")
def test_a_reply_that_was_lost_is_unconfirmed_and_the_next_call_finds_the_job(place, script, monkeypatch):
    lose = (
        'for word; do [ "$word" = --test-only ] && exec $REAL/sbatch "$@"; done\n'
        '$REAL/sbatch "$@" >/dev/null\n'
        'echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1'
    )
    monkeypatch.setitem(place.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(place, lose))
    name = f"lost-{time.monotonic_ns()}"
    words = [f"--script={script}", f"--job-name={name}", f"--idempotency-key={name}"]
    code, reply = place.cli("submit_job", *words)
    assert reply["status"] in {"submitted", "unconfirmed"}, reply
    del place.extra["SLURM_AGENT_SLURM__BIN_DIR"]
    code, again = place.cli("submit_job", *words)
    assert (code, again["status"]) == (0, "submitted"), again
    time.sleep(3)
    assert jobs_named(place, name) == [again["job_id"]]


@pytest.mark.proves("unconfirmed-is-found-again")
def test_a_controller_that_stops_in_the_middle_of_sbatch_leaves_one_job(place, script, monkeypatch):
    """The real thing: sbatch really times out against a stopped controller, which takes the job when it wakes."""
    gate = place.project.parent / f"gate-{time.monotonic_ns()}"
    wait = (
        'for word; do [ "$word" = --test-only ] && exec $REAL/sbatch "$@"; done\n'
        f"touch {gate}.here; until [ -e {gate}.go ]; do sleep 0.05; done\n"
        'exec $REAL/sbatch "$@"'
    )
    monkeypatch.setitem(place.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(place, wait))
    name = f"stopped-{time.monotonic_ns()}"
    words = [f"--script={script}", f"--job-name={name}", f"--idempotency-key={name}"]
    answers: list[tuple[int, dict]] = []
    caller = threading.Thread(target=lambda: answers.append(place.cli("submit_job", *words)))
    caller.start()
    here, go = Path(f"{gate}.here"), Path(f"{gate}.go")
    for _ in range(1200):
        if here.exists():
            break
        time.sleep(0.05)
    assert here.exists(), answers
    anyio.run(lifecycle.signal_daemon, place.cluster, "slurmctld", signal.SIGSTOP)
    go.touch()
    caller.join(80)
    anyio.run(lifecycle.signal_daemon, place.cluster, "slurmctld", signal.SIGCONT)
    assert not caller.is_alive()
    code, reply = answers[0]
    assert (code, reply["status"]) == (4, "unconfirmed"), reply
    assert name in reply["summary"]
    del place.extra["SLURM_AGENT_SLURM__BIN_DIR"]
    for _ in range(20):
        code, again = place.cli("submit_job", *words)
        if again["status"] != "unconfirmed":
            break
        time.sleep(1)
    assert (code, again["status"]) == (0, "submitted"), again
    time.sleep(3)
    assert jobs_named(place, name) == [again["job_id"]]


DIES_AT_RELEASE = 'for word; do [ "$word" = release ] && kill -9 $PPID && exit 1; done; exec $REAL/scontrol "$@"'


def crash(place: Place, monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Submit with a server that dies before the release; returns the words of the call."""
    words = ["--script=job.sh", f"--job-name={name}", f"--idempotency-key={name}"]
    monkeypatch.setitem(place.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(place, DIES_AT_RELEASE, "scontrol"))
    done = place.run([sys.executable, "-m", "tools.agent_tools.submit_job", *words])
    assert done.returncode == -signal.SIGKILL, done
    del place.extra["SLURM_AGENT_SLURM__BIN_DIR"]
    assert place.slurm("squeue", "-h", "-n", name, "-o", "%T %r") == "PENDING JobHeldUser"
    return words


@pytest.mark.proves("crash-leaves-no-loose-job")
def test_after_a_crash_the_same_key_goes_on_with_the_held_job(place, script, monkeypatch):
    name = f"crashed-{time.monotonic_ns()}"
    words = crash(place, monkeypatch, name)
    assert place.cli("get_status", "--no-cache")[1]["slurm"]["jobs"][-1]["managed"] is True
    code, reply = place.cli("submit_job", *words)
    assert (code, reply["status"]) == (0, "submitted"), reply
    done = place.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout=60")[1]
    assert done["job"]["state"] == "COMPLETED"
    assert jobs_named(place, name) == [reply["job_id"]]


@pytest.mark.proves("crash-leaves-no-loose-job")
def test_a_held_job_that_nobody_goes_on_with_is_cancelled_and_never_released(place, script, monkeypatch):
    name = f"orphan-{time.monotonic_ns()}"
    words = crash(place, monkeypatch, name)
    code, reply = place.cli("submit_job", f"--script={script}", f"--job-name=next-{name}")
    assert code == 0, reply
    assert place.slurm("squeue", "-h", "-n", name, "-o", "%T %r") == "PENDING JobHeldUser"
    with sqlite3.connect(place.project.parent / ".state/slurm-agent-tools/ledger.sqlite3") as db:
        db.execute("UPDATE submissions SET created = created - 700 WHERE job_name = ?", (name,))
    db.close()
    place.own()
    code, reply = place.cli("submit_job", f"--script={script}", f"--job-name=third-{name}")
    assert code == 0, reply
    assert place.slurm("squeue", "-h", "-t", "all", "-n", name, "-o", "%T") == "CANCELLED"
    code, reply = place.cli("submit_job", *words)  # what never ran is no answer to the same key
    assert (code, reply["status"]) == (0, "submitted"), reply
    done = place.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout=60")[1]
    assert done["job"]["state"] == "COMPLETED", done
