"""Twelve submitters at once, round after round: four means four, nobody waits for ever, everybody learns why."""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest
from tests.soak.crowd import KINDS, STAYING, Ask, Crowd, asks, crowd
from tests.soak.watch import Row, Watch, rows, slots
from tests.system.faces import Place

ROUNDS = int(os.environ.get("SOAK_ROUNDS", "3"))
SEED = int(os.environ.get("SOAK_SEED", "20261121"))
LIMIT = 4
KILLING = 3
"""Every so many rounds, submitters are killed."""


@dataclass
class Tally:
    """Figures over all rounds."""

    replies: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    samples: int = 0
    peak: int = 0
    seconds: list[float] = field(default_factory=list)
    slowest: float = 0.0
    orphans: int = 0
    reserved: int = 0

    def add(self, asked: list[Ask], watch: Watch) -> None:
        for ask in asked:
            self.replies["killed" if ask.reply is None else f"{ask.face} {ask.reply['status']}"] += 1
            if ask.reply and ask.reply["status"] == "blocked":
                denied = (
                    rule["id"] for rule in ask.reply["decision"]["rules"] if rule["outcome"] in {"deny", "justify"}
                )
                self.rules.update(denied)
            self.slowest = max(self.slowest, ask.seconds)
        self.samples += watch.samples
        self.peak = max(self.peak, watch.peak)

    def line(self, number: int) -> str:
        mean = sum(self.seconds) / len(self.seconds)
        return (
            f"round {number}: {mean:.1f} s a round (longest {max(self.seconds):.1f}), slowest answer {self.slowest:.1f} s,"
            f" {dict(self.replies)}, refused by {dict(self.rules)}, {self.samples} looks, at most {self.peak} slots,"
            f" {self.orphans} jobs of killed submitters, {self.reserved} rounds with slots kept for the dead"
        )


@pytest.mark.proves("four-means-four")
async def test_twelve_submitters_at_once_never_hold_more_than_four_slots(place: Place):
    tally = Tally()
    await asyncio.to_thread(empty, place)
    async with crowd(place) as people:
        for number in range(1, ROUNDS + 1):
            await one_round(people, number, tally)
            if number % 10 == 0 or number == ROUNDS:
                print(tally.line(number), flush=True)  # noqa: T201 - shown by `make soak`


async def one_round(people: Crowd, number: int, tally: Tally) -> None:
    place, rng = people.place, random.Random(SEED + number)  # noqa: S311 - no secret
    killing, kinds = number % KILLING == 2, STAYING if number % 2 else KINDS
    if killing:
        forget(place)
    await people.heal()
    status = await people.seats[0].call("get_status", refresh=True)
    assert status is not None
    room = status["slurm"]["slots_left"]
    asked = asks(place, number, rng, kinds)
    kills = [rng.uniform(0.3, 4) for _ in range(rng.randint(1, 3))] if killing else []
    earlier = Watch(place)
    earlier.sample()
    begun = time.monotonic()
    with Watch(place) as watch:
        await people.round(asked, kills, rng)
        await asyncio.sleep(0.5 if killing else 0)  # the sbatch of a submitter that died may still be on its way
    tally.seconds.append(time.monotonic() - begun)
    await asyncio.to_thread(empty, place)
    looked_well(watch, number)
    tally.orphans += each_job_once(
        asked, {base: row for base, row in watch.jobs.items() if base > max(earlier.jobs, default=0)}
    )
    killed = {ask.script for ask in asked if ask.reply is None}
    for ask in asked:
        if ask.reply is not None and ask.reply["status"] == "unconfirmed":
            # The twin of one that was killed goes on with what that had begun, whose fate is not known for a minute.
            assert (ask.kind in {"plain", "twin"}, ask.script in killed) == (True, True), (ask.told(), killed)
            assert ask.reply["reason"] == "Slurm does not show the job yet.", ask.reply
        elif ask.reply is not None and ask.reply["status"] != "submitted":
            learnt_why(ask, set(watch.jobs), room)
    if kinds is STAYING and not killing:
        # Nobody made room, so all that there was is taken; and what was kept for the dead, once their fate is known.
        assert room <= watch.peak, (number, room, watch.last, [ask.told() for ask in asked])
    tally.add(asked, watch)
    tally.reserved += room < LIMIT


def looked_well(watch: Watch, number: int) -> None:
    assert watch.failures == [], number
    assert watch.over == [], number
    assert watch.running <= LIMIT, number
    assert watch.samples >= 5, number


def each_job_once(asked: list[Ask], made: dict[int, Row]) -> int:
    """Every answer with a job id is one job with that token; how many others there are, each of a killed submitter."""
    told = {int(ask.reply["job_id"]): ask.reply["token"] for ask in asked if ask.reply and ask.reply.get("job_id")}
    assert {base: made[base].comment for base in told if base in made} == told
    assert len(set(told.values())) == len(told)
    left = Counter(row.name for base, row in made.items() if base not in told)
    killed = Counter(ask.script for ask in asked if ask.reply is None)
    assert left <= killed, (left, killed)
    assert len({row.comment for row in made.values()}) == len(made)
    return left.total()


def learnt_why(ask: Ask, ids: set[int], room: int) -> None:
    """A refusal names the rule, what it saw, what is allowed, and whose end to wait for or which line to change."""
    reply = ask.reply
    assert reply is not None
    assert (reply["status"], reply["blocker"], reply["human_action_required"]) == ("blocked", "policy", False), reply
    denied = {rule["id"]: rule for rule in reply["decision"]["rules"] if rule["outcome"] in {"deny", "justify"}}
    assert denied, reply
    assert set(denied) <= {"concurrent-jobs", "duplicate"}, reply
    for name, rule in denied.items():
        assert rule["message"] in reply["reason"]
        assert rule["remedy"] in reply["reason"]
        named = {int(number) for number in re.findall(r"\b\d+\b", f"{rule['message']} {rule['remedy']}")} & ids
        assert named or (name == "concurrent-jobs" and room < LIMIT), (named, reply)
    if "concurrent-jobs" in denied:
        rule = denied["concurrent-jobs"]
        assert rule["observed"] > rule["limit"] == LIMIT, rule
        assert "wait_for_job" in rule["remedy"] or room < LIMIT, rule


def empty(place: Place) -> None:
    """End every job of the user and wait until none is left."""
    for _ in range(300):
        place.run(["scancel", "--quiet", f"--user={place.cluster.user}"])
        if not place.slurm("squeue", "-h", "--me"):
            return
        time.sleep(0.2)
    raise AssertionError(place.slurm("squeue", "--me"))


FORGET = (
    "UPDATE submissions SET created = created - 700 WHERE phase NOT IN ('released', 'refused', 'lost', 'cancelled')"
)
RUN = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], timeout=10); db.execute(sys.argv[2]); db.commit()"


def forget(place: Place) -> None:
    """Let ten minutes pass for what killed submitters left in the ledger: until then each one keeps its slots."""
    ledger = place.project.parent / ".state/slurm-agent-tools/ledger.sqlite3"
    done = place.run([sys.executable, "-c", RUN, str(ledger), FORGET])
    assert done.returncode == 0, done.stderr


QUEUES = [
    ("", 0),
    ("7\t7\tRUNNING\t(null)\tsat-a\ta\n8\t8\tPENDING\t(null)\t(null)\tb\n6\t6\tCOMPLETED\t(null)\t\tc\n", 2),
    ("7\t7_[0-9%3]\tPENDING\t(null)\tsat-a\ta\n", 3),
    ("7\t7_[2-3%2]\tPENDING\t(null)\tx\ta\n7\t7_0\tRUNNING\t(null)\tx\ta\n7\t7_1\tRUNNING\t(null)\tx\ta\n", 2),
    ("7\t7\tRUNNING\t(null)\tx\ta\n8\t8\tPENDING\tafterok:7(unfulfilled)\tx\ta\n", 1),
    (
        "7\t7\tRUNNING\t(null)\tx\ta\n8\t8\tPENDING\tafterok:7\tx\ta\n9\t9\tPENDING\tafterok:7\tx\ta\n",
        2,
    ),
    ("7\t7\tRUNNING\t(null)\tx\ta\n8\t8_[0-3]\tPENDING\tafterany:7_*(unfulfilled)\tx\ta\n", 4),
    ("9\t9\tPENDING\tafterok:7(failed)\tx\ta\n", 1),
]


@pytest.mark.parametrize(("text", "expected"), QUEUES)
def test_the_watch_counts_slots_by_itself(text: str, expected: int):
    assert slots(rows(text)) == expected
