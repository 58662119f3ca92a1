"""direct-submission: a job submits, changes and releases no jobs."""

from __future__ import annotations

from slurm_agent_tools.policy.rules import script_mending
from slurm_agent_tools.policy.rules.examples import asks, does
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Rule, judge_findings

ID = "direct-submission"

_WHY = "A job that a job submits was checked by nobody and counts in no limit."

_COMMANDS = r"\b(?:sbatch|salloc|scontrol|scancel|srun|SLURMCluster|submitit|slurm)\b"


def _without(text: str) -> str:
    return script_mending.drop(text, _COMMANDS)


RULE = Rule(
    id=ID,
    what="A script runs no sbatch or salloc, no srun outside its own allocation, and no scontrol that changes jobs.",
    why=_WHY,
    levels=("warn", "approve", "deny"),
    tools=SCRIPTS,
    judge=judge_findings(
        ID,
        clean="The script submits and changes no jobs.",
        why=_WHY,
        mend=_without,
        advice="submit the next job with submit_job, with dependency=afterok: and the id of this one; "
        "cancel jobs with cancel_job.",
    ),
    passing=(
        Example("a job step", asks("srun python train.py"), "pass"),
        Example("looking at its own job", asks('scontrol show job "$SLURM_JOB_ID"'), "pass"),
    ),
    failing=(
        Example("a nested submission", does(ID, "runs sbatch", "sbatch next.sh"), "deny"),
        Example("a changed job", does(ID, "runs scontrol update", "scontrol update JobId=7 TimeLimit=9-0"), "deny"),
    ),
)
