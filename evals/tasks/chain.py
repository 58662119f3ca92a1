"""Three jobs of which each needs the one before: all are sent at once."""

from __future__ import annotations

from evals.task import Outcome, Task, need, script

STEP = """import pathlib, sys, time

name, before = sys.argv[1:]
rows = pathlib.Path(before).read_text() if before != "-" else ""
time.sleep(1)
pathlib.Path(name).write_text(f"{rows}{name}\\n")
"""
STEPS = {"prepare": "rows.txt -", "train": "model.txt rows.txt", "evaluate": "report.txt model.txt"}


def check(seen: Outcome) -> None:
    """Each ran once, after the one before had ended."""
    jobs = {job.name: job for job in seen.sent}
    need(len(seen.sent) == len(STEPS) == len(jobs), f"each was to be sent once, not {[job.name for job in seen.sent]}")
    need({job.state for job in jobs.values()} == {"COMPLETED"}, f"{ {name: job.state for name, job in jobs.items()} }")
    for earlier, later in (("prepare", "train"), ("train", "evaluate")):
        need((jobs[later].started or 0) >= (jobs[earlier].ended or 0), f"{later} began before {earlier} had ended")
    need(seen.text("report.txt") == "rows.txt\nmodel.txt\nreport.txt\n", "the report is another one")


TASK = Task(
    prompt="Submit prepare.sh, train.sh and evaluate.sh now, so that each begins when the one before has succeeded. "
    "Come back when the last one has finished.",
    files={"step.py": STEP} | {f"{name}.sh": script(name, f"python3 step.py {words}") for name, words in STEPS.items()},
    check=check,
)
