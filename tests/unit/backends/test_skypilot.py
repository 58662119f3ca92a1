"""generate_script with formats skypilot and shell. SkyPilot itself reads the same 25 files in tests/skypilot."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.backends.exporting import COMMON, Asked, bash_reads, cases, generated, requests

from slurm_agent_tools.errors import InputError

NEEDED: Asked = {"format": "skypilot", "gpu_type": "A100", "max_hourly_cost": 12.5}


async def task(folder: Path, **asked: Any) -> dict[str, Any]:
    reply = await generated(folder, **NEEDED | asked)
    assert reply.status == "written", reply.reason
    read: dict[str, Any] = yaml.safe_load(reply.script or "")
    return read


def ran(script: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        env={"PATH": "/usr/bin:/bin", **env},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_there_are_25_requests():
    assert len(requests("skypilot")) == 25


@pytest.mark.proves("exports-are-valid")
@pytest.mark.parametrize("asked", cases("skypilot"))
async def test_a_task_holds_its_price_its_end_and_a_time_limit(tmp_path: Path, asked: Asked):
    reply = await generated(tmp_path, **asked)

    assert reply.status == "written", reply.reason
    assert reply.path is not None
    assert reply.path.endswith(".skypilot.yaml")
    document = yaml.safe_load((tmp_path / "project" / reply.path).read_text())
    name = document["name"]
    assert reply.manual_commands == [f"slurm-agent-tools launch {reply.path}", f"sky launch -c {name} {reply.path}"]
    resources = document["resources"]
    assert resources["autostop"] == {"idle_minutes": 10, "down": True, "wait_for": "jobs"}
    assert (resources["max_hourly_cost"], resources["use_spot"]) == (12.5, False)
    assert "timeout --kill-after=60 " in document["run"]
    assert bash_reads(document["run"])


async def test_a_machine_has_what_was_asked_for_at_least(tmp_path: Path):
    one = (await task(tmp_path, gpus=4, memory="65000M", image="team/train:1"))["resources"]
    two = await task(tmp_path, command="torchrun t.py", distributed=True, gpus=4, nodes=2)
    none = (await task(tmp_path, gpus=0))["resources"]

    assert {key: one[key] for key in ("accelerators", "cpus", "memory", "image_id")} == {
        "accelerators": "A100:4", "cpus": "16+", "memory": "64+", "image_id": "docker:team/train:1"
    }  # fmt: skip
    assert (two["num_nodes"], two["resources"]["accelerators"]) == (2, "A100:2")
    assert "accelerators" not in none


async def test_each_task_of_an_array_runs_with_its_number_and_one_that_fails_stops_no_other(tmp_path: Path):
    document = await task(
        tmp_path, array="1,3,5-9:2%1", gpus=0, command='echo "$SLURM_ARRAY_TASK_ID"; test "$SLURM_ARRAY_TASK_ID" != 3'
    )
    done = ran(document["run"], tmp_path)

    assert (done.stdout.split(), done.returncode) == (["1", "3", "5", "7", "9"], 1)


async def test_a_program_is_told_before_its_time_is_over_and_can_save(tmp_path: Path):
    (tmp_path / "save.sh").write_text('trap "echo saved; exit 0" USR1\nwhile :; do sleep 0.05; done\n')
    reply = await generated(
        tmp_path,
        format="shell",
        gpus=0,
        time_limit="1",
        command="bash save.sh",
        checkpoint={"dir": "c", "signal_before": "58s"},
    )
    done = ran(reply.script or "", tmp_path)

    assert (done.stdout, done.returncode) == ("saved\n", 0)


async def test_the_nodes_of_a_distributed_task_meet_at_the_first_one(tmp_path: Path):
    (tmp_path / "torchrun").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "torchrun").chmod(0o755)
    document = await task(tmp_path, command="torchrun t.py --lr 3", distributed=True, gpus=4, nodes=2)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SKYPILOT_NODE_IPS": "10.0.0.7\n10.0.0.8", "SKYPILOT_NODE_RANK": "1"}

    assert ran(document["run"], tmp_path, **env).stdout.split() == [
        "--nnodes=2", "--nproc-per-node=2", "--node-rank=1", "--master-addr=10.0.0.7", "--master-port=29500", "t.py", "--lr", "3"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"max_hourly_cost": None}, "max_hourly_cost.*is required"),
        ({"gpu_type": None}, "gpu_type.*is required"),
        ({"gpu_type": "A100:8"}, "gpu_type.*no name of a kind of GPU"),
        (
            {"command": "torchrun t.py", "gpus": 4, "nodes": 2, "distributed": True, "array": "0-3"},
            "array.*several machines",
        ),
        ({"command": "mpirun ./a", "gpus": 4, "nodes": 2, "launcher": "mpi"}, "torchrun or accelerate"),
        ({"command": 'echo "$SLURM_JOB_ID"'}, "SLURM_JOB_ID.*SkyPilot has no value for"),
    ],
)
async def test_what_a_task_cannot_say_is_an_error_that_names_the_field(tmp_path: Path, asked: Asked, problem: str):
    with pytest.raises(InputError, match=problem):
        await generated(tmp_path, **NEEDED | asked)
    assert not (tmp_path / "project/scripts").exists()


# --- the plain shell --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [pytest.param(asked, id=name) for name, asked in COMMON.items()])
async def test_a_shell_script_is_one_that_bash_reads_and_says_what_it_needs(tmp_path: Path, asked: Asked):
    reply = await generated(tmp_path, format="shell", **asked)

    assert reply.status == "written", reply.reason
    assert reply.manual_commands == [f"bash {reply.path}"]
    assert "#SBATCH" not in (reply.script or "")
    assert (reply.script or "").splitlines()[1].startswith("# Asks for ")
    assert bash_reads(reply.script or "")


async def test_a_shell_script_runs_the_command_with_what_it_reads_of_slurm(tmp_path: Path):
    command = 'echo "$SLURM_JOB_NAME $SLURM_CPUS_PER_TASK $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"'
    reply = await generated(tmp_path, format="shell", name="it's", command=command, array="4-6:2", gpus=0, cpus=2)

    assert ran(reply.script or "", tmp_path).stdout.splitlines() == ["it's 2 4 of 2", "it's 2 6 of 2"]


async def test_a_shell_has_no_image_and_no_kind_of_gpu(tmp_path: Path):
    for asked in ({"image": "a:1"}, {"gpu_type": "A100"}, {"max_hourly_cost": 1}):
        with pytest.raises(InputError, match="means nothing to format shell"):
            await generated(tmp_path, format="shell", **asked)
