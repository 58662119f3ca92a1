"""Where a job could run, as it is now: what each cluster says of itself, completed by the pages.

What Slurm says wins over a page; where both differ, that is told. What no page says of a partition is taken from its
name or its limit, and that is told, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import anyio
import anyio.to_thread

from slurm_agent_tools.backends import pages
from slurm_agent_tools.backends.pages import BackendPage, FoundPage, PageQueue, Purpose
from slurm_agent_tools.backends.places import BackendPlace, Figures, JobNeed
from slurm_agent_tools.errors import SlurmError, SlurmMissing
from slurm_agent_tools.insights import capacity, measured_waits, queue_history
from slurm_agent_tools.models.job import PastWaits
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.models.request import Resources
from slurm_agent_tools.services.context import ClusterContext, ContextRegistry
from slurm_agent_tools.settings import LOCAL, Settings
from slurm_agent_tools.settings.workstation_place import NAME as WORKSTATION
from slurm_agent_tools.units import UNLIMITED, format_duration

_TESTING = re.compile(r"test|debug|devel", re.IGNORECASE)

_LONG_NAME = re.compile(r"long", re.IGNORECASE)

_LONG_SECONDS = 48 * 3600

_NOT_UP = "no Slurm runs on it: slurm-agent-tools workstation up --yes"


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """Every place, in the order of their names, and what contradicts between pages and clusters."""

    places: tuple[BackendPlace, ...]
    contradictions: tuple[str, ...] = ()


def cluster_names(settings: Settings) -> list[str]:
    """The clusters that calls can name and mean; this machine's own Slurm where nothing else is configured."""
    names = list(settings.clusters)
    return [LOCAL, *names] if not names or settings.cluster == LOCAL else names


async def gather(registry: ContextRegistry, context: ClusterContext, need: JobNeed, only: str | None) -> BackendFacts:
    """Ask every cluster at once, or `only` one. A cluster that does not answer is a place that cannot be used.

    Raises ConfigError for a page that cannot be used.
    """
    written = await anyio.to_thread.run_sync(pages.found_pages, Path(context.project))
    names = [only] if only is not None else cluster_names(context.settings)
    found: dict[str, BackendFacts] = {}

    async def ask(name: str) -> None:
        page = next((one for one in written if _cluster_of(one, names) == name), None)
        found[name] = await _of_cluster(await registry.at(name), name, page, need)

    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(ask, name)
    others = [] if only is not None else [one for one in written if _cluster_of(one, names) not in names]
    places = [place for name in names for place in found[name].places]
    places += [place for one in others for place in _of_page(one, context.clock.now().date())]
    places = _with_this_machine(places, only)
    told = [text for name in names for text in found[name].contradictions]
    return BackendFacts(tuple(sorted(places, key=lambda one: one.name)), tuple(told))


def _cluster_of(one: FoundPage, names: Sequence[str]) -> str | None:
    """The cluster that a page is about; None for what is no Slurm."""
    if one.page.kind == "workstation":
        return WORKSTATION
    if one.page.kind != "slurm":
        return None
    return one.page.cluster or (one.name if one.name in names else None)


def _with_this_machine(places: list[BackendPlace], only: str | None) -> list[BackendPlace]:
    """A machine without a Slurm could have one: that is said, instead of that its Slurm does not answer."""
    missing = [place for place in places if place.cluster == LOCAL and place.problem == _NOT_UP]
    if only is not None or any(place.local for place in places) or not missing:
        return places
    here = BackendPlace(WORKSTATION, "", "production", kind="workstation", problem=_NOT_UP, gpus_per_node=None)
    return [here, *(place for place in places if place not in missing)]


# --- one cluster ------------------------------------------------------------------------------------------------------


async def _of_cluster(context: ClusterContext, name: str, page: FoundPage | None, need: JobNeed) -> BackendFacts:
    usual = name in {context.settings.cluster, LOCAL} or len(cluster_names(context.settings)) == 1
    backend = page.name if page is not None else name
    common = BackendPlace(
        backend, "", "production", cluster=name, usual=usual, gpus_per_node=None,
        kind="workstation" if name == WORKSTATION else "slurm",
    )  # fmt: skip
    try:
        partitions, nodes = await context.slurm.partitions(), await context.slurm.nodes()
    except SlurmError as error:
        missing = isinstance(error, SlurmMissing) and name == LOCAL
        away = replace(common, problem=_NOT_UP if missing else f"it does not answer: {error.message.rstrip('.')}")
        return BackendFacts(tuple(_page_places(away, page.page, context)) if page is not None else (away,))
    past = await queue_history.recent_waits(context)
    places, told = [], []
    for one in partitions.values():
        queue = _queue(page, one.name)
        told += _contradicted(backend, one, queue, nodes)
        place = _measured(_priced(common, page, context), one, nodes, need, past)
        place = _purposed(place, one, queue, page)
        places.append(_limited(place, queue, context))
    told += _unknown(backend, page, partitions)
    return BackendFacts(tuple(places), tuple(told))


def _queue(page: FoundPage | None, partition: str) -> PageQueue | None:
    return None if page is None else next((one for one in page.page.queues if one.name == partition), None)


def _measured(
    common: BackendPlace, partition: Partition, nodes: Sequence[Node], need: JobNeed, past: PastWaits
) -> BackendPlace:
    """What Slurm says of one partition."""
    own = [node for node in nodes if partition.name in node.partitions and capacity.usable(node)]
    problem = common.problem or ("" if partition.state == "UP" else f"the partition is {partition.state}")
    share = _share(partition, need)
    return replace(
        common,
        partition=partition.name,
        problem=problem,
        time_limit=partition.max_time_seconds,
        nodes=partition.nodes,
        cpus_per_node=partition.cpus_per_node or None,
        memory_per_node=max(partition.memory_per_node, partition.memory_per_node_max) or None,
        gpus_per_node=partition.gpus_per_node,
        free_gpus=_free([(node.gpus, node.gpus_used) for node in own if node.gpus], share),
        free_cpus=_free([(node.cpus, node.cpus_used) for node in own], math.ceil((need.cpus or 1) / (need.nodes or 1))),
        wait=_waited(partition.name, need, past),
    )


def _share(partition: Partition, need: JobNeed) -> int:
    """GPUs of one node: what is free on a node in smaller parts is of no use."""
    nodes = need.nodes or math.ceil(need.gpus / max(1, partition.gpus_per_node))
    return max(1, math.ceil(need.gpus / max(1, nodes)))


def _free(nodes: Sequence[tuple[int, int | None]], share: int) -> int | None:
    """How many are free in parts of this size; None where it is not told of each node."""
    if any(used is None for _, used in nodes):
        return None
    return sum((total - (used or 0)) // share * share for total, used in nodes)


def _waited(partition: str, need: JobNeed, past: PastWaits) -> Figures | None:
    """What jobs of about this size waited there, else all jobs there."""
    asked = Resources(partition=partition, gpus=need.gpus, cpus=need.cpus, memory_bytes=need.memory_bytes)
    alike = measured_waits.measure_waits(measured_waits.same_shape(past.waits, asked))
    every = measured_waits.measure_waits(one for one in past.waits if one.partition == partition)
    measured, which = (alike, "of about this size") if alike.median is not None else (every, "of any size")
    if measured.median is None:
        return None
    whose = " of yours" if past.own else ""
    source = f"{measured.jobs} jobs{whose} {which} in the last {measured_waits.period(past.hours)}"
    return Figures(measured.median, measured.p95, measured.jobs, source)


def _priced(common: BackendPlace, page: FoundPage | None, context: ClusterContext) -> BackendPlace:
    if page is None:
        return common
    return _of_price(common, page.page, context.clock.now().date(), context.environment.user)


def _of_price(common: BackendPlace, page: BackendPage, today: date, user: str | None) -> BackendPlace:
    """Price, allocation, and who may use it. `user` None: not known there."""
    price = page.price
    ended = price.allocation_ends is not None and price.allocation_ends < today
    problem = f"its allocation ended on {price.allocation_ends}" if ended else ""
    if page.users and user is not None and user not in page.users:
        problem = f"its page does not name {user or 'this user'} among those who may use it"
    return replace(
        common,
        problem=common.problem or problem,
        currency=price.currency,
        gpu_hour=price.gpu_hour,
        cpu_hour=price.cpu_hour,
        priced_on=price.priced_on,
        hours_left=price.allocation_hours,
        can_be_ended=page.can_be_ended,
    )


def _limited(place: BackendPlace, queue: PageQueue | None, context: ClusterContext) -> BackendPlace:
    """How many may run at once: by the policy, and by the page."""
    known = [context.policy.policy.limits.max_concurrent_jobs, *([queue.max_jobs] if queue and queue.max_jobs else [])]
    price = place.gpu_hour if queue is None or queue.gpu_hour is None else queue.gpu_hour
    return replace(place, max_jobs=min(known), gpu_hour=price)


def _purposed(
    place: BackendPlace, partition: Partition, queue: PageQueue | None, page: FoundPage | None
) -> BackendPlace:
    """What it is for: as its page says, else by its name, else by its limit."""
    if queue is not None:
        return replace(place, purpose=queue.purpose)
    if place.local:
        return place
    purpose, why = _guessed(partition)
    said = "its page does not say" if page is not None else "no page says"
    return replace(place, purpose=purpose, facts=(f"Taken for {purpose} by {why}: {said} what {place.name} is for.",))


def _guessed(partition: Partition) -> tuple[Purpose, str]:
    if _TESTING.search(partition.name):
        return "testing", "its name"
    if _LONG_NAME.search(partition.name):
        return "long", "its name"
    limit = partition.max_time_seconds
    if limit is not None and limit != UNLIMITED and limit > _LONG_SECONDS:
        return "long", f"its limit of {format_duration(limit)}"
    return "production", "its limit"


# --- contradictions ---------------------------------------------------------------------------------------------------


def _contradicted(backend: str, partition: Partition, queue: PageQueue | None, nodes: Sequence[Node]) -> list[str]:
    """What Slurm says otherwise than the page, which then does not count."""
    if queue is None:
        return []
    limit = partition.max_time_seconds
    pairs: list[tuple[str, int | None, int | None, Callable[[int | None], str]]] = [
        ("time limit", queue.time_limit, limit, _duration),
        ("nodes", queue.nodes, partition.nodes, str),
        ("CPUs of a node", queue.cpus_per_node, partition.cpus_per_node, str),
        ("GPUs of a node", queue.gpus.per_node if queue.gpus else None, partition.gpus_per_node, str),
    ]
    told = [
        f"{backend}/{partition.name}: the page says {what} {shown(said)}, the cluster {shown(live)}, which counts."
        for what, said, live, shown in pairs
        if said is not None and said != live
    ]
    types = {kind.lower() for node in nodes if partition.name in node.partitions for kind in node.gpu_types}
    if queue.gpus is not None and types and queue.gpus.type.lower() not in types:
        said, has = queue.gpus.type, ", ".join(sorted(types))
        told.append(f"{backend}/{partition.name}: the page says {said} GPUs, the cluster {has}, which counts.")
    return told


def _duration(seconds: int | None) -> str:
    return "none" if seconds is None else format_duration(seconds)


def _unknown(backend: str, page: FoundPage | None, partitions: Mapping[str, Partition]) -> list[str]:
    named = [] if page is None else [one.name for one in page.page.queues if one.name not in partitions]
    return [f"{backend}: the page names the partition {name}, which the cluster does not have." for name in named]


# --- what nobody can ask ----------------------------------------------------------------------------------------------


def _of_page(one: FoundPage, today: date) -> list[BackendPlace]:
    """The places of a backend that is no Slurm, or one that the settings do not know."""
    common = BackendPlace(one.name, "", "production", kind=one.page.kind)
    if one.page.kind == "workstation":
        common = replace(common, cluster=WORKSTATION, problem=_NOT_UP)
    elif one.page.kind == "slurm":
        named = one.page.cluster or one.name
        common = replace(common, problem=f"the settings have no cluster {named}: add [clusters.{named}]")
    common = _of_price(common, one.page, today, None)
    return [_as_written(common, one.page, queue) for queue in one.page.queues]


def _page_places(away: BackendPlace, page: BackendPage, context: ClusterContext) -> list[BackendPlace]:
    common = _of_price(away, page, context.clock.now().date(), None)
    return [_limited(_as_written(common, page, queue), queue, context) for queue in page.queues]


def _as_written(common: BackendPlace, page: BackendPage, queue: PageQueue) -> BackendPlace:
    """A partition by its page alone."""
    asked = page.kind in {"slurm", "workstation"}  # it would say itself what it has
    wait = None if page.usual_wait is None else Figures(page.usual_wait, source="as its page says")
    return replace(
        common,
        partition=queue.name,
        purpose=queue.purpose,
        time_limit=queue.time_limit,
        nodes=queue.nodes,
        cpus_per_node=queue.cpus_per_node,
        memory_per_node=queue.memory_per_node,
        gpus_per_node=queue.gpus.per_node if queue.gpus is not None else None if asked else 0,
        max_jobs=queue.max_jobs,
        gpu_hour=common.gpu_hour if queue.gpu_hour is None else queue.gpu_hour,
        wait=wait,
        facts=(f"What is known of {common.backend} stands on its page; nothing was measured there.",),
    )
