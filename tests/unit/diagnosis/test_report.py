from __future__ import annotations

from tests.unit.diagnosis.records import NOON, job, log

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.failure_record import failure_name, failure_record
from slurm_agent_tools.units import JobId


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
    assert "- State: OUT_OF_MEMORY\n" in text
    assert "    logs/slurm/train-71.err:1: slurmstepd: error: Detected 1 oom-kill" in text
    assert "    #SBATCH --mem=20G" in text
    assert "Nothing was retried" in text


def test_a_job_that_the_guard_sent_is_recorded_with_its_script_run_and_those_before_it():
    record = job("FAILED", command="/dev/stdin")

    text = failure_record(
        record, diagnose(record, (), ()), now=NOON, script="jobs/a.sh", run_id="sweep-1", before=["x.md"]
    )

    assert "- Script: jobs/a.sh\n" in text
    assert "- Run: sweep-1\n" in text
    assert text.endswith("## The same before\n\n- [x.md](x.md)\n")


def test_a_job_name_cannot_add_lines_or_break_the_encoding():
    record = job(exit_code=7, name="a\n# Forged\n`x`\udce9")

    text = failure_record(record, diagnose(record, (), ()), now=NOON)

    assert "\n# Forged" not in text
    assert text.encode()
