"""A Job for Kubernetes (batch/v1), Indexed for an array. Pure.

No pod is started again: none after a failure of its own, of its node, or when it is moved.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from slurm_agent_tools.backends.export.exported_job import TASK_ID, ExportFormat, JobToExport, task_lines, variables
from slurm_agent_tools.backends.export.yaml_text import yaml_text
from slurm_agent_tools.errors import InputError

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

GPU_RESOURCE, GPU_PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"

_NAME = 40
"""With the suffix, and behind it the number of a task, a pod's host name stays below 63 characters."""

_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]*")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_DNS = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_MOST_TASKS = 100_000
"""More completions than these the API takes of no Indexed Job."""


def _write(job: JobToExport) -> str:
    spec: dict[str, object] = {}
    if job.array is None:
        spec |= {"completions": 1, "parallelism": 1, "backoffLimit": 0}
    else:
        spec |= _indexed(job)
    labels = {"app.kubernetes.io/name": _name(job)} | _queue(job)
    document = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{_name(job)}-{job.suffix}", "labels": labels},
        "spec": spec | {"template": {"metadata": {"labels": labels}, "spec": _pod(job)}},
    }
    return yaml_text(document)


def _indexed(job: JobToExport) -> dict[str, object]:
    """As tasks of Slurm: one that fails is not run again, and stops no other."""
    count, limit = len(job.tasks), None if job.array is None else job.array.limit
    if count > _MOST_TASKS:
        raise InputError("array", count, f"has more than {_MOST_TASKS} tasks", hint="Write several Jobs.")
    return {
        "completionMode": "Indexed",
        "completions": count,
        "parallelism": min(count, limit or count),
        "backoffLimitPerIndex": 0,
    }


def _pod(job: JobToExport) -> dict[str, object]:
    asked: dict[str, object] = {"cpu": str(job.cpus_per_node), "memory": f"{job.memory_per_node // 2**20}Mi"}
    if job.memory_per_node % 2**30 == 0:
        asked["memory"] = f"{job.memory_per_node // 2**30}Gi"
    limits = asked | ({GPU_RESOURCE: job.gpus_per_node} if job.gpus_per_node else {})
    container = {
        "name": "job",
        "image": _image(job),
        "command": ["bash", "-euo", "pipefail", "-c"],
        "args": [_not_expanded("\n\n".join(["\n".join(_start(job)), job.body]).lstrip("\n") + "\n")],
        "resources": {"requests": dict(limits), "limits": dict(limits)},
    }
    pod: dict[str, object] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": job.time_limit,
        "automountServiceAccountToken": False,
    }
    return pod | _selected(job) | {"containers": [container]}


def _start(job: JobToExport) -> list[str]:
    own = {"SLURM_SUBMIT_DIR": '"$PWD"'}
    before: list[str] = []
    if job.array is not None:
        before, own[TASK_ID] = task_lines(job, "JOB_COMPLETION_INDEX")
    return [*before, *variables(job, own, "Kubernetes")]


def _not_expanded(text: str) -> str:
    """Bash is to see what was written: Kubernetes replaces $(NAME) in a container's arguments and makes one $ of $$."""
    return re.sub(r"\$(?=[$(])", "$$", text)


def _selected(job: JobToExport) -> dict[str, object]:
    """The label that NVIDIA's device plugin puts on nodes."""
    if job.gpu_kind is None:
        return {}
    if _LABEL.fullmatch(job.gpu_kind) is None:
        hint = f"Write the value of the nodes' label {GPU_PRODUCT}."
        raise InputError("gpu_type", job.gpu_kind, "cannot be the value of a label", hint=hint)
    return {"nodeSelector": {GPU_PRODUCT: job.gpu_kind}}


def _queue(job: JobToExport) -> dict[str, str]:
    if job.queue is None:
        return {}
    if _DNS.fullmatch(job.queue) is None:
        hint = "Small letters, digits and dashes; it is the name of Kueue's LocalQueue."
        raise InputError("partition", job.queue, "cannot be the name of a queue of Kueue", hint=hint)
    return {QUEUE_LABEL: job.queue}


def _image(job: JobToExport) -> str:
    """Raises InputError: which image holds the program is known to people alone."""
    hint = "Name it with its tag: registry/folder/name:tag. It must hold bash, the program and its files."
    if job.image is None:
        raise InputError("image", None, "is required for format kubernetes", hint=hint)
    if _IMAGE.fullmatch(job.image) is None:
        raise InputError("image", job.image, "is no name of an image", hint=hint)
    return job.image


def _name(job: JobToExport) -> str:
    """A DNS label: RFC 1123 allows small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", job.name.lower()).strip("-")[:_NAME].rstrip("-") or "job"


def _command(_: JobToExport, path: str) -> Sequence[str]:
    return [shlex.join(["kubectl", "apply", "-f", path])]


def _notes(job: JobToExport) -> list[str]:
    name = f"{_name(job)}-{job.suffix}"
    told = [f"Name: {name}, new in each file, so applying a file twice makes no second job."]
    told.append(
        "Nothing is copied into the pod: the image holds the program and its files. It may not speak to the API."
    )
    told.append("The time limit counts for each pod from its start; waiting does not count. No pod is started again.")
    return told


KUBERNETES = ExportFormat(".kubernetes.yaml", frozenset({"image", "gpu_type"}), _write, _command, _notes)
