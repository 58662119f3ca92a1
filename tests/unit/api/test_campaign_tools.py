"""get_campaign and advance_campaign over a Slurm in memory: from the plan to the end, and in answers that stay small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.api.campaigns import FILE, CampaignScene, go_on, to_the_end

from slurm_agent_tools.api import brief
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.errors import ConfigError, InputError
from slurm_agent_tools.models.campaign_answer import CampaignReply
from slurm_agent_tools.models.toolset_arguments import AdvanceCampaign, GetCampaign
from slurm_agent_tools.policy.evaluate import evaluate
from slurm_agent_tools.scripts import reader
from slurm_agent_tools.services import generation, submit
from slurm_agent_tools.store import campaign_events
from slurm_agent_tools.store.ledger_location import submission_lock

MISSING = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"


@pytest.fixture
def scene(tmp_path: Path) -> CampaignScene:
    made = CampaignScene(tmp_path)
    made.slurm.on_start(lambda _: Ending(after=30, output="val_loss=0.5\n"))
    return made


async def look(scene: CampaignScene, **ask: Any) -> CampaignReply:
    reply = await scene.box.call("get_campaign", GetCampaign(name="rates", **ask))
    assert isinstance(reply, CampaignReply)
    return reply


async def test_a_plan_tells_hours_and_the_verdict_of_the_guard_and_writes_nothing(scene: CampaignScene):
    before = sorted(scene.project.rglob("*"))
    reply = await look(scene, view="plan")
    assert reply.status == "planned"
    assert reply.table is not None
    assert reply.table[0][-1] == "guard"
    assert {row[-1] for row in reply.table[1:]} == {"allow"}
    assert sum(int(str(row[2])) for row in reply.table[1:]) == 1 + 3
    assert sorted(scene.project.rglob("*")) == before
    assert not scene.sent()
    assert (await look(scene)).status == "planned"


async def test_a_plan_says_what_the_guard_does_not_let_through(scene: CampaignScene):
    scene.change(FILE.replace("memory: 1G", "memory: 100G"))
    reply = await look(scene, view="plan")
    assert "The guard does not let round 0 (training) through" in reply.summary


async def test_a_campaign_goes_from_smoke_to_its_end_with_a_report_and_saved_results(scene: CampaignScene):
    first = await go_on(scene)
    assert (first.status, first.round, len(first.submitted)) == ("running", 0, 1)
    assert first.next_poll_seconds is not None
    reply = await to_the_end(scene)
    assert reply.status == "finished"
    assert reply.counts.done == 4
    assert reply.next_poll_seconds is None
    assert reply.best[0].stage == "training"
    assert len([*(scene.project / "results").glob("*_rates-r1-t*.json")]) >= 2
    report = await look(scene, view="report")
    assert (scene.project / (report.report_path or "")).is_file()
    assert (await go_on(scene)).status == "finished"


async def test_calls_that_repeat_send_nothing_again(scene: CampaignScene):
    await go_on(scene)
    sent = len(scene.sent())
    scene.slurm.clock.move(15)
    again = await go_on(scene)
    assert (again.status, again.submitted, len(scene.sent())) == ("running", [], sent)
    assert again.counts.running == 1


async def test_what_fails_alike_twice_is_asked_of_a_person_whose_choice_ends_it(scene: CampaignScene):
    scene.slurm.on_start(lambda _: Ending(after=5, exit_code=1, errors=MISSING))
    scene.change(FILE.replace("  - {kind: smoke}\n", ""))
    reply = await to_the_end(scene)
    assert reply.status == "needs_decision"
    assert reply.question is not None
    assert "stop" in reply.question.choices
    with pytest.raises(InputError, match="decision"):
        await go_on(scene, decision="try harder")
    assert (await go_on(scene, decision="stop")).status in {"stopped", "finished"}


@pytest.mark.parametrize(("at_once", "own"), [(4, 1), (6, 0), (6, 2), (4, 4)])
async def test_other_jobs_of_the_user_make_a_campaign_wait_or_narrow_and_never_end_it(
    scene: CampaignScene, at_once: int, own: int
):
    scene.limits(max_concurrent_jobs=4)
    rates = "[0.01, 0.02, 0.03, 0.04, 0.05, 0.06]"
    scene.change(FILE.replace("[0.01, 0.1, 1.0]", rates).replace("at_once: 4", f"at_once: {at_once}"))
    assert {row[-1] for row in (await look(scene, view="plan")).table or [] if row[-1] != "guard"} == {"allow"}
    for _ in range(own):
        scene.slurm.next_job(after=1800)
        scene.slurm.submit("#!/bin/bash\n#SBATCH --partition=cpu --mem=1G --time=60\nsleep 60\n")
    reply = await to_the_end(scene)
    assert (reply.status, reply.question, reply.counts.done) == ("finished", None, 8)


async def test_stop_sends_no_more(scene: CampaignScene):
    await go_on(scene)
    assert (await go_on(scene, stop="enough")).status == "stopped"
    sent = len(scene.sent())
    await go_on(scene, 300)
    assert len(scene.sent()) == sent


async def test_stop_cancels_the_tasks_that_wait_behind_an_arrays_throttle(scene: CampaignScene):
    scene.slurm.on_start(lambda _: Ending(after=600, output="val_loss=0.5\n"))
    scene.change(FILE.replace("  - {kind: smoke}\n", "").replace("at_once: 4", "at_once: 1"))
    while not ((reply := await go_on(scene)).counts.running and reply.counts.pending):
        scene.slurm.clock.move(30)
    await go_on(scene, stop="the data were wrong")
    scene.slurm.clock.move(6000)
    done = await go_on(scene)
    assert (done.status, done.counts.done, done.counts.failed) == ("stopped", reply.counts.done + 1, 1)
    assert done.counts.running == done.counts.pending == 0


async def test_a_file_that_cannot_be_read_sends_nothing_and_what_is_known_is_shown(scene: CampaignScene):
    await go_on(scene)
    scene.write("campaigns/rates.yaml", "campaign: 1\nobjective: nothing\n")
    with pytest.raises(ConfigError):
        await go_on(scene, 300)
    reply = await look(scene)
    assert "cannot be read now" in reply.summary
    assert reply.status == "running"


async def test_a_file_that_was_deleted_sends_nothing_and_the_campaign_can_still_be_shown_and_stopped(
    scene: CampaignScene,
):
    await go_on(scene)
    (scene.project / "campaigns/rates.yaml").unlink()
    sent = len(scene.sent())
    with pytest.raises(InputError, match="does not exist"):
        await go_on(scene, 300)
    for view in ("state", "table", "plan", "report"):
        assert "does not exist" in (await look(scene, view=view)).summary
    scene.slurm.clock.move(900)
    stopped = await go_on(scene, stop="enough")
    assert (stopped.status, stopped.counts.done, len(scene.sent())) == ("stopped", 1, sent)


async def test_an_accounting_that_is_silent_is_told_and_the_campaign_goes_on_once_it_answers(scene: CampaignScene):
    await go_on(scene)
    scene.slurm.accounting_down()
    scene.slurm.clock.move(6 * 3600)
    silent = await go_on(scene, 3600)
    (told,) = [line for line in silent.happened if "not known" in line]
    assert told.startswith("How r0-t1 stands is not known now: the accounting does not answer")
    scene.slurm.accounting_down(down=False)
    assert (await to_the_end(scene)).counts.done == 4


async def test_another_submission_of_the_user_is_waited_for(scene: CampaignScene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submit, "_LOCK_SECONDS", 0.05)
    with submission_lock(scene.context.store.place):
        waits = await go_on(scene)
    assert (waits.status, waits.submitted, waits.next_poll_seconds) == ("running", [], 60)
    assert waits.happened[-1] == "r0-t1 could not be sent yet: another submission by this user is still going on"
    assert len((await go_on(scene)).submitted) == 1


@pytest.mark.parametrize("command", ["squeue", "sacct"])
async def test_an_answer_of_slurm_that_cannot_be_read_is_asked_for_again(scene: CampaignScene, command: str):
    scene.slurm.garble("squeue")
    waits = await go_on(scene)
    assert (waits.status, waits.submitted) == ("running", [])
    scene.slurm.clock.move(60)
    assert (await go_on(scene)).submitted
    scene.slurm.clock.move(900)
    scene.slurm.garble(command)
    assert (await go_on(scene)).status == "running"
    assert (await to_the_end(scene)).counts.done == 4


async def test_names_that_are_no_campaign_are_refused(scene: CampaignScene):
    with pytest.raises(InputError, match="name"):
        await scene.box.call("get_campaign", GetCampaign(name="../etc"))
    with pytest.raises(InputError, match="does not exist"):
        await scene.box.call("get_campaign", GetCampaign(name="other"))


@pytest.mark.proves("campaign-answers-are-small")
async def test_answers_of_forty_trials_stay_small(scene: CampaignScene):
    rates = ", ".join(f"{0.001 * number:.3f}" for number in range(1, 41))
    scene.change(FILE.replace("[0.01, 0.1, 1.0]", f"[{rates}]").replace("trials: 20", "trials: 60"))
    sizes: dict[str, list[int]] = {"advance": [], "get": []}
    for _ in range(40):
        ask = AdvanceCampaign(name="rates", timeout_seconds=60)
        reply = await scene.box.call("advance_campaign", ask)
        sizes["advance"].append(len(json.dumps(brief.answer(reply, ask)).encode()))
        for view in ("state", "table", "report", *(["plan"] if reply.round == 0 else [])):
            wanted = GetCampaign(name="rates", view=view)
            shown = await scene.box.call("get_campaign", wanted)
            sizes["get"].append(len(json.dumps(brief.answer(shown, wanted)).encode()))
        if reply.status == "finished":
            break
    assert reply.status == "finished"
    assert max(sizes["get"]) < 2000
    assert max(sizes["advance"]) < 1500


SECOND = """  - name: second
    kind: cpu
    script: second.sh
    parameters: {lr: {default: 0.1, argument: --lr}}
    resources: {cpus: 1, memory: 1G, time_limit: 10min, partition: cpu}
"""


async def test_an_option_that_a_script_must_not_have_is_told_before_anything_is_sent(scene: CampaignScene):
    later = "  - {kind: scale_up, hypothesis: It holds., best: 1, stages: [second]}\nlimits:"
    text = FILE.replace("rounds:\n", f"{SECOND}rounds:\n").replace("limits:", later)
    scene.change(text.replace("{kind: smoke}", "{kind: smoke, stages: [training]}"))
    scene.write("second.sh", "#!/bin/bash\n#SBATCH --exclusive\npython3 train.py\n")
    with pytest.raises(InputError, match="--exclusive"):
        await look(scene, view="plan")
    with pytest.raises(InputError, match="--exclusive"):
        await go_on(scene)
    assert not scene.sent()


async def test_a_plan_of_a_changed_file_is_what_the_next_call_does(scene: CampaignScene):
    assert (await to_the_end(scene)).status == "finished"
    assert [row[2] for row in (await look(scene, view="plan")).table or []][1:] == []
    scene.change(FILE.replace("[0.01, 0.1, 1.0]", "[0.01, 0.1, 1.0, 2.0]"))
    planned = (await look(scene, view="plan")).table or []
    before = len(scene.sent())
    assert sum(int(str(row[2])) for row in planned[1:]) == 1
    assert (await to_the_end(scene)).counts.done == 5
    assert len(scene.sent()) == before + 1


async def test_calls_read_of_the_ledger_only_what_was_added(scene: CampaignScene, monkeypatch: pytest.MonkeyPatch):
    await to_the_end(scene)
    counted, reads = [0], campaign_events.from_text

    def counting(*args: Any) -> Any:
        counted[0] += 1
        return reads(*args)

    monkeypatch.setattr(campaign_events, "from_text", counting)
    await look(scene)
    await go_on(scene)
    assert counted[0] <= 8


async def test_a_plan_of_many_single_jobs_is_a_row_for_each_round_stage_and_verdict(scene: CampaignScene):
    memory = ", ".join(f"{100 * number}M" for number in range(1, 36))
    scene.change(
        FILE.replace("vary: {lr: [0.01, 0.1, 1.0]}", f"vary: {{memory: [{memory}, 100G]}}").replace("20,", "50,")
    )
    reply = await look(scene, view="plan")
    rows = (reply.table or [])[1:]
    assert [(row[0], row[-1]) for row in rows] == [(0, "allow"), (1, "allow"), (1, "approve")]
    assert [row[2] for row in rows] == [1, 36, 1]
    assert "The guard does not let round 1 (training) through" in reply.summary


async def test_a_plan_judges_every_job_and_reads_once_what_all_of_them_run(
    scene: CampaignScene, monkeypatch: pytest.MonkeyPatch
):
    runs, run, judged = [0], reader.process.run, []

    async def counting(*args: Any, **more: Any) -> Any:
        runs[0] += 1
        return await run(*args, **more)

    def judging(reading: Any, evaluation: Any) -> Any:
        judged.append(reading.request.memory_per_node)
        return evaluate(reading, evaluation)

    monkeypatch.setattr(reader.process, "run", counting)
    monkeypatch.setattr(generation, "evaluate", judging)
    memory = ", ".join(f"{100 * number}M" for number in range(1, 41))
    scene.change(FILE.replace("vary: {lr: [0.01, 0.1, 1.0]}", f"vary: {{memory: [{memory}]}}").replace("20,", "50,"))
    await look(scene, view="plan")
    assert len(set(judged)) >= 40
    assert len(judged) == 42  # with the smoke run, and what the stage asks for itself
    assert runs[0] <= 4
