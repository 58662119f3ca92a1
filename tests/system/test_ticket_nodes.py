"""On a real controller: a job with a ticket on several nodes has its tasks on each, however it says they come there.

The cluster is this module's own.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.system.site_service import wait
from tests.system.ticket_site import VERSION, Site, private, sbatch

pytestmark = pytest.mark.proves("tickets-hold")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with private() as made:
        yield made


@contextmanager
def running(site: Site, *words: str) -> Iterator[str]:
    """The details of a job of srun, as scontrol tells them while it runs."""
    argv = site.place.as_user(["srun", *words, "sleep", "60"])
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/",
                          env=site.place.environment(), text=True) as process:  # fmt: skip
        try:
            wait(lambda: "RUNNING" in site.place.slurm("squeue", "-h", "-o%T") or process.poll() is not None, "the job")
            yield site.place.slurm(
                "scontrol", "show", "job", "--details", site.place.slurm("squeue", "-h", "-o%i").strip()
            )
        finally:
            site.place.run(["scancel", "--me"])
            process.kill()
    wait(lambda: not site.place.slurm("squeue", "-h"), "an empty queue")


def cpus_of_nodes(details: str) -> list[int]:
    """How many CPUs each node of a job gives it."""
    found: list[int] = []
    for nodes, ids in re.findall(r"^ +Nodes=(\S+) CPU_IDs=(\S+) ", details, re.MULTILINE):
        ends = [part.partition("-") for part in ids.split(",")]
        count = sum(int(last or first) - int(first) + 1 for first, _, last in ends)
        found += [count] * (2 if "[" in nodes else 1)
    return found


CPU, GPU = ("--partition=cpu", "--time=5", "--mem=500M"), ("--partition=gpu", "--time=5", "--mem=500M")


@pytest.mark.parametrize(
    ("words", "cpus"),
    [
        ((*CPU, "--nodes=2", "--ntasks=2"), [1, 1]),
        ((*CPU, "--nodes=2", "--ntasks=6"), [3, 3]),
        ((*GPU, "--nodes=2", "--ntasks=4", "--cpus-per-task=2", "--gpus-per-node=1"), [4, 4]),
        pytest.param(
            (*CPU, "--nodes=2", "--ntasks=2", "--cpus-per-task=2"), [2, 2],
            marks=pytest.mark.skipif(VERSION is None, reason="22.05 has no regard for it: no ticket is for this one"),
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("distribution", ["block", "plane=2", "plane=60"])
def test_each_of_several_nodes_has_its_tasks_whatever_the_distribution(
    site: Site, words: tuple[str, ...], cpus: list[int], distribution: str
):
    """All tasks came on one node, and the other one with all of its CPUs."""
    word = site.give(site.ceilings(words), None)
    with running(site, *words, f"--distribution={distribution}", f"--comment={word}") as details:
        given = cpus_of_nodes(details)
        assert sum(given) == sum(cpus), details
        assert distribution != "block" or given == cpus


def test_without_a_number_of_nodes_no_ticket_is_good(site: Site):
    words = (*CPU, "--nodes=1", "--ntasks=4")
    word = site.give(site.ceilings(words, nodes=4))
    for other in ((*CPU, "--ntasks=4"), (*CPU, "--nodes=1-2", "--ntasks=4")):
        job_id, said = sbatch(site, *other, f"--comment={word}")
        assert job_id is None
        assert "a ticket is for one number of nodes" in said
    job_id, said = sbatch(site, *words, f"--comment={word}")
    assert job_id, said
