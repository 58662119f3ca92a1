"""Tiers by the memory of GPUs: what names tell, what the settings tell, and what nobody does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.fleet.looks import node

from slurm_agent_tools.fleet.gpu_tiers import CPU_ONLY, NOT_KNOWN, by_tier, gpu_memory, tier_of_memory, tier_of_node
from slurm_agent_tools.settings import FleetSettings

USUAL = FleetSettings()


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("h100", 80), ("nvidia_h100_80gb_hbm3", 80), ("a100_80gb", 80), ("a100-sxm4-40gb", 40), ("h200", 141), ("gh200", 96),
        ("tesla_v100-sxm2-32gb", 32), ("nvidia_rtx_a6000", 48), ("rtx_a5000", 24), ("geforce_rtx_2080_ti", 11),
        ("rtx_4090", 24), ("l40s", 48), ("l4", 24), ("nvidia_a100_1g.5gb", 5), ("3g.20gb", 20), ("a100_1g_5gb", 5), ("mig-1g-10gb", 10), ("1g.10gb", 10),
        ("mi300x", 192), ("t4", 16), ("a10", 24), ("gb200", 186), ("rtx_6000_ada", 48), ("rtxa6000", 48),
    ],
)  # fmt: skip
def test_a_model_or_a_size_in_the_name_tells_the_memory(kind: str, size: float):
    assert gpu_memory(kind, {}).size == size


@pytest.mark.parametrize("kind", ["", "gpu", "fast", "xpu9", "a1000000", "v1000", "tx4"])
def test_a_name_that_says_nothing_is_not_known(kind: str):
    assert gpu_memory(kind, {}).size is None


def test_a_model_of_several_sizes_counts_as_the_smallest_and_that_is_told():
    assert (gpu_memory("a100", {}).size, gpu_memory("a100", {}).assumed) == (40, True)
    assert not gpu_memory("a100_80gb", {}).assumed
    assert not gpu_memory("a100", {"a100": 80}).assumed


@given(st.text(max_size=30))
def test_the_settings_go_before_every_name(kind: str):
    assert gpu_memory(kind, {kind: 7.0}).size == 7


@pytest.mark.parametrize(
    ("size", "tier"),
    [
        (141, "80G and more"), (80, "80G and more"), (79, "32G to 79G"), (32, "32G to 79G"), (31, "8G to 31G"),
        (8, "8G to 31G"), (6, "under 8G"), (None, NOT_KNOWN),
    ],
)  # fmt: skip
def test_the_edges_of_the_usual_tiers(size: float | None, tier: str):
    assert tier_of_memory(size, USUAL) == tier


def test_tiers_are_named_by_the_settings_and_come_in_order():
    mine = FleetSettings(tiers={"small": 0, "huge": 100})
    nodes = [node("c1"), node("a1", "a100", 4), node("h1", "h200", 8), node("x1", "what", 1)]
    assert list(by_tier(nodes, mine)) == ["huge", "small", NOT_KNOWN, CPU_ONLY]
    assert tier_of_node(nodes[0], mine) == CPU_ONLY
