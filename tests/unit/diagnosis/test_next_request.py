from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.diagnosis.records import GIB, MIB, job, log, step

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.log_advice import memory_in_use
from slurm_agent_tools.diagnosis.next_request import larger_memory, longer_time
from slurm_agent_tools.models.job_resources import Resources


def asked(**numbers):
    return job("OUT_OF_MEMORY", resources=Resources(nodes=1, **numbers))


def timed(limit, ran=None):
    return job("TIMEOUT", resources=Resources(time_limit_seconds=limit), elapsed_seconds=ran or limit)


@pytest.mark.parametrize(
    ("size", "directive"),
    [
        (100 * MIB, "--mem=120M"),
        (1 * GIB, "--mem=1229M"),
        (7 * GIB, "--mem=9G"),
        (16 * GIB, "--mem=20G"),
        (500 * GIB, "--mem=600G"),
    ],
)
def test_memory_is_a_fifth_more_than_asked_for(size, directive):
    assert larger_memory(asked(memory_per_node_bytes=size)).directive == f"#SBATCH {directive}"


def test_memory_of_a_job_that_nobody_measured_may_be_far_too_little():
    for part in (asked(memory_per_node_bytes=GIB), asked(gpus=2, memory_per_gpu_bytes=GIB)):
        assert " It may be far too little: the need is not known. " in larger_memory(part).why


@pytest.mark.proves("proposals-have-grounds")
def test_memory_is_a_fifth_more_than_slurm_saw_where_that_was_more():
    part = replace(asked(memory_per_node_bytes=10 * GIB), steps=(step("0", "FAILED", max_rss_bytes=15 * GIB),))

    assert larger_memory(part).directive == "#SBATCH --mem=18G"
    assert "15" in larger_memory(part).why


def test_memory_counts_what_the_program_could_not_get_as_well():
    part = replace(asked(memory_per_node_bytes=10 * GIB), steps=(step("0", "FAILED", max_rss_bytes=5 * GIB),))
    text = log("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 10.0 GiB for an array")

    assert larger_memory(part, [text]).directive == "#SBATCH --mem=18G"
    assert larger_memory(part, [log("Error: cannot allocate vector of size 10.0 Gb")]).directive == "#SBATCH --mem=18G"


def test_memory_far_above_the_request_is_not_proposed_for_one_wild_allocation():
    text = log("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 TiB for an array")

    assert larger_memory(asked(memory_per_node_bytes=10 * GIB), [text]).directive == "#SBATCH --mem=12G"


def test_memory_counts_what_slurm_said_in_the_log_was_in_use():
    text = log("slurmstepd: error: Step 71.0 exceeded memory limit (2097152 > 1048576), being killed")

    assert larger_memory(asked(memory_per_node_bytes=GIB), [text]).directive == "#SBATCH --mem=2458M"


@pytest.mark.parametrize(
    ("line", "has", "used"),
    [
        ("Job 12 exceeded memory limit (403787776 > 104857600), being killed", 100 * MIB, 403787776),  # 22.05: bytes
        ("StepId=12.batch exceeded memory limit (403787776 > 104857600), being killed", 8 * GIB, 403787776),
        ("Step 12.0 exceeded memory limit (139264 > 102400), being killed", 100 * MIB, 136 * MIB),  # before: KiB
        ("Step 12.0 exceeded memory limit (139264 > 102400), being killed", None, 136 * MIB),
        ("Job 12 exceeded memory limit (9437184 > 8388608), being killed", 8 * GIB, 9 * GIB),
        ("Job 12 exceeded memory limit (9437184 > 8388608), being killed", None, 9 * GIB),  # nobody asks for 8M
        ("Job 12 exceeded memory limit (209715200 > 104857600), being killed", 100 * GIB, 200 * GIB),
        ("Job 12 exceeded memory limit (209715200 > 104857600), being killed", 500 * GIB, 0),  # a step's 100M or 100G
        ("Job 12 exceeded memory limit (209715200 > 104857600), being killed", None, 0),
        ("Job 12 exceeded memory limit (68719476736 > 34359738368), being killed", None, 64 * GIB),
        ("Job 12 exceeded memory limit (68719476736 > 34359738368), being killed", 4 * GIB, 0),  # more than it has
    ],
)
def test_the_unit_of_slurms_sampled_limit_is_told_by_the_limit_itself(line, has, used):
    assert memory_in_use([log(f"slurmstepd: error: {line}")], has) == used


@pytest.mark.proves("proposals-have-grounds")
def test_the_log_and_the_accounting_lead_to_one_proposal_where_slurm_writes_bytes():
    peak = step("batch", "FAILED", max_rss_bytes=403787776)
    part = replace(asked(memory_per_node_bytes=100 * MIB), steps=(peak,))
    text = log("slurmstepd: error: Job 12 exceeded memory limit (403787776 > 104857600), being killed")

    assert larger_memory(part, [text]) == larger_memory(part)
    assert larger_memory(part, [text]).directive == "#SBATCH --mem=463M"
    assert "the 385.1M that was used or wanted" in larger_memory(part, [text]).why


def test_nothing_is_proposed_where_the_request_is_not_known():
    assert larger_memory(asked()) is None
    assert longer_time(job("TIMEOUT", resources=Resources())) is None
    assert longer_time(timed(-1, 60)) is None


@pytest.mark.parametrize(
    ("limit", "line", "directive"),
    [
        (7200, "nothing of progress", "03:00:00"),
        (7200, "Epoch 37/100", "06:25:00"),  # 36 done: 5 h 33 min in all, and 15 %
        (7200, " 80%|########  | 800/1000 [1:59:00<29:00,  8.9s/it]", "02:55:00"),
        (7200, "step 10/1000", "03:00:00"),  # too little was done to foretell an end
        (3600, "eta: 0:30:00", "01:44:00"),
        (60, "boom", "00:02:00"),
        (172800, "step 96/100", "2-09:30:00"),
    ],
)
def test_time_is_what_the_progress_foretells_or_half_more(limit, line, directive):
    assert longer_time(timed(limit), [log(line)]).directive == f"#SBATCH --time={directive}"


@pytest.mark.proves("proposals-have-grounds")
def test_the_explanation_tells_what_a_proposal_rests_on_and_that_no_limit_was_checked():
    found = diagnose(timed(7200), (), [log("Epoch 37/100")])

    assert found.proposed_change == "#SBATCH --time=06:25:00"
    assert "'Epoch 37/100'" in found.explanation
    assert "was not checked" in found.explanation
    assert found.retry is False


def test_only_a_larger_request_that_helps_is_proposed():
    assert diagnose(job("NODE_FAIL"), (), ()).proposed_change is None
    text = log("RuntimeError: CUDA error: out of memory")
    assert diagnose(job(exit_code=1), (), [text]).proposed_change is None


def test_a_run_that_went_on_from_a_checkpoint_is_not_taken_for_a_faster_one():
    lines = [f"step {number}/1000" for number in range(500, 801, 50)]

    assert longer_time(timed(7200), [log(*lines)]).directive == "#SBATCH --time=03:50:00"  # 300 of 500 in two hours


def test_an_explanation_carries_the_directive_and_the_pace_it_rests_on():
    full = diagnose(asked(memory_per_node_bytes=100 * MIB), (), ()).explanation
    slow = diagnose(timed(7200), (), [log("Epoch 37/100")]).explanation

    assert "(#SBATCH --mem=120M)" in full
    assert "At that pace the whole run takes 05:33:20." in slow
    assert "(#SBATCH --time=06:25:00)" in slow
