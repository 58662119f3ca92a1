"""Which reasons for waiting no waiting ends, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_agent_tools.diagnosis.cannot_start import cannot_start, unavailable
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.units import JobId

WAITS = Job(
    JobId(7), "train", "PENDING", ("squeue",), partition="cpu", reason="Resources",
    resources=Resources(time_limit_seconds=36000),
)  # fmt: skip


def told(reason: str, **changes: object) -> str | None:
    found = cannot_start(replace(WAITS, reason=reason, **changes))
    return None if found is None else found.told


@pytest.mark.parametrize(
    ("reason", "who"),
    [
        ("JobHeldUser", "`scontrol release 7` lets it go."),
        ("JobHeldAdmin", "Only an administrator can release it."),
        ("job requeued in held state", "`scontrol release 7` lets it go."),
        ("job_requeued_in_held_state", "`scontrol release 7` lets it go."),
        ("PartitionInactive", "An administrator has to set it up again."),
        ("PartitionDown", "An administrator has to set it up again."),
    ],
)
def test_a_job_that_somebody_keeps_from_starting_says_who_lets_it_go(reason: str, who: str):
    found = cannot_start(replace(WAITS, reason=reason))
    assert found is not None
    assert not found.request
    assert found.told.startswith("Job 7 (train) cannot start: ")
    assert found.told.endswith(f"({reason}). {who}")


@pytest.mark.parametrize(
    ("reason", "means"),
    [
        ("PartitionTimeLimit", "its time limit of 10:00:00 is more than partition cpu allows"),
        ("PartitionNodeLimit", "partition cpu does not allow its number of nodes, or nodes that it needs are down"),
        ("BadConstraints", "no node has what it asks for"),
        ("QOSMaxCpuPerNode", "it asks for more than one job may have"),
        ("AssocMaxGRESMinutesPerJob", "it asks for more than one job may have"),
        ("QOSMinCpuNotSatisfied", "it asks for less than a job has to"),
        ("Job's QOS not permitted to use this partition (cpu denies short)", "its QOS is not allowed there"),
        ("launch failed requeued held", "Slurm could not launch it and holds it"),
    ],
)
def test_a_request_that_cannot_be_had_is_told_in_words_with_the_reason(reason: str, means: str):
    found = cannot_start(replace(WAITS, reason=reason))
    assert found is not None
    assert found.request
    assert f"cannot start: {means}" in found.told
    assert f"({reason})" in found.told
    assert not found.told.endswith(f"({reason}).")  # what to do comes behind it


@pytest.mark.parametrize(
    "reason",
    [
        "Resources", "Priority", "Dependency", "BeginTime", "Licenses", "Reservation", "JobArrayTaskLimit", "None",
        "AssocGrpCpuLimit", "AssocMaxJobsLimit", "QOSMaxCpuPerUserLimit", "QOSGrpGRESMinutes", "MaxGRESPerAccount",
        "ReqNodeNotAvail, UnavailableNodes:cpu01", "ReqNodeNotAvail, May be reserved for other job", "NodeDown",
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
        "QOSUsageThreshold", "Prolog", "Cleaning", "BurstBufferStageIn",
    ],
)  # fmt: skip
def test_a_reason_that_may_pass_leaves_hope(reason: str):
    assert told(reason) is None


def test_only_a_job_that_waits_is_stuck():
    assert told("JobHeldUser", state="RUNNING") is None
    assert told("BadConstraints", state="FAILED") is None
    assert cannot_start(replace(WAITS, reason=None)) is None


@pytest.mark.parametrize("reason", ["PartitionTimeLimit", "PartitionDown", "AccountNotAllowed", "QOSMaxCpuPerNode"])
def test_the_reason_of_one_partition_says_nothing_of_a_job_that_named_two(reason: str):
    assert told(reason) is not None
    assert told(reason, partition="cpu,gpu") is None


@pytest.mark.parametrize("reason", ["JobHeldUser", "BadConstraints", "DependencyNeverSatisfied"])
def test_a_reason_of_the_job_itself_counts_in_any_number_of_partitions(reason: str):
    assert told(reason, partition="cpu,gpu") is not None


@pytest.mark.parametrize(
    ("job_id", "named"),
    [(JobId(7, tasks="0-39%4"), "7"), (JobId(7, task=3), "7_3"), (JobId(7, component=1), "7")],
)
def test_what_is_to_be_released_is_named_as_scontrol_takes_it(job_id: JobId, named: str):
    assert f"`scontrol release {named}`" in (told("JobHeldUser", job_id=job_id) or "")


def test_no_limit_is_told_where_none_is_known():
    assert "its time limit is more" in (told("PartitionTimeLimit", resources=Resources()) or "")


def test_a_name_that_looks_like_a_template_is_a_name():
    assert "(tr{job}ain)" in (told("JobHeldUser", name="tr{job}ain") or "")


def test_nodes_that_a_job_waits_for_are_read_from_its_reason():
    reason = "ReqNodeNotAvail, UnavailableNodes:cpu_a[01-02],gpu01"
    assert unavailable(replace(WAITS, reason=reason)) == "cpu_a[01-02],gpu01"
    assert unavailable(replace(WAITS, reason=reason.replace(", ", ",_"))) == "cpu_a[01-02],gpu01"
    assert unavailable(replace(WAITS, reason="ReqNodeNotAvail")) is None
    assert unavailable(replace(WAITS, reason=reason, state="RUNNING")) is None
