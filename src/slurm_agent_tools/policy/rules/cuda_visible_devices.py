"""cuda-visible-devices: the variables by which Slurm tells a job its GPUs are Slurm's to set."""

from __future__ import annotations

import re

from slurm_agent_tools.models.request import Directive, Finding
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.examples import asks, does
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Judgement, Rule, passed, reading_of, speak

ID = "cuda-visible-devices"

DEVICE_VARIABLES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "ZE_AFFINITY_MASK",
    }
)

_WHY = "Slurm sets this variable to the GPUs that the job was given; another value reaches for somebody else's."

_ADVICE = "the GPUs of the job are already the only visible ones; ask for their number with #SBATCH --gpus=N."


def _judge(plan: PlannedRequest, _: Policy) -> Judgement:
    reading = reading_of(plan)
    found = [finding for finding in reading.findings if finding.rule == ID]
    lines = {finding.evidence.line for finding in found}
    found += [
        _exported(directive)
        for directive in reading.request.find("export")
        if directive.source != "pinned" and directive.evidence.line not in lines and _names(directive)
    ]
    if not found:
        return passed("The script leaves the choice of GPUs to Slurm.")
    return speak(reading, found, _WHY, _without, _ADVICE)


def _without(text: str) -> str:
    """The command without the setting; empty where it did nothing else."""
    if text.startswith("#SBATCH"):
        new = re.sub(rf"(?<=[=,])(?:{_NAMED})(?:=[^,\s]*)?(?:,|(?=\s|$))", "", text).replace(", ", " ").rstrip(",")
        return "" if re.fullmatch(r"#SBATCH\s+--export=?\s*", new) else new
    new = re.sub(rf",(?:{_NAMED})=[^,\s]*", "", text)  # srun --export=ALL,NAME=0
    new = re.sub(rf"(?:-e\s+|--env[=\s])?\b(?:{_NAMED})={_VALUE}\s*", "", new)
    new = re.sub(r"\b(?:export|declare|typeset|readonly|local)(?:\s+-\w+)*\s*(?=[;&|]|$)", "", new)
    new = re.sub(r"(^\s*|[\"'(]\s*)(?:;|&&)\s*", r"\1", new)
    new = re.sub(r"(\{|\b(?:then|do|else))\s*(?=;)|\(\(\s*\)\)", r"\1 :", new)  # an empty list is no shell
    return "" if new == text or new.strip() == ":" else new


_NAMED = "|".join(sorted(DEVICE_VARIABLES))

_VALUE = r"(?:\"[^\"]*\"|'[^']*'|\$\([^)]*\)|\$\{[^}]*\}|[^\s;&|)\"'])*"


def _names(directive: Directive) -> set[str]:
    """Device variables that an --export list gives a value or passes on."""
    words = {item.partition("=")[0].strip() for item in (directive.value or "").split(",")}
    return words & DEVICE_VARIABLES


def _exported(directive: Directive) -> Finding:
    return Finding(ID, f"--export passes {', '.join(sorted(_names(directive)))} to the job", directive.evidence)


RULE = Rule(
    id=ID,
    what=f"A script never sets {', '.join(sorted(DEVICE_VARIABLES))}.",
    why=_WHY,
    levels=("warn", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example("reading the variable", asks("#SBATCH --gpus=1", 'echo "$CUDA_VISIBLE_DEVICES"', gpus=1), "pass"),
        Example(
            "exporting something else",
            asks("#SBATCH --export=ALL,SEED=7", "python train.py", export="ALL,SEED=7"),
            "pass",
        ),
    ),
    failing=(
        Example(
            "setting it",
            does(ID, "sets CUDA_VISIBLE_DEVICES", "export CUDA_VISIBLE_DEVICES=0,1"),
            "deny",
        ),
        Example(
            "setting it in a directive",
            asks(
                "#SBATCH --export=ALL,CUDA_VISIBLE_DEVICES=0",
                "python train.py",
                export="ALL,CUDA_VISIBLE_DEVICES=0",
            ),
            "deny",
        ),
    ),
)
