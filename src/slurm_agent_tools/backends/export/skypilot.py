"""A task file for SkyPilot, which is never imported. Pure.

SkyPilot knows no time limit: `timeout` holds it, and a machine that is idle takes itself away.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from slurm_agent_tools.backends.export.exported_job import TASK_ID, ExportFormat, JobToExport, variables, within_limit
from slurm_agent_tools.backends.export.yaml_text import yaml_text
from slurm_agent_tools.errors import InputError

IDLE_MINUTES = 10

_KIND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NAME = 40


def _write(job: JobToExport) -> str:
    if job.array is not None and job.nodes > 1:
        hint = "Write one task for each, or ask for one node."
        raise InputError("array", job.array.text, "cannot be run on several machines by one SkyPilot task", hint=hint)
    own = {"SLURM_SUBMIT_DIR": '"$PWD"', "SLURM_NODEID": '"$SKYPILOT_NODE_RANK"', TASK_ID: f'"${TASK_ID}"'}
    lines = [line for line in variables(job, own, "SkyPilot") if not line.startswith(f"export {TASK_ID}=")]
    document = {
        "name": f"{cluster_name(job)}",
        "workdir": ".",
        "num_nodes": job.nodes,
        "resources": _resources(job),
        "run": "\n".join([*lines, within_limit(job, [])]) + "\n",
    }
    return yaml_text(document)


def _resources(job: JobToExport) -> dict[str, object]:
    if job.max_hourly_cost is None:
        hint = "Say what one machine may cost in an hour, in US dollars; SkyPilot takes none above it."
        raise InputError("max_hourly_cost", None, "is required for format skypilot", hint=hint)
    resources: dict[str, object] = {} if job.infra is None else {"infra": job.infra}
    if job.gpus_per_node:
        resources["accelerators"] = f"{_kind(job)}:{job.gpus_per_node}"
    resources |= {
        "cpus": f"{job.cpus_per_node}+",
        "memory": f"{-(-job.memory_per_node // 2**30)}+",
        "use_spot": False,
        "max_hourly_cost": job.max_hourly_cost,
    }
    resources |= {} if job.image is None else {"image_id": f"docker:{job.image}"}
    return resources | {"autostop": {"idle_minutes": IDLE_MINUTES, "down": True, "wait_for": "jobs"}}


def _kind(job: JobToExport) -> str:
    hint = "Name it as `sky show-gpus` does: A100, H100, L4. Clouds rent GPUs by their kind, not by their number alone."
    if job.gpu_kind is None:
        raise InputError("gpu_type", None, "is required for format skypilot with GPUs", hint=hint)
    if _KIND.fullmatch(job.gpu_kind) is None:
        raise InputError("gpu_type", job.gpu_kind, "is no name of a GPU", hint=hint)
    return job.gpu_kind


def cluster_name(job: JobToExport) -> str:
    """The name of the task and of its machine: small letters, digits and dashes, the first a letter."""
    name = re.sub(r"[^a-z0-9]+", "-", job.name.lower()).strip("-")[:_NAME].rstrip("-")
    return f"{name if name[:1].isalpha() else f'job-{name}'.rstrip('-')}-{job.suffix}"


def _command(job: JobToExport, path: str) -> Sequence[str]:
    guarded = shlex.join(["slurm-agent-tools", "launch", path])
    return [guarded, shlex.join(["sky", "launch", "-c", cluster_name(job), path])]


def _notes(job: JobToExport) -> list[str]:
    each = f"each of {job.nodes} machines" if job.nodes > 1 else "the machine"
    told = [
        f"Price: at most {job.max_hourly_cost:g} US dollars an hour for {each}.",
        f"A machine that was idle for {IDLE_MINUTES} minutes is taken away, with its disk: bring results back before.",
        "The project's folder goes along (workdir); name files that must not in .skyignore.",
    ]
    return told + (["Tasks: one after the other on one machine."] if job.array is not None else [])


SKYPILOT = ExportFormat(".skypilot.yaml", frozenset({"image", "gpu_type", "max_hourly_cost"}), _write, _command, _notes)
