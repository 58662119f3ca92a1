"""What a policy makes of a rule's answer, and what its files may be: the second half of each condition."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
import yaml
from tests.unit.policy.plans import asks, live

from slurm_agent_tools.api.rule_examples import FILE, GIB, PROJECT
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.models.decision import Consent, RuleDecision
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import Evidence, Finding
from slurm_agent_tools.policy.document import harsher
from slurm_agent_tools.policy.evaluate import EvaluationContext, decide, evaluate, format_refusal, format_result
from slurm_agent_tools.policy.loading import Base, LoadedPolicy, load, shipped
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.rule import reading_of

OPAQUE = Finding("opaque-code", "runs text that cannot be read", Evidence(FILE, 2, 'eval "$X"'), "approve")
GRANT = Consent(id="a1", by="ada", channel="terminal", at=datetime(2026, 1, 1, tzinfo=UTC))


def base(text: str, *layers: str) -> LoadedPolicy:
    files = [(f"policies/{number}.yaml", layer.encode()) for number, layer in enumerate(layers)]
    return load(shipped(), files, base=Base("site", "/etc/policy.yaml", text.encode()))


def result(loaded: LoadedPolicy, plan: PlannedRequest, rule: str, **more: object) -> RuleDecision:
    decision = decide(plan, loaded, **more)  # type: ignore[arg-type]
    return next(one for one in decision.rules if one.id == rule)


def opaque(**facts: object) -> PlannedRequest:
    return asks('eval "$X"', findings=(OPAQUE,), **facts)  # type: ignore[arg-type]


# --- levels -------------------------------------------------------------------------------------------------------


def test_the_more_severe_of_two_levels_counts():
    assert harsher("warn", "deny") == harsher("deny", "warn") == "deny"
    assert harsher("off", "off") == "off"


@pytest.mark.parametrize(
    ("site", "layer", "outcome"),
    [("warn", None, "warn"), ("warn", "approve", "approve"), ("deny", None, "deny"), ("approve", None, "approve"),
     ("warn", "deny", "deny"), ("approve", "deny", "deny")],
)  # fmt: skip
def test_a_violation_has_the_level_of_the_site_and_at_least_that_of_a_layer(site, layer, outcome):
    layers = [] if layer is None else [f"rules: {{opaque-code: {layer}}}"]
    found = result(base(f"rules: {{opaque-code: {site}}}", *layers), opaque(), "opaque-code")
    assert (found.outcome, found.limit) == (outcome, 0)


def test_a_rule_that_is_switched_off_passes_and_says_so():
    findings = (Finding("device-index", "names GPU 0", Evidence(FILE, 2, "x"), "warn"),)
    plan = asks("x", findings=findings)
    assert result(load(shipped()), plan, "device-index").outcome == "warn"
    plan = asks("x", findings=(replace(findings[0], level="deny"),))
    off = result(base("rules: {device-index: off}"), plan, "device-index")
    assert (off.outcome, off.observed) == ("pass", 1)
    assert off.message.startswith("Switched off by the policy. ")


@pytest.mark.parametrize(("justification", "outcome"), [(None, "justify"), ("a hook of conda", "pass")])
def test_a_rule_that_wants_a_reason_passes_with_one(justification, outcome):
    loaded = base("rules: {opaque-code: justify}")
    found = result(loaded, opaque(justification=justification), "opaque-code")
    assert (found.outcome, "Justified by: a hook of conda" in found.message) == (outcome, outcome == "pass")


@pytest.mark.parametrize(("level", "ways"), [("deny", 0), ("approve", 0), ("justify", 2)])
def test_a_reason_is_offered_only_where_it_would_do(level, ways):
    numbers = Resources(gpus=1, memory_per_gpu_bytes=20 * GIB, time_limit_seconds=60)
    plan = asks("#SBATCH --mem=20G", gpus=1, resources=numbers)
    found = result(base(f"rules: {{memory-per-gpu: {level}}}"), plan, "memory-per-gpu")
    assert (found.outcome, (found.remedy or "").count("Or give your reason")) == (level, ways)
    assert "#SBATCH --mem-per-gpu=16G" in (found.remedy or "")


def test_a_reason_on_the_line_or_in_the_call_is_not_enough_where_a_person_decides():
    numbers = Resources(gpus=1, memory_per_gpu_bytes=20 * GIB, time_limit_seconds=60)
    plan = asks("#SBATCH --mem=20G", gpus=1, resources=numbers, reason="7B model here", justification="7B model here")
    assert result(load(shipped()), plan, "memory-per-gpu").outcome == "pass"
    assert result(base("rules: {memory-per-gpu: approve}"), plan, "memory-per-gpu").outcome == "approve"


# --- a person's yes -----------------------------------------------------------------------------------------------


def test_a_yes_turns_what_needs_a_person_into_a_pass_and_nothing_else():
    findings = (OPAQUE, Finding("direct-submission", "runs sbatch", Evidence(FILE, 2, "sbatch x")))
    plan = asks("sbatch x", findings=findings)
    decision = decide(plan, load(shipped()), grant=GRANT)
    outcomes = {one.id: one for one in decision.rules}
    assert (decision.verdict, decision.approval) == ("deny", GRANT)
    assert (outcomes["opaque-code"].outcome, outcomes["direct-submission"].outcome) == ("pass", "deny")
    assert "Approved by ada (terminal, a1)" in outcomes["opaque-code"].message
    assert "Approved" not in outcomes["gpus"].message


def test_an_evaluation_hands_on_the_yes():
    reading = reading_of(opaque())
    context = EvaluationContext(
        load(shipped()), PROJECT, tool="validate_config", numbers=Resources(gpus=0, time_limit_seconds=60)
    )
    without = evaluate(reading, context)
    given = evaluate(reading, replace(context, grant=GRANT))
    told = [next(one.outcome for one in made.rules if one.id == "opaque-code") for made in (without, given)]
    assert (told, given.approval, without.approval) == (["approve", "pass"], GRANT, None)


def test_a_decision_that_nobody_remembers_has_a_short_id_of_its_script():
    context = EvaluationContext(load(shipped()), PROJECT)
    one = evaluate(reading_of(opaque()), context)
    assert (len(one.id), one.id[:6]) == (18, "check-")
    assert evaluate(reading_of(asks("other")), context).id != one.id
    assert evaluate(None, replace(context, problem="is not there")).id not in {one.id, evaluate(None, context).id}


def test_a_refusal_tells_what_stands_against_it_most_severe_first():
    findings = (OPAQUE, Finding("direct-submission", "runs sbatch", Evidence(FILE, 2, "sbatch x")))
    text = format_refusal(decide(asks("sbatch x", findings=findings), load(shipped())))
    assert text.index("direct-submission (denied): ") < text.index("opaque-code (needs a person): ")
    assert "gpus" not in text.split(":")[0]
    plain = RuleDecision(id="gpus", outcome="warn", message="Several.")
    assert format_result(plain) == "gpus (warn): Several."
    assert (
        format_result(replace(plain, outcome="justify", remedy="Ask."))
        == "gpus (needs a written reason): Several.\nAsk."
    )


# --- exceptions and a site's own rules ----------------------------------------------------------------------------


def excepted(scope: str, **facts: object) -> str:
    loaded = base(f"exceptions: [{{rule: opaque-code, reason: agreed upon, until: 2027-01-31{scope}}}]")
    made = replace(opaque(partition="gpu"), **{"user": "ada", "today": date(2027, 1, 31), **facts})  # type: ignore[arg-type]
    return result(loaded, made, "opaque-code").outcome


@pytest.mark.parametrize(
    ("scope", "facts", "outcome"),
    [
        ("", {}, "warn"),
        ("", {"today": date(2027, 2, 1)}, "approve"),
        ("", {"today": None}, "approve"),
        (", users: [ada, bob]", {}, "warn"),
        (", users: [bob]", {}, "approve"),
        (", users: [ada]", {"user": None}, "approve"),
        (", users: [a*], projects: [/elsewhere/*]", {}, "approve"),
        (", users: [a*], projects: [/home/*]", {}, "warn"),
        (", scripts: [scripts/*]", {}, "warn"),
        (", scripts: [other/*]", {}, "approve"),
        (", partitions: [gpu]", {}, "warn"),
        (", partitions: [cpu]", {}, "approve"),
        (", partitions: [cpu]", {"resources": Resources(partition="cpu")}, "warn"),
        (", partitions: [cpu, gpu]", {"resources": Resources(partition="gpu,cpu")}, "warn"),
        (", partitions: [cpu]", {"resources": Resources(partition="gpu,cpu")}, "approve"),
    ],
)
def test_an_exception_covers_what_it_names_and_nothing_that_is_not_known(scope, facts, outcome):
    assert excepted(scope, **facts) == outcome


def test_an_exception_for_another_rule_or_without_a_partition_covers_nothing():
    loaded = base("exceptions: [{rule: gpus, reason: agreed upon, until: 2027-01-31}]")
    assert result(loaded, replace(opaque(), today=date(2027, 1, 1)), "opaque-code").outcome == "approve"
    scoped = base("exceptions: [{rule: opaque-code, reason: agreed upon, until: 2027-01-31, partitions: [gpu]}]")
    assert result(scoped, replace(opaque(), today=date(2027, 1, 1)), "opaque-code").outcome == "approve"


def site(when: str, *, level: str = "deny") -> LoadedPolicy:
    return base(f"site_rules: [{{id: own, when: '{when}', message: Too many., remedy: Ask for one., level: {level}}}]")


@pytest.mark.parametrize(
    ("condition", "fine"),
    [
        ("job.`gpus` == 1", False),
        ("job.// of all\n gpus == 1", False),
        ('job.name == "`" && job.gpus == 1 // one', False),
        ('job.name == "https://example.org" && script.text != "`" && job.gpus == 1', True),
        ('job.name == """a " // b""" && job.gpus == 1', True),
    ],
)
def test_which_facts_a_sites_rule_asks_for_is_seen_or_it_is_refused(condition: str, fine: bool):
    """What it speaks of is held exactly, and asked for each partition by itself."""
    pytest.importorskip("cel_expr_python")
    rule = {"id": "own", "when": condition, "level": "deny", "message": "No.", "remedy": "Ask."}
    text = yaml.safe_dump(yaml.safe_load(shipped()) | {"site_rules": [rule]}).encode()
    if fine:
        assert "job.gpus" in load(text).expressions[0].names
    else:
        with pytest.raises(ConfigError, match="holds a backtick or a comment"):
            load(text)


def test_a_sites_rule_says_what_it_saw_and_its_condition():
    pytest.importorskip("cel_expr_python")
    plan = asks("x", name="n" * 100, resources=Resources(gpus=3))
    found = result(site('job.gpus > 2 && job.name != ""'), plan, "own")
    assert (found.outcome, found.limit, found.remedy) == ("deny", 'job.gpus > 2 && job.name != ""', "Ask for one.")
    assert found.observed == f"job.gpus=3, job.name={'n' * 57}..."
    exact = result(site('job.name != ""'), asks("x", name="n" * 60), "own")
    assert exact.observed == f"job.name={'n' * 60}"
    fine = result(site("job.gpus > 3"), plan, "own")
    assert (fine.outcome, fine.message) == ("pass", "Does not hold: job.gpus > 3")


@pytest.mark.parametrize(("justification", "outcome"), [(None, "justify"), ("three models at once", "pass")])
def test_a_sites_rule_that_wants_a_reason_passes_with_one(justification, outcome):
    pytest.importorskip("cel_expr_python")
    plan = asks("x", resources=Resources(gpus=3), justification=justification)
    assert result(site("job.gpus > 2", level="justify"), plan, "own").outcome == outcome


@pytest.mark.parametrize(
    ("when", "asked", "outcome"),
    [
        ('job.partition == "gpu"', {"partition": "gpu"}, "deny"),
        ('job.partition == "gpu"', {"partition": "gpu,"}, "deny"),
        ('job.partition == "gpu"', {"partition": ",gpu,gpu"}, "deny"),
        ('job.partition == "gpu"', {"partition": "cpu,gpu"}, "deny"),
        ('job . partition == "gpu"', {"partition": "cpu,gpu"}, "deny"),
        ('job.partition == "gpu"', {"partition": "GPU"}, "pass"),
        ('job.partition == "gpu"', {"partition": "cpu,gpus"}, "pass"),
        ('job.partition == "cpu,gpu"', {"partition": "cpu,,gpu,"}, "deny"),
        ('job.partition == "gpu" && job.qos == "urgent"', {"partition": "cpu,gpu", "qos": "normal,Urgent"}, "deny"),
        ('job.partition == "gpu" && job.qos == "urgent"', {"partition": "cpu,gpu", "qos": "normal"}, "pass"),
        ('job.qos == "urgent"', {"qos": "URGENT"}, "deny"),
        ('job.qos == "urgent"', {"qos": "normal,urgent"}, "deny"),
        ('job.partition == ""', {}, "deny"),
        ('job.partition == "usual"', {}, "deny"),
        ('job.partition == "usual"', {"partition": "cpu"}, "pass"),
        ('job.partition == "no such"', {"partition": ",".join(f"p{n}" for n in range(999))}, "pass"),
        ('job.partition == "no such"', {"partition": ",".join(f"p{n}" for n in range(1000))}, "deny"),
    ],
)
def test_a_sites_rule_speaks_of_each_partition_and_qos_of_a_list_however_it_is_written(when, asked, outcome):
    pytest.importorskip("cel_expr_python")
    plan = asks("x", resources=Resources(gpus=1, partition=asked.get("partition", "usual")), **asked)
    found = result(site(when), plan, "own")
    assert found.outcome == outcome
    assert ("more than 1000 choices" in found.message) == (str(asked.get("partition")).count(",") == 999)


@pytest.mark.parametrize(("tool", "outcome"), [("submit_job", "deny"), ("validate_config", "not_evaluated")])
def test_a_sites_rule_that_lacks_a_fact_denies_a_submission_only(tool, outcome):
    pytest.importorskip("cel_expr_python")
    plan = replace(asks("x", live=live()), tool=tool)
    assert result(site("job.gpus > 2"), plan, "own", complete=True).outcome == outcome
    assert result(site("job.gpus > 2"), plan, "own").outcome == "not_evaluated"
