"""srun --overlap: nvidia-smi as a short step inside of a running job of the caller. Slurm refuses it in jobs of others.

The step takes nothing from the job: it shares its CPUs and GPUs, and it is gone when nvidia-smi has answered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.transport.base import Completed

_PERCENT = re.compile(r"[0-9]{1,3}")

_AT_ONCE = 5
"""Seconds in which Slurm has to start the step; later it is given up."""


@dataclass(frozen=True, slots=True)
class GpuLook:
    """What nvidia-smi said of each GPU that it saw, by its UUID: a share 0..1, None where it cannot tell (MIG).

    `note`: why there is nothing.
    """

    shares: dict[str, float | None]
    note: str | None = None


def argv(number: int, nodes: int) -> list[str]:
    """One task on each node of a job, by Slurm's own number of it; an argument list, no shell."""
    return [
        "srun", "--overlap", f"--jobid={number}", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1",
        "--cpus-per-task=1", "--mem=0", f"--immediate={_AT_ONCE}", "--time=1", "--input=none", "--quiet",
        "--job-name=gpu-use",
        "nvidia-smi", "--query-gpu=uuid,utilization.gpu", "--format=csv,noheader,nounits",
    ]  # fmt: skip


def parse(done: Completed) -> GpuLook:
    """Never an error: what is not measured is said, with the reason."""
    if done.timed_out:
        return GpuLook({}, f"nvidia-smi did not answer within {done.seconds:.0f} s")
    if done.exit_code != 0:
        return GpuLook({}, f"nvidia-smi could not be run in the job: {columns.message(done)[:160] or 'no message'}")
    found: dict[str, float | None] = {}
    for line in columns.text(done.stdout).splitlines():
        uuid, comma, share = (part.strip() for part in line.partition(","))
        if comma and uuid.startswith(("GPU-", "MIG-")):
            found[uuid] = min(1.0, int(share) / 100) if _PERCENT.fullmatch(share) else None
    return GpuLook(found, None if found else "nvidia-smi named no GPU")
