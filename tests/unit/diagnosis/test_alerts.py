"""Which facts raise which alert, and which do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slurm_agent_tools.diagnosis import alert_types, alerts
from slurm_agent_tools.diagnosis.alert_types import KINDS, AlertFacts, WaitEstimate
from slurm_agent_tools.diagnosis.cannot_start import cannot_start
from slurm_agent_tools.models.job import Job, JobRecord, StepUse, Usage
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Node, Partition, Reservation
from slurm_agent_tools.models.shapes import ESCALATION, Alert
from slurm_agent_tools.units import JobId

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
GIVEN = Resources(cpus=4, memory_bytes=8 * 2**30, memory_per_node_bytes=4 * 2**30, time_limit_seconds=3600)
HOSTS = frozenset({"cpu01", "cpu02"})


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def running(**changes: Any) -> Job:
    made = Job(
        JobId(7), "train", "RUNNING", ("squeue",), partition="cpu", submitted=ago(700), started=ago(600),
        elapsed_seconds=600, nodes="cpu[01-02]", resources=GIVEN, restarts=0,
    )  # fmt: skip
    return replace(made, **changes)


def pending(**changes: Any) -> Job:
    return running(**{"state": "PENDING", "started": None, "nodes": None, "reason": "Resources"} | changes)


def raised(*parts: Job, job: Job | None = None, **facts: Any) -> dict[str, Alert]:
    whole = job or parts[0]
    facts.setdefault("hosts", tuple(HOSTS if part.nodes else frozenset() for part in parts))
    found = alerts.alerts(AlertFacts(whole, parts, NOW, **facts))
    assert len({alert.code for alert in found}) == len(found)
    for alert in found:
        assert alert.escalation == ESCALATION[alert.severity]
        assert alert.severity == KINDS[alert.code][0] or alert.code == "time-left"
    return {alert.code: alert for alert in found}


def node(name: str, state: str, reason: str | None = None) -> Node:
    return Node(name, state, ("cpu",), 64, 4, 2**37, None, 0, 0, reason=reason)


def test_a_job_that_runs_well_raises_nothing():
    assert raised(running(), nodes=[node("cpu01", "mix"), node("cpu02", "alloc")], pending=3) == {}


# --- ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"])
def test_an_end_that_is_a_failure_is_critical(state: str):
    assert state in raised(running(state=state))["job-failed"].message


def test_a_failure_is_told_with_its_code_and_never_with_the_code_of_a_success():
    failed = raised(running(state="FAILED", exit_code=3))["job-failed"]
    assert failed.message == "Job 7 (train) ended in FAILED (exit code 3)."
    no_dir = raised(running(state="FAILED", exit_code=0, signal=53))["job-failed"]
    assert no_dir.message == "Job 7 (train) ended in FAILED (could not be set up)."
    late = raised(running(state="DEADLINE", exit_code=1))["job-failed"]
    assert late.message == "Job 7 (train) ended in DEADLINE."
    for state, signal in (("OUT_OF_MEMORY", 125), ("TIMEOUT", 15), ("NODE_FAIL", None)):
        told = raised(running(state=state, exit_code=0, signal=signal))["job-failed"].message
        assert told == f"Job 7 (train) ended in {state}."


def test_a_long_or_odd_name_makes_no_long_or_odd_alert():
    told = raised(running(state="FAILED", name="x\n`" * 40))["job-failed"].message
    assert "\n" not in told
    assert "`" not in told
    assert len(told) < 80


@pytest.mark.parametrize("state", ["COMPLETED", "CANCELLED", "PREEMPTED", "UNKNOWN"])
def test_other_ends_are_no_failure(state: str):
    assert "job-failed" not in raised(running(state=state))


def test_a_task_that_failed_is_told_while_the_others_go_on():
    tasks = [running(job_id=JobId(7, task=number)) for number in range(3)]
    tasks[1] = replace(tasks[1], state="FAILED", exit_code=3)
    found = raised(*tasks, job=running())
    told = "Job 7 (train): 1 task failed: 7_1 FAILED (exit code 3)."
    assert found["job-failed"].message == f"{told} The others go on."
    over = raised(*(replace(task, state="FAILED", exit_code=3) for task in tasks[1:2]), job=running(state="FAILED"))
    assert over["job-failed"].message == told
    assert found["job-failed"].job_id == "7"


def test_preemption_and_a_second_start_are_told():
    assert set(raised(running(state="PREEMPTED"))) == {"preempted"}
    again = raised(running(restarts=2))
    assert set(again) == {"requeued"}
    assert again["requeued"].message == "Slurm started job 7 again (restarts so far: 2)."
    assert raised(running(state="COMPLETED", restarts=2)) == {}


# --- nodes and partitions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["down", "down*", "fail", "failg", "mix*", "alloc*", "inval", "unk"])
def test_a_node_of_the_job_in_trouble_is_critical(state: str):
    found = raised(running(), nodes=[node("cpu01", "mix"), node("cpu02", state, "disk")])
    assert f"cpu02 is {state} (disk)" in found["node-trouble"].message


@pytest.mark.parametrize("state", ["mix", "alloc", "drng", "comp", "idle", "resv", "mix-"])
def test_a_node_that_serves_its_jobs_is_no_trouble(state: str):
    assert raised(running(), nodes=[node("cpu02", state)]) == {}


def test_a_broken_node_of_others_is_no_trouble_of_this_job():
    assert raised(running(), nodes=[node("cpu03", "down*")]) == {}


def test_a_job_that_a_node_ended_names_it():
    assert "cpu[01-02]" in raised(running(state="NODE_FAIL"))["node-trouble"].message


def test_a_lost_task_and_a_failing_node_of_another_are_one_alert():
    tasks = [running(job_id=JobId(7, task=0), state="NODE_FAIL"), running(job_id=JobId(7, task=1))]
    found = raised(*tasks, job=running(), nodes=[node("cpu02", "fail")])
    assert "A node failed under job 7" in found["node-trouble"].message
    assert "cpu02 is fail" in found["node-trouble"].message


@pytest.mark.parametrize(("state", "told"), [("DOWN", True), ("INACTIVE", True), ("DRAIN", True), ("UP", False)])
def test_a_partition_that_starts_nothing_is_told(state: str, told: bool):
    parts = {"cpu": Partition("cpu", state, True, 2, None, None)}
    assert ("partition-down" in raised(running(), partitions=parts)) is told
    assert ("partition-down" in raised(pending(partition="gpu,cpu"), partitions=parts)) is told
    assert raised(running(partition="gpu"), partitions=parts) == {}


def test_a_job_that_was_requeued_and_waits_is_not_called_started():
    told = raised(pending(restarts=1))["requeued"].message
    assert told == "Slurm put job 7 back into the queue (restarts so far: 1)."


def kept(start: float, hours: float = 1, flags: Sequence[str] = ("MAINT",), nodes: Sequence[str] = ("cpu02",)) -> Any:
    begin = NOW + timedelta(seconds=start)
    return Reservation("works", begin, begin + timedelta(hours=hours), frozenset(nodes), None, frozenset(flags))


def test_maintenance_of_its_nodes_before_its_limit_is_told():
    assert "cpu02" in raised(running(), reservations=[kept(1200)])["maintenance"].message
    assert raised(running(), reservations=[kept(3001)]) == {}  # its time limit ends it before
    assert raised(running(), reservations=[kept(1200, nodes=["cpu03"])]) == {}
    assert raised(running(), reservations=[kept(1200, flags=["SPEC_NODES"])]) == {}
    assert raised(running(), reservations=[kept(-7200)]) == {}  # over


def test_a_job_without_a_limit_meets_every_maintenance():
    free = running(resources=replace(GIVEN, time_limit_seconds=-1))
    assert set(raised(free, reservations=[kept(9 * 86400)])) == {"maintenance"}


def test_a_waiting_job_meets_it_where_no_node_is_left():
    nodes = [node("cpu01", "idle"), node("cpu02", "idle")]
    both = kept(1200, nodes=["cpu01", "cpu02"])
    assert set(raised(pending(), nodes=nodes, reservations=[both])) == {"maintenance"}
    assert raised(pending(), nodes=nodes, reservations=[kept(1200)]) == {}  # cpu01 is free
    held_up = pending(reason="ReqNodeNotAvail, Reserved for maintenance")
    assert "as Slurm says" in raised(held_up, nodes=nodes, reservations=[kept(1200)])["maintenance"].message
    assert raised(pending(), nodes=nodes, reservations=[replace(both, start=NOW + timedelta(hours=2))]) == {}


# --- memory and time ---------------------------------------------------------------------------------------------


def using(memory: float, peak: float = 0, part: Job | None = None) -> alert_types.Using | None:
    step = StepUse(7, "0", 4, int(memory * 2**30), int(peak * 2**30) or None, 60.0)
    return alert_types.measure([part or running()], {7: (step,)})


@pytest.mark.parametrize(
    ("memory", "peak", "told"), [(7.61, 0, True), (7.59, 0, False), (1, 3.81, True), (1, 3.79, False)]
)
def test_memory_above_95_per_cent_is_told_of_all_nodes_or_of_one(memory: float, peak: float, told: bool):
    assert ("memory-high" in raised(running(), using=using(memory, peak))) is told


def test_memory_that_was_not_measured_raises_nothing():
    assert raised(running(), using=alert_types.measure([running()], None)) == {}
    unknown = running(resources=replace(GIVEN, memory_bytes=None, memory_per_node_bytes=None))
    assert raised(unknown, using=using(100, 100, unknown)) == {}


def test_steps_add_up_and_the_fullest_part_is_told_of():
    half = StepUse(8, "batch", 1, 2 * 2**30, None, None)
    parts = [running(job_id=JobId(7, task=1), raw_id=8), running(job_id=JobId(7, task=2), raw_id=7)]
    found = alert_types.measure(parts, {8: (half, replace(half, step_id="0")), 7: (half,)})
    assert found is not None
    assert (found.part.job_id.task, found.memory_bytes, found.share) == (1, 4 * 2**30, 0.5)
    assert found.cpu_share(NOW) is None


def test_cpu_time_is_compared_with_all_cpus_since_the_start():
    found = using(1)
    assert found is not None
    assert found.cpu_share(NOW) == 60 / (4 * 600)


@pytest.mark.parametrize(("passed", "told"), [(3299, False), (3300, False), (3301, True), (4000, True)])
def test_less_than_five_minutes_left_is_told(passed: int, told: bool):
    assert ("time-left" in raised(running(started=ago(passed)))) is told


@pytest.mark.parametrize(
    ("limit", "passed", "severity"),
    [
        (120, 3, None),
        (300, 230, None),
        (300, 241, "critical"),
        (900, 721, "high"),
        (1500, 1199, None),
        (900, 841, "critical"),
    ],
)
def test_a_short_job_is_told_of_in_the_last_fifth_of_its_limit(limit: int, passed: int, severity: str | None):
    short = running(started=ago(passed), resources=replace(GIVEN, time_limit_seconds=limit))
    found = raised(short).get("time-left")
    assert (found.severity if found is not None else None) == severity


def test_what_is_left_is_told_with_the_name_the_limit_and_the_hour():
    message = raised(running(started=ago(3580)))["time-left"].message
    assert message == "Job 7 (train) has 20 s of its 01:00:00 left, until 12:00:20 UTC."


def test_a_job_that_is_too_slow_for_its_limit_is_told_early_with_the_figures():
    slow = alert_types.Using(running(), progress=0.1)
    found = raised(running(), using=slow)["time-left"]
    assert found.severity == "high"
    assert found.message == (
        "Job 7 (train): By its log 10 % is done; at this pace the whole run takes 01:40:00, its limit is 01:00:00:"
        " it will not be done in time."
    )
    late = running(started=ago(3590))
    both = raised(late, using=alert_types.Using(late, progress=0.5))["time-left"]
    assert (both.severity, "10 s of its" in both.message, "50 % is done" in both.message) == ("critical", True, True)


@pytest.mark.parametrize(("progress", "limit"), [(0.04, 3600), (0.16, 3600), (0.1, -1), (0.1, None), (None, 3600)])
def test_a_pace_that_is_not_known_or_nearly_fast_enough_says_nothing(progress: float | None, limit: int | None):
    part = running(resources=replace(GIVEN, time_limit_seconds=limit))
    assert raised(part, using=alert_types.Using(part, progress=progress)) == {}


@pytest.mark.parametrize("limit", [None, -1])
def test_a_job_without_a_limit_has_time(limit: int | None):
    assert raised(running(started=ago(10**6), resources=replace(GIVEN, time_limit_seconds=limit))) == {}


# --- slower than its like ----------------------------------------------------------------------------------------


def runs(*seconds: int, state: str = "COMPLETED") -> list[JobRecord]:
    one = JobRecord("1", "c", "/p", "alice", "train", "train.sh", "sha", Resources(), NOW, state)
    return [replace(one, usage=Usage(elapsed_seconds=number)) for number in seconds]


def test_a_run_beyond_twice_its_like_is_told_with_their_number():
    assert raised(running(), like=runs(300, 301, 302, 303)) == {}
    found = raised(running(), like=runs(100, 200, 250, 290))
    assert "95 % of 4 like runs took 00:04:50 at most" in found["slow-run"].message


def test_too_few_runs_or_runs_that_did_not_complete_say_nothing():
    assert raised(running(), like=runs(10, 10)) == {}
    assert raised(running(), like=[*runs(10, 10), *runs(1, 1, 1, state="FAILED")]) == {}
    assert raised(running(), like=[replace(record, usage=None) for record in runs(1, 2, 3)]) == {}


def test_a_few_seconds_more_are_not_slow():
    assert raised(running(started=ago(10)), like=runs(1, 1, 1)) == {}
    assert set(raised(running(started=ago(12)), like=runs(1, 1, 1))) == {"slow-run"}


def test_progress_tells_of_a_slow_run_early():
    early = alert_types.Using(running(), progress=0.1)
    assert "by its progress" in raised(running(), using=early, like=runs(2000, 2000, 2000))["slow-run"].message
    assert raised(running(), using=replace(early, progress=0.5), like=runs(2000, 2000, 2000)) == {}


# --- waiting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reason",
    [
        "PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "DependencyNeverSatisfied", "InvalidQOS",
        "ReservationDeleted", "QOSMaxWallDurationPerJobLimit", "AssocMaxCpuMinutesPerJobLimit", "JobHoldMaxRequeue",
        "QOSMaxGRESPerJob", "QOSMinMemory", "launch failed requeued held", "PartitionConfig", "QOSMaxNodePerJobLimit",
        "launch_failed_requeued_held", "MaxMemPerLimit", "InvalidAccount", "AccountNotAllowed", "QOSNotAllowed",
        "Job's account not permitted to use this partition (special allows guest not lab)",
    ],
)  # fmt: skip
def test_a_reason_that_no_other_job_changes_is_critical(reason: str):
    assert reason in raised(pending(reason=reason))["cannot-start"].message


@pytest.mark.parametrize(
    "reason",
    [
        "ReqNodeNotAvail", "ReqNodeNotAvail, May be reserved for other job", "JobHeldUser", "JobHeldAdmin",
        "ReqNodeNotAvail, UnavailableNodes:cpu01", "Resources", "Priority", "Dependency", "QOSMaxJobsPerUserLimit", "AssocGrpCpuLimit", "QOSMaxGRESPerUser",
        "ReqNodeNotAvail, Reserved for maintenance", "BeginTime", "Licenses", "NodeDown", "PartitionDown", None,
    ],
)  # fmt: skip
def test_a_reason_that_passes_is_not(reason: str | None):
    assert "cannot-start" not in raised(pending(reason=reason))


@pytest.mark.parametrize(("expected", "told"), [(0, True), (349, True), (350, False), (1000, False)])
def test_a_wait_beyond_twice_the_estimate_is_told_with_its_source(expected: float, told: bool):
    found = raised(pending(), estimate=WaitEstimate(expected, "by Slurm"))
    assert ("long-wait" in found) is told
    assert not told or "(by Slurm)" in found["long-wait"].message


def test_a_wait_of_half_a_minute_is_never_long():
    assert raised(pending(submitted=ago(30)), estimate=WaitEstimate(0, "by Slurm")) == {}


@pytest.mark.parametrize("reason", ["Dependency", "BeginTime", "JobHeldUser"])
def test_a_job_that_waits_for_something_else_is_not_late(reason: str):
    assert raised(pending(reason=reason), estimate=WaitEstimate(0, "by Slurm")) == {}


def test_a_wait_counts_from_when_the_job_could_run():
    assert raised(pending(eligible=ago(20)), estimate=WaitEstimate(0, "by Slurm")) == {}


def test_when_it_is_expected_now_is_told_with_it():
    late = pending(expected_start=NOW + timedelta(hours=1))
    assert "13:00 UTC" in raised(late, estimate=WaitEstimate(5, "by Slurm"))["long-wait"].message


def test_a_task_that_waits_behind_running_ones_is_not_late():
    parts = [running(job_id=JobId(7, task=1)), pending(job_id=JobId(7, tasks="2-9"))]
    assert raised(*parts, job=running(), estimate=WaitEstimate(0, "by Slurm")) == {}


@pytest.mark.parametrize(("number", "told"), [(20, False), (21, True), (None, False)])
def test_more_than_twenty_pending_jobs_are_told(number: int | None, told: bool):
    assert ("queue-backup" in raised(pending(), pending=number)) is told


def test_the_gravest_comes_first():
    found = raised(
        pending(reason="BadConstraints", restarts=1), pending=30, estimate=WaitEstimate(1, "by Slurm"),
        partitions={"cpu": Partition("cpu", "DOWN", True, 2, None, None)},
    )  # fmt: skip
    assert list(found) == ["cannot-start", "queue-backup", "partition-down", "long-wait", "requeued"]


def test_a_job_whose_dependency_can_no_longer_hold_is_told_with_it():
    part = pending(reason="DependencyNeverSatisfied", dependency="afterok:132(failed)")
    said = "it waits for afterok:132(failed), which can no longer come true (DependencyNeverSatisfied)"
    assert raised(part)["cannot-start"].message == f"Job 7 (train) can never start: {said}."
    assert cannot_start(replace(part, reason="Dependency")) is None
