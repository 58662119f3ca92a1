"""What a cluster's accounting tells of some weeks: jobs, nodes and what was kept from whom. Times in seconds, UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_agent_tools.models.node import Node, Partition


@dataclass(frozen=True, slots=True)
class AccountedJob:
    """One job or array task. None: not known, or not measured. Memory in bytes, times in seconds since 1970.

    `ready`: from when it could start; None where it never could. `cpus`, `memory` and `gpus` are what it was given, or
    asks for while it waits; `gpu_types`: the kinds that it asked for by name. `memory_used`: the most of all its nodes
    together. `gpu_busy`: 0..1. `reason`: why it waits, or was last kept waiting by something other than resources.
    """

    user: str
    name: str
    partitions: tuple[str, ...]
    state: str
    ready: float | None
    start: float | None
    end: float | None
    cpus: int | None
    memory: int | None
    gpus: int
    node_count: int
    nodes: frozenset[str] = frozenset()
    gpu_types: frozenset[str] = frozenset()
    limit: int | None = None
    memory_used: int | None = None
    gpu_busy: float | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    reason: str | None = None

    @property
    def run(self) -> float | None:
        """Seconds that it ran; None while it runs."""
        return None if self.start is None or self.end is None else max(0.0, self.end - self.start)


@dataclass(frozen=True, slots=True)
class Association:
    """An account that a user may submit under, with the QOS there; `partition` None where it holds for all.

    `user`, `parent` and `default_qos`: None where they were not asked for, and empty where there is none. Without a
    user it is the account itself, which alone has a parent.
    """

    account: str
    qos: frozenset[str]
    partition: str | None = None
    user: str | None = None
    parent: str | None = None
    default_qos: str | None = None


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """Nodes that were not there for everybody from `start` to `end`: down or drained, or kept by a reservation.

    `name`: the reservation's, or the node's state. `maintenance`: kept for work on the nodes.
    """

    name: str
    nodes: frozenset[str]
    start: float
    end: float
    maintenance: bool = False


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """What ran, waited and was there between two times. `own`: only this user's jobs were to be seen.

    `kept` and `outages` are None where the accounting did not tell of them.
    """

    cluster: str
    begin: float
    end: float
    jobs: tuple[AccountedJob, ...]
    nodes: Mapping[str, Node]
    partitions: Mapping[str, Partition]
    own: bool = False
    kept: tuple[NodeSpan, ...] | None = ()
    outages: tuple[NodeSpan, ...] | None = ()

    @property
    def hours(self) -> float:
        """How long it is."""
        return (self.end - self.begin) / 3600
