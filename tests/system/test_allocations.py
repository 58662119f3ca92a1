"""What Slurm allocates beside what it shows while a job waits: each way to get more is refused or pinned before."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.system.faces import Place
from tests.system.test_guard import rules

from slurm_agent_tools.devcluster import config_files, definition, lifecycle

GIB = 1024
"""Slurm counts in MB."""
LIMIT = 16 * GIB
NODE = re.compile(r"\n     Nodes=(\S+) CPU_IDs=\S+ Mem=(\d+) GRES=(\S*)")


@dataclass(frozen=True)
class Case:
    """A request; (pending, allocated) memory in GB by a bare sbatch; GPUs that others hold on the two nodes; what the
    guard does: the rule that speaks, or None where it goes through, and then the options that it pins. `newer`: the
    same memory on a newer Slurm, where it differs."""

    asks: str
    bare: tuple[int, int]
    rule: str | None = None
    pins: tuple[str, ...] = ()
    others: tuple[int, int] = (0, 0)
    partition: str = "gpu"
    newer: Mapping[str, tuple[int, int]] = field(default_factory=dict)


CASES = {
    "one node": Case("--mem=64G --gpus=4 -N1", (64, 64)),
    "scattered": Case("--mem=64G --gpus=4", (64, 128), pins=("--nodes=1",), others=(2, 2)),
    "three and one": Case("--mem=64G --gpus=4 -N2", (128, 128), "memory-per-gpu", others=(0, 3)),
    "scattered but small": Case("--mem=16G --gpus=2", (16, 32), pins=("--nodes=1",), others=(3, 3)),
    "one task": Case("--mem=16G --gpus=2 -n1", (16, 16)),
    "per gpu": Case("--mem-per-gpu=16G --gpus=3", (48, 48)),
    "per cpu, scattered": Case("--mem-per-cpu=4G -c4 --gpus=2", (16, 32), pins=("--nodes=1",), others=(3, 3)),
    "per cpu": Case("--mem-per-cpu=4G -c4 --gpus=1", (16, 16)),
    "cpus per gpu": Case(
        "--cpus-per-gpu=8 --mem-per-cpu=4G --gpus=1",
        (4, 32),
        "memory-per-gpu",
        newer={"24.11": (32, 32), "26.05": (32, 32)},
    ),
    "mincpus": Case("--mincpus=8 --mem-per-cpu=4G --gpus=1", (4, 32), "directives"),
    "layout": Case("-B 2:8:1 --mem-per-cpu=4G --gpus=1", (64, 64), "directives"),
    "exclusive, per cpu": Case("--exclusive --mem-per-cpu=2G --gpus=1", (2, 64), "directives"),
    "exclusive": Case("--exclusive --mem=16G --gpus=1", (16, 16), "directives"),
    "no memory": Case("--gpus=2", (250, 250), pins=("--mem-per-gpu=16G",), partition="bare"),
    "all memory": Case("--gpus=2 --mem=0", (250, 250), "memory-per-gpu"),
    "default per gpu": Case(
        "--gpus=2", (250, 16), pins=("--mem-per-gpu=16G",), partition="pergpu", newer={"26.05": (16, 16)}
    ),
    "one a node": Case("--gpus=2 --gpus-per-node=1 --mem=32G", (64, 64), "memory-per-gpu"),
    "tasks per gpu": Case("--ntasks-per-gpu=2 --gpus=2 --mem-per-cpu=8G", (32, 32), newer={"24.11": (32, 16)}),
    "whole nodes, per cpu": Case("--mem-per-cpu=4G --gpus=1", (4, 128), "memory-per-gpu", partition="alone"),
    "whole nodes, a little": Case("--mem-per-cpu=2G --gpus=1", (2, 64), partition="alone"),
}


def as_admin(place: Place, *argv: str) -> str:
    done = subprocess.run(
        argv, env=os.environ | place.cluster.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (argv, done.stderr)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def gpu_place(place: Place) -> Iterator[Place]:
    """Three more partitions over the GPU nodes: no default memory, one by GPU, whole nodes only."""
    made = place.another()
    nodes = as_admin(made, "sinfo", "-h", "-p", "gpu", "-o", "%N")
    kinds = {"bare": "", "pergpu": "JobDefaults=DefMemPerGPU=8192", "alone": "OverSubscribe=EXCLUSIVE"}
    for name, more in kinds.items():
        as_admin(made, "scontrol", "create", f"PartitionName={name}", f"Nodes={nodes}", "State=UP", *more.split())
    made.cli("get_status")
    yield made
    empty(made)
    for name in kinds:
        as_admin(made, "scontrol", "delete", f"PartitionName={name}")


@pytest.fixture(scope="module")
def threads(cluster) -> Iterator[Place]:
    """A cluster of its own whose cores have two threads each."""
    folder = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    folder.chmod(0o755)
    plain = config_files._nodes
    with pytest.MonkeyPatch.context() as patch:
        two = [("CoresPerSocket=16", "CoresPerSocket=8"), ("CoresPerSocket=32", "CoresPerSocket=16")]
        two += [("CoresPerSocket=48", "CoresPerSocket=24"), ("ThreadsPerCore=1", "ThreadsPerCore=2")]

        def changed(one: definition.Cluster) -> list[str]:
            lines = "\n".join(plain(one))
            for old, new in two:
                lines = lines.replace(old, new)
            return lines.split("\n")

        patch.setattr(config_files, "_nodes", changed)
        made = anyio.run(partial(lifecycle.up, folder, slurm=cluster.release, yes=True))
    place = Place(made, made.project)
    place.project.mkdir(parents=True, exist_ok=True)
    place.own()
    try:
        place.cli("get_status")
        yield place
    finally:
        anyio.run(partial(lifecycle.down, folder, wipe=True))


def empty(place: Place) -> None:
    for _ in range(600):
        jobs = as_admin(place, "squeue", "-h", "-o", "%A").split()
        if not jobs:
            return
        as_admin(place, "scancel", "--quiet", *jobs)
        time.sleep(0.1)
    raise AssertionError(as_admin(place, "squeue"))


def occupy(place: Place, others: tuple[int, int]) -> list[str]:
    """Somebody else's jobs hold GPUs of the two nodes."""
    names = as_admin(place, "scontrol", "show", "hostnames", as_admin(place, "sinfo", "-h", "-p", "gpu", "-o", "%N"))
    held = []
    for name, count in zip(names.split(), others, strict=True):
        if count:
            job = as_admin(
                place, "sbatch", "--parsable", "-pgpu", f"-w{name}", f"--gpus={count}", "--mem=100M", "-t9",
                "-o/dev/null", "--chdir=/", "--wrap=sleep 200",
            )  # fmt: skip
            running(place, job)
            held.append(job)
    return held


def running(place: Place, job: str) -> str:
    """What scontrol says of the job once it runs."""
    for _ in range(600):
        shown = place.slurm("scontrol", "show", "job", "-d", job)
        if "JobState=RUNNING" in shown and NODE.search(shown):
            return shown
        assert "JobState=PENDING" in shown or "JobState=RUNNING" in shown, shown
        time.sleep(0.1)
    raise AssertionError(shown)


def pending_memory(shown: str) -> int:
    found = re.search(r"\b(?:Req)?TRES=\S*mem=(\d+)([MG])", shown)
    assert found is not None, shown
    return int(found[1]) * (GIB if found[2] == "G" else 1)


def allocated(shown: str) -> list[tuple[int, int]]:
    """(MB, GPUs) of each node that the job really holds."""
    held = []
    for names, memory, gres in NODE.findall(shown):
        gpus = sum(int(number) for number in re.findall(r"gpu(?::[^:(,]+)?:(\d+)\(", gres))
        ends = re.search(r"\[(\d+)-(\d+)\]", names)
        held += [(int(memory), gpus)] * (int(ends[2]) - int(ends[1]) + 1 if ends else 1)
    return held


def script(place: Place, case: Case) -> str:
    lines = ["#!/bin/bash", f"#SBATCH -p {case.partition} {case.asks}", "#SBATCH -o /dev/null -t 9", "sleep 100"]
    path = place.project / "job.sh"
    path.write_text("\n".join(lines) + "\n")
    if os.geteuid() == 0:
        shutil.chown(path, place.cluster.user)
    return path.name


def bare(place: Place, name: str) -> tuple[int, list[tuple[int, int]]]:
    """What a bare sbatch gets: memory shown while it waits, and what it really holds."""
    job = place.slurm("sbatch", "--parsable", "--hold", name)
    shown = pending_memory(place.slurm("scontrol", "show", "job", job))
    place.slurm("scontrol", "release", job)
    held = allocated(running(place, job))
    place.slurm("scancel", job)
    return shown, held


def check(place: Place, case: Case) -> None:
    empty(place)
    name = script(place, case)
    others = occupy(place, case.others)
    shown, held = bare(place, name)
    expected = case.newer.get(place.cluster.release or "", case.bare)
    assert (round(shown / GIB), round(sum(memory for memory, _ in held) / GIB)) == expected, held
    code, reply = place.cli("submit_job", f"--script={name}")
    if case.rule is not None:
        assert (code, reply["status"]) == (3, "blocked"), reply
        assert case.rule in rules(reply, "deny", "justify", "approve") <= {case.rule, "memory-per-gpu"}, reply
        assert reply["summary"]
        assert not place.slurm("squeue", "-h", "--me", "-t", "pending,running")
        return
    assert (code, reply["status"]) == (0, "submitted"), reply
    pinned = {pin["option"] for pin in reply["pinned"]}
    assert set(case.pins) <= pinned, pinned
    if others:
        as_admin(place, "scancel", *others)
    got = allocated(running(place, reply["job_id"]))
    assert all(gpus and memory / gpus <= LIMIT for memory, gpus in got), got
    worst = reply["requested"]["memory_per_gpu_bytes"] / 2**20
    assert all(memory / gpus <= worst for memory, gpus in got), (got, worst)


@pytest.mark.proves("allocation-is-bounded")
@pytest.mark.parametrize("name", CASES)
def test_no_job_of_the_guard_holds_more_than_its_share_of_any_gpu(gpu_place: Place, name: str):
    check(gpu_place, CASES[name])


@pytest.mark.proves("allocation-is-bounded")
@pytest.mark.parametrize(
    "case",
    [
        Case("-n1 --mem-per-cpu=8G --gpus=1", (8, 16)),
        Case("-n1 --mem-per-cpu=16G --gpus=1", (16, 32), "memory-per-gpu"),
    ],
    ids=lambda case: case.asks,
)
def test_a_core_with_two_threads_counts_both(threads: Place, case: Case):
    check(threads, case)


def test_memory_by_gpu_without_a_gpu_is_never_submitted(gpu_place: Place):
    empty(gpu_place)
    name = script(gpu_place, Case("--mem-per-gpu=16G", (0, 0), partition="cpu"))
    code, reply = gpu_place.cli("submit_job", f"--script={name}")
    assert (code, reply["error"]["code"]) == (1, "slurm_refused"), reply
    assert not gpu_place.slurm("squeue", "-h", "--me")
