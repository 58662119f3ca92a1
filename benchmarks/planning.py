"""Planning on real workloads: the replay beside published figures, packing beside its bound.

TRACES names the folder of the traces. They are not ours to ship: without it the rows are missing, and that is said.
"""

from __future__ import annotations

import csv
import gzip
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.table import Row

from slurm_agent_tools.planning.compare import bounded_slowdowns
from slurm_agent_tools.planning.gangs import GANG_ORDERS, replay_gangs
from slurm_agent_tools.planning.packing import pack
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.simulate import Replay, replay
from slurm_agent_tools.planning.strategies import STRATEGIES
from slurm_agent_tools.planning.workload import TracedJob, Workload, ordered, playable, read_swf

KTH, GANGS = "KTH-SP2-1996.swf.gz", "tiresias-60_job.csv.gz"

PODS = "alibaba-2023-openb_pod_list_default.csv.gz"

_NODE = JobPool("node", gpus=8, cpus=96_000, memory_bytes=393_216 * 2**20)
"""The commonest node of that cluster; CPUs in thousandths."""

_OVER = 3.0  # percent over the bound

_PREDICTSIM = (130.69, 112.556)
"""Mean wait in minutes and mean bounded slowdown that predictsim prints for the first 3,000 lines under EASY."""

_PUBLISHED = {"easy": 114.2, "easy-shortest": 102.0, "easy-predicted": 94.0, "easy-exact": 91.0}
"""Mean waits in minutes (Tsafrir, Etsion and Feitelson 2007)."""

_TIRESIAS = {
    "first-blocks": 1556.5, "whoever-fits": 715.3, "shortest-remaining": 519.9, "smallest-remaining": 563.4,
    "least-attained": 715.3,
}  # fmt: skip
"""Mean completion times in seconds that Tiresias' own simulator prints for its 60 jobs on 8 GPUs."""

_CPU = 1.0  # seconds for 30,000 jobs


def rows() -> list[Row]:
    """All rows whose traces are there."""
    folder = os.environ.get("TRACES")
    found: list[Row] = []
    for needed, make in _PARTS:
        if folder is None or not (Path(folder) / needed).is_file():
            print(f"planning: {needed} is missing: TRACES names the folder of the traces", file=sys.stderr)
        else:
            found += make(Path(folder) / needed)
    return found


def _replayed(path: Path) -> Iterator[Row]:
    """Waits on KTH, as far as they are from what others found, and the CPU that a replay takes."""
    data = path.read_bytes()
    part = replay(playable(read_swf(data, lines=3000)), STRATEGIES["easy"])
    for what, ours, theirs in zip(("mean wait [min]", "slowdown"), _means(part), _PREDICTSIM, strict=True):
        yield Row(f"KTH, 3,000 lines, EASY: {what}", ours, "", "predictsim", theirs)
        yield Row("the same, less the reference", abs(ours - theirs), "", limit=0.005)
    whole = playable(read_swf(data))
    for name, published in _PUBLISHED.items():
        begin = time.process_time()
        done = replay(whole, STRATEGIES[name])
        spent = time.process_time() - begin
        wait, _ = _means(done)
        yield Row(f"KTH, {name}: mean wait [min]", wait, "", "published", published)
        yield Row("the same, off by [%]", abs(wait / published - 1) * 100, "", limit=4.0)
        yield Row("the same, CPU of 30,000 jobs [s]", spent * 30_000 / len(whole.jobs), "", limit=_CPU)
        yield Row("the same, faults of the schedule", len(done.faults), "", limit=0)
    begin = time.process_time()
    replay(whole, STRATEGIES["easy-similar"])
    spent = time.process_time() - begin
    yield Row("KTH, by similar jobs: CPU of 30,000 jobs [s]", spent * 30_000 / len(whole.jobs), "", limit=_CPU)


def _means(done: Replay) -> tuple[float, float]:
    count = len(done.starts)
    return math.fsum(done.waits) / count / 60, math.fsum(bounded_slowdowns(done)) / count


def _shared(path: Path) -> Iterator[Row]:
    """The 60 jobs of Tiresias in its five orders."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        jobs = [
            TracedJob(
                int(row["job_id"]), float(row["submit_time"]), float(row["duration"]), int(row["num_gpu"]), None, ""
            )
            for row in csv.DictReader(file)
        ]
    load: Workload = ordered("Tiresias, 60 jobs", jobs, 8, {})
    for name, printed in _TIRESIAS.items():
        done = replay_gangs(load, GANG_ORDERS[name])
        yield Row(f"Tiresias, {name}: completion [s]", done.mean_completion, "", "Tiresias", printed)
        yield Row("the same, less the reference", abs(round(done.mean_completion, 1) - printed), "", limit=0.0001)


def _packed(path: Path) -> Iterator[Row]:
    """The first 3,000 pods, all at once; those that the node cannot hold are left out, and told."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        listed = [row for row, _ in zip(csv.DictReader(file), range(3000), strict=False)]
    jobs = [_pod(row) for row in listed]
    held = [job for job in jobs if job.cpus <= (_NODE.cpus or 0) and job.memory_bytes <= (_NODE.memory_bytes or 0)]
    begin = time.process_time()
    packing = pack(held, _NODE)
    spent = time.process_time() - begin
    yield Row(f"Alibaba, {len(held)} of 3,000 pods: nodes", len(packing.nodes), "", "bound", packing.bound)
    yield Row("the same, above the bound [%]", packing.gap * 100, "", limit=_OVER)
    yield Row("the same, first fit above it [%]", (packing.first_fit / packing.bound - 1) * 100, "")
    yield Row("the same, CPU [s]", spent, "", limit=10.0)


def _pod(row: dict[str, str]) -> PlannedJob:
    part, memory = int(row["gpu_milli"]), int(row["memory_mib"]) * 2**20
    shared = 0 < part < 1000
    return PlannedJob(
        row["name"], 1.0, gpus=0 if shared else int(row["num_gpu"]), cpus=int(row["cpu_milli"]), memory_bytes=memory,
        share=part / 1000 if shared else None,
    )  # fmt: skip


_PARTS: tuple[tuple[str, Callable[[Path], Iterator[Row]]], ...] = ((KTH, _replayed), (GANGS, _shared), (PODS, _packed))
