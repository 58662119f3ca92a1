"""Generated scripts of distributed jobs, each run on two nodes with the real launcher: every process meets the others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.system.faces import Place, call

GPUS = 4
SMALL = {"gpus": GPUS, "nodes": 2, "cpus": 8, "memory": "16G", "time_limit": "10m", "partition": "gpu"}
# The nodes of the test are one machine: its processes meet on the loopback interface, and share no memory.
LOOPBACK = ["export GLOO_SOCKET_IFNAME=lo OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMP_NUM_THREADS=1"]


async def run(client: Client, project: Place, **asked: Any) -> str:
    """What the job printed; it must complete."""
    written = await call(client, "generate_script", **asked)
    assert written["status"] == "written", written
    await call(client, "get_status")
    sent = await call(client, "submit_job", script=written["path"])
    assert sent["status"] == "submitted", sent
    seen: dict[str, Any] = {"status": "pending"}
    for _ in range(20):
        seen = await call(client, "wait_for_job", job_id=sent["job_id"], timeout_seconds=45)
        if seen["status"] == "finished":
            break
    printed = "".join((project.project / path).read_text() for path in sorted(logs(project, asked["name"])))
    assert seen["job"]["state"] == "COMPLETED", (seen, printed, written["script"])
    return printed


def logs(project: Place, name: str) -> list[Path]:
    return list((project.project / "logs/slurm").glob(f"{name}-*.*"))


@pytest.mark.parametrize(
    ("launcher", "command"),
    [
        ("torchrun", "torchrun --nproc_per_node=8 ranks.py"),
        ("torchrun", "python ranks.py"),
        ("srun", "python ranks.py"),
        ("srun", "cd . && python ranks.py"),
        ("accelerate", "accelerate launch --mixed_precision=no --dynamo_backend=no accelerated.py"),
        ("deepspeed", "deepspeed --num_gpus=8 sped.py"),
        ("mpi", "mpirun -np 8 python passing.py"),
    ],
)
async def test_the_processes_of_two_nodes_find_each_other(project: Place, programs: Path, launcher: str, command: str):
    setup = [f"export PATH={programs}:$PATH", *LOOPBACK]
    async with project.client() as client:
        printed = await run(client, project, name="ranks", command=command, launcher=launcher, setup=setup, **SMALL)

    found = re.findall(r"rank=(\d+) of=(\d+) sum=(\d+) node=(\S+)", printed)
    assert sorted(int(rank) for rank, *_ in found) == list(range(GPUS)), printed
    assert {(int(of), int(total)) for _, of, total, _ in found} == {(GPUS, sum(range(GPUS)))}
    by_node = sorted((node, rank) for rank, _, _, node in found)
    assert [rank for _, rank in by_node] == ["0", "1", "2", "3"], (
        "each node has neighbouring ranks, the first node rank 0"
    )
    assert len({node for node, _ in by_node}) == 2


@pytest.mark.parametrize("launcher", [None, "srun"])
async def test_a_program_is_told_before_the_limit_and_goes_on_from_its_newest_checkpoint(
    project: Place, programs: Path, launcher: str | None
):
    checkpoint = {"dir": "ckpt", "resume_from": "step-*.txt", "signal_before": "55s"}
    asked = {"checkpoint": checkpoint, "setup": [f"export PATH={programs}:$PATH"], "partition": "gpu", "gpus": 1}
    asked |= {"command": "python saving.py", "time_limit": "1m", "memory": "4G"} | (
        {"launcher": launcher} if launcher else {}
    )
    async with project.client() as client:
        first = await run(client, project, name="first", **asked)
        second = await run(client, project, name="second", **asked)

    saved = re.findall(r"saved (\d+)", first)
    assert first.startswith("starts at 0\n")
    assert re.findall(r"starts at (\d+)", second) == saved
    assert int(re.findall(r"saved (\d+)", second)[0]) > int(saved[0])
