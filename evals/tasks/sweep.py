"""A sweep over four rates as one array; the best is kept."""

from __future__ import annotations

from evals.programs import TRAIN
from evals.task import Outcome, Task, need, script

RATES = ("0.001", "0.01", "0.1", "1.0")


def check(seen: Outcome) -> None:
    """Four tasks of one array ran, and the best rate is the one that is."""
    need(len({job.array for job in seen.sent}) == 1, "one array was to be sent")
    need(sorted(job.state for job in seen.sent) == ["COMPLETED"] * 4, f"{[job.state for job in seen.sent]}")
    need(all("_" in job.id for job in seen.sent), "no array was sent")
    losses = {rate: seen.json(f"out/rate-{float(rate)}.json")["train_loss"] for rate in RATES}
    record = seen.result("best-rate")
    need(record["config"] == {"rate": 0.1}, f"the best is kept as {record['config']}")
    need(record["metrics"].get("train_loss") == min(losses.values()), f"its loss is kept as {record['metrics']}")


TASK = Task(
    prompt="Which of the rates in rates.txt trains best? sweep.sh takes the number of its line, 0 to 3, as the "
    "array's task. Run all four, at most four at once, and save the best as the result `best-rate` with its "
    'train_loss and the config {{"rate": ...}}.',
    files={
        "train.py": TRAIN,
        "rates.txt": "\n".join(RATES) + "\n",
        "sweep.sh": script(
            "sweep", 'rate=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" rates.txt)', 'python3 train.py --rate "$rate"',
            output="logs/%x-%A_%a.out",
        ),
    },
    check=check,
)  # fmt: skip
