"""Bare submissions and changes of every size and way of writing, made by chance from a fixed seed.

What each takes is told by the guard's own reading of its options, which shares nothing with the controller's plugin.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from typing import Literal

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.geometry import is_ranged
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.models.submission_ticket import Ceilings
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.policy.tickets import ceilings, node_of_site, worst_placement
from slurm_agent_tools.scripts.directive_lines import words_to_directives
from slurm_agent_tools.scripts.effective_request import effective

VERSION = os.environ.get("SLURM_AGENT_TEST_SLURM") or None
"""Of Slurm, as in 24.11; None for the distribution's own, 22.05."""

Tool = Literal["sbatch", "srun", "salloc"]
_MIB = 2**20


@dataclass(frozen=True)
class Shape:
    """One submission: its options as they are written."""

    tool: Tool
    words: tuple[str, ...]

    @property
    def request(self) -> JobRequest:
        return effective(words_to_directives(list(self.words), "argument"))

    def takes(self, uid: int, expires: int) -> Ceilings | None:
        """What it takes at most; None of one that does not say how much."""
        try:
            return ceilings(self.request, uid=uid, expires=expires, slurm=VERSION or "22.05")
        except InputError:
            return None

    def _takes_anywhere(self) -> Ceilings | None:
        """The same where Slurm chooses how many nodes there are, for which there is no ticket."""
        request = self.request
        try:
            return ceilings(request, uid=0, expires=0, slurm=VERSION or "22.05")
        except InputError as error:
            gpus = any(word.startswith(("--gpus", "--gres", "--ntasks-per-gpu")) for word in self.words)
            if error.field not in {"nodes", "ntasks", "cpus-per-task", "mincpus"} or (gpus and is_ranged(request)):
                return None
            return worst_placement(request, node_of_site(), uid=0, expires=0)

    def is_free(self, limits: Limits) -> bool:
        """Whether it is within the free band of every limit that the controller sees."""
        taken = self._takes_anywhere()
        if taken is None or taken.time_limit is None or taken.whole_nodes:
            return False
        memory, band = taken.memory_per_node, limits.memory_without_gpus
        if taken.gpus:
            memory, band = taken.memory_per_gpu, limits.memory_per_gpu
        return (
            memory is not None
            and memory * _MIB <= band.free
            and taken.gpus <= limits.gpus.free
            and taken.time_limit * 60 <= limits.time_limit.free
            and taken.array_at_once <= limits.max_concurrent_jobs
        )


@dataclass(frozen=True)
class Change:
    """A change of a job of 1 CPU or 2 GPUs, `gpu`, and whether the free limits, and a ticket, let it through."""

    gpu: bool
    words: str
    free: bool
    ticket: bool


def lower(taken: Ceilings, chance: random.Random) -> tuple[str, Ceilings]:
    """Ceilings that are one less in one thing, and in which."""
    memory = "memory_per_gpu" if taken.gpus else "memory_per_node"
    counts = ["time_limit", memory, "gpus", "cpus", "nodes", "array_tasks", "array_at_once"]
    least = {"gpus": 0, "time_limit": 0, memory: 0}
    names = [name for name in counts if (getattr(taken, name) or 0) > least.get(name, 1)]
    name = chance.choice([*names, *(["whole_nodes"] if taken.whole_nodes else [])])
    return name, replace(taken, **{name: False if name == "whole_nodes" else getattr(taken, name) - 1})


def shapes(count: int, seed: int = 17) -> list[Shape]:
    """The first of an endless row; most of them are beyond a limit."""
    chance = random.Random(seed)  # noqa: S311 - of tests
    return [_shape(chance) for _ in range(count)]


def _shape(chance: random.Random) -> Shape:
    tool: Tool = chance.choice(["sbatch"] * 3 + ["srun", "salloc"])
    words = _gpu(chance) if chance.random() < 0.55 else _cpu(chance)
    words += _time(chance, most=2 if "--partition=gpu" in words else 6)
    if tool == "sbatch" and chance.random() < 0.25:
        words.append(f"--array={_array(chance)}")
    if chance.random() < 0.04:
        words.append(chance.choice(["--exclusive", "--exclusive=user"]))
    chance.shuffle(words)
    return Shape(tool, tuple(words))


def _array(chance: random.Random) -> str:
    tasks = chance.choice(["0-3", "1-4", "0-9", "0-98:7", "1,3,5", "2,4-9", "7"])
    return tasks + chance.choice(["", "", "%1", "%3", "%4", "%5"])


def _time(chance: random.Random, most: int) -> list[str]:
    if chance.random() < 0.05:
        return []
    text = chance.choice(
        ["5", "90:30", "2:00:00", "12:00:00", "1-0", "24:00:00", "1439", "1440", "24:00:01", "1441", f"{most}-0"]
    )
    return [f"--time={text}"]


def _memory(chance: random.Random, sizes: list[str]) -> list[str]:
    """Of each size, now and then nothing, or all of a node."""
    luck = chance.random()
    return [] if luck < 0.04 else ["--mem=0"] if luck < 0.08 else [chance.choice(sizes)]


def _cpu(chance: random.Random) -> list[str]:
    layout = chance.choice(
        [[], ["--ntasks=1", "--cpus-per-task=4"], ["--ntasks=8"], ["--nodes=1", "--ntasks=8"], ["--nodes=2"],
         ["--ntasks=8", "--ntasks-per-node=4"], ["--nodes=2", "--ntasks=8"], ["--nodes=2", "--ntasks-per-node=3", "--cpus-per-task=2"],
         ["--mincpus=6"], ["--nodes=1-2", "--ntasks=5"], ["--cpus-per-task=3"], ["--extra-node-info=2:4:1"],
         ["--nodes=2", "--ntasks=2", "--mincpus=4"]]
    )  # fmt: skip
    sizes = [f"--mem={size}" for size in ("1G", "8G", "16G", "16384", "16385", "20G", "60G", "1500K")]
    sizes += [f"--mem-per-cpu={size}" for size in ("500M", "1G", "2G", "4G", "5G")]
    return ["--partition=cpu", *layout, *_memory(chance, sizes)]


def _gpu(chance: random.Random) -> list[str]:
    gpus = chance.choice([1, 1, 2, 3, 4])
    spread = chance.choice(["--nodes=1", "--nodes=2"])
    layout = chance.choice(
        [[f"--gpus={gpus}"], [f"--gpus={gpus}", "--nodes=1"], ["--gpus=6"], ["--gpus=8"], ["--gpus=a100:5"],
         [spread, f"--gpus-per-node={gpus}"], [spread, f"--gres=gpu:{gpus}"], [spread, f"--gres=gpu:a100:{gpus}"],
         [f"--ntasks={gpus}", "--gpus-per-task=1"], ["--nodes=1", "--ntasks=2", "--gpus-per-task=2"],
         ["--ntasks=5", "--gpus-per-task=1"], [f"--gpus={gpus}", "--nodes=1", f"--ntasks={2 * gpus}"],
         ["--nodes=1", f"--gpus={gpus}", "--cpus-per-gpu=4"], ["--ntasks=4", "--ntasks-per-gpu=2"], ["--gpus=2", "--ntasks=4", "--ntasks-per-gpu=2"],
         ["--nodes=1-2", "--gpus-per-node=2"], ["--nodes=2", f"--gpus={2 * gpus}"]]
    )  # fmt: skip
    sizes = [f"--mem={size}" for size in ("4G", "8G", "16G", "16385M", "32G", "48G", "65G")]
    sizes += [f"--mem-per-gpu={size}" for size in ("1G", "8G", "16G", "17G")] * 2
    sizes += [f"--mem-per-cpu={size}" for size in ("500M", "1G", "4G", "9G")]
    return ["--partition=gpu", *layout, *_memory(chance, sizes)]


def changes(count: int, seed: int = 17) -> list[Change]:
    """Changes by scontrol of a job of 60 minutes and 4 GB, or of two GPUs on a node and 16 GB, to about the limits.

    The ticket is for 1500 minutes, and 20 GB on a node or for each GPU.
    """
    chance = random.Random(seed)  # noqa: S311 - of tests
    made = []
    for _ in range(count):
        gpu, what = chance.random() < 0.5, chance.choice(["time", "memory", "memory", "by_cpu", "gpus", "other"])
        if what == "time":
            minutes = chance.choice([30, 1440, 1441, 1500, 1501, 2000])
            made.append(Change(gpu, f"TimeLimit={minutes}", minutes <= 1440, minutes <= 1500))
        elif what == "memory":
            size = chance.choice([1000, 4096, 16384, 16385, 20480, 20481, 32768, 32769, 40960, 40961, 0])
            share = size / 2 if gpu else size
            made.append(Change(gpu, f"MinMemoryNode={size}", 0 < share <= 16384, 0 < share <= 20480))
        elif what == "by_cpu" and not gpu:  # it has memory for the node
            size = chance.choice([1000, 16384, 16385, 20480, 20481, 0])
            made.append(Change(gpu, f"MinMemoryCPU={size}", free=False, ticket=False))
        elif what == "gpus" and gpu:
            count_ = chance.choice([1, 2, 3, 4])  # only made fewer, and 16 GB are free for one
            made.append(Change(gpu, f"TresPerJob=gres:gpu:{count_}", count_ <= 2, count_ <= 2))
        else:
            words, good = chance.choice([("Requeue=1", False), ("Requeue=0", True), ("JobName=other", True)])
            made.append(Change(gpu, words, good, good))
    return made
