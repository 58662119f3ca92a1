"""sbatch's own reading of a request is compared with the guard's, and a priority that was asked for has to come."""

from __future__ import annotations

import re
from dataclasses import replace

import anyio
import pytest
from tests.unit.services.scenes import HEAD, Scene

from slurm_agent_tools.errors import SlurmRefused


@pytest.mark.parametrize("dry", [True, False])
async def test_a_site_whose_sbatch_changes_an_option_gets_nothing(scene: Scene, dry: bool):
    asked = scene.slurm.run

    async def with_a_plugin(argv, **more):
        done = await asked(argv, **more)
        return replace(done, stderr=re.sub(rb"(sbatch: time +: )\S+", rb"\g<1>20:00:00", done.stderr))

    scene.slurm.run = with_a_plugin
    reply = await scene.submit(dry_run=dry)

    assert (reply.status, reply.blocker, reply.decision.verdict) == ("blocked", "policy", "deny")
    (rule,) = [rule for rule in reply.decision.rules if rule.outcome == "deny"]
    assert rule.id == "directives"
    assert rule.message.startswith("This cluster's sbatch reads the options differently from the guard: ")
    assert "time" in rule.message
    assert "20:00:00" in rule.message
    assert scene.sent() == []
    (line,) = scene.lines("disagreed")
    assert "20:00:00" in str(line["differences"])


async def test_a_request_of_which_sbatch_shows_nothing_is_refused_in_slurms_words(scene: Scene):
    scene.slurm.fail("sbatch", "sbatch: error: Invalid --nodes specification\n")
    with pytest.raises(SlurmRefused, match="Invalid --nodes specification"):
        await scene.submit()
    assert scene.lines("disagreed") == []


async def test_a_low_priority_is_pinned_and_has_to_come(scene: Scene):
    reply = await scene.submit(priority="low")
    assert reply.status == "submitted"
    assert "--nice=100" in scene.sent()[0]


async def test_a_low_priority_that_somebody_takes_back_withdraws_the_job(scene: Scene):
    def take_back() -> None:
        number = scene.numbers()[0]
        answer = scene.slurm.command("scontrol", "update", f"jobid={number}", "nice=0", admin=True)
        assert answer.code == 0, answer.err

    scene.slurm.before_next("scontrol show job", take_back)

    reply = await scene.submit(priority="low")

    assert (reply.status, scene.stands(scene.numbers()[0])[0]) == ("blocked", "CANCELLED")
    assert "the nice value is 0, asked was 100" in reply.reason


async def test_a_job_below_what_was_asked_for_is_no_difference(scene: Scene):
    def less() -> None:
        number = scene.numbers()[0]
        assert scene.slurm.command("scontrol", "update", f"jobid={number}", "timelimit=5", admin=True).code == 0

    scene.slurm.before_next("scontrol show job", less)
    reply = await scene.submit()
    assert (reply.status, reply.granted.time_limit_seconds) == ("submitted", 300)


async def test_a_request_for_more_tasks_than_a_node_holds_is_refused_in_slurms_words(scene: Scene):
    scene.write("huge.sh", HEAD.replace("--mem=1G", "--mem=20G") + "#SBATCH --nodes=1\n#SBATCH --ntasks=999\nsleep 1\n")
    with pytest.raises(SlurmRefused, match=r"Slurm refuses huge\.sh"):
        await scene.submit("huge.sh", justification="so many tasks are needed for this")


async def test_a_budget_of_time_is_judged_before_the_job_is_sent(scene: Scene):
    short = await scene.submit(time_budget="5min", dry_run=True)
    long = await scene.submit(time_budget="2h", dry_run=True)
    assert (short.budget.fits, short.budget.budget_seconds, short.budget.run_seconds) == (False, 300, 600)
    assert (long.budget.fits, long.budget.budget_seconds) == (True, 7200)


async def test_a_caller_that_goes_away_meanwhile_is_answered_when_it_asks_again(scene: Scene):
    await scene.status()
    with anyio.CancelScope() as scope:
        scene.slurm.before_next("scontrol release", scope.cancel)
        await scene.submit(look=False)
    assert scope.cancelled_caught
    (number,) = scene.numbers()
    assert scene.stands(number)[0] == "RUNNING"

    again = await scene.submit()
    assert (again.status, again.job_id, len(scene.sent())) == ("submitted", str(number), 1)
