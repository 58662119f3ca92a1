"""A submitted job whose numbers, files or options are no longer what was allowed."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from tests.unit.services.contexts import toolbox
from tests.unit.slurm.answers import Prepared, done
from tests.unit.slurm.clocks import LOOKED, START, queued
from tests.watchdog import SECONDS

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.arguments import GetStatus
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.services import status
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.services.drift import DriftWatch
from slurm_agent_tools.slurm.commands import scontrol, squeue
from slurm_agent_tools.store.submissions import Submission

GIB = 2**30
SILENT = done(b"", b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1)


# --- what scontrol shows -----------------------------------------------------------------------------------------

RECORD = """JobId=5 JobName=train
   UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A
   Priority=1 Nice=0 Account=lab QOS=normal
   JobState={state} Reason=None Dependency=(null)
   Requeue={requeue} Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:0
   RunTime=00:00:03 TimeLimit={limit} TimeMin=N/A
   SubmitTime={start} EligibleTime={start}
   StartTime={start} EndTime=Unknown Deadline=N/A
   Partition=cpu AllocNode:Sid=login:1
   NodeList=cpu01
   NumNodes={nodes} NumCPUs=2 NumTasks=1 CPUs/Task=2 ReqB:S:C:T=0:0:*:*
   TRES=cpu=2,mem={memory},node=1,billing=2{tres}
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
{placed}   MinCPUsNode=2 {minimum} MinTmpDiskNode=0
   Command=(null)
   WorkDir=/p
   StdErr=/dev/null
   StdOut=/dev/null
   {extra}
"""


def record(**changes: object) -> bytes:
    cell = {
        "state": "RUNNING", "requeue": 0, "limit": "00:10:00", "start": START, "nodes": 1, "memory": "2G", "tres": "",
        "placed": "", "minimum": "MinMemoryNode=2G", "extra": "",
    }  # fmt: skip
    return RECORD.format(**cell | changes).encode()


def read(**changes: object) -> Resources:
    [job] = scontrol.parse_jobs(done(record(**changes)))
    return job.resources


def test_a_pending_job_has_the_nodes_of_its_request_and_not_an_estimate_by_its_cpus():
    assert read(state="PENDING", nodes=3).nodes == 1
    assert read(nodes=3).nodes == 3


@pytest.mark.parametrize(
    ("changes", "gib"),
    [
        ({"minimum": "MinMemoryNode=9G"}, 9),
        ({"minimum": "MinMemoryCPU=4G"}, 8),
        ({"extra": "MemPerTres=gres:gpu:8192", "tres": ",gres/gpu=2"}, 16),
        ({"extra": "MemPerTres=gres:gpu:1024", "tres": ",gres/gpu=2", "minimum": "MinMemoryCPU=4G"}, 2),
        ({"memory": "250G", "minimum": "MinMemoryNode=0"}, 250),
    ],
)
def test_the_memory_of_a_pending_job_is_the_largest_that_its_options_ask_for(changes, gib):
    assert read(state="PENDING", **changes).memory_bytes == gib * GIB


def test_the_memory_per_gpu_of_a_started_job_is_that_of_its_worst_node():
    placed = (
        "     Nodes=gpu01 CPU_IDs=0-3 Mem=65536 GRES=gpu:a100:3(IDX:0-2)\n"
        "     Nodes=gpu02 CPU_IDs=0 Mem=65536 GRES=gpu:a100:1(IDX:0)\n"
    )
    found = read(memory="128G", tres=",gres/gpu=4", placed=placed, nodes=2)
    assert (found.memory_per_gpu_bytes, found.memory_per_node_bytes) == (64 * GIB, 64 * GIB)


# --- looking -----------------------------------------------------------------------------------------------------


@dataclass
class Scene:
    """A submitted job, and a Slurm whose answers a test may change."""

    folder: Path
    state: str = "RUNNING"
    shown: object = None
    width: int | None = None

    def __post_init__(self) -> None:
        self.change()
        answers = {"squeue": lambda _: self.rows, "scontrol": lambda _: self.shown}
        self.runner = Prepared(answers)
        self.context = toolbox(self.folder, self.runner).context
        asked = Resources(
            partition="cpu",
            nodes=1,
            cpus=2,
            gpus=0,
            memory_bytes=2 * GIB,
            time_limit_seconds=600,
            array_concurrency=self.width,
        )
        helper = Path(self.context.project) / "helper.sh"
        helper.write_text("echo checked\n")
        os.utime(helper, (START - 100, START - 100))
        now = datetime.fromtimestamp(START, UTC)
        run = Submission(
            "sat-1", "k", "released", now, now, "train.sh", "s" * 64, "r" * 64, "train", 1, "d1", job_id=5,
            requested=asked,
            files={"helper.sh": hashlib.sha256(b"echo checked\n").hexdigest()},
        )  # fmt: skip
        self.context.store.add(self.context.owner, run)

    def change(self, row: dict | None = None, **changes: object) -> None:
        self.rows = done(queued("5", self.state, **(row or {})))
        self.shown = done(record(state=self.state, **changes))

    def file(self, text: str | None, at: int) -> None:
        helper = Path(self.context.project) / "helper.sh"
        if text is None:
            helper.unlink()
            return
        helper.write_text(text)
        os.utime(helper, (at, at))

    async def look(self, *, fresh: bool = False) -> list[str]:
        alerts = await DriftWatch(self.context, Caller(), "get_status", fresh=fresh).at(squeue.parse(self.rows, LOOKED))
        return [f"{alert.severity} {alert.code} {alert.message}" for alert in alerts]

    def lines(self) -> list[dict]:
        log = self.context.store.decisions
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path)
    yield made
    made.context.store.close()


@pytest.fixture
def array(tmp_path):
    made = Scene(tmp_path, width=2)
    yield made
    made.context.store.close()


@pytest.fixture
def waiting(tmp_path):
    made = Scene(tmp_path, "PENDING")
    yield made
    made.context.store.close()


@pytest.mark.proves("drift-is-told")
async def test_a_job_as_it_was_allowed_is_no_alert_and_no_line(scene):
    assert await scene.look() == []
    assert scene.lines() == []


@pytest.mark.proves("drift-is-told")
@pytest.mark.parametrize(
    ("changes", "severity", "text"),
    [
        ({"memory": "4G"}, "medium", "the memory is 4G, allowed was 2G"),
        ({"memory": "90G"}, "high", "the memory is 90G, allowed was 2G"),
        ({"limit": "01:00:00"}, "medium", "the time limit is 01:00:00"),
        ({"limit": "7-00:00:00"}, "high", "the time limit is 7-00:00:00"),
        ({"tres": ",gres/gpu=1"}, "medium", "the number of GPUs is 1, allowed was 0"),
        ({"tres": ",gres/gpu=64"}, "high", "the number of GPUs is 64, allowed was 0"),
        ({"requeue": 1}, "high", "Slurm would requeue it by itself"),
    ],
)
async def test_a_drift_is_as_grave_as_the_policy_finds_its_number(scene, changes, severity, text):
    scene.change(**changes)
    [alert] = await scene.look()
    assert alert.startswith(f"{severity} drift Job 5 is not what was allowed at its submission: ")
    assert text in alert


@pytest.mark.proves("drift-is-told", "decisions-are-logged")
async def test_a_drift_is_told_at_every_look_and_logged_once(scene):
    scene.change(requeue=1)
    for fresh in (False, False, True):
        assert len(await scene.look(fresh=fresh)) == 1
    scene.change(requeue=1, memory="4G")
    assert len(await scene.look(fresh=True)) == 1
    first, second = scene.lines()
    assert (first["event"], first["job_id"], first["decision"], first["tool"]) == ("drift", 5, "d1", "get_status")
    assert first["differences"] == ["Slurm would requeue it by itself"]
    assert second["differences"] == ["the memory is 4G, allowed was 2G"]


@pytest.mark.proves("decisions-are-logged")
async def test_two_that_look_at_once_log_one_line(scene):
    scene.change(requeue=1)
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(scene.look)
    assert len(scene.lines()) == 1


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([("0", "RUNNING"), ("1", "RUNNING"), ("2-9%2", "PENDING")], None),
        ([("0", "COMPLETING"), ("1", "RUNNING"), ("2", "RUNNING")], None),
        ([("0", "RUNNING"), ("1", "RUNNING"), ("2-9%3", "PENDING")], 3),
        ([("0", "RUNNING"), ("1", "RUNNING"), ("2", "RUNNING")], 3),
        ([("0-9%9", "PENDING")], 9),
    ],
)
async def test_the_tasks_at_once_of_an_array_are_those_of_all_its_parts(array, parts, told):
    array.rows = done(b"".join(queued(f"5_[{ids}]" if "%" in ids else f"5_{ids}", state) for ids, state in parts))
    shown = [
        record(state=state).replace(b"=5 Job", f"={number} ArrayJobId=5 ArrayTaskId={ids} Job".encode())
        for number, (ids, state) in enumerate(parts, 5)
    ]
    array.shown = done(b"\n".join(shown))
    found = await array.look()
    assert [f"at once is {told}, allowed was 2" in alert for alert in found] == ([True] if told else [])


async def test_a_drift_that_was_taken_back_is_no_alert_any_more(scene):
    scene.change(requeue=1)
    await scene.look()
    scene.change()
    assert await scene.look(fresh=True) == []


async def test_a_running_job_is_asked_about_again_only_when_its_row_changed(scene):
    for _ in range(3):
        await scene.look()
        scene.context.slurm._details._kept.clear()
    assert scene.context.slurm.calls["scontrol show job"] == 1
    scene.change(row={"limit": "20:00"}, limit="00:20:00")
    assert len(await scene.look()) == 1
    assert scene.context.slurm.calls["scontrol show job"] == 2


async def test_a_job_that_waits_is_asked_about_at_every_look(waiting):
    for _ in range(2):
        assert await waiting.look() == []
        waiting.context.slurm._details._kept.clear()
    assert waiting.context.slurm.calls["scontrol show job"] == 2


async def test_a_silent_slurm_is_no_word_that_all_is_well(scene):
    scene.shown = SILENT
    [alert] = await scene.look()
    assert alert.startswith("medium drift-not-checked Whether job 5 ")
    assert scene.lines() == []


async def test_a_job_that_ended_meanwhile_is_no_alert(scene):
    scene.shown = done(b"", b"slurm_load_jobs error: Invalid job id specified", 1)
    scene.runner.answers["squeue"] = lambda _: done()
    assert await scene.look() == []


async def test_a_job_whose_comment_looks_like_a_record_cannot_hide_that_it_changed(scene):
    hidden = record(memory="9G").replace(b"   WorkDir=", b"   Comment=x\n   UserId=alice(1)\n   WorkDir=")
    scene.shown = done(hidden)
    [alert] = await scene.look()
    assert "medium drift-not-checked" in alert
    assert "cannot be told from what its owner wrote" in alert


@pytest.mark.proves("drift-is-told")
@pytest.mark.parametrize(("text", "told"), [("echo checked\n", 0), ("echo changed\n", 1), (None, 1)])
async def test_a_file_of_a_job_that_waits_is_compared(waiting, text, told):
    waiting.file(text, START + 100)
    found = await waiting.look()
    assert len(found) == told
    assert all("helper.sh, which the script runs, is not the file that was checked" in alert for alert in found)


@pytest.mark.proves("drift-is-told")
@pytest.mark.parametrize(("at", "told"), [(START - 10, 1), (START + 10, 0)])
async def test_a_file_of_a_started_job_is_told_when_it_changed_before_the_start(scene, at, told):
    scene.file("echo changed\n", at)
    assert len(await scene.look()) == told


async def test_a_file_that_was_told_stays_told_while_the_job_runs(scene):
    scene.file("echo changed\n", START - 10)
    await scene.look()
    scene.file("echo again\n", START + 50)
    assert len(await scene.look(fresh=True)) == 1
    assert len(scene.lines()) == 1


async def test_a_pipe_in_place_of_a_file_does_not_stop_the_look(waiting):
    waiting.file(None, START)
    os.mkfifo(Path(waiting.context.project) / "helper.sh")
    with anyio.fail_after(SECONDS):
        assert len(await waiting.look()) == 1


async def test_jobs_of_others_and_jobs_that_did_not_come_through_the_guard_are_not_compared(scene):
    scene.rows = done(queued("6") + queued("7", "PENDING"))
    assert await scene.look() == []
    assert scene.context.slurm.calls["scontrol show job"] == 0


@pytest.mark.proves("unmanaged-is-shown")
async def test_get_status_names_unmanaged_jobs(scene):
    scene.rows = done(
        queued("5") + queued("6") + queued("9_1") + queued("9_[2-5%2]", "PENDING") + queued("8", user="b")
    )
    answers = scene.runner.answers
    scene.runner.answers = {**answers, "scontrol": lambda _: SILENT}
    reply = await status.get_status(scene.context, GetStatus(), Caller())
    [alert] = [alert for alert in reply.alerts if alert.code == "unmanaged-jobs"]
    assert alert.message == "Not submitted by submit_job, but they count for the limit of 4 jobs: 6, 9."


@pytest.mark.proves("on-disk-before-the-answer")
async def test_a_difference_that_cannot_be_written_down_is_a_clear_error(scene, monkeypatch):
    def full(run: Submission, found: str) -> bool:
        raise StorageError("cannot use the ledger: the disk is full", hint="Free disk space, then call again.")

    monkeypatch.setattr(scene.context.store, "note_drift", full)
    with pytest.raises(StorageError, match="the disk is full"):
        await scene.look()
