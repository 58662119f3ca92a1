from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import job, log

from slurm_agent_tools.diagnosis import root_cause
from slurm_agent_tools.diagnosis.classify import diagnose

OWN = "srun: error: cpu01: task 2: Exited with exit code 1"
OTHERS = "srun: error: cpu01: tasks 0-1,3: Terminated"


def test_the_task_that_ended_first_is_named_and_its_line_is_evidence():
    found = diagnose(
        job(exit_code=15), (), [log("ValueError: bad shape", OWN, "srun: Terminating StepId=71.0", OTHERS)]
    )

    assert "Task 2 of 4 ended first (exit code 1); srun ended the others." in found.explanation
    assert found.evidence[1].text == OWN


def test_it_is_named_also_where_the_cause_is_not_known():
    found = diagnose(job(exit_code=15), (), [log("hello", OWN, OTHERS)])

    assert found.category == "unknown"
    assert "Task 2 of 4 ended first" in found.explanation
    assert found.evidence[0].text == OWN


@pytest.mark.parametrize(
    "lines",
    [
        ["hello"],
        [OWN],
        [OTHERS],
        ["srun: error: cpu01: tasks 0-3: Exited with exit code 1"],
        ["srun: error: cpu01: tasks 0-1: Exited with exit code 1", "srun: error: cpu02: tasks 2-3: Terminated"],
        ["srun: error: cpu01: task 2: Exited with exit code 1", "srun: error: cpu01: task 3: Exited with exit code 1"],
    ],
)
def test_no_task_is_named_where_sruns_lines_do_not_tell_which(lines):
    assert root_cause.first_rank([log(*lines)]) is None


def test_a_list_of_tasks_that_cannot_be_one_costs_nothing():
    huge = "srun: error: n1: tasks 0-99999999999: Terminated"

    assert root_cause.first_rank([log(OWN, huge)]) is None
