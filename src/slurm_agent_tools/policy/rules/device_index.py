"""device-index: no hard-coded GPU number."""

from __future__ import annotations

from slurm_agent_tools.policy.rules import findings
from slurm_agent_tools.policy.rules.base import SCRIPTS, Example, Rule
from slurm_agent_tools.policy.rules.examples import asks, does

ID = "device-index"
_WHY = "A fixed number works on one allocation and takes the wrong GPU, or none, on the next."

RULE = Rule(
    id=ID,
    what="A script names no fixed GPU (`cuda:0`, `/GPU:1`, set_device(0)).",
    why=_WHY,
    levels=("warn", "approve", "deny"),
    tools=SCRIPTS,
    judge=findings.judge(
        ID,
        clean="The script names no fixed GPU.",
        why=_WHY,
        remedy='write "cuda" without a number, or take the number from LOCAL_RANK or SLURM_LOCALID.',
    ),
    passing=(
        Example(
            "a device without a number",
            asks("""python -c 'import torch; print(torch.ones(1, device="cuda"))'"""),
            "pass",
        ),
    ),
    failing=(
        Example(
            "the first GPU by number",
            does(
                ID,
                "uses the fixed device cuda:0",
                """python -c 'import torch; print(torch.ones(1, device="cuda:0"))'""",
            ),
            "deny",
        ),
    ),
)
