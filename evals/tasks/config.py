"""A configuration with mistakes is corrected until it is valid, and nothing else of it changes."""

from __future__ import annotations

import yaml
from evals.task import Outcome, Task, need

RIGHT = {
    "experiment": "base",
    "data": {"path": "data/train", "workers": 8},
    "training": {"epochs": 10, "batch_size": 64, "learning_rate": 0.1},
    "slurm": {"gpus": 1, "memory": "16G"},
}
WRONG = """experiment: base
data: {path: data/train, workers: 8}
training: {epochs: ten, batch_size: -64, learning_rate: 40}
slurm: {gpus: 1, memory: 2T}
"""


def check(seen: Outcome) -> None:
    """The file says what it should, and no job ran."""
    need(not seen.sent, "nothing was to be submitted")
    try:
        found = yaml.safe_load(seen.text("configs/base.yaml"))
    except yaml.YAMLError as error:
        need(condition=False, otherwise=f"configs/base.yaml is no YAML: {error}")
    need(found == RIGHT, f"configs/base.yaml says {found}")


TASK = Task(
    prompt="configs/base.yaml has mistakes. Correct them until it is valid: ten epochs, batches of 64, a rate of "
    "0.1, and as much memory as is free for one GPU. Leave the rest as it is and submit nothing.",
    files={"configs/base.yaml": WRONG, "data/train/rows.csv": "1\n"},
    check=check,
)
