"""What the published schema of Kubernetes does not find in a Job, and the API server or nobody would: our own check."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # RFC 1123
_QUANTITY = re.compile(r"[1-9]\d*(Ki|Mi|Gi|Ti)?")
_RESOURCES = {"cpu", "memory", "nvidia.com/gpu"}
_LABELS = {"app.kubernetes.io/name", "kueue.x-k8s.io/queue-name"}


def complaints(job: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a Job, a sentence each."""
    if (job.get("apiVersion"), job.get("kind")) != ("batch/v1", "Job"):
        yield "is no Job of batch/v1"
    name, labels = job["metadata"].get("name", ""), job["metadata"].get("labels", {})
    if _LABEL.fullmatch(name) is None:
        yield f"metadata.name {name!r} is no DNS label"
    yield from (f"label {key} is not known" for key in labels.keys() - _LABELS)
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    yield from _completions(spec, name)
    if pod.get("restartPolicy") != "Never":
        yield "restartPolicy is not Never"
    if not isinstance(pod.get("activeDeadlineSeconds"), int) or pod["activeDeadlineSeconds"] < 1:
        yield "no time limit"
    if len(pod.get("containers", [])) != 1:
        yield "there is not exactly one container"
    for container in pod.get("containers", []):
        yield from _container(container)


def _completions(spec: Mapping[str, Any], name: str) -> Iterator[str]:
    mode, count, at_once = spec.get("completionMode", "NonIndexed"), spec.get("completions"), spec.get("parallelism")
    if mode not in {"NonIndexed", "Indexed"}:
        yield f"completionMode {mode!r} is none"
    if not isinstance(count, int) or count < 1 or not isinstance(at_once, int) or not 1 <= at_once <= count:
        yield f"completions {count!r} or parallelism {at_once!r} is no number of pods"
    if mode == "Indexed":
        if spec.get("backoffLimitPerIndex") != 0 or "backoffLimit" in spec:
            yield "a task would be run again, or one that fails would stop the others"
        if len(f"{name}-{count}") > 63:
            yield "the host names of the pods would be too long"
    elif spec.get("backoffLimit") != 0:
        yield "the job would be run again"


def _container(container: Mapping[str, Any]) -> Iterator[str]:
    if not re.fullmatch(r"[a-z0-9][^\s]*", container.get("image", "")):
        yield "no image is stated"
    resources = container.get("resources", {})
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if not {"cpu", "memory"} <= limits.keys():
        yield "no limit of CPUs or memory"
    if requests != limits:
        yield "what is requested differs from the limit: GPUs may not, and nothing else is meant to"
    for key in limits.keys() - _RESOURCES:
        yield f"{key} is no resource that is known here"
    for key in ("cpu", "memory"):
        value = limits.get(key)
        if not isinstance(value, str) or _QUANTITY.fullmatch(value) is None:
            yield f"{key}: {value!r} is no quantity"
    if str(limits.get("memory", "")).isdecimal():
        yield "memory in bytes: a unit was forgotten"
    gpus = limits.get("nvidia.com/gpu", 1)
    if type(gpus) is not int or gpus < 1:
        yield f"nvidia.com/gpu: {gpus!r} is no whole number"


def expanded(text: str, known: Mapping[str, str]) -> str:
    """What a container is started with: $(NAME) is replaced where it is known, and $$ is one $."""

    def one(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return known.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)", one, text)


def memory(text: str) -> int:
    """Bytes of a quantity: 16Gi."""
    found = re.fullmatch(r"(\d+)([KMGT])i", text)
    assert found is not None, text
    return int(found[1]) * 2 ** (10 * ("KMGT".index(found[2]) + 1))
