"""Who asks for much more memory, time or GPUs than their jobs use, and what that kept from others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median

from slurm_agent_tools.insights import sizing
from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord
from slurm_agent_tools.models.job_sizing import SizingFigure
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.planning.findings.finding import (
    LEAST,
    PATIENCE,
    ClusterFinding,
    FindingCost,
    level_of,
    rounded,
    script_of,
    shown_name,
)
from slurm_agent_tools.planning.findings.occupancy import Room, for_resources, need_of, share_of, waited
from slurm_agent_tools.units import UNLIMITED, format_duration, format_memory, human_memory, whole_memory

MEMORY_TIMES = 2.0
"""Asked over needed, headroom included: less is caution, which costs less than a job that fails."""

TIME_TIMES = 3.0
"""The same of time limits: runs of one script differ more in time than in memory."""

CLAIMED_HIGH, CLAIMED_MEDIUM = 0.25, 0.10
"""Shares of all node hours that time limits claimed. Backfilling plans with these claims; a tenth that nobody needs is
noticed by those who would fit in front, a quarter makes its plan worthless."""

IDLE_GPU = 0.1
"""A GPU that was busy for less of its time counts as not used: reading data and loading a model take as much."""

_NO_LIMIT = 30 * 86400  # seconds, where neither a job nor its partition has one

Group = tuple[str, str, int]  # user, script, nodes


def _groups(jobs: Iterable[AccountedJob]) -> Mapping[Group, list[AccountedJob]]:
    found: defaultdict[Group, list[AccountedJob]] = defaultdict(list)
    for job in jobs:
        if job.run is not None:
            found[job.user, script_of(job.name), job.node_count].append(job)
    return {key: runs for key, runs in found.items() if _ended_well(runs) >= sizing.ENOUGH}


def _ended_well(runs: Sequence[AccountedJob]) -> int:
    return sum(job.state == "COMPLETED" for job in runs)


def _whose(group: Group) -> str:
    return f"{shown_name(group[0])}'s jobs {shown_name(group[1])!r}"


# --- Memory -----------------------------------------------------------------------------------------------------------


def memory_over_asked(record: ClusterRecord) -> Iterator[ClusterFinding]:
    """Memory that was asked for and not used; it costs the cores that nobody else could use beside it."""
    there = sum(node.cpus for node in record.nodes.values()) * record.hours
    for group, runs in _groups(record.jobs).items():
        measured = [job for job in runs if job.state == "COMPLETED" and job.memory_used and job.memory]
        if len(measured) < sizing.ENOUGH:
            continue
        needed = _needed(runs, measured)
        over = [job for job in runs if (job.memory or 0) > MEMORY_TIMES * needed]
        lost = sum(_cores_lost(job, needed, record) for job in over)
        if lost < LEAST * there:
            continue
        yield _memory_finding(group, over, needed, lost, lost / there)


def _needed(runs: Sequence[AccountedJob], measured: Sequence[AccountedJob]) -> int:
    """Bytes of the whole job: what the one sizer would ask for."""
    used = sizing.percentile([(float(job.memory_used or 0), 1) for job in measured])
    killed = max((job.memory or 0 for job in runs if job.state == "OUT_OF_MEMORY"), default=0)
    figure = sizing.size(sizing.MEMORY, SizingFigure(len(measured), used=used, failed=killed))
    least = sizing.LEAST_PER_GPU * max(job.gpus for job in measured)
    return max(figure.recommended or 0, least)


def _cores_lost(job: AccountedJob, needed: int, record: ClusterRecord) -> float:
    """Core hours: the share of its nodes that it held beyond the share that it had to hold."""
    node = next((record.nodes[name] for name in sorted(job.nodes) if name in record.nodes), None)
    if node is None:
        return 0.0
    need = need_of(job)
    enough = Room(need.cpus, min(need.memory, needed / max(1, len(job.nodes))), need.gpus)
    beyond = share_of(need, node) - share_of(enough, node)
    return beyond * node.cpus * len(job.nodes) * _hours_inside(job, record)


def _hours_inside(job: AccountedJob, record: ClusterRecord) -> float:
    if job.start is None:
        return 0.0
    end = record.end if job.end is None else min(job.end, record.end)
    return max(0.0, end - max(job.start, record.begin)) / 3600


def _memory_finding(
    group: Group, over: Sequence[AccountedJob], needed: int, lost: float, share: float
) -> ClusterFinding:
    asked = int(median(job.memory or 0 for job in over))
    used = sorted(job.memory_used for job in over if job.memory_used)
    gpus = Counter(job.gpus for job in over).most_common(1)[0][0]
    each = whole_memory(sizing.per_share(needed, gpus or group[2]))
    option = "--mem-per-gpu" if gpus else "--mem"
    most = human_memory(used[-1]) if used else "?"
    return ClusterFinding(
        id="memory-over-asked",
        level=level_of(share),
        title=f"{_whose(group)} ask for {human_memory(asked)} of memory and use at most {most}.",
        share=share,
        cost=FindingCost(core_hours=rounded(lost)),
        evidence={
            "jobs": len(over), "asked_bytes": asked, "used_bytes_most": used[-1] if used else "not measured",
            "enough_bytes": needed,
        },
        who=(group[0],),
        for_users=(f"#SBATCH {option}={format_memory(each)}",),
        for_administrators=("DefMemPerCPU and MaxMemPerCPU of the partition (slurm.conf): memory in step with cores",),
        risk="Jobs that ask for more than MaxMemPerCPU get more cores in place of a refusal, and cost more.",
    )  # fmt: skip


# --- Time limits ------------------------------------------------------------------------------------------------------


def time_over_asked(record: ClusterRecord) -> Iterator[ClusterFinding]:
    """Time limits far beyond what jobs take: every plan of the backfill scheduler rests on them."""
    claims = sum(_claimed(job, _limit(job, record), record) for job in record.jobs if job.start is not None)
    waits = [job for job in record.jobs if for_resources(job) and waited(job, record) > PATIENCE]
    for group, runs in _groups(record.jobs).items():
        done = [job.run for job in runs if job.state == "COMPLETED" and job.run is not None]
        used = sizing.percentile([(run, 1) for run in done])
        killed = max((job.limit or 0 for job in runs if job.state == "TIMEOUT"), default=0)
        needed = sizing.size(sizing.TIME, SizingFigure(len(done), used=used, failed=killed)).recommended or 60
        over = [job for job in runs if _limit(job, record) > TIME_TIMES * needed]
        too_much = sum(_claimed(job, _limit(job, record) - needed, record) for job in over)
        if len(over) < sizing.ENOUGH or not claims or too_much < LEAST * claims:
            continue
        crowd = _beside(waits, over)
        yield _time_finding(record, group, over, needed, too_much / claims, crowd)


def _beside(waits: Sequence[AccountedJob], over: Sequence[AccountedJob]) -> list[AccountedJob]:
    """Those who waited in the same partition while any of these jobs was there; their own are among them."""
    first = min(one.ready or one.start or 0.0 for one in over)
    last = max(one.end or 0.0 for one in over)
    there = set(over[0].partitions)
    return [
        job for job in waits
        if there.intersection(job.partitions) and (job.ready or 0.0) < last and (job.start or job.end or last) > first
    ]  # fmt: skip


def _limit(job: AccountedJob, record: ClusterRecord) -> int:
    if job.limit is not None and job.limit != UNLIMITED:
        return job.limit
    known = [record.partitions[name].max_time_seconds for name in job.partitions if name in record.partitions]
    return max((one for one in known if one is not None and one != UNLIMITED), default=_NO_LIMIT)


def _claimed(job: AccountedJob, seconds: float, record: ClusterRecord) -> float:
    """Node hours that so long a time claims."""
    shares = [share_of(need_of(job), record.nodes[name]) for name in job.nodes if name in record.nodes]
    return sum(shares) * max(0.0, seconds) / 3600


def _time_finding(
    record: ClusterRecord, group: Group, over: Sequence[AccountedJob], needed: int, share: float,
    crowd: Sequence[AccountedJob],
) -> ClusterFinding:  # fmt: skip
    limit = int(median(_limit(job, record) for job in over))
    ran = int(median(job.run or 0.0 for job in over))
    known = record.partitions.get(over[0].partitions[0] if over[0].partitions else "")
    change, risk = _shorter(known, limit, needed)
    return ClusterFinding(
        id="time-over-asked",
        level=level_of(share, CLAIMED_HIGH, CLAIMED_MEDIUM) if crowd else "low",
        title=(
            f"{_whose(group)} ask for {format_duration(limit)} and run {format_duration(ran)}: the backfill scheduler"
            " plans with what they ask for."
        ),
        share=share,
        cost=FindingCost(waiting_hours=rounded(sum(waited(job, record) for job in crowd) / 3600)),
        evidence={
            "jobs": len(over), "limit_seconds": limit, "run_seconds_median": ran, "enough_seconds": needed,
            "share_of_claimed_node_hours": round(share, 3), "jobs_that_waited_meanwhile": len(crowd),
        },
        who=(group[0],),
        for_users=(f"#SBATCH --time={format_duration(needed)}",),
        for_administrators=change,
        risk=risk,
    )  # fmt: skip


def _shorter(known: Partition | None, limit: int, needed: int) -> tuple[tuple[str, ...], str | None]:
    """What an administrator can change where jobs have all the time that a partition gives, and its risk."""
    if known is None or known.max_time_seconds != limit:
        return (), None
    name = shown_name(known.name)
    if known.default_time_seconds in {None, limit}:
        change = f"DefaultTime={format_duration(needed)} or more of partition {name} (slurm.conf): jobs"
        change += " without a limit get MaxTime now"
        return (change,), "A job that states no limit ends at DefaultTime: tell the users first."
    change = (
        f"a shorter MaxTime of partition {name} (slurm.conf), and a QOS with a longer MaxWall for jobs that need it"
    )
    return (change,), "Jobs that need the time are refused until their users name the QOS."


# --- GPUs that do nothing ---------------------------------------------------------------------------------------------


def gpus_unused(record: ClusterRecord) -> Iterator[ClusterFinding]:
    """GPUs that were given and stood still, where the accounting measures it."""
    there = sum(node.gpus for node in record.nodes.values()) * record.hours
    for group, runs in _groups(job for job in record.jobs if job.gpus).items():
        still = [job for job in runs if job.gpu_busy is not None and job.gpu_busy < IDLE_GPU]
        lost = sum(job.gpus * (1 - (job.gpu_busy or 0.0)) * _hours_inside(job, record) for job in still)
        if len(still) < sizing.ENOUGH or not there or lost < LEAST * there:
            continue
        busy = median(job.gpu_busy or 0.0 for job in still)
        yield ClusterFinding(
            id="gpus-unused",
            level=level_of(lost / there),
            title=f"{_whose(group)} held GPUs that were busy for {busy:.0%} of their time.",
            share=lost / there,
            cost=FindingCost(gpu_hours=rounded(lost)),
            evidence={"jobs": len(still), "gpu_busy_median": round(busy, 3)},
            who=(group[0],),
            for_users=("#SBATCH --gpus=0", "or, where the program should use them: see that it finds them"),
            for_administrators=("an epilog or a monitor that tells the user of idle GPUs; no parameter of slurm.conf",),
            risk="A job that prepares data first may use its GPUs late.",
        )


KINDS: tuple[Callable[[ClusterRecord], Iterator[ClusterFinding]], ...] = (
    memory_over_asked, time_over_asked, gpus_unused,
)  # fmt: skip
"""What can be said of one's own jobs alone."""
