"""GPUs that nobody could take though jobs waited for them, since cores or memory beside them were gone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.planning.findings.finding import LEAST, ClusterFinding, FindingCost, level_of, listed, rounded
from slurm_agent_tools.planning.findings.occupancy import Moment, Room, moments, need_of

CPU_JOBS, TOO_WIDE = "cpu-jobs-on-gpu-nodes", "cpus-per-gpu"

_LEFT_PER_GPU = 2  # cores: what feeds a GPU at the least


@dataclass(slots=True)
class _Stranded:
    """What one cause cost: GPU hours, whose jobs they were, the partitions, and hours of those who waited."""

    gpu_hours: float = 0.0
    users: Counter[str] = field(default_factory=Counter)
    partitions: Counter[str] = field(default_factory=Counter)
    waiting_hours: float = 0.0
    per_gpu: Counter[float] = field(default_factory=Counter)


def stranded_gpus(record: ClusterRecord) -> Iterator[ClusterFinding]:
    """Free GPUs beside jobs that wait for GPUs, by why these did not fit."""
    there = sum(node.gpus for node in record.nodes.values()) * record.hours
    if not there:
        return
    found: defaultdict[str, _Stranded] = defaultdict(_Stranded)
    for moment in moments(record):
        _look(moment, found)
    for cause, cost in found.items():
        if cost.gpu_hours >= LEAST * there:
            yield _told(record, cause, cost, cost.gpu_hours / there)


def _look(moment: Moment, found: defaultdict[str, _Stranded]) -> None:
    taken: set[str] = set()
    for job, count in moment.shapes():
        if not job.gpus or moment.starts_now(job):
            continue
        need, left = need_of(job), float(job.gpus * count)
        seen: set[str] = set()
        for node in moment.nodes(job.partitions):
            free = moment.free(node)
            if node.name in taken or left <= 0 or not 0 < need.gpus <= free.gpus or not _right_type(job, node):
                continue
            cause, whose = _cause(moment, node, job, free)
            if cause is None:
                continue
            gpus = min(free.gpus, left)
            taken.add(node.name)
            left -= gpus
            cost = found[cause]
            cost.gpu_hours += gpus * moment.hours
            for one in whose:
                cost.users[one.user] += 1
                cost.per_gpu[need_of(one).cpus / max(1, need_of(one).gpus)] += 1
            cost.partitions.update(job.partitions)
            seen.add(cause)
        for cause in seen:
            found[cause].waiting_hours += count * moment.hours


def _right_type(job: AccountedJob, node: Node) -> bool:
    return not job.gpu_types or bool(job.gpu_types.intersection(node.gpu_types))


def _cause(moment: Moment, node: Node, job: AccountedJob, free: Room) -> tuple[str | None, list[AccountedJob]]:
    """Why a job does not fit beside GPUs that are free, and whose jobs have to change."""
    need, held = need_of(job), moment.held(node.name)
    if free.holds(_at_most(need, node)):
        return TOO_WIDE, [job]
    plain = [one for one in held if not one.gpus]
    wide = [one for one in held if one.gpus and _at_most(need_of(one), node) != need_of(one)]
    given_back = free
    for one in plain:
        given_back = given_back.plus(need_of(one))
    if plain and given_back.holds(_at_most(need, node)):
        return CPU_JOBS, plain
    for one in wide:
        had, fair = need_of(one), _at_most(need_of(one), node)
        given_back = given_back.plus(Room(had.cpus - fair.cpus, had.memory - fair.memory, 0))
    return (TOO_WIDE, wide) if wide and given_back.holds(_at_most(need, node)) else (None, [])


def _at_most(need: Room, node: Node) -> Room:
    """A need with no more cores and memory than go with its GPUs."""
    part = need.gpus / node.gpus
    return Room(min(need.cpus, node.cpus * part), min(need.memory, node.memory_bytes * part), need.gpus)


def _told(record: ClusterRecord, cause: str, cost: _Stranded, share: float) -> ClusterFinding:
    users = [user for user, _ in cost.users.most_common()]
    partitions = [name for name, _ in cost.partitions.most_common()]
    nodes = [node for node in record.nodes.values() if node.gpus and set(partitions) & set(node.partitions)]
    fair = min((node.cpus // node.gpus for node in nodes), default=1)
    plain = cause == CPU_JOBS
    asked = max(cost.per_gpu, default=0.0)
    title = (
        f"Jobs without a GPU, by {listed(users)}, sit on GPU nodes: GPUs beside them stayed free while jobs waited for"
        f" GPUs in {listed(partitions)}."
        if plain
        else f"GPU jobs by {listed(users)} ask for up to {asked:.0f} cores a GPU where a node has {fair}: GPUs"
        " stay free without cores or memory beside them."
    )
    evidence: dict[str, float | int | str] = {
        "gpu_hours_free": rounded(cost.gpu_hours),
        "partitions": listed(partitions),
        "cores_a_gpu_there": fair,
    }
    return ClusterFinding(
        id=cause,
        level=level_of(share),
        title=title,
        share=share,
        cost=FindingCost(gpu_hours=rounded(cost.gpu_hours), waiting_hours=rounded(cost.waiting_hours)),
        evidence=evidence if plain else evidence | {"cores_a_gpu_asked": asked},
        who=tuple(users),
        for_users=(_OTHER_PARTITION if plain else f"#SBATCH --cpus-per-gpu={fair}",),
        for_administrators=_for_cpu_jobs(nodes) if plain else _for_wide_jobs(nodes, fair),
        risk=_CPU_RISK if plain else _WIDE_RISK,
    )


_OTHER_PARTITION = "#SBATCH --partition=NAME, one whose nodes have no GPUs"

_CPU_RISK = "Cores of GPU nodes stay idle where there are too few GPU jobs to use them."

_WIDE_RISK = "Jobs whose data loading needs more cores get slower; DefCpuPerGPU changes what silent jobs get."


def _for_cpu_jobs(nodes: Sequence[Node]) -> tuple[str, ...]:
    spare = min((max(0, node.cpus - _LEFT_PER_GPU * node.gpus) for node in nodes), default=0)
    return (
        f"MaxCPUsPerNode={spare} on a partition of these nodes for jobs without GPUs (slurm.conf)",
        "or a job_submit plugin that refuses jobs without GPUs in these partitions",
    )


def _for_wide_jobs(nodes: Sequence[Node], fair: int) -> tuple[str, ...]:
    most = fair * max((node.gpus for node in nodes), default=1)
    return (
        f"DefCpuPerGPU={fair} in the partition's line of slurm.conf",
        f"sacctmgr modify qos NAME set MaxTRESPerJob=cpu={most}",
    )
