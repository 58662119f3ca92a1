"""Whether scripts would be accepted is asked, and nothing is sent."""

from __future__ import annotations

from evals.task import Outcome, Task, need, script

SCRIPTS = {
    "small.sh": script("small", "python3 -c 'print(1)'"),
    "large.sh": script("large", "python3 -c 'print(1)'", partition="gpu", gpus="1", mem="64G"),
    "gone.sh": script("gone", "python3 -c 'print(1)'", partition="titan"),
}


def check(seen: Outcome) -> None:
    """The three verdicts, and nothing else."""
    need(not seen.sent, f"{[job.name for job in seen.sent]} was submitted")
    seen.unchanged(TASK, SCRIPTS)
    need(not list((seen.project / "scripts").rglob("*.sh")), "a script was left for a person")
    told = seen.json("verdicts.json")
    need(told == {"small.sh": "allow", "large.sh": "approve", "gone.sh": "deny"}, f"verdicts.json says {told}")


TASK = Task(
    prompt="Which of small.sh, large.sh and gone.sh would be accepted? Only ask, submit nothing. Write the verdict "
    'on each into verdicts.json: {{"small.sh": "...", ...}}.',
    files=SCRIPTS,
    check=check,
)
