"""Submissions that something breaks off: never two jobs, never a job that nobody knows of, none that was not checked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.services.scenes import HEAD, Scene

from slurm_agent_tools.errors import SlurmRefused, StorageError

SBATCH = "sbatch --parsable"
REFUSED = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n"


class Killed(Exception):
    """The process ends here."""


def killed() -> None:
    raise Killed


def kill_at(scene: Scene, command: str) -> None:
    """The process ends in the moment in which it would run this command."""
    scene.slurm.before_next(command, killed)


def changing(scene: Scene, *words: str) -> Callable[[], None]:
    """An operator changes the newest job."""

    def change() -> None:
        answer = scene.slurm.command("scontrol", "update", f"jobid={scene.numbers()[-1]}", *words, admin=True)
        assert answer.code == 0, answer.err

    return change


async def other(scene: Scene, **more: str):
    """Another submission, which puts in order what broke off before it."""
    return await scene.submit(job_name="other", args=["other"], **more)


# --- answers that are lost ---------------------------------------------------------------------------------------------


async def test_a_lost_answer_of_sbatch_is_no_loss_where_the_queue_shows_the_job(scene: Scene):
    scene.slurm.lose_next_reply(SBATCH)

    reply = await scene.submit(idempotency_key="k")

    assert (reply.status, scene.numbers()) == ("submitted", [int(reply.job_id)])
    assert scene.stands(reply.job_id)[0] == "RUNNING"
    assert scene.phase("k") == ("released", int(reply.job_id))


async def test_where_it_cannot_be_known_whether_slurm_took_it_that_is_said_and_then_found_out(scene: Scene):
    scene.slurm.lose_next_reply(SBATCH)
    await scene.status()
    asked = scene.slurm.run

    async def silent_afterwards(argv, **more):
        answer = await asked(argv, **more)
        scene.slurm.controller_down("--parsable" in argv or scene.slurm.faults.controller_down)
        return answer

    scene.slurm.run = silent_afterwards
    first = await scene.submit(idempotency_key="k", look=False)
    assert (first.status, first.job_id, len(scene.numbers())) == ("unconfirmed", None, 1)

    scene.slurm.run = asked
    scene.slurm.controller_down(False)
    scene.slurm.clock.move(30)
    again = await scene.submit(idempotency_key="k")
    assert (again.status, again.token, scene.numbers()) == ("submitted", first.token, [int(again.job_id)])


async def test_a_request_that_never_arrived_is_sent_again_after_a_minute_and_not_before(scene: Scene):
    scene.slurm.lose_next_request(SBATCH)
    first = await scene.submit(idempotency_key="k")
    assert (first.status, first.job_id, first.idempotency_key) == ("unconfirmed", None, "k")
    assert "call again with idempotency_key k" in first.summary
    assert scene.phase("k") == ("unconfirmed", None)

    soon = await scene.submit(idempotency_key="k")
    assert (soon.status, soon.token, len(scene.sent())) == ("unconfirmed", first.token, 1)

    scene.slurm.clock.move(61)
    late = await scene.submit(idempotency_key="k")
    assert (late.status, len(scene.sent())) == ("submitted", 2)
    assert late.token != first.token
    assert scene.phase("k") == ("released", int(late.job_id))


async def test_a_request_that_arrives_late_after_it_was_given_up_is_cancelled(scene: Scene):
    scene.slurm.lose_next_request(SBATCH)
    first = await scene.submit(idempotency_key="k")
    scene.slurm.clock.move(700)
    await scene.status()
    assert scene.phase("k") == ("lost", None)

    number = scene.slurm.submit("#!/bin/bash\nsleep 60\n", "--hold", f"--comment={first.token}", "--job-name=train.sh")
    await other(scene)

    assert scene.stands(number)[0] == "CANCELLED"
    assert scene.phase("k") == ("cancelled", number)


async def test_a_lost_answer_of_the_release_is_unconfirmed_with_the_job_and_then_submitted(scene: Scene):
    scene.slurm.lose_next_reply("scontrol release")
    first = await scene.submit(idempotency_key="k")
    assert (first.status, first.job_id) == ("unconfirmed", str(scene.numbers()[0]))

    again = await scene.submit(idempotency_key="k")

    assert (again.status, again.job_id, again.token) == ("submitted", first.job_id, first.token)
    assert len(scene.sent()) == 1


@pytest.mark.parametrize(("held_up", "told"), [(False, "got no answer"), (True, "slurmdbd is slow")])
async def test_a_release_that_came_to_nothing_leaves_the_job_held_for_the_next_call(
    scene: Scene, held_up: bool, told: str
):
    for _ in range(4 if held_up else 0):
        scene.slurm.fail(
            "scontrol release", "Job update not available right now, the DB index is being set, try again\n"
        )
    if not held_up:
        scene.slurm.lose_next_request("scontrol release")
    first = await scene.submit(idempotency_key="k")
    assert (first.status, scene.stands(first.job_id)) == ("unconfirmed", ("PENDING", "JobHeldUser"))
    assert told in first.reason

    again = await scene.submit(idempotency_key="k")

    assert (again.status, again.job_id, len(scene.sent())) == ("submitted", first.job_id, 1)
    assert scene.stands(again.job_id)[0] == "RUNNING"


async def test_a_job_that_ran_before_its_answer_came_is_reported_from_the_accounting(scene: Scene):
    scene.write("short.sh", f"{HEAD}sleep 1\n")
    scene.slurm.lose_next_reply("scontrol release")
    first = await scene.submit("short.sh", idempotency_key="k")
    scene.slurm.clock.move(30)
    scene.slurm.forget(int(first.job_id))

    again = await scene.submit("short.sh", idempotency_key="k")

    assert (again.status, again.job_id, again.granted) == ("submitted", first.job_id, None)


async def test_the_same_request_without_a_key_goes_on_with_what_was_not_confirmed(scene: Scene):
    scene.slurm.lose_next_request("scontrol release")
    first = await scene.submit()

    again = await scene.submit()

    assert (again.status, again.job_id, len(scene.sent())) == ("submitted", first.job_id, 1)


async def test_a_silent_queue_leaves_a_repeated_call_unconfirmed(scene: Scene):
    scene.slurm.lose_next_request("scontrol release")
    first = await scene.submit(idempotency_key="k")
    scene.slurm.controller_down()

    again = await scene.submit(idempotency_key="k", look=False)

    assert (again.status, again.job_id) == ("unconfirmed", first.job_id)
    assert "contact slurm controller" in again.reason


async def test_an_sbatch_that_fails_behind_the_real_one_has_submitted_all_the_same(scene: Scene):
    scene.slurm.fail(SBATCH, REFUSED, carried_out=True)

    reply = await scene.submit(idempotency_key="k")

    assert (reply.status, scene.numbers()) == ("submitted", [int(reply.job_id)])


async def test_what_slurm_refuses_when_it_is_sent_is_an_error_and_may_be_sent_again(scene: Scene):
    scene.slurm.fail(SBATCH, REFUSED)
    with pytest.raises(SlurmRefused, match="Invalid account"):
        await scene.submit(idempotency_key="k")
    assert scene.phase("k") == ("refused", None)
    assert scene.logged() == ["decided", "refused"]

    assert (await scene.submit(idempotency_key="k")).status == "submitted"


# --- a held job that is not what was checked ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("timelimit=20",), "the time limit is 00:20:00, allowed was 00:10:00"),
        (("jobname=other",), "the name is 'other', asked was 'train.sh'"),
        (("minmemorynode=2048",), "memory"),
    ],
)
async def test_a_held_job_that_was_changed_is_cancelled_and_the_difference_is_told(scene: Scene, words, told):
    scene.slurm.before_next("scontrol show job", changing(scene, *words))

    reply = await scene.submit(idempotency_key="k")

    number = scene.numbers()[0]
    assert (reply.status, reply.blocker, reply.human_action_required) == ("blocked", "policy", False)
    assert told in reply.reason
    assert scene.stands(number)[0] == "CANCELLED"
    assert scene.phase("k") == ("cancelled", number)
    (line,) = scene.lines("withdrawn")
    assert (line["job_id"], told in str(line["differences"])) == (number, True)


async def test_a_key_whose_job_was_withdrawn_may_be_used_again(scene: Scene):
    scene.slurm.before_next("scontrol show job", changing(scene, "timelimit=20"))
    await scene.submit(idempotency_key="k")
    assert (await scene.submit(idempotency_key="k")).status == "submitted"


async def test_a_held_job_that_cannot_be_cancelled_stays_held_and_unconfirmed(scene: Scene):
    scene.slurm.before_next("scontrol show job", changing(scene, "timelimit=20"))
    scene.slurm.lose_next_request("scancel")

    reply = await scene.submit(idempotency_key="k")

    assert (reply.status, reply.job_id) == ("unconfirmed", str(scene.numbers()[0]))
    assert "time limit" in reply.reason
    assert scene.stands(reply.job_id) == ("PENDING", "JobHeldUser")


async def test_a_release_that_slurm_refuses_withdraws_the_job(scene: Scene):
    scene.slurm.fail("scontrol release", "slurm_suspend error: Access/permission denied\n")

    reply = await scene.submit()

    assert (reply.status, scene.stands(scene.numbers()[0])[0]) == ("blocked", "CANCELLED")
    assert "permission denied" in reply.reason


async def test_a_held_job_that_vanishes_is_an_error_that_says_it_did_not_run(scene: Scene):
    def vanish() -> None:
        number = scene.numbers()[0]
        scene.slurm.command("scancel", str(number), admin=True)
        scene.slurm.forget(number)

    scene.slurm.before_next("scontrol show job", vanish)
    with pytest.raises(SlurmRefused, match="forgot it before it was released; it did not run"):
        await scene.submit(idempotency_key="k")
    assert scene.phase("k")[0] == "cancelled"
    assert scene.logged()[-1] == "vanished"


@pytest.mark.parametrize(("others", "status"), [(3, "submitted"), (4, "blocked")])
async def test_jobs_that_came_first_from_another_machine_count_for_the_limit(scene: Scene, others: int, status: str):
    def elsewhere() -> None:
        for _ in range(others):
            scene.slurm.submit("#!/bin/bash\nsleep 600\n")

    scene.slurm.before_next(SBATCH, elsewhere)

    reply = await scene.submit(idempotency_key="k")

    assert reply.status == status
    if status == "blocked":
        assert "one of 5 concurrent jobs, at most 4 are allowed" in reply.reason
        assert scene.stands(scene.numbers()[-1])[0] == "CANCELLED"


async def test_jobs_that_came_later_from_another_machine_are_in_nobodys_way(scene: Scene):
    scene.slurm.before_next("scontrol show job", lambda: [scene.slurm.submit() for _ in range(6)] and None)
    assert (await scene.submit()).status == "submitted"


# --- a process that ends on the way -------------------------------------------------------------------------------------

CRASHES = ["scontrol show job", "scontrol write", "scontrol release"]


@pytest.mark.parametrize("command", CRASHES)
async def test_a_job_left_held_by_a_crash_goes_on_with_its_key(scene: Scene, command: str):
    kill_at(scene, command)
    with pytest.raises(Killed):
        await scene.submit(idempotency_key="k")
    (number,) = scene.numbers()
    assert scene.stands(number) == ("PENDING", "JobHeldUser")

    reply = await scene.submit(idempotency_key="k")

    assert (reply.status, reply.job_id, scene.numbers()) == ("submitted", str(number), [number])
    assert scene.stands(number)[0] == "RUNNING"


async def test_a_crash_before_the_number_was_written_is_found_by_the_token(scene: Scene, monkeypatch):
    def update(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(scene.context.store, "update", update)
        with pytest.raises(Killed):
            await scene.submit(idempotency_key="k")
    assert scene.phase("k") == ("intent", None)

    reply = await scene.submit(idempotency_key="k")

    assert (reply.status, scene.numbers()) == ("submitted", [int(reply.job_id)])


async def test_a_crash_before_sbatch_leaves_an_intent_that_becomes_lost(scene: Scene):
    kill_at(scene, SBATCH)
    with pytest.raises(Killed):
        await scene.submit(idempotency_key="k")
    assert scene.phase("k") == ("intent", None)

    scene.slurm.clock.move(601)
    await other(scene)
    assert scene.phase("k") == ("lost", None)


@pytest.mark.parametrize(("seconds", "state"), [(500, "PENDING"), (700, "CANCELLED")])
async def test_a_job_left_held_is_cancelled_by_the_first_submission_after_ten_minutes(scene: Scene, seconds, state):
    kill_at(scene, "scontrol release")
    with pytest.raises(Killed):
        await scene.submit(idempotency_key="k")
    (number,) = scene.numbers()

    scene.slurm.clock.move(seconds)
    assert (await other(scene)).status == "submitted"

    assert scene.stands(number)[0] == state
    assert scene.phase("k") == ("held" if state == "PENDING" else "cancelled", number)


async def test_a_status_tells_of_a_job_left_held_and_changes_nothing(scene: Scene):
    kill_at(scene, "scontrol release")
    with pytest.raises(Killed):
        await scene.submit(idempotency_key="k")
    (number,) = scene.numbers()

    assert "submission-broke-off" not in {alert.code for alert in (await scene.status()).alerts}
    scene.slurm.clock.move(40)
    (told,) = [alert for alert in (await scene.status(refresh=True)).alerts if alert.code == "submission-broke-off"]

    assert (told.severity, told.job_id) == ("high", str(number))
    assert "idempotency_key k goes on with it" in told.message
    scene.slurm.clock.move(3000)
    await scene.status(refresh=True)
    assert scene.stands(number) == ("PENDING", "JobHeldUser")


async def test_nobody_is_told_to_release_a_job_whose_submission_broke_off(scene: Scene):
    kill_at(scene, "scontrol release")
    with pytest.raises(Killed):
        await scene.submit(idempotency_key="k")

    reply = await scene.wait(scene.numbers()[0])

    assert (reply.status, reply.next_poll_seconds) == ("pending", None)
    assert "submit_job with idempotency_key k goes on with it" in reply.summary


async def test_a_held_job_keeps_its_slot(scene: Scene):
    scene.limits(max_concurrent_jobs=1)
    kill_at(scene, "scontrol release")
    with pytest.raises(Killed):
        await scene.submit(idempotency_key="k")

    reply = await other(scene)

    assert reply.status == "blocked"
    assert [rule.id for rule in reply.decision.rules if rule.outcome == "deny"] == ["concurrent-jobs"]


async def test_a_ledger_that_fails_after_slurm_took_the_job_says_how_to_go_on(scene: Scene, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise StorageError("the disk is full", hint="Make room.")

    with monkeypatch.context() as patched:
        patched.setattr(scene.context.store, "update", full)
        with pytest.raises(StorageError) as caught:
            await scene.submit(idempotency_key="k")
    number = scene.numbers()[0]
    assert caught.value.message == f"Slurm took train.sh as job {number}, but the disk is full"
    assert caught.value.hint == "Make room. Then call again with idempotency_key k: it goes on with that job."

    assert (await scene.submit(idempotency_key="k")).job_id == str(number)


async def test_an_answer_that_cannot_be_noted_as_delivered_is_given_all_the_same(scene: Scene, monkeypatch):
    def full(*_: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(scene.context.store, "deliver", full)
        first = await scene.submit()
    assert first.status == "submitted"

    again = await scene.submit()
    assert (again.status, again.job_id) == ("submitted", first.job_id), "it may never have been heard"
