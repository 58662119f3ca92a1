"""A campaign is carried through to its end."""

from __future__ import annotations

from evals.programs import TRAIN
from evals.task import Outcome, Task, need

FILE = """campaign: 1
objective: {metric: train_loss, direction: minimize}
stages:
  - name: training
    kind: cpu
    command: [python3, train.py]
    parameters:
      rate: {default: 0.5, argument: --rate}
      epochs: {default: 5, argument: --epochs, length: true}
    resources: {cpus: 1, memory: 100M, time_limit: 5min, partition: cpu}
    smoke: {change: {epochs: 1}, time_limit: 2min}
    metrics: {pattern: {train_loss: 'train_loss: ([0-9.]+)'}}
rounds:
  - {kind: smoke}
  - kind: grid
    hypothesis: A smaller rate learns better.
    vary: {rate: [0.01, 0.1]}
limits: {cpu_hours: 10, trials: 20, at_once: 3}
"""


def check(seen: Outcome) -> None:
    """Its report is there with the best rate, and each trial ran as the file has it."""
    states = {job.state for job in seen.sent}
    need(len(seen.sent) >= 3 and states == {"COMPLETED"}, f"{len(seen.sent)} jobs, {states or 'none'}")
    need(seen.json("out/rate-0.1.json") == {"train_loss": 0.2}, "the best rate did not run")
    seen.unchanged(TASK, TASK.files)
    reports = list((seen.project / "campaigns").glob("rates*.md"))
    need(reports, "there is no report")
    need("0.1" in reports[0].read_text(), "the report does not name the best rate")


TASK = Task(
    prompt="Carry out the campaign in campaigns/rates.yaml to its end.",
    files={"campaigns/rates.yaml": FILE, "train.py": TRAIN},
    check=check,
)
