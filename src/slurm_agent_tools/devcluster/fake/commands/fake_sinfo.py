"""sinfo: its version, and nodes in columns of fixed width."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.devcluster.fake.answering import Answer, Session, UnknownCommand, full_version
from slurm_agent_tools.devcluster.fake.controller import Controller
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition, spans


def run_sinfo(session: Session, words: Sequence[str]) -> Answer:
    """sinfo --version, or --Node with columns of fixed width."""
    slurm = session.slurm
    if list(words[1:]) == ["--version"]:
        return Answer(f"slurm-wlm {full_version(slurm)}\n")
    if list(words[1:3]) != ["--noheader", "--Node"] or not words[3].startswith("--Format=") or len(words) > 4:
        raise UnknownCommand(words)
    columns = [item.split(":") for item in words[3].removeprefix("--Format=").split(",")]
    rows = ""
    for name in sorted(slurm.nodes):
        for part in slurm.partitions.values():
            if name in part.nodes:
                cells = _node_cells(slurm, slurm.nodes[name], part)
                rows += "".join(f"{cells[key][: int(width)]:<{width}}" for key, width in columns) + "\n"
    return Answer(rows)


def _node_cells(slurm: Controller, node: FakeNode, part: FakePartition) -> dict[str, str]:
    used = node.cpus_used if node.down is None else 0
    away = node.cpus - used if not node.usable else 0
    none = "(null)" if slurm.version >= (26, 5) else "gpu:0"
    index = spans(node.gpus_used) or "N/A"
    return {
        "NodeList": node.name,
        "PartitionName": part.name,
        "StateCompact": node.state,
        "CPUsState": f"{used}/{node.cpus - used - away}/{away}/{node.cpus}",
        "Threads": "1",
        "Memory": str(node.memory),
        "FreeMem": str(node.memory - node.memory_used),
        "Gres": f"gpu:{node.gpu_type}:{node.gpus}" if node.gpus else "(null)",
        "GresUsed": f"gpu:{node.gpu_type}:{len(node.gpus_used)}(IDX:{index})" if node.gpus else none,
        "Reason": node.down or node.drained or "none",
    }
