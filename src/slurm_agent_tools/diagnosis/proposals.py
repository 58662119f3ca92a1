"""The enlarged request for a next run. Only ever proposed; nothing here sends anything, and no limit is known here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from slurm_agent_tools.diagnosis.excerpt import LogText
from slurm_agent_tools.diagnosis.job_facts import peak
from slurm_agent_tools.diagnosis.program_progress import Progress, progress
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.units import format_duration, format_memory, human_memory

_MIB, _GIB = 2**20, 2**30

_WHOLE_GIB = 8 * _GIB  # from here on sizes are rounded up to whole G, below to whole M

_LEAST = 0.05  # of the work: from less than that no end can be foretold

_MARGIN = 1.15

_UNCHECKED = "Whether the partition and the policy allow it was not checked here."

_SIZES = {"K": 2**10, "M": _MIB, "G": _GIB, "T": 2**40}

# What a program says it could not get: numpy, PyTorch (bytes), R. Slurm's sampled limit: KiB used.
_WANTED = re.compile(
    r"Unable to allocate (?P<size>[\d.]+) (?P<unit>[KMGT])iB"
    r"|cannot allocate vector of size (?P<r>[\d.]+) (?P<runit>[KMGT])b"
    r"|DefaultCPUAllocator: .{0,200}you tried to allocate (?P<bytes>\d+) bytes"
)

_USED = re.compile(
    r"(?:slurmstepd|slurmd)\S{0,80}: .{0,200}exceeded (?:job |step )?memory limit \((?P<used>\d+) > \d+\)",
    re.IGNORECASE,
)

_MOST = 4  # times the request: a program that wants more at once has another fault than its request


@dataclass(frozen=True, slots=True)
class ProposedDirective:
    """The directive, and what its number rests on."""

    line: str
    ground: str


def larger_memory(part: Job, texts: Sequence[LogText] = ()) -> ProposedDirective | None:
    """A fifth more memory than asked for, or than was used or wanted where that is known and more; None: not known."""
    has = part.resources
    if has.gpus and has.memory_per_gpu_bytes:
        size = _more(has.memory_per_gpu_bytes)
        return _change(f"#SBATCH --mem-per-gpu={size}", "Proposed: 20 % more than was asked for")
    per_node = has.memory_per_node_bytes or (has.memory_bytes if has.nodes == 1 else None)
    if not per_node:
        return None
    used = max(peak([part]) or 0, _measured(texts))
    need = used + _wanted(texts)
    if per_node < need <= per_node * _MOST:
        seen, ground = "", f"Proposed: 20 % more than the {human_memory(need)} that was used or wanted"
    else:
        need = per_node
        seen = f" Slurm saw {human_memory(used)} in use by one task; the need is not known." if used else ""
        ground = f"Proposed: 20 % more than the {human_memory(per_node)} that was asked for"
    return _change(f"#SBATCH --mem={_more(need)}", ground, seen)


def _change(line: str, ground: str, seen: str = "") -> ProposedDirective:
    return ProposedDirective(line, f"{ground} ({line}).{seen} {_UNCHECKED}")


def _more(size: int) -> str:
    wanted = -(-size * 6 // 5)
    unit = _GIB if wanted >= _WHOLE_GIB else _MIB
    return format_memory(-(-wanted // unit) * unit)


def _measured(texts: Sequence[LogText]) -> int:
    """Bytes that Slurm said in the log were in use when it ended the job; 0 where it said nothing."""
    found = (_USED.search(line.text) for text in texts for line in text.lines)
    return max((int(match["used"]) * 2**10 for match in found if match is not None), default=0)


def _wanted(texts: Sequence[LogText]) -> int:
    """Bytes of the last allocation that failed; 0 where the log tells of none."""
    size = 0
    for match in (_WANTED.search(line.text) for text in texts for line in text.lines):
        if match is not None and match["bytes"]:
            size = int(match["bytes"])
        elif match is not None:
            size = round(float(match["size"] or match["r"]) * _SIZES[match["unit"] or match["runit"]])
    return size


def longer_time(part: Job, texts: Sequence[LogText] = ()) -> ProposedDirective | None:
    """The time that the progress seen in the log foretells, else half more; None where the limit is not known."""
    limit = part.resources.time_limit_seconds
    if limit is None or limit <= 0:
        return None
    ran = part.elapsed_seconds or limit
    seen = progress(texts)
    needed = _needed(seen, ran)
    if seen is None or needed is None or needed <= limit:
        return _change(f"#SBATCH --time={_rounded(limit * 1.5)}", "Proposed: 50 % more time")
    begun = f"The log's last progress is {seen.text!r} after {format_duration(ran)}."
    begun += f" At that pace the whole run takes {format_duration(round(needed))}."
    ground = f"{begun} Proposed: that time and 15 % more, rounded up"
    return _change(f"#SBATCH --time={_rounded(needed * _MARGIN)}", ground)


def _needed(seen: Progress | None, ran: int) -> float | None:
    """Seconds from where it began to the end."""
    if seen is None:
        return None
    if seen.left is not None:
        return ran + seen.left
    worked = (seen.done or 0.0) - seen.begun
    return ran * (1 - seen.begun) / worked if worked >= _LEAST else None


def _rounded(seconds: float) -> str:
    """Whole minutes, from two hours on five, from a day on half hours; upwards."""
    step = 60 if seconds < 7200 else 300 if seconds < 86400 else 1800
    return format_duration(int(-(-seconds // step) * step))
