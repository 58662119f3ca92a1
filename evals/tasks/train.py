"""A training that works: submit it, wait, keep what came out."""

from __future__ import annotations

from evals.programs import TRAIN
from evals.task import Outcome, Task, need, script


def check(seen: Outcome) -> None:
    """One job that completed, and its result with the loss of its log."""
    job = seen.only()
    seen.unchanged(TASK, TASK.files)
    record = seen.result("base")
    need(record["status"] == "success", f"the result says {record['status']}")
    need(abs(record["metrics"].get("train_loss", 0) - 0.2) < 1e-9, f"the loss was 0.2, not {record['metrics']}")
    need(record["environment"]["slurm_job"]["job"]["job_id"] == job.id, "the result is of another job")


TASK = Task(
    prompt="Run train.sh on the cluster, once. When it has finished, save its last train_loss as the result `base`, "
    "with the job it came from.",
    files={"train.py": TRAIN, "train.sh": script("train", "python3 train.py --epochs 5")},
    check=check,
)
