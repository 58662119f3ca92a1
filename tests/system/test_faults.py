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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from tests.system import dying, shifted
from tests.system.faces import Place, call
from tests.system.test_crashes import Lane, age, ledger, rows, truthful
from tests.system.test_outages import jobs_named, wrapper

from slurm_agent_tools import devcluster
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.ledger.place import Mount, choose

PAGE = Path(__file__).parents[2] / "docs/guides/troubleshooting.md"
LONG = bool(os.environ.get("SOAK"))
SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu --time=5\n#SBATCH --output=/dev/null\nsleep {}\n"


def quoted(heading: str) -> list[str]:
    """What the page quotes under a heading, as patterns."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line.removeprefix("> ") for line in section.splitlines() if line.startswith("> ")]
    return [".*".join(map(re.escape, line.split("…"))) for line in lines]


def says(heading: str, text: str, number: int = 0) -> None:
    """The message is the one that the page quotes."""
    assert re.search(quoted(heading)[number], text, re.DOTALL), (quoted(heading)[number], text)


def script(place: Place, name: str, seconds: float = 0.1) -> str:
    (place.project / f"{name}.sh").write_text(SCRIPT.format(seconds) + f": {name}\n")
    place.own()
    return f"{name}.sh"


@pytest.fixture
def ready(fresh: Place) -> Place:
    """A project whose caller has looked at the cluster; commands are given up early."""
    fresh.extra |= {f"SLURM_AGENT_SLURM__{name}": "2" for name in ("READ_TIMEOUT", "SUBMIT_TIMEOUT", "CACHE_SECONDS")}
    assert fresh.cli("get_status")[0] == 0
    return fresh


def submitted(place: Place, name: str, *words: str) -> str:
    """A submission that must succeed; its job id."""
    code, reply = place.cli("submit_job", f"--script={script(place, name)}", f"--job-name={name}", *words)
    assert (code, reply["status"]) == (0, "submitted"), reply
    return reply["job_id"]


# --- daemons -----------------------------------------------------------------------------------------------------


@pytest.mark.proves("faults-have-their-answer")
async def test_after_the_controller_was_down_the_same_server_goes_on(ready: Place):
    async with ready.client() as client:
        asked = {"script": script(ready, "long", 4), "job_name": "long"}
        job_id = (await call(client, "submit_job", **asked))["job_id"]
        await devcluster.stop_daemon(ready.cluster, "slurmctld")
        try:
            status = await call(client, "get_status", refresh=True)
            says("The controller does not answer", status["summary"])
            reply = await call(client, "submit_job", script=script(ready, "while-down"))
            assert (reply["status"], reply["blocker"]) == ("blocked", "cluster_unreachable"), reply
            says("The controller does not answer", reply["summary"], 1)
            await anyio.sleep(60 if LONG else 0)
        finally:
            await devcluster.start_daemon(ready.cluster, "slurmctld")
        reply = {}
        with anyio.fail_after(40):  # that it was down counts for as long as an answer may be old
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
    await devcluster.stop_daemon(ready.cluster, "slurmdbd")
    try:
        job_id = submitted(ready, "unaccounted")
        for _ in range(100):
            if "COMPLETED" in ready.slurm("squeue", "-h", "-t", "all", "-j", job_id, "-o", "%T"):
                break
            await anyio.sleep(0.1)
        code, reply = ready.cli("wait_for_job", f"--job-id={job_id}", "--timeout=0")
        assert reply["error"]["code"] == "cluster_unreachable", reply
        says("The accounting does not answer", reply["error"]["message"])
        assert code == 1
        assert ready.cli("get_status")[0] == 0
    finally:
        await devcluster.start_daemon(ready.cluster, "slurmdbd")
    for _ in range(60):
        code, reply = ready.cli("wait_for_job", f"--job-id={job_id}", "--timeout=5")
        if code == 0:
            break
    assert reply["job"]["state"] == "COMPLETED", reply
    truthful(ready)


@pytest.mark.proves("faults-have-their-answer")
async def test_a_killed_node_ends_its_job_in_node_fail_and_the_job_is_not_sent_again(ready: Place):
    ready.cli("submit_job", f"--script={script(ready, 'victim', 300)}")
    for _ in range(100):
        state, _, node = ready.slurm("squeue", "-h", "-n", "victim.sh", "-o", "%T %N").partition(" ")
        if state == "RUNNING":
            break
        await anyio.sleep(0.1)
    job_id = ready.slurm("squeue", "-h", "-n", "victim.sh", "-o", "%A")
    await devcluster.signal_daemon(ready.cluster, f"slurmd.{node}", signal.SIGKILL)
    try:
        if not LONG:  # what slurmctld does by itself after SlurmdTimeout
            administer(ready, "scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")
        reply = ready.cli("wait_for_job", f"--job-id={job_id}", "--timeout=45")[1]
        assert (reply["status"], reply["job"]["state"]) == ("finished", "NODE_FAIL"), reply
        status = ready.cli("get_status", "--no-cache")[1]
        says("A node died", next(item["message"] for item in status["alerts"] if item["code"] == "nodes-down"))
        assert jobs_named(ready, "victim.sh") == [job_id]
    finally:
        await devcluster.start_daemon(ready.cluster, f"slurmd.{node}")
        for _ in range(100):  # it comes back by itself
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

TRIAL = 'for word; do [ "$word" = --test-only ] && exec /usr/bin/sbatch "$@"; done\n'
HANGING = {
    "hangs-and-sent-nothing": ("exec sleep 60", False),
    "sent-it-and-hangs": ('/usr/bin/sbatch "$@" >/dev/null; exec sleep 60', True),
    "tells-an-id-and-a-warning": ('echo "sbatch: warning: mind the gap" >&2; exec /usr/bin/sbatch "$@"', True),
    "tells-nonsense": ('/usr/bin/sbatch "$@" >/dev/null; head -c 200 /dev/urandom', True),
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
        for _ in range(100):
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
        done = run_shifted(ready, *words, growing=True)
    says("Another submission is going on", done["error"]["message"])
    assert rows(ready) == []


def run_shifted(place: Place, *words: str, growing: bool = False) -> dict[str, Any]:
    extra = ["--growing"] if growing else []
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


# --- the ledger and the disk ---------------------------------------------------------------------------------------


class Disk:
    """A small disk in a folder, as root a real one; else a limit on what our program may write."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self.folder, self.filler = place, folder, folder / "filler"
        self.real = os.geteuid() == 0

    @contextlib.contextmanager
    def mounted(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.real:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", self.folder], check=True)
        self.place.own()
        try:
            yield
        finally:
            if self.real:
                subprocess.run(["umount", self.folder], check=True)

    def full(self, tool: str, *words: str) -> dict[str, Any]:
        """The answer of a tool while nothing more can be written."""
        before: list[str] = []
        if self.real:
            self.place.run(["dd", "if=/dev/zero", f"of={self.filler}", "bs=4k"])
        else:
            before = ["prlimit", "--fsize=0"]
        done = self.place.run([*before, sys.executable, "-m", f"tools.agent_tools.{tool}", *words])
        self.filler.unlink(missing_ok=True)
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    def left(self) -> list[str]:
        """The files in it."""
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file())


@pytest.mark.proves("faults-have-their-answer", "on-disk-before-the-answer")
def test_with_a_full_disk_under_the_ledger_nothing_is_sent(fresh: Place):
    disk = Disk(fresh, ledger(fresh).parent)
    with disk.mounted():
        assert fresh.cli("get_status")[0] == 0
        reply = disk.full("submit_job", f"--script={script(fresh, 'unwritten')}")
        assert reply["error"]["code"] == "storage_failed", reply
        if disk.real:
            says("The disk of the ledger is full", reply["error"]["message"])
        assert jobs_named(fresh, "unwritten.sh") == []
        submitted(fresh, "unwritten")
        truthful(fresh)


@pytest.mark.proves("faults-have-their-answer", "on-disk-before-the-answer")
def test_a_disk_that_fills_while_slurm_has_the_job_is_told_and_the_key_goes_on(fresh, monkeypatch):
    disk = Disk(fresh, ledger(fresh).parent)
    full = f"dd if=/dev/zero of={disk.filler} bs=4k" if disk.real else "prlimit --fsize=0 --pid $PPID"
    with disk.mounted():
        assert fresh.cli("get_status")[0] == 0
        body = f'{TRIAL}/usr/bin/sbatch "$@"; {full} 2>/dev/null; exit 0'
        monkeypatch.setitem(fresh.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(fresh, body))
        words = [f"--script={script(fresh, 'half')}", "--job-name=half", "--idempotency-key=half"]
        code, reply = fresh.cli("submit_job", *words)
        monkeypatch.delitem(fresh.extra, "SLURM_AGENT_SLURM__BIN_DIR")
        assert (code, reply["error"]["code"]) == (1, "storage_failed"), reply
        if disk.real:
            says("The disk of the ledger is full", reply["error"]["message"], 1)
        assert "idempotency_key half" in reply["error"]["hint"]
        assert fresh.slurm("squeue", "-h", "-n", "half", "-o", "%T %r") == "PENDING JobHeldUser"
        disk.filler.unlink(missing_ok=True)
        assert [submitted(fresh, "half", "--idempotency-key=half")] == jobs_named(fresh, "half")
        truthful(fresh)


@pytest.mark.proves("faults-have-their-answer", "on-disk-before-the-answer", "results-never-overwrite")
def test_a_full_disk_under_the_project_leaves_no_half_file(ready: Place):
    for folder, tool, words in (
        ("results", "save_result", ["--name=run", "--status=success", f"--notes={'x' * 5000}"]),
        ("scripts/slurm/generated", "generate_script", ["--name=made", "--command=python train.py"]),
    ):
        disk = Disk(ready, ready.project / folder)
        with disk.mounted():
            reply = disk.full(tool, *words)
            assert reply["error"]["code"] == "storage_failed", reply
            if disk.real:
                says("The disk of the project is full", reply["error"]["message"])
            assert disk.left() == []
            assert ready.cli(tool, *words)[0] == 0
            assert len(disk.left()) == 1


def broken(place: Place, kind: str) -> None:
    """Spoil the ledger."""
    path = ledger(place)
    if kind == "The ledger cannot be written":
        path.parent.chmod(0o555)
    elif kind == "The ledger is damaged":
        path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])
    else:
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 99")


@pytest.mark.proves("faults-have-their-answer")
@pytest.mark.parametrize(
    "heading", ["The ledger cannot be written", "The ledger is damaged", "The ledger is newer than the tools"]
)
def test_without_its_ledger_every_tool_says_why_and_nothing_is_sent(ready: Place, heading: str):
    before = ledger(ready).read_bytes()
    broken(ready, heading)
    for tool, words in (("get_status", []), ("submit_job", [f"--script={script(ready, 'refused')}"])):
        if heading == "The ledger cannot be written":
            ledger(ready).parent.chmod(0o555)
        code, reply = ready.cli(tool, *words)
        assert (code, reply["error"]["code"]) == (1, "storage_failed"), reply
        assert reply["error"]["hint"]
        says(heading, reply["error"]["message"])
    assert jobs_named(ready, "refused.sh") == []
    ledger(ready).parent.chmod(0o700)
    ledger(ready).write_bytes(before)
    submitted(ready, "refused")


@pytest.mark.proves("decisions-are-logged", "faults-have-their-answer")
def test_a_line_of_the_decision_log_that_was_cut_off_spoils_no_other(ready: Place):
    submitted(ready, "first")
    log = ledger(ready).parent / "decisions.jsonl"
    log.write_bytes(log.read_bytes()[:-40])
    ready.own()
    submitted(ready, "second")
    done = ready.run([sys.executable, "-m", "slurm_agent_tools", "policy", "log", "--json"])
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["decided", "decided", "submitted"]
    says("Lines are missing in the decision log", done.stderr.decode())


@pytest.mark.proves("faults-have-their-answer")
def test_a_ledger_on_a_network_file_system_moves_or_is_refused(tmp_path: Path):
    """No network file system can be mounted everywhere, so the mount table is handed in."""
    heading = "The ledger is on a network file system"
    mounts = [Mount("/", "ext4"), Mount("/far", "nfs4")]
    moved = choose(Path("/far/home/state"), given=False, mounts=mounts, temporary=tmp_path)
    says(heading, moved.note or "")
    with pytest.raises(ConfigError) as caught:
        choose(Path("/far/home/state"), given=True, mounts=mounts)
    says(heading, caught.value.message, 1)


def test_every_fault_of_the_page_has_a_test_and_every_link_on_it_leads_somewhere():
    text = PAGE.read_text()
    tests = [*Path(__file__).parents[1].rglob("test_*.py")]
    sources = "\n".join(path.read_text() for path in tests)
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    for heading in headings:
        assert not quoted(heading) or f'"{heading}"' in sources, heading
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (PAGE.parent / link).is_file(), link
    assert dying.POINTS
