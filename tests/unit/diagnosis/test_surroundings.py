"""What the nodes and partitions of a job mean for it."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.test_alerts import node, pending, raised, running

from slurm_agent_tools.model import Partition


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


@pytest.mark.parametrize(("state", "told"), [("down*", True), ("drain", True), ("alloc", False), ("plnd", False)])
def test_a_node_that_a_job_named_keeps_it_waiting_for_ever_only_where_it_takes_no_jobs(state: str, told: bool):
    part = pending(reason="ReqNodeNotAvail, UnavailableNodes:cpu01")
    nodes = [node("cpu01", state, "bad disk"), node("cpu02", "down")]
    found = raised(part, nodes=nodes, awaited=frozenset({"cpu01"}))
    assert ("cannot-start" in found) is told
    if told:
        message = found["cannot-start"].message
        assert f"takes no jobs, cpu01 is {state} (bad disk) (ReqNodeNotAvail, UnavailableNodes:cpu01)" in message
        assert "administrator" in message
        assert "cpu02" not in message
