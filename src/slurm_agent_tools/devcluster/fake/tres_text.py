"""Trackable resources of the fake Slurm's jobs as text."""

from __future__ import annotations

from slurm_agent_tools.devcluster.fake.answering import megabytes
from slurm_agent_tools.devcluster.fake.controller import Controller
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob
from slurm_agent_tools.devcluster.fake.placement import size_of


def requested(slurm: Controller, job: FakeJob) -> str:
    """What it asks for: cpu=1,mem=1000M,node=1,billing=1,gres/gpu=2."""
    part = slurm.partitions[job.partition.split(",")[0]]
    size = size_of(job.request, part, slurm.nodes, slurm.modern)
    return _text(size.cpus, size.memory, size.nodes, size.gpus, job.request.gpu_type)


def allocated(slurm: Controller, job: FakeJob) -> str:
    """What it holds or held."""
    if not job.shares:
        return ""
    cpus, memory = sum(share.cpus for share in job.shares), sum(share.memory for share in job.shares)
    gpus = sum(len(share.gpus) for share in job.shares)
    kind = next((share.gpu_type for share in job.shares if share.gpus), "")
    text = _text(cpus, memory, len(job.shares), gpus, kind)
    bare = job.het is not None and slurm.version >= (26, 5)
    return text.replace(f",billing={cpus}", "") if bare else text


def step_tres(slurm: Controller, job: FakeJob) -> str:
    """What a step of it holds."""
    cells = [cell for cell in allocated(slurm, job).split(",") if not cell.startswith("billing=")]
    return ",".join(sorted(cells))


def _text(cpus: int, memory: int, nodes: int, gpus: int, kind: str) -> str:
    found = f"cpu={cpus},mem={megabytes(memory)},node={nodes},billing={cpus}"
    if gpus:
        found += f",gres/gpu={gpus}" + (f",gres/gpu:{kind}={gpus}" if kind else "")
    return found
