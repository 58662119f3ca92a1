"""Facts of small clusters, for the sections of get_fleet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.models.node import GpuGroup, Node, Partition
from slurm_agent_tools.settings import FleetSettings

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
G = 2**30


def node(name: str, kind: str = "", gpus: int = 0, used: int = 0, **more: Any) -> Node:
    """A node of 32 CPUs and 256G, a CPU and 8G taken with each GPU in use."""
    facts: dict[str, Any] = {
        "state": "idle" if not used else "mix", "partitions": ("main",), "cpus": 32, "cpus_used": used,
        "memory_bytes": 256 * G, "memory_free_bytes": None, "memory_used_bytes": 8 * G * used,
    }  # fmt: skip
    groups = (GpuGroup(kind, gpus, used),) if gpus else ()
    return Node(name=name, gpus=gpus, gpus_used=used, gpu_groups=groups, **{**facts, **more})


def partition(name: str = "main", **more: Any) -> Partition:
    facts: dict[str, Any] = {
        "state": "UP", "default": True, "nodes": 1, "max_time_seconds": 86400, "default_time_seconds": 3600,
    }  # fmt: skip
    return Partition(name=name, **{**facts, **more})


def facts(nodes: Sequence[Node], *partitions: Partition, **more: Any) -> FleetFacts:
    """One look; of one partition `main` where none is given."""
    known = partitions or (partition(),)
    given: dict[str, Any] = {"now": NOW, "settings": FleetSettings(), "reservations": (), "preemption": "none"}
    return FleetFacts(nodes=tuple(nodes), partitions={one.name: one for one in known}, **{**given, **more})
