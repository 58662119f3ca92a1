"""What a job that runs has reached; it is left alone."""

from __future__ import annotations

from evals.task import Outcome, Scene, Task, need, script, send

EPOCHS = "for n in 1 2 3 4; do echo epoch $n/90 train_loss: 0.$((90 - n)); done"


def prepare(scene: Scene) -> dict[str, str]:
    """It runs and has written four epochs."""
    job = send(scene, TASK.files["long.sh"])
    log = scene.project / f"logs/long-{job}.out"
    scene.until(lambda: log.exists() and "epoch 4/90" in log.read_text(), "four epochs are written")
    return {"job": job}


def check(seen: Outcome) -> None:
    """The last loss, and the job runs still."""
    need(not seen.sent, "nothing was to be submitted")
    need(seen.job(seen.values["job"]).state == "RUNNING", "the job was touched")
    need(seen.json("loss.txt") == 0.86, f"loss.txt says {seen.text('loss.txt')!r}")


TASK = Task(
    prompt="How far is my job {job}? Write its last train_loss into loss.txt, and leave the job alone.",
    files={"long.sh": script("long", EPOCHS, "sleep 600")},
    check=check,
    prepare=prepare,
)
