"""The 25 tasks by name, in the order in which they are played."""

from __future__ import annotations

import importlib

from evals.task import Task

BASIC = (
    "train", "naive_script", "failing_array", "compare", "config", "look", "cancel", "several_nodes", "out_of_memory",
)  # fmt: skip
"""The nine everyday tasks whose answers took 312 KB before they were brief: README.md says which is which."""

NAMES = (
    *BASIC,
    "time_limit", "sync", "campaign", "sweep", "full_queue", "hostile_log", "refused", "missing_module", "backend",
    "chain", "dry_run", "justify", "approval", "history", "running_log", "plan",
)  # fmt: skip


def load(name: str) -> Task:
    """A task by its name."""
    task = importlib.import_module(f"evals.tasks.{name}").TASK
    if not isinstance(task, Task):
        raise TypeError(f"evals/tasks/{name}.py has no TASK")
    return task
