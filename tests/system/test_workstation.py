"""This machine as a real cluster: its own cores and memory, walls between jobs, and nothing forgotten over a crash.

There is no GPU here. Device files made with mknod stand in for four: their numbers (ttys 4:50 to 4:53) are nobody
else's, because the wall goes by number, and a clone of /dev/null would close /dev/null to every job.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.system.faces import Place, call

from slurm_agent_tools.devcluster import definition, lifecycle, workstation
from slurm_agent_tools.devcluster.machine_facts import MachineGpu
from slurm_agent_tools.settings import workstation_place

ROOT = os.geteuid() == 0
PERSON = "researcher" if ROOT else definition.me()
needs_root = pytest.mark.skipif(not ROOT, reason="only root can make device files and walls between jobs")
GUIDE = Path(__file__).parents[2] / "docs/guides/workstation.md"
OUTPUT = "#SBATCH --output=logs/slurm/%x-%j.out"


@dataclass
class Desk(Place):
    """A project of an ordinary user on this machine; nothing names the cluster but where it lies."""

    home: Path = Path("/")

    def environment(self) -> dict[str, str]:
        found = super().environment() | {workstation_place.VARIABLE: str(self.home)}
        return {name: value for name, value in found.items() if name != "SLURM_CONF"}

    def script(self, name: str, *lines: str) -> str:
        (self.project / "logs/slurm").mkdir(parents=True, exist_ok=True)
        (self.project / name).write_text("\n".join(["#!/bin/bash", OUTPUT, *lines]) + "\n")
        self.own()
        return name

    def submitted(self, script: str) -> str:
        self.cli("get_status", "--no-cache")
        code, reply = self.cli("submit_job", f"--script={script}")
        assert (code, reply["status"]) == (0, "submitted"), reply
        return reply["job_id"]

    def ended(self, job: str, seconds: int = 90) -> dict:
        code, reply = self.cli("wait_for_job", f"--job-id={job}", f"--timeout-seconds={seconds}", seconds=seconds + 30)
        assert (code, reply["status"]) == (0, "finished"), reply
        return reply["job"]

    def log(self, job: str) -> str:
        (path,) = (self.project / "logs/slurm").glob(f"*-{job}.out")
        return path.read_text()

    def command(self, *words: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """`slurm-agent-tools workstation ...`, as who runs the tests or as another user."""
        argv = [sys.executable, "-m", "slurm_agent_tools", "workstation", *words]
        env = self.environment() | ({} if user else {"HOME": os.environ.get("HOME", "/"), "USER": definition.me()})
        return subprocess.run(
            definition.run_as(user, argv) if user else argv,
            capture_output=True,
            text=True,
            env=env,
            cwd="/",
            timeout=300,
        )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    anyio.run(partial(workstation.down, path / "ws", jobs="end", wipe=True))
    subprocess.run(["rm", "-rf", str(path)], check=True)


@pytest.fixture(scope="module")
def desk(folder: Path) -> Desk:
    """The workstation, brought up from nothing by its command, and a project beside it."""
    if ROOT and PERSON not in {entry.pw_name for entry in pwd.getpwall()}:
        subprocess.run(["useradd", "-M", "-U", "-s", "/bin/bash", PERSON], check=True)
    project = folder / "home" / "project"
    project.mkdir(parents=True)
    quick = {"SLURM_AGENT_SLURM__POLL_SCALE": "0.2"}
    made = Desk(definition.Cluster(folder / "ws", 0, PERSON), project, quick, home=folder / "ws")
    made.own()
    done = made.command("up", "--yes")
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def gpus(desk: Desk, folder: Path) -> list[Path]:
    """The same with four stand-ins for GPUs: named to the function that brings it up, which no command can."""
    files = []
    for number in range(4):
        file = folder / f"nvidia{number}"
        os.mknod(file, 0o666 | stat.S_IFCHR, os.makedev(4, 50 + number))
        file.chmod(0o666)
        files.append(file)
    anyio.run(partial(workstation.down, desk.home, jobs="end"))
    stand_ins = [MachineGpu("a100", str(file), "a device file that stands in") for file in files]
    anyio.run(partial(workstation.up, desk.home, gpus=stand_ins))
    return files


def memory() -> int:
    """What the kernel says that this machine has, MiB."""
    return int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) // 1024


@pytest.mark.proves("workstation-is-the-machine")
async def test_a_job_from_an_mcp_client_runs_on_the_real_cores_and_memory(desk):
    script = desk.script("real.sh", "#SBATCH --mem=100M --time=00:05:00 --cpus-per-task=1", "nproc", "hostname")
    async with desk.client() as client:
        status = await call(client, "get_status", sections=["jobs", "nodes", "partitions"])
        sent = await call(client, "submit_job", script=script)
        assert sent["status"] == "submitted", sent
        done = await call(client, "wait_for_job", job_id=sent["job_id"], timeout_seconds=60)
    assert status["cluster"]["name"] == "workstation"
    assert {found["name"]: found["default"] for found in status["partitions"]} == {"main": True, "testing": False}
    (node,) = status["nodes"]
    assert node["cpus"] == len(os.sched_getaffinity(0))
    seen = json.loads(desk.command("status", "--json").stdout)
    assert seen["machine"]["memory"] + seen["machine"]["kept_memory"] <= memory()
    assert done["job"]["state"] == "COMPLETED", done
    cores = desk.log(sent["job_id"]).split()[0]
    assert cores == ("1" if "cores" in seen["memory"]["walls"] else str(node["cpus"]))
    told = {alert["code"] for alert in [*status["alerts"], *sent["alerts"]]}
    assert ("not-held" in told) == (not {"memory", "cores"} <= set(seen["memory"]["walls"]))


@pytest.mark.proves("workstation-is-the-machine")
def test_a_job_that_takes_more_memory_than_it_asked_for_is_killed_for_it(desk):
    grow = "python3 -c 'kept = [bytearray(2**20) for _ in range(400)]; import time; time.sleep(30)'"
    job = desk.submitted(desk.script("grow.sh", "#SBATCH --mem=100M --time=00:05:00", f"{grow} && echo survived"))
    ended = desk.ended(job)
    assert ended["state"] == ("OUT_OF_MEMORY" if ROOT else "FAILED"), ended
    assert "survived\n" not in desk.log(job)


@pytest.mark.proves("workstation-forgets-nothing")
def test_after_a_crash_of_every_daemon_nothing_is_forgotten_and_jobs_run_on(desk):
    before = desk.submitted(desk.script("short.sh", "#SBATCH --mem=50M --time=00:05:00", "echo first"))
    assert desk.ended(before)["state"] == "COMPLETED"
    runs = desk.submitted(desk.script("long.sh", "#SBATCH --mem=50M --time=00:05:00", "sleep 12", "echo whole"))
    waits = desk.submitted(
        desk.script(
            "later.sh", "#SBATCH --mem=50M --time=00:05:00", f"#SBATCH --dependency=afterok:{runs}", "echo after"
        )
    )
    anyio.run(anyio.sleep, 7)  # slurmctld writes its state every five seconds
    cluster = definition.recorded(desk.home)
    lost = desk.submitted(desk.script("lost.sh", "#SBATCH --mem=50M --time=00:05:00 --begin=now+1hour", "echo lost"))
    for name in cluster.daemons:
        anyio.run(lifecycle.signal_daemon, cluster, name, signal.SIGKILL)
    _, reply = desk.cli("get_status", "--no-cache")
    assert "slurm-agent-tools workstation up" in json.dumps(reply), reply
    assert desk.command("status").returncode == 1
    assert desk.command("up").returncode == 0
    assert desk.ended(runs)["state"] == "COMPLETED"
    assert desk.log(runs).strip() == "whole"
    assert desk.ended(waits)["state"] == "COMPLETED"
    assert [desk.ended(job)["state"] for job in (before, runs)] == ["COMPLETED"] * 2
    rows = subprocess.run(
        ["sacct", "-X", "-n", "-P", "-a", "-o", "JobID,State"], capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ["PATH"], **cluster.environment()}, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert {f"{job}|COMPLETED" for job in (before, runs, waits)} <= set(rows)
    # Whether slurmctld had written the last one down is chance; its number is its own either way.
    done = subprocess.run(desk.as_user(["scancel", lost]), env={"PATH": os.environ["PATH"], **cluster.environment()})
    assert done.returncode == 0
    assert int(desk.submitted(desk.script("next.sh", "#SBATCH --mem=50M --time=00:05:00", "true"))) > int(lost)


@pytest.mark.proves("workstation-forgets-nothing")
def test_what_ended_with_the_machine_is_told_as_ended_when_it_is_up_again(desk):
    job = desk.submitted(desk.script("cut.sh", "#SBATCH --mem=50M --time=00:05:00", "sleep 300"))
    desk.cli("wait_for_job", f"--job-id={job}", "--timeout-seconds=5")
    # slurmctld writes its state every five seconds; where backfill started the job, with the next change of another.
    other = desk.submitted(desk.script("far.sh", "#SBATCH --mem=50M --time=00:05:00 --begin=now+1hour", "true"))
    anyio.run(anyio.sleep, 6)
    cluster = definition.recorded(desk.home)
    for name in cluster.daemons:
        anyio.run(lifecycle.signal_daemon, cluster, name, signal.SIGKILL)
    anyio.run(partial(workstation.down, desk.home, jobs="end"))  # the jobs too, as when the power goes
    assert desk.command("up").returncode == 0
    assert desk.ended(job)["state"] in {"NODE_FAIL", "CANCELLED"}
    desk.cli("wait_for_job", f"--job-id={other}", "--timeout-seconds=1")
    code, reply = desk.cli("cancel_job", f"--job-id={other}", "--reason=it was there for the state")
    assert (code, reply["status"]) == (0, "cancelled"), reply


@pytest.mark.proves("workstation-forgets-nothing")
def test_it_is_not_taken_down_under_running_jobs_unless_that_is_said(desk):
    wait = f"until [ -e {desk.project}/go ]; do sleep 0.2; done"
    job = desk.submitted(desk.script("stay.sh", "#SBATCH --mem=50M --time=00:05:00", wait, "echo stayed"))
    desk.cli("wait_for_job", f"--job-id={job}", "--timeout-seconds=3")
    refused = desk.command("down")
    assert (refused.returncode, "--keep-jobs" in refused.stderr) == (2, True), refused
    assert desk.command("down", "--keep-jobs").returncode == 0
    assert desk.command("up").returncode == 0
    (desk.project / "go").touch()
    assert desk.ended(job)["state"] == "COMPLETED"
    assert desk.log(job).strip() == "stayed"


@needs_root
@pytest.mark.proves("workstation-walls")
def test_two_jobs_on_one_gpu_each_never_see_the_others(desk, gpus):
    look = f"for f in {' '.join(map(str, gpus))}; do (exec 3<$f) 2>/dev/null && echo $f; done"
    at = desk.project
    met = f"until [ -e {at}/looked0 -a -e {at}/looked1 ]; do sleep 0.2; done"  # so both run when each looks again
    head = "#SBATCH --gpus=1 --mem-per-gpu=100M --time=00:05:00"
    jobs = [
        desk.submitted(desk.script(f"gpu{number}.sh", head, look, f"touch {at}/looked{number}", met, look, "true"))
        for number in range(2)
    ]
    ended = [desk.ended(job) for job in jobs]
    assert {job["state"] for job in ended} == {"COMPLETED"}
    opened = [set(desk.log(job).split()) for job in jobs]
    assert [len(files) for files in opened] == [1, 1]
    assert opened[0] != opened[1]
    none = desk.submitted(desk.script("none.sh", "#SBATCH --gpus=0 --mem=100M --time=00:05:00", look, "echo looked"))
    assert desk.ended(none)["state"] == "COMPLETED"
    assert desk.log(none).split() == ["looked"]


@needs_root
@pytest.mark.proves("workstation-walls")
def test_fifty_short_jobs_on_four_gpus_all_run_four_at_a_time_through_the_guard(desk, gpus):
    script = desk.script(
        "sweep.sh", "#SBATCH --gpus=1 --mem-per-gpu=50M --time=00:05:00 --array=0-49%4", "date +%s.%N",
        f"for f in {' '.join(map(str, gpus))}; do (exec 3<$f) 2>/dev/null && echo $f; done", "sleep 0.7", "date +%s.%N",
    )  # fmt: skip
    job = desk.submitted(script)
    code, reply = desk.cli("wait_for_job", f"--job-id={job}", "--timeout-seconds=180", seconds=240)
    assert (code, reply["status"], reply["job"]["state"]) == (0, "finished", "COMPLETED"), reply
    logs = [path.read_text().split() for path in (desk.project / "logs/slurm").glob("sweep*.out")]
    assert [len(words) for words in logs] == [3] * 50  # begun, the one GPU that it could open, ended
    assert {file for _, file, _ in logs} == {str(file) for file in gpus}
    together = [[file for start, file, end in logs if start <= moment < end] for moment, _, _ in logs]
    assert max(len(files) for files in together) == 4
    assert [files for files in together if len(set(files)) < len(files)] == []


@needs_root
@pytest.mark.proves("workstation-walls")
def test_the_guides_commands_work_and_an_ordinary_users_workstation_says_that_no_wall_holds(desk, folder):
    home = folder / "home" / "own"
    other = Desk(definition.Cluster(home, 0, PERSON), desk.project, desk.extra, home=home)
    search = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    seen = []
    for command in re.findall(r"^\$ (.+)$", GUIDE.read_text(), re.MULTILINE):
        done = subprocess.run(
            other.as_user(["bash", "-c", command]), capture_output=True, text=True, cwd=other.project, timeout=120,
            env=other.environment() | search,
        )  # fmt: skip
        assert done.returncode == 0, (command, done)
        seen.append((command, done.stdout))
        if command.endswith("get_status --cluster workstation"):
            assert stat.S_IMODE(home.stat().st_mode) == 0o700
            script = other.script("plain.sh", "#SBATCH --mem=50M --time=00:05:00", "echo ran")
            code, sent = other.cli("submit_job", f"--script={script}")
            assert (code, sent["status"]) == (0, "submitted"), sent
            assert any("No wall" in alert["message"] for alert in sent["alerts"]), sent["alerts"]
            assert other.ended(sent["job_id"])["state"] == "COMPLETED"
            (inline,) = re.findall(r"`(eval [^`]+)`", GUIDE.read_text())
            shell = other.as_user(["bash", "-c", f"{inline}\nsacct -X -n -o State -j {sent['job_id']}"])
            done = subprocess.run(shell, capture_output=True, text=True, env=other.environment() | search, timeout=60)
            assert (done.returncode, done.stdout.split()) == (0, ["COMPLETED"]), done
    told = dict(seen)
    for command in ("workstation up --yes", "workstation status", "get_status --cluster workstation"):
        assert "No wall between jobs holds for memory and cores" in told[f"slurm-agent-tools {command}"]
    assert not home.exists()
