"""What was checked is what runs: Slurm's own numbers of a job are compared with those that were allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.request import Resources
from slurm_agent_tools.policy.evaluate import evaluate
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.submission_request import SubmissionRequest, context_of
from slurm_agent_tools.store.submissions import DriftKind
from slurm_agent_tools.units import UNLIMITED, format_duration, human_memory

_NUMBERS = ("memory-per-gpu", "gpus", "time-limit")

_SEVERITY = ("pass", "warn", "not_evaluated", "justify", "approve", "deny")

_ROUNDING = 1.01
"""Slurm splits memory over CPUs in whole megabytes, so that 16G can become 16385M."""

_THREADS = 2
"""A started job holds whole cores: its CPUs are rounded up to the threads of a core."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One thing in which a job is more than, or other than, what was allowed."""

    kind: DriftKind
    what: str


@dataclass(frozen=True, slots=True)
class _Number:
    kind: DriftKind
    name: str
    value: Callable[[Resources], float | None]
    show: Callable[[int], str]
    slack: float = 1.0
    per_node: bool = False  # grows with the nodes that a started job was spread over


def _per_node(numbers: Resources) -> float | None:
    if numbers.gpus or numbers.memory_bytes is None or not numbers.nodes:
        return None  # with GPUs, memory counts by GPU
    return numbers.memory_bytes / numbers.nodes


def _time(seconds: float) -> str:
    return format_duration(UNLIMITED if seconds == float("inf") else int(seconds))


_MEMORY = (
    _Number("memory", "memory", lambda one: one.memory_bytes, human_memory, _ROUNDING, per_node=True),
    _Number("memory", "memory per GPU", lambda one: one.memory_per_gpu_bytes, human_memory, _ROUNDING),
)

_ALWAYS = (
    *_MEMORY,
    _Number("gpus", "number of GPUs", lambda one: one.gpus, str),
    _Number(
        "time",
        "time limit",
        lambda one: float("inf") if one.time_limit_seconds == UNLIMITED else one.time_limit_seconds,
        _time,
    ),
)

# Over how many nodes a started job is spread can be Slurm's choice (--nodes=1-2): there is no limit to compare with.
_STARTED = (*_ALWAYS, _Number("cpus", "number of CPUs", lambda one: one.cpus, str, _THREADS, per_node=True))

_PENDING = (
    *_ALWAYS,
    _Number("memory", "memory per node", _per_node, human_memory, _ROUNDING),
    _Number("cpus", "number of CPUs", lambda one: one.cpus, str),
    _Number("nodes", "number of nodes", lambda one: one.nodes, str),
    _Number("array", "number of array tasks at once", lambda one: one.array_concurrency, str),
)


def grown_since(allowed: Sequence[Resources], now: Resources, *, started: bool) -> list[Growth]:
    """Every number that is now larger than in all of `allowed`, and a partition that is none of theirs."""
    growths = []
    for number in _STARTED if started else _PENDING:
        value, known = number.value(now), [limit for one in allowed if (limit := number.value(one)) is not None]
        spread = _spread(allowed, now) if started and number.per_node else 1.0
        if value is not None and known and value > max(known) * number.slack * spread:
            what = f"the {number.name} is {number.show(value)}, allowed was {number.show(max(known))}"  # type: ignore[arg-type]
            growths.append(Growth(number.kind, what))
    named = {name for one in allowed for name in (one.partition or "").split(",") if name}
    others = set((now.partition or "").split(",")) - named - {""}
    if named and others:
        what = f"the partition is {now.partition}, allowed was {','.join(sorted(named))}"
        growths.append(Growth("partition", what))
    return growths


def _spread(allowed: Sequence[Resources], now: Resources) -> float:
    """How many times as many nodes as were counted."""
    counted = max((one.nodes or 0 for one in allowed), default=0)
    return max(1.0, (now.nodes or 0) / counted) if counted else 1.0


def differences(context: ClusterContext, request: SubmissionRequest, granted: Job, script: bytes) -> list[str]:
    """Everything in which Slurm's resolved request is not what the policy allowed; empty when all is well."""
    differing = []
    if request.effective.find("exclusive"):
        granted = _with_all_gpus(request, granted)
    if script != request.data:
        differing.append("the script that Slurm holds is not the script that was checked")
    if granted.name != request.name:
        differing.append(f"the name is {granted.name!r}, asked was {request.name!r}")
    if granted.requeue:
        differing.append("Slurm would requeue the job by itself")
    if request.arguments.priority is not None:
        differing += priority(request, granted)
    differing += [change.what for change in grown_since([request.resources], granted.resources, started=False)]
    return differing + _harsher(context, request, granted)


def _with_all_gpus(request: SubmissionRequest, granted: Job) -> Job:
    """Until a job has started, Slurm shows of the GPUs of whole nodes only those that were named: count them all."""
    counted, shown = request.resources, granted.resources
    if (shown.gpus or 0) >= (counted.gpus or 0):
        return granted
    share = None if shown.memory_bytes is None or not counted.gpus else -(-shown.memory_bytes // counted.gpus)
    return replace(granted, resources=replace(shown, gpus=counted.gpus, memory_per_gpu_bytes=share))


def priority(request: SubmissionRequest, granted: Job) -> list[str]:
    """A priority that was asked for and did not come. What the script alone asks for is its site's business."""
    if request.arguments.priority == "low":
        asked = int(request.effective.find("nice")[-1].value or 0)
        if granted.nice is not None and granted.nice < asked:
            return [f"the nice value is {granted.nice}, asked was {asked}"]
    if request.arguments.priority == "high" and granted.qos != request.effective.qos:
        return [f"the QOS is {granted.qos}, asked was {request.effective.qos}"]
    return []


def _harsher(context: ClusterContext, request: SubmissionRequest, granted: Job) -> list[str]:
    """Rules about numbers that judge what Slurm resolved more severely than what was asked."""
    evaluation = context_of(
        context, request, numbers=granted.resources, pinned=request.pinned, grant=request.verdict.approval,
        decision_id=request.verdict.id,
    )  # fmt: skip
    before = {rule.id: rule.outcome for rule in request.verdict.rules}
    after = evaluate(request.reading, evaluation).rules
    return [
        rule.message
        for rule in after
        if rule.id in _NUMBERS and _SEVERITY.index(rule.outcome) > max(2, _SEVERITY.index(before[rule.id]))
    ]
