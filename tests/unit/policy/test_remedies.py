"""Whoever reads only the answer to a refused request can correct it, and is then allowed."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from tests.unit.policy.applying import NotApplicable, Request, apply, ways
from tests.unit.policy.plans import asks

from slurm_agent_tools.api.rule_examples import FILE, PROJECT, plan_of, read_example
from slurm_agent_tools.models.decision import Consent, Decision, RuleDecision
from slurm_agent_tools.policy import rules
from slurm_agent_tools.policy.evaluate import RULES, decide
from slurm_agent_tools.policy.loading import LoadedPolicy, load, shipped
from slurm_agent_tools.policy.plan import PlannedRequest, pins
from slurm_agent_tools.policy.rules.rule import PLACEHOLDERS, Example, Rule, reason_for
from slurm_agent_tools.scripts.directive_lines import pins_to_directives
from slurm_agent_tools.scripts.effective_request import effective, resolve
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.units import parse_memory

LOADED = load(shipped())
REFUSED = ("justify", "approve", "deny")
FAILING = [(rule, example) for rule in RULES for example in rule.failing]
YES = Consent(id="a1", channel="terminal", by="ada", at=datetime(2026, 1, 15, tzinfo=UTC))


@dataclass(frozen=True)
class ProjectFiles:
    """A project of these files."""

    content: dict[str, str]

    async def stat(self, path: str):
        found = self.content.get(path.removeprefix(f"{PROJECT}/"))
        return None if found is None else Stat("file", len(found))

    async def read(self, path: str, *, offset: int = 0, size: int | None = None):
        return self.content[path.removeprefix(f"{PROJECT}/")].encode()

    async def write_new(self, path: str, data: bytes, *, mode: int = 0o600):
        raise AssertionError("reading a script writes nothing")

    async def list(self, folder: str):
        return None

    async def real_path(self, path: str):
        return path


@dataclass(frozen=True)
class Stat:
    kind: str
    size: int


# --- one example after the other ------------------------------------------------------------------------------------


def answer(rule: Rule, example: Example) -> RuleDecision:
    return rule.check(plan_of(example, LOADED), example.under(LOADED.policy))


async def request_of(example: Example) -> Request:
    plan = await read_example(example, LOADED)
    reading, live = plan.reading, plan.live
    files = {} if reading is None else {reading.path: reading.text}
    return Request(files, FILE, justification=plan.justification, live=live, stage=plan.stage)


async def judged(request: Request, example: Example, rule: Rule) -> Decision:
    """The decision on what is there now, read like any script."""
    plan, loaded = await read_example(example, LOADED), replace(LOADED, policy=example.under(LOADED.policy))
    if request.approved:
        loaded = replace(loaded, policy=loaded.policy.model_copy(update={"submissions": "on"}))
    partitions = request.live.partitions if request.live is not None else None
    if request.script in request.files:
        plan = await _read(plan, request, loaded, partitions)
    plan = replace(_written(plan, request), live=request.live, justification=request.justification, stage=request.stage)
    grant = YES if request.approved else None
    return decide(plan, loaded, decision_id="d1", grant=grant)


async def _read(plan: PlannedRequest, request: Request, loaded: LoadedPolicy, partitions: Any) -> PlannedRequest:
    files = ProjectFiles(request.files)
    reading = await read_script(
        request.text.encode(), request.script, project=PROJECT, files=files, arguments=request.arguments
    )
    pinned = pins(reading.request, loaded.policy, partitions)
    known = effective([*reading.request.directives, *pins_to_directives(pinned)])
    kept = reading.request
    asked = replace(
        known,
        problems=tuple(dict.fromkeys((*kept.problems, *known.problems))),
        components=kept.components,
        interpreter=kept.interpreter,
        justification=kept.justification,
    )
    return replace(plan, reading=replace(reading, request=asked), resources=resolve(asked, partitions), problem=None)


def _written(plan: PlannedRequest, request: Request) -> PlannedRequest:
    """The file that a tool would write, as the call now names it."""
    if request.output_dir is not None:
        name = (plan.path or "2026-01-15_12-00-00_base.json").rpartition("/")[2]
        plan = replace(plan, path=f"{PROJECT}/{request.output_dir}/{name}")
    if request.name is not None and plan.path is not None:
        plan = replace(plan, path=f"{plan.path.rpartition('/')[0]}/{request.name}.sh", path_exists=False)
    if request.save_at_most is not None:
        plan = replace(plan, size=parse_memory(request.save_at_most))
    return plan


REMEDIES = {(rule.id, example.name): answer(rule, example).remedy for rule, example in FAILING}
CASES = [
    pytest.param(rule, example, way, id=f"{rule.id}: {example.name}, way {way + 1}")
    for rule, example in FAILING
    for way in range(len(ways(REMEDIES[rule.id, example.name] or "")))
]


@pytest.mark.parametrize(("rule", "example", "way"), CASES)
async def test_each_way_of_a_remedy_leads_to_allow(rule: Rule, example: Example, way: int):
    request = await request_of(example)
    remedy = REMEDIES[rule.id, example.name]
    assert remedy is not None

    apply([ways(remedy)[way]], request)
    decision = await judged(request, example, rule)

    if " yourself: " in ways(remedy)[way]:
        assert request.files == (await request_of(example)).files
        return
    spoken = {result.id: (result.message, result.remedy) for result in decision.rules if result.outcome in REFUSED}
    assert decision.verdict == "allow", (remedy, request.files.get(request.script), spoken)


READ = [(rule, example) for rule, example in FAILING if example.counted]


@pytest.mark.parametrize(("rule", "example"), READ, ids=[f"{rule.id}: {e.name}" for rule, e in READ])
async def test_an_example_is_refused_before_its_remedy_is_applied(rule: Rule, example: Example):
    decision = await judged(await request_of(example), example, rule)

    assert next(result for result in decision.rules if result.id == rule.id).outcome == example.outcome


# --- every way to fail has an example ----------------------------------------------------------------------------------

# What a rule refuses with: a verdict of its own, or one of the judgements that several rules share.
SHARED = {"judge_measure", "uncountable", "judge_findings", "speak"}
MODULES = [importlib.import_module(f"{rules.__name__}.{info.name}") for info in pkgutil.iter_modules(rules.__path__)]


def refusing_lines(module: ModuleType) -> set[int]:
    """Lines of a rule's module that make a verdict other than `pass`."""
    tree = ast.parse(inspect.getsource(module))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    calls = {node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)}
    return {node.lineno for node in calls if _refuses(node)}


def _refuses(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Name):
        return False
    if call.func.id in SHARED:
        return True
    if call.func.id != "Judgement" or not call.args:
        return False
    outcome = call.args[0]
    return not (isinstance(outcome, ast.Constant) and outcome.value in {"pass", "not_evaluated"})


def lines_run(module: ModuleType) -> set[int]:
    """Lines of the module that judging all failing examples goes through."""
    seen: set[int] = set()

    def trace(frame: Any, event: str, _: object) -> Any:
        if frame.f_code.co_filename != module.__file__:
            return None
        if event == "line":
            seen.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for rule, example in FAILING:
            rule.judge(plan_of(example, LOADED), example.under(LOADED.policy))
    finally:
        sys.settrace(before)
    return seen


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_line_that_refuses_is_reached_by_a_failing_example(module: ModuleType):
    assert refusing_lines(module) <= lines_run(module)


def test_lines_that_refuse_are_found_in_every_module_of_a_rule():
    found = Counter({module.__name__: len(refusing_lines(module)) for module in MODULES})

    assert found[f"{rules.__name__}.directives"] == 10
    assert found[f"{rules.__name__}.gpus"] == 7
    assert sum(found.values()) > 30


# What each rule that is judged in bands, or by several kinds of lines, can say.
OUTCOMES = {
    "memory-per-gpu": {"justify", "approve", "deny"},
    "gpus": {"justify", "approve", "deny"},
    "time-limit": {"justify", "approve", "deny"},
    "budget": {"approve", "deny"},
    "auto-retry": {"warn", "justify", "approve", "deny"},
}


@pytest.mark.parametrize(("rule_id", "outcomes"), OUTCOMES.items())
def test_every_answer_of_a_rule_has_an_example(rule_id: str, outcomes: set[str]):
    assert {example.outcome for rule, example in FAILING if rule.id == rule_id} == outcomes


# --- the words ---------------------------------------------------------------------------------------------------------

INTERNAL = re.compile(
    r"\b(?:None|Plan|plan|reading|verdict|finding|findings|evidence|pinned|ledger|sha256|dataclass|resolved|outcome)\b"
)


@pytest.mark.parametrize(("rule", "example"), FAILING, ids=[f"{rule.id}: {e.name}" for rule, e in FAILING])
def test_a_message_says_what_was_seen_the_limit_and_why_in_two_sentences(rule: Rule, example: Example):
    result = answer(rule, example)

    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", result.message)
    assert len(sentences) == 2, sentences
    assert INTERNAL.search(f"{result.message} {result.remedy}") is None
    told = f"{result.message} {' '.join(line.text for line in result.evidence)}"
    if isinstance(result.limit, int | float) and result.limit and not isinstance(result.observed, int):
        assert f"{result.limit:g}" in told
    if isinstance(result.observed, str) and " " not in result.observed and result.observed not in {"unknown", "off"}:
        assert result.observed in told


MEASURED = {"memory-per-gpu", "gpus", "time-limit", "concurrent-jobs", "status-first"}


@pytest.mark.parametrize(
    ("rule", "example"),
    [(rule, example) for rule, example in FAILING if rule.id in MEASURED],
    ids=[f"{rule.id}: {e.name}" for rule, e in FAILING if rule.id in MEASURED],
)
def test_a_measured_message_names_its_limit(rule: Rule, example: Example):
    result = answer(rule, example)

    assert str(result.limit) in result.message


@pytest.mark.parametrize("words", PLACEHOLDERS)
@pytest.mark.parametrize("shape", ["{}", " {} ", "{}.", "reason: {}", "{} {}"])
def test_the_words_that_stand_for_a_reason_are_none(words: str, shape: str):
    for text in (shape.replace("{}", words), shape.replace("{}", words.strip("<>")), words.upper()):
        assert reason_for(asks("x", justification=text), LOADED.policy) is None, text
        assert reason_for(asks("x", reason=text), LOADED.policy) is None, text


@pytest.mark.parametrize(
    "text", ["7B model, <8G would page", "<TBD> the 13B model takes 22G", "why: the batch needs 20G"]
)
def test_a_reason_that_holds_brackets_counts(text: str):
    assert reason_for(asks("x", justification=text), LOADED.policy) == text


async def test_a_remedy_copied_with_its_placeholder_is_refused_again():
    rule, example = next((r, e) for r, e in FAILING if r.id == "memory-per-gpu")
    line = (REMEDIES[rule.id, example.name] or "").splitlines()[4]
    assert line.endswith("# JUSTIFIED: <why this job needs it>")
    request = await request_of(example)
    request.files[FILE] = f"#!/bin/bash\n#SBATCH --gpus=1\n{line}\n"

    decision = await judged(request, example, rule)

    assert decision.verdict == "justify"


def test_what_cannot_be_applied_is_told():
    with pytest.raises(NotApplicable, match="no step"):
        apply(["Try something else."], Request({}, FILE))
    with pytest.raises(NotApplicable, match="nothing to do"):
        apply(["Note: this explains."], Request({}, FILE))
