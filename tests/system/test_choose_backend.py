"""Where to run, over MCP: a cluster behind its login node beside this machine as a workstation, and rented GPUs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.system import test_smoke_first
from tests.system.faces import Laptop, Place, call, laptop

from slurm_agent_tools.backends import page_templates
from slurm_agent_tools.devcluster import workstation
from slurm_agent_tools.devcluster.login_node import LoginNode
from slurm_agent_tools.settings import workstation_place

SHORT = (
    "#!/bin/bash\n#SBATCH --cpus-per-task=1\n#SBATCH --mem=100M\n#SBATCH --time=10\n#SBATCH --output=x.out\nhostname\n"
)
GPU = (
    "#!/bin/bash\n#SBATCH --gpus=1\n#SBATCH --mem-per-gpu=100M\n#SBATCH --time=20\n#SBATCH --output=gpu.out\nhostname\n"
)
LAB = """kind: slurm
partitions:
  - {name: special, purpose: testing}
  - {name: gpu, purpose: production, time_limit: "12h"}
"""


@dataclass
class Desk(Laptop):
    """A workstation with a cluster elsewhere: Slurm's programs are here, the cluster's configuration is not."""

    home: Path = Path("/")

    def environment(self) -> dict[str, str]:
        found = Place.environment(self) | {workstation_place.VARIABLE: str(self.home)}
        return {name: value for name, value in found.items() if not name.startswith("SLURM_CONF")}

    def as_user(self, argv: list[str]) -> list[str]:
        return Place.as_user(self, argv)


@pytest.fixture(scope="module")
def machine() -> Iterator[Path]:
    """This machine as a cluster of its own."""
    folder = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    folder.chmod(0o755)
    env = {**os.environ, workstation_place.VARIABLE: str(folder / "ws")}
    env.pop("SLURM_CONF", None)
    argv = [sys.executable, "-m", "slurm_agent_tools", "workstation", "up", "--yes"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    yield folder / "ws"
    anyio.run(partial(workstation.down, folder / "ws", jobs="end", wipe=True))
    subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.fixture
def desk(fresh: Place, login: LoginNode, machine: Path) -> Desk:
    plain = laptop(fresh, login)
    made = Desk(plain.cluster, plain.project, plain.extra, there=plain.there, home=machine)
    (made.project / "short.sh").write_text(SHORT)
    (made.project / "gpu.sh").write_text(GPU)
    (made.project / "backends").mkdir()
    (made.project / "backends" / "lab.yaml").write_text(LAB)
    (made.project / "backends" / "rented.yaml").write_text(page_templates.template("cloud"))
    made.own()
    return made


@pytest.mark.proves("seven-questions", "backends-are-data")
async def test_short_work_stays_here_and_gpus_are_those_of_the_cluster(desk: Desk) -> None:
    async with desk.client() as client:
        here = await call(client, "choose_backend", script="short.sh", expected="5m")
        assert (here["question"], here["backend"]) == (1, "workstation"), here
        await call(client, "get_status", cluster="workstation")
        sent = await call(client, "submit_job", **here["next"]["arguments"])
        assert sent["status"] == "submitted", sent
        job = await call(client, "wait_for_job", job_id=sent["job_id"], cluster="workstation", timeout_seconds=60)
        assert job["job"]["state"] == "COMPLETED", job
        quick = await call(client, "choose_backend", resources={"gpus": 1}, expected="30m")
        assert (quick["question"], quick["backend"], quick["partition"]) == (2, "lab", "special"), quick
        longer = await call(client, "choose_backend", resources={"gpus": 4}, expected="2h")
    assert (longer["question"], longer["backend"], longer["partition"]) == (3, "lab", "gpu"), longer
    assert any("8 GPUs free now for 4" in reason for reason in longer["reasons"])
    assert any("time limit 12:00:00, the cluster 2-00:00:00" in text for text in longer["contradictions"])
    assert {(one["backend"], one["partition"]) for one in longer["alternatives"]} >= {
        ("lab", "special"), ("lab", "cpu"), ("rented", "a100"),
    }  # fmt: skip


@pytest.mark.proves("seven-questions")
async def test_a_gpu_job_goes_from_the_question_to_its_end_on_the_cluster_behind_its_login_node(desk: Desk) -> None:
    async with desk.client() as client:
        there = await call(client, "choose_backend", script="gpu.sh", expected="10m")
        assert (there["question"], there["backend"], there["partition"]) == (2, "lab", "special"), there
        await call(client, "get_status", cluster="lab")
        sent = await call(client, "submit_job", **there["next"]["arguments"])
        assert sent["status"] == "submitted", sent
        job = await call(client, "wait_for_job", job_id=sent["job_id"], cluster="lab", timeout_seconds=60)
    assert (job["job"]["state"], job["job"]["partition"]) == ("COMPLETED", "special"), job
    assert job["job"]["nodes"].endswith("spec01")
    assert (desk.there / "gpu.out").exists()


def on_both_sides(desk: Desk, files: dict[str, str]) -> None:
    for name, text in files.items():
        (desk.project / name).write_text(text)
        (desk.there / name).write_text(text)
    desk.own()


@pytest.mark.proves("smoke-comes-first")
async def test_the_ladder_holds_over_ssh_and_a_byte_in_a_module_closes_it(desk: Desk) -> None:
    files = {"train.sh": test_smoke_first.SCRIPT, "train.py": "import model\n", "model.py": "width = 1\n"}
    files["train.sh"] = files["train.sh"].replace("logs/slurm/", "")
    on_both_sides(desk, files)
    there = {"cluster": "lab"}
    async with desk.client() as client:
        await test_smoke_first.refused(client, **test_smoke_first.LARGE, **there)
        await test_smoke_first.submitted(client, **test_smoke_first.SMOKE, **there)
        on_both_sides(desk, {"model.py": "width = 2\n"})
        told = await test_smoke_first.refused(client, **test_smoke_first.LARGE, **there)
        assert "model.py" in told["message"]
        on_both_sides(desk, files)
        asked = await call(client, "submit_job", dry_run=True, **test_smoke_first.LARGE, **there)
        assert asked["status"] == "dry_run", asked


@pytest.mark.proves("seven-questions")
async def test_long_jobs_and_many_are_answered_from_what_the_live_cluster_says(desk: Desk) -> None:
    asked = {
        "12 hours": {"expected": "12h"},
        "3 days that restart": {"expected": "3d", "restartable": True},
        "3 days, nobody knows": {"expected": "3d"},
        "50 jobs": {"expected": "2h", "jobs": 50},
    }
    async with desk.client() as client:
        found = {
            name: await call(client, "choose_backend", resources={"gpus": 4}, **more) for name, more in asked.items()
        }
    told = {name: (one["status"], one["question"], one.get("partition")) for name, one in found.items()}
    assert told == {
        "12 hours": ("chosen", 4, "gpu"),
        "3 days that restart": ("chosen", 5, "gpu"),
        "3 days, nobody knows": ("ask_person", 5, None),
        "50 jobs": ("chosen", 6, "gpu"),
    }, found
    assert any("chain of 2 jobs of at most 2-00:00:00" in reason for reason in found["3 days that restart"]["reasons"])
    assert "checkpoint" in found["3 days, nobody knows"]["question_for_person"]


@pytest.mark.proves("fallbacks-are-noted")
async def test_a_cluster_that_is_away_is_passed_over_and_that_is_in_the_decision_log(desk: Desk) -> None:
    closed = desk.settings.read_text() + "port = 9\nconnect_timeout = 2\n"
    desk.settings.write_text(closed)
    desk.own()
    async with desk.client() as client:
        found = await call(client, "choose_backend", resources={"gpus": 1}, expected="2h", budget=5)
    assert (found["status"], found["question"], found["backend"]) == ("chosen", 7, "rented"), found
    assert "lab/gpu would have been chosen" in found["fallback"]
    assert (found["expected"]["cost"]["amount"], found["expected"]["cost"]["currency"]) == (2.58, "USD")
    shown = desk.run([sys.executable, "-m", "slurm_agent_tools", "policy", "log", "--json"])
    events = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [one["note"] for one in events if one["event"] == "fallback"] == [found["fallback"]]
