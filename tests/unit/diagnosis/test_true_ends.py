"""What Slurm's own words and numbers at an end mean, and what they do not."""

from __future__ import annotations

from tests.unit.diagnosis.records import job, log

from slurm_agent_tools.diagnosis.cannot_start import cannot_start
from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.job_facts import failed


def test_a_deadline_is_no_time_limit_and_asks_for_no_more_time():
    never = diagnose(job("DEADLINE", started=None, elapsed_seconds=0, nodes=None, reason="DeadLine"), (), ())
    assert (never.category, never.proposed_change) == ("deadline", None)
    assert "time limit" not in never.explanation
    assert diagnose(job("TIMEOUT"), (), ()).proposed_change is not None


def test_a_node_that_is_not_available_is_no_limit():
    reason = "ReqNodeNotAvail, Reserved for maintenance"
    found = diagnose(job("PENDING", started=None, ended=None, reason=reason), (), ())
    assert found.category == "node-unavailable"
    assert reason in found.explanation
    assert "limit of the QOS" not in found.explanation


def test_a_job_whose_script_failed_while_its_processes_are_cleaned_up_has_failed():
    ending = job("COMPLETING", exit_code=9, ended=None)
    assert failed(ending)
    found = diagnose(ending, (), [log("hello")])
    assert found.category == "unknown"
    assert "its script ended with exit code 9" in found.explanation
    assert "ended in COMPLETING" not in found.explanation


def test_a_job_that_is_cleaned_up_after_a_success_or_a_cancellation_has_not_failed():
    assert not failed(job("COMPLETING", exit_code=0, ended=None))
    assert not failed(job("COMPLETING", exit_code=0, signal=15, ended=None))
    assert diagnose(job("COMPLETING", exit_code=0, ended=None), (), ()).category == "none"


def test_a_code_that_may_have_been_cut_suggests_nothing_and_a_whole_one_does():
    for code, category in ((127, "command-not-found"), (126, "permission")):
        assert diagnose(job(exit_code=code, short_code=True), (), [log("hello")]).category == "unknown"
        assert diagnose(job(exit_code=code, short_code=False), (), [log("hello")]).category == category


def test_a_job_in_a_special_exit_waits_for_somebody_to_release_it():
    held = job("SPECIAL_EXIT", reason="job requeued in held state", ended=None)
    assert "scontrol release 71" in cannot_start(held).told
    assert cannot_start(job("RUNNING", reason="job requeued in held state", ended=None)) is None
