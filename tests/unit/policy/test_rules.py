from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from tests.unit.policy.plans import asks

from slurm_agent_tools.api.rule_examples import plan_of
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.evaluate import RULES, decide
from slurm_agent_tools.policy.loading import LoadedPolicy, load, shipped
from slurm_agent_tools.policy.rules.rule import Example, Level, Rule

LOADED = load(shipped())
CASES = [(rule, example) for rule in RULES for example in (*rule.passing, *rule.failing)]
CONTRACT = (
    "memory-per-gpu gpus time-limit concurrent-jobs budget cuda-visible-devices device-index auto-retry duplicate "
    "direct-submission interactive smoke-first partition dependency script-exists status-first path directives opaque-code"
)


def with_limits(example: Example) -> Policy:
    return example.under(LOADED.policy)


@pytest.mark.parametrize(("rule", "example"), CASES, ids=[f"{rule.id}: {e.name}" for rule, e in CASES])
def test_a_rule_decides_its_examples_as_it_says(rule: Rule, example: Example):
    result = rule.check(plan_of(example, LOADED), with_limits(example))

    assert result.id == rule.id
    assert result.outcome == example.outcome, result.message


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_fails_by_its_levels_only_and_always_with_a_remedy(rule: Rule):
    for example in rule.failing:
        result = rule.check(plan_of(example, LOADED), with_limits(example))

        assert result.outcome in rule.levels
        assert result.remedy
        assert result.message.count(". ") >= 1, "one sentence what, one sentence why"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_refused_directive_is_shown_with_its_line(rule: Rule):
    for example in rule.failing:
        plan = plan_of(example, LOADED)
        reading = plan.reading
        result = rule.check(plan, with_limits(example))
        added = (
            {d.evidence for d in reading.request.directives if d.source == "pinned"} if reading is not None else set()
        )
        for evidence in (one for one in result.evidence if one not in added):
            assert reading is not None
            assert evidence.file == reading.path
            assert 1 <= evidence.line <= len(reading.text.splitlines())


def test_the_rules_are_those_of_the_contract_in_its_order():
    assert [rule.id for rule in RULES] == CONTRACT.split()


def test_a_rule_takes_known_levels_only():
    assert all(set(rule.levels) <= set(get_args(Level)) for rule in RULES)


@pytest.mark.parametrize("part", ["passing", "failing"])
def test_a_rule_without_examples_cannot_exist(part: str):
    with pytest.raises(ValueError, match="needs examples that pass and that fail"):
        replace(RULES[0], **{part: ()})


def loaded_with(example: Example) -> LoadedPolicy:
    return replace(LOADED, policy=with_limits(example))


@pytest.mark.parametrize(("rule", "example"), CASES, ids=[f"{rule.id}: {e.name}" for rule, e in CASES])
def test_every_example_has_an_answer_from_every_rule(rule: Rule, example: Example):
    decision = decide(plan_of(example, LOADED), loaded_with(example), decision_id="d1")

    assert [result.id for result in decision.rules] == CONTRACT.split()
    own = next(result for result in decision.rules if result.id == rule.id)
    severe = {"deny": {"deny"}, "approve": {"approve", "deny"}, "justify": {"justify", "approve", "deny"}}
    assert own.outcome not in severe or decision.verdict in severe[own.outcome]


def test_a_plan_without_a_script_is_refused_by_script_exists_alone():
    plan = replace(asks(), reading=None, problem="scripts/train.sh does not exist")

    decision = decide(plan, LOADED, decision_id="d1", complete=True)

    denied = [result.id for result in decision.rules if result.outcome == "deny"]
    assert decision.verdict == "deny"
    assert "script-exists" in denied
