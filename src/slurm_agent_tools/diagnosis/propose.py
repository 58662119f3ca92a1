"""The enlarged request for a next run: memory +20 %, time +50 %. Only ever proposed; nothing here sends anything."""

from __future__ import annotations

from slurm_agent_tools.diagnosis.facts import peak
from slurm_agent_tools.model import Job
from slurm_agent_tools.units import format_duration, format_memory

_MIB, _GIB = 2**20, 2**30
_WHOLE_GIB = 8 * _GIB  # from here on sizes are rounded up to whole G, below to whole M


def memory(part: Job) -> str | None:
    """The directive with 20 % more memory than asked for, or than used where that was more; None when not known."""
    has = part.resources
    if has.gpus and has.memory_per_gpu_bytes:
        return f"#SBATCH --mem-per-gpu={_more(has.memory_per_gpu_bytes)}"
    per_node = has.memory_per_node_bytes or (has.memory_bytes if has.nodes == 1 else None)
    if not per_node:
        return None
    return f"#SBATCH --mem={_more(max(per_node, peak([part]) or 0))}"


def _more(size: int) -> str:
    wanted = -(-size * 6 // 5)
    unit = _GIB if wanted >= _WHOLE_GIB else _MIB
    return format_memory(-(-wanted // unit) * unit)


def time(part: Job) -> str | None:
    """The directive with 50 % more time; None when the limit is not known or there is none."""
    limit = part.resources.time_limit_seconds
    if limit is None or limit <= 0:
        return None
    minutes = -(-limit * 3 // 120)
    return f"#SBATCH --time={format_duration(minutes * 60)}"
