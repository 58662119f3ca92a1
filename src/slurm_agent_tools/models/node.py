"""What Slurm says of nodes, partitions and reservations. Memory in bytes, times in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

_TROUBLE = ("down", "fail", "inval", "err", "unk")

_DRAINS = ("drain", "drng")


@dataclass(frozen=True, slots=True)
class GpuGroup:
    """GPUs of one type on a node; `kind` is Slurm's word for it, empty where it has none. `used` None: not told."""

    kind: str
    total: int
    used: int | None


@dataclass(frozen=True, slots=True)
class Node:
    """One node; memory in bytes. `cpus_used` and `gpus_used` are None where Slurm does not tell."""

    name: str
    state: str
    partitions: tuple[str, ...]
    cpus: int
    cpus_used: int | None
    memory_bytes: int
    memory_free_bytes: int | None
    gpus: int
    gpus_used: int | None
    gpu_types: tuple[str, ...] = ()
    reason: str | None = None
    threads_per_core: int = 1
    memory_used_bytes: int | None = None  # what jobs were given, used or not
    gpu_groups: tuple[GpuGroup, ...] = ()
    since: datetime | None = None
    flags: frozenset[str] = frozenset()  # Slurm's words beside the state: CLOUD, DRAIN, MAINTENANCE, RESERVED
    features: frozenset[str] = frozenset()  # what --constraint can name of it now

    @property
    def troubled(self) -> bool:
        """True where it is down, failing, registered wrongly, not heard of, or does not answer (`*`).

        One that is drained, reserved or powered off is in no trouble.
        """
        state = self.state.lower()
        return "*" in state or state.startswith(_TROUBLE)

    @property
    def drained(self) -> bool:
        """True where an administrator, or Slurm, keeps new jobs from it; those that it has may go on."""
        return self.state.lower().startswith(_DRAINS)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition from `scontrol show partition`, with what its nodes have. Memory in bytes, time in seconds."""

    name: str
    state: str
    default: bool
    nodes: int
    max_time_seconds: int | None  # None: no limit
    default_time_seconds: int | None
    max_nodes: int | None = None
    def_mem_per_cpu: int | None = None
    def_mem_per_gpu: int | None = None
    def_mem_per_node: int | None = None
    def_cpu_per_gpu: int | None = None
    max_mem_per_node: int | None = None
    max_mem_per_cpu: int | None = None
    exclusive: bool = False  # OverSubscribe=EXCLUSIVE
    total_cpus: int | None = None
    total_gpus: int = 0
    gpus_per_node: int = 0  # largest over its nodes
    cpus_per_node: int = 0
    memory_per_node: int = 0  # smallest over its nodes
    memory_per_node_max: int = 0  # largest over its nodes; 0: the same as the smallest
    gpus_per_node_min: int = 0  # smallest over those of its nodes that have any; 0: the same as the largest
    threads_per_core: int = 1  # largest over its nodes
    tier: int = 1  # PriorityTier
    preempt_mode: str = "OFF"  # what happens to its jobs where others go before them
    limited_to: tuple[str, ...] = ()  # Slurm's words for who alone may use it: AllowAccounts=physics; () is everybody

    @property
    def largest_memory(self) -> int:
        """Bytes of the node that has the most; 0 where it is not known."""
        return max(self.memory_per_node, self.memory_per_node_max)

    def cpus_for(self, memory: int) -> int:
        """CPUs that Slurm makes of so many bytes, as one may have no more than MaxMemPerCPU; 0 without that."""
        return -(-memory // self.max_mem_per_cpu) if self.max_mem_per_cpu else 0


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that are kept from `start` to `end`; `flags` are Slurm's words, `partition` None where it names none."""

    name: str
    start: datetime
    end: datetime
    nodes: frozenset[str]
    partition: str | None = None
    flags: frozenset[str] = frozenset()

    @property
    def maintenance(self) -> bool:
        """True where it is kept for work on the nodes."""
        return "MAINT" in self.flags
