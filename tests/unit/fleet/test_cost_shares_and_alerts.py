"""What jobs cost, whose share is used up, who is starved, and what is an alert."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.fleet.looks import NOW, facts, node
from tests.unit.fleet.test_idle_and_waits import job, look, step, waiting
from tests.unit.insights.records import record

from slurm_agent_tools.fleet.sections import fleet_alerts, quota_shares, spending
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.settings import FleetSettings, RateSettings
from slurm_agent_tools.units import UNLIMITED

RATES = RateSettings(currency="EUR", gpu_hour={"a100": 2.0, "other": 1.0}, cpu_hour=0.1)


def ran(number: int, hours: float, ended: float = 0, *, gpus: int = 2, **more: Any) -> Job:
    """A job that held an A100 or more and four CPUs for so many hours, and ended so many hours ago."""
    end = NOW - timedelta(hours=ended)
    had = {"cpu": 4, "gres/gpu": gpus, "gres/gpu:a100": gpus}
    known = {
        "started": end - timedelta(hours=hours),
        "ended": end,
        "elapsed_seconds": round(hours * 3600),
        "allocated": had,
    }
    return replace(job(number, state="COMPLETED"), **{**known, **more})


def spent(*jobs: Job, **more: Any):
    return spending.section(facts([], ran=jobs, rates=more.pop("rates", RATES), **more))


def test_today_and_the_week_count_the_hours_that_lie_in_them():
    made = spent(ran(1, 20), ran(2, 10, ended=48), ran(3, 200, ended=24 * 6))
    assert made.today.gpu_hours == 24  # NOW is noon
    assert made.week.gpu_hours == 2 * (20 + 10 + 24)
    assert made.today.amount == pytest.approx(24 * 2.0 + 48 * 0.1)
    assert "24 GPU hours (52.8 EUR) today" in spending.sentence(made)


def test_a_price_of_the_partition_goes_before_that_of_the_type():
    assert spent(ran(1, 1), partition_prices={"main": 5.0}).today.amount == pytest.approx(10.4)


def test_without_a_price_there_is_no_sum_and_it_is_said():
    made = spent(ran(1, 1), rates=RateSettings())
    assert (made.today.amount, made.today.gpu_hours) == (None, 2)
    assert made.today.note == "no rates are set"
    assert spending.unknown(facts([], ran=(ran(1, 1),)))


def test_each_campaign_has_its_own_sum_by_the_run_id():
    made = spent(
        ran(1, 1, comment="sat-0123456789abcdef:rates/r1/t2"), ran(2, 3, comment="sat-0123456789abcdef:rates/r1/t3"),
        ran(3, 1, comment="sat-0123456789abcdef:other/r1/t1"), ran(4, 9, comment="sat-0123456789abcdef:mine"),
    )  # fmt: skip
    assert [(one.what, one.gpu_hours) for one in made.campaigns] == [("rates", 8), ("other", 2)]


def test_what_runs_is_foreseen_to_its_limits():
    made = spent(mine=(job(gpus=2, ago=timedelta(hours=1)),))
    assert made.running_at_most.gpu_hours == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"mine": (replace(job(), resources=replace(job().resources, time_limit_seconds=UNLIMITED)),)},
            "no time limit",
        ),
        ({"mine": (job(),), "mine_not_asked": 7}, "7 more active jobs"),
    ],
)
def test_what_runs_at_most_is_not_known_where_a_part_of_it_has_no_end(more, words):
    made = spent(**more).running_at_most
    assert (made.gpu_hours, made.cpu_hours, made.amount) == (None, None, None)
    assert words in (made.note or "")


def test_gpu_hours_are_not_known_where_the_accounting_counts_no_gpus():
    running = replace(ran(7, 1, allocated={"cpu": 4}), state="RUNNING", ended=None)
    blind = shares(running, ran(8, 3, allocated={"cpu": 4}), quotas={"user:alice": 0.5}, mine=(job(7),))
    made = spending.section(blind)
    assert (made.today.gpu_hours, made.today.amount, quota_shares.section(blind).quotas[0].used) == (None, None, None)
    assert "does not count GPUs" in (made.week.note or "")
    assert [one.what for one in spending.unknown(blind)] == ["GPU hours"]


def test_a_price_in_another_currency_is_no_price():
    made = facts([], ran=(ran(1, 1),), rates=RATES, partition_prices={"main": None})
    assert (spending.section(made).today.amount, spending.section(made).partition_gpu_hour) == (None, {})
    assert "another currency" in spending.unknown(made)[0].why


def test_a_partition_that_costs_nothing_costs_nothing():
    assert spent(ran(1, 1), partition_prices={"main": 0.0}).today.amount == pytest.approx(0.4)


def test_a_price_of_the_gpus_alone_says_so():
    made = spent(ran(1, 1), rates=RateSettings(currency="EUR", gpu_hour={"a100": 2.0}))
    assert (made.today.amount, made.today.note) == (4, "GPUs alone: no rate is set for CPUs")


def shares(*jobs: Job, quotas: dict[str, float], **more: Any):
    nodes = [node("a1", "a100", 4)]
    return facts(nodes, ran=jobs, settings=FleetSettings(quotas=quotas), user="alice", **more)


def test_a_quota_is_a_share_of_what_the_gpus_give_in_a_day():
    made = quota_shares.section(shares(ran(1, 6), quotas={"user:alice": 0.5, "tag:train*": 0.25}))
    assert made.day_gpu_hours == 96
    told = {one.quota: (one.hours, one.used, one.left) for one in made.quotas}
    assert told == {"user:alice": (48, 12, 36), "tag:train*": (24, 12, 12)}


def test_the_cap_of_the_policy_always_wins():
    made = quota_shares.section(shares(quotas={"user:alice": 0.5}, day_cap=10.0))
    assert (made.day_gpu_hours, made.capped_by, made.quotas[0].hours) == (10, "the policy's cap", 5)
    assert quota_shares.section(shares(quotas={"user:alice": 0.5}, day_cap=1000.0)).capped_by is None


def test_who_waits_with_less_than_its_share_while_another_has_more_is_starved():
    greedy = ran(1, 12, gpus=4, comment="sat-0123456789abcdef:greedy/r1/t1")
    poor = waiting(comment="sat-0123456789abcdef:poor/r1/t1")
    look_at = shares(greedy, quotas={"campaign:greedy": 0.3, "campaign:poor": 0.6}, mine=(poor,))
    made = quota_shares.section(look_at)
    assert [(one.quota, one.starved, one.waiting) for one in made.quotas] == [
        ("campaign:poor", True, 1), ("campaign:greedy", False, 0),
    ]  # fmt: skip
    assert "Starved of their share: campaign:poor." in quota_shares.sentence(made)
    assert "Used up for today: campaign:greedy." in quota_shares.sentence(made)
    starved, used = fleet_alerts.section(look_at)
    assert (starved.code, used.code) == ("share-starved", "budget-used")
    assert used.message == "Today's GPU hours are used up: campaign:greedy (48 of 28.8)."


def test_the_policys_hours_of_a_day_that_are_used_up_are_an_alert_without_any_quota():
    (told,) = fleet_alerts.section(shares(ran(1, 12, gpus=4), quotas={}, day_cap=48.0))
    assert (told.code, told.severity) == ("budget-used", "medium")
    assert "what the policy allows (48.00 of 48)" in told.message
    assert fleet_alerts.section(shares(ran(1, 12, gpus=4), quotas={}, day_cap=48.1)) == []
    assert fleet_alerts.section(replace(shares(quotas={}, day_cap=48.0), ran=None)) == []


def test_the_use_of_another_user_is_not_measured():
    look_at = shares(quotas={"user:bob": 0.5})
    assert quota_shares.section(look_at).quotas[0].used is None
    assert "user:bob" in quota_shares.unknown(look_at)[0].what


def test_a_quota_for_more_than_one_user_is_not_measured_in_full():
    (told,) = quota_shares.unknown(shares(quotas={"user:*": 0.5, "user:alice": 0.5}))
    assert told.what == "use of user:*"


def test_no_share_of_a_cluster_without_gpus_is_used_up():
    made = quota_shares.section(replace(shares(quotas={"user:alice": 0.5}), nodes=(node("c"),)))
    assert quota_shares.sentence(made) == ""


def test_without_quotas_nothing_is_told():
    assert quota_shares.section(facts([], ran=())).quotas == []


# --- alerts -----------------------------------------------------------------------------------------------------------


def test_idle_gpus_a_deep_queue_and_nodes_that_are_down_are_alerts_the_gravest_first():
    told = Alert(severity="critical", code="job-failed", message="it failed")
    made = fleet_alerts.section(
        replace(
            look(job(), *[waiting() for _ in range(21)], use=[step(0.1)], alerts=(told,)),
            nodes=(node("c", state="down"),),
        )
    )
    assert [one.code for one in made] == ["job-failed", "gpus-idle", "queue-backup", "nodes-down"]
    assert fleet_alerts.sentence(made) == "4 alerts."


@pytest.mark.parametrize(("use", "told"), [(0.3, ["gpu-use-low"]), (0.8, []), (0.0, ["gpus-idle"])])
def test_gpus_that_are_in_use_for_less_than_half_of_half_an_hour_are_told(use, told):
    assert [one.code for one in fleet_alerts.section(look(job(), series=[[use] * 50]))] == told
    short = look(job(), series=[[use] * 9]) if use else look(job(ago=timedelta(minutes=5)), series=[[use] * 5])
    assert fleet_alerts.section(short) == []


def test_running_jobs_that_were_not_looked_at_are_no_queue():
    assert fleet_alerts.section(look(waiting(), mine_not_asked=40, mine_waiting=3)) == []
    assert [one.code for one in fleet_alerts.section(look(waiting(), mine_waiting=30))] == ["queue-backup"]


def test_what_alerts_rest_on_and_was_not_read_is_said():
    said = {one.what for one in fleet_alerts.unknown(facts([], alerts=None))}
    assert said == {"nodes that are down", "alerts of your jobs"}
    assert (fleet_alerts.section(facts([], alerts=None)), fleet_alerts.unknown(facts([node("a")]))) == ([], [])


def test_nothing_to_see_is_no_alert():
    assert (fleet_alerts.section(facts([])), fleet_alerts.sentence([])) == ([], "")


def test_a_job_counts_under_each_of_its_tags():
    known = record(2, job_id="2", category="host-out-of-memory")
    parts = (ran(1, 1, partition="gpu"), ran(2, 3, partition="gpu", state="OUT_OF_MEMORY"), ran(3, 9, ended=24 * 8))
    made = spending.by_tag(facts([], ran=parts, runs={2: known}, rates=RATES))
    assert {one.what: one.gpu_hours for one in made} == {
        "gpu": 8, "completed": 2, "out_of_memory": 6, "failed": 6, "host-out-of-memory": 6,
    }  # fmt: skip
    assert next(one.amount for one in made if one.what == "gpu") == pytest.approx(8 * 2 + 16 * 0.1)
    running = replace(ran(7, 1, allocated={"cpu": 4}), state="RUNNING", ended=None)
    blind = spending.by_tag(facts([], ran=(running,), mine=(job(7),)))
    assert {one.gpu_hours for one in blind} == {None}
