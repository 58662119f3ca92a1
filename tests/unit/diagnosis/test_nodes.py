"""What the state of a node means for jobs."""

from __future__ import annotations

import pytest

from slurm_agent_tools.models.node import Node


def node(state: str) -> Node:
    return Node("cpu01", state, ("cpu",), 64, 0, 2**37, None, 0, 0)


@pytest.mark.parametrize(
    "state",
    [
        "down", "down*", "down~", "fail", "failg", "fail*", "inval", "unk", "unk*", "idle*", "alloc*", "mix*", "comp*",
        "drain*", "drng*", "DOWN*", "err",
    ],
)  # fmt: skip
def test_a_node_that_is_down_failing_wrong_or_silent_is_in_trouble(state: str):
    assert node(state).troubled


@pytest.mark.parametrize(
    "state",
    [
        "idle", "mix", "alloc", "comp", "plnd", "resv", "maint", "idle~", "idle#", "mix%", "drain", "drng", "drained",
        "boot", "mix-", "pow_dn", "powered_down", "futr", "npc",
    ],
)  # fmt: skip
def test_a_node_that_is_taken_drained_reserved_or_powered_off_is_not(state: str):
    assert not node(state).troubled


@pytest.mark.parametrize(("state", "told"), [("drain", True), ("drng", True), ("drained*", True), ("idle", False)])
def test_a_node_that_takes_no_new_jobs_is_drained(state: str, told: bool):
    assert node(state).drained is told
