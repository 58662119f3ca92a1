"""interactive: no terminal inside a batch job."""

from __future__ import annotations

import re

from slurm_agent_tools.policy.rules import script_mending
from slurm_agent_tools.policy.rules.examples import asks, does
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Rule, judge_findings

ID = "interactive"

_WHY = "Nobody sits at the terminal of a batch job: it waits until its time is over and holds its nodes meanwhile."

_PTY = re.compile(r"\s+--pty(?:=\S+)?(?=\s|$)")

_BARE_SHELL = r"\bsrun\b[^;&|]*\s(?:\S*/)?(?:bash|sh|zsh|dash|ksh|fish|tcsh|csh)(?:\s+-\S+)*\s*$"


def _without_terminal(text: str) -> str:
    """The step without its terminal; a shell that nobody types into has nothing to run."""
    plain = _PTY.sub("", text)
    shell = re.search(_BARE_SHELL, plain) is not None
    return script_mending.drop(plain, _BARE_SHELL) if shell or plain == text else plain


RULE = Rule(
    id=ID,
    what="A script opens no terminal (`srun --pty`, `salloc`).",
    why=_WHY,
    levels=("warn", "approve", "deny"),
    tools=SCRIPTS,
    judge=judge_findings(
        ID,
        clean="The script opens no terminal.",
        why=_WHY,
        mend=_without_terminal,
        advice="a batch job runs its commands by itself; for work at a terminal ask a person.",
    ),
    passing=(Example("a job step without a terminal", asks("srun python train.py"), "pass"),),
    failing=(Example("a shell in a job", does(ID, "opens a terminal with srun --pty", "srun --pty bash"), "deny"),),
)
