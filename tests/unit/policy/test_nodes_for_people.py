"""What a job needs that keeps a node for a person: the base says, and any layer may ask for more."""

from __future__ import annotations

import pytest
from tests.unit.policy.plans import does

from slurm_agent_tools.policy.evaluate import decide
from slurm_agent_tools.policy.loading import Base, LoadedPolicy, load, shipped
from slurm_agent_tools.policy.plan import PlannedRequest


def base(text: str, *layers: str) -> LoadedPolicy:
    found = [(f"policies/{number}.yaml", layer.encode()) for number, layer in enumerate(layers)]
    return load(shipped(), found, base=Base("site", "/etc/policy.yaml", text.encode()))


def layered(*layers: str) -> LoadedPolicy:
    return load(shipped(), [(f"policies/{number}.yaml", layer.encode()) for number, layer in enumerate(layers)])


def outcome(loaded: LoadedPolicy, rule: str, made: PlannedRequest) -> str:
    decision = decide(made, loaded, decision_id="d")
    return next(result.outcome for result in decision.rules if result.id == rule)


def test_what_a_kept_node_needs_is_the_bases_to_loosen_and_any_layers_to_raise():
    assert load(shipped()).policy.nodes_for_people == "justify"
    raised = layered("nodes_for_people: approve", "nodes_for_people: warn")
    assert raised.policy.nodes_for_people == "approve"
    assert [note for note in raised.notes if "`nodes_for_people` cannot be loosened from justify to warn" in note]
    assert base("nodes_for_people: off").policy.nodes_for_people == "off"
    assert base("nodes_for_people: deny", "nodes_for_people: off").policy.nodes_for_people == "deny"


@pytest.mark.parametrize(
    ("level", "verdict"), [("off", "pass"), ("warn", "warn"), ("justify", "justify"), ("approve", "approve")]
)
def test_the_policy_says_what_a_kept_node_needs(level: str, verdict: str):
    kept = does("interactive", "it keeps the node for a person", "jupyter lab", level="justify")
    assert outcome(base(f"nodes_for_people: {level}"), "interactive", kept) == verdict
    assert outcome(base(f"nodes_for_people: {level}", "rules: {interactive: deny}"), "interactive", kept) in {
        "deny",
        *({verdict} & {"pass", "warn"}),
    }
