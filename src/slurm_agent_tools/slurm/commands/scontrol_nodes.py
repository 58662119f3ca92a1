"""scontrol show nodes: every node with what jobs were given of it, its GPUs by type, and since when a reason stands."""

from __future__ import annotations

import re
from functools import lru_cache

from slurm_agent_tools.models.node import GpuGroup, Node
from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import parse_time

_NAME = "NodeName="

_NONE = "(null)"

_OF_PEOPLE = (" Reason=", " Comment=", " Extra=")
"""A reason, a comment and what is extra: Slurm prints what people write behind everything else."""

_REASON = re.compile(r" +Reason=(.*?) \[[^\[\]@\s]*@(\d+)\]", re.DOTALL)

_GPUS = re.compile(r"(?<![^,])gpu:(?:\(null\):|([^:,()=]+):)?(\d+)")
"""A type, where there is one, and a number: `gpu:a100:4(S:0-1)`, or `gpu:(null):2(IDX:0-1)` in use without a type."""

_SHARED = re.compile(r"(?<![^,])(?:shard|mps):(?:\(null\):|([^:,()=]+):)?(\d+)(?:\((\d+/\d+(?:,\d+/\d+)*)\))?")
"""Parts of GPUs, `shard:a100:3(3/4,0/4)`: in use and there, GPU by GPU. One of which a part is in use is not free."""

_SHORT = {"MIXED": "mix", "ALLOCATED": "alloc", "COMPLETING": "comp", "UNKNOWN": "unk", "ERROR": "err"}

_BUSY = frozenset({"mix", "alloc", "comp"})

_STARTS_NOTHING = {"INVALID_REG": "inval", "REBOOT_ISSUED": "boot", "BLOCKED": "blocked"}
"""Flags that keep new jobs away whatever the state beside them is."""

_INSTEAD = {"MAINTENANCE": "maint", "MAINT": "maint", "RESERVED": "resv", "PLANNED": "plnd", "COMPLETING": "comp"}
"""Flags that sinfo shows in place of an idle state, those that count first at the front."""

_SIGNS = {"POWERING_UP": "#", "POWERING_DOWN": "%", "POWERED_DOWN": "~", "POWER_DOWN": "!"}


def argv() -> list[str]:
    """Every node, one a line, with the GPUs that are in use."""
    return ["scontrol", "show", "nodes", "--details", "--oneliner"]


class NodeRecords:
    """Nodes by what was told of them last: of thousands few change from look to look, and only those are read."""

    def __init__(self) -> None:
        self._known: dict[str, Node] = {}

    def parse(self, done: Completed) -> tuple[Node, ...]:
        """One record per node. Raises SlurmUnreachable and SlurmGarbled."""
        self._known = {text: self._known.get(text) or _read(text, done) for text in _records(done)}
        return tuple(self._known.values())


def _records(done: Completed) -> list[str]:
    columns.check(done)
    if done.truncated:
        raise columns.garbled(done, "the answer is longer than can be read")
    records: list[str] = []
    for line in columns.text(done.stdout).removesuffix("\n").split("\n"):
        if line.startswith(_NAME):
            records.append(line)
        elif records:
            records[-1] += f"\n{line}"  # a reason may hold a newline
    return records


def _read(record: str, done: Completed) -> Node:
    try:
        return _node(record)
    except (ValueError, KeyError) as error:
        raise columns.garbled(done, str(error)) from error


def _node(record: str) -> Node:
    facts = record[: min((at for sign in _OF_PEOPLE if (at := record.find(sign)) >= 0), default=len(record))]
    cell = dict(part.split("=", 1) for part in reversed(facts.split()) if "=" in part)  # first ones count
    said = _REASON.search(record, len(facts))
    groups = _groups(cell.get("Gres", _NONE), cell.get("GresUsed", _NONE))
    state, flags = _state(cell["State"])
    used = None if any(one.used is None for one in groups) else sum(one.used or 0 for one in groups)
    allocated = cell.get("AllocMem", "")
    return Node(
        name=cell["NodeName"],
        state=state,
        partitions=tuple(name for name in cell.get("Partitions", "").split(",") if name),
        cpus=int(cell["CPUEfctv"] if "CPUEfctv" in cell else cell["CPUTot"]),
        cpus_used=int(cell["CPUAlloc"]),
        memory_bytes=(int(cell["RealMemory"]) - _reserved(cell)) * 2**20,
        memory_free_bytes=int(cell["FreeMem"]) * 2**20 if cell.get("FreeMem", "").isdigit() else None,
        gpus=sum(one.total for one in groups),
        gpus_used=used,
        gpu_types=tuple(one.kind for one in groups if one.kind),
        reason=None if said is None else said[1].strip() or None,
        threads_per_core=int(cell.get("ThreadsPerCore", "1")),
        memory_used_bytes=int(allocated) * 2**20 if allocated.isdigit() else None,
        gpu_groups=groups,
        since=None if said is None else parse_time(said[2]),
        flags=flags,
        features=frozenset((columns.stated(cell.get("ActiveFeatures", "")) or "").split(",")) - {""},
    )


def _reserved(cell: dict[str, str]) -> int:
    """MiB that no job is given (MemSpecLimit in slurm.conf), as CPUEfctv is without the cores that are kept so."""
    text = cell.get("MemSpecLimit", "")
    return min(int(text), int(cell["RealMemory"])) if text.isdigit() else 0


@lru_cache(maxsize=4096)
def _groups(there: str, in_use: str) -> tuple[GpuGroup, ...]:
    """GPUs by type. Where Slurm tells nothing of what is in use (`GresUsed` is missing), that is not known.

    Slurm may know a type of what is in use that the configuration does not name, or the other way round: nodes with one
    group have all in it, and of several it is not known which.
    """
    total = _counts(_GPUS.findall(there))
    used = _counts(_GPUS.findall(in_use))
    for kind, number, each in _SHARED.findall(in_use):
        busy = sum(not one.startswith("0/") for one in each.split(",")) if each else 0
        used[kind] = used.get(kind, 0) + max(busy, int(number) > 0)
    used = {kind: number for kind, number in used.items() if number}
    if len(total) == 1:
        kind, number = next(iter(total.items()))
        used = {kind: min(number, sum(used.values()))}
    known = in_use not in {_NONE, ""} and used.keys() <= total.keys()
    return tuple(
        GpuGroup(kind, number, min(number, used.get(kind, 0)) if known else None) for kind, number in total.items()
    )


def _counts(pairs: list[tuple[str, str]]) -> dict[str, int]:
    """The numbers of one type together."""
    found: dict[str, int] = {}
    for kind, number in pairs:
        found[kind] = found.get(kind, 0) + int(number)
    return found


@lru_cache(maxsize=4096)
def _state(text: str) -> tuple[str, frozenset[str]]:
    """`IDLE*+DRAIN` as sinfo's compact word, `drain*`, and the flags."""
    first, *rest = text.split("+")
    base = first.rstrip("*~#%!$@^-")
    flags = frozenset(part.rstrip("*~#%!$@^-") for part in rest)
    word = _SHORT.get(base, base.lower())
    if "DRAIN" in flags:
        word = "drng" if word in _BUSY or "COMPLETING" in flags else "drain"
    elif "FAIL" in flags:
        word = "failg" if word in _BUSY else "fail"
    elif word != "down" and not flags.isdisjoint(_STARTS_NOTHING):
        word = next(short for flag, short in _STARTS_NOTHING.items() if flag in flags)
    elif word == "idle":
        word = next((short for flag, short in _INSTEAD.items() if flag in flags), word)
    sign = next((sign for flag, sign in _SIGNS.items() if flag in flags), "")
    return f"{word}{'*' if '*' in text or 'NOT_RESPONDING' in flags else sign}", flags
