"""A script names a partition that is gone: where it fits is looked up, and it runs there as it asks."""

from __future__ import annotations

from evals.task import Outcome, Task, need, script


def check(seen: Outcome) -> None:
    """One job with its GPU and its six hours, in the partition that gives them."""
    job = seen.only()
    got = (job.partition, job.gpus, job.time_limit)
    need(got == ("gpu", 1, "06:00:00"), f"it ran in {got}")
    need(seen.text("model.txt") == "done", "it ran something else")


TASK = Task(
    prompt="fit.sh is old: its partition titan is gone. Find out where a job with its GPU and its six hours goes "
    "best, and run it there. Change nothing else of it.",
    files={
        "fit.py": "import pathlib\n\npathlib.Path('model.txt').write_text('done')\n",
        "fit.sh": script("fit", "python3 fit.py", partition="titan", gpus="1", mem="8G", time="06:00:00"),
    },
    check=check,
)
