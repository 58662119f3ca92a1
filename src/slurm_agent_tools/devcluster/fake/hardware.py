"""Nodes and partitions of a cluster in memory; those of the devcluster where a test names none."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class FakeNode:
    """One node. Memory in MB; `gpu_type` is the word that Slurm writes for its GPUs. `down` says why it is down."""

    name: str
    cpus: int = 64
    memory: int = 192_000
    gpus: int = 0
    gpu_type: str = ""
    features: tuple[str, ...] = ()
    down: str | None = None
    drained: str | None = None
    since: float = 0.0  # when that was said
    cpus_used: int = 0
    memory_used: int = 0
    gpus_used: list[int] = field(default_factory=list)
    exclusive: bool = False

    @property
    def usable(self) -> bool:
        """Whether jobs may start on it."""
        return self.down is None and self.drained is None

    @property
    def state(self) -> str:
        """Slurm's compact word for it."""
        if self.down is not None:
            return "down"
        if self.drained is not None:
            return "drng" if self.cpus_used else "drain"
        if not self.cpus_used:
            return "idle"
        return "alloc" if self.cpus_used >= self.cpus else "mix"

    def free_gpus(self) -> list[int]:
        """The numbers of the GPUs that no job holds."""
        return [index for index in range(self.gpus) if index not in self.gpus_used]


@dataclass(slots=True)
class FakePartition:
    """One partition. Times in seconds (None: no limit), memory in MB."""

    name: str
    nodes: tuple[str, ...]
    default: bool = False
    max_time: int | None = None
    default_time: int | None = None
    def_mem_per_cpu: int | None = 1000
    def_mem_per_gpu: int | None = None
    max_nodes: int | None = None
    tier: int = 1
    exclusive: bool = False
    up: bool = True


_HOUR = 3600


def devcluster() -> tuple[list[FakeNode], list[FakePartition]]:
    """What `slurm-agent-tools devcluster up` offers."""
    nodes = [FakeNode(f"cpu{number:02d}", features=("avx512",)) for number in (1, 2)]
    nodes += [FakeNode(f"gpu{number:02d}", 32, 256_000, 4, "a100", ("a100", "ib")) for number in (1, 2)]
    nodes.append(FakeNode("spec01", 96, 1_000_000, 8, "h100", ("h100", "nvlink")))
    partitions = [
        FakePartition("gpu", ("gpu01", "gpu02"), False, 48 * _HOUR, _HOUR, 2000),
        FakePartition("cpu", ("cpu01", "cpu02"), True, 168 * _HOUR, _HOUR // 2, 1000),
        FakePartition("special", ("spec01",), False, 4 * _HOUR, _HOUR // 6, 4000, max_nodes=1, tier=10),
    ]
    return nodes, partitions


def partition_of_all(nodes: Sequence[FakeNode]) -> FakePartition:
    """The one partition of a test that names nodes only."""
    return FakePartition("main", tuple(node.name for node in nodes), default=True, default_time=_HOUR)


def host_list(names: Iterable[str]) -> str:
    """Names as Slurm writes them: cpu[01-02],gpu01."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names)):
        found = re.fullmatch(r"(.*?)(\d+)", name)
        if found is None:
            plain.append(name)
        else:
            groups.setdefault((found[1], len(found[2])), []).append(int(found[2]))
    return ",".join([*(_group(stem, width, numbers) for (stem, width), numbers in groups.items()), *plain])


def _group(stem: str, width: int, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{stem}{numbers[0]:0{width}d}"
    return f"{stem}[{spans(numbers, width)}]"


def spans(numbers: Iterable[int], width: int = 1, step: int = 1) -> str:
    """Numbers as ranges: 0-3,7."""
    found: list[str] = []
    for _, run in itertools.groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0] * step):
        items = [number for _, number in run]
        first, last = f"{items[0]:0{width}d}", f"{items[-1]:0{width}d}"
        found.append(first if len(items) == 1 else f"{first}-{last}")
    return ",".join(found)
