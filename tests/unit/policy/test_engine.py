from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.policy.plans import asks, live, past

from slurm_agent_tools.api.rule_examples import FILE, GIB, HOUR, PROJECT, plan_of
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import Evidence, Finding, Pin
from slurm_agent_tools.policy.evaluate import EvaluationContext, decide, evaluate, format_refusal
from slurm_agent_tools.policy.for_others import page
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.policy.plan import LiveFacts, PlannedRequest
from slurm_agent_tools.units import parse_array

LOADED = load(shipped())
REPOSITORY = Path(__file__).parents[3]
SHA = "a" * 64


def plain(memory: int = 16, *, now: LiveFacts | None = None, **facts) -> PlannedRequest:
    return asks(
        "#SBATCH --gpus=1",
        f"#SBATCH --mem={memory}G",
        "#SBATCH --time=01:00:00",
        "srun python train.py",
        gpus=1,
        memory_per_node=memory * GIB,
        time_limit=HOUR,
        resources=Resources(gpus=1, cpus=4, memory_per_gpu_bytes=memory * GIB, time_limit_seconds=HOUR),
        live=now,
        request_sha256=SHA,
        **facts,
    )


def answer(plan: PlannedRequest, rule: str, *, complete: bool = False):
    decision = decide(plan, LOADED, decision_id="d1", complete=complete)
    return next(result for result in decision.rules if result.id == rule)


def test_an_ordinary_request_is_allowed_and_shows_policy_and_pins():
    added = (Pin("--nodes=1", "one node"),)
    plan = plain()
    context = EvaluationContext(
        LOADED, PROJECT, live=live(), decision_id="d1", pinned=added, numbers=plan.resources, request_sha256="r"
    )
    decision = evaluate(plan.reading, context)

    assert decision.verdict == "allow"
    assert decision.id == "d1"
    assert decision.policy.sha256 == LOADED.sha256
    assert decision.pinned[0].option == "--nodes=1"
    assert {result.outcome for result in decision.rules} == {"pass"}
    assert format_refusal(decision) == ""


def test_the_most_severe_rule_decides_and_all_are_reported():
    finding = Finding("direct-submission", "runs sbatch", Evidence(FILE, 5, "sbatch next.sh"))
    plan = plain(20, now=live(), findings=(finding,))

    decision = decide(plan, LOADED, decision_id="d1", complete=True)
    outcomes = {result.id: result.outcome for result in decision.rules}

    assert decision.verdict == "deny"
    assert outcomes["memory-per-gpu"] == "justify"
    assert outcomes["direct-submission"] == "deny"
    refusal = format_refusal(decision)
    assert refusal.index("direct-submission") < refusal.index("memory-per-gpu")
    assert "#SBATCH --mem-per-gpu=16G" in refusal


def test_a_reason_in_the_call_satisfies_the_memory_rule_and_is_named():
    result = answer(plain(24, justification="7B model in bf16"), "memory-per-gpu")

    assert result.outcome == "pass"
    assert "7B model in bf16" in result.message


@pytest.mark.parametrize("text", ["", "  ", "x", "needed", "because needed.", "<why this job needs it>"])
def test_a_reason_that_says_nothing_does_not_count(text: str):
    assert answer(plain(24, justification=text), "memory-per-gpu").outcome == "justify"


def test_without_live_facts_the_rules_that_need_them_do_not_count():
    decision = decide(plain(), LOADED, decision_id="d1")
    silent = {result.id for result in decision.rules if result.outcome == "not_evaluated"}

    assert silent == {"concurrent-jobs", "duplicate", "partition", "smoke-first", "status-first"}
    assert decision.verdict == "allow"


def test_in_a_submission_a_rule_that_lacks_a_fact_denies():
    decision = decide(plain(), LOADED, decision_id="d1", complete=True)

    assert decision.verdict == "deny"
    assert {result.id for result in decision.rules if result.outcome == "deny"} == {
        "concurrent-jobs",
        "duplicate",
        "partition",
        "smoke-first",
        "status-first",
    }


def test_a_request_without_a_hash_is_not_submitted():
    assert answer(replace(plain(now=live()), request_sha256=None), "duplicate", complete=True).outcome == "deny"


def test_a_pinned_option_is_no_option_of_the_script():
    plan = plain(now=live())
    assert plan.reading is not None
    pinned = replace(plan.reading.request.directives[0], option="no-such", source="pinned")
    request = replace(plan.reading.request, directives=(*plan.reading.request.directives, pinned))

    assert answer(replace(plan, reading=replace(plan.reading, request=request)), "directives").outcome == "pass"


def test_an_option_from_the_call_is_mended_in_the_call():
    plan = asks("srun hostname", time_limit=48 * HOUR, resources=Resources(gpus=0, time_limit_seconds=48 * HOUR))
    assert plan.reading is not None
    given = asks("#SBATCH --time=2-00").reading
    assert given is not None
    stated = replace(given.request.directives[0], source="argument")
    reading = replace(plan.reading, request=replace(plan.reading.request, directives=(stated,)))

    remedy = answer(replace(plan, reading=reading), "time-limit").remedy

    assert remedy is not None
    assert 'Call again with time_limit="1-00:00:00"' in remedy


def test_an_array_gets_the_exact_line_that_fits_beside_the_active_jobs():
    plan = asks("#SBATCH --array=[1,3,5-20]%4", array=parse_array("[1,3,5-20]%4"), live=live(active_jobs=3))

    result = answer(plan, "concurrent-jobs")

    assert result.outcome == "deny"
    assert result.remedy is not None
    assert "#SBATCH --array=1,3,5-20%1" in result.remedy


def test_the_count_that_the_ledger_took_with_this_job_in_it_decides():
    assert answer(asks("true", live=live(active_jobs=4, slots_after=4)), "concurrent-jobs").outcome == "pass"
    assert answer(asks("true", live=live(active_jobs=3, slots_after=5)), "concurrent-jobs").outcome == "deny"


def test_the_same_script_under_another_name_is_still_the_script_that_failed():
    plan = plain(now=live())
    assert plan.reading is not None
    run = past("41", script_path="scripts/other.sh", script_sha256=plan.reading.sha256, failed=True)

    assert answer(plain(now=live(history=(run,))), "auto-retry").outcome == "deny"


def test_a_reason_on_a_directive_does_not_excuse_sending_a_failed_script_again():
    plan = plain(now=live())
    assert plan.reading is not None
    run = past("41", script_sha256=plan.reading.sha256, failed=True, analysed=True)
    again = live(history=(run,))

    assert answer(plain(now=again, reason="7B model in bf16"), "auto-retry").outcome == "justify"
    assert answer(plain(now=again, justification="the driver was mended"), "auto-retry").outcome == "pass"


def test_a_failed_script_may_stay_as_it_is_where_something_else_was_corrected():
    plan = plain(now=live())
    assert plan.reading is not None
    run = past("12", script_sha256=plan.reading.sha256, failed=True, analysed=True, category="python-exception")
    remedy = answer(plain(now=live(history=(run,))), "auto-retry").remedy

    assert remedy is not None
    assert "as the diagnosis" not in remedy
    assert f"Change {plan.reading.path} itself, if the cause of job 12 lies in it, then submit it again." in remedy
    assert "Or keep it, and say what was corrected elsewhere, for instance in the program that it runs:" in remedy
    assert 'Call again with justification="' in remedy


def test_a_success_between_failures_ends_the_row():
    bad = {"failed": True, "category": "timeout", "analysed": True, "script_path": "x"}
    rows = (past("4", **bad), past("3", failed=False, script_path="x"), past("2", **bad), past("1", **bad))
    plan = asks("true", name="train", live=live(history=rows))

    assert answer(plan, "auto-retry").outcome == "pass"


@pytest.mark.parametrize(
    ("dependency", "outcome"),
    [
        ("afterok:11", "pass"),
        ("afterok:11:12,afterany:11_3", "pass"),
        ("after:11+5", "pass"),
        ("afterok:11?afterok:12", "pass"),
        ("singleton", "pass"),
        ("afterok:11,afterok:12?afterok:11", "deny"),
        ("afterok:99", "deny"),
        ("afterok", "deny"),
        ("afterok:", "deny"),
        ("afterok:x", "deny"),
        ("afterok:11+5", "deny"),
        ("", "deny"),
    ],
)
def test_a_dependency_is_read_as_sbatch_reads_it(dependency: str, outcome: str):
    plan = asks("true", dependency=dependency, live=live(known_jobs=frozenset({"11", "12", "11_3"})))

    assert answer(plan, "dependency").outcome == outcome


@pytest.mark.parametrize(
    ("dependency", "ends", "told"),
    [
        ("afterok:11", {"11": "FAILED"}, "Job 11 ended FAILED, so afterok:11 can never be met."),
        ("afterok:12:11", {"11": "TIMEOUT"}, "Job 11 ended TIMEOUT, so afterok:11 can never be met."),
        ("aftercorr:99", {"99": "CANCELLED"}, "Job 99 ended CANCELLED, so aftercorr:99 can never be met."),
        ("afternotok:11", {"11": "COMPLETED"}, "Job 11 ended COMPLETED, so afternotok:11 can never be met."),
        ("afterok:99", {"99": "COMPLETED"}, "Job 99 is over (COMPLETED) and Slurm has forgotten it."),
        ("afterany:99:98", {"99": "FAILED"}, "Job 99 is over (FAILED) and Slurm has forgotten it; Slurm does not know"),
    ],
)
def test_a_job_that_waits_for_one_that_is_over_is_told_how_it_ended(dependency: str, ends: dict[str, str], told: str):
    plan = asks("true", dependency=dependency, live=live(known_jobs=frozenset({"11", "12"}), ended_jobs=ends))

    result = answer(plan, "dependency")

    assert result.outcome == "deny"
    assert result.message.startswith(told)


@pytest.mark.parametrize(
    ("dependency", "state"),
    [
        ("afterok:11", "COMPLETED"),
        ("afterany:11", "FAILED"),
        ("after:11", "FAILED"),
        ("afterok:11?afterok:12", "FAILED"),
    ],
)
def test_an_end_that_is_waited_for_or_that_another_job_can_make_good_is_no_obstacle(dependency: str, state: str):
    facts = live(known_jobs=frozenset({"11", "12"}), ended_jobs={"11": state})

    assert answer(asks("true", dependency=dependency, live=facts), "dependency").outcome == "pass"


def test_without_a_queue_the_partitions_alone_are_enough_to_judge_the_partition():
    plan = replace(asks("#SBATCH --partition=gpuu", partition="gpuu"), partitions=live().partitions)

    assert answer(plan, "partition").outcome == "deny"
    assert answer(replace(plan, partitions=None), "partition").outcome == "not_evaluated"


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({"output": "logs/%j.out"}, "pass"),
        ({"output": "/dev/null"}, "pass"),
        ({"output": f"{PROJECT}/logs/%j.out", "chdir": f"{PROJECT}/runs"}, "pass"),
        ({"output": "../out.txt", "chdir": "runs"}, "pass"),
        ({"output": "../out.txt"}, "deny"),
        ({"output": f"{PROJECT}-other/out.txt"}, "deny"),
        ({"error": "/etc/motd"}, "deny"),
        ({"output": "%x.out", "name": "../../../etc/x"}, "deny"),
        ({"output": ".git/config"}, "deny"),
        ({"output": "src/train.py"}, "deny"),
        ({"chdir": ".."}, "deny"),
    ],
)
def test_a_jobs_folder_and_logs_stay_in_the_project(facts: dict[str, str], outcome: str):
    assert answer(asks("true", **facts), "path").outcome == outcome


@pytest.mark.parametrize(
    ("tool", "path", "facts", "outcome"),
    [
        ("save_result", "results/a.json", {}, "pass"),
        ("save_result", "documents/issues/a.md", {}, "pass"),
        ("generate_script", "scripts/slurm/generated/a.sh", {}, "pass"),
        ("save_result", "results", {}, "deny"),
        ("save_result", "resultsX/a.json", {}, "deny"),
        ("save_result", "results/../src/a.json", {}, "deny"),
        ("save_result", "scripts/slurm/generated/a.sh", {}, "deny"),
        ("generate_script", "results/a.sh", {}, "deny"),
        ("save_result", "results/a.py", {}, "deny"),
        ("save_result", "results/a.json", {"path_exists": True}, "deny"),
        ("save_result", "results/a.json", {"size": 6 * 2**20}, "deny"),
        ("generate_script", "scripts/slurm/generated/a.sh", {"size": 2 * 2**20}, "deny"),
    ],
)
def test_a_tool_writes_new_files_in_its_own_folders_only(tool: str, path: str, facts, outcome: str):
    assert answer(PlannedRequest(tool, PROJECT, path=f"{PROJECT}/{path}", **facts), "path").outcome == outcome


def test_saving_a_result_is_no_concern_of_the_rules_about_scripts():
    decision = decide(
        PlannedRequest("save_result", PROJECT, path=f"{PROJECT}/results/a.json", size=1), LOADED, decision_id="d1"
    )

    assert decision.verdict == "allow"
    assert [result.id for result in decision.rules if result.outcome != "not_evaluated"] == ["path"]


def test_a_script_that_could_not_be_read_is_refused_by_script_exists():
    decision = evaluate(None, EvaluationContext(LOADED, PROJECT, problem="it is a directory"))

    assert decision.verdict == "deny"
    assert [result.id for result in decision.rules if result.outcome == "deny"] == ["script-exists"]
    assert "it is a directory" in format_refusal(decision)


def test_checking_the_same_script_twice_gives_the_same_decision():
    plan = plain()
    context = EvaluationContext(LOADED, PROJECT, numbers=plan.resources, pinned=())
    decisions = [evaluate(plan.reading, context) for _ in range(2)]

    assert decisions[0] == decisions[1]
    assert decisions[0].verdict == "allow"


def test_memory_of_unknown_size_is_refused_with_the_line_that_states_it():
    result = answer(asks("true", gpus=2, resources=Resources(gpus=2)), "memory-per-gpu")

    assert result.outcome == "deny"
    assert result.remedy == "Add:\n#SBATCH --mem-per-gpu=16G"


def test_the_committed_reference_page_is_the_generated_one():
    path, made = REPOSITORY / "docs" / "reference" / "policy.md", page(LOADED, plan_of)
    if os.environ.get("UPDATE_REFERENCE") == "1":
        path.write_text(made, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == made, "UPDATE_REFERENCE=1 pytest tests/unit/policy/test_engine.py"
