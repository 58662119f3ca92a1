"""memory-per-gpu: memory in the worst placement that Slurm may choose."""

from __future__ import annotations

from slurm_agent_tools.models.request import JobRequest, Resources
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.examples import GIB, asks
from slurm_agent_tools.policy.rules.remedies import replace, ways, with_reason
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Measure,
    Rule,
    judge_measure,
    proof,
    request_of,
    uncountable,
)
from slurm_agent_tools.units import format_memory, human_memory

MEMORY_OPTIONS = ("mem", "mem-per-cpu", "mem-per-gpu")

_WHY = "Memory that one GPU's job holds is memory that the node's other GPUs cannot use."


def uses_gpus(request: JobRequest, resources: Resources) -> bool:
    """True where the request asks for GPUs in any of its ways."""
    stated = (request.gpus, request.gpus_per_node, request.gpus_per_task, request.gpus_per_socket)
    return bool(resources.gpus) or (resources.gpus is None and any(stated))


def _judge(plan: PlannedRequest, policy: Policy) -> Judgement:
    request = request_of(plan)
    gpus = uses_gpus(request, plan.resources)
    option = "mem-per-gpu" if gpus else "mem"
    limits = policy.limits.memory_per_gpu if gpus else policy.limits.memory_without_gpus
    directives = request.find(*MEMORY_OPTIONS)
    thing = "Memory per GPU" if gpus else "Memory per node"
    value = plan.resources.memory_per_gpu_bytes if gpus else plan.resources.memory_per_node_bytes
    if 0 in (request.memory_per_node, request.memory_per_cpu, request.memory_per_gpu):
        return _whole_node(plan, policy, option, value)
    if value is None:
        return uncountable(thing, human_memory(limits.free), directives, _line(option, limits.free))
    measure = Measure(
        thing, value, limits, directives, lambda size: _line(option, size), human_memory, _WHY
    )  # fmt: skip
    return judge_measure(measure, plan, policy)


def _line(option: str, size: int) -> str:
    return f"#SBATCH --{option}={format_memory(size)}"


def _whole_node(plan: PlannedRequest, policy: Policy, option: str, value: int | None) -> Judgement:
    limits = policy.limits.memory_without_gpus if option == "mem" else policy.limits.memory_per_gpu
    directives = request_of(plan).find(*MEMORY_OPTIONS)
    most = human_memory(limits.justify)
    reason = with_reason(directives, _line(option, limits.justify))
    return Judgement(
        "approve",
        f"A memory size of 0 takes the whole node's memory, and beyond {most} a person decides. {_WHY}",
        "whole node" if value is None else f"whole node, {human_memory(value)}",
        most,
        ways(replace(directives, _line(option, limits.free)), ("give your reason on the line", reason)),
        proof(directives),
    )


def _gpu_job(memory: int, gpus: int = 1) -> Resources:
    return Resources(gpus=gpus, nodes=1, memory_per_gpu_bytes=memory * GIB, time_limit_seconds=7200)


RULE = Rule(
    id="memory-per-gpu",
    what=(
        "Memory per GPU (per node for a job without GPUs) is free up to a size, needs a written reason above it, "
        "and a person beyond a second one. The worst placement that Slurm may choose counts."
    ),
    why=_WHY,
    levels=("justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example(
            "16G for one GPU",
            asks("#SBATCH --gpus=1", "#SBATCH --mem=16G", gpus=1, memory_per_node=16 * GIB, resources=_gpu_job(16)),
            "pass",
        ),
        Example(
            "24G with a reason on the line",
            asks(
                "#SBATCH --gpus=1",
                "#SBATCH --mem=24G  # JUSTIFIED: 7B model",
                gpus=1,
                memory_per_node=24 * GIB,
                resources=_gpu_job(24),
                reason="7B model",
            ),
            "pass",
        ),
        Example(
            "16G on one node without GPUs",
            asks(
                "#SBATCH --gpus=0",
                "#SBATCH --mem=16G",
                gpus=0,
                memory_per_node=16 * GIB,
                resources=Resources(gpus=0, memory_per_node_bytes=16 * GIB),
            ),
            "pass",
        ),
    ),
    failing=(
        Example(
            "24G for one GPU without a reason",
            asks("#SBATCH --gpus=1", "#SBATCH --mem=24G", gpus=1, memory_per_node=24 * GIB, resources=_gpu_job(24)),
            "justify",
        ),
        Example(
            "a reason that says nothing",
            asks(
                "#SBATCH --gpus=1",
                "#SBATCH --mem=20G  # JUSTIFIED: needed",
                gpus=1,
                memory_per_node=20 * GIB,
                resources=_gpu_job(20),
                reason="needed",
            ),
            "justify",
        ),
        Example(
            "64G for one GPU, reason or not",
            asks(
                "#SBATCH --gpus=1",
                "#SBATCH --mem=64G  # JUSTIFIED: 30B model in one piece",
                gpus=1,
                memory_per_node=64 * GIB,
                resources=_gpu_job(64),
                reason="30B model in one piece",
            ),
            "approve",
        ),
        Example(
            "four GPUs over two nodes with 64G on each: one node may get a single GPU",
            asks(
                "#SBATCH --nodes=2",
                "#SBATCH --gpus=4",
                "#SBATCH --mem=64G",
                nodes=2,
                gpus=4,
                memory_per_node=64 * GIB,
                resources=_gpu_job(64, 4),
            ),
            "approve",
        ),
        Example(
            "all memory of the node",
            asks("#SBATCH --gpus=1", "#SBATCH --mem=0", gpus=1, memory_per_node=0, resources=Resources(gpus=1)),
            "approve",
        ),
        Example(
            "memory that was not counted",
            asks("#SBATCH --gpus=1", "#SBATCH --mem-per-cpu=4G", gpus=1, memory_per_cpu=4 * GIB),
            "deny",
            counted=False,
        ),
    ),
)
