"""Exit codes of which only the accounting is left, which keeps 7 bits of them."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import job, log

from slurm_agent_tools.diagnosis import phrases
from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.job_facts import evidence, facts


def cut(code: int, **more: object):
    return job(exit_code=code, short_code=True, **more)


@pytest.mark.parametrize("code", [7, 9, 11, 15])
def test_both_codes_are_possible_and_neither_is_a_signal(code):
    known = facts(cut(code))
    assert {f"exit={code}", f"exit={code + 128}"} <= known
    assert not [fact for fact in known if "signal=" in fact]


def test_a_code_that_may_have_been_a_signal_is_no_diagnosis():
    assert diagnose(cut(11), (), [log("hello")]).category == "unknown"
    assert diagnose(job(exit_code=139, short_code=False), (), [log("hello")]).category == "segmentation-fault"


def test_both_codes_are_told_in_the_evidence_and_in_the_words():
    assert "FAILED, exit 72:0 (or 200:0)" in evidence(cut(72))[0].text
    assert phrases.outcome(cut(72)) == "FAILED (exit code 72 or 200)"
    assert phrases.code(cut(72)) == "72 (or 200: the accounting keeps 7 bits)"
    assert "exit code 72 (or 200" in diagnose(cut(72), (), [log()]).explanation


def test_a_whole_code_is_told_as_it_is():
    whole = job(exit_code=200, short_code=False)
    assert "FAILED, exit 200:0," in evidence(whole)[0].text
    assert (phrases.outcome(whole), phrases.code(whole)) == ("FAILED (exit code 200)", "200")


def test_a_job_that_a_signal_ended_was_launched_whatever_reason_22_05_gives():
    assert diagnose(job(signal=11, exit_code=0, reason="JobLaunchFailure"), (), ()).category == "segmentation-fault"
    assert "ended=JobLaunchFailure" in facts(job(reason="JobLaunchFailure"))
