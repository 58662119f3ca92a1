from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.unit.insights.parts import GIB, MIB, job, later, step

from slurm_agent_tools.insights.usage import GPUS, amount, at_once, memory, node_memory, usage
from slurm_agent_tools.models.job import Usage
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.units import JobId


def test_a_single_job_is_its_steps_over_what_it_had():
    found = usage(job(step(cpu=300.0, mem=2 * GIB)))

    assert (found.cpu_seconds, found.cpu_allocated_seconds) == (300.0, 400.0)
    assert (found.memory_peak_bytes, found.memory_allocated_bytes) == (2 * GIB, 8 * GIB)
    assert (found.elapsed_seconds, found.time_limit_seconds) == (100, 7200)
    assert (found.gpu_allocated_seconds, found.gpu_utilization) == (0.0, None)


def test_steps_at_the_same_time_add_up_in_cpu_time_and_only_the_largest_counts_as_memory():
    steps = (
        step(cpu=1.0, mem=4 * MIB),
        step("0", cpu=90.0, mem=GIB),
        step("1", cpu=80.0, mem=2 * GIB),
    )
    found = usage(job(*steps))

    assert found.cpu_seconds == 171.0
    assert found.memory_peak_bytes == 2 * GIB
    assert found.memory_node_bytes == 3 * GIB + 4 * MIB


def test_steps_one_after_the_other_do_not_add_up_in_memory():
    steps = (step("0", mem=GIB, elapsed_seconds=50), step("1", mem=2 * GIB, started=later(50), elapsed_seconds=50))
    assert node_memory(steps) == 2 * GIB


def test_of_many_steps_those_that_ran_at_the_same_time_add_up():
    chance = random.Random(7)  # noqa: S311 - the same in each run
    steps = [
        step(str(index), mem=chance.randrange(1, 99), started=later(chance.randrange(60)), elapsed_seconds=took)
        for index, took in enumerate(chance.choices((None, 0, 1, 5, 20), k=40))
    ]

    def together(moment: int) -> int:
        return sum(
            memory(one) or 0
            for one in steps
            if one.elapsed_seconds is None or later(moment - max(1, one.elapsed_seconds)) < one.started <= later(moment)
        )

    assert at_once(steps, memory) == max(map(together, range(60)))


def test_gpus_that_are_accounted_for_by_type_alone_count():
    assert amount(replace(job(), allocated={"cpu": 1, "gres/gpu:a100": 2, "gres/gpu:a30": 1}), GPUS) == 3
    assert amount(replace(job(), allocated={"cpu": 1, "gres/gpu": 2, "gres/gpu:a100": 2}), GPUS) == 2


def test_a_step_over_several_nodes_takes_all_its_tasks_and_a_node_its_share():
    wide = step("0", cpu=200.0, mem=GIB, tasks=4, allocated={"cpu": 8, "mem": 16 * GIB, "node": 2})
    found = usage(job(step(mem=4 * MIB), wide, allocated={"cpu": 8, "mem": 16 * GIB, "node": 2}))

    assert found.memory_peak_bytes == 4 * GIB
    assert found.memory_allocated_bytes == 16 * GIB
    assert found.memory_node_bytes == 2 * GIB + 4 * MIB
    assert found.cpu_allocated_seconds == 800.0


def test_an_array_is_the_sum_of_its_tasks_and_the_memory_of_the_fullest():
    tasks = [
        job(step(cpu=100.0 * number, mem=number * GIB), seconds=100 * number, job_id=JobId(9, task=number))
        for number in (1, 2, 3)
    ]
    found = usage(replace(tasks[0], job_id=JobId(9)), tasks)

    assert (found.cpu_seconds, found.cpu_allocated_seconds) == (600.0, 2400.0)
    assert (found.memory_peak_bytes, found.elapsed_seconds) == (3 * GIB, 300)


def test_the_fullest_part_is_the_one_that_used_most_of_what_it_had():
    large = job(step(mem=4 * GIB), allocated={"mem": 64 * GIB}, job_id=JobId(9, component=0))
    small = job(step(mem=3 * GIB), allocated={"mem": 4 * GIB}, job_id=JobId(9, component=1))
    found = usage(large, (large, small))

    assert (found.memory_peak_bytes, found.memory_allocated_bytes) == (3 * GIB, 4 * GIB)
    assert found.memory_node_bytes == 4 * GIB


def test_a_component_in_which_nothing_was_started_used_nothing():
    parts = [job(step(cpu=100.0, mem=GIB), job_id=JobId(9, component=0)), job(job_id=JobId(9, component=1))]
    found = usage(parts[0], parts)
    assert (found.cpu_seconds, found.cpu_allocated_seconds, found.memory_peak_bytes) == (100.0, 800.0, GIB)
    assert usage(parts[1], parts[1:]).cpu_seconds is None


def test_a_step_that_was_never_sampled_has_no_memory_and_one_of_which_no_word_came_no_cpu_time():
    unsampled = step(cpu=0.002, mem=None)
    assert memory(unsampled) is None
    assert usage(job(unsampled)).memory_peak_bytes is None
    lost = step(cpu=None, mem=None, tres_usage_in_tot={}, tres_usage_in_min={})
    assert usage(job(step(cpu=5.0, mem=GIB), lost)).cpu_seconds is None


def test_a_task_that_ended_before_its_first_sample_counts_as_the_largest():
    half = step("0", mem=GIB, tasks=4, tres_usage_in_tot={"mem": 2 * GIB}, tres_usage_in_min={"mem": 0})
    assert memory(half) == 4 * GIB


def test_uneven_tasks_are_added_up_as_slurm_did():
    uneven = step("0", mem=3 * GIB, tasks=2, tres_usage_in_tot={"mem": 4 * GIB}, tres_usage_in_min={"mem": GIB})
    assert memory(uneven) == 4 * GIB


def test_a_job_that_never_started_used_nothing_that_was_measured():
    found = usage(job(started=None, elapsed_seconds=None, state="CANCELLED"))
    assert found == Usage(time_limit_seconds=7200)


def test_without_accounting_the_controller_says_what_was_given():
    known = Resources(cpus=2, memory_bytes=GIB, gpus=1, time_limit_seconds=60)
    found = usage(replace(job(), allocated=None, resources=known))

    assert (found.cpu_allocated_seconds, found.gpu_allocated_seconds) == (200.0, 100.0)
    assert (found.cpu_seconds, found.memory_peak_bytes, found.memory_allocated_bytes) == (None, None, GIB)


@pytest.mark.parametrize("seconds", [0, 100])
def test_gpus_count_for_as_long_as_the_job_had_them(seconds):
    found = usage(job(step(), seconds=seconds, allocated={"gres/gpu": 2, "gres/gpu:a100": 2}))
    assert found.gpu_allocated_seconds == 2.0 * seconds
