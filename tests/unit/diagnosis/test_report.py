from __future__ import annotations

from tests.unit.diagnosis.records import GIB, NOON, job, log, step

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.report import failure_name, failure_record, report
from slurm_agent_tools.replies import ResourcesShown
from slurm_agent_tools.units import JobId

ASKED = ResourcesShown(partition="gpu", gpus=1, cpus=4, memory_bytes=16 * GIB, memory="16G", time_limit="02:00:00")
SECTIONS = ["JOB SUBMISSION SUMMARY", "QUEUE ANALYSIS", "MONITORING", "COMPLETION METRICS", "ERROR HANDLING"]


def test_a_report_has_the_five_sections_and_the_measured_figures():
    steps = (
        step("batch", "COMPLETED", max_rss_bytes=4 * GIB, cpu_seconds=2400.0),
        step("0", "COMPLETED", max_rss_bytes=2 * GIB, cpu_seconds=0.0),
    )
    found = report(job("COMPLETED", exit_code=0, steps=steps), (), ASKED)

    assert [line[3:] for line in found.text.splitlines() if line.startswith("## ")] == SECTIONS
    assert (found.queue_seconds, found.run_seconds, found.max_rss_bytes) == (300, 1200, 4 * GIB)
    assert found.outcome == "COMPLETED (exit code 0)"
    assert "4G of 16G requested" in found.text
    assert "50 % of 4 allocated CPUs" in found.text
    assert "Resources: 1 GPUs, 4 CPUs, 16G memory" in found.text
    assert "Error type: none" in found.text


def test_what_was_not_measured_is_said_and_never_a_number():
    steps = (step("batch", "FAILED", exit_code=3, max_rss_bytes=0),)
    found = report(job(exit_code=3, started=None, elapsed_seconds=None, steps=steps), (), ResourcesShown())

    assert (found.queue_seconds, found.run_seconds, found.max_rss_bytes, found.max_rss) == (None, None, None, None)
    assert "Time in the queue: not measured" in found.text
    assert "Peak memory of one task: not measured" in found.text
    assert "GPU: not measured" in found.text


def test_a_failed_job_gets_its_error_type_and_the_proposal():
    text = report(job("OUT_OF_MEMORY"), (), ASKED).text

    assert "Error type: host-out-of-memory" in text
    assert "Proposed, not sent: `#SBATCH --mem=20G`" in text


def test_an_array_counts_its_tasks_by_state():
    tasks = [job("COMPLETED", job_id=JobId(9, task=0)), job("FAILED", job_id=JobId(9, task=1), exit_code=5)]

    assert "Array tasks: 1 COMPLETED, 1 FAILED" in report(job("FAILED", job_id=JobId(9)), tasks, ASKED).text


def test_a_failure_record_is_named_by_day_job_and_category():
    record = job("OUT_OF_MEMORY", job_id=JobId(71, component=1))
    found = diagnose(record, (), ())

    assert failure_name(record, found, NOON.replace(year=2030)) == "2026-03-01_71_1_host-out-of-memory.md"
    assert failure_name(job("FAILED", ended=None), found, NOON.replace(month=5)).startswith("2026-05-01_71_")


def test_a_failure_record_holds_what_ran_the_evidence_and_the_proposal():
    record = job("OUT_OF_MEMORY", signal=125)
    found = diagnose(record, (), [log("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=71.batch.")])

    text = failure_record(record, found, now=NOON)

    assert text.startswith("# Job 71: host-out-of-memory\n")
    assert "- Script: scripts/slurm/train.sh" in text
    assert "- State: OUT_OF_MEMORY (signal 125)" in text
    assert "    logs/slurm/train-71.err:1: slurmstepd: error: Detected 1 oom-kill" in text
    assert "    #SBATCH --mem=20G" in text
    assert "Nothing was retried" in text


def test_a_job_name_cannot_add_lines_or_break_the_encoding():
    record = job(exit_code=7, name="a\n# Forged\n`x`\udce9")

    text = failure_record(record, diagnose(record, (), ()), now=NOON) + report(record, (), ASKED).text

    assert "\n# Forged" not in text
    assert text.encode()
