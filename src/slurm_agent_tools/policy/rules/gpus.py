"""gpus: how many GPUs one job may take."""

from __future__ import annotations

import re
from functools import partial

from slurm_agent_tools.models.request import Directive, Resources
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules import remedies
from slurm_agent_tools.policy.rules.examples import asks
from slurm_agent_tools.policy.rules.memory_per_gpu import uses_gpus
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Measure,
    Rule,
    judge_measure,
    passed,
    proof,
    request_of,
    uncountable,
)

GPU_OPTIONS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres", "tres-per-task", "ntasks-per-gpu")

_WHY = "Every GPU that one job holds is one that nobody else can use."


# Parts of GPUs: how many of them are a whole one only the cluster's gres.conf tells.
_SHARES = re.compile(r"(?:^|[,:/])(?:shard|mps)(?=[:=,/]|$)", re.IGNORECASE)


def _judge(plan: PlannedRequest, policy: Policy) -> Judgement:
    request = request_of(plan)
    shares = tuple(d for d in request.find("gres", "tres-per-task") if _SHARES.search(d.value or ""))
    if shares:
        return _parts(shares)
    if not uses_gpus(request, plan.resources):
        return passed("The job uses no GPU.", 0, policy.limits.gpus.free)
    spread = (request.nodes or 1) > policy.limits.gpus.free  # no node without a GPU
    directives = request.find(*GPU_OPTIONS, *(["nodes"] if spread else []))
    if plan.resources.gpus is None:
        return uncountable("GPUs", str(policy.limits.gpus.free), directives, "#SBATCH --gpus=1")
    line = partial(_line, request.nodes or 1 if spread else 0)
    measure = Measure("GPUs", plan.resources.gpus, policy.limits.gpus, directives, line, str, _WHY)
    return judge_measure(measure, plan, policy)


def _parts(shares: tuple[Directive, ...]) -> Judgement:
    """`--gres=shard:4`: Slurm shows no GPU for it, so that no limit would count it."""
    what = ", ".join(f"--{one.option}={one.value}" for one in shares)
    message = f"GPUs: {what} takes parts of GPUs, which count as 0 GPUs in every limit, so a person decides. {_WHY}"
    return Judgement("approve", message, what, 0, remedies.replace(shares, "#SBATCH --gpus=1"), proof(shares))


def _line(nodes: int, count: int) -> str:
    fewer = f"#SBATCH --nodes={min(nodes, count)}\n" if nodes else ""
    return f"{fewer}#SBATCH --gpus={count}"


RULE = Rule(
    id="gpus",
    what="GPUs of one job are free up to a number, need a written reason above it, and a person beyond a second one.",
    why=_WHY,
    levels=("justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example("four GPUs", asks("#SBATCH --gpus=4", gpus=4, resources=Resources(gpus=4)), "pass"),
        Example(
            "six GPUs with a reason",
            asks(
                "#SBATCH --gpus=6  # JUSTIFIED: data parallel run of the 13B model",
                gpus=6,
                reason="data parallel run of the 13B model",
                resources=Resources(gpus=6),
            ),
            "pass",
        ),
    ),
    failing=(
        Example("six GPUs", asks("#SBATCH --gpus=6", gpus=6, resources=Resources(gpus=6)), "justify"),
        Example(
            "four GPUs on each of four nodes",
            asks(
                "#SBATCH --nodes=4",
                "#SBATCH --gres=gpu:4",
                nodes=4,
                gpus_per_node=4,
                resources=Resources(nodes=4, gpus=16),
            ),
            "approve",
        ),
        Example(
            "parts of GPUs", asks("#SBATCH --gres=shard:4", "python train.py", resources=Resources(gpus=0)), "approve"
        ),
        Example(
            "GPUs that were not counted",
            asks("#SBATCH --gpus-per-socket=1", gpus_per_socket=1, resources=Resources()),
            "deny",
            counted=False,
        ),
    ),
)
