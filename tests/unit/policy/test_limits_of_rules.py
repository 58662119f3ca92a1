"""What rules with limits say at them: figures, places, remedies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.counting import counted
from tests.unit.policy.plans import asks, live
from tests.unit.policy.saying import ONE, POLICY, lines, says

from slurm_agent_tools.api.rule_examples import GIB, HOUR
from slurm_agent_tools.backends.stages import Ladder
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.units import UNLIMITED, parse_array, parse_job_id

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


@pytest.mark.parametrize(
    ("hourly", "limit", "outcome"),
    [(5.0, 10.0, "pass"), (5.01, 10.0, "approve"), (None, 10.0, "pass"), (99.0, None, "pass"), (50.0, 0.4, "approve")],
)
def test_a_rented_machine_has_a_price_beyond_which_a_person_decides(hourly, limit, outcome):
    plan = replace(asks("#SBATCH --time=02:00:00", resources=FOUR), hourly_price=hourly)
    result = says("budget", plan, price_per_job=limit)
    assert result.outcome == outcome
    if outcome == "approve":
        assert (result.observed, result.limit) == (2 * hourly, limit)
        assert f"{2 * hourly:g} US dollars" in result.message
        assert result.remedy == "Ask a person: no time limit is short enough." or "=01:59:00" in (result.remedy or "")
    assert ("Ask a person" in (result.remedy or "")) == (hourly == 50.0)


def test_a_rented_machine_without_a_time_limit_has_no_price_that_is_allowed():
    endless = replace(FOUR, time_limit_seconds=-1)
    result = says("budget", replace(asks("#SBATCH --time=0", resources=endless), hourly_price=1.0), price_per_job=9.0)
    assert (result.outcome, result.observed, result.limit) == ("deny", "unknown", 9.0)
    assert result.remedy == "Replace line 2 (`#SBATCH --time=0`) by:\n#SBATCH --time=02:00:00"
    assert says("budget", asks("#SBATCH --time=0", resources=endless), price_per_job=9.0).outcome == "pass"


def test_a_job_before_it_without_a_time_limit_is_named_where_the_hours_of_a_day_are_spent():
    endless = asks("#SBATCH --time=02:00:00", resources=FOUR, live=live(gpu_hours_today=876_000.0))
    result = says("budget", endless, gpu_hours_per_day=100.0)
    assert result.outcome == "approve"
    assert "One of the jobs before it has no time limit." in result.message
    plain = asks("#SBATCH --time=02:00:00", resources=FOUR, live=live(gpu_hours_today=99.0))
    assert "time limit" not in says("budget", plain, gpu_hours_per_day=100.0).message


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


@pytest.mark.parametrize(("qos", "outcome"), [("normal,high", "deny"), ("HIGH", "deny"), ("normal,night", "pass")])
def test_a_high_priority_in_a_list_of_qos_is_seen(qos: str, outcome: str):
    assert says("directives", asks(f"#SBATCH --qos={qos}")).outcome == outcome


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        (["--gres-flags=disable-binding"], "pass"),
        (["--gres-flags=enforce-binding"], "deny"),
        (["--gres-flags=disable-binding,Enforce-Binding"], "deny"),
        (["--distribution=block:cyclic", "--ntasks-per-node=4"], "pass"),
        (["--distribution=plane=4"], "deny"),
        (["--distribution=Plane=7", "--ntasks-per-node=4"], "deny"),
        (["--distribution=Arbitrary"], "deny"),
        (["--distribution=*:fcyclic"], "pass"),
        (["--constraint=a100|h100"], "pass"),
        (["--constraint=[a100*2&h100*1]"], "deny"),
        (["--prefer=a100*2"], "deny"),
    ],
)
def test_the_value_of_an_allowed_option_may_take_more_than_it_shows(lines: list[str], outcome: str):
    assert says("directives", asks(*(f"#SBATCH {line}" for line in lines))).outcome == outcome


@pytest.mark.parametrize("jobs", [21, 3000])
def test_of_many_jobs_twenty_are_named_and_tried(jobs: int):
    """Thousands of small ones kept everybody who asked the site's service waiting for a minute."""
    facts = {"active": running(*map(str, range(1, jobs + 1))), "active_jobs": jobs}
    remedy = says("concurrent-jobs", asks(live=live(**facts))).remedy or ""
    assert f"19, 20 and {jobs - 20} more" in remedy
    assert len(remedy) < 1600
    wide = says("concurrent-jobs", array("0-99%50", live=live(**facts)), max_concurrent_jobs=60).remedy or ""
    assert len(wide) < 1600


def test_jobs_are_counted_once_however_many_may_be_followed():
    def calls(jobs: int) -> int:
        active = running(*map(str, range(1, jobs + 1)))
        plan = asks(live=live(active=active, active_jobs=jobs))
        return counted(lambda: says("concurrent-jobs", plan), written_in_c=False)[1]

    few, more, most = calls(100), calls(200), calls(400)
    assert most - more <= 2.1 * (more - few)


def test_of_many_declarations_the_first_are_told():
    ladder, large = Ladder(problem="`--nodes` is no name of a length"), Resources(gpus=4, time_limit_seconds=99 * HOUR)
    plan = asks(*[f"#SMOKE length: --nodes{'x' * 5000}"] * 1000, resources=large, live=live(ladder=ladder))
    result = says("smoke-first", plan)
    assert (result.outcome, len(result.evidence)) == ("deny", 20)
    assert len(result.remedy or "") < 5000
