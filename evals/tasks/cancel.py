"""Of two trainings one diverges: that one is cancelled, for the record too, and the other goes on."""

from __future__ import annotations

from evals.task import Outcome, Task, need, script

LOSSES = "for n in 1 2 3 4; do echo epoch $n/90 train_loss: {}; done"


def check(seen: Outcome) -> None:
    """The right one was cancelled, the other was not."""
    states = {job.name: job.state for job in seen.sent}
    need(len(seen.sent) == len(states), f"each was to be sent once, not {[job.name for job in seen.sent]}")
    need(states == {"diverge": "CANCELLED", "steady": "RUNNING"}, f"the jobs are {states}")
    need(seen.result("diverge")["status"] == "cancelled", "the result does not say that it was cancelled")
    seen.unchanged(TASK, TASK.files)


TASK = Task(
    prompt="Start diverge.sh and steady.sh. If the loss of one of them is no number any more, cancel that one and "
    "save the result `diverge` or `steady` for it, as cancelled. Leave the other one running.",
    files={
        "diverge.sh": script("diverge", LOSSES.format("$((10 ** n))"), "echo epoch 5/90 train_loss: nan", "sleep 600"),
        "steady.sh": script("steady", LOSSES.format("0.$((9 - n))"), "sleep 600"),
    },
    check=check,
)
