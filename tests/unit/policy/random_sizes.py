"""Requests of every size, made by chance, as their options and as what sbatch makes of them for the controller's plugin."""

from __future__ import annotations

import random
from collections.abc import Mapping

Options = Mapping[str, str]

_COUNTS = {
    "nodes": (0.5, ["1", "2", "3", "1-2", "2-4"]), "ntasks": (0.5, ["1", "2", "3", "5", "8"]),
    "ntasks-per-node": (0.35, ["1", "2", "4"]), "cpus-per-task": (0.5, ["1", "2", "3", "8"]), "mincpus": (0.08, ["2", "5"]),
}  # fmt: skip
"""How often an option is given, and what it says."""

_KINDS = ("gpus", "gpus", "gpus-per-node", "gres", "gpus-per-task", "gpus-per-task", "ntasks-per-gpu")

_MEMORY = (("mem", "min_mem_per_node"), ("mem-per-cpu", "min_mem_per_cpu"), ("mem-per-gpu", "mem_per_tres"))


def options(chance: random.Random) -> dict[str, str]:
    """Option -> value of one request that Slurm takes, most of them with GPUs."""
    while _refused(made := _options(chance)) or _has_no_ticket(made):
        pass
    return made


def _has_no_ticket(made: Options) -> bool:
    """GPUs on a range of nodes, and tasks with which GPUs go and that are counted in two ways: sbatch takes them."""
    one = _Numbers(made)
    if one.of_gpu and not (one.gpus or one.of_node or one.of_task):
        return True
    if one.tasks and one.on_node and (one.of_task or one.of_gpu):
        nodes = one.low if one.fixed else max(one.low, -(-one.tasks // one.on_node))
        if one.tasks != nodes * one.on_node:
            return True
    nodes = one.low or max(1, -(-one.tasks // one.on_node) if one.on_node else 1)
    somewhere = one.gpus and not (one.of_node or one.of_task)
    if somewhere and "mem-per-gpu" in made and nodes > 1 and (one.of_gpu or one.gpus < nodes):
        return True
    if somewhere and (one.cpus_of_gpu or not one.cpus) and one.fixed and 0 < one.low * one.on_node < one.tasks:
        return True
    if one.of_task and (one.cpus_of_gpu or not one.cpus) and _is_uneven(one, nodes):
        return True
    return one.ranged and (one.gpus or one.of_node or one.of_task or one.of_gpu) > 0


def _is_uneven(one: _Numbers, nodes: int) -> bool:
    """Whether nodes may have different numbers of its tasks."""
    tasks = one.tasks or one.on_node * nodes or (one.gpus // one.of_task if one.gpus else nodes)
    told = one.fixed or (one.on_node and not one.gpus)
    return tasks > 1 and (one.low, one.high) != (1, 1) and not (told and tasks == nodes * (one.on_node or 1))


def _options(chance: random.Random) -> dict[str, str]:
    made = {name: chance.choice(values) for name, (often, values) in _COUNTS.items() if chance.random() < often}
    if chance.random() < 0.7:
        kind, count = chance.choice(_KINDS), chance.choice(["1", "2", "3", "4"])
        made[kind] = f"gpu:{count}" if kind == "gres" else count
        if kind == "gpus" and chance.random() < 0.25:
            made[chance.choice(["gpus-per-node", "gpus-per-task"])] = chance.choice(["1", "2"])
        if "cpus-per-task" not in made and chance.random() < 0.3:
            made["cpus-per-gpu"] = chance.choice(["1", "2", "6"])
    memory, _ = chance.choice(_MEMORY if {*_KINDS[:-1]} & set(made) else _MEMORY[:2])
    return made | {memory: f"{chance.choice([1, 2, 3, 4, 5, 8, 16, 17, 24])}G"}


class _Numbers:
    """The values of a request as numbers, 0 where one is not given."""

    def __init__(self, made: Options) -> None:
        low, _, high = made.get("nodes", "").partition("-")
        self.made, self.low, self.high, self.ranged = made, int(low or 0), int(high or low or 0), bool(high)
        self.tasks, self.on_node, self.cpus, self.of_gpu, self.gpus, self.of_task, self.cpus_of_gpu = (
            int(made.get(name, 0)) for name in ("ntasks", "ntasks-per-node", "cpus-per-task", "ntasks-per-gpu", "gpus",
                                                "gpus-per-task", "cpus-per-gpu")
        )  # fmt: skip
        self.of_node = int(made.get("gpus-per-node") or made.get("gres", "0").removeprefix("gpu:"))
        self.fixed = self.low > 0 and not self.ranged


def _refused(made: Options) -> bool:
    """Whether sbatch 22.05.8 or its controller refuses it (each reason is one that they gave)."""
    one = _Numbers(made)
    if one.gpus and one.of_node:
        nodes, uneven = one.gpus // one.of_node, one.gpus % one.of_node != 0
        least, most = (min(end, one.tasks or end) for end in (one.low or nodes, one.high or 99))
        if uneven or not least <= nodes <= most or one.tasks > (one.on_node or 99) * nodes:
            return True
        tasks = one.tasks or (0 if one.ranged else one.on_node * (one.low or 1))
        return 0 < tasks < nodes  # which sbatch takes, and for which there is no ticket
    if one.of_task and one.gpus:
        tasks = one.tasks or (one.on_node or one.fixed) * one.low
        return one.gpus % one.of_task != 0 or (tasks > 0 and tasks * one.of_task != one.gpus)
    if one.of_gpu:
        return one.on_node > 0 or not (one.tasks or one.fixed) or one.tasks % one.of_gpu != 0
    if one.of_task and (not (one.tasks or one.on_node or one.fixed) or 0 < one.tasks < one.on_node):
        return True
    return one.low > 0 and 0 < one.on_node * one.high < one.tasks


def fields(made: Options) -> dict[str, object]:
    """What job_submit.lua is told of this request, as sbatch 22.05.8 sends it (measured with 3,000 of them)."""
    one = _Numbers(made)
    low, high = one.low, one.high
    if one.tasks and low:  # nodes for which there is no task are left out
        low, high = min(low, one.tasks), min(high, one.tasks)
    tasks = _tasks(one, low)
    if one.gpus and one.of_node:
        low = high = max(-(-one.gpus // one.of_node), low)
    elif high:
        high = min(high, one.gpus or (tasks // one.of_gpu if one.of_gpu else 0) or high)
    cpus = one.cpus_of_gpu * one.of_task or one.cpus
    told: dict[str, object] = {
        "num_tasks": tasks, "min_nodes": low, "max_nodes": high, "cpus_per_task": cpus, "ntasks_per_node": one.on_node,
        "ntasks_per_tres": one.of_gpu, "pn_min_cpus": max(int(made.get("mincpus", 0)), one.cpus),
        "min_cpus": _least_cpus(one, tasks), "tres_per_job": _tres(one.gpus), "tres_per_node": _tres(one.of_node),
        "gres": _tres(one.of_node), "tres_per_task": _tres(one.of_task), "cpus_per_tres": _tres(one.cpus_of_gpu),
    }  # fmt: skip
    for option, field in _MEMORY:
        size = int(made.get(option, "0G").removesuffix("G")) * 1024
        told |= {field: _tres(size)} if field == "mem_per_tres" else {field: size}
    told["pn_min_memory"] = told["min_mem_per_node"] or told["min_mem_per_cpu"]
    return {name: value for name, value in told.items() if value}


def _tasks(one: _Numbers, low: int) -> int:
    if one.tasks:
        return one.tasks
    if one.on_node and not one.ranged:
        return one.on_node * (low or 1)
    if one.gpus and one.of_task:
        return one.gpus // one.of_task
    return low * (one.of_gpu or bool(one.of_task)) if one.fixed else 0


def _least_cpus(one: _Numbers, tasks: int) -> int:
    """Counted before GPUs are looked at."""
    known = tasks if one.tasks or (one.on_node and not one.ranged) or (one.of_task and not one.gpus) else 0
    return (one.cpus or 1) * (known or (one.low if one.fixed else 1))


def _tres(count: int) -> str | None:
    return f"gres:gpu:{count}" if count else None
