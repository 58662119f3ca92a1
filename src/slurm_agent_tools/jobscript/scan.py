"""Texts without a reader here: a look for the words themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from slurm_agent_tools.jobscript.program import DEVICES, NUMBERED

_SUBMITS = re.compile(r"(?<![\w.-])(sbatch|salloc)(?![\w-])")
_RETRIES = re.compile(r"\bscontrol\s+requeue")
SILENT = ("#", "//", "echo ", "print ")


def scan(text: str, silent: tuple[str, ...] = SILENT) -> Iterator[tuple[str, str, int]]:
    """(rule, what, line) of what the lines name that begin with none of `silent`: comments, printing."""
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip()
        if bare.startswith(silent):
            continue
        if DEVICES.search(bare) and re.search(r"=|setenv|set\s", bare):
            yield "cuda-visible-devices", "it names a variable that chooses devices", number
        if NUMBERED.search(bare):
            yield "device-index", "it names a device by its number", number
        if _RETRIES.search(bare):
            yield "auto-retry", "it runs scontrol requeue", number
        elif (found := _SUBMITS.search(bare)) is not None:
            yield "direct-submission", f"it names {found[1]}", number
