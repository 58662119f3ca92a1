"""Every format besides Slurm's, by its name in generate_script, and what they are given to write. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from slurm_agent_tools.backends.export.exported_job import ExportFormat, JobToExport
from slurm_agent_tools.backends.export.kubernetes import KUBERNETES
from slurm_agent_tools.backends.export.pbs import PBS
from slurm_agent_tools.backends.export.plain_shell import SHELL
from slurm_agent_tools.backends.export.skypilot import SKYPILOT
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.models.script_arguments import GenerateScript
from slurm_agent_tools.units import parse_array

FORMATS: Mapping[str, ExportFormat] = {"pbs": PBS, "kubernetes": KUBERNETES, "skypilot": SKYPILOT, "shell": SHELL}

_OF_SLURM = frozenset({"gpu_type"})

_SOME_TAKE = ("image", "gpu_type", "max_hourly_cost")


def chosen(ask: GenerateScript) -> ExportFormat | None:
    """The format that is asked for, None for Slurm's. Raises InputError for an argument that it has no use for."""
    wanted = FORMATS.get(ask.format)
    takes = _OF_SLURM if wanted is None else wanted.takes
    for name in _SOME_TAKE:
        value = getattr(ask, name)
        if value is not None and name not in takes:
            known = [*(["slurm"] if name in _OF_SLURM else []), *(one for one in FORMATS if name in FORMATS[one].takes)]
            hint = f"Leave it out. Formats that know it: {', '.join(known)}."
            raise InputError(name, value, f"means nothing to format {ask.format}", hint=hint)
    return wanted


def job_to_export(
    ask: GenerateScript, request: JobRequest, body: str, file_name: str, mail_user: str | None
) -> JobToExport:
    """The record of what the formats write. `request` holds every number, `file_name` ends in -SUFFIX.sh."""
    nodes, tasks = request.nodes or 1, request.ntasks_per_node or 1
    gpus = request.gpus_per_node or -(-(request.gpus or 0) // nodes)
    memory = request.memory_per_node if not gpus else (request.memory_per_gpu or 0) * gpus
    return JobToExport(
        name=ask.name,
        suffix=file_name.removesuffix(".sh").rpartition("-")[2],
        body=body,
        nodes=nodes,
        tasks_per_node=tasks,
        cpus_per_node=(request.cpus_per_task or 1) * tasks,
        gpus_per_node=gpus,
        memory_per_node=memory or 0,
        time_limit=request.time_limit or 0,
        gpu_kind=ask.gpu_type,
        array=None if ask.array is None else parse_array(ask.array),
        queue=ask.partition,
        image=ask.image,
        max_hourly_cost=ask.max_hourly_cost,
        mail_user=mail_user,
    )
