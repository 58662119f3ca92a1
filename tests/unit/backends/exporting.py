"""25 requests for each format, and what generate_script makes of them: through the tool, with no Slurm to ask."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.contexts import NothingReachesSlurm, TestedToolbox, toolbox

from slurm_agent_tools.models.script_arguments import GenerateScript
from slurm_agent_tools.models.submission_answer import GenerateReply

Asked = dict[str, Any]


async def generated(folder: Path, limits: Asked | None = None, **asked: Any) -> GenerateReply:
    """The answer; `limits` of the policy other than those that it ships with."""
    box = toolbox(folder, NothingReachesSlurm())
    loaded = box.context.policy
    changed = loaded.policy.limits.model_copy(update=limits or {})
    policy = loaded.policy.model_copy(update={"limits": changed})
    box = TestedToolbox(replace(box.context, policy=replace(loaded, policy=policy)))
    try:
        reply = await box.call(
            "generate_script", GenerateScript(**{"name": "train", "command": "python train.py"} | asked)
        )
    finally:
        await box.close()
    assert isinstance(reply, GenerateReply)
    return reply


# What every scheduler is asked alike: one node, several GPUs, arrays of all kinds, names and commands that need care.
COMMON: Mapping[str, Asked] = {
    "defaults": {},
    "no GPU": {"gpus": 0},
    "four GPUs": {"gpus": 4, "memory": "64G"},
    "odd memory": {"gpus": 3, "memory": "10G"},
    "small memory": {"gpus": 0, "memory": "700M", "cpus": 1},
    "data size": {"gpus": 0, "data_size": "4G"},
    "a day": {"time_limit": "24:00:00"},
    "minutes": {"time_limit": "25"},
    "a budget": {"time_budget": "90m"},
    "array": {"array": "0-3"},
    "array with a limit": {"array": "0-99%4", "gpus": 0},
    "array from five": {"array": "5-8"},
    "array in steps": {"array": "0-20:5%2"},
    "array of a list": {"array": "1,3,8-9"},
    "array of one": {"array": "7"},
    "setup": {"setup": ["module load cuda", "source env/bin/activate"]},
    "checkpoint": {"checkpoint": {"dir": "ckpt", "resume_from": "step-*.pt"}},
    "signal": {"checkpoint": {"dir": "ckpt", "signal_before": "5m"}, "time_limit": "1h"},
    "array with checkpoints": {"array": "0-3", "checkpoint": {"dir": "ckpt", "resume_from": "*.pt"}},
    "long odd name": {"name": "Über größe / run_1: " + "x" * 90},
    "several lines": {"command": "python prepare.py\npython train.py && echo 'it is done' \"$$\" $(date)"},
    "torchrun on one node": {"command": "torchrun --nproc_per_node=2 train.py", "gpus": 2, "distributed": True},
}  # fmt: skip

OWN: Mapping[str, Mapping[str, Asked]] = {
    "pbs": {
        "queue": {"partition": "workq"},
        "MPI on two nodes": {"command": "mpirun -np 8 ./solve", "nodes": 2, "gpus": 0, "cpus": 8, "launcher": "mpi"},
        "variables of Slurm": {"command": 'python train.py "$SLURM_JOB_ID" "$SLURM_CPUS_PER_TASK"'},
    },
    "kubernetes": {
        "queue of Kueue": {"partition": "team-a"},
        "kind of GPU": {"gpu_type": "NVIDIA-A100-SXM4-80GB", "gpus": 8, "justification": "the model needs all of them"},
        "image with a digest": {"image": "registry.example.org:5000/team/train@sha256:" + "0" * 64},
    },
    "skypilot": {
        "torchrun on two nodes": {"command": "torchrun train.py", "nodes": 2, "gpus": 8, "distributed": True,
                                  "justification": "the model fits on no single machine"},
        "accelerate on two nodes": {"command": "accelerate launch train.py", "nodes": 2, "gpus": 4, "distributed": True},
        "image": {"image": "pytorch/pytorch:2.9"},
    },
}  # fmt: skip

NEEDED: Mapping[str, Asked] = {
    "pbs": {},
    "kubernetes": {"image": "registry.example.org/team/train:1.2"},
    "skypilot": {"gpu_type": "A100", "max_hourly_cost": 12.5},
    "shell": {},
}


def requests(scheduler: str) -> dict[str, Asked]:
    """The requests of one format by their names, whole."""
    found = COMMON | OWN[scheduler]
    return {name: {"format": scheduler} | NEEDED[scheduler] | asked for name, asked in found.items()}


def cases(scheduler: str) -> list[Any]:
    """For pytest.mark.parametrize: the name and the request."""
    return [pytest.param(asked, id=name) for name, asked in requests(scheduler).items()]


def bash_reads(script: str) -> bool:
    """Whether it is a script by bash's own reading."""
    return subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
