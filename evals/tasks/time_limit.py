"""A run of a person was ended by its time limit: it goes on from its checkpoint with more time."""

from __future__ import annotations

from evals.programs import RESUMES
from evals.task import Outcome, Scene, Task, need, script, send, state_of


def prepare(scene: Scene) -> dict[str, str]:
    """The job ran into its limit after four epochs; the operator made its minute shorter."""
    job = send(scene, TASK.files["long.sh"])
    checkpoint = scene.project / "checkpoint.json"
    scene.until(lambda: checkpoint.exists() and '"epoch": 4' in checkpoint.read_text(), "four epochs are over")
    scene.operator("scontrol", "update", f"JobId={job}", "EndTime=now+1")
    scene.until(lambda: state_of(scene, job) == "TIMEOUT", "the time limit ended it")
    return {"job": job}


def check(seen: Outcome) -> None:
    """One further job, with more time, that began at the checkpoint."""
    job = seen.only()
    need(job.time_limit > "00:01:00", f"it had {job.time_limit}")
    need(seen.json("model.json") == {"begun": 4, "epoch": 8}, f"the model is {seen.text('model.json')}")


TASK = Task(
    prompt="My job {job} (long.sh) has not finished. Find out why, and let the training go on from its checkpoint "
    "(train.py --resume), with a time limit that suffices: what is left takes five minutes at most.",
    files={"train.py": RESUMES, "long.sh": script("long", "python3 train.py --pause 600", time="1")},
    check=check,
    prepare=prepare,
)
