"""Which tiers a job fits, the smallest first, and why not the others. Pure.

Compared are GPUs and their memory, memory, features, and of the partitions their limits of memory and time and who may
use them, by the accounts and QOS that the caller has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.diagnosis.phrases import flat, listed
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.fleet import gpu_tiers
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.sections import free_now
from slurm_agent_tools.fleet.sections.free_now import NodeRoom
from slurm_agent_tools.models.accounted import Association
from slurm_agent_tools.models.fleet_answer import MatchSection, NotMeasured, TierMatch
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.models.toolset_arguments import FleetNeed
from slurm_agent_tools.units import UNLIMITED, format_duration, human_memory, parse_memory, parse_time_limit

_LONGEST = 300


def section(facts: FleetFacts) -> MatchSection:
    """The tiers for `facts.need`. Raises InputError for a size that cannot be read."""
    need = facts.need or FleetNeed()
    wanted = _Wanted(need)
    free = free_now.rooms(facts)
    tiers = gpu_tiers.by_tier(facts.nodes, facts.settings)
    judged = [_judged(name, tiers[name], free, wanted, facts) for name in reversed(tiers)]
    fitting = [one for one in judged if one.fits]
    return MatchSection(
        need=wanted.words,
        best=fitting[0].tier if fitting else None,
        tiers=[*fitting, *(one for one in judged if not one.fits)],
    )


def sentence(made: MatchSection) -> str:
    """Where it goes."""
    if made.best is None:
        return f"No tier has {made.need}."
    now = made.tiers[0].startable
    when = "" if now is None else f", where {now} such jobs could start now" if now else ", where none could start now"
    return f"{made.need} fits {made.best}{when}."


def unknown(facts: FleetFacts) -> list[NotMeasured]:
    """What a match leaves open: who may use a partition, beside what is free."""
    limited = [
        NotMeasured(what=f"whether you may use partition {name}", why=told[:200])
        for name, one in facts.partitions.items()
        if one.state == "UP" and (told := _access(one, facts).unknown)
    ]
    return [*limited, *free_now.unknown(facts)]


class _Wanted:
    """What is needed, in numbers. `gpu_memory` in GB."""

    def __init__(self, need: FleetNeed) -> None:
        if need.gpus < 0:
            raise InputError("match.gpus", need.gpus, "is below 0", hint="Give the number of GPUs, 0 for none.")
        self.gpus = need.gpus
        self.memory = _size("match.memory", need.memory)
        each = _size("match.gpu_memory", need.gpu_memory)
        self.gpu_memory = None if each is None else each / 2**30
        self.features = _features(need.constraint)
        self.seconds = _seconds(need.time_limit)
        parts = [f"{self.gpus} {'GPU' if self.gpus == 1 else 'GPUs'}"]
        if self.gpus and self.gpu_memory is not None:
            parts[0] += f" of {self.gpu_memory:g}G"
        parts += [human_memory(self.memory)] if self.memory is not None else []
        parts += [f"features {flat(need.constraint or '')}"] if self.features else []
        parts += [f"a time limit of {_lasts(self.seconds)}"] if self.seconds is not None else []
        self.words = " and ".join(parts)


_FEATURE = re.compile(r"[\w.+:-]+", re.ASCII)


def _features(text: str | None) -> tuple[frozenset[str], ...]:
    """Alternatives of --constraint, each the features that one node has together; none where nothing is asked.

    Raises InputError for what says more than that: numbers of nodes, and both kinds of signs at once.
    """
    if text is None or not text.strip():
        return ()
    inner = text.strip()
    inner = inner[1:-1] if inner.startswith("[") and inner.endswith("]") else inner
    every = [re.split("[&,]", one) for one in inner.split("|")]
    names = [name.strip() for one in every for name in one]
    if not all(map(_FEATURE.fullmatch, names)) or (len(every) > 1 and len(names) > len(every)):
        hint = "Join names of features with & or with |, not with both; sinfo -o '%n %f' lists them."
        raise InputError("match.constraint", text, "cannot be compared with the nodes here", hint=hint)
    return tuple(frozenset(name.strip() for name in one) for one in every)


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_time_limit(text)
    except ValueError as error:
        raise InputError(
            "match.time_limit", text, str(error), hint="Write it as for --time, such as 2:00:00."
        ) from None


def _lasts(seconds: int) -> str:
    return "no end" if seconds == UNLIMITED else format_duration(seconds)


def _size(field: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_memory(text)
    except ValueError:
        raise InputError(field, text, "is no size", hint="Write a number with its unit, such as 40G.") from None


def _judged(
    tier: str, nodes: Sequence[Node], free: Sequence[NodeRoom], wanted: _Wanted, facts: FleetFacts
) -> TierMatch:
    """One tier. A job goes on one node; what no node has alone is told with what all have together."""
    good = facts.starting(nodes)
    why = _why_not(good, wanted, facts)
    if why is not None:
        return TierMatch(tier=tier, fits=False, why_not=why)
    fitting = {node.name: node for node in good if _fits(node, wanted, facts)}
    now = [room for room in free if room.node.name in fitting]
    told = sorted({name for node in fitting.values() for name in node.partitions})
    return TierMatch(
        tier=tier,
        fits=True,
        partitions=[name for name in told if _takes(name, wanted, facts)],
        nodes=len(fitting),
        startable=None if any(_untold(room.node) for room in now) else sum(_times(room, wanted, facts) for room in now),
    )


def _untold(node: Node) -> bool:
    return node.cpus_used is None or node.memory_used_bytes is None or (node.gpus > 0 and node.gpus_used is None)


def _why_not(good: Sequence[Node], wanted: _Wanted, facts: FleetFacts) -> str | None:
    """Why no node of a tier takes it; None where one does."""
    if not good:
        return "no node of it starts jobs now"
    near = {name for node in good if _has(node, wanted, facts) for name in node.partitions}
    if any(_fits(node, wanted, facts) for node in good):
        return None
    return _limited(near, wanted, facts) if near else _too_small(good, wanted, facts)


def _limited(near: Collection[str], wanted: _Wanted, facts: FleetFacts) -> str:
    """Of partitions of which none takes the job: each that is up has a limit."""
    up = [name for name in sorted(near) if facts.partitions[name].state == "UP"]
    told = {name: _barred(name, wanted, facts) or "" for name in up}
    if all(why == _MEMORY for why in told.values()):
        limits = [_memory_limit(name, facts) or 0 for name in up]
        return f"its partitions give a job {human_memory(max(limits))} a node at most"
    return listed(f"{name}: {why}" for name, why in told.items())[:_LONGEST]


def _too_small(good: Sequence[Node], wanted: _Wanted, facts: FleetFacts) -> str:
    """What no node of a tier has."""
    if wanted.gpus and not any(node.gpus for node in good):
        return "its nodes have no GPUs"
    large = [node for node in good if _enough(node, wanted, facts)]
    if wanted.gpus and not large:
        sizes = {_memory(kind, facts) for node in good for kind in gpu_tiers.kinds(node)}
        known = [size for size in sizes if size is not None]
        return f"its GPUs have {max(known):g}G at most" if known else "nothing says how much memory its GPUs have"
    if wanted.features and not any(_featured(node, wanted) for node in good):
        there = sorted({name for node in good for name in node.features})
        return f"its nodes have other features: {listed(there)}" if there else "its nodes have no features"
    large = [node for node in large if _featured(node, wanted)]
    most = max((_usable_gpus(node, wanted, facts) for node in large), default=0)
    if wanted.gpus > most:
        every = sum(_usable_gpus(node, wanted, facts) for node in large)
        return f"a node has {most} such GPUs at most (all together {every})"
    return f"a node that has the GPUs has {human_memory(max(node.memory_bytes for node in large or good))} at most"


def _memory(kind: str, facts: FleetFacts) -> float | None:
    return gpu_tiers.gpu_memory(kind, facts.settings.gpu_memory).size


def _suits(kind: str, wanted: _Wanted, facts: FleetFacts) -> bool:
    size = _memory(kind, facts)
    return wanted.gpu_memory is None or (size is not None and size >= wanted.gpu_memory)


def _enough(node: Node, wanted: _Wanted, facts: FleetFacts) -> bool:
    return any(_suits(kind, wanted, facts) for kind in gpu_tiers.kinds(node))


def _usable_gpus(node: Node, wanted: _Wanted, facts: FleetFacts) -> int:
    return sum(number for kind, number in gpu_tiers.kinds(node).items() if _suits(kind, wanted, facts))


def _fits(node: Node, wanted: _Wanted, facts: FleetFacts) -> bool:
    """Whether it has what is needed, and one of its partitions gives it."""
    return _has(node, wanted, facts) and (
        not node.partitions or any(_takes(name, wanted, facts) for name in node.partitions)
    )


def _takes(name: str, wanted: _Wanted, facts: FleetFacts) -> bool:
    """Whether a partition starts jobs, and gives one what is needed, as far as is known."""
    known = facts.partitions.get(name)
    return (known is None or known.state == "UP") and _barred(name, wanted, facts) is None


_MEMORY = "it gives less memory a node"


def _barred(name: str, wanted: _Wanted, facts: FleetFacts) -> str | None:
    """Why a partition takes no such job of the caller; None where nothing says so."""
    known, memory = facts.partitions.get(name), _memory_limit(name, facts)
    if known is None:
        return None
    if memory is not None and memory < (wanted.memory or 0):
        return _MEMORY
    longest = known.max_time_seconds
    asked = math.inf if wanted.seconds == UNLIMITED else wanted.seconds or 0
    if longest is not None and longest != UNLIMITED and asked > longest:
        return f"it gives a job {format_duration(longest)} at most"
    return _access(known, facts).closed


# --- Who may use a partition ------------------------------------------------------------------------------------------

_ALONE = re.compile(r"(1\d|2[0-2])\.")
"""Versions of Slurm in which an account that a partition names does not stand for those below it (slurm.conf(5))."""


@dataclass(frozen=True, slots=True)
class _Access:
    """Why the caller may not use a partition, or why that is not known; neither where they may."""

    closed: str | None = None
    unknown: str | None = None


def _access(partition: Partition, facts: FleetFacts) -> _Access:
    """By the words of the partition and the caller's accounts. One account has to fit all of them."""
    words = dict(word.split("=", 1) for word in partition.limited_to if "=" in word)
    told = f"it is limited: {', '.join(partition.limited_to)}"
    if not words:
        return _Access()
    if words.pop("RootOnly", "") == "YES" and facts.user != "root":
        return _Access(closed="it is for root alone")
    groups, alone = words.pop("AllowGroups", None), _ALONE.match(facts.version) is not None
    if words and facts.associations is None:
        return _Access(unknown=told)
    here = [one for one in facts.associations or () if one.partition in {None, partition.name}]
    by_qos = [one for one in here if _qos_fits(one, words)]
    if words and not by_qos:
        qos = listed(sorted({name for one in here for name in one.qos})) or "none"
        return _Access(closed=f"{told}, and your QOS are {flat(qos)}")
    if words and not any(_account_fits(one.account, words) for one in by_qos):
        yours = f"{told}, and your accounts are {flat(listed(sorted({one.account for one in by_qos})))}"
        return _Access(closed=yours) if alone else _Access(unknown=f"{yours}; those above them may count too")
    below_denied = not alone and "DenyAccounts" in words and "AllowAccounts" not in words
    return _Access(unknown=told) if groups is not None or below_denied else _Access()


def _account_fits(account: str, words: Mapping[str, str]) -> bool:
    if "AllowAccounts" in words:  # beside it DenyAccounts does not count
        return account in words["AllowAccounts"].split(",")
    return account not in words.get("DenyAccounts", "").split(",")


def _qos_fits(one: Association, words: Mapping[str, str]) -> bool:
    if "AllowQos" in words:
        return not one.qos.isdisjoint(words["AllowQos"].split(","))
    return not one.qos or not one.qos <= set(words.get("DenyQos", "").split(","))


def _memory_limit(name: str, facts: FleetFacts) -> int | None:
    known = facts.partitions.get(name)
    return None if known is None else known.max_mem_per_node or None


def _has(node: Node, wanted: _Wanted, facts: FleetFacts) -> bool:
    fits = (wanted.memory or 0) <= node.memory_bytes and wanted.gpus <= _usable_gpus(node, wanted, facts)
    return fits and _featured(node, wanted)


def _featured(node: Node, wanted: _Wanted) -> bool:
    return not wanted.features or any(one <= node.features for one in wanted.features)


def _times(room: NodeRoom, wanted: _Wanted, facts: FleetFacts) -> int:
    """How many such jobs a node takes now, each with one CPU at least."""
    counts = [room.cpus]
    if wanted.gpus:
        groups = room.node.gpu_groups
        told = [one for one in groups if _suits(one.kind, wanted, facts)]
        free = sum(one.total - (one.used or 0) for one in told) if groups else room.gpus
        counts.append(free // wanted.gpus)
    if wanted.memory:
        counts.append(room.memory // wanted.memory)
    return min(counts) if room.memory else 0
