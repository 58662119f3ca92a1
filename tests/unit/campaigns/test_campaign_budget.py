"""Hours, trials and how many at once: exact sums, and campaigns by chance that never pass a limit."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from tests.effort import tries
from tests.unit.campaigns.small_cluster import STAGE, Cluster, Kill, Killed, Process, badly, document, run, well

from slurm_agent_tools.campaigns.campaign_budget import CampaignSpending, affordable, cpu_seconds, gpu_seconds
from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.campaigns.ports import BatchIsRefused
from slurm_agent_tools.models.campaign import Trial, TrialEnd, TrialId, TrialRequest
from slurm_agent_tools.models.campaign_file import CampaignLimits

SMOKE: dict[str, Any] = {"kind": "smoke"}
MEMORY = "host-out-of-memory"


def request(cpus: int | None = 2, gpus: int = 0, nodes: int | None = None, seconds: int = 3600) -> TrialRequest:
    return TrialRequest(cpus, None, gpus, nodes, seconds)


def trial(number: int, asked: TrialRequest) -> Trial:
    return Trial(TrialId(1, number), "training", "trial", "a" * 12, f"{number:016}", {}, asked)


def ended(cpu_hours: float | None, gpu_hours: float | None = 0.0) -> TrialEnd:
    return TrialEnd("1", "COMPLETED", passed=True, cpu_hours=cpu_hours, gpu_hours=gpu_hours)


# --- sums --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "cpu", "gpu"),
    [
        (request(), 7200, 0),
        (request(cpus=None), 3600, 0),  # Slurm gives one
        (request(cpus=None, nodes=3), 10800, 0),
        (request(cpus=7, nodes=2), 8 * 3600, 0),  # as many on each node
        (request(cpus=4, gpus=3, nodes=2, seconds=60), 240, 240),
    ],
)
def test_what_a_request_costs_is_counted_over_all_its_nodes(asked, cpu, gpu):
    assert (cpu_seconds(asked), gpu_seconds(asked)) == (cpu, gpu)


def test_a_run_counts_by_what_it_asked_for_until_it_is_known_what_it_took():
    asked = request(cpus=4, gpus=1)
    sent = CampaignSpending().sent(asked).sent(asked)
    assert (sent.trials, sent.cpu_hours, sent.gpu_hours) == (2, 8, 2)
    assert sent.ended(asked, ended(0.5, 0.25)).cpu_hours == 4.5
    assert sent.ended(asked, ended(0.5, 0.25)).gpu_hours == 1.25
    assert sent.ended(asked, ended(None, None)) == sent
    assert sent.withdrawn(asked) == CampaignSpending().sent(asked)


def test_trials_that_would_pass_a_limit_are_left_and_smaller_ones_behind_them_are_not():
    limits = CampaignLimits.model_validate({"cpu_hours": 5, "gpu_hours": 1, "trials": 3})
    listed = [
        trial(1, request()),
        trial(2, request(cpus=4)),
        trial(3, request()),
        trial(4, request(1)),
        trial(5, request(1)),
    ]
    fit, why = affordable(listed, CampaignSpending(), limits)
    assert [one.id.number for one in fit] == [1, 3, 4]
    assert why == "cpu_hours"
    assert affordable(listed[4:], CampaignSpending(trials=3), limits) == ([], "trials")
    assert affordable([trial(1, request(gpus=2))], CampaignSpending(), limits) == ([], "gpu_hours")
    assert len(affordable(listed, CampaignSpending(), limits, most=1)[0]) == 1


# --- campaigns ---------------------------------------------------------------------------------------------------------


@pytest.mark.proves("campaign-budget")
async def test_what_runs_shorter_than_it_asked_for_leaves_room_for_more_and_the_last_hour_is_never_passed():
    grid = {"kind": "grid", "vary": {"lr": [0.01 * number for number in range(1, 31)]}}
    limits = {"cpu_hours": 10, "at_once": 4, "trials": 200}
    cluster = Cluster()
    done = await run(cluster, document(SMOKE, grid, limits=limits))
    assert (done.state.status, done.state.reason) == ("finished", "all rounds are judged")
    assert cluster.most_asked <= 10
    assert sum(cpu_seconds(task.trial.request) for task in cluster.tasks) / 3600 > 10


def _long(one: Trial) -> TrialEnd:
    return (
        well(one)
        if one.purpose == "smoke"
        else TrialEnd("", "COMPLETED", True, run_seconds=1500, metrics={"loss": 1.0})
    )


@pytest.mark.proves("campaign-budget")
async def test_when_nothing_more_can_be_sent_the_round_is_judged_with_what_there_is():
    grid = {"kind": "grid", "vary": {"lr": [0.01 * number for number in range(1, 31)]}}
    more = {"kind": "grid", "vary": {"batch": [32]}}
    cluster = Cluster(_long)
    done = await run(cluster, document(SMOKE, grid, more, limits={"cpu_hours": 3, "at_once": 4}))
    assert (done.state.status, done.state.reason) == ("finished", "budget")
    assert sorted(done.state.judged) == [0, 1]
    assert cluster.most_asked <= 3
    left = done.state.in_phase("left_out")
    assert left
    assert {one.why for one in left} == {"budget: with it the campaign would pass limits.cpu_hours"}


@pytest.mark.proves("campaign-budget")
async def test_a_raised_limit_goes_on_with_what_was_left_out():
    grid = {"kind": "grid", "vary": {"lr": [0.01, 0.02, 0.03]}}
    cluster = Cluster()
    done = await run(cluster, document(SMOKE, grid, limits={"cpu_hours": 0.2, "at_once": 4}))
    assert done.state.reason == "budget"
    done = await run(
        cluster, document(SMOKE, grid, {**grid, "vary": {"batch": [16]}}, limits={"cpu_hours": 20, "at_once": 4})
    )
    assert done.state.status == "finished"
    assert done.state.reason == "all rounds are judged"


@pytest.mark.proves("campaign-asks-a-person")
async def test_what_a_person_lets_through_passes_no_limit_either():
    """What it asks for stays counted while they decide, and it is sent once it fits beside what runs."""
    waits = [True]
    asks = BatchIsRefused("a person has to approve it", person=True, rules=("gpu-hours",))
    cluster = Cluster(_long, refuse=lambda batch: asks if waits[0] and "caching" in batch.script_text else None)
    stages = [{**STAGE, "name": "caching"}, STAGE]
    grid = {"kind": "grid", "vary": {"lr": [0.01, 0.03, 0.1, 0.3]}}
    file = document(grid, stages=stages, limits={"cpu_hours": 4, "at_once": 2})
    asked = await Process(cluster).advance(file)
    assert asked.state.question is not None
    cluster.clock.at += timedelta(minutes=1)
    waits[0] = False
    await Process(cluster).advance(file, decision="again", by="alice")
    done = await run(cluster, file)
    assert done.state.status == "finished"
    assert {task.trial.stage for task in cluster.tasks} == {"caching", "training"}
    assert cluster.most_at_once() <= 2
    assert cluster.most_asked <= 4


@pytest.mark.parametrize("choice", ["leave_out", "stop", None])
async def test_what_nobody_lets_through_is_not_spent_and_leaves_room_for_the_rest(choice):
    asks = BatchIsRefused("a person has to approve it", person=True, rules=("gpu-hours",))
    cluster = Cluster(refuse=lambda batch: asks if "caching" in batch.script_text else None)
    stages = [{**STAGE, "name": "caching"}, STAGE]
    grid = {"kind": "list", "trials": [{"lr": 0.01}]}
    file = document(grid, stages=stages, limits={"cpu_hours": 1, "at_once": 2})
    asked = await run(cluster, file)
    assert (asked.state.spent.trials, asked.state.spent.cpu_hours, cluster.tasks) == (1, 1, [])
    assert not [one for one in asked.state.in_phase("left_out") if one.trial.stage == "training"]
    other = document(grid, limits={"cpu_hours": 1, "at_once": 2})
    done = await Process(cluster).advance(file if choice else other, decision=choice, by="alice")
    assert done.state.spent.trials == len(cluster.tasks) == (0 if choice == "stop" else 1)


def _by_chance(chance: random.Random) -> tuple[bytes, bytes, Cluster]:
    """A campaign, the file that it changes to, and the cluster that it runs on."""
    values = sorted({round(chance.uniform(0.001, 1), 3) for _ in range(chance.randint(2, 7))})
    rounds: list[dict[str, Any]] = [SMOKE]
    for kind in chance.sample(["grid", "random", "halving", "search"], 2):
        vary = {"lr": {"low": 0.001, "high": 1.0, "log": True}}
        rounds.append(
            {
                "grid": {"kind": "grid", "vary": {"lr": values, "batch": [32, 256]}, "repeats": chance.randint(1, 2)},
                "random": {"kind": "random", "vary": vary, "trials": chance.randint(2, 6)},
                "halving": {
                    "kind": "halving", "vary": vary, "trials": chance.randint(2, 9), "length": "epochs", "from": 1,
                    "to": 9,
                },
                "search": {"kind": "search", "vary": vary, "trials": chance.randint(2, 6)},
            }[kind]
        )  # fmt: skip
    limits = {"cpu_hours": chance.choice([2, 5, 50]), "at_once": chance.randint(1, 4), "same_failure": 2}
    fixes = chance.choice([[], [{"failure": MEMORY, "multiply": {"batch": 0.5}, "memory": "8G", "at_most": 2}]])
    stages = [STAGE] if chance.random() < 0.6 else [{**STAGE, "name": "caching"}, STAGE]
    first = document(*rounds, stages=stages, limits=limits, fixes=fixes)
    changed = document(
        *rounds[:-1],
        {"kind": "list", "trials": [{"lr": values[0]}, {"lr": 0.77}]},
        stages=stages,
        limits=limits,
        fixes=fixes,
    )
    seed, rate = chance.random(), chance.choice([0.0, 0.1, 0.4])

    def outcome(one: Trial) -> TrialEnd:
        own = random.Random(f"{seed} {one.identity} {one.request}")  # noqa: S311 - the same every time
        if own.random() < rate:
            kind = own.choice([MEMORY, "traceback", "node-failure"])
            return badly(kind, kind, own.uniform(1, 100), proposed_memory_bytes=6 * 2**30)
        return well(one)

    unlucky = chance.choice([0.0, 0.3])

    def lose(number: int) -> str | None:
        own = random.Random(f"{seed} {number}")  # noqa: S311
        return own.choice(["sent", "unsent"]) if own.random() < unlucky else None

    cluster = Cluster(outcome, queue_seconds=chance.choice([1.0, 500.0, 20000.0]), lose=lose)
    if chance.random() < 0.2:
        cluster.refuse = lambda batch: (
            BatchIsRefused("denied", person=False, rules=("x",)) if "%" in batch.script_text else None
        )
    return first, changed, cluster


async def _live(cluster: Cluster, first: bytes, changed: bytes, chance: random.Random) -> None:
    """A life with all that may come: kills, a cluster that is away or full, a changed file, a person's choices."""
    process, file = Process(cluster), first
    change_at = chance.choice([None, 3, 10])
    for number in range(400):
        cluster.away, cluster.full = chance.random() < 0.1, chance.random() < 0.1
        if chance.random() < 0.15:
            process = Process(cluster, Kill(chance.randrange(12), after=chance.random() < 0.5))
        if number == change_at:
            file = changed
            cluster.code["training"] = chance.choice([0, 1])
        try:
            question = cluster.state.question
            choice = chance.choice(list(question.choices)) if question is not None else None
            done = await process.advance(file, decision=choice, by="alice")
        except Killed:
            process = Process(cluster)
            continue
        if done.wait_seconds is None and done.state.over and not cluster.state.report_due:
            return
        cluster.clock.at += timedelta(seconds=max(done.wait_seconds or 60, cluster.queue_seconds / 5))
    raise AssertionError(f"{cluster.state.status}: {cluster.state.question}")


def _check(cluster: Cluster, first: bytes) -> None:
    limits = read_campaign(first, "lr.json").limits
    state = cluster.state
    assert limits.cpu_hours is not None
    assert cluster.most_asked <= limits.cpu_hours + 1e-9
    assert cluster.most_at_once() <= limits.at_once
    assert set(Counter(task.trial.id for task in cluster.tasks).values()) <= {1}
    ran = {task.trial.id for task in cluster.tasks}
    for one in state.trials.values():
        assert one.phase in {"ended", "left_out", "refused"}
        assert (one.trial.id in ran) == (one.phase == "ended" and one.trial.reuses is None)
    runs = [(task.trial.identity, task.trial.request) for task in cluster.tasks]
    assert len(runs) == len(set(runs))
    for name in state.stops:
        causes = Counter(
            one.end.cause
            for one in state.trials.values()
            if one.end and one.failed and one.trial.stage == name and one.end.category != "cancelled"
        )
        assert causes or state.stops[name].cause.startswith("refused")


@pytest.mark.proves("campaign-budget", "campaign-never-resends-unchanged", "campaign-survives-crash")
@pytest.mark.parametrize("seed", range(tries(60)))
def test_whatever_comes_no_limit_is_passed_and_nothing_is_lost_run_twice_or_sent_again_as_it_failed(seed):
    chance = random.Random(seed)  # noqa: S311 - the same every time
    first, changed, cluster = _by_chance(chance)
    asyncio.run(_live(cluster, first, changed, chance))
    _check(cluster, first)
