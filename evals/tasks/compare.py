"""Three runs are kept as results and compared."""

from __future__ import annotations

import json

from evals.task import Outcome, Task, need

RUNS = {"rate-0": (0.1, 0.5), "rate-1": (0.05, 0.75), "rate-2": (0.01, 0.625)}


def check(seen: Outcome) -> None:
    """Three results with their own figures, and the best with what it gained."""
    need(not seen.sent, "nothing was to be submitted")
    for name, (rate, accuracy) in RUNS.items():
        record = seen.result(name)
        need(record["metrics"] == {"val_accuracy": accuracy}, f"{name} has {record['metrics']}")
        need(record["config"] == {"learning_rate": rate}, f"{name} has the configuration {record['config']}")
    need(seen.text("best.txt").split() == ["rate-1", "0.25"], f"best.txt says {seen.text('best.txt')!r}")


TASK = Task(
    prompt="runs/ has the metrics of three trainings, configs/ their configurations. Save each as a result under its"
    " name, compare them with rate-0, and write into best.txt the name of the best by val_accuracy and, "
    "behind a space, by how much it is better than rate-0.",
    files={f"runs/{name}.json": json.dumps({"val_accuracy": accuracy}) for name, (_, accuracy) in RUNS.items()}
    | {f"configs/{name}.yaml": f"learning_rate: {rate}\n" for name, (rate, _) in RUNS.items()},
    check=check,
)
