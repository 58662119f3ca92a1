"""A priority that was asked for and did not come."""

from __future__ import annotations

import pytest

from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.request import Directive, Evidence, JobRequest, ScriptReading
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.services.dispatch import priority
from slurm_agent_tools.services.submission_request import SubmissionRequest
from slurm_agent_tools.units import JobId


def prioritised(wanted: str | None, nice: str = "100") -> SubmissionRequest:
    given = Directive("nice", nice, "pinned", Evidence("", 0, ""))
    request = JobRequest(directives=(given,), qos="high")
    reading = ScriptReading("train.sh", "abc", "", request)
    ask = SubmitJob(script="train.sh", priority=wanted)  # type: ignore[arg-type]
    return SubmissionRequest(ask, Caller(), reading, b"", (), "key", key_given=False, effective=request)


def held(**facts: object) -> Job:
    return Job(JobId(7), "x", "PENDING", ("scontrol",), requeue=False, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "facts", "words"),
    [
        ("low", {"nice": 0}, ["the nice value is 0, asked was 100"]),
        ("low", {"nice": 100}, []),
        ("low", {"nice": 250}, []),
        ("low", {"nice": None}, []),
        ("high", {"qos": "normal"}, ["the QOS is normal, asked was high"]),
        ("high", {"qos": "N/A"}, ["the QOS is N/A, asked was high"]),
        ("high", {"qos": "high"}, []),
        (None, {"nice": 0, "qos": "normal"}, []),
        ("normal", {"nice": 0, "qos": "normal"}, []),
    ],
)
def test_a_priority_that_did_not_come_is_a_difference(wanted: str | None, facts: dict, words: list[str]):
    assert priority(prioritised(wanted), held(**facts)) == words
