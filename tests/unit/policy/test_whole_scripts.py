"""Whole scripts on their way through reader, pins, resources and decision, without a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurm_agent_tools.api.rule_examples import FILE, PROJECT, NoFiles, read_example, text_of
from slurm_agent_tools.models.decision import Decision
from slurm_agent_tools.policy.evaluate import RULES, EvaluationContext, evaluate
from slurm_agent_tools.policy.loading import LoadedPolicy, load, shipped
from slurm_agent_tools.policy.rules.rule import Example, Rule
from slurm_agent_tools.scripts.reader import read_script

LOADED = load(shipped())
CASES = Path(__file__).parents[3] / "policies" / "tests"
SILENT = {"pass", "not_evaluated"}


async def judged(text: str, loaded: LoadedPolicy = LOADED, **facts: Any) -> Decision:
    """The decision on a text as it is really read."""
    reading = await read_script(text.encode(), FILE, project=PROJECT, files=NoFiles())
    return evaluate(reading, EvaluationContext(loaded, PROJECT, **facts))


def cases() -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = yaml.safe_load((CASES / "requests.yaml").read_text(encoding="utf-8"))
    assert found
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
async def test_the_shipped_policy_decides_its_cases_as_they_say(case: Mapping[str, Any]):
    decision = await judged(case["script"])

    spoken = {result.id: result.message for result in decision.rules if result.outcome not in SILENT}
    assert sorted(spoken) == sorted(case["expect"]["rules"]), spoken
    assert decision.verdict == case["expect"]["verdict"]


SCRIPTS = [
    (rule, example)
    for rule in RULES
    for example in (*rule.passing, *rule.failing)
    if "tool" not in example.call and example.script is not None and example.counted
]


async def of_example(example: Example, text: str) -> Decision:
    """The decision on an example's script, with the example's facts of the moment."""
    loaded: LoadedPolicy = replace(LOADED, policy=example.under(LOADED.policy))
    plan = await read_example(example, LOADED)
    return await judged(
        text,
        loaded,
        request_sha256=plan.request_sha256 or "new",
        justification=plan.justification,
        live=plan.live,
        stage=plan.stage,
        hourly_price=plan.hourly_price,
    )


@pytest.mark.parametrize(("rule", "example"), SCRIPTS, ids=[f"{rule.id}: {e.name}" for rule, e in SCRIPTS])
async def test_an_examples_text_means_what_the_example_says(rule: Rule, example: Example):
    text = text_of(example)
    assert text is not None

    decision = await of_example(example, text)

    result = next(result for result in decision.rules if result.id == rule.id)
    assert result.outcome == example.outcome, result.message
    if example in rule.passing:
        assert not [r for r in decision.rules if r.outcome in {"deny", "approve"} and r.id != rule.id], decision
