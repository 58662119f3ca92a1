"""What the cluster offers now: GPUs, nodes, partitions, and whether to submit. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.models.shapes import QueueWaits, WaitMeasured
from slurm_agent_tools.models.status_answer import GpuSection, NodeShown, PartitionShown, QueueSection, SlurmSection
from slurm_agent_tools.units import UNLIMITED, format_duration, how_many, human_memory

_USABLE = ("idle", "mix", "alloc", "comp", "plnd", "planned")  # planned for a job that goes before others, not taken

_DEEP = 20

_SHORT = 300
"""Seconds: who waits less in the median has no need of a smaller request."""

_SOON = timedelta(hours=2)


def usable(node: Node) -> bool:
    """True for a node that runs jobs or could; one that is powered off (`~`) is started for them.

    One that is being powered off (`%`), or will be as soon as its jobs have ended (`!`), takes none until it is off.
    One in no partition takes none at all.
    """
    state = node.state.lower()
    good = state.startswith(_USABLE) and not state.endswith(("*", "%", "!")) and "drain" not in state
    return good and bool(node.partitions)


def gpus(nodes: Sequence[Node]) -> GpuSection:
    """GPUs over the usable nodes; used and free are None where Slurm does not tell."""
    good = [node for node in nodes if usable(node) and node.gpus]
    total = sum(node.gpus for node in good)
    used = sum(node.gpus_used or 0 for node in good) if all(node.gpus_used is not None for node in good) else None
    by_type: Counter[str] = Counter()
    for node in good:
        by_type[",".join(node.gpu_types) or "gpu"] += node.gpus
    return GpuSection(
        total=total,
        used=used,
        free=None if used is None else total - used,
        by_type=dict(by_type),
        note="No usable node has GPUs." if total == 0 else None,
    )


def node(record: Node) -> NodeShown:
    """One node."""
    return NodeShown(
        name=record.name,
        state=record.state,
        partitions=list(record.partitions),
        cpus=record.cpus,
        cpus_used=record.cpus_used,
        memory=human_memory(record.memory_bytes),
        gpus=record.gpus,
        gpus_used=record.gpus_used,
        reason=record.reason,
    )


def partitions(found: Mapping[str, Partition], nodes: Sequence[Node]) -> list[PartitionShown]:
    """Each partition with what its nodes offer now."""
    return [_partition(item, [node for node in nodes if item.name in node.partitions]) for item in found.values()]


def _partition(item: Partition, nodes: Sequence[Node]) -> PartitionShown:
    free = [node.gpus - node.gpus_used for node in nodes if usable(node) and node.gpus_used is not None]
    return PartitionShown(
        name=item.name,
        state=item.state,
        default=item.default,
        nodes=item.nodes,
        max_time=_time(item.max_time_seconds) or "UNLIMITED",
        default_time=_time(item.default_time_seconds),
        cpus_per_node=item.cpus_per_node,
        memory_per_node=human_memory(item.memory_per_node),
        gpus_per_node=item.gpus_per_node,
        nodes_idle=sum(node.state.lower() == "idle" for node in nodes),
        gpus_free=sum(free) if item.total_gpus else None,
    )


def _time(seconds: int | None) -> str | None:
    return None if seconds is None or seconds == UNLIMITED else format_duration(seconds)


@dataclass(frozen=True, slots=True)
class RecentWaits:
    """What is known beside the moment: measured waits, when a maintenance begins, whether all is switched off.

    `refused`: what to do instead, where the cluster refuses all jobs of this user; else empty.
    """

    waits: QueueWaits | None = None
    maintenance: datetime | None = None
    now: datetime | None = None
    closed: bool = False
    refused: str = ""


def queue(
    states: Mapping[str, int],
    nodes: Sequence[Node],
    mine: SlurmSection,
    lately: RecentWaits | None = None,
    partitions: Mapping[str, Partition] | None = None,
) -> QueueSection:
    """How busy it is, by the number of jobs in each state, and what that and the waits measured lately advise.

    A wait is told where it is none, and where it was measured; it is never guessed. `partitions` None: not known, so
    that only the cluster as a whole is judged.
    """
    depth = states.get("PENDING", 0)
    lately = lately or RecentWaits()
    good = [node for node in nodes if usable(node)]
    share = {
        "cpu": _share([(node.cpus_used, node.cpus) for node in good]),
        "gpu": _share([(node.gpus_used, node.gpus) for node in good if node.gpus]),
    }
    full = full_partitions(partitions or {}, nodes)
    crowd = _crowd(share) if partitions is None else _crowd_of(partitions, full, lately.waits)
    recommendation, why = _barred(mine, lately, has_nodes=bool(good)) or _advice(depth, crowd, lately)
    idle = depth == 0 and any((value or 0) < 1 for value in share.values() if value is not None)
    return QueueSection(
        depth=depth,
        running=states.get("RUNNING", 0),
        utilization=share,
        estimated_wait="none: nobody is waiting" if idle else _estimated(lately.waits),
        recommendation=recommendation,
        why=why,
        grounds=_grounds(depth, mine, share, len(good), lately),
        waits=lately.waits,
        full_partitions=full,
    )


def full_partitions(partitions: Mapping[str, Partition], nodes: Sequence[Node]) -> dict[str, str]:
    """The partitions where no job starts now, each with the reason in a few words."""
    found = {name: _full(one, [node for node in nodes if name in node.partitions]) for name, one in partitions.items()}
    return {name: why for name, why in found.items() if why is not None}


def _full(partition: Partition, nodes: Sequence[Node]) -> str | None:
    good = [node for node in nodes if usable(node)]
    if partition.state != "UP":
        return f"it is {partition.state}"
    if not good:
        return "none of its nodes is usable"
    share = {
        "CPU": _share([(node.cpus_used, node.cpus) for node in good]),
        "GPU": _share([(node.gpus_used, node.gpus) for node in good if node.gpus]),
    }
    taken = [what for what, value in share.items() if value is not None and value >= 1]
    return f"every {' and '.join(taken)} is in use" if taken else None


def busy(nodes: Sequence[Node]) -> float | None:
    """Share of the CPUs of usable nodes that are in use, 0..1."""
    return _share([(node.cpus_used, node.cpus) for node in nodes if usable(node)])


def _share(pairs: Sequence[tuple[int | None, int]]) -> float | None:
    total = sum(all_of for _, all_of in pairs)
    if total == 0 or any(used is None for used, _ in pairs):
        return None
    return round(sum(used or 0 for used, _ in pairs) / total, 3)


@dataclass(frozen=True, slots=True)
class _Crowd:
    """Whether a job that is submitted now has to wait: where all is taken, where not, and what was measured there."""

    full: str | None = None
    except_for: str = ""
    instead: str = "a smaller or shorter request starts sooner"
    measured: WaitMeasured | None = None


def _advice(depth: int, crowd: _Crowd, lately: RecentWaits) -> tuple[str, str]:
    """What to do, and the one ground that decided it."""
    if lately.maintenance is not None and lately.now is not None and lately.maintenance - lately.now < _SOON:
        return "ADJUST", f"{_maintenance(lately.maintenance)}: only a shorter time limit starts before it"
    waiting = f"{how_many(depth, 'job')} {'is' if depth == 1 else 'are'} waiting"
    crowded = waiting if depth > _DEEP else crowd.full
    measured = crowd.measured or (lately.waits.measured if lately.waits is not None else None)
    if crowded is None:
        return "SUBMIT_NOW", f"{waiting} and resources are free{crowd.except_for}"
    if measured is not None and measured.median <= _SHORT:
        return "SUBMIT_NOW", f"{crowded}, but {_waited(measured)}"
    return "ADJUST", f"{crowded}: {crowd.instead}"


def _barred(mine: SlurmSection, lately: RecentWaits, *, has_nodes: bool) -> tuple[str, str] | None:
    """What to do, and why, where a job that is submitted now would not be taken, or have nowhere to run."""
    if lately.closed:
        return "WAIT", "a person has switched all submissions off in the policy"
    if lately.refused:
        return "ADJUST", f"the jobs of this user are refused here; {lately.refused}"
    if not has_nodes:
        return "WAIT", "no node is usable now"
    return ("WAIT", f"all {mine.max_concurrent} of your slots are taken") if mine.slots_left == 0 else None


def _crowd(share: Mapping[str, float | None]) -> _Crowd:
    """Judged by the cluster as a whole: its partitions are not known."""
    busy = [name for name, value in share.items() if value is not None and value >= 1]
    return _Crowd(f"every {' and '.join(busy)} is in use" if busy else None)


def _crowd_of(partitions: Mapping[str, Partition], full: Mapping[str, str], waits: QueueWaits | None) -> _Crowd:
    """Judged by the partition that a job goes to where it names none, or by all of them where there is no such one."""
    told = "; ".join(f"partition {name}: {why}" for name, why in full.items())
    goes_to = [name for name, partition in partitions.items() if partition.default] or list(partitions)
    if any(name not in full for name in goes_to):
        return _Crowd(except_for=f", but not everywhere ({told})" if full else "")
    room = ", ".join(name for name in partitions if name not in full)
    measured = waits.partitions.get(goes_to[0]) if waits is not None and len(goes_to) == 1 else None
    return (
        _Crowd(told, instead=f"there is room in {room}", measured=measured) if room else _Crowd(told, measured=measured)
    )


def _estimated(waits: QueueWaits | None) -> str | None:
    return None if waits is None or waits.measured is None else _waited(waits.measured)


def _waited(measured: WaitMeasured) -> str:
    half, most = format_duration(measured.median), format_duration(measured.p95)
    return f"jobs waited {half} in the median lately, 95 % of them no longer than {most} ({measured.jobs} jobs)"


def _maintenance(begins: datetime) -> str:
    return f"a maintenance begins at {begins:%Y-%m-%d %H:%M} UTC"


def _grounds(
    depth: int, mine: SlurmSection, share: Mapping[str, float | None], nodes: int, lately: RecentWaits
) -> list[str]:
    """All that the recommendation rests on, each in a few words."""
    used = [f"{value:.0%} of the {name.upper()}s in use" for name, value in share.items() if value is not None]
    waits = lately.waits
    told = [
        how_many(nodes, "usable node"),
        *used,
        f"{how_many(depth, 'job')} waiting",
        f"{mine.slots_left} of your {mine.max_concurrent} slots left",
    ]
    if waits is not None:
        told.append(waits.note if waits.measured is None else f"{_waited(waits.measured)}; {waits.note}")
    return told if lately.maintenance is None else [*told, _maintenance(lately.maintenance)]


# --- What a request asks for beside what its partition has, for a request that Slurm refuses --------------------------


_CORRECT = "Correct the request; nothing was sent."
_NO_USER = "Invalid user id"  # what Slurm says of root where `DisableRootJobs` is set, and of a user it does not know
_ANOTHER_USER = (
    "Slurm runs no jobs of this user, whatever is asked for. Submit as a user of the cluster; nothing was sent."
)


def beside(asked: Resources, partitions: Mapping[str, Partition], message: str) -> str:
    """The hint of a refusal: for each partition that is asked for, what of the request is more than it has."""
    if _NO_USER in message:
        return _ANOTHER_USER
    names = [name.strip() for name in (asked.partition or "").split(",") if name.strip()]
    names = names or [name for name, partition in partitions.items() if partition.default]
    told = [text for name in names if name in partitions and (text := _compared(asked, partitions[name]))]
    return " ".join([*told, _CORRECT])


def _compared(asked: Resources, partition: Partition) -> str:
    more = list(_more(asked, partition))
    if not more:
        return ""
    gpus = f", {how_many(partition.gpus_per_node, 'GPU')}" if partition.gpus_per_node else ""
    node = f"{how_many(partition.cpus_per_node, 'CPU')}{gpus} and {human_memory(partition.largest_memory)}"
    has = f"Partition {partition.name} has {how_many(partition.nodes, 'node')} of up to {node}"
    return f"{has}; asked for: {', '.join(more)}."


def _more(asked: Resources, partition: Partition) -> Iterator[str]:
    """What is asked for and cannot be had there."""
    nodes = asked.nodes or partition.nodes
    reach = min(nodes, partition.nodes)
    if nodes > partition.nodes:
        yield how_many(nodes, "node")
    elif partition.max_nodes is not None and nodes > partition.max_nodes:
        yield f"{how_many(nodes, 'node')}, where one job may have {partition.max_nodes}"
    if asked.cpus is not None and asked.cpus > partition.cpus_per_node * reach:
        yield f"{how_many(asked.cpus, 'CPU')} on {how_many(nodes, 'node')}"
    if asked.gpus is not None and asked.gpus > partition.gpus_per_node * reach:
        yield f"{how_many(asked.gpus, 'GPU')} on {how_many(nodes, 'node')}"
    if asked.memory_per_node_bytes is not None and asked.memory_per_node_bytes > partition.largest_memory:
        yield f"{human_memory(asked.memory_per_node_bytes)} of memory on a node"
