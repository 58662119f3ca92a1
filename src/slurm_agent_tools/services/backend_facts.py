"""Where a job could run, as it is now: what each cluster says of itself, completed by the pages.

What Slurm says wins over a page; where both differ, that is told. What no page says of a partition is taken from its
name or its limit, and that is told, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.to_thread

from slurm_agent_tools.backends import page_templates, pages, places
from slurm_agent_tools.backends.pages import BackendPage, FoundPage, PageQueue
from slurm_agent_tools.backends.places import NOT_UP, WORKSTATION, BackendPlace, Figures, JobNeed
from slurm_agent_tools.errors import AgentToolsError, SlurmError, SlurmMissing
from slurm_agent_tools.insights import capacity, measured_waits, queue_history
from slurm_agent_tools.models.job import PastWaits
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.services.context import ClusterContext, ContextRegistry
from slurm_agent_tools.settings import LOCAL, Settings


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

    Raises ConfigError for a page, or a cluster's site policy, that cannot be used.
    """
    written = await anyio.to_thread.run_sync(pages.found_pages, Path(context.project))
    names = [only] if only is not None else cluster_names(context.settings)
    found: dict[str, BackendFacts] = {}
    failed: dict[str, AgentToolsError] = {}

    async def ask(name: str) -> None:
        page = next((one for one in written if _cluster_of(one, names) == name), None)
        try:
            found[name] = await _of_cluster(await registry.at(name), name, page, need)
        except AgentToolsError as error:  # told as it is, not as one of a group
            failed[name] = error

    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(ask, name)
    for name in names:
        if name in failed:
            raise failed[name]
    others = [] if only is not None else [one for one in written if _cluster_of(one, names) not in names]
    known = [place for name in names for place in found[name].places]
    known += [place for one in others for place in places.of_page(one, context.clock.now().date())]
    known = known if only is not None else places.with_this_machine(known)
    told = [text for name in names for text in found[name].contradictions]
    about = [one for one in written if only is None or _cluster_of(one, names) == only]
    told += [f"{one.name}: its page {left}." for one in about if (left := page_templates.unfilled(one.page))]
    return BackendFacts(tuple(sorted(known, key=lambda one: one.name)), tuple(told))


def _cluster_of(one: FoundPage, names: Sequence[str]) -> str | None:
    """The cluster that a page is about; None for what is no Slurm."""
    if one.page.kind == "workstation":
        return WORKSTATION
    if one.page.kind != "slurm":
        return None
    return one.page.cluster or (one.name if one.name in names else None)


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
        away = replace(common, problem=NOT_UP if missing else f"it does not answer: {error.message.rstrip('.')}")
        return BackendFacts(tuple(_page_places(away, page.page, context)) if page is not None else (away,))
    past = await queue_history.recent_waits(context)
    found, told = [], []
    usable = [node for node in nodes if capacity.usable(node)]
    for one in partitions.values():
        queue = _queue(page, one.name)
        told += pages.contradictions(backend, one, queue, nodes)
        place = places.measured(_priced(common, page, context), one, usable, need)
        place = places.with_purpose(replace(place, wait=_waited(one.name, need, past)), one, queue, page)
        found.append(_limited(place, queue, context))
    told += pages.unknown_partitions(backend, page, partitions)
    return BackendFacts(tuple(found), tuple(told))


def _queue(page: FoundPage | None, partition: str) -> PageQueue | None:
    return None if page is None else next((one for one in page.page.queues if one.name == partition), None)


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
    return places.of_price(common, page.page, context.clock.now().date(), context.environment.user)


def _limited(place: BackendPlace, queue: PageQueue | None, context: ClusterContext) -> BackendPlace:
    """How many may run at once: by the policy, and by the page."""
    known = [context.policy.policy.limits.max_concurrent_jobs, *([queue.max_jobs] if queue and queue.max_jobs else [])]
    price = place.gpu_hour if queue is None or queue.gpu_hour is None else queue.gpu_hour
    return replace(place, max_jobs=min(known), gpu_hour=price)


def _page_places(away: BackendPlace, page: BackendPage, context: ClusterContext) -> list[BackendPlace]:
    common = places.of_price(away, page, context.clock.now().date(), None)
    return [_limited(places.as_written(common, page, queue), queue, context) for queue in page.queues]
