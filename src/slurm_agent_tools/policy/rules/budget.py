"""budget: GPU hours and CPU hours of one job."""

from __future__ import annotations

from slurm_agent_tools.model import Plan, Resources
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.rules.base import SCRIPTS, Example, Rule, Verdict, passed, proof, request_of
from slurm_agent_tools.policy.rules.examples import HOUR, asks
from slurm_agent_tools.units import UNLIMITED

_WHY = "The group's share of the cluster is counted in hours."


def _judge(plan: Plan, policy: Policy) -> Verdict:
    limits = {"GPU": policy.limits.gpu_hours_per_job, "CPU": policy.limits.cpu_hours_per_job}
    if all(limit is None for limit in limits.values()):
        return passed("This policy sets no budget per job.")
    counts = {"GPU": plan.resources.gpus, "CPU": plan.resources.cpus}
    told = []
    for unit, limit in limits.items():
        if limit is None:
            continue
        hours = _hours(plan, counts[unit])
        if hours is None:
            message = f"The {unit} hours of this job cannot be told. What cannot be counted is not submitted."
            remedy = "State --time, --gpus, --ntasks and --cpus-per-task in the script."
            return Verdict("deny", message, "unknown", limit, remedy)
        if hours > limit:
            message = f"The job may use {hours:g} {unit} hours, beyond the {limit:g} that need a person. {_WHY}"
            evidence = proof(request_of(plan).find("time", "array", "gpus", "ntasks", "cpus-per-task"))
            remedy = f"Lower --time, --array or the number of {unit}s until their product is at most {limit:g} hours."
            return Verdict("approve", message, hours, limit, remedy, evidence)
        told.append(f"{hours:g} of {limit:g} {unit} hours")
    return passed(f"The job may use {' and '.join(told)}.")


def _hours(plan: Plan, count: int | None) -> float | None:
    limit = plan.resources.time_limit_seconds
    if count is None or limit is None or limit == UNLIMITED:
        return None
    array = request_of(plan).array
    return round(count * limit / 3600 * (array.count if array is not None else 1), 2)


RULE = Rule(
    id="budget",
    what="GPUs (or CPUs) x hours x array tasks of one job stay below an optional budget; beyond it a person decides.",
    why=_WHY,
    levels=("approve", "deny"),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example(
            "8 GPU hours, budget 100",
            asks("#SBATCH --gpus=4", gpus=4, resources=Resources(gpus=4, cpus=4, time_limit_seconds=2 * HOUR)),
            "pass",
            limits={"gpu_hours_per_job": 100.0},
        ),
    ),
    failing=(
        Example(
            "288 GPU hours, budget 100",
            asks(
                "#SBATCH --gpus=4",
                "#SBATCH --time=3-00:00:00",
                gpus=4,
                time_limit=72 * HOUR,
                resources=Resources(gpus=4, cpus=4, time_limit_seconds=72 * HOUR),
            ),
            "approve",
            limits={"gpu_hours_per_job": 100.0},
        ),
    ),
)
