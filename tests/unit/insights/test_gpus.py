"""GPU figures from the accounting: Slurm's own samples, and the comment that jobstats leaves."""

from __future__ import annotations

import base64
import gzip
import json

import pytest
from tests.unit.insights.parts import GIB, job, step

from slurm_agent_tools.insights.usage import GpuUse, measured, summary, usage
from slurm_agent_tools.units import JobId

TWO = {"gres/gpu": 2, "gres/gpu:a100": 2}


def comment(*utilization: float, memory: int = GIB) -> str:
    """As jobstats writes it for one node with these GPUs."""
    names = [str(number) for number in range(len(utilization))]
    node = {
        "cpus": 4,
        "gpu_total_memory": dict.fromkeys(names, 80 * GIB),
        "gpu_used_memory": dict.fromkeys(names, memory),
        "gpu_utilization": dict(zip(names, utilization, strict=True)),
        "total_memory": 8 * GIB,
        "total_time": 100.0,
        "used_memory": GIB,
    }
    return packed({"gpus": len(utilization), "nodes": {"gpu01": node}, "total_time": 100})


def packed(document: object) -> str:
    return "JS1:" + base64.b64encode(gzip.compress(json.dumps(document).encode())).decode()


def test_a_job_without_gpus_has_no_figure():
    assert measured([job(step())]) == GpuUse()


def test_gpus_that_nobody_measures_have_no_figure():
    assert measured([job(step(mem=GIB), allocated=TWO)]) == GpuUse()


def test_slurms_samples_are_shares_of_all_gpus_and_their_time():
    sampled = step("0", elapsed_seconds=50, tres_usage_in_tot={"gres/gpuutil": 160, "gres/gpumem": 6 * GIB})
    assert measured([job(step(), sampled, allocated=TWO)]) == GpuUse(0.4, 6 * GIB, "accounting")


def test_a_mean_of_the_tasks_stands_for_all_of_them():
    sampled = step("0", tasks=2, tres_usage_in_tot={}, tres_usage_in_ave={"gres/gpuutil": 50})
    assert measured([job(sampled, allocated=TWO)]).utilization == 0.5


def test_jobstats_counts_before_slurms_samples():
    sampled = step("0", tres_usage_in_tot={"gres/gpuutil": 200})
    found = measured([job(sampled, allocated=TWO, admin_comment=comment(98.0, 50.0))])
    assert found == GpuUse(0.74, 2 * GIB, "jobstats")


def test_the_tasks_of_an_array_weigh_as_long_as_they_ran():
    tasks = [
        job(seconds=100, allocated=TWO, admin_comment=comment(100.0, 100.0), job_id=JobId(9, task=0)),
        job(seconds=300, allocated=TWO, admin_comment=comment(20.0, 20.0), job_id=JobId(9, task=1)),
    ]
    assert measured(tasks).utilization == pytest.approx(0.4)
    assert usage(tasks[0], tasks).gpu_utilization == pytest.approx(0.4)


def test_one_task_without_a_summary_leaves_the_array_without_a_figure():
    tasks = [job(allocated=TWO, admin_comment=comment(100.0)), job(allocated=TWO)]
    assert measured(tasks) == GpuUse()


@pytest.mark.parametrize(
    "text",
    [
        None, "", "JS1:Short", "JS1:None", "a note of an administrator", "JS1:!!!", "JS1:AAAA", "JS2:" + "A" * 8,
        packed([1, 2]), packed({"nodes": 5}), packed({"nodes": {"n": 3}})[:-9], "JS1:" + "A" * 70_000,
        "JS1:" + base64.b64encode(gzip.compress(b" " * 5 * 2**20 + b"{}")).decode(),
        "JS1:" + base64.b64encode(gzip.compress(b"[" * 100_000)).decode(),
    ],
)  # fmt: skip
def test_any_other_comment_is_no_summary(text):
    assert summary(text) is None


@pytest.mark.parametrize("value", ["high", None, -1, 1e400, 10**400, 250])
def test_a_figure_that_is_no_share_is_left_out(value):
    nodes = {"gpu01": {"gpu_utilization": {"0": value}}, "gpu02": "?", "gpu03": {"gpu_utilization": [1]}}
    assert summary(packed({"nodes": nodes})) == GpuUse(None, None, "jobstats")


def test_sizes_that_add_up_to_no_number_are_left_out():
    nodes = {"gpu01": {"gpu_used_memory": {"0": 1e308, "1": 1e308}}}
    assert summary(packed({"nodes": nodes})) == GpuUse(None, None, "jobstats")
