"""sinfo: every node with its partitions, state and what is in use."""

from __future__ import annotations

import re
from dataclasses import replace

from slurm_agent_tools.models.node import Node
from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.transport.base import Completed

_COLUMNS = (
    "NodeList", "PartitionName", "StateCompact", "CPUsState", "Threads", "Memory", "FreeMem", "Gres", "GresUsed",
    "Reason",
)  # fmt: skip

_WIDTH = 256


def argv() -> list[str]:
    """One row per node and partition, every column `_WIDTH` bytes wide, whatever a reason holds."""
    wanted = ",".join(f"{name}:{_WIDTH}" for name in _COLUMNS)
    return ["sinfo", "--noheader", "--Node", f"--Format={wanted}"]


def parse(done: Completed) -> tuple[Node, ...]:
    """One record per node. Raises SlurmUnreachable and SlurmGarbled."""
    columns.check(done)
    found: dict[str, Node] = {}
    for row in _rows(done):
        cells = [columns.text(row[start : start + _WIDTH]).strip() for start in range(0, len(row), _WIDTH)]
        try:
            node = _node(dict(zip(_COLUMNS, cells, strict=True)))
        except (ValueError, KeyError) as error:
            raise columns.garbled(done, f"{cells} ({error})") from error
        seen = found.get(node.name)
        found[node.name] = node if seen is None else replace(seen, partitions=(*seen.partitions, *node.partitions))
    return tuple(found.values())


def _rows(done: Completed) -> list[bytes]:
    """Rows by their length: a reason may hold a newline."""
    if done.truncated:
        raise columns.garbled(done, "the answer is longer than can be read")
    width = _WIDTH * len(_COLUMNS)
    found = [done.stdout[start : start + width + 1] for start in range(0, len(done.stdout), width + 1)]
    for row in found:
        if len(row) != width + 1 or not row.endswith(b"\n"):
            raise columns.garbled(done, columns.text(row))
    return [row[:-1] for row in found]


def _node(cell: dict[str, str]) -> Node:
    used, _, _, cpus = (int(part) for part in cell["CPUsState"].split("/"))
    types = tuple(kind for kind, _ in _gpus(cell["Gres"]) if kind)
    return Node(
        name=cell["NodeList"],
        state=cell["StateCompact"],
        partitions=(cell["PartitionName"],),
        cpus=cpus,
        cpus_used=used,
        memory_bytes=int(cell["Memory"]) * 2**20,
        memory_free_bytes=int(cell["FreeMem"]) * 2**20 if cell["FreeMem"].isdigit() else None,
        gpus=sum(number for _, number in _gpus(cell["Gres"])),
        gpus_used=sum(number for _, number in _gpus(cell["GresUsed"])),
        gpu_types=types,
        reason=None if cell["Reason"] in {"none", ""} else cell["Reason"],
        threads_per_core=int(cell["Threads"]),
    )


def _gpus(text: str) -> list[tuple[str, int]]:
    """`gpu:a100:4(S:0-1),gpu:2(IDX:0)` as (type, number) pairs; what is in use without a type is `gpu:(null):2`."""
    pairs = re.findall(r"(?<![^,])gpu:(?:\(null\):|([^:,()]+):)?(\d+)", text)
    return [(kind or "", int(number)) for kind, number in pairs]
