"""direct-submission: a job submits, changes and releases no jobs."""

from __future__ import annotations

import re

from slurm_agent_tools.models.request import Finding
from slurm_agent_tools.policy.rules import script_mending
from slurm_agent_tools.policy.rules.examples import asks, does
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Rule, judge_findings
from slurm_agent_tools.policy.rules.script_mending import Change, Mend, Place

ID = "direct-submission"

_WHY = "A job that a job submits was checked by nobody and counts in no limit."

_COMMANDS = frozenset({"sbatch", "scontrol", "scancel", "sacctmgr"})

_WORKFLOW = re.compile(r"submits jobs|workflow|launcher|setting")

_INSIDE = (
    'let the workflow run its work inside this job, with `--cores "$SLURM_CPUS_PER_TASK"` or its local executor in '
    "place of the option that submits, or submit one array with submit_job"
)

_STEP = "run the work as a step of this job, without the options or settings that ask Slurm for another one"

_NEXT = "take the submission out and keep the rest of the line; submit that script with submit_job after this one"


def _commands(place: Place) -> Change | None:
    """The commands that submit or change jobs; one that starts work itself is kept."""
    calls = [one for one in place.here if one.kind == "call" and one.words]
    gone = [one for one in calls if script_mending.program(one) in _COMMANDS]
    named = [one for one in calls if script_mending.program(one).startswith("$")]  # the command's name in a variable
    if not gone and len(named) == 1 and place.finding.what == "it runs sbatch":
        gone = named
    return Change(frozenset(one.index for one in gone)) if gone else None


def _advice(finding: Finding) -> str:
    if _WORKFLOW.search(finding.what):
        return _INSIDE
    return _STEP if "srun" in finding.what or "salloc" in finding.what else _NEXT


_MEND = Mend(_commands, lambda _: None, _advice)

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
        mend=_MEND,
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
