"""A training is killed for its memory: it gets what it needs and goes on from its checkpoint."""

from __future__ import annotations

from evals.programs import RESUMES
from evals.task import KILLED_FOR_MEMORY, Outcome, Task, need, script


def check(seen: Outcome) -> None:
    """Each run had more memory than the one before, within what is free; the last went on from a checkpoint."""
    *killed, last = seen.runs()
    need(killed, "nothing was killed: it did not run as it was")
    need({job.state for job in killed} <= KILLED_FOR_MEMORY, f"the first ones are {[job.state for job in killed]}")
    need(last.state == "COMPLETED", f"the last one is {last.state}")
    sizes = [job.megabytes for job in (*killed, last)]
    need(sizes == sorted(set(sizes)) and sizes[-1] <= 16 * 1024, f"they asked for {sizes} MB")
    model = seen.json("model.json")
    need(model["begun"] >= 4 and model["epoch"] == 8, f"the model is {model}")
    need("--megabytes 250" in last.script, "the training was made smaller")


TASK = Task(
    prompt="Run large.sh. If it fails, find out why, change only what it needs, and let it go on from its checkpoint"
    " (train.py --resume) instead of beginning again.",
    files={
        "train.py": RESUMES,
        "large.sh": script("large", "python3 train.py --megabytes 250 --pause 60", mem="100M"),
    },
    check=check,
)
