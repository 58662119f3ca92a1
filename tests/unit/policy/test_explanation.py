"""What a person at a terminal is told about one rule in the policy that holds there."""

from __future__ import annotations

import pytest

from slurm_agent_tools.api.rule_examples import plan_of
from slurm_agent_tools.policy.evaluate import RULES
from slurm_agent_tools.policy.for_others import explanation
from slurm_agent_tools.policy.loading import Base, LoadedPolicy, load, shipped

RULE = next(rule for rule in RULES if rule.id == "gpus")


def loaded(site: str, project: str = "rules: {}\n") -> LoadedPolicy:
    layer = ("policies/mine.yaml", f"version: mine\n{project}".encode())
    return load(shipped(), [layer], base=Base("site", "/etc/policy.yaml", f"version: site\n{site}".encode()))


def last_line(policy: LoadedPolicy) -> str:
    return explanation(RULE, policy, plan_of).splitlines()[-1]


@pytest.mark.parametrize(
    ("policy", "place"),
    [
        (loaded("rules: {}\n"), "In this policy it answers for itself. It can be set to: "),
        (loaded("rules: {gpus: approve}\n"), "In this policy it is set to approve. It can be set to: "),
        (
            loaded("rules: {}\n", "rules: {gpus: approve}\n"),
            "In this policy it answers for itself, at least approve. It can be set to: ",
        ),
        (
            loaded("rules: {gpus: approve}\n", "rules: {gpus: deny}\n"),
            "In this policy it is set to approve, at least deny. It can be set to: ",
        ),
    ],
)
def test_a_rules_place_is_its_own_level_and_what_stricter_layers_ask(policy, place):
    assert last_line(policy).startswith(place)


def test_the_page_of_the_rule_comes_first_with_what_passes_and_what_does_not():
    told = explanation(RULE, loaded("rules: {}\n"), plan_of)
    assert told.startswith("### gpus\n")
    assert told.index("Passes:") < told.index("Does not pass:")
    for example in (*RULE.passing, *RULE.failing):
        assert f"- {example.name}\n" in told
