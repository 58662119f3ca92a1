"""partition: the partition exists and is up."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import Resources
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.examples import CPU, HOUR, OLD, asks, live
from slurm_agent_tools.policy.rules.memory_per_gpu import uses_gpus
from slurm_agent_tools.policy.rules.remedies import note, replace
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Rule,
    not_evaluated,
    passed,
    proof,
    request_of,
)
from slurm_agent_tools.units import UNLIMITED, format_duration

_LONG = "Such a job waits for ever."

_PATIENCE = "Call get_status until a partition is up, then submit again."

_WHY = "Slurm refuses a job for a partition that is not there and lets one for a closed partition wait for ever."


def _judge(plan: PlannedRequest, _: Policy) -> Judgement:
    request, partitions = request_of(plan), plan.partitions if plan.live is None else plan.live.partitions
    if partitions is None:
        return not_evaluated("Needs the cluster's partitions, which were not asked for.")
    names = [name.strip() for name in (request.partition or "").split(",") if name.strip()]
    if not names:
        names = [name for name, partition in partitions.items() if partition.default]
    if not names:
        return _refused(plan, partitions, "No partition is named and the cluster has no default one", None)
    for name in names:
        if name not in partitions:
            return _refused(plan, partitions, f"There is no partition {name}", name)
        if partitions[name].state != "UP":
            return _refused(plan, partitions, f"Partition {name} is {partitions[name].state}", name)
    return _too_long(plan, [partitions[name] for name in names]) or passed(
        f"Partition {', '.join(names)} is up.", ",".join(names)
    )


def _refused(plan: PlannedRequest, partitions: Mapping[str, Partition], what: str, name: str | None) -> Judgement:
    stated = request_of(plan).find("partition")
    up = [partition for partition in partitions.values() if partition.state == "UP"]
    best = _meant(up, name) or _best(
        up, gpus=uses_gpus(request_of(plan), plan.resources), seconds=plan.resources.time_limit_seconds
    )
    remedy = _PATIENCE if best is None else replace(stated, f"#SBATCH --partition={best}")
    remedy += f"\n{note(f'partitions that are up: {_listed(partitions)}.')}"
    return Judgement("deny", f"{what}. {_WHY}", name, _listed(partitions), remedy, proof(stated))


def _meant(up: list[Partition], name: str | None) -> str | None:
    """The partition that a misspelt name is like; None where none is."""
    alike = get_close_matches((name or "").lower(), [partition.name for partition in up], n=1)
    return alike[0] if alike else None


def _best(up: list[Partition], *, gpus: bool, seconds: int | None) -> str | None:
    """The partition to propose: one that fits the job, the default one before others."""
    fit = [partition for partition in up if bool(partition.gpus_per_node) == gpus] or up
    ranked = sorted(fit, key=lambda p: (not _gives(p, seconds), not p.default, p.name))
    return ranked[0].name if ranked else None


def _gives(partition: Partition, seconds: int | None) -> bool:
    """Whether it gives this time."""
    most = partition.max_time_seconds
    return seconds is None or most is None or (seconds != UNLIMITED and seconds <= most)


def _listed(partitions: Mapping[str, Partition]) -> str:
    return ", ".join(sorted(name for name, partition in partitions.items() if partition.state == "UP")) or "none"


def _too_long(plan: PlannedRequest, chosen: list[Partition]) -> Judgement | None:
    """Slurm accepts a time beyond the partition's and never starts the job (unless its site enforces limits)."""
    wanted = plan.resources.time_limit_seconds
    limits = [p.max_time_seconds for p in chosen]
    if wanted is None or None in limits:
        return None
    most = max(limit for limit in limits if limit is not None)
    if wanted != UNLIMITED and wanted <= most:
        return None
    shown = format_duration(most)
    message = f"A time limit of {format_duration(wanted)} is more than the {shown} of this partition. {_LONG}"
    remedy = replace(request_of(plan).find("time"), f"#SBATCH --time={shown}")
    return Judgement("deny", message, format_duration(wanted), shown, remedy, proof(request_of(plan).find("time")))


RULE = Rule(
    id="partition",
    what="The partition that is named, or else the cluster's default one, exists, is up and allows the time limit.",
    why=_WHY,
    levels=("deny",),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example("a partition that is up", asks("#SBATCH --partition=cpu", partition="cpu", live=live()), "pass"),
        Example("the default partition", asks("python train.py", live=live()), "pass"),
    ),
    failing=(
        Example(
            "a partition that is not there", asks("#SBATCH --partition=gpuu", partition="gpuu", live=live()), "deny"
        ),
        Example("a partition that is down", asks("#SBATCH --partition=old", partition="old", live=live()), "deny"),
        Example(
            "a time that the partition does not give",
            asks(
                "#SBATCH --partition=cpu",
                "#SBATCH --time=2-00:00:00",
                partition="cpu",
                time_limit=48 * HOUR,
                resources=Resources(gpus=0, time_limit_seconds=48 * HOUR),
                live=live(),
            ),
            "deny",
        ),
        Example("no name and no default", asks("python train.py", live=live(partitions={"cpu": CPU})), "deny"),
        Example(
            "no limit in a partition that has one",
            asks(
                "#SBATCH --partition=cpu",
                "#SBATCH --time=UNLIMITED",
                partition="cpu",
                time_limit=UNLIMITED,
                resources=Resources(gpus=0, time_limit_seconds=UNLIMITED),
                live=live(),
            ),
            "deny",
        ),
        Example(
            "the only partition is down",
            asks("#SBATCH --partition=old", partition="old", live=live(partitions={"old": OLD})),
            "deny",
        ),
    ),
)
