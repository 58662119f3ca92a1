"""Smoke first: a large job runs once a short run of the very same configuration has passed by Slurm's record."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from tests.unit.services.ladders import SCRIPT, SMOKE, closed, laboratory, large, over, rule, smoke
from tests.unit.services.scenes import Scene

from slurm_agent_tools.devcluster.fake.endings import StepEnding
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.services.approval import Question
from slurm_agent_tools.store.ledger import Store


@pytest.fixture
def lab(scene: Scene) -> Scene:
    return laboratory(scene)


@pytest.mark.proves("smoke-comes-first")
async def test_a_large_job_that_was_never_tried_is_refused_with_the_smoke_run_to_make(lab: Scene):
    told = closed(reply := await large(lab), "justify")

    assert "96 CPU hours, more than 64" in told
    remedy = rule(reply).remedy
    assert 'Call again with stage="smoke" and time_limit="00:30:00".' in remedy
    assert "shorten --steps, STEPS, solver.max_steps" in remedy
    assert lab.sent() == []


@pytest.mark.proves("smoke-comes-first")
async def test_behind_a_smoke_run_that_passed_it_is_submitted(lab: Scene):
    tried = await smoke(lab)

    reply = await large(lab)

    assert reply.status == "submitted"
    assert lab.context.store.by_job(lab.context.owner, int(reply.job_id)).stage == "production"
    assert lab.context.store.by_job(lab.context.owner, int(tried.job_id)).passed is True


@pytest.mark.proves("smoke-comes-first")
async def test_a_written_reason_is_enough_and_is_in_the_log(lab: Scene):
    reply = await large(lab, justification="the same code ran to its end elsewhere")

    assert reply.status == "submitted"
    assert lab.lines("decided")[-1]["justification"] == "the same code ran to its end elsewhere"


@pytest.mark.proves("smoke-comes-first")
async def test_a_passed_production_run_validates_the_same_bytes(lab: Scene):
    lab.slurm.next_job(after=60)
    first = await large(lab, justification="the same code ran to its end elsewhere")
    await over(lab, first.job_id)

    assert (await large(lab)).status == "submitted"


@pytest.mark.proves("smoke-comes-first")
@pytest.mark.parametrize(
    "name",
    ["train.sh", "train.py", "helper.py", "lab/model.py", "lab/check.py", "lab/deep/layers.py", "configs/a.yaml",
     "data/points.csv", "data/weights.txt"],
)  # fmt: skip
async def test_one_changed_byte_in_a_file_that_it_reads_closes_it_again_and_is_named(lab: Scene, name: str):
    await smoke(lab)
    text = (lab.project / name).read_text()
    lab.write(name, f"{text}#" if name != "data/points.csv" else "1,3\n")

    told = closed(await large(lab), "justify")

    assert "which passed, this changed: " in told
    assert ("the script" if name == "train.sh" else name) in told
    assert (f"`#SMOKE writes: {name}`" in told) == (name != "train.sh")
    lab.write(name, text)
    assert (await large(lab)).status == "submitted"


@pytest.mark.proves("smoke-comes-first")
@pytest.mark.parametrize(
    ("what", "ending"),
    [
        ("exit code 1", {"exit_code": 1}),
        ("signal 9", {"signal": 9}),
        ("its step 0 ended FAILED", {"steps": (StepEnding("python", 1),)}),
        ("TIMEOUT", {"after": None}),
    ],
)
async def test_a_smoke_run_passes_by_slurms_record_alone(lab: Scene, what: str, ending: dict):
    tried = await smoke(lab, **ending)

    told = closed(await large(lab), "deny")

    assert f"job {tried.job_id}, did not pass" in told
    assert what in told
    closed(await large(lab, justification="it surely works at length"), "deny")
    closed(await large(lab, stage="pilot"), "deny")


@pytest.mark.proves("failed-stage-closes")
async def test_what_a_failed_smoke_run_closed_is_open_when_it_has_passed_again(lab: Scene):
    tried = await smoke(lab, exit_code=1)
    closed(await large(lab), "deny")
    await lab.analyse(job_id=tried.job_id)
    lab.slurm.next_job(after=60)
    again = await lab.submit(args=["--steps", "50"], justification="the data was mended by hand", **SMOKE)
    await over(lab, again.job_id)

    assert (await large(lab, justification="the data was mended by hand")).status == "submitted"


@pytest.mark.proves("failed-stage-closes")
async def test_a_failed_pilot_closes_production_until_a_pilot_has_passed(lab: Scene):
    await smoke(lab)
    lab.slurm.next_job(after=60, exit_code=1)
    pilot = await large(lab, stage="pilot", args=["--steps", "5000"])
    await over(lab, pilot.job_id)
    await lab.analyse(job_id=pilot.job_id)

    assert "The pilot run of this configuration" in closed(await large(lab, justification="it works"), "deny")
    lab.slurm.next_job(after=60)
    again = await large(lab, stage="pilot", args=["--steps", "5000"], justification="the data was mended")
    await over(lab, again.job_id)
    assert (await large(lab)).status == "submitted"


@pytest.mark.proves("failed-stage-closes")
async def test_a_mended_script_does_not_leave_out_the_pilot_that_failed_before(lab: Scene):
    await smoke(lab)
    lab.slurm.next_job(after=60, exit_code=1)
    pilot = await large(lab, stage="pilot", args=["--steps", "5000"])
    await over(lab, pilot.job_id)
    await lab.analyse(job_id=pilot.job_id)
    lab.write("train.sh", SCRIPT.replace("lab.check", "lab.check -v"))
    await smoke(lab)

    reply = await large(lab)
    assert "of an earlier version of this script" in closed(reply, "deny")
    assert "production follows when the pilot has passed" in str(rule(reply).remedy)


@pytest.mark.proves("one-smoke-at-a-time")
async def test_two_smoke_runs_of_one_configuration_at_once_are_refused(lab: Scene):
    lab.slurm.next_job(after=600)
    first = await lab.submit(args=["--steps", "50"], **SMOKE)

    told = closed(await lab.submit(args=["--steps", "60"], job_name="other", **SMOKE), "deny")

    assert f"goes on already: job {first.job_id}" in told
    closed(await large(lab), "deny")
    other = await lab.submit(args=["--steps", "50", "--lr", "0.2"], **SMOKE)
    assert other.status == "submitted"


@pytest.mark.proves("one-smoke-at-a-time")
async def test_a_smoke_run_is_short_and_a_single_task(lab: Scene):
    assert "12:00:00" in closed(await lab.submit(stage="smoke"), "deny")
    assert "array of 10 tasks" in closed(await lab.submit(array="0-9%2", **SMOKE), "deny")
    assert (await lab.submit(array="3", **SMOKE)).status == "submitted"


@pytest.mark.proves("smoke-comes-first")
async def test_a_smoke_run_away_from_the_cheapest_partition_is_told_where_that_is(lab: Scene):
    reply = await lab.submit(partition="gpu", **SMOKE)

    assert rule(reply).outcome == "warn"
    assert 'Call again with partition="' in rule(reply).remedy


@pytest.mark.proves("ladder-outlives-a-crash")
async def test_what_was_tried_is_known_to_the_next_process(lab: Scene, tmp_path):
    await smoke(lab)
    folder = lab.context.store.folder
    lab.context.store.close()
    kept = Store(folder, clock=lab.slurm.clock)
    lab.box.context = lab.box.registry.context = replace(lab.context, store=kept)

    assert (await large(lab)).status == "submitted"


@pytest.mark.proves("ladder-outlives-a-crash")
async def test_a_smoke_run_whose_answer_was_lost_counts_as_one_that_goes_on(lab: Scene):
    lab.slurm.lose_next_reply("sbatch --parsable")
    lab.slurm.next_job(after=600)
    await lab.submit(args=["--steps", "50"], **SMOKE)

    closed(await lab.submit(args=["--steps", "60"], job_name="other", **SMOKE), "deny")
    closed(await large(lab), "deny")


async def test_a_ledger_that_cannot_be_read_closes_it_loudly(lab: Scene, monkeypatch: pytest.MonkeyPatch):
    await smoke(lab)

    def broken(*_: object, **__: object) -> None:
        raise StorageError("the ledger is damaged")

    await lab.status()
    monkeypatch.setattr(Store, "staged", broken)
    with pytest.raises(StorageError):
        await large(lab, look=False)


@pytest.mark.proves("smoke-comes-first")
async def test_while_nobody_knows_how_the_smoke_run_ended_it_is_closed(lab: Scene):
    lab.slurm.next_job(after=60)
    tried = await lab.submit(args=["--steps", "50"], **SMOKE)
    lab.slurm.clock.move(600)
    lab.slurm.accounting_down()
    lab.slurm.forget(int(tried.job_id))

    assert "is not known to have passed" in closed(await large(lab), "deny")
    lab.slurm.accounting_down(down=False)
    lab.slurm.clock.move(600)
    assert (await large(lab)).status == "submitted"


@pytest.mark.proves("smoke-comes-first")
async def test_a_file_that_the_script_declares_to_write_must_be_there_behind_a_smoke_run(lab: Scene):
    lab.write("train.sh", SCRIPT.replace("STEPS=", "#SMOKE writes: ckpt/last.pt\nSTEPS=", 1))
    await smoke(lab)
    assert "did not write ckpt/last.pt" in closed(await large(lab), "deny")

    lab.slurm.clock.move(60)
    lab.slurm.next_job(after=60)
    again = await lab.submit(args=["--steps", "50"], **SMOKE)
    lab.write("ckpt/last.pt", "weights")
    await over(lab, again.job_id)
    reply = await large(lab)
    assert reply.status == "submitted", reply.summary
    assert "last.pt" not in str(lab.context.store.by_job(lab.context.owner, int(reply.job_id)).parts.keys())


@pytest.mark.proves("smoke-comes-first")
async def test_a_small_job_needs_nothing_and_leaves_no_stage(lab: Scene):
    reply = await lab.submit(time_limit="01:00:00")

    assert reply.status == "submitted"
    assert lab.context.store.staged(lab.context.owner) == []


@pytest.mark.proves("ladder-is-shown")
async def test_get_status_shows_the_ladder_of_each_configuration(lab: Scene):
    assert (await lab.status()).ladders == []
    first = await smoke(lab)
    second = await large(lab)

    (shown,) = (await lab.status()).ladders

    assert shown.script == "train.sh"
    assert {stage: (one.job_id, one.state) for stage, one in shown.stages.items()} == {
        "smoke": (first.job_id, "passed"),
        "production": (second.job_id, "active"),
    }


async def test_a_dry_run_says_the_same_and_leaves_nothing(lab: Scene):
    closed(await large(lab, dry_run=True), "justify")
    await smoke(lab)

    assert (await large(lab, dry_run=True)).status == "dry_run"
    assert [run.stage for run in lab.context.store.staged(lab.context.owner)] == ["smoke"]


@pytest.mark.proves("smoke-comes-first")
async def test_a_persons_yes_to_a_plan_that_says_so_is_as_good_as_a_reason(lab: Scene):
    asked = []

    async def yes(question: Question) -> str:
        asked.append(question.text)
        return "yes"

    reply = await large(lab, time_limit="4-00:00:00", consult=yes)

    assert reply.status == "submitted", reply.summary
    assert "smoke-first: It asks for 768 CPU hours" in asked[0]


@pytest.mark.proves("failed-stage-closes")
async def test_a_persons_yes_opens_nothing_that_a_failed_stage_closed(lab: Scene):
    tried = await smoke(lab, exit_code=1)
    await lab.analyse(job_id=tried.job_id)

    async def yes(_: Question) -> str:
        return "yes"

    closed(await large(lab, time_limit="4-00:00:00", consult=yes), "deny")


@pytest.mark.proves("smoke-comes-first")
@pytest.mark.parametrize(
    ("program", "made"),
    [
        ("open('metrics.json', 'w')", "metrics.json"),
        ("torch.save(model, 'ckpt/model.pt')", "ckpt/model.pt"),
        ("where = 'runs/metrics.json'", "runs/metrics.json"),
    ],
)
async def test_what_the_smoke_run_writes_is_no_change_of_the_configuration(lab: Scene, program: str, made: str):
    lab.write("train.py", f"{program}\n")
    tried = await smoke(lab)
    lab.write(made, "loss 0.5\n")
    ended = lab.context.store.staged(lab.context.owner)[0].ended
    os.utime(lab.project / made, (ended.timestamp(), ended.timestamp()))

    reply = await large(lab)

    assert reply.status == "submitted", reply.summary
    stages = [lab.context.store.by_job(lab.context.owner, int(one.job_id)) for one in (tried, reply)]
    assert stages[0].configuration == stages[1].configuration


@pytest.mark.proves("smoke-comes-first")
async def test_what_a_program_saves_may_be_there_before_and_be_written_again(lab: Scene):
    lab.write("train.py", "open('metrics.json', 'w')\n")
    lab.write("metrics.json", "loss 0.9\n")
    await smoke(lab)
    lab.write("metrics.json", "loss 0.5\n")

    assert (await large(lab)).status == "submitted"


@pytest.mark.proves("smoke-comes-first")
async def test_the_smoke_run_goes_where_the_page_of_the_cluster_says_that_tests_run(lab: Scene):
    page = "kind: slurm\npartitions: [{name: gpu, purpose: testing}, {name: cpu, purpose: long}]\n"
    lab.write(f"backends/{lab.context.cluster}.yaml", page)

    assert ' and partition="gpu".' in rule(await large(lab)).remedy
    lab.write(f"backends/{lab.context.cluster}.yaml", "kind: [\n")
    assert 'partition="gpu"' not in rule(await large(lab)).remedy


@pytest.mark.proves("smoke-comes-first")
async def test_a_declared_file_from_before_the_run_was_not_written_by_it(lab: Scene):
    lab.write("train.sh", SCRIPT.replace("STEPS=", "#SMOKE writes: ckpt/last.pt\nSTEPS=", 1))
    lab.write("ckpt/last.pt", "old weights")
    os.utime(lab.project / "ckpt/last.pt", (1, 1))
    await smoke(lab)

    assert "did not write ckpt/last.pt" in closed(await large(lab), "deny")


async def test_the_hours_of_a_smoke_run_do_not_make_the_work_behind_it_large(lab: Scene):
    size = lab.context.policy.policy.smoke_first.model_copy(update={"cpu_hours": 3.0})
    lab.policy(smoke_first=size)
    lab.slurm.next_job(after=600)
    assert (await lab.submit(args=["--steps", "50"], **SMOKE)).status == "submitted"

    reply = await lab.submit(args=["--steps", "50"], time_limit="00:10:00", job_name="small")

    assert reply.status == "submitted", reply.summary


@pytest.mark.proves("one-smoke-at-a-time", "ladder-outlives-a-crash")
async def test_a_smoke_run_that_slurm_may_have_counts_as_one_that_goes_on(lab: Scene):
    lab.slurm.lose_next_request("sbatch --parsable")
    reply = await lab.submit(args=["--steps", "50"], **SMOKE)
    assert reply.status == "unconfirmed"

    closed(await lab.submit(args=["--steps", "60"], job_name="other", **SMOKE), "deny")
    assert "has not ended" in closed(await large(lab), "deny")


async def test_a_stage_that_is_named_while_the_rule_is_off_counts_once_it_is_on(lab: Scene):
    lab.policy(rules={"smoke-first": "off"})
    tried = await smoke(lab)
    assert lab.context.store.by_job(lab.context.owner, int(tried.job_id)).stage == "smoke"
    assert rule(tried).outcome == "pass"
    lab.policy(rules={})

    assert (await large(lab)).status == "submitted"


async def test_while_the_rule_is_off_a_large_job_without_a_stage_is_not_looked_at(lab: Scene):
    lab.policy(rules={"smoke-first": "off"})
    sent = await large(lab)
    assert lab.context.store.by_job(lab.context.owner, int(sent.job_id)).stage is None
