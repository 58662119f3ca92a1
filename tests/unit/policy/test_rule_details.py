"""What rules say at their limits, and about requests that their examples leave out: figures, places, remedies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.request import Directive, Evidence, Finding, JobRequest, Resources
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules import RULES
from slurm_agent_tools.policy.rules.examples import (
    CPU,
    FILE,
    GIB,
    GPU,
    HOUR,
    NOW,
    OLD,
    PROJECT,
    asks,
    live,
    past,
)
from slurm_agent_tools.policy.rules.rule import reading_of
from slurm_agent_tools.units import UNLIMITED, parse_array, parse_job_id

POLICY = load(shipped()).policy
BY_ID = {rule.id: rule for rule in RULES}
ONE = Resources(gpus=1, nodes=1, cpus=2, memory_per_gpu_bytes=16 * GIB, time_limit_seconds=HOUR)


def says(rule: str, plan: PlannedRequest, fields: Mapping[str, object] | None = None, **limits: object) -> RuleDecision:
    """What a rule of the shipped policy says, with other limits where a test states them."""
    changed = POLICY.model_copy(update={"limits": POLICY.limits.model_copy(update=limits), **(fields or {})})
    return BY_ID[rule].check(plan, changed)


def lines(result: RuleDecision) -> list[int]:
    return [evidence.line for evidence in result.evidence]


# --- sizes, GPUs and time -----------------------------------------------------------------------------------------


def bands(kind: str, free: int, justify: int) -> object:
    return type(getattr(POLICY.limits, kind)).model_construct(free=free, justify=justify)


SMALL = {"memory_without_gpus": bands("memory_without_gpus", 2 * GIB, 3 * GIB)}


@pytest.mark.parametrize(
    ("gpus", "size", "outcome", "limit"),
    [(1, 16, "pass", "16G"), (1, 17, "justify", "16G"), (1, 25, "approve", "24G"),
     (0, 2, "pass", "2G"), (0, 3, "justify", "2G"), (0, 4, "approve", "3G")],
)  # fmt: skip
def test_memory_has_one_limit_per_gpu_and_another_where_no_gpu_is_used(gpus, size, outcome, limit):
    sizes = {"memory_per_gpu_bytes": size * GIB} if gpus else {"memory_per_node_bytes": size * GIB}
    plan = asks(f"#SBATCH --mem={size}G", gpus=gpus, resources=Resources(gpus=gpus, **sizes))
    result = says("memory-per-gpu", plan, **SMALL)
    assert (result.outcome, result.limit) == (outcome, limit)
    assert lines(result) == ([] if outcome == "pass" else [2])
    option = "mem-per-gpu" if gpus else "mem"
    assert outcome == "pass" or f"#SBATCH --{option}={16 if gpus else 2}G" in (result.remedy or "")


@pytest.mark.parametrize(("gpus", "most", "option"), [(1, "24G", "mem-per-gpu"), (0, "3G", "mem")])
def test_a_whole_nodes_memory_is_beyond_the_limit_of_its_kind(gpus, most, option):
    size = {"memory_per_gpu_bytes": 99 * GIB, "memory_per_node_bytes": 99 * GIB}
    plan = asks("#SBATCH --mem=0", gpus=gpus, memory_per_node=0, resources=Resources(gpus=gpus, **size))
    result = says("memory-per-gpu", plan, **SMALL)
    assert (result.outcome, result.limit, result.observed) == ("approve", most, "whole node, 99G")
    assert f"--{option}=" in (result.remedy or "")
    assert lines(result) == [2]


@pytest.mark.parametrize("way", ["gpus", "gpus_per_node", "gpus_per_task", "gpus_per_socket"])
def test_gpus_that_are_stated_but_not_counted_are_refused_and_none_at_all_pass(way):
    result = says("gpus", asks(f"#SBATCH --{way.replace('_', '-')}=2", **{way: 2}))
    assert (result.outcome, result.observed, result.limit, lines(result)) == ("deny", "unknown", "4", [2])
    none = says("gpus", asks(resources=Resources(gpus=0), **{way: 2}))
    assert (none.outcome, none.observed, none.limit) == ("pass", 0, 4)


@pytest.mark.parametrize(("nodes", "fewer"), [(4, False), (5, True)])
def test_more_nodes_than_free_gpus_are_fewer_nodes_in_the_remedy(nodes, fewer):
    plan = asks(f"#SBATCH --nodes={nodes}", "#SBATCH --gpus=5", nodes=nodes, gpus=5, resources=Resources(gpus=5))
    result = says("gpus", plan)
    assert (result.outcome, lines(result)) == ("justify", [2, 3] if fewer else [3])
    assert ("#SBATCH --nodes=4\n#SBATCH --gpus=4" in (result.remedy or "")) == fewer


@pytest.mark.parametrize(
    ("seconds", "outcome", "observed"),
    [(24 * HOUR, "pass", "1-00:00:00"), (24 * HOUR + 60, "justify", "1-00:01:00"), (72 * HOUR, "justify", "3-00:00:00"),
     (72 * HOUR + 60, "approve", "3-00:01:00"), (UNLIMITED, "approve", "UNLIMITED")],
)  # fmt: skip
def test_a_time_limit_is_judged_as_slurm_made_of_it(seconds, outcome, observed):
    plan = asks("#SBATCH --time=1", time_limit=60, resources=Resources(time_limit_seconds=seconds))
    result = says("time-limit", plan)
    assert (result.outcome, result.observed) == (outcome, observed)


def test_a_time_limit_that_slurm_did_not_make_is_that_of_the_script():
    assert says("time-limit", asks("#SBATCH --time=1", time_limit=60)).observed == "00:01:00"
    assert says("time-limit", asks()).remedy == "Add:\n#SBATCH --time=02:00:00"


@pytest.mark.parametrize(
    ("reason", "justification", "outcome"),
    [("7B model", None, "pass"), (None, "7B model", "pass"), ("7B mode", None, "justify"), (None, None, "justify"),
     ("<why this job needs it>", None, "justify"), ("Needed, because required!", None, "justify"),
     ("needed: 7B", None, "pass")],
)  # fmt: skip
def test_a_reason_counts_on_the_line_or_in_the_call_where_it_says_something(reason, justification, outcome):
    resources = replace(ONE, memory_per_gpu_bytes=20 * GIB)
    plan = asks("#SBATCH --gpus=1", gpus=1, resources=resources, reason=reason, justification=justification)
    assert says("memory-per-gpu", plan).outcome == outcome


# --- budget -------------------------------------------------------------------------------------------------------

FOUR = Resources(gpus=4, cpus=8, time_limit_seconds=2 * HOUR)


@pytest.mark.parametrize(
    ("limits", "facts", "outcome", "figures"),
    [
        ({"gpu_hours_per_job": 8.0}, None, "pass", (None, None)),
        ({"gpu_hours_per_job": 7.9}, None, "approve", (8.0, 7.9)),
        ({"cpu_hours_per_job": 16.0}, None, "pass", (None, None)),
        ({"cpu_hours_per_job": 15.0}, None, "approve", (16.0, 15.0)),
        ({"gpu_hours_per_day": 10.0}, {"gpu_hours_today": 2.0, "cpu_hours_today": 90.0}, "pass", (None, None)),
        ({"gpu_hours_per_day": 10.0}, {"gpu_hours_today": 2.5}, "approve", (10.5, 10.0)),
        ({"cpu_hours_per_day": 20.0}, {"cpu_hours_today": 5.0}, "approve", (21.0, 20.0)),
        ({"cpu_hours_per_day": 20.0}, {"cpu_hours_today": 4.0, "gpu_hours_today": 90.0}, "pass", (None, None)),
        ({"gpu_hours_per_day": 1.0}, None, "pass", (None, None)),
    ],
)
def test_hours_are_counted_of_the_job_and_of_the_day_each_in_its_own_unit(limits, facts, outcome, figures):
    plan = asks(
        "#SBATCH --time=02:00:00", "#SBATCH --gpus=4", resources=FOUR, live=None if facts is None else live(**facts)
    )
    result = says("budget", plan, **limits)
    assert (result.outcome, result.observed, result.limit) == (outcome, *figures)
    assert lines(result) == ([2, 3] if outcome == "approve" else [])


def test_tasks_of_an_array_count_each():
    plan = asks("#SBATCH --array=0-9%2", array=parse_array("0-9%2"), resources=FOUR)
    assert says("budget", plan, gpu_hours_per_job=80.0).outcome == "pass"
    result = says("budget", plan, gpu_hours_per_job=79.0)
    assert (result.observed, result.limit) == (80.0, 79.0)
    assert "#SBATCH --time=01:58:00" in (result.remedy or "")


@pytest.mark.parametrize(
    ("limits", "facts", "shorter"),
    [
        ({"gpu_hours_per_job": 6.0}, {}, "01:30:00"),
        ({"gpu_hours_per_job": 6.0, "cpu_hours_per_job": 8.0}, {}, "01:00:00"),
        ({"gpu_hours_per_day": 6.0}, {"gpu_hours_today": 4.0}, "00:30:00"),
        ({"cpu_hours_per_day": 12.0}, {"cpu_hours_today": 4.0}, "01:00:00"),
        ({"gpu_hours_per_day": 6.0, "cpu_hours_per_day": 3.0}, {"gpu_hours_today": 5.0, "cpu_hours_today": 1.0}, "00:15:00"),
    ],
)  # fmt: skip
def test_the_remedy_is_the_longest_time_that_keeps_to_every_budget(limits, facts, shorter):
    result = says("budget", asks("#SBATCH --time=02:00:00", resources=FOUR, live=live(**facts)), **limits)
    assert f"#SBATCH --time={shorter}" in (result.remedy or "")


@pytest.mark.parametrize(
    ("today", "limit", "wait", "shorter"),
    [(4.0, 9.0, True, True), (9.0, 9.0, True, False), (0.0, 7.0, False, True), (4.0, 7.0, False, True)],
)
def test_waiting_helps_where_the_job_alone_keeps_to_the_days_budget(today, limit, wait, shorter):
    plan = asks("#SBATCH --time=02:00:00", resources=FOUR, live=live(gpu_hours_today=today))
    remedy = says("budget", plan, gpu_hours_per_day=limit).remedy or ""
    assert ("Call get_status until" in remedy, "#SBATCH --time=" in remedy) == (wait, shorter)


def test_where_no_time_is_short_enough_a_person_is_asked():
    plan = asks(resources=replace(FOUR, gpus=1000), live=live(gpu_hours_today=5.0))
    assert (says("budget", plan, gpu_hours_per_day=5.0).remedy or "").startswith("Ask a person")
    assert (says("budget", plan, gpu_hours_per_job=1.0).remedy or "").startswith("Ask a person")


def test_what_the_longest_free_time_would_allow_is_never_exceeded():
    plan = asks("#SBATCH --time=9-00:00:00", resources=replace(FOUR, time_limit_seconds=9 * 24 * HOUR))
    remedy = says("budget", plan, gpu_hours_per_job=200.0).remedy or ""
    assert "#SBATCH --time=1-00:00:00" in remedy


@pytest.mark.parametrize(
    ("resources", "limits", "added"),
    [
        (Resources(cpus=4, time_limit_seconds=60), {"gpu_hours_per_job": 5.0}, "--gpus=1"),
        (Resources(gpus=4, time_limit_seconds=60), {"cpu_hours_per_job": 5.0}, "--cpus-per-task=1"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_the_line_that_makes_it_countable(resources, limits, added):
    result = says("budget", asks(resources=resources), **limits)
    assert (result.outcome, result.observed, result.limit) == ("deny", "unknown", 5.0)
    assert added in (result.remedy or "")
    other = "--cpus-per-task" if added == "--gpus=1" else "--gpus"
    assert other not in (result.remedy or "")


def test_no_gpu_costs_no_gpu_hours_however_long():
    endless = Resources(gpus=0, cpus=1, time_limit_seconds=UNLIMITED)
    assert says("budget", asks(resources=endless), gpu_hours_per_job=1.0).outcome == "pass"
    full = asks(resources=endless, live=live(gpu_hours_today=99.0))
    assert says("budget", full, gpu_hours_per_day=1.0).outcome == "pass"


def test_a_day_without_facts_is_not_counted_but_a_job_is():
    plan = asks(resources=Resources(time_limit_seconds=60))
    assert says("budget", plan, gpu_hours_per_day=1.0).outcome == "pass"
    assert says("budget", replace(plan, live=live()), gpu_hours_per_day=1.0).outcome == "deny"


@pytest.mark.parametrize(
    ("limits", "facts", "outcome", "figures"),
    [
        ({"max_pending_jobs": 3}, {"pending_after": 3}, "pass", (None, None)),
        ({"max_pending_jobs": 3}, {"pending_after": 4}, "deny", (4, 3)),
        ({"max_pending_jobs": 3}, {}, "deny", ("unknown", 3)),
        ({"max_daily_submissions": 3}, {"submissions_today": 2}, "pass", (None, None)),
        ({"max_daily_submissions": 3}, {"submissions_today": 3}, "deny", (3, 3)),
        ({}, {"submissions_today": 300, "pending_after": 300}, "pass", (None, None)),
    ],
)
def test_pending_jobs_and_submissions_of_a_day_are_counted_with_this_one(limits, facts, outcome, figures):
    plan = asks(resources=ONE, live=live(**facts))
    result = says("budget", plan, **limits)
    assert (result.outcome, result.observed, result.limit) == (outcome, *figures)
    assert says("budget", replace(plan, tool="generate_script"), **limits).outcome == "pass"


def test_the_counts_that_pass_are_told():
    plan = asks(resources=ONE, live=live(pending_after=2, submissions_today=4, gpu_hours_today=1.5))
    limits = {"max_pending_jobs": 3, "max_daily_submissions": 5, "gpu_hours_per_job": 2.0, "gpu_hours_per_day": 3.0}
    message = says("budget", plan, **limits).message
    for words in ("1 of 2 GPU hours", "2.5 of 3 GPU hours", "2 of 3 pending", "5 of 5 submissions"):
        assert words in message


def test_submissions_that_are_off_stop_submitting_and_nothing_else():
    off = {"submissions": "off"}
    assert says("budget", asks(), off).outcome == "deny"
    assert says("budget", replace(asks(), tool="validate_config"), off).outcome == "pass"


# --- concurrent jobs ----------------------------------------------------------------------------------------------


def running(*ids: str) -> tuple[Job, ...]:
    return tuple(Job(parse_job_id(text), "train", "RUNNING", ("squeue",)) for text in ids)


def array(text: str, **facts: object) -> PlannedRequest:
    return asks(f"#SBATCH --array={text}", array=parse_array(text), **facts)  # type: ignore[arg-type]


def test_an_array_that_is_too_wide_alone_is_throttled_to_the_limit():
    result = says("concurrent-jobs", array("0-9%5"))
    assert (result.outcome, result.observed, result.limit, lines(result)) == ("deny", 5, 4, [2])
    assert "#SBATCH --array=0-9%4" in (result.remedy or "")
    assert says("concurrent-jobs", replace(array("0-9%4"), tool="generate_script")).outcome == "pass"


def test_a_width_that_slurm_told_counts_where_the_script_states_none():
    assert says("concurrent-jobs", asks(resources=Resources(array_concurrency=5))).observed == 5
    assert says("concurrent-jobs", asks()).outcome == "not_evaluated"


@pytest.mark.parametrize(
    ("facts", "after"),
    [
        ({"active_jobs": 3}, 4),
        ({"active_jobs": 4}, 5),
        ({"active_jobs": 4, "takes_over": "7"}, 4),
        ({"active_jobs": 0, "slots_after": 5}, 5),
        ({"active_jobs": 9, "slots_after": 4}, 4),
    ],
)
def test_slots_are_counted_with_this_job_in_them(facts, after):
    result = says("concurrent-jobs", asks(live=live(**facts)))
    assert (result.observed, result.limit, result.outcome) == (after, 4, "pass" if after <= 4 else "deny")


def test_a_remedy_waits_for_as_many_jobs_as_are_too_many():
    facts = {"active": running("11_0", "11_1", "12", "13"), "active_jobs": 4}
    remedy = says("concurrent-jobs", asks(live=live(**facts))).remedy or ""
    assert remedy.splitlines()[0] == 'wait_for_job with job_id="11" until it has ended, then submit again.'
    assert 'job_id="12"' not in remedy
    assert "11, 12, 13" in remedy
    wide = says("concurrent-jobs", array("0-9%3", live=live(**facts))).remedy or ""
    assert ('job_id="13"' in wide, "--array" in wide) == (True, False)
    assert (says("concurrent-jobs", asks(live=live(active_jobs=4))).remedy or "").startswith("Call get_status")


def test_an_array_for_which_a_slot_is_left_may_be_throttled_to_it():
    facts = {"active": running("11", "12"), "active_jobs": 2}
    result = says("concurrent-jobs", array("0-9%3", live=live(**facts)))
    assert (result.observed, lines(result)) == (5, [2])
    first, _, second = (result.remedy or "").partition("\nOr ")
    assert "#SBATCH --array=0-9%2" in first
    assert ('job_id="11"' in second, 'job_id="12"' in second) == (True, False)


# --- the same again -----------------------------------------------------------------------------------------------

SHA = "2" * 64


def again(*, active: bool = True, sha: str = SHA, **more: object) -> PlannedRequest:
    history = (past("50", request_sha256=SHA, active=active), past("49", request_sha256=sha, active=True))
    return asks(request_sha256=SHA, live=live(history=history), **more)  # type: ignore[arg-type]


def test_a_request_is_the_same_while_a_job_of_it_is_active():
    both = says("duplicate", again())
    assert (both.outcome, both.observed) == ("justify", "50, 49")
    assert [f'job_id="{number}"' in (both.remedy or "") for number in (50, 49)] == [True, True]
    assert says("duplicate", again(sha="3" * 64)).observed == "50"
    assert says("duplicate", again(active=False, sha="3" * 64)).outcome == "pass"


def test_only_the_reason_in_the_call_allows_the_same_request_twice():
    assert says("duplicate", again(reason="measures the noise")).outcome == "justify"
    allowed = says("duplicate", again(justification="measures the noise"))
    assert (allowed.outcome, allowed.observed) == ("pass", "50, 49")


def test_a_request_without_a_hash_cannot_be_compared():
    assert says("duplicate", replace(again(), request_sha256=None)).outcome == "not_evaluated"


# --- a failure before ---------------------------------------------------------------------------------------------


def after_failure(**facts: object) -> PlannedRequest:
    plan = asks("python train.py", name="train")
    run = past("41", **{"script_sha256": reading_of(plan).sha256, "failed": True, **facts})
    return replace(plan, live=live(history=(run,)))


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({}, "deny"),
        ({"failed": False}, "pass"),
        ({"failed": None}, "pass"),
        ({"analysed": True}, "justify"),
        ({"analysed": True, "script_sha256": "0" * 64}, "pass"),
        ({"script_path": "other.sh"}, "deny"),
        ({"script_path": "other.sh", "script_sha256": "0" * 64}, "pass"),
    ],
)
def test_a_failure_of_this_script_by_its_name_or_its_text_is_looked_at_first(facts, outcome):
    plan = after_failure(**facts)
    result = says("auto-retry", plan)
    assert result.outcome == outcome
    assert outcome == "pass" or "41" in result.message
    assert ('analyze_log with job_id="41"' in (result.remedy or "")) == (outcome == "deny")
    assert says("auto-retry", replace(plan, tool="generate_script")).outcome == "pass"


def test_only_the_reason_in_the_call_allows_an_unchanged_script_after_a_failure():
    plan = after_failure(analysed=True, category="out-of-memory", outcome="OUT_OF_MEMORY")
    result = says("auto-retry", plan)
    assert (result.observed, "(out-of-memory)" in result.message) == ("OUT_OF_MEMORY", True)
    assert says("auto-retry", replace(plan, justification="the node was mended")).outcome == "pass"


@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        (["timeout"] * 3, "approve"),
        (["timeout"] * 2, "pass"),
        (["timeout", "timeout", "oom"], "pass"),
        (["oom", "timeout", "timeout", "timeout"], "pass"),
        (["timeout", "timeout", "timeout", "oom"], "approve"),
    ],
)
def test_three_failures_of_one_kind_in_a_row_need_a_person(kinds, outcome):
    runs = [
        past(str(60 - n), failed=True, analysed=True, category=kind, job_name="train") for n, kind in enumerate(kinds)
    ]
    plan = asks("python train.py", name="train", live=live(history=tuple(runs)))
    result = says("auto-retry", plan)
    assert result.outcome == outcome
    assert (result.observed, result.limit) == ((3, 2) if outcome == "approve" else (None, None))
    active = past("61", active=True, job_name="train", script_path="x")
    assert says("auto-retry", replace(plan, live=live(history=(active, *runs)))).outcome == outcome
    good = replace(runs[0], failed=False)
    assert says("auto-retry", replace(plan, live=live(history=(good, *runs[1:3])))).outcome == "pass"


def test_a_script_without_a_name_is_known_by_its_files():
    runs = tuple(past(str(60 - n), failed=True, analysed=True, outcome="FAILED", job_name="train.sh") for n in range(3))
    assert says("auto-retry", asks("python train.py", live=live(history=runs))).outcome == "approve"


def test_requeue_and_a_start_after_a_failure_are_denied_with_their_lines():
    plan = asks("#SBATCH --requeue", "#SBATCH --dependency=afternotok:5", dependency="afternotok:5")
    result = says("auto-retry", plan)
    assert (result.outcome, result.observed, result.limit, lines(result)) == ("deny", 2, 0, [2, 3])
    fine = asks("#SBATCH --dependency=afterok:5", dependency="afterok:5")
    assert says("auto-retry", fine).outcome == "pass"


def test_the_most_severe_thing_that_is_found_is_told():
    finding = Finding("auto-retry", "tries again", Evidence(FILE, 2, "retry python train.py"), "approve")
    plan = asks("retry python train.py", findings=(finding,))
    assert says("auto-retry", plan).outcome == "approve"
    requeued = asks("retry python train.py", "#SBATCH --requeue", findings=(finding,))
    result = says("auto-retry", requeued)
    assert (result.outcome, result.observed, lines(result)) == ("deny", 2, [3, 2])
    history = after_failure().live
    assert says("auto-retry", replace(plan, live=history)).outcome == "deny"


# --- partitions ---------------------------------------------------------------------------------------------------


def on(names: str | None, *, seconds: int | None = None, gpus: int | None = None, **facts: object) -> RuleDecision:
    stated = ["#SBATCH --time=1", *([f"#SBATCH --partition={names}"] if names else [])]
    resources = Resources(time_limit_seconds=seconds, gpus=gpus)
    return says("partition", asks(*stated, partition=names, resources=resources, live=live(**facts)))


def test_every_named_partition_is_looked_at_and_the_default_where_none_is():
    assert (on("cpu, gpu").outcome, on("cpu, gpu").observed) == ("pass", "cpu,gpu")
    assert on(None).observed == "gpu"
    assert (on("cpu,old").outcome, on("cpu,old").observed, on("cpu,old").limit) == ("deny", "old", "cpu, gpu")
    assert lines(on("nowhere")) == [3]
    assert on(None, partitions={"cpu": CPU}).outcome == "deny"


@pytest.mark.parametrize(
    ("names", "seconds", "outcome", "most"),
    [
        ("cpu", 24 * HOUR, "pass", None),
        ("cpu", 24 * HOUR + 60, "deny", "1-00:00:00"),
        ("cpu,gpu", 96 * HOUR, "pass", None),
        ("cpu,gpu", 97 * HOUR, "deny", "4-00:00:00"),
        ("cpu", UNLIMITED, "deny", "1-00:00:00"),
        ("cpu", None, "pass", None),
    ],
)
def test_a_time_beyond_what_any_of_the_partitions_gives_would_wait_for_ever(names, seconds, outcome, most):
    result = on(names, seconds=seconds)
    assert (result.outcome, outcome == "pass" or result.limit) == (outcome, outcome == "pass" or most)
    assert outcome == "pass" or lines(result) == [2]


def test_a_partition_without_a_limit_takes_any_time():
    free = replace(CPU, max_time_seconds=None)
    assert (
        on("cpu,free", seconds=UNLIMITED, partitions={"cpu": CPU, "free": replace(free, name="free")}).outcome == "pass"
    )


@pytest.mark.parametrize(
    ("gpus", "seconds", "offered", "best"),
    [
        (1, None, [CPU, GPU], "gpu"),
        (0, None, [CPU, GPU], "cpu"),
        (1, None, [CPU], "cpu"),
        (0, 48 * HOUR, [CPU, replace(CPU, name="long", max_time_seconds=48 * HOUR)], "long"),
        (0, 24 * HOUR, [replace(CPU, name="b", default=True), replace(CPU, name="a")], "b"),
        (0, None, [replace(CPU, name="b"), replace(CPU, name="a")], "a"),
        (0, UNLIMITED, [CPU, replace(CPU, name="free", max_time_seconds=None)], "free"),
        (0, UNLIMITED, [replace(CPU, name="x", default=True), replace(CPU, name="free", max_time_seconds=None)], "free"),
        (0, None, [replace(OLD, name="older"), CPU], "cpu"),
    ],
)  # fmt: skip
def test_the_partition_that_is_proposed_is_up_and_fits_the_job_best(gpus, seconds, offered, best):
    result = on("nowhere", gpus=gpus, seconds=seconds, partitions={p.name: p for p in offered})
    assert f"#SBATCH --partition={best}" in (result.remedy or "")


def test_where_no_partition_is_up_one_waits():
    result = on("old", partitions={"old": OLD})
    assert (result.remedy or "").startswith("Call get_status")
    assert result.limit == "none"


def test_partitions_count_where_only_they_were_asked_for():
    plan = replace(asks(partition="old"), partitions={"old": OLD})
    assert says("partition", plan).outcome == "deny"
    assert says("partition", asks(partition="old")).outcome == "not_evaluated"
    assert says("partition", replace(plan, live=live(partitions={"old": CPU}))).outcome == "pass"


# --- a look first -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ago", "outcome", "observed"), [(600, "pass", 600), (601, "deny", 601), (-5, "pass", 0), (None, "deny", None)]
)
def test_a_look_counts_for_ten_minutes(ago, outcome, observed):
    read = None if ago is None else NOW - timedelta(seconds=ago)
    result = says("status-first", asks(live=live(status_read=read)))
    assert (result.outcome, result.observed, result.limit) == (outcome, observed, 600)


# --- scripts and files --------------------------------------------------------------------------------------------


def test_a_script_may_be_as_long_as_the_limit():
    plan = asks("# " + "ü" * 100)
    size = len(reading_of(plan).text.encode())
    sizes = POLICY.sizes.model_copy(update={"script_bytes": size})
    assert says("script-exists", plan, {"sizes": sizes}).outcome == "pass"
    smaller = POLICY.sizes.model_copy(update={"script_bytes": size - 1})
    result = says("script-exists", plan, {"sizes": smaller})
    assert (result.outcome, result.observed, result.limit) == ("deny", size, size - 1)


def saves(path: str, **facts: object) -> RuleDecision:
    return says("path", PlannedRequest("save_result", PROJECT, path=f"{PROJECT}/{path}", **facts))  # type: ignore[arg-type]


def test_a_result_may_be_as_large_as_the_limit_and_a_script_has_its_own():
    most = POLICY.sizes.result_bytes
    assert saves("results/a.json", size=most).outcome == "pass"
    result = saves("results/a.json", size=most + 1)
    assert (result.outcome, result.observed, result.limit) == ("deny", most + 1, most)
    script = PlannedRequest("generate_script", PROJECT, path=f"{PROJECT}/scripts/slurm/generated/a.sh", size=2**20)
    assert says("path", script).outcome == "pass"
    assert says("path", replace(script, size=2**20 + 1)).outcome == "deny"


def test_a_file_is_written_into_a_folder_of_the_policy_and_over_nothing():
    assert saves("results").outcome == "deny"
    assert saves("results2/a.json").outcome == "deny"
    assert saves("results/../a.json").outcome == "deny"
    there = saves("results/My run: 3.json", path_exists=True)
    assert (there.outcome, there.observed) == ("deny", "results/My run: 3.json")
    assert 'name="My-run-3-2"' in (there.remedy or "")
    assert saves("results/a.json", path_exists=True, adds=True).outcome == "pass"
    guarded = saves("results/a.py")
    assert (guarded.outcome, guarded.observed, guarded.limit) == ("deny", "results/a.py", "*.py")
    outside = says("path", PlannedRequest("save_result", PROJECT, path="/tmp/a.json"))
    assert (outside.observed, outside.limit) == ("/tmp/a.json", "results/, documents/")
    assert 'output_dir="results"' in (outside.remedy or "")


def named(**request: str | None) -> RuleDecision:
    stated = [f"#SBATCH --{option}={value}" for option, value in request.items() if option != "name"]
    own = {option: value for option, value in request.items() if option != "input"}
    return says("path", asks(*stated, **own))


@pytest.mark.parametrize(
    ("request_", "outcome"),
    [
        ({"output": "logs/%j.out"}, "pass"),
        ({"output": "/dev/null", "error": "../x"}, "deny"),
        ({"output": "../x"}, "deny"),
        ({"input": "../x"}, "deny"),
        ({"input": "data/x.py"}, "pass"),
        ({"output": "train.py"}, "deny"),
        ({"error": ".env"}, "deny"),
        ({"chdir": ".."}, "deny"),
        ({"chdir": "sub", "output": "../x"}, "pass"),
        ({"chdir": "sub", "output": "../../x"}, "deny"),
        ({"output": "%x.out", "name": "../../x"}, "deny"),
        ({"output": "%x.out", "name": "x"}, "pass"),
    ],
)
def test_logs_and_folders_of_a_job_stay_inside_the_project_by_the_names_that_slurm_opens(request_, outcome):
    assert named(**request_).outcome == outcome


def test_a_folder_for_logs_outside_the_project_takes_logs_and_protects_none():
    folder = {"log_folders": ("/scratch/logs",)}
    plan = asks("#SBATCH --output=/scratch/logs/a.py", output="/scratch/logs/a.py")
    assert says("path", plan, folder).outcome == "pass"
    other = asks("#SBATCH --output=/scratch/other/a", output="/scratch/other/a")
    result = says("path", other, folder)
    assert (result.outcome, lines(result)) == ("deny", [2])
    assert "%x-%j.out" in (result.remedy or "")


# --- what a job waits for -----------------------------------------------------------------------------------------


def waits(dependency: str, **facts: object) -> RuleDecision:
    return says("dependency", asks(f"#SBATCH --dependency={dependency}", dependency=dependency, live=live(**facts)))


@pytest.mark.parametrize(
    ("dependency", "facts", "outcome"),
    [
        ("afterok:5", {"known_jobs": frozenset({"5"})}, "pass"),
        ("afterok:5_3", {"known_jobs": frozenset({"5_3"})}, "pass"),
        ("afterok:5:6", {"known_jobs": frozenset({"5"})}, "deny"),
        ("afterok:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "FAILED"}}, "deny"),
        ("afterok:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "COMPLETED"}}, "pass"),
        ("afternotok:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "COMPLETED"}}, "deny"),
        ("afternotok:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "FAILED"}}, "pass"),
        ("afterany:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "FAILED"}}, "pass"),
        ("afterok:5?afterok:6", {"known_jobs": frozenset({"5", "6"}), "ended_jobs": {"5": "FAILED"}}, "pass"),
        ("singleton", {}, "pass"),
        ("singleton,afterok:5", {}, "deny"),
        ("afterok:5,afterok:6?afterok:7", {"known_jobs": frozenset({"5", "6", "7"})}, "deny"),
        ("afterok", {}, "deny"),
        ("AfterOK:5", {"known_jobs": frozenset({"5"})}, "pass"),
        ("after:5+10", {"known_jobs": frozenset({"5"})}, "pass"),
        ("afterok:5+10", {"known_jobs": frozenset({"5"})}, "deny"),
        ("singleton:5", {}, "deny"),
    ],
)
def test_what_a_job_waits_for_can_be_read_and_can_happen(dependency, facts, outcome):
    result = waits(dependency, **facts)
    assert (result.outcome, result.observed) == (outcome, dependency)
    assert lines(result) == ([] if outcome == "pass" else [2])


def test_a_job_that_is_over_and_forgotten_is_told_with_its_end():
    over = waits("afterany:5:6", ended_jobs={"5": "FAILED"})
    assert "Job 5 is over (FAILED) and Slurm has forgotten it; Slurm does not know job 6." in over.message
    assert "22.05" in over.message
    assert "nothing left to wait for" in waits("afterany:5", ended_jobs={"5": "FAILED"}).message
    failed = waits("afterok:5", ended_jobs={"5": "FAILED"}).remedy or ""
    well = waits("afternotok:5", ended_jobs={"5": "COMPLETED"}).remedy or ""
    assert ('analyze_log with job_id="5"' in failed, "analyze_log" in well) == (True, False)


def test_a_dependency_without_facts_is_not_judged():
    plan = asks("#SBATCH --dependency=afterok:5", dependency="afterok:5")
    assert says("dependency", plan).outcome == "not_evaluated"
    assert says("dependency", asks()).outcome == "pass"


# --- options ------------------------------------------------------------------------------------------------------


def test_options_that_were_added_by_the_guard_are_not_the_scripts():
    plan = asks("#SBATCH --exclusive")
    reading = reading_of(plan)
    pinned = Directive("mincpus", "2", "pinned", Evidence(FILE, 1, ""))
    both = replace(reading.request, directives=(*reading.request.directives, pinned))
    result = says("directives", replace(plan, reading=replace(reading, request=both)))
    assert (result.outcome, result.observed, result.limit, lines(result)) == (
        "deny",
        "exclusive",
        "allowed_options",
        [2],
    )
    assert says("directives", asks("#SBATCH --gpus=1", "#SBATCH --requeue")).observed == 2


def test_more_than_one_component_is_refused_with_their_number():
    result = says("directives", asks("#SBATCH --ntasks=1", components=3))
    assert (result.outcome, result.observed, result.limit) == ("deny", 3, 1)
    assert says("directives", asks("#SBATCH --ntasks=1", components=1)).outcome == "pass"


def test_a_problem_of_no_line_is_told_without_one():
    plan = asks("#SBATCH --nodes=x")
    problems = (Evidence(FILE, 0, "the file is empty"), Evidence(FILE, 2, "nodes is no number"))
    reading = replace(reading_of(plan), request=JobRequest(problems=problems))
    result = says("directives", replace(plan, reading=reading))
    assert (result.outcome, result.observed, result.limit) == ("deny", 2, 0)
    assert "The file is empty; line 2: nodes is no number." in result.message


def test_an_export_that_passes_a_device_variable_is_told_once_and_only_where_the_script_states_it():
    line = "#SBATCH --export=ALL,CUDA_VISIBLE_DEVICES=0,NVIDIA_VISIBLE_DEVICES"
    plan = asks(line)
    result = says("cuda-visible-devices", plan)
    assert (result.outcome, result.observed, result.limit, lines(result)) == ("deny", 1, 0, [2])
    assert "CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES" in result.message
    found = Finding("cuda-visible-devices", "sets it", Evidence(FILE, 2, line))
    assert says("cuda-visible-devices", asks(line, findings=(found,))).observed == 1
    reading = reading_of(plan)
    pinned = tuple(replace(one, source="pinned") for one in reading.request.directives)
    added = replace(reading, request=replace(reading.request, directives=pinned))
    assert says("cuda-visible-devices", replace(plan, reading=added)).outcome == "pass"


# --- what every rule shares ---------------------------------------------------------------------------------------


def test_a_rule_is_silent_about_tools_scripts_and_moments_that_it_does_not_know():
    rule = BY_ID["status-first"]
    assert rule.applies(asks())
    assert not rule.applies(replace(asks(), tool="generate_script"))
    assert not rule.applies(replace(asks(), reading=None))
    assert BY_ID["script-exists"].applies(replace(asks(), reading=None))
    for plan in (replace(asks(), tool="save_result"), replace(asks(), reading=None), asks()):
        assert rule.check(plan, POLICY).outcome == "not_evaluated"
