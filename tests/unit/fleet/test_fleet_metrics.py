"""What monitoring is told: the figures of one look, nothing that was not measured, and few enough series."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.fleet.looks import NOW, facts, node
from tests.unit.fleet.test_cost_shares_and_alerts import RATES, ran
from tests.unit.fleet.test_idle_and_waits import job, look, step

from slurm_agent_tools.fleet import fleet_metrics
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.fleet_metrics import LONGEST, MOST, OTHER, PREFIX, GuardCounts
from slurm_agent_tools.models.job import PastWait, PastWaits
from slurm_agent_tools.settings import FleetSettings

BUSY = {("gpu", "RUNNING"): 3, ("gpu", "PENDING"): 25, ("cpu", "RUNNING"): 1}


def told(given: FleetFacts, missing: Collection[str] = (), guard: GuardCounts | None = None) -> dict[str, dict]:
    """Values by the name of their family and the values of their labels."""
    found = fleet_metrics.metrics(given, missing, guard or GuardCounts())
    assert len({one.name for one in found}) == len(found)
    return {
        one.name.removeprefix(PREFIX): {tuple(sample.labels.values()): sample.value for sample in one.samples}
        for one in found
    }


def test_the_figures_are_those_of_the_look():
    nodes = [node("a", "h100", 8, 3), node("b", "t4", 2, state="down"), node("c")]
    found = told(facts(nodes, queue=BUSY, mine_waiting=25, mine=(job(),), use={}))
    assert found["jobs"] == {("gpu", "RUNNING"): 3, ("gpu", "PENDING"): 25, ("cpu", "RUNNING"): 1}
    assert found["nodes"] == {("mix",): 1, ("down",): 1, ("idle",): 1}
    assert found["gpus"] == {("80G and more",): 8, ("8G to 31G",): 2}
    assert found["gpus_allocated"] == {("80G and more",): 3, ("8G to 31G",): 0}
    assert found["gpus_free"][("80G and more",)] == 5
    assert (found["own_pending_jobs"][()], found["own_running_jobs"][()], found["own_gpus"][()]) == (25, 1, 2)
    assert found["alerts"]["queue-backup", "high"] == 1


@pytest.mark.proves("not-measured-is-no-series")
def test_what_was_not_measured_has_no_sample():
    found = told(look(job(), use=None))
    assert not {"own_gpus_unused", "own_gpu_use_ratio", "own_gpus_measured"} & found.keys()
    assert found["own_gpus"] == {(): 2}
    found = told(look(job(), use=[step(1800)]))  # its CPUs alone are measured
    assert found["own_gpus_unused"] == {(): 0}
    assert "own_gpu_use_ratio" not in found
    assert "own_cost" not in told(facts([], ran=(ran(1, 1),)))
    assert "gpus_allocated" not in told(facts([replace(node("a", "t4", 2), gpus_used=None)]))


@pytest.mark.proves("not-measured-is-no-series")
@pytest.mark.parametrize(
    ("source", "gone"),
    [
        ("nodes", {"nodes", "gpus"}),
        ("queue", {"jobs", "own_pending_jobs", "own_gpus", "alerts"}),
        ("ran", {"own_jobs_ended", "share_ratio", "own_gpu_seconds"}),
        ("use", {"own_gpus_unused"}),
    ],
)
def test_a_source_that_could_not_be_read_has_no_figures_and_is_told(source: str, gone: set[str]):
    quotas = FleetSettings(quotas={"campaign:rates": 0.5})
    given = replace(look(job(), use=[step(0)]), queue=BUSY, ran=(), settings=quotas, nodes=(node("a", "t4", 1),))
    assert gone <= told(given).keys()
    found = told(given, {source})
    assert not gone & found.keys()
    assert found["source_up"][source,] == 0
    assert sum(found["source_up"].values()) == len(fleet_metrics.SOURCES) - 1


def test_gpu_use_is_the_mean_of_the_gpus_that_are_measured():
    found = told(look(job(gpus=2), series=[[0.2, 0.4], [0.9, 0.8]]))
    assert found["own_gpu_use_ratio"] == {(): pytest.approx(0.6)}
    assert found["own_gpus_measured"] == {(): 2}
    sampled = told(look(job(gpus=2), use=[step(1800, percent=150)]))
    assert sampled["own_gpu_use_ratio"] == {(): 0.75}
    old = look(job(gpus=2), series=[[0.2, 0.4]])
    assert "own_gpu_use_ratio" not in told(replace(old, now=NOW + timedelta(hours=1)))


def test_waits_ends_shares_and_costs():
    waits = tuple(PastWait(number, "gpu", number * 10, job().resources) for number in range(1, 11))
    done = (ran(1, 1), ran(2, 2, ended=5), ran(3, 1, ended=48, state="FAILED"))
    waiting = job(9, state="PENDING", ago=timedelta(hours=2))
    found = told(
        facts(
            [node("a", "a100", 4)], mine=(waiting,), mine_waiting=1, past=PastWaits(waits, 24), ran=done, rates=RATES,
            settings=FleetSettings(quotas={"user:ada": 0.5, "tag:train": 0.5}), user="ada",
        )
    )  # fmt: skip
    assert found["recent_wait_seconds"] == {("0.5",): 60, ("0.9",): 100}
    assert found["own_longest_wait_seconds"] == {(): 7200}
    assert found["own_jobs_ended"] == {
        ("hour", "COMPLETED"): 1, ("day", "COMPLETED"): 2, ("week", "COMPLETED"): 2, ("week", "FAILED"): 1,
    }  # fmt: skip
    assert found["share_ratio"] == {("user:ada",): 0.5, ("tag:train",): 0.5}
    assert found["own_gpu_seconds"]["today",] == 6 * 3600
    assert found["own_cost"]["today",] == pytest.approx(13.2)


@pytest.mark.proves("metrics-are-few")
def test_ten_thousand_names_are_a_bounded_number_of_series():
    queue = {(f"part-{number:05}", "PENDING"): number for number in range(10_000)}
    states = [node(f"n{number}", state=f"state{number}") for number in range(500)]
    quotas = FleetSettings(quotas={f"campaign:c{number}": 0.001 for number in range(500)})
    runs = tuple(ran(n, 1, comment=f"sat-0123456789abcdef:c{n}/r1/t1") for n in range(300))
    rules = {(f"rule-{number}", "deny"): 1 for number in range(1000)}
    seconds = {f"command-{number}": 1.0 for number in range(1000)}
    guard = GuardCounts(rules=rules, seconds=seconds, decisions={f"v{n}": n for n in range(99)})
    given = facts(states, queue=queue, settings=quotas, ran=runs, mine_not_asked=5)
    families = fleet_metrics.metrics(given, (), guard)
    assert sum(len(one.samples) for one in families) < 500
    assert not [
        one.name for one in families for sample in one.samples if {"job", "job_id", "user"} & set(sample.labels)
    ]
    found = told(given, (), guard)
    assert len(found["jobs"]) == MOST + 1
    assert sum(found["jobs"].values()) == sum(queue.values())
    assert found["jobs"][OTHER, "PENDING"] == sum(range(10_000 - MOST))


@pytest.mark.proves("metrics-are-few")
@pytest.mark.parametrize(
    "name", ['a"} 1\nevil 2', "\x1b[31mred\x1b[0m", "x" * 5000, "\u202egnp", "a\udcffb", "", OTHER]
)
def test_hostile_names_are_labels_and_no_more(name: str):
    found = told(facts([], queue={(name, "RUNNING"): 1, ("fine", "RUNNING"): 2}))
    assert sum(found["jobs"].values()) == 3
    for labels in found["jobs"]:
        for text in labels:
            assert len(text) <= LONGEST
            assert text.isprintable()
            text.encode()


def test_every_name_is_one_that_prometheus_takes():
    guard = GuardCounts(rules={("gpus", "deny"): 1}, campaigns={"running": 1}, seconds={"squeue": 1.0})
    for family in fleet_metrics.metrics(look(job(), use=[step(0)]), (), guard):
        assert re.fullmatch(r"slurm_agent_[a-z_]+", family.name)
        assert family.told
        assert not family.name.endswith(("_total", "_count", "_sum", "_bucket"))
        assert all(re.fullmatch(r"[a-z]+", name) for one in family.samples for name in one.labels)


def test_the_steps_of_a_command_add_up():
    guard = GuardCounts(
        bounds=(0.1, 1.0, float("inf")),
        steps={("squeue", 0.1): 2, ("squeue", float("inf")): 1},
        seconds={"squeue": 9.0},
    )
    (family,) = [one for one in fleet_metrics.metrics(facts([]), (), guard) if one.kind == "histogram"]
    assert family.samples[0].steps == ((0.1, 2), (1.0, 2), (float("inf"), 3))
    assert family.samples[0].value == 9.0


def test_names_of_rules_that_are_cut_alike_are_one_series_and_too_many_are_the_others():
    rules = {("r" * LONGEST + str(n), "deny"): 1 for n in range(5)} | {(f"x{n}", "deny"): 1 for n in range(MOST * 9)}
    families = fleet_metrics.metrics(facts([]), (), GuardCounts(rules=rules))
    (family,) = [one for one in families if one.name == PREFIX + "rule_outcomes"]
    labels = [tuple(sorted(one.labels.items())) for one in family.samples]
    assert len(labels) == len(set(labels)) <= MOST * 4 + 1
    assert sum(one.value for one in family.samples) == sum(rules.values())
