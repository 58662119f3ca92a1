"""interactive: no terminal inside a batch job."""

from __future__ import annotations

from slurm_agent_tools.policy.rules import findings
from slurm_agent_tools.policy.rules.base import SCRIPTS, Example, Rule
from slurm_agent_tools.policy.rules.examples import asks, does

ID = "interactive"
_WHY = "Nobody sits at the terminal of a batch job: it waits until its time is over and holds its nodes meanwhile."

RULE = Rule(
    id=ID,
    what="A script opens no terminal (`srun --pty`, `salloc`).",
    why=_WHY,
    levels=("warn", "approve", "deny"),
    tools=SCRIPTS,
    judge=findings.judge(
        ID,
        clean="The script opens no terminal.",
        why=_WHY,
        remedy="run the command itself, without --pty; for work at a terminal ask a person.",
    ),
    passing=(Example("a job step without a terminal", asks("srun python train.py"), "pass"),),
    failing=(Example("a shell in a job", does(ID, "opens a terminal with srun --pty", "srun --pty bash"), "deny"),),
)
