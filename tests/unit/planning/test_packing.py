"""Packing: every copy once, never more on a node or a GPU than it has, and near to the bound."""

from collections import Counter

import pytest
from tests.unit.planning import problems

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning.packing import gpus_of_shares, nodes_bound, pack
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob

NODE = JobPool("node", gpus=8, cpus=96, memory_bytes=384 << 30)


def pods(seed, kinds=150):
    """Like the pods of a shared GPU cluster: mostly one GPU or a share of one, and some without."""
    chance = problems.seeded(seed)
    made = []
    for number in range(kinds):
        gpus = chance.choices([0, 1, 2, 8], [0.55, 0.42, 0.02, 0.01])[0]
        share = None if gpus or chance.random() < 0.3 else chance.choice([0.81, 0.47, 0.32, 0.23, 0.55, 0.16, 0.65])
        cpus = chance.choice([3, 4, 8, 11, 12, 15, 18, 32])
        memory = chance.choice([5, 16, 30, 47, 48, 56]) << 30
        count = chance.randint(1, 6)
        made.append(PlannedJob(f"p{number}", 1, gpus=gpus, cpus=cpus, memory_bytes=memory, share=share, count=count))
    return made


def faults(jobs, node, packing):
    by_name = {job.name: job for job in jobs}
    held = Counter(name for one in packing.nodes for name, _ in one.held)
    found = [f"{job.name} is there {held[job.name]} times" for job in jobs if held[job.name] != job.count]
    for one in packing.nodes:
        parts = [(by_name[name], slot) for name, slot in one.held]
        shared = Counter()
        for job, slot in parts:
            if job.share is not None:
                shared[slot] += round(job.share * 1000)
        gpus = sum(job.gpus for job, _ in parts) + len(shared)
        if gpus > node.gpus or any(part > 1000 for part in shared.values()) or None in shared:
            found.append(f"GPUs: {gpus}, {shared}")
        if sum(job.cpus for job, _ in parts) > node.cpus:
            found.append("CPUs")
        if sum(job.memory_bytes for job, _ in parts) > node.memory_bytes:
            found.append("memory")
    return found


@pytest.mark.proves("packing-is-near-the-bound")
@pytest.mark.parametrize("seed", range(5))
def test_small_jobs_are_packed_near_the_bound_and_never_worse_than_first_fit(seed):
    jobs = pods(seed)
    packing = pack(jobs, NODE)
    assert faults(jobs, NODE, packing) == []
    assert packing.bound <= len(packing.nodes) <= packing.first_fit
    assert packing.gap <= 0.06


def test_shares_are_put_together_where_sizes_go_up_exactly():
    jobs = [PlannedJob("a", 1, share=0.7, count=8), PlannedJob("b", 1, share=0.3, count=8)]
    packing = pack([jobs[1], jobs[0]], JobPool(gpus=4, cpus=8))
    assert (len(packing.nodes), packing.bound) == (2, 2)


def test_bounds_know_that_large_shares_lie_alone():
    assert gpus_of_shares([PlannedJob("a", 1, share=0.6, count=3)]) == 3
    assert gpus_of_shares([PlannedJob("a", 1, share=0.5, count=3)]) == 2
    assert nodes_bound([PlannedJob("a", 1, share=0.6, count=9)], JobPool(gpus=4)) == 3


def test_a_job_that_no_node_holds_is_refused_by_its_name():
    with pytest.raises(InputError, match="'big': cpus") as caught:
        pack([PlannedJob("big", 1, cpus=97)], NODE)
    assert caught.value.hint


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_a_node_holds_no_more_jobs_than_it_may_with_shares_put_together(jobs):
    node = JobPool("node", gpus=1, cpus=64, jobs=jobs)
    packing = pack([PlannedJob("a", 60, share=0.1, cpus=4, count=20), PlannedJob("b", 60, cpus=33, count=4)], node)
    assert max(len(one.held) for one in packing.nodes) <= jobs
    assert sum(len(one.held) for one in packing.nodes) == 24


def test_shares_that_no_node_holds_together_are_packed_apart():
    node = JobPool("node", gpus=8, memory_bytes=64)
    made = [PlannedJob("a", 60, share=0.1, memory_bytes=33, count=20), PlannedJob("b", 60, share=0.3, memory_bytes=8)]
    assert len(pack(made, node).nodes) == 20


def test_nodes_without_any_limit_hold_all():
    assert len(pack([PlannedJob("a", 60, gpus=3, count=9)], JobPool("node")).nodes) == 1


@pytest.mark.proves("plans-refuse-by-name")
@pytest.mark.parametrize(
    ("job", "node", "words"),
    [
        (PlannedJob("a", 60, count=-3), NODE, "'a': count"),
        (PlannedJob("a", 60, count=10**9), NODE, "'a': count"),
        (PlannedJob("a", 60, share=2.0), NODE, "'a': share"),
        (PlannedJob("a", 60, share=float("nan")), NODE, "'a': share"),
        (PlannedJob("a", 60), JobPool("node", jobs=0), "'node': jobs"),
    ],
)
def test_what_cannot_be_packed_is_refused_as_what_cannot_be_planned(job, node, words):
    with pytest.raises(InputError) as caught:
        pack([job], node)
    assert words in caught.value.message


def test_thousands_of_different_jobs_are_packed_by_first_fit():
    jobs = [PlannedJob(f"a{n}", 60, cpus=n % 97 + 1, memory_bytes=n * 7919 % 10007) for n in range(4600)]
    node = JobPool("node", cpus=128, memory_bytes=20_000)
    packing = pack(jobs, node)
    assert packing.bound <= len(packing.nodes) == packing.first_fit
