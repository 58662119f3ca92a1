"""What the nodes and partitions of a job mean for it."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.test_alerts import node, pending, raised, running

from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.units import JobId


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ("DOWN", "What waits there does not start."),
        ("INACTIVE", "What waits there does not start."),
        ("DRAIN", "What waits there may start, nothing new is taken."),
    ],
)
def test_what_a_closed_partition_means_for_a_job_is_told_as_slurm_has_it(state: str, waits: str):
    parts = {"cpu": Partition("cpu", state, True, 2, None, None)}
    assert raised(pending(), partitions=parts)["partition-down"].message.endswith(f"cpu is {state}. {waits}")
    assert raised(running(), partitions=parts)["partition-down"].message.endswith("What runs there goes on.")


LISTED = "ReqNodeNotAvail, UnavailableNodes:cpu[01-02]"
CPU01, BOTH = frozenset({"cpu01"}), frozenset({"cpu01", "cpu02"})


@pytest.mark.parametrize("reason", ["ReqNodeNotAvail, UnavailableNodes:cpu01", "Priority", None])
@pytest.mark.parametrize(("state", "told"), [("down*", True), ("drain", True), ("alloc", False), ("plnd", False)])
def test_a_node_that_a_job_named_keeps_it_waiting_for_ever_only_where_it_takes_no_jobs(
    state: str, told: bool, reason: str | None
):
    part = pending(reason=reason, required_nodes="cpu01")
    nodes = [node("cpu01", state, "bad disk"), node("cpu02", "down")]
    found = raised(part, nodes=nodes, needed={part.job_id: CPU01})
    assert ("cannot-start" in found) is told
    if told:
        message = found["cannot-start"].message
        why = "" if reason is None else f" ({reason})"
        assert f"a node that it named takes no jobs, cpu01 is {state} (bad disk){why}. An administrator" in message
        assert "cpu02" not in message


def test_a_job_that_named_no_node_is_kept_only_where_all_that_slurm_lists_take_no_jobs():
    part = pending(reason=LISTED)
    down = [node("cpu01", "down", "bad disk"), node("cpu02", "drain")]
    message = raised(part, nodes=down, needed={part.job_id: BOTH})["cannot-start"].message
    assert f"the nodes that could run it take no jobs, cpu01 is down (bad disk), cpu02 is drain ({LISTED})" in message
    assert "named" not in message
    busy = [down[0], node("cpu02", "alloc")]
    assert "cannot-start" not in raised(part, nodes=busy, needed={part.job_id: BOTH})


@pytest.mark.parametrize("reason", ["BeginTime", "Dependency", "JobHeldUser"])
def test_a_node_may_be_back_when_a_job_that_waits_for_something_else_needs_it(reason: str):
    part = pending(reason=reason, required_nodes="cpu01")
    assert "cannot-start" not in raised(part, nodes=[node("cpu01", "down")], needed={part.job_id: CPU01})


def test_each_part_needs_its_own_nodes():
    ids = [JobId(7, component=number) for number in range(2)]
    parts = [pending(job_id=one, required_nodes=f"cpu0{number}") for number, one in enumerate(ids, 1)]
    nodes = [node("cpu01", "idle"), node("cpu02", "down")]
    found = raised(*parts, nodes=nodes, needed=dict(zip(ids, (CPU01, frozenset({"cpu02"})), strict=True)))
    assert found["cannot-start"].job_id == "7+1"
