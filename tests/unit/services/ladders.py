"""A project whose job is large: what the tests of the ladder begin with."""

from __future__ import annotations

from typing import Any

from tests.unit.services.scenes import Scene

SCRIPT = """#!/bin/bash
#SBATCH --job-name=train
#SBATCH --partition=cpu
#SBATCH --cpus-per-task=8
#SBATCH --mem=1G
#SBATCH --time=12:00:00
#SBATCH --output=logs/train.out
#SMOKE length: --steps STEPS solver.max_steps
STEPS=100000
python train.py --config configs/a.yaml "$@"
python -m lab.check data/points.csv
"""
"""96 CPU hours, with its length in three places."""

FILES = {
    "train.sh": SCRIPT,
    "train.py": "import helper\nfrom lab import model\nopen('data/weights.txt')\nmaybe = 'data/more.txt'\n",
    "helper.py": "from lab.deep import layers\n",
    "lab/__init__.py": "",
    "lab/model.py": "x = 1\n",
    "lab/check.py": "print('checked')\n",
    "lab/deep/__init__.py": "",
    "lab/deep/layers.py": "y = 2\n",
    "configs/a.yaml": "lr: 0.1\nsolver:\n  max_steps: 100000\n",
    "data/points.csv": "1,2\n",
    "data/weights.txt": "0.5\n",
}

SMOKE = {"stage": "smoke", "time_limit": "00:20:00"}


def laboratory(scene: Scene) -> Scene:
    """The scene with this project in it."""
    for name, text in FILES.items():
        scene.write(name, text)
    return scene


async def large(scene: Scene, **more: Any) -> Any:
    """The job at its whole length."""
    return await scene.submit(**{"args": ["--steps", "100000"], **more})


async def smoke(scene: Scene, *, after: float = 60, **ending: Any) -> Any:
    """A smoke run of it that ended; it passes where nothing else is told."""
    scene.slurm.next_job(after=after, **ending)
    reply = await scene.submit(args=["--steps", "50"], **SMOKE)
    assert reply.status == "submitted", reply.summary
    await over(scene, reply.job_id)
    return reply


async def over(scene: Scene, job_id: str) -> None:
    """The job has ended, and its caller has seen it."""
    for _ in range(5):
        reply = await scene.wait(job_id, 3000)
        if reply.status == "finished":
            return
    raise AssertionError(reply.summary)


def rule(reply: Any) -> Any:
    """What smoke-first said."""
    return next(one for one in reply.decision.rules if one.id == "smoke-first")


def closed(reply: Any, outcome: str | None = None) -> str:
    """The message of the refusal; fails where smoke-first let it pass."""
    assert reply.status == "blocked", reply.summary
    told = rule(reply)
    assert told.outcome in ({"justify", "deny"} if outcome is None else {outcome}), told
    return told.message
