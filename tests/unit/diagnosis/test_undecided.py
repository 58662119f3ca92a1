from __future__ import annotations

from tests.unit.diagnosis.records import job, log

from slurm_agent_tools.diagnosis.classify import diagnose


def test_a_script_that_wrote_nothing_is_told_so_with_its_exit_code():
    found = diagnose(job(exit_code=3), (), [log(), log(kind="stdout")])

    assert found.category == "unknown"
    assert found.explanation == "The script ended with exit code 3 and wrote nothing to its log."
    assert found.suggestions == [
        "Put `set -x` at the top of the script, or let the program print why it ends with exit code 3."
    ]


def test_a_log_that_tells_nothing_is_another_thing_than_an_empty_or_a_missing_one():
    spoke = diagnose(job(exit_code=3), (), [log("hello"), log(kind="stdout")])
    unread = diagnose(job(exit_code=3), (), ())

    assert spoke.explanation == "The job ended in FAILED with exit code 3; neither Slurm nor the log says why."
    assert "Read the lines shown" in spoke.suggestions[0]
    assert "no log was read" in unread.explanation
    assert "lines shown" not in unread.suggestions[0]


def test_a_signal_goes_before_the_exit_code():
    assert "ended with signal 9" in diagnose(job(exit_code=0, signal=9), (), [log()]).explanation
    assert "wrote nothing" not in diagnose(job("BOOT", exit_code=None), (), [log()]).explanation
