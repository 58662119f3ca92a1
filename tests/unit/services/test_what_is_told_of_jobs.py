"""What is told and kept of jobs: reports, what clients read, results, scripts, status."""

from __future__ import annotations

import pytest
from tests.unit.services.scenes import Scene, failed, sent

from slurm_agent_tools.api import search_history
from slurm_agent_tools.api.search_history import HistoryQuestion
from slurm_agent_tools.devcluster.fake.endings import StepEnding
from slurm_agent_tools.errors import InputError, UnknownJob
from slurm_agent_tools.models.result import CompareResults, SaveResult
from slurm_agent_tools.models.script_arguments import GenerateScript
from slurm_agent_tools.services import completion_report

ALL = HistoryQuestion()

# --- the report ---------------------------------------------------------------------------------------------------------


async def test_a_report_of_a_job_that_goes_on_says_when_there_will_be_one(scene: Scene):
    number = await sent(scene)
    reply = await completion_report.of_job(scene.context, number)
    assert (reply.status, reply.report) == ("running", None)
    assert reply.summary == f"Job {number} is RUNNING. There is a report once it is over."


async def test_a_report_shows_what_was_used_of_what_was_asked(scene: Scene):
    scene.slurm.next_job(after=100, memory=512 * 2**20, steps=(StepEnding(after=100, memory=256 * 2**20),))
    number = await sent(scene, seconds=200)

    reply = await completion_report.of_job(scene.context, number)

    assert (reply.status, reply.job.managed) == ("finished", True)
    assert reply.report.requested.time_limit_seconds == 600
    assert reply.report.efficiency.time == pytest.approx(100 / 600, abs=0.02)
    assert (reply.report.queue.depth, reply.report.queue.utilization) == (0, 0.0)
    assert reply.summary.startswith(f"Job {number} is COMPLETED. ")


async def test_a_report_of_a_job_from_elsewhere_rests_on_what_slurm_was_asked(scene: Scene):
    number = scene.slurm.submit("#!/bin/bash\nsleep 5\n", "--mem=2G", "--time=30", "--cpus-per-task=3")
    scene.slurm.clock.move(60)

    reply = await completion_report.of_job(scene.context, str(number))

    asked = reply.report.requested
    assert (asked.memory, asked.cpus, asked.nodes, asked.time_limit_seconds) == ("2G", 3, 1, 1800)
    assert reply.job.managed is False


async def test_a_silent_controller_leaves_the_queue_out_of_a_report(scene: Scene):
    number = await sent(scene, seconds=120)
    await scene.wait(number)
    scene.slurm.fail(
        "scontrol show nodes", "slurm_load_node error: Unable to contact slurm controller (connect failure)\n"
    )
    reply = await completion_report.of_job(scene.context, number)
    assert (reply.status, reply.report.queue.utilization) == ("finished", None)


# --- what clients read without a tool -----------------------------------------------------------------------------------


async def test_a_job_can_be_read_with_what_is_remembered_of_it(scene: Scene):
    number = await sent(scene, run_id="run-7", seconds=120)

    body = await scene.box.view("job", {"job_id": number})

    assert (body.job.state, body.job.managed, body.summary) == (
        "COMPLETED", True, f"Job {number} (train.sh) is COMPLETED.",
    )  # fmt: skip
    assert (body.remembered.run_id, body.remembered.state, body.remembered.script_path) == (
        "run-7", "COMPLETED", "train.sh",
    )  # fmt: skip
    assert body.remembered.memory.metadata["job_id"] in {number, int(number)}


async def test_a_job_that_slurm_forgot_is_read_from_the_ledger_and_no_other_one(scene: Scene):
    number = await sent(scene, seconds=120)
    await scene.wait(number)
    scene.slurm.forget(int(number))
    scene.slurm.controller.accounting.told.clear()
    scene.slurm.clock.move(30)

    body = await scene.box.view("job", {"job_id": number})

    assert (body.job, body.remembered.job_id) == (None, number)
    assert body.summary == f"Slurm has forgotten job {number}; it was last seen as COMPLETED."
    with pytest.raises(UnknownJob):
        await scene.box.view("job", {"job_id": "4711"})


async def test_an_array_is_read_with_its_tasks(scene: Scene):
    number = await sent(scene, array="1-3", seconds=120)
    body = await scene.box.view("job", {"job_id": number})
    assert body.tasks_by_state == {"COMPLETED": 3}
    assert {task.job_id for task in body.tasks} == {f"{number}_{task}" for task in (1, 2, 3)}
    assert body.summary.startswith(f"Job {number} (train.sh): ")


async def test_the_end_of_a_log_stands_between_marks_that_no_job_can_foresee(scene: Scene):
    lines = "".join(f"step {count}\n" for count in range(300))
    scene.slurm.next_job(after=5, output=lines)
    number = await sent(scene, seconds=60)

    text = await scene.box.view("log", {"job_id": number})
    other = await scene.box.view("log", {"job_id": number})

    mark = text.split("between the marks ")[1].split()[0]
    assert text.count(f"<<< {mark}") == text.count(f">>> {mark}") == 1
    assert mark not in other
    assert "its last 200 lines:" in text
    assert "step 299" in text
    assert "step 100\n" in text
    assert "step 99\n" not in text


async def test_a_log_without_a_file_says_so(scene: Scene):
    number = await sent(scene, seconds=120)
    (scene.project / "logs/x.out").unlink()
    assert "logs/x.out: does not exist" in await scene.box.view("log", {"job_id": number})


async def test_a_long_text_is_cut_at_its_beginning(scene: Scene):
    lines = [f"line {count} {'x ' * 150}\n" for count in range(200)]
    scene.slurm.next_job(after=5, output="".join(lines))
    number = await sent(scene, seconds=60)

    text = await scene.box.view("log", {"job_id": number})

    assert "[... cut ...]\n" in text
    assert "line 199 x" in text
    assert "line 10 x" not in text
    assert 32_000 < len(text) < 33_000


async def test_the_policy_is_read_with_its_rules(scene: Scene):
    body = await scene.box.view("policy", {})
    assert body["rules"].keys() >= {"memory-per-gpu", "duplicate", "status-first"}
    assert "sha256" in str(body)


async def test_the_history_is_searched_by_all_tags_or_by_any(scene: Scene):
    first = await sent(scene, seconds=120)
    second = await failed(scene, job_name="second", args=["2"])
    for number in (first, second):
        await scene.wait(number)
    known = {job.job_id: set(job.tags) for job in (await search_history.search_history(scene.context, ALL)).jobs}
    good, bad = min(known[first] - known[second]), min(known[second] - known[first])

    any_of = await scene.box.view("history", {"tag": f"{good}|{bad}"})
    all_of = await scene.box.view("history", {"tag": f"{good},{bad}"})
    named = await scene.box.view("history", {"query": "second"})

    assert [job.job_id for job in any_of.jobs] == [second, first]
    assert (all_of.jobs, all_of.summary.startswith("No job of the last ")) == ([], True)
    assert [job.job_id for job in named.jobs] == [second]
    with pytest.raises(InputError, match=r"mixes , and \|"):
        await scene.box.view("history", {"tag": "a,b|c"})


async def test_jobs_like_a_script_come_with_advice_from_its_runs(scene: Scene):
    for count in range(3):
        scene.slurm.next_job(after=60, memory=100 * 2**20)
        await scene.wait(await sent(scene, args=[str(count)], seconds=120))

    found = await search_history.search_history(scene.context, HistoryQuestion(like="train.sh", limit=2))

    assert len(found.jobs) == 2
    assert all(job.likeness == 1.0 for job in found.jobs)
    assert (found.advice.basis, found.advice.time.requested) == (3, 600)
    assert "3 jobs" in found.summary
    assert "2 shown" in found.summary


async def test_failure_modes_are_read_from_their_page_once_there_is_one(scene: Scene):
    assert "No failure was recorded yet" in await scene.box.view("failure-modes", {})
    number = await failed(scene)
    saved = await scene.box.call("save_result", SaveResult(name="run", status="failed", job_id=number))

    page = await scene.box.view("failure-modes", {})

    assert saved.failure_record.startswith("documents/issues/")
    assert "missing-module" in page
    scene.write("documents/failure-modes.md", "first line\n" + "a line of the page\n" * 4000 + "last line\n")
    long = await scene.box.view("failure-modes", {})
    assert long.startswith("[... cut ...]\na line")
    assert long.endswith("last line\n")


# --- results and scripts ------------------------------------------------------------------------------------------------


async def save(scene: Scene, name: str = "run", status: str = "success", **more):
    return await scene.box.call("save_result", SaveResult(name=name, status=status, **more))


async def test_a_result_is_saved_with_its_job_and_never_over_another(scene: Scene):
    number = await sent(scene, run_id="run-7", seconds=120)

    first = await save(scene, job_id=number, metrics={"loss": 0.5})
    second = await save(scene, job_id=number, metrics={"loss": 0.4})

    assert first.file_path == f"results/{scene.slurm.clock.now():%Y-%m-%d_%H-%M}" + first.file_path[24:]
    assert first.file_path != second.file_path
    assert (first.result.run_id, first.result.environment.slurm_job.job.job_id) == ("run-7", number)
    assert (scene.project / first.file_path).is_file()
    assert "But" not in first.summary


@pytest.mark.parametrize(("status", "doubted"), [("success", True), ("failed", False), ("cancelled", False)])
async def test_slurms_word_is_set_against_the_callers(scene: Scene, status: str, doubted: bool):
    number = await failed(scene)
    reply = await save(scene, status=status, job_id=number)
    assert (f"But Slurm says of job {number}" in reply.summary) is doubted


async def test_a_result_of_a_job_that_goes_on_says_so(scene: Scene):
    number = await sent(scene)
    assert f"But job {number} has not ended: Slurm says RUNNING." in (await save(scene, job_id=number)).summary


async def test_a_dry_run_of_a_result_writes_nothing(scene: Scene):
    reply = await save(scene, dry_run=True)
    assert (reply.status, reply.file_path) == ("dry_run", None)
    assert not (scene.project / "results").exists()


@pytest.mark.parametrize("dry", [True, False])
async def test_a_result_outside_the_folders_for_results_is_refused(scene: Scene, dry: bool):
    reply = await save(scene, output_dir="src", dry_run=dry)
    assert (reply.status, reply.blocker) == ("blocked", "policy")
    assert not (scene.project / "src").exists()


async def test_a_config_is_read_from_its_file_and_has_to_be_a_mapping(scene: Scene):
    scene.write("configs/a.yaml", "lr: 0.1\n")
    scene.write("configs/b.yaml", "- 1\n- 2\n")
    assert (await save(scene, config="configs/a.yaml")).result.config == {"lr": 0.1}
    with pytest.raises(InputError, match="does not hold a mapping"):
        await save(scene, config="configs/b.yaml")


async def test_results_are_compared_by_their_names(scene: Scene):
    await save(scene, "before", config={"lr": 0.1}, metrics={"loss": 0.5})
    await save(scene, "after", config={"lr": 0.2}, metrics={"loss": 0.25}, baseline="before")

    reply = await scene.box.call("compare_results", CompareResults(baseline="before", target="after"))

    assert (reply.metrics["loss"].change, reply.metrics["loss"].percent) == (-0.25, -50.0)
    assert reply.config_diff == {"lr": {"baseline": 0.1, "target": 0.2}}
    assert reply.summary == "1 metric compared: after against before."
    with pytest.raises(InputError, match="no such result"):
        await scene.box.call("compare_results", CompareResults(baseline="before", target="nothing"))


async def test_a_success_of_a_job_that_failed_is_compared_by_name_with_the_reason_and_never_as_a_normal_result(
    scene: Scene,
):
    number = await failed(scene)
    await save(scene, "good", metrics={"loss": 0.5})
    saved = await save(scene, "bad", job_id=number, metrics={"loss": 0.1})
    ask = CompareResults(baseline="good", target="good", others=["bad"])

    reply = await scene.box.call("compare_results", ask)

    why = f"it was saved as success, but Slurm says of job {number}: FAILED (exit code 1)"
    assert saved.summary.endswith("compare_results marks the result with that.")
    assert reply.summary.startswith(f"Not to be ranked like the others: bad ({why}). 1 metric compared: ")
    assert (reply.target.doubt, reply.others[0].target.doubt) == (None, why)
    rows = (await scene.status(["results"])).results
    assert {row.experiment_name: row.doubt for row in rows} == {"good": None, "bad": why}


async def test_a_status_names_the_newest_results_and_those_that_cannot_be_read(scene: Scene):
    await save(scene, "mine")
    scene.write("results/9999-broken.json", "{")

    reply = await scene.status(["results"])

    assert [(one.experiment_name, one.status) for one in reply.results] == [("", "unreadable"), ("mine", "success")]


async def test_a_script_is_written_once_it_is_allowed(scene: Scene):
    ask = GenerateScript(name="job", command="python train.py", gpus=0, memory="2G", time_limit="30")
    reply = await scene.box.call("generate_script", ask)

    assert reply.status == "written"
    assert (scene.project / reply.path).read_text() == reply.script
    assert (scene.project / reply.path).stat().st_mode & 0o777 == 0o700
    assert (await scene.submit(reply.path)).status == "submitted"


async def test_a_script_that_the_policy_refuses_is_not_written(scene: Scene):
    ask = GenerateScript(name="job", command="sbatch other.sh", gpus=0)
    reply = await scene.box.call("generate_script", ask)
    assert (reply.status, reply.path) == ("blocked", None)
    assert not list(scene.project.glob("scripts/slurm/generated/*"))


async def test_a_refusal_of_a_script_that_was_not_written_names_arguments_and_no_lines(scene: Scene):
    asked = {"name": "job", "command": "python train.py", "gpus": 2, "detail": "full"}
    reply = await scene.box.call("generate_script", GenerateScript(**asked, memory="64G"))
    memory = next(rule for rule in reply.decision.rules if rule.id == "memory-per-gpu")
    assert memory.outcome == "approve"
    assert (memory.remedy, list(memory.evidence)) == ('Call again with memory="32G".', [])

    reply = await scene.box.call("generate_script", GenerateScript(**asked, memory="40G"))
    assert 'Call again with memory="32G".' in reply.reason
    assert "Call again with justification=" in reply.reason
    assert "line " not in reply.reason
    reason = "the whole data set is read into memory at once"
    reply = await scene.box.call("generate_script", GenerateScript(**asked, memory="40G", justification=reason))
    assert reply.status == "written"
    assert (await scene.submit(reply.path)).status == "submitted"


async def test_a_refusal_of_a_command_says_in_which_argument_it_stands(scene: Scene):
    asked = GenerateScript(name="job", command="python t.py", gpus=1, setup=["true", "export CUDA_VISIBLE_DEVICES=0"])
    reply = await scene.box.call("generate_script", asked)
    assert "In `setup[1]`: " in reply.reason
    assert not [word for word in ("line 1", "generated") if word in reply.reason]

    asked = GenerateScript(name="job", command="CUDA_VISIBLE_DEVICES=0 python t.py", gpus=1)
    assert "In `command`: " in (await scene.box.call("generate_script", asked)).reason

    asked = GenerateScript(name="job", command="python t.py", gpus=1, array="0-99")
    assert 'Call again with array="0-99%4".' in (await scene.box.call("generate_script", asked)).reason


# --- the cluster --------------------------------------------------------------------------------------------------------


async def test_a_status_tells_of_every_section_that_was_asked_for(scene: Scene):
    await failed(scene)
    reply = await scene.status(["jobs", "gpu", "queue", "partitions", "nodes", "results", "errors", "disk", "policy"])

    assert (reply.status, reply.cluster.reachable) == ("ok", True)
    assert [job.state for job in reply.errors] == ["FAILED"]
    assert reply.disk.free_bytes == 62914560 * 1024
    assert reply.disk.total_bytes == 104857600 * 1024
    assert {node.name for node in reply.nodes} == {"cpu01", "cpu02", "gpu01", "gpu02", "spec01"}
    assert (reply.slurm.active_jobs, reply.slurm.slots_left) == (0, 4)


async def test_a_status_without_a_controller_is_partial_and_no_empty_queue(scene: Scene):
    scene.slurm.controller_down()
    reply = await scene.status()
    assert (reply.status, reply.cluster.reachable) == ("partial", False)
    assert reply.slurm.error.code == reply.alerts[0].code
    assert reply.alerts[0].severity == "critical"
    assert reply.summary.startswith("Slurm could not be read: ")


async def test_jobs_of_others_fill_the_cluster_and_not_ones_own_slots(scene: Scene):
    for _ in range(3):
        scene.slurm.submit(user="eve")
    scene.slurm.submit()
    scene.slurm.clock.move(5)
    reply = await scene.status()
    assert (reply.slurm.running_jobs, reply.slurm.slots_left) == (1, 3)
    assert [alert.code for alert in reply.alerts] == ["unmanaged-jobs"]


async def test_a_waiting_queue_tells_what_was_waited_lately(scene: Scene):
    for _ in range(12):
        scene.slurm.submit("#!/bin/bash\nsleep 30\n")
    scene.slurm.clock.move(600)
    scene.slurm.submit("#!/bin/bash\nsleep 30\n", "--begin=now+1hour")
    reply = await scene.status(["queue"])
    assert reply.queue.depth == 1
    assert "12 jobs" in str(reply.queue)


async def test_what_can_be_typed_is_completed_from_ledger_queue_and_cluster(scene: Scene):
    number = await sent(scene)
    other = str(scene.slurm.submit())
    scene.slurm.clock.move(15)
    scene.write("scripts/b.sbatch", "#!/bin/bash\n")

    assert await scene.box.complete("job_id", "") == ([other, number], 2)
    assert await scene.box.complete("partition", "c") == (["cpu"], 1)
    assert await scene.box.complete("script", "") == (["scripts/b.sbatch", "train.sh"], 2)
    assert (await scene.box.complete("tag", "no-such-tag"))[1] == 0
