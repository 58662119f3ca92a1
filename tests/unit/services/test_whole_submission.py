"""One submission from the call to the queue: what the caller is told, what Slurm has, what the ledger and the log say."""

from __future__ import annotations

import pytest
from tests.unit.services.scenes import HEAD, NEEDS_A_PERSON, Scene

from slurm_agent_tools.devcluster.fake.answering import Fault
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import InputError, SlurmMissing, SlurmRefused, SlurmUnconfigured, StorageError

REQUEUE = f"{HEAD}#SBATCH --requeue\nsleep 60\n"
REASON = "the model does not fit into less"


def outcomes(reply) -> dict[str, str]:
    """The rules that did not pass."""
    return {rule.id: rule.outcome for rule in reply.decision.rules if rule.outcome not in {"pass", "not_evaluated"}}


async def test_an_allowed_script_becomes_one_job_that_slurm_may_run(scene: Scene):
    reply = await scene.submit(idempotency_key="k", run_id="run-7", args=["--lr", "0.1"])

    assert (reply.status, reply.run_id, reply.idempotency_key) == ("submitted", "run-7", "k")
    assert [str(number) for number in scene.numbers()] == [reply.job_id]
    assert scene.stands(reply.job_id) == ("RUNNING", "None")
    assert scene.phase("k") == ("released", int(reply.job_id))
    assert scene.logged() == ["decided", "submitted"]
    assert (reply.requested.memory, reply.requested.time_limit_seconds, reply.granted.partition) == ("1G", 600, "cpu")
    assert reply.log_paths.stdout == f"{scene.project}/logs/x.out"
    assert "Wait for it with wait_for_job" in reply.summary


async def test_the_command_line_holds_the_job_makes_it_findable_and_passes_the_arguments_last(scene: Scene):
    reply = await scene.submit(run_id="run-7", args=["--lr", "0.1"], job_name="mine")

    (argv,) = scene.sent()
    assert {"--hold", "--no-requeue", "--job-name=mine", "--export=ALL"} <= set(argv)
    assert argv.count("--job-name=mine") == 1
    assert argv[-3:] == ("/dev/stdin", "--lr", "0.1")
    (comment,) = [word for word in argv if word.startswith("--comment=")]
    assert reply.token in comment
    assert "run-7" in comment
    assert scene.slurm.job(int(reply.job_id)).request.name == "mine"


async def test_the_folder_of_the_log_is_made_before_the_job_needs_it(scene: Scene):
    reply = await scene.submit()

    scene.slurm.clock.move(70)
    assert (scene.project / "logs/x.out").is_file()
    assert scene.stands(reply.job_id)[0] == "COMPLETED"


async def test_a_folder_of_logs_outside_the_project_is_refused_and_not_made(scene: Scene):
    scene.write("out.sh", f"{HEAD}#SBATCH --error=../elsewhere/x.err\nsleep 1\n")

    reply = await scene.submit("out.sh")

    assert (reply.status, outcomes(reply)) == ("blocked", {"path": "deny"})
    assert not (scene.project.parent / "elsewhere").exists()


async def test_a_refusal_of_the_policy_gives_corrected_lines_and_leaves_nothing(scene: Scene):
    scene.write("again.sh", REQUEUE)

    reply = await scene.submit("again.sh")

    assert (reply.status, reply.blocker, reply.human_action_required) == ("blocked", "policy", False)
    assert "deny" in outcomes(reply).values()
    assert "requeue" in reply.reason
    assert (reply.artifacts, reply.manual_commands, scene.sent()) == ([], [], [])
    assert scene.logged() == ["decided"]


async def test_nobody_submits_who_has_not_looked_at_the_cluster(scene: Scene):
    reply = await scene.submit(look=False)
    assert (reply.status, outcomes(reply)) == ("blocked", {"status-first": "deny"})

    await scene.status()
    scene.slurm.clock.move(601)
    late = await scene.submit(look=False)
    assert outcomes(late) == {"status-first": "deny"}
    assert scene.sent() == []


async def test_a_request_above_what_is_free_needs_a_reason_and_passes_with_one(scene: Scene):
    scene.write("big.sh", HEAD.replace("1G", "20G") + "sleep 60\n")

    without = await scene.submit("big.sh")
    given = await scene.submit("big.sh", justification=REASON)

    assert (without.status, without.decision.verdict, outcomes(without)) == (
        "blocked", "justify", {"memory-per-gpu": "justify"},
    )  # fmt: skip
    assert (without.human_action_required, without.artifacts) == (False, [])
    assert given.status == "submitted"
    assert scene.lines("submitted")[0]["justification"] == REASON


async def test_a_reason_that_is_too_short_is_none(scene: Scene):
    scene.write("big.sh", HEAD.replace("1G", "20G") + "sleep 60\n")
    assert (await scene.submit("big.sh", justification="x")).decision.verdict == "justify"
    assert scene.sent() == []


async def test_what_the_script_leaves_out_is_pinned_on_the_command_line(scene: Scene):
    scene.write("bare.sh", "#!/bin/bash\nsleep 60\n")

    reply = await scene.submit("bare.sh")

    pinned = {pin.option for pin in reply.pinned}
    assert {"--time=02:00:00", "--mem=16G"} <= pinned
    assert pinned <= set(scene.sent()[0])
    assert (reply.granted.time_limit_seconds, reply.granted.memory) == (7200, "16G")


async def test_arguments_of_the_call_win_over_the_script(scene: Scene):
    reply = await scene.submit(time_limit="20", job_name="other")
    assert reply.granted.time_limit_seconds == 1200
    assert "other" in reply.summary


async def test_a_dry_run_tells_all_and_sends_nothing(scene: Scene):
    reply = await scene.submit(dry_run=True)

    assert (reply.status, reply.job_id) == ("dry_run", None)
    assert reply.decision.verdict == "allow"
    assert reply.summary.startswith("train.sh would be submitted; nothing was.")
    assert (scene.sent(), scene.numbers()) == ([], [])
    assert [line["dry_run"] for line in scene.lines()] == [True]


async def test_a_dry_run_of_what_needs_a_person_asks_nobody_and_leaves_no_script(scene: Scene):
    scene.write("huge.sh", HEAD.replace("1G", "100G") + "sleep 60\n")

    reply = await scene.submit("huge.sh", dry_run=True)

    assert (reply.status, reply.blocker, reply.human_action_required) == ("blocked", "approval", False)
    assert (reply.artifacts, reply.approval_id) == ([], None)
    assert scene.context.store.approvals.open(scene.context.owner) == []


async def test_a_dry_run_of_what_the_policy_denies_is_blocked_by_the_policy(scene: Scene):
    scene.write("again.sh", REQUEUE)
    assert (await scene.submit("again.sh", dry_run=True)).blocker == "policy"


async def test_a_dry_run_tells_what_slurm_would_say(scene: Scene):
    scene.slurm.fail("sbatch", "sbatch: error: Batch job submission failed: Invalid qos specification\n")

    reply = await scene.submit(dry_run=True)

    assert (reply.status, reply.job_id) == ("dry_run", None)
    assert "Slurm would refuse it" in reply.summary
    assert "Invalid qos specification" in reply.summary


async def test_what_slurm_refuses_before_it_is_sent_is_an_error_with_its_words(scene: Scene):
    scene.slurm.fail("sbatch", "sbatch: error: Batch job submission failed: Invalid qos specification\n")

    with pytest.raises(SlurmRefused, match=r"Slurm refuses train\.sh: .*Invalid qos specification"):
        await scene.submit(idempotency_key="k")

    assert (scene.phase("k"), scene.numbers()) == (None, [])


async def test_the_same_key_gives_the_first_answer_and_no_second_job(scene: Scene):
    first = await scene.submit(idempotency_key="k")
    again = await scene.submit(idempotency_key="k")

    assert (again.status, again.job_id, again.token) == ("submitted", first.job_id, first.token)
    assert (again.as_of, again.decision.id) == (first.as_of, first.decision.id)
    assert len(scene.sent()) == 1


async def test_an_answer_that_is_given_again_says_that_nothing_new_was_sent_and_which_job_it_was(scene: Scene):
    first = await scene.submit(idempotency_key="k")
    again = await scene.submit(idempotency_key="k")

    assert first.summary.startswith(f"Job {first.job_id} (train.sh) is submitted")
    assert again.summary.startswith(f"Nothing new was sent: at {first.as_of:%Y-%m-%d %H:%M:%S} UTC an earlier call")
    assert f"with the same idempotency_key submitted job {first.job_id} (train.sh) to cpu" in again.summary


async def test_without_a_key_it_says_that_the_first_answer_was_lost(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(scene.context.store, "deliver", full)
    await scene.submit()
    assert "with the same request, whose answer was lost, submitted" in (await scene.submit()).summary


async def test_an_answer_that_goes_on_with_a_broken_off_submission_says_so(scene: Scene):
    scene.slurm.lose_next_request("scontrol release")
    assert (await scene.submit(idempotency_key="k")).status == "unconfirmed"

    again = await scene.submit(idempotency_key="k")

    assert again.status == "submitted"
    assert again.summary.endswith("An earlier call had sent it; this one went on with that and sent nothing new.")


async def test_a_key_of_another_request_is_an_error_that_names_it(scene: Scene):
    await scene.submit(idempotency_key="k")

    with pytest.raises(InputError) as caught:
        await scene.submit(idempotency_key="k", args=["other"])

    assert caught.value.field == "idempotency_key"
    assert len(scene.sent()) == 1


async def test_the_same_request_without_a_key_is_a_duplicate_once_it_was_answered(scene: Scene):
    await scene.submit()
    again = await scene.submit()
    assert (again.status, "duplicate" in outcomes(again)) == ("blocked", True)
    assert len(scene.sent()) == 1


async def test_the_fifth_job_waits_until_a_slot_is_free(scene: Scene):
    sent = [await scene.submit(job_name=f"job{number}", args=[str(number)]) for number in range(4)]
    assert {reply.status for reply in sent} == {"submitted"}

    fifth = await scene.submit(job_name="job4", args=["4"])
    assert (fifth.status, outcomes(fifth)) == ("blocked", {"concurrent-jobs": "deny"})

    await scene.wait(sent[0].job_id)
    await scene.cancel(sent[0].job_id)
    assert (await scene.submit(job_name="job4", args=["4"])).status == "submitted"


async def test_where_slurm_is_away_a_script_and_exact_commands_are_left(scene: Scene):
    await scene.status()
    scene.slurm.controller_down()

    reply = await scene.submit(look=False, args=["a b"])

    assert (reply.status, reply.blocker, reply.human_action_required) == ("blocked", "cluster_unreachable", True)
    (artifact,) = reply.artifacts
    text = (scene.project / artifact).read_text()
    assert text.startswith("#!/bin/bash\n")
    assert "sleep 60" in text
    assert reply.manual_commands == [f"sbatch {artifact} 'a b'", "squeue --me"]
    assert "Nothing was sent" in reply.summary
    assert reply.decision.verdict == "allow"
    assert "The policy allows this request as far as it can tell without Slurm" in reply.reason
    assert "call again once Slurm answers, or a person runs the lines of `manual_commands`." in reply.reason
    assert scene.sent() == []


async def test_where_slurm_is_away_the_policy_still_refuses(scene: Scene):
    scene.write("again.sh", REQUEUE)
    scene.slurm.controller_down()

    reply = await scene.submit("again.sh", look=False)

    assert (reply.blocker, reply.artifacts, reply.human_action_required) == ("policy", [], False)


async def test_a_dry_run_where_slurm_is_away_leaves_no_script(scene: Scene):
    scene.slurm.controller_down()

    reply = await scene.submit(look=False, dry_run=True)

    assert (reply.status, reply.blocker, reply.artifacts) == ("blocked", "cluster_unreachable", [])
    assert "slurm controller" in reply.reason
    assert reply.reason.count("Nothing was") == 1
    assert reply.reason.endswith("so nothing has to be corrected: call again once Slurm answers.")


async def test_where_no_configuration_of_slurm_is_found_waiting_is_not_said_to_mend_it(scene: Scene):
    gone = SlurmUnconfigured("Slurm's commands find no configuration.", hint="Write SLURM_CONF into `env`")
    for command in ("squeue", "scontrol", "sinfo", "sbatch"):
        scene.slurm.faults.add(Fault(command, None, error=gone))

    reply = await scene.submit(look=False, dry_run=True)
    status = await scene.status(["jobs", "queue", "partitions"])

    assert "no configuration. Nothing was sent. Write SLURM_CONF into `env`. The policy allows this" in reply.reason
    assert "nothing has to be corrected" not in reply.reason
    assert status.summary.endswith("Slurm's commands find no configuration. Write SLURM_CONF into `env`")
    said = [section.error.message for section in (status.slurm, status.queue, status.partitions)]
    assert said == ["Slurm's commands find no configuration.", *["As `summary` says."] * 2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (NEEDS_A_PERSON, "By the policy a person has to agree to this request as well: call again once Slurm answers."),
        (REQUEUE, "What the policy says against this request stands in `decision`."),
    ],
)
async def test_a_dry_run_where_slurm_is_away_says_what_stands_against_it_all_the_same(scene: Scene, text, says):
    scene.write("other.sh", text)
    scene.slurm.controller_down()
    assert (await scene.submit("other.sh", look=False, dry_run=True)).reason.endswith(says)


async def test_a_machine_without_slurm_is_told_apart_from_a_silent_one(scene: Scene):
    await scene.status()

    async def missing(*_: object, **__: object) -> None:
        raise SlurmMissing("squeue is not installed on this machine")

    scene.slurm.run = missing
    reply = await scene.submit(look=False)
    assert (reply.blocker, len(reply.artifacts)) == ("tool_unavailable", 1)


async def test_submissions_that_are_switched_off_are_refused(scene: Scene):
    scene.policy(submissions="off")
    reply = await scene.submit()
    assert reply.status == "blocked"
    assert scene.sent() == []


async def test_a_job_behind_another_one_says_so(scene: Scene):
    first = await scene.submit()

    reply = await scene.submit(job_name="second", dependency=f"afterok:{first.job_id}")

    assert f"It starts after job {first.job_id} ends well." in reply.summary
    assert scene.stands(reply.job_id) == ("PENDING", "Dependency")
    assert reply.estimated_start is None


async def test_a_ledger_that_fails_before_the_job_is_sent_sends_none(scene: Scene, monkeypatch):
    def full(*_: object) -> bool:
        raise StorageError("the disk is full", hint="Make room.")

    monkeypatch.setattr(scene.context.store, "add", full)
    with pytest.raises(StorageError, match="the disk is full"):
        await scene.submit()
    assert scene.sent() == []


@pytest.mark.parametrize("version", ["24.11", "26.05"])
async def test_newer_versions_take_the_same_submission(tmp_path, version):
    scene = Scene(tmp_path, FakeSlurm(version=version))
    reply = await scene.submit()
    assert (reply.status, scene.stands(reply.job_id)) == ("submitted", ("RUNNING", "None"))
    scene.context.store.close()
