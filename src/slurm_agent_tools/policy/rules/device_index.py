"""device-index: no hard-coded GPU number."""

from __future__ import annotations

import re

from slurm_agent_tools.policy.rules.examples import asks, does
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Rule, judge_findings

ID = "device-index"

_WHY = "A fixed number works on one allocation and takes the wrong GPU, or none, on the next."

# Each way to write a number, and the same without it.
_MENDED = (
    (r"\b(cuda|hip|xpu|gpu):\d+", r"\1"),
    (r"/(?:device:)?GPU:\d+", "/GPU"),
    (r"\.cuda\(\s*(?:device\s*=\s*)?\d+\s*", ".cuda("),
    (r"\.to\(\s*\d+\s*\)", '.to("cuda")'),
    (r"\bdevice\(\s*([\"'])cuda\1\s*,\s*\d+\s*\)", 'device("cuda")'),
    (r"\bdevice\s*=\s*\d+\b", 'device="cuda"'),
    (r",?\s*\b(?:device_ids|devices|gpus|gpu_ids)\s*=\s*[\[(][^\])]*[\])]", ""),
    (r"\s[\w.]*\b(?:devices|gpus|gpu_ids?|device_ids?)=(?:\[[\d, ]*\]|\d[\d,]*)(?=\s|$)", ""),
    (r",?\s*\b(?:gpu_id|gpu_device_id|main_gpu)\s*=\s*\d+", ""),
    (  # YAML: nothing chosen, so that the program takes what the job has
        (
            r"^(\s*(?:-\s+)?(?:gpu_ids?|device_ids?|gpu_list|gpus|devices)\s*:\s*)"
            r"(?:\[[^\]]*\]|[\"'][\d, ]+[\"']|\d[\d, ]*)$"
        ),
        r"\1null",
    ),
    (r"\s(?:--?|\+)[\w.-]*(?:gpu|device|include)[\w-]*(?:=|\s+)[\"']?[\w@:]*\d[\d,:]*[\"']?(?=\s|$)", ""),
    (r"\b((?:CUDA|AMDGPU)\.device(?:_id)?!)\(\s*\d+\s*\)", r'\1(parse(Int, get(ENV, "SLURM_LOCALID", "0")))'),
    (r"\bgpuDevice\(\s*\d+\s*\)", "gpuDevice()"),
)


def _unnumbered(text: str) -> str:
    """The same without the number; a line that only chooses a GPU goes."""
    new = text
    for pattern, plain in _MENDED:
        new = re.sub(pattern, plain, new)
    return "" if new == text else new


RULE = Rule(
    id=ID,
    what="A script names no fixed GPU (`cuda:0`, `/GPU:1`, set_device(0)).",
    why=_WHY,
    levels=("warn", "approve", "deny"),
    tools=SCRIPTS,
    judge=judge_findings(
        ID,
        clean="The script names no fixed GPU.",
        why=_WHY,
        mend=_unnumbered,
        advice="the job's GPUs are the only ones it sees; take a number from LOCAL_RANK or SLURM_LOCALID.",
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
        Example(
            "a list of GPUs by number",
            does(ID, "it names devices by number: --gpus 0,1", "python train.py --gpus 0,1 --epochs 3"),
            "deny",
        ),
        Example(
            "the number of a GPU for mdrun",
            does(ID, "it names devices by number: -gpu_id 0", "gmx mdrun -gpu_id 0 -v"),
            "deny",
        ),
    ),
)
