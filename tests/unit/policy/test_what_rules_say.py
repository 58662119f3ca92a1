"""What rules say about requests that their examples leave out: failures before, partitions, files, dependencies."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.policy.plans import asks, live, past
from tests.unit.policy.saying import lines, says

from slurm_agent_tools.api.rule_examples import CPU, FILE, GPU, HOUR, NOW, OLD
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import Evidence, Finding
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.rule import reading_of
from slurm_agent_tools.units import UNLIMITED, parse_array

WHICH = "Nor is which of its tasks failed: an array that leaves them out is judged as the same run, until you say so."

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


def test_an_array_that_leaves_out_tasks_is_told_that_nobody_here_knows_which_of_them_failed():
    first = says("auto-retry", after_failure(analysed=True))
    plan = after_failure(analysed=True)
    reading = reading_of(plan)
    array = replace(reading, request=replace(reading.request, array=parse_array("0-2%2")))
    result = says("auto-retry", replace(plan, reading=array))
    assert (first.outcome, result.outcome) == ("justify", "justify")
    assert result.message == f"{first.message} {WHICH}"
    assert ", or which tasks that failed the array leaves out:\n" in (result.remedy or "")
    assert "array" not in f"{first.message} {first.remedy}"


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
