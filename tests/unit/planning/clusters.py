"""Made-up weeks of a small cluster: jobs placed by a plain scheduler on nodes as the devcluster has them."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord, NodeSpan
from slurm_agent_tools.models.node import Node, Partition

GIB, MIB, HOUR, DAY = 2**30, 2**20, 3600.0, 86400.0
END = 1_800_000_000.0
SPAN = 7 * DAY


def node(name: str, partition: str, cpus: int, memory: int, gpus: int = 0, kind: str = "") -> Node:
    types = (kind,) if kind else ()
    return Node(name, "idle", (partition,), cpus, 0, memory * MIB, None, gpus, 0, types)


def partition(name: str, hours: float, nodes: int, most: int | None = None) -> Partition:
    return Partition(name, "UP", name == "cpu", nodes, int(hours * HOUR), 1800, most)


def machine(prefix: str = "as") -> tuple[dict[str, Node], dict[str, Partition]]:
    """Two nodes with four GPUs, two without, and one with eight that only short jobs may use."""
    nodes = [node(f"{prefix}gpu0{number}", "gpu", 32, 256_000, 4, "a100") for number in (1, 2)]
    nodes += [node(f"{prefix}cpu0{number}", "cpu", 64, 192_000) for number in (1, 2)]
    nodes += [node(f"{prefix}spec01", "special", 96, 1_000_000, 8, "h100")]
    parts = partition("gpu", 48, 2), partition("cpu", 168, 2), partition("special", 4, 1, 1)
    return {one.name: one for one in nodes}, {one.name: one for one in parts}


@dataclass(frozen=True)
class Asked:
    """One job as it is submitted `at` hours after the week's beginning; memory in GiB, times in hours."""

    at: float
    user: str
    name: str
    partition: str
    run: float
    limit: float
    cpus: int = 1
    memory: float = 1.0
    gpus: int = 0
    used: float | None = None
    kind: str = ""
    busy: float | None = None

    def job(self, begin: float, start: float | None, where: str | None) -> AccountedJob:
        ready = begin + self.at * HOUR
        return AccountedJob(
            user=self.user, name=self.name, partitions=(self.partition,),
            state="PENDING" if start is None else "COMPLETED", ready=ready, start=start,
            end=None if start is None else start + self.run * HOUR, cpus=self.cpus, memory=int(self.memory * GIB),
            gpus=self.gpus, node_count=1, nodes=frozenset() if where is None else frozenset({where}),
            gpu_types=frozenset({self.kind} if self.kind else ()), limit=int(self.limit * HOUR),
            memory_used=None if self.used is None else int(self.used * GIB), gpu_busy=self.busy,
        )  # fmt: skip


def week(
    asked: Iterable[Asked], kept: Sequence[NodeSpan] = (), *, end: float = END, prefix: str = "as"
) -> ClusterRecord:
    """The jobs, each started in the order of submission as soon as it fits; what runs at the end is cut."""
    nodes, partitions = machine(prefix)
    jobs = [_cut(job, end) for job in _scheduled(sorted(asked, key=lambda one: one.at), nodes, kept, end - SPAN)]
    begun = [job for job in jobs if (job.ready or 0.0) < end]
    return ClusterRecord("made-up", end - SPAN, end, tuple(begun), nodes, partitions, kept=tuple(kept))


def _cut(job: AccountedJob, end: float) -> AccountedJob:
    if job.start is None or job.start >= end:
        return replace(job, start=None, end=None, state="PENDING", nodes=frozenset())
    return replace(job, end=None, state="RUNNING") if (job.end or 0.0) > end else job


def _scheduled(
    asked: Sequence[Asked], nodes: dict[str, Node], kept: Sequence[NodeSpan], begin: float
) -> Iterator[AccountedJob]:
    free = {one.name: [one.cpus, one.memory_bytes, one.gpus] for one in nodes.values()}
    ends: list[tuple[float, int, str, Asked]] = []
    queue: list[Asked] = []
    waiting = list(reversed(asked))
    moments = sorted({begin + one.at * HOUR for one in asked} | {one.end for one in kept})
    heapq.heapify(moments)
    while moments:
        now = heapq.heappop(moments)
        while ends and ends[0][0] <= now:
            _, _, where, one = heapq.heappop(ends)
            free[where] = [had + got for had, got in zip(free[where], _need(one), strict=True)]
        while waiting and begin + waiting[-1].at * HOUR <= now:
            queue.append(waiting.pop())
        left = []
        for one in queue:
            where = _fitting(one, nodes, free, kept, now)
            if where is None:
                left.append(one)
                continue
            free[where] = [had - got for had, got in zip(free[where], _need(one), strict=True)]
            over = now + one.run * HOUR
            heapq.heappush(ends, (over, id(one), where, one))
            heapq.heappush(moments, over)
            yield one.job(begin, now, where)
        queue = left
    yield from (one.job(begin, None, None) for one in queue)


def _need(one: Asked) -> tuple[int, int, int]:
    return one.cpus, int(one.memory * GIB), one.gpus


def _fitting(
    one: Asked, nodes: dict[str, Node], free: dict[str, list[int]], kept: Sequence[NodeSpan], now: float
) -> str | None:
    barred = {name for span in kept if now < span.end and now + one.limit * HOUR > span.start for name in span.nodes}
    for name, there in nodes.items():
        fits = all(got <= had for got, had in zip(_need(one), free[name], strict=True))
        if one.partition in there.partitions and name not in barred and fits:
            return name
    return None


# --- Weeks ------------------------------------------------------------------------------------------------------------


def healthy(seed: int, load: float = 0.45) -> list[Asked]:
    """Jobs of ten users at chance, who ask for a little more than they use."""
    chance = random.Random(seed)  # noqa: S311 - jobs, no secrets
    found: list[Asked] = []
    for partition_name, cores, gpus in (("cpu", 128, 0), ("gpu", 64, 8), ("special", 96, 8)):
        scripts = [_script(chance, partition_name, number) for number in range(5)]
        budget = load * SPAN / HOUR * (gpus or cores)
        while budget > 0:
            script = chance.choice(scripts)
            run = script.run * chance.uniform(0.6, 1.0)
            at = chance.uniform(0, SPAN / HOUR - 1)
            used = (script.used or 0.0) * chance.uniform(0.7, 1.0)
            found.append(replace(script, at=at, run=run, used=used, name=f"{script.name}{len(found)}"))
            budget -= run * (script.gpus or script.cpus)
    return found


def _script(chance: random.Random, partition_name: str, number: int) -> Asked:
    gpus = 0 if partition_name == "cpu" else chance.choice((1, 1, 2))
    cpus = chance.randint(1, 12) if not gpus else chance.randint(2, 8) * gpus
    run, used = chance.uniform(0.3, 2.5), chance.uniform(0.5, 2.0) * cpus
    limit, memory = run * chance.uniform(1.1, 1.7), used * chance.uniform(1.1, 1.7)
    user = f"{partition_name}user{number}"
    return Asked(0, user, f"script{number}-", partition_name, run, limit, cpus, memory, gpus, used)


def everyday() -> Iterator[Asked]:
    """Small jobs all the week through, which nobody has to complain of."""
    for number in range(160):
        user = ("ada", "bob", "eve", "joe")[number % 4]
        yield Asked(number * 1.03, user, f"plot-{number}", "cpu", 0.5, 0.7, 2, 3.0, used=2.4)


def over_asked_memory() -> Iterator[Asked]:
    """In the first two days: 80 GiB, of which 4 are used; two such jobs fill a node."""
    for number in range(64):
        yield Asked(1, "ann", f"assemble-{number}", "cpu", 2.5, 3.5, 1, 80.0, used=3.6 + number % 5 / 10)


def over_asked_time() -> Iterator[Asked]:
    """On the third day: a week asked for, an hour used."""
    for number in range(120):
        yield Asked(50, "ben", f"sweep-{number}", "cpu", 0.9 + number % 4 / 20, 168, 15, 20.0, used=15.0)


def cpu_jobs_on_gpu_nodes() -> Iterator[Asked]:
    """On the second day: almost all cores of both GPU nodes without a GPU, while others wait for GPUs."""
    for number in range(2):
        yield Asked(20, "cyd", f"fit-{number}", "gpu", 30, 36, 31, 60.0, used=40.0)
    for number in range(16):
        yield Asked(21, ("dan", "eli")[number % 2], f"train-{number}", "gpu", 2, 3, 4, 20.0, 1, 15.0, "a100")


def cpus_per_gpu() -> Iterator[Asked]:
    """On the fourth day: all cores of a node for one of its four GPUs."""
    for number in range(10):
        yield Asked(62, "gus", f"wide-{number}", "gpu", 7, 10, 32, 40.0, 1, 30.0, "a100")
    for number in range(12):
        yield Asked(63, "hal", f"train-{number}", "gpu", 2, 3, 4, 20.0, 1, 15.0, "a100")


def closed_partition() -> Iterator[Asked]:
    """From the fifth day: GPU jobs of twelve hours queue, and the nodes for four hours stand idle."""
    for number in range(24):
        yield Asked(106, ("dan", "eli")[number % 2], f"long-{number}", "gpu", 12, 14, 8, 50.0, 1, 40.0)


def empty_reservation(begin: float, prefix: str = "as") -> NodeSpan:
    """From the sixth day: one of two nodes for nobody."""
    return NodeSpan("course", frozenset({f"{prefix}cpu02"}), begin + 115 * HOUR, begin + 160 * HOUR)


def beside_the_reservation() -> Iterator[Asked]:
    """Jobs that would run in it."""
    for number in range(10):
        yield Asked(116, "fay", f"mesh-{number}", "cpu", 5, 6.5, 40, 60.0, used=45.0)


DEFECTS = {
    "memory-over-asked": "ann", "time-over-asked": "ben", "cpu-jobs-on-gpu-nodes": "cyd", "cpus-per-gpu": "gus",
    "idle-beside-queue": "dan", "empty-reservation": None,
}  # fmt: skip
"""The six defects of the bad week, and who stands for each."""


def bad_week(*, end: float = END, prefix: str = "as") -> ClusterRecord:
    """A week with the six defects, one after the other and a little beside each other."""
    asked = [
        *everyday(), *over_asked_memory(), *over_asked_time(), *cpu_jobs_on_gpu_nodes(), *cpus_per_gpu(),
        *closed_partition(), *beside_the_reservation(),
    ]  # fmt: skip
    return week(asked, [empty_reservation(end - SPAN, prefix)], end=end, prefix=prefix)
