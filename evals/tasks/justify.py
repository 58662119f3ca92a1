"""A request above what is free, for which there is a reason."""

from __future__ import annotations

from evals.task import Outcome, Task, need, script


def check(seen: Outcome) -> None:
    """It ran with all its memory, and the reason is in the guard's record."""
    job = seen.only()
    need((job.memory, job.gpus) == ("20G", 1), f"it ran with {job.memory} and {job.gpus} GPUs")
    seen.unchanged(TASK, TASK.files)
    log = seen.project.parent / ".state/slurm-agent-tools/decisions.jsonl"
    need(log.is_file() and "tables" in log.read_text(), "the record of decisions has no reason")


TASK = Task(
    prompt="Run tokens.sh. It needs its 20 GB: the tokenizer's tables take 18 GB of memory.",
    files={"tokens.sh": script("tokens", "python3 -c 'print(1)'", partition="gpu", gpus="1", mem="20G")},
    check=check,
)
