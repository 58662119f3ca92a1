"""Packing small jobs on as few nodes as possible: CPUs, memory, GPUs and shares of a GPU, with the bound beside it.

One node after another is filled with the kind of job whose needs point the same way as what is left on it (the cosine
of both; after Panigrahy, Talwar, Uyeda and Wieder, "Heuristics for vector bin packing", 2011), with several weights,
with shares as they are and with shares that were put together to whole GPUs before. The best counts, first fit in the
order given among them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.schedule import SHARES, checked
from slurm_agent_tools.units import format_memory

_WEIGHTS = ((1.0, 1.0, 1.0), (1.0, 0.5, 1.0), (2.0, 1.0, 1.0), (1.0, 1.0, 2.0), (1.0, 2.0, 1.0))
"""Of CPUs, memory and GPUs."""

_WORK = 20_000_000
"""Looks at kinds that all fillings take together, some seconds: of very many different jobs first fit alone counts."""

_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class PackedNode:
    """What runs together on one node: (name of the job, number of its GPU or None) for each copy."""

    held: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """Nodes with what they hold. `bound`: no packing takes fewer. `first_fit`: what the order given takes."""

    nodes: tuple[PackedNode, ...]
    bound: int
    first_fit: int

    @property
    def gap(self) -> float:
        """How far above the bound, as a part of it."""
        return len(self.nodes) / self.bound - 1


def pack(jobs: Sequence[PlannedJob], node: JobPool) -> Packing:
    """All copies at once on nodes of one shape. Raises InputError, also for a job that no such node holds."""
    checked(jobs, [node])
    kinds = _kinds(jobs, node)
    bound = nodes_bound(jobs, node)
    best = in_turn = _first_fit(jobs, node)
    affordable = _WORK // (len(kinds) * sum(kinds.values()))
    ways = [(bundled, weights) for bundled in (False, True) for weights in _WEIGHTS][:affordable]
    for bundled, weights in ways:
        if len(best) > bound:
            best = min(best, _filled(_bundled(kinds, node) if bundled else kinds, node, weights), key=len)
    names: dict[_Kind, list[str]] = {}
    for job in jobs:
        names.setdefault(_kind(job), []).extend([job.name] * job.count)
    return Packing(tuple(_named(one, names) for one in best), bound, len(in_turn))


def nodes_bound(jobs: Sequence[PlannedJob], node: JobPool) -> int:
    """The least number of nodes: the largest of CPUs, memory, GPUs and jobs over what one has."""
    cpus = sum(job.cpus * job.count for job in jobs)
    memory = sum(job.memory_bytes * job.count for job in jobs)
    gpus = sum(job.gpus * job.count for job in jobs) + gpus_of_shares(jobs)
    copies = sum(job.count for job in jobs)
    pairs = ((cpus, node.cpus), (memory, node.memory_bytes), (gpus, node.gpus), (copies, node.jobs))
    return max([1, *(-(-asked // most) for asked, most in pairs if most)])


def gpus_of_shares(jobs: Sequence[PlannedJob]) -> int:
    """The least number of GPUs on which all shares lie at once (bound L2 of Martello and Toth, 1990)."""
    counts: dict[int, int] = {}
    for job in jobs:
        if job.share is not None:
            part = round(job.share * SHARES)
            counts[part] = counts.get(part, 0) + job.count
    best = 0.0
    for small in (0, SHARES // 2, *(part for part in counts if part < SHARES // 2)):
        held = sum(
            number * (SHARES if part > SHARES - small else part) for part, number in counts.items() if part >= small
        )
        best = max(best, held / SHARES)
    return math.ceil(best)


# --- kinds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class _Kind:
    """What one holds; `parts` of one GPU. `made_of`: the kinds that were put together on one GPU."""

    cpus: int
    memory: int
    gpus: int
    parts: int
    made_of: tuple[_Kind, ...] = ()

    @property
    def jobs(self) -> int:
        """How many it is."""
        return len(self.made_of) or 1


def _kind(job: PlannedJob) -> _Kind:
    return _Kind(job.cpus, job.memory_bytes, job.gpus, round((job.share or 0) * SHARES))


def _kinds(jobs: Sequence[PlannedJob], node: JobPool) -> dict[_Kind, int]:
    """How many there are of each kind. Raises InputError."""
    found: dict[_Kind, int] = {}
    for job in jobs:
        asked = (("cpus", job.cpus, node.cpus), ("memory", job.memory_bytes, node.memory_bytes))
        gpus = ("gpus", job.gpus if job.share is None else 1, node.gpus)
        for name, value, most in (*asked, gpus):
            if most is not None and value > most:
                asked_for, there = (format_memory(n) if name == "memory" else n for n in (value, most))
                hint = f"Ask for at most {there}, or name larger nodes."
                problem = f"is more than a node has, {there}"
                raise InputError(f"jobs {job.name!r}: {name}", asked_for, problem, hint=hint)
        kind = _kind(job)
        found[kind] = found.get(kind, 0) + job.count
    return found


def _bundled(kinds: Mapping[_Kind, int], shape: JobPool) -> dict[_Kind, int]:
    """Shares put together to GPUs: to the largest that is left come those that fill its GPU best (subset sums).

    Of these as many as one node holds beside it; one that is left alone stays a share.
    """
    found = {kind: number for kind, number in kinds.items() if not kind.parts}
    left: dict[int, list[_Kind]] = {}
    for kind, number in sorted(kinds.items()):
        if kind.parts:
            left.setdefault(kind.parts, []).extend([kind] * number)
    while left:
        first = max(left)
        members = [left[first].pop()]
        fill = _filling({size: len(many) for size, many in left.items() if many}, SHARES - first)
        for part in fill:
            if _Node(shape).has_room(_together([*members, left[part][0]])):
                members.append(left[part].pop(0))
        left = {size: many for size, many in left.items() if many}
        together = _together(members) if len(members) > 1 else members[0]
        found[together] = found.get(together, 0) + 1
    return found


def _together(members: Sequence[_Kind]) -> _Kind:
    """Shares on one GPU, as one kind."""
    return _Kind(sum(one.cpus for one in members), sum(one.memory for one in members), 1, 0, tuple(sorted(members)))


def _filling(counts: Mapping[int, int], room: int) -> list[int]:
    """Parts whose sum is as near to `room` as it can be; a set of reachable sums is the bits of one number."""
    steps: list[tuple[int, int]] = []
    reached, most = 1, (1 << (room + 1)) - 1
    for size in sorted(counts, reverse=True):
        for _ in range(min(counts[size], room // size)):
            steps.append((size, reached))
            reached |= (reached << size) & most
    best, found = reached.bit_length() - 1, list[int]()
    for size, before in reversed(steps):
        if not before >> best & 1:
            found.append(size)
            best -= size
    return found


# --- filling ----------------------------------------------------------------------------------------------------------


class _Node:
    """One node while it is filled."""

    def __init__(self, shape: JobPool) -> None:
        self.cpus, self.memory = _most(shape.cpus), _most(shape.memory_bytes)
        self.gpus, self.jobs = _most(shape.gpus), _most(shape.jobs)
        self.opened: list[int] = []  # parts that are free of each shared GPU
        self.held: list[tuple[_Kind, int | None]] = []

    def slot(self, kind: _Kind) -> int | None:
        """The fullest shared GPU that has room; None for a new one."""
        room = [(left, number) for number, left in enumerate(self.opened) if left >= kind.parts]
        return min(room)[1] if room else None

    def has_room(self, kind: _Kind) -> bool:
        """Whether one more fits."""
        if kind.cpus > self.cpus or kind.memory > self.memory or kind.gpus > self.gpus:
            return False
        if self.jobs < kind.jobs:
            return False
        return not kind.parts or self.gpus >= 1 or self.slot(kind) is not None

    def put(self, kind: _Kind) -> None:
        """Hold one more."""
        self.cpus -= kind.cpus
        self.memory -= kind.memory
        self.gpus -= kind.gpus
        self.jobs -= kind.jobs
        slot = None
        if kind.parts:
            slot = self.slot(kind)
            if slot is None:
                slot = len(self.opened)
                self.opened.append(SHARES)
                self.gpus -= 1
            self.opened[slot] -= kind.parts
        elif kind.made_of:
            slot = len(self.opened)
            self.opened.append(0)
        self.held.append((kind, slot))


def _most(value: int | None) -> int:
    return _UNLIMITED if value is None else value


def _filled(kinds: Mapping[_Kind, int], shape: JobPool, weights: Sequence[float]) -> list[_Node]:
    """Nodes, filled one after the other."""
    left, nodes = dict(kinds), list[_Node]()
    whole = [float(value or 0) or math.inf for value in (shape.cpus, shape.memory_bytes, (shape.gpus or 0) * SHARES)]
    needs = {kind: _direction(kind, whole, weights) for kind in left}
    while left:
        node = _Node(shape)
        nodes.append(node)
        while True:
            room = [
                weight * value / most
                for weight, value, most in zip(
                    weights, (node.cpus, node.memory, node.gpus * SHARES + sum(node.opened)), whole, strict=True
                )
            ]
            kind = _best(left, node, needs, room)
            if kind is None:
                break
            node.put(kind)
            left[kind] -= 1
            if not left[kind]:
                del left[kind]
    return nodes


def _direction(kind: _Kind, whole: Sequence[float], weights: Sequence[float]) -> tuple[float, float, float]:
    """Its needs as parts of a node, as a vector of length 1 under the weights."""
    cpus, memory, gpus = (
        value / most
        for value, most in zip((kind.cpus, kind.memory, kind.gpus * SHARES + kind.parts), whole, strict=True)
    )
    length = math.sqrt(weights[0] * cpus**2 + weights[1] * memory**2 + weights[2] * gpus**2) or 1.0
    return cpus / length, memory / length, gpus / length


def _best(
    left: Mapping[_Kind, int], node: _Node, needs: Mapping[_Kind, tuple[float, float, float]], room: Sequence[float]
) -> _Kind | None:
    """The kind whose needs point most as the room does, of those that fit."""
    found, most = None, -1.0
    for kind in left:
        cpus, memory, gpus = needs[kind]
        likeness = cpus * room[0] + memory * room[1] + gpus * room[2]
        if likeness > most and node.has_room(kind):
            found, most = kind, likeness
    return found


def _first_fit(jobs: Sequence[PlannedJob], shape: JobPool) -> list[_Node]:
    """Nodes, where each job in turn goes to the first that has room."""
    nodes: list[_Node] = []
    begins: dict[_Kind, int] = {}  # a node that had no room for a kind never has
    for kind in (_kind(job) for job in jobs for _ in range(job.count)):
        place = begins.get(kind, 0)
        while place < len(nodes) and not nodes[place].has_room(kind):
            place += 1
        if place == len(nodes):
            nodes.append(_Node(shape))
        nodes[place].put(kind)
        begins[kind] = place
    return nodes


def _named(node: _Node, names: Mapping[_Kind, list[str]]) -> PackedNode:
    """With the names of jobs, each used once; shared GPUs have their numbers on the node."""
    return PackedNode(tuple(_members(node, names)))


def _members(node: _Node, names: Mapping[_Kind, list[str]]) -> Iterator[tuple[str, int | None]]:
    for kind, slot in node.held:
        for one in kind.made_of or (kind,):
            yield names[one].pop(), slot
