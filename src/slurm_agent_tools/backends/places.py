"""A job that wants a place, and a place where it could run: what does not fit, what it costs, when it would be done.

Pure records and figures. Times are seconds, memory is bytes, hours are of GPUs where the job has any, else of CPUs.
None is not known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from slurm_agent_tools.backends.pages import BackendPage, FoundPage, Kind, PageQueue, Purpose
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.settings import LOCAL
from slurm_agent_tools.units import UNLIMITED, format_duration, human_memory

HOUR = 3600

SMOKE_SECONDS = 1800
"""The longest that a smoke run takes."""

SHORTEST_SMOKE = 600

_LONG_WAIT = 1800

NOT_UP = "no Slurm runs on it: slurm-agent-tools workstation up --yes"

WORKSTATION = "workstation"

_TESTING = re.compile(r"test|debug|devel", re.IGNORECASE)

_LONG_NAME = re.compile(r"long", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds, with how many jobs they rest on and where they come from."""

    median: int
    p95: int | None = None
    basis: int = 0
    source: str = ""

    @property
    def most(self) -> int:
        """For limits and budgets: what 95 % do not pass, where that is known."""
        return self.median if self.p95 is None else max(self.p95, self.median)


@dataclass(frozen=True, slots=True)
class JobNeed:
    """What is to run: `jobs` of it, each with these totals over its `nodes`. `new`: never tried; None: not known."""

    run: Figures | None
    gpus: int = 0
    cpus: int | None = None
    memory_bytes: int | None = None
    nodes: int | None = None
    jobs: int = 1
    restartable: bool | None = None
    urgent: bool = False
    new: bool | None = None
    budget: float | None = None

    def smoke(self) -> JobNeed:
        """Its smoke run: one job of at most half an hour."""
        source = f"a smoke run ends after {format_duration(SMOKE_SECONDS)} at the latest"
        return replace(self, run=Figures(SMOKE_SECONDS, source=source), jobs=1)


@dataclass(frozen=True, slots=True)
class BackendPlace:
    """One partition of one backend, as it is now.

    `problem`: why it cannot be used at all, as a cluster that does not answer; empty: it can. `usual`: of the cluster
    that a call means which names none. `queue`: what a job script of another scheduler names. `facts`: sentences on
    where its facts come from, and what contradicts.
    """

    backend: str
    partition: str
    purpose: Purpose
    kind: Kind = "slurm"
    cluster: str | None = None
    usual: bool = False
    problem: str = ""
    time_limit: int | None = None
    nodes: int | None = None
    cpus_per_node: int | None = None
    memory_per_node: int | None = None
    gpus_per_node: int | None = 0
    gpu_type: str | None = None
    queue: str | None = None
    max_jobs: int | None = None
    free_gpus: int | None = None
    free_cpus: int | None = None
    wait: Figures | None = None
    currency: str | None = None
    gpu_hour: float | None = None
    cpu_hour: float | None = None
    priced_on: date | None = None
    hours_left: float | None = None
    can_be_ended: bool = False
    facts: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether it is this machine."""
        return self.kind == "workstation"

    @property
    def name(self) -> str:
        """As people say it; a backend that nobody could ask has no partition."""
        return f"{self.backend}/{self.partition}" if self.partition else self.backend

    @property
    def costs_money(self) -> bool:
        """Whether its hours have a price above nothing. Rented machines have one, whether it is known or not."""
        known = self.gpu_hour is not None or self.cpu_hour is not None or self.hours_left is not None
        return bool(self.gpu_hour or self.cpu_hour) or (self.kind == "skypilot" and not known)


def misfit(place: BackendPlace, need: JobNeed) -> str | None:
    """Why the job cannot run there whatever its length: as a part of a sentence. What is not known is no reason."""
    nodes = need.nodes or 1
    if place.gpus_per_node is not None and need.gpus:
        if not place.gpus_per_node:
            return "it has no GPU"
        nodes = need.nodes or math.ceil(need.gpus / place.gpus_per_node)
        if math.ceil(need.gpus / nodes) > place.gpus_per_node:
            return f"a node has {place.gpus_per_node} GPUs, and {math.ceil(need.gpus / nodes)} are needed on one"
    if place.nodes is not None and nodes > place.nodes:
        return f"it has {_count(place.nodes, 'node')}, and {nodes} are needed"
    cpus, memory = _share(need.cpus, nodes), _share(need.memory_bytes, nodes)
    if cpus is not None and place.cpus_per_node is not None and cpus > place.cpus_per_node:
        return f"a node has {place.cpus_per_node} CPUs, and {cpus} are needed on one"
    if memory is not None and place.memory_per_node is not None and memory > place.memory_per_node:
        has = human_memory(place.memory_per_node)
        return f"a node has {has} of memory, and {human_memory(memory)} are needed on one"
    return None


def unsafe(place: BackendPlace, need: JobNeed) -> str | None:
    """Why a job that cannot go on where it was ended should not run there."""
    run = need.run.median if need.run is not None else 0
    if place.can_be_ended and need.restartable is False and run >= HOUR:
        return "its jobs can be ended without warning, and this one cannot restart"
    return None


def holds(place: BackendPlace, seconds: int) -> bool:
    """Whether its time limit is as long as that."""
    return place.time_limit is None or place.time_limit == UNLIMITED or place.time_limit >= seconds


def links(place: BackendPlace, need: JobNeed) -> int:
    """In how many jobs, one behind the other, it would run there."""
    if need.run is None or place.time_limit is None or place.time_limit == UNLIMITED:
        return 1
    return math.ceil(need.run.most / place.time_limit)


def starts_now(place: BackendPlace, need: JobNeed) -> bool | None:
    """Whether what it asks for is free there now."""
    if need.gpus:
        return None if place.free_gpus is None else place.free_gpus >= need.gpus
    return None if place.free_cpus is None else place.free_cpus >= (need.cpus or 1)


def wait(place: BackendPlace, need: JobNeed) -> int | None:
    """How long it waits there, in the median; nothing where all is free now."""
    if starts_now(place, need):
        return 0
    return place.wait.median if place.wait is not None else None


def busy(place: BackendPlace, need: JobNeed) -> bool | None:
    """Whether the wait is long beside the run: half an hour at least, and a quarter of the run."""
    seconds = wait(place, need)
    if seconds is None:
        return None
    return seconds >= max(_LONG_WAIT, (need.run.median if need.run is not None else 0) / 4)


def rounds(place: BackendPlace, need: JobNeed) -> int:
    """How many times as many as may run at once have to run, one behind the other."""
    return math.ceil(need.jobs / place.max_jobs) if place.max_jobs else 1


def gpu_hours(need: JobNeed, *, most: bool = False) -> float:
    """GPU hours of all its jobs."""
    return need.gpus * _hours(need, most=most) * need.jobs


def cpu_hours(need: JobNeed, *, most: bool = False) -> float:
    """CPU hours of all its jobs; of a job that names no CPUs, of one."""
    return (need.cpus or 1) * _hours(need, most=most) * need.jobs


def cost(place: BackendPlace, need: JobNeed, *, most: bool = False) -> float | None:
    """What all of it costs there, in the page's currency; None where no price is known. `most`: at its longest.

    The price of a GPU hour holds its CPUs too, where none is said of them; it says nothing of a job without GPUs.
    """
    if (place.gpu_hour if need.gpus else place.cpu_hour) is None:
        return None
    gpu = (place.gpu_hour or 0.0) * gpu_hours(need, most=most)
    return gpu + (place.cpu_hour or 0.0) * cpu_hours(need, most=most)


def over_budget(place: BackendPlace, need: JobNeed) -> str | None:
    """Which budget it would pass there, with its figures."""
    money = cost(place, need, most=True)
    if need.budget is not None and money is None and place.costs_money:
        return f"what it costs is not known, and the budget is {said(need.budget, place)}"
    if need.budget is not None and money is not None and money > need.budget:
        return f"it costs up to {said(money, place)}, and the budget is {said(need.budget, place)}"
    hours = gpu_hours(need, most=True) if need.gpus else cpu_hours(need, most=True)
    if place.hours_left is not None and hours > place.hours_left:
        unit = "GPU" if need.gpus else "CPU"
        return f"it takes up to {hours:.1f} {unit} hours, and the allocation has {place.hours_left:.1f} left"
    return None


def price_order(place: BackendPlace, need: JobNeed) -> float:
    """Sorts what is free of charge first, then by price, and rented places of unknown price last."""
    money = cost(place, need)
    return (math.inf if place.costs_money else 0.0) if money is None else money


def currency(place: BackendPlace, need: JobNeed) -> str | None:
    """What its price for the job is in; None where it has none to compare: free, or not known."""
    return (place.currency or "").upper() if cost(place, need) else None


def costs_more(place: BackendPlace, other: BackendPlace, need: JobNeed) -> bool:
    """Whether one costs more than the other; of prices in two currencies that is not known."""
    here, there = currency(place, need), currency(other, need)
    if here is not None and there is not None and here != there:
        return False
    return price_order(place, need) > price_order(other, need)


def said(money: float | None, place: BackendPlace) -> str:
    """An amount in the page's currency; None: not known."""
    if money is None:
        return "an unknown amount"
    return f"{money:.2f} {place.currency or ''}".strip()


def state(place: BackendPlace, need: JobNeed) -> str:
    """What is free, and how long it waits, with the figures."""
    what, free = ("GPUs", place.free_gpus) if need.gpus else ("CPUs", place.free_cpus)
    wanted = need.gpus or need.cpus or 1
    said = [f"{free} {what} free now for {wanted}"] if free is not None else []
    if place.wait is not None:
        usual = f"wait {format_duration(place.wait.median)} in the median"
        usual += f", {format_duration(place.wait.p95)} at 95 %" if place.wait.p95 is not None else ""
        said.append(f"{usual} ({place.wait.source})")
    if rounds(place, need) > 1:
        said.append(f"{place.max_jobs} of {need.jobs} jobs at once, {rounds(place, need)} rounds")
    return ", ".join(said) or "its wait is not measured"


def _hours(need: JobNeed, *, most: bool) -> float:
    if need.run is None:
        return 0.0
    return (need.run.most if most else need.run.median) / HOUR


def _share(total: int | None, nodes: int) -> int | None:
    return None if total is None else math.ceil(total / nodes)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


# --- a place by what its cluster says, and by its page ----------------------------------------------------------------


def measured(common: BackendPlace, partition: Partition, nodes: Sequence[Node], need: JobNeed) -> BackendPlace:
    """What Slurm says of one partition; `nodes`: those that run jobs or could."""
    own = [node for node in nodes if partition.name in node.partitions]
    problem = common.problem or ("" if partition.state == "UP" else f"the partition is {partition.state}")
    share = _gpus_of_a_node(partition, need)
    return replace(
        common,
        partition=partition.name,
        problem=problem,
        time_limit=partition.max_time_seconds,
        nodes=partition.nodes,
        cpus_per_node=partition.cpus_per_node or None,
        memory_per_node=partition.largest_memory or None,
        gpus_per_node=partition.gpus_per_node,
        free_gpus=_free([(node.gpus, node.gpus_used) for node in own if node.gpus], share),
        free_cpus=_free([(node.cpus, node.cpus_used) for node in own], math.ceil((need.cpus or 1) / (need.nodes or 1))),
    )


def _gpus_of_a_node(partition: Partition, need: JobNeed) -> int:
    """GPUs of one node: what is free on a node in smaller parts is of no use."""
    nodes = need.nodes or math.ceil(need.gpus / max(1, partition.gpus_per_node))
    return max(1, math.ceil(need.gpus / max(1, nodes)))


def _free(nodes: Sequence[tuple[int, int | None]], share: int) -> int | None:
    """How many are free in parts of this size; None where it is not told of each node."""
    if any(used is None for _, used in nodes):
        return None
    return sum((total - (used or 0)) // share * share for total, used in nodes)


def with_purpose(
    place: BackendPlace, partition: Partition, queue: PageQueue | None, page: FoundPage | None
) -> BackendPlace:
    """What it is for: as its page says, else by its name, else by its limit."""
    if queue is not None:
        return replace(place, purpose=queue.purpose)
    if place.local:
        return place
    purpose = _by_name(partition.name)
    said = "its page does not say" if page is not None else "no page says"
    return replace(
        place, purpose=purpose, facts=(f"Taken for {purpose} by its name: {said} what {place.name} is for.",)
    )


def _by_name(name: str) -> Purpose:
    """A long limit says nothing: where all have one, it is the usual one."""
    if _TESTING.search(name):
        return "testing"
    return "long" if _LONG_NAME.search(name) else "production"


def of_price(common: BackendPlace, page: BackendPage, today: date, user: str | None) -> BackendPlace:
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


def of_page(one: FoundPage, today: date) -> list[BackendPlace]:
    """The places of a backend that is no Slurm, or one that the settings do not know."""
    common = BackendPlace(one.name, "", "production", kind=one.page.kind)
    if one.page.kind == "workstation":
        common = replace(common, cluster=WORKSTATION, problem=NOT_UP)
    elif one.page.kind == "slurm":
        named = one.page.cluster or one.name
        common = replace(common, problem=f"the settings have no cluster {named}: add [clusters.{named}]")
    common = of_price(common, one.page, today, None)
    return [as_written(common, one.page, queue) for queue in one.page.queues]


def as_written(common: BackendPlace, page: BackendPage, queue: PageQueue) -> BackendPlace:
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
        gpu_type=queue.gpus.type if queue.gpus is not None else None,
        queue=page.kueue_queue if page.kind == "kubernetes" else queue.name if page.kind == "pbs" else None,
        max_jobs=queue.max_jobs,
        gpu_hour=common.gpu_hour if queue.gpu_hour is None else queue.gpu_hour,
        wait=wait,
        facts=(f"What is known of {common.backend} stands on its page; nothing was measured there.",),
    )


def with_this_machine(known: list[BackendPlace]) -> list[BackendPlace]:
    """A machine without a Slurm could have one: that is said, instead of that its Slurm does not answer."""
    missing = [place for place in known if place.cluster == LOCAL and place.problem == NOT_UP]
    if any(place.local for place in known) or not missing:
        return known
    here = BackendPlace(WORKSTATION, "", "production", kind="workstation", problem=NOT_UP, gpus_per_node=None)
    return [here, *(place for place in known if place not in missing)]
