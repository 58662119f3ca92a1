"""device-index: no hard-coded GPU number."""

from __future__ import annotations

import re

from slurm_agent_tools.policy.rules import script_mending
from slurm_agent_tools.policy.rules.examples import asks, does
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Rule, judge_findings
from slurm_agent_tools.policy.rules.script_mending import Change, Mend, Place

ID = "device-index"

_WHY = "A fixed number works on one allocation and takes the wrong GPU, or none, on the next."

_ADVICE = "take the number away or take it from LOCAL_RANK or SLURM_LOCALID: the job's GPUs are the only ones it sees"

# Each way to write a number, and the same without it.
_MENDED = (
    (r"\b(cuda|hip|xpu|gpu):\d+", r"\1"),
    (r"/(?:device:)?GPU:\d+", "/GPU"),
    (r"\.cuda\(\s*(?:device\s*=\s*)?\d+\s*", ".cuda("),
    (r"\.to\(\s*\d+\s*\)", '.to("cuda")'),
    (r"\bdevice\(\s*([\"'])cuda\1\s*,\s*\d+\s*\)", 'device("cuda")'),
    (r"\bdevice\s*=\s*\d+\b(?!,\d)", 'device="cuda"'),
    (r",\s*\b(?:device_ids|devices|gpus|gpu_ids)\s*=\s*[\[(][^\])]*[\])](?=\s*[,)])", ""),
    (r",\s*\b(?:gpu_id|gpu_device_id|main_gpu)\s*=\s*\d+(?=\s*[,)])", ""),
    (  # YAML: nothing chosen, so that the program takes what the job has
        (
            r"^(\s*(?:-\s+)?(?:gpu_ids?|device_ids?|gpu_list|gpus|devices)\s*:\s*)"
            r"(?:\[[^\]]*\]|[\"'][\d, ]+[\"']|\d[\d, ]*)$"
        ),
        r"\1null",
    ),
    (r"\b((?:CUDA|AMDGPU)\.device(?:_id)?!)\(\s*\d+\s*\)", r'\1(parse(Int, get(ENV, "SLURM_LOCALID", "0")))'),
    (r"\bgpuDevice\(\s*\d+\s*\)", "gpuDevice()"),
)

_IN_WORD = re.compile(r"(?i:\b(cuda|hip|xpu|gpu)):\d+(?:,(?:cuda:)?\d+)*$")

_SETTING = re.compile(r"[+~]*(?:\w+\.)*(?:devices?|gpus?|gpu_ids?|device_ids?)=\[?\d+(?:, ?\d+)*\]?")

_OPTION = re.compile(r"(?:--?|\+)[\w.-]*(?:gpu|device|include)[\w-]*", re.IGNORECASE)

_NUMBERS = re.compile(r"(?:localhost|cuda|gpu)?[@:]?\d+(?:[,:]\d+)*", re.IGNORECASE)

_CHOOSING = re.compile(r"\s*(?:\w+\.)*(?:cuda\.)?set_device\(\s*[\"']?(?:cuda:)?\d+[\"']?\s*\)\s*(?:#.*)?")


def _unnumbered_line(text: str) -> str | None:
    """A line of Python, or of settings, without the number; one that only chooses a GPU does nothing."""
    if _CHOOSING.fullmatch(text):
        return f"{text[: len(text) - len(text.lstrip())]}pass"
    new = text
    for pattern, plain in _MENDED:
        new = re.sub(pattern, plain, new)
    return None if new == text else new


def _unnumbered(place: Place) -> Change | None:
    puts = list[tuple[int, int, str]]()
    for command in place.here:
        words = [*command.assigns, *command.words[1:]]
        for number, word in enumerate(words):
            source = place.reading.text[word.start : word.end]
            name, sign, value = word.text.partition("=")
            before = words[number - 1].text if number else ""
            if _NUMBERS.fullmatch(word.text) and _OPTION.fullmatch(before) and _IN_WORD.search(word.text) is None:
                puts.append(script_mending.without_words(place, words[number - 1], word))
            elif (_SETTING.fullmatch(word.text) and word in command.words) or (
                sign and _OPTION.fullmatch(name) and _NUMBERS.fullmatch(value) and ":" not in value
            ):
                puts.append(script_mending.without_word(place, word))
            else:
                new = _unnumbered_line(source)
                puts += [(word.start, word.end, new)] if new is not None and "\n" not in source else []
    return Change(puts=tuple(puts))


_MEND = Mend(_unnumbered, _unnumbered_line, lambda _: _ADVICE)

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
        mend=_MEND,
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
