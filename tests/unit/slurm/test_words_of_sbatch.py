"""What sbatch's and sdiag's answers become, and the words of the error where there is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.unit.slurm.answers import done

from slurm_agent_tools.errors import SlurmRefused, SlurmUncertain, SlurmUnreachable
from slurm_agent_tools.slurm.commands import sbatch
from slurm_agent_tools.slurm.commands.sdiag import ControllerStatistics
from slurm_agent_tools.slurm.questions import CALM, ControllerAnswer, LoadVerdict, judge_load

AWAY = b"sbatch: error: Unable to contact slurm controller (connect failure)"


@pytest.mark.parametrize(
    ("code", "stderr", "error", "words"),
    [
        (None, b"", SlurmUncertain, "sbatch gave no job id: no answer in time"),
        (0, b"", SlurmUncertain, "sbatch gave no job id: no answer in time"),
        (0, b"Welcome", SlurmUncertain, "sbatch gave no job id: Welcome"),
        (1, b"it timed out", SlurmUncertain, "sbatch gave no job id: it timed out"),
        (1, AWAY, SlurmUnreachable, "Slurm does not answer: sbatch: error: Unable to contact"),
        (
            1,
            b"sbatch: error: No route to host",
            SlurmUncertain,
            "sbatch gave no job id: sbatch: error: No route to host",
        ),
        (1, b"sbatch: error: Invalid qos", SlurmRefused, "Slurm refused the job: sbatch: error: Invalid qos"),
    ],
)
def test_the_error_of_a_submission_says_what_sbatch_said(code, stderr, error, words):
    with pytest.raises(error) as caught:
        sbatch.parse(done(b"", stderr, code))
    assert caught.value.message.startswith(words)
    assert error is SlurmUncertain or caught.value.hint


def test_a_submission_is_its_number_and_what_was_said_beside_it():
    found = sbatch.parse(done(b"12;cluster\n", b"sbatch: slow\n disk", 1))
    assert (found.job_id, found.message) == (12, "sbatch: slow disk")


@pytest.mark.parametrize(
    ("code", "stderr", "words"), [(None, b"", "no answer in time"), (1, AWAY, "Unable to contact slurm controller")]
)
def test_a_trial_that_slurm_does_not_answer_says_so(code, stderr, words):
    with pytest.raises(SlurmUnreachable) as caught:
        sbatch.parse_trial(done(b"", stderr, code))
    assert caught.value.message.startswith("Slurm does not answer: ")
    assert words in caught.value.message
    assert "scontrol ping" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("said", "start"),
    [
        ("sbatch: Job 5 to start at 1800000000 using", datetime.fromtimestamp(1_800_000_000, UTC)),
        ("Job 5 to start at 2026-05-04T12:00:00+02:00 using", datetime(2026, 5, 4, 10, tzinfo=UTC)),
        ("nothing of a start", None),
    ],
)
def test_a_trial_tells_its_start_as_slurm_prints_it(said, start):
    trial = sbatch.parse_trial(done(b"", said.encode()))
    assert (trial.accepted, trial.start) == (True, start)
    assert not sbatch.parse_trial(done(b"", said.encode(), 1)).accepted


def test_a_trial_and_a_submission_ask_the_same_but_for_what_they_are():
    assert sbatch.argv(["-x"], ["a"], trial=True) == ["sbatch", "--verbose", "--test-only", "-x", "/dev/stdin", "a"]
    assert sbatch.argv(["-x"], ["a"]) == ["sbatch", "--parsable", "-x", "/dev/stdin", "a"]


# --- how the controller answers -------------------------------------------------------------------------------------

QUICK, SLOW, LOST = ControllerAnswer(0.1, 10), ControllerAnswer(3.0, 10), ControllerAnswer(10.0, 0, came=False)
BUSY = ControllerStatistics(100, 0, None)
IDLE = ControllerStatistics(1, 0, 0.1)


@pytest.mark.parametrize(
    ("answer", "slow"),
    [(QUICK, False), (SLOW, True), (ControllerAnswer(3.0, 10_000_000), False), (ControllerAnswer(1.0, 0), False)],
)
def test_an_answer_is_slow_for_its_size(answer, slow):
    assert answer.slow == slow


@pytest.mark.parametrize(
    ("answers", "statistics", "verdict"),
    [
        ([], None, CALM),
        ([SLOW], None, CALM),
        ([SLOW], IDLE, CALM),
        ([QUICK], BUSY, CALM),
        ([SLOW], BUSY, LoadVerdict("loaded", 3, 3.0)),
        ([SLOW, SLOW], BUSY, LoadVerdict("loaded", 3, 3.0)),
        ([SLOW, SLOW], None, LoadVerdict("limited", 3, 3.0)),
        ([SLOW, SLOW], IDLE, LoadVerdict("limited", 3, 3.0)),
        ([LOST, LOST], None, LoadVerdict("loaded", 6, 10.0)),
        ([SLOW, LOST], None, LoadVerdict("loaded", 6, 6.5)),
        ([ControllerAnswer(1.5, 10)] * 2, BUSY, LoadVerdict("loaded", 2, 1.5)),
        ([ControllerAnswer(3.0, 99_999)] * 2, None, LoadVerdict("limited", 3, 3.0)),
        ([ControllerAnswer(3.0, 100_000)] * 2, None, LoadVerdict("loaded", 3, 3.0)),
        ([SLOW, SLOW, *[QUICK] * 4], None, LoadVerdict("limited", 3, 3.0)),
        ([SLOW, SLOW, *[QUICK] * 5], None, CALM),
    ],
)
def test_a_controller_is_judged_by_its_last_six_answers_and_its_own_figures(answers, statistics, verdict):
    assert judge_load(answers, statistics) == verdict


@pytest.mark.parametrize(
    ("statistics", "busy"),
    [
        ((99, 499, 4.9), False),
        ((100, 0, None), True),
        ((0, 500, None), True),
        ((0, 0, 5.0), True),
        ((0, 0, None), False),
    ],
)
def test_a_controller_is_busy_from_the_limit_of_any_of_its_figures(statistics, busy):
    assert ControllerStatistics(*statistics).busy == busy


def test_a_controller_that_is_calm_took_no_time():
    assert (CALM.kind, CALM.factor, CALM.seconds) == ("calm", 1, 0.0)
