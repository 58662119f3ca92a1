"""PBS scripts that generate_script writes, submitted by Slurm's own qsub: what Slurm reads of PBS it reads as it is meant.

Slurm knows names, queues, time, memory, nodes, processes and arrays of PBS. It drops GPUs in silence, so they are left to
the grammar in tests/unit/backends.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.faces import Place

QSUB = "/usr/bin/qsub"


@pytest.fixture
def pbs(fresh: Place) -> Iterator[Place]:
    """A place whose jobs have PBS's variables, as Slurm's plugin sets them."""
    plugins = Path(fresh.environment()["SLURM_CONF"]).with_name("plugstack.conf")
    assert not plugins.exists()
    plugins.write_text("optional spank_pbs.so\n")
    plugins.chmod(0o644)
    yield fresh
    plugins.unlink()


def generated(place: Place, **asked: Any) -> str:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
    code, answer = place.cli("generate_script", "--format=pbs", *words)
    assert code == 0, answer
    assert answer["manual_commands"] == [f"qsub {answer['path']}"]
    return str(answer["path"])


def submitted(place: Place, path: str, *, held: bool = False) -> str:
    """Its number. qsub's own outputs would beat those of the script, so the array's results go to files of its own."""
    place.slurm("mkdir", "-p", "logs/slurm")
    said = place.slurm(QSUB, *(["-h"] if held else []), path)
    found = re.match(r"(\d+)", said)
    assert found is not None, said
    return found[1]


def ended(place: Place, job: str) -> list[str]:
    """The states of all of its tasks, once there is none in the queue."""
    for _ in range(300):
        if not place.slurm("squeue", "-h", "-j", job, "-o", "%i"):
            break
        time.sleep(0.2)
    return place.slurm("scontrol", "show", "job", job, "-o").splitlines()


@pytest.mark.proves("exports-are-valid")
def test_slurms_qsub_asks_for_what_was_asked_for(pbs: Place):
    path = generated(
        pbs, name="solve", command="hostname", gpus=0, cpus=2, memory="300M", time_limit="7", partition="cpu"
    )
    job = submitted(pbs, path, held=True)
    shown = dict(re.findall(r"(\S+?)=(\S*)", pbs.slurm("scontrol", "show", "job", job, "-o")))
    pbs.slurm("scancel", job)

    assert {key: shown[key] for key in ("JobName", "Partition", "TimeLimit", "MinMemoryNode", "MinCPUsNode")} == {
        "JobName": "solve", "Partition": "cpu", "TimeLimit": "00:07:00", "MinMemoryNode": "300M", "MinCPUsNode": "2"
    }  # fmt: skip
    assert shown["NumNodes"].partition("-")[0] == "1"


@pytest.mark.proves("exports-are-valid")
@pytest.mark.parametrize(("array", "numbers"), [("2-5%2", [2, 3, 4, 5]), ("1,4,6%2", [1, 4, 6])])
def test_the_tasks_of_an_array_run_with_their_numbers(pbs: Place, array: str, numbers: list[int]):
    command = "mkdir -p out; pwd > out/$SLURM_ARRAY_TASK_ID"
    path = generated(
        pbs, name="tasks", command=command, gpus=0, cpus=1, memory="100M", time_limit="5", partition="cpu", array=array
    )
    rows = ended(pbs, submitted(pbs, path))

    assert [int(file.name) for file in sorted((pbs.project / "out").iterdir())] == numbers, rows
    assert {file.read_text().strip() for file in (pbs.project / "out").iterdir()} == {str(pbs.project)}
