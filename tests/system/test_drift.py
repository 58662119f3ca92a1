"""A job that is changed after the check: caught while it is held, told and logged afterwards, and never ended."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator

import pytest
from tests.system.faces import Place, call
from tests.system.test_guard import rules, submit, write
from tests.system.test_outages import wrapper

LINES = ("#SBATCH -p cpu --mem=2G -c2 --time=10 --nodes=1 --ntasks=1", "sleep 100")


@pytest.fixture
def blocker(fresh: Place) -> Iterator[str]:
    """A running job of the same user that did not come through the guard; others can wait for its end."""
    job = fresh.slurm("sbatch", "--parsable", "-pcpu", "-t5", "-o", "/dev/null", stdin=b"#!/bin/bash\nsleep 200\n")
    yield job
    fresh.run(["scancel", job])


def pending(place: Place, blocker: str, *lines: str, words: tuple[str, ...] = ()) -> str:
    """A managed job that waits for the blocker."""
    script = write(place, f"job-{time.monotonic_ns()}.sh", *lines)
    code, reply = submit(place, script, f"--dependency=afterany:{blocker}", *words)
    assert (code, reply["status"]) == (0, "submitted"), reply
    return reply["job_id"]


def drifted(reply: dict) -> list[dict]:
    return [alert for alert in reply["alerts"] if alert["code"].startswith("drift")]


def logged(place: Place) -> list[dict]:
    log = place.project.parent / ".state/slurm-agent-tools/decisions.jsonl"
    return [entry for entry in map(json.loads, log.read_text().splitlines()) if entry["event"] == "drift"]


def state(place: Place, job: str) -> str:
    return place.slurm("squeue", "-h", "-j", job, "-o", "%T")


def until(place: Place, job: str, wanted: str) -> None:
    for _ in range(300):
        if state(place, job).split("\n")[0] == wanted:
            return
        time.sleep(0.2)
    raise AssertionError((job, wanted, state(place, job)))


def raise_time(place: Place, job: str, limit: str) -> None:
    """As the administrator: Slurm lets nobody else lengthen a job that runs."""
    argv = ["scontrol", "update", f"jobid={job}", f"TimeLimit={limit}"]
    subprocess.run(argv, env=os.environ | place.cluster.environment(), check=True, timeout=60)


CHANGES = {
    "memory": ("MinMemoryNode=8192", "medium", "the memory is 8G, allowed was 2G"),
    "much-memory": ("MinMemoryNode=90000", "high", "the memory is 87.9G, allowed was 2G"),
    "memory-per-cpu": ("MinMemoryCPU=20000", "high", "the memory is 39.1G, allowed was 2G"),
    "time": ("TimeLimit=2:00:00", "medium", "the time limit is 02:00:00, allowed was 00:10:00"),
    "long-time": ("TimeLimit=6-0", "high", "the time limit is 6-00:00:00"),
    "cpus": ("NumCPUs=16", "medium", "the number of CPUs is 16, allowed was 2"),
    "partition": ("Partition=special", "high", "the partition is special, allowed was cpu"),
    "gpus": ("TresPerJob=gres:gpu:8", "high", "the number of GPUs is 8, allowed was 0"),
    "requeue": ("Requeue=1", "high", "Slurm would requeue it by itself"),
}


@pytest.mark.proves("drift-is-told")
@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_by_the_owner_of_a_job_that_waits_is_told(fresh, blocker, kind):
    update, severity, text = CHANGES[kind]
    job = pending(fresh, blocker, *LINES)
    assert drifted(fresh.cli("get_status", "--no-cache")[1]) == []
    fresh.slurm("scontrol", "update", f"jobid={job}", update)
    [alert] = drifted(fresh.cli("get_status", "--no-cache")[1])
    assert (alert["code"], alert["severity"]) == ("drift", severity), alert
    assert text in alert["message"]
    assert f"Job {job} " in alert["message"]
    assert state(fresh, job) == "PENDING"


@pytest.mark.proves("drift-is-told", "decisions-are-logged")
async def test_every_tool_that_looks_tells_it_and_the_log_gets_one_line_for_each_new_drift(fresh, blocker):
    job = pending(fresh, blocker, *LINES)
    fresh.slurm("scontrol", "update", f"jobid={job}", "TimeLimit=1:00:00")
    other = write(fresh, "other.sh", "#SBATCH -p cpu", "sleep 5")
    replies = [
        fresh.cli("get_status", "--no-cache")[1],
        fresh.cli("wait_for_job", f"--job-id={job}", "--no-wait")[1],
        fresh.cli("wait_for_job", f"--job-id={blocker}", "--no-wait")[1],
        fresh.cli("analyze_log", f"--job-id={job}")[1],
        submit(fresh, other, "--dry-run")[1],
        submit(fresh, other)[1],
        fresh.cli("cancel_job", f"--job-id={blocker}", "--reason=not ours")[1],
    ]
    assert [len(drifted(reply)) for reply in replies] == [1, 1, 1, 1, 1, 1, 0]
    async with fresh.client() as client:
        for tool, arguments in [
            ("get_status", {}),
            ("wait_for_job", {"job_id": job, "timeout_seconds": 0}),
            ("analyze_log", {"job_id": job}),
        ]:
            assert len(drifted(await call(client, tool, **arguments))) == 1, tool
    [line] = logged(fresh)
    assert (line["job_id"], line["tool"]) == (int(job), "get_status")
    assert line["differences"] == ["the time limit is 01:00:00, allowed was 00:10:00"]
    fresh.slurm("scontrol", "update", f"jobid={job}", "Requeue=1")
    fresh.cli("get_status", "--no-cache")
    assert [line["differences"] for line in logged(fresh)][1:] == [["Slurm would requeue it by itself"]]
    reply = fresh.cli("cancel_job", f"--job-id={job}", "--reason=changed by its owner")[1]
    assert (reply["status"], len(drifted(reply))) == ("cancelled", 1)


@pytest.mark.proves("drift-is-told")
def test_a_job_that_started_with_drift_runs_on_and_is_told_until_its_end(fresh, blocker):
    job = pending(fresh, blocker, *LINES)
    for update in ("MinMemoryNode=4096", "NumCPUs=8"):
        fresh.slurm("scontrol", "update", f"jobid={job}", update)
    fresh.slurm("scancel", blocker)
    until(fresh, job, "RUNNING")
    for _ in range(2):
        [alert] = drifted(fresh.cli("wait_for_job", f"--job-id={job}", "--no-wait")[1])
        assert "the memory is 4G, allowed was 2G" in alert["message"]
        # From 24.11 on a job starts with the CPUs of its tasks, whatever NumCPUs was set to (measured).
        assert ("the number of CPUs is 8" in alert["message"]) == (fresh.cluster.release is None)
    assert len(logged(fresh)) == 1
    assert state(fresh, job) == "RUNNING"
    fresh.slurm("scancel", job)
    until_gone = fresh.cli("wait_for_job", f"--job-id={job}", "--timeout=60")[1]
    assert until_gone["job"]["state"] == "CANCELLED"
    assert drifted(until_gone) == []


@pytest.mark.proves("drift-is-told")
def test_a_running_job_that_is_changed_is_told_and_left_alone(fresh):
    _, reply = submit(fresh, write(fresh, "run.sh", *LINES))
    job = reply["job_id"]
    until(fresh, job, "RUNNING")
    assert drifted(fresh.cli("get_status", "--no-cache")[1]) == []
    fresh.slurm("scontrol", "update", f"jobid={job}", "TimeLimit=5")
    assert drifted(fresh.cli("get_status")[1]) == []
    raise_time(fresh, job, "30")
    fresh.slurm("scontrol", "update", f"jobid={job}", "Requeue=1")
    [alert] = drifted(fresh.cli("get_status")[1])
    assert "the time limit is 00:30:00, allowed was 00:10:00; Slurm would requeue it by itself" in alert["message"]
    assert alert["severity"] == "high"
    assert state(fresh, job) == "RUNNING"


@pytest.mark.proves("drift-is-told")
def test_more_array_tasks_at_once_are_told(fresh, blocker):
    lines = ("#SBATCH -p cpu --mem=1G --time=10 --array=0-9%2", "sleep 100")
    job = pending(fresh, blocker, *lines)
    fresh.slurm("scontrol", "update", f"jobid={job}", "ArrayTaskThrottle=3")
    [alert] = drifted(fresh.cli("get_status", "--no-cache")[1])
    assert (alert["severity"], "array tasks at once is 3, allowed was 2" in alert["message"]) == ("medium", True), alert
    fresh.slurm("scontrol", "update", f"jobid={job}", "ArrayTaskThrottle=9")
    [alert] = drifted(fresh.cli("get_status", "--no-cache")[1])
    assert alert["severity"] == "high"
    fresh.slurm("scancel", blocker)
    until(fresh, f"{job}_0", "RUNNING")
    assert len(drifted(fresh.cli("wait_for_job", f"--job-id={job}", "--no-wait")[1])) == 1


@pytest.mark.proves("drift-is-told")
def test_what_slurm_does_by_itself_is_no_drift(fresh):
    scripts = [
        ("#SBATCH -p gpu --gpus=3 --mem-per-gpu=2G", "sleep 60"),
        ("#SBATCH -p cpu --mem-per-cpu=1000 -n3", "sleep 60"),
        ("#SBATCH -p cpu -N2 --ntasks-per-node=2 --mem=1G", "sleep 60"),
        ("#SBATCH -p gpu -t 30 --gpus=2 --array=0-3%1 --mem=4G", "sleep 60"),
    ]
    found = []
    for number, lines in enumerate(scripts):
        code, reply = submit(fresh, write(fresh, f"honest{number}.sh", *lines))
        assert code == 0, reply
        until(fresh, reply["job_id"], "PENDING" if "array" in lines[0] else "RUNNING")
        fresh.slurm("scontrol", "update", f"jobid={reply['job_id']}", "TimeLimit=9")
        found += drifted(fresh.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout=2")[1])
    time.sleep(3)
    assert found + drifted(fresh.cli("get_status", "--no-cache")[1]) == []
    assert logged(fresh) == []


@pytest.mark.proves("drift-is-told")
def test_a_project_file_that_changed_between_check_and_start_is_told(fresh, blocker):
    (fresh.project / "helper.sh").write_text("echo checked\n")
    (fresh.project / "later.sh").write_text("echo later\n")
    job = pending(fresh, blocker, "#SBATCH -p cpu", "source ./helper.sh", "source ./later.sh", "sleep 100")
    assert drifted(fresh.cli("get_status", "--no-cache")[1]) == []
    (fresh.project / "helper.sh").write_text("echo changed\n")
    time.sleep(2)
    fresh.slurm("scancel", blocker)
    until(fresh, job, "RUNNING")
    time.sleep(2)
    (fresh.project / "later.sh").write_text("echo changed after the start\n")
    for _ in range(2):
        [alert] = drifted(fresh.cli("get_status")[1])
        assert "helper.sh, which the script runs, is not the file that was checked" in alert["message"]
        assert "later.sh" not in alert["message"]
    [line] = logged(fresh)
    assert len(line["differences"]) == 1


@pytest.mark.proves("unmanaged-is-shown")
def test_jobs_that_did_not_come_through_the_guard_are_named_and_count(fresh, blocker):
    argv = ("sbatch", "--parsable", "-pcpu", "-t5", "-o", "/dev/null", "--array=0-9%3")
    array = fresh.slurm(*argv, stdin=b"#!/bin/bash\nsleep 200\n")
    status = fresh.cli("get_status", "--no-cache")[1]
    [alert] = [alert for alert in status["alerts"] if alert["code"] == "unmanaged-jobs"]
    assert alert["severity"] == "medium"
    assert alert["message"].endswith(f"{blocker}, {array}.")
    assert not any(job["managed"] for job in status["slurm"]["jobs"])
    assert (status["slurm"]["active_jobs"], status["slurm"]["slots_left"]) == (4, 0)
    code, reply = submit(fresh, write(fresh, "fifth.sh", "#SBATCH -p cpu", "true"))
    assert (code, rules(reply)) == (3, {"concurrent-jobs"}), reply


HELD = {
    "MinMemoryNode=90000": "the memory is 87.9G, allowed was 2G",
    "MinMemoryNode=3072": "the memory is 3G, allowed was 2G",
    "TimeLimit=20": "the time limit is 00:20:00, allowed was 00:10:00",
    "NumCPUs=32": "the number of CPUs is 32, allowed was 2",
    "Partition=gpu": "the partition is gpu, allowed was cpu",
    "TresPerJob=gres:gpu:4": "the number of GPUs is 4, allowed was 0",
    "Requeue=1": "Slurm would requeue the job by itself",
    "JobName=other": "the name is 'other'",
}


@pytest.mark.proves("held-change-is-caught")
@pytest.mark.parametrize("update", HELD)
def test_a_held_job_that_is_changed_before_its_release_is_cancelled_with_the_difference(fresh, update, monkeypatch):
    body = (
        'if [ "$1" = show ] && [ "$2" = job ]; then\n'
        f'  for id; do :; done; $REAL/scontrol update jobid="$id" {update} >&2 || exit 9\n'
        'fi\nexec $REAL/scontrol "$@"'
    )
    script = write(fresh, "held.sh", *LINES)
    fresh.cli("get_status", "--no-cache")
    monkeypatch.setitem(fresh.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(fresh, body, "scontrol"))
    code, reply = fresh.cli("submit_job", f"--script={script}")
    assert (code, reply["status"]) == (3, "blocked"), reply
    assert HELD[update] in reply["reason"]
    assert "the held job was cancelled" in reply["reason"]
    assert reply["job_id"] is None
    with sqlite3.connect(fresh.project.parent / ".state/slurm-agent-tools/ledger.sqlite3") as db:
        [(job, phase)] = db.execute("SELECT job_id, phase FROM submissions").fetchall()
    db.close()
    assert phase == "cancelled"
    assert fresh.slurm("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T %M") == "CANCELLED 0:00"


NAMES = [
    "ACCOUNT", "ACCTG_FREQ", "ARRAY_INX", "BATCH", "BURST_BUFFER", "CLUSTERS", "CLUSTER_CONSTRAINT", "CONSTRAINT",
    "CONTAINER", "CONTAINER_ID", "CORE_SPEC", "CPUS_PER_GPU", "CPU_FREQ_REQ", "DEBUG", "DELAY_BOOT", "DISTRIBUTION",
    "ERROR", "EXCLUSIVE", "EXPORT", "GET_USER_ENV", "GPUS", "GPUS_PER_NODE", "GPUS_PER_SOCKET", "GPUS_PER_TASK",
    "GPU_BIND", "GPU_FREQ", "GRES", "GRES_FLAGS", "HINT", "IGNORE_PBS", "INPUT", "JOB_NAME", "MEM_BIND",
    "MEM_PER_CPU", "MEM_PER_GPU", "MEM_PER_NODE", "NETWORK", "NO_KILL", "NO_REQUEUE", "OPEN_MODE", "OUTPUT",
    "OVERCOMMIT", "PARTITION", "POWER", "PROFILE", "QOS", "REQUEUE", "REQ_SWITCH", "RESERVATION", "SEGMENT_SIZE",
    "SIGNAL", "SPREAD_JOB", "THREADS_PER_CORE", "THREAD_SPEC", "TIMELIMIT", "TRES_BIND", "TRES_PER_TASK",
    "USE_MIN_NODES", "WAIT", "WAIT4SWITCH", "WAIT_ALL_NODES", "WCKEY", "CONSOLIDATE_SEGMENTS", "SPREAD_SEGMENTS",
    "CONTAINER_TYPE",
]  # fmt: skip
VALUES = {
    "ARRAY_INX": "0-99", "CLUSTERS": "elsewhere", "CONSTRAINT": "h100", "CPUS_PER_GPU": "8", "GPUS": "4",
    "GPUS_PER_NODE": "4", "GRES": "gpu:4", "MEM_PER_CPU": "64G", "MEM_PER_GPU": "64G", "MEM_PER_NODE": "64G",
    "OUTPUT": "/tmp/elsewhere-%j", "ERROR": "/tmp/elsewhere-%j", "PARTITION": "special", "QOS": "high",
    "TIMELIMIT": "6-0", "JOB_NAME": "other", "EXPORT": "NONE", "INPUT": "/etc/hostname", "EXCLUSIVE": "",
    "REQUEUE": "", "THREADS_PER_CORE": "2", "SIGNAL": "USR1@60", "WCKEY": "x", "HINT": "nomultithread",
}  # fmt: skip
OTHERS = {
    "SLURM_CLUSTERS": "elsewhere", "SLURM_HINT": "nomultithread", "SLURM_HOSTFILE": "/etc/hosts",
    "SLURM_EXIT_ERROR": "0", "SLURM_UMASK": "0000", "_SLURM_SPANK_OPTION_x_y": "z", "SLURM_MEM_PER_NODE": "64000",
    "SQUEUE_FORMAT": "%i", "SQUEUE_USERS": "nobody", "SINFO_FORMAT": "%n", "SACCT_FORMAT": "JobID",
    "SLURM_TIME_FORMAT": "relative", "SCONTROL_ALL": "1",
}  # fmt: skip


def shown(place: Place, job: str) -> list[str]:
    """What Slurm holds of a job, without what differs from job to job."""
    told = place.slurm("scontrol", "show", "job", "-d", job)
    told = re.sub(r"--comment=sat-[0-9a-f]{16}\b", "--comment=TOKEN", told)  # in SubmitLine, on 26.05
    lines = re.sub(rf"(?<![\w.]){job}\b(?!/)", "ID", told).splitlines()
    own = (
        "SLUID",
        "SubmitTime",
        "AccrueTime",
        "StartTime",
        "SuspendTime",
        "Priority",
        "Comment",
        "RunTime",
        "Partition=",
        "JobState=",
    )
    return [line for line in map(str.strip, lines) if not line.startswith(own)]


@pytest.mark.proves("environment-is-listed")
async def test_no_variable_of_sbatch_changes_the_job_that_slurm_gets(fresh, blocker):
    script = write(fresh, "same.sh", "#SBATCH -p gpu", "sleep 5")
    words = [f"--script={script}", f"--dependency=afterany:{blocker}"]
    fresh.cli("get_status", "--no-cache")
    plain = fresh.cli("submit_job", *words)[1]
    found = shown(fresh, plain["job_id"])
    fresh.slurm("scancel", plain["job_id"])
    fresh.extra |= {f"SBATCH_{name}": VALUES.get(name, "1") for name in NAMES} | OTHERS
    over_cli = fresh.cli("submit_job", *words)[1]
    assert over_cli["status"] == "submitted", over_cli
    async with fresh.client() as client:
        again = {"script": script, "dependency": f"afterany:{blocker}", "justification": "the same job once more"}
        over_mcp = await call(client, "submit_job", **again)
    assert over_mcp["status"] == "submitted", over_mcp
    fresh.extra.clear()
    assert shown(fresh, over_cli["job_id"]) == found
    assert shown(fresh, over_mcp["job_id"]) == found
    assert over_cli["granted"] == over_mcp["granted"] == plain["granted"]
