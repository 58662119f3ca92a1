"""What is going on: how much is free for the next job, and what of one's own runs."""

from __future__ import annotations

from evals.task import Outcome, Scene, Task, need, script, send, state_of


def prepare(scene: Scene) -> dict[str, str]:
    """Five of the eight GPUs of the largest node are held by a job of the person's."""
    job = send(scene, script("held", "sleep 600", partition="special", gpus="5", mem="1G"))
    scene.until(lambda: state_of(scene, job) == "RUNNING", "the job runs")
    return {"job": job}


def check(seen: Outcome) -> None:
    """The file has Slurm's figures, and nothing was done to the cluster."""
    need(not seen.sent, "nothing was to be submitted")
    need(seen.job(seen.values["job"]).state == "RUNNING", "the running job was touched")
    told = seen.json("free.json")
    need(told == {"special_free_gpus": 3, "my_running_jobs": 1}, f"free.json says {told}")


TASK = Task(
    prompt="How many GPUs are free in the partition special, and how many jobs of mine run? Write "
    '{{"special_free_gpus": ..., "my_running_jobs": ...}} into free.json. Change nothing on the cluster.',
    files={},
    check=check,
    prepare=prepare,
)
