"""What answers state holds at the moment that they are given: the queue, waits, arrays, and who has looked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.services.scenes import HEAD, Scene, failed, sent

from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.result import CompareResults, SaveResult
from slurm_agent_tools.models.script_arguments import GenerateScript

# --- whether to submit now ----------------------------------------------------------------------------------------------


def fill(scene: Scene, partition: str, node: str, cpus: int) -> None:
    """Somebody else's job takes all of a node."""
    scene.slurm.next_job(after=None)
    scene.slurm.submit("#!/bin/bash\nsleep 9000\n", f"--partition={partition}", f"--nodelist={node}",
                       f"--cpus-per-task={cpus}", "--mem=100", "--time=60", user="bob")  # fmt: skip


async def test_a_full_default_partition_is_no_ground_to_submit_though_others_have_room(scene: Scene):
    fill(scene, "cpu", "cpu01", 64)
    fill(scene, "cpu", "cpu02", 64)
    scene.slurm.clock.move(5)

    queue = (await scene.status()).queue

    assert queue.recommendation == "ADJUST"
    assert queue.why == "partition cpu: every CPU is in use: there is room in gpu, special"
    assert queue.full_partitions == {"cpu": "every CPU is in use"}


async def test_a_full_partition_beside_the_default_one_is_named(scene: Scene):
    fill(scene, "special", "spec01", 96)
    scene.slurm.clock.move(5)

    queue = (await scene.status()).queue

    assert queue.recommendation == "SUBMIT_NOW"
    assert queue.why.endswith("resources are free, but not everywhere (partition special: every CPU is in use)")


async def test_a_partition_whose_nodes_are_down_has_no_room(scene: Scene):
    for node in ("cpu01", "cpu02"):
        scene.slurm.fail_node(node)

    queue = (await scene.status()).queue

    assert (queue.recommendation, queue.full_partitions) == ("ADJUST", {"cpu": "none of its nodes is usable"})


async def test_where_gpus_alone_are_taken_the_default_partition_decides(scene: Scene):
    for node in ("gpu01", "gpu02"):
        scene.slurm.next_job(after=None)
        scene.slurm.submit("#!/bin/bash\nsleep 9000\n", "--partition=gpu", f"--nodelist={node}", "--gres=gpu:4",
                           "--mem=100", "--time=60", user="bob")  # fmt: skip
    scene.slurm.clock.move(5)

    queue = (await scene.status()).queue

    assert queue.recommendation == "SUBMIT_NOW"
    assert queue.full_partitions == {"gpu": "every GPU is in use"}


async def test_with_refresh_the_accounting_is_asked_again_what_ran(scene: Scene):
    first = (await scene.status(["queue"])).queue.waits.note
    await sent(scene, seconds=300)

    kept = (await scene.status(["queue"])).queue.waits.note
    fresh = (await scene.status(["queue"], refresh=True)).queue.waits.note

    assert first == "the accounting shows no job that ran in the last 7 days"
    assert kept == f"{first}, asked 5 min ago (refresh asks again)"
    assert fresh == "1 job of your own ran in the last 7 days"


# --- arrays -------------------------------------------------------------------------------------------------------------


async def test_an_array_ran_from_its_first_start_to_its_last_end(scene: Scene):
    scene.slurm.next_job(tasks={0: Ending(after=100), 1: Ending(exit_code=1, after=0), 2: Ending(after=30)})
    number = await sent(scene, array="0-2%3", seconds=200)

    job = (await scene.wait(number)).job

    assert (job.state, job.run_seconds) == ("FAILED", 100)


async def test_an_array_that_runs_says_how_long_it_has_run_so_far(scene: Scene):
    scene.slurm.next_job(tasks={0: Ending(after=10), 1: Ending(after=None)})
    number = await sent(scene, array="0-1%1", seconds=60)

    job = (await scene.wait(number)).job

    assert (job.state, 50 <= job.run_seconds <= 60) == ("RUNNING", True)


# --- who has looked, and whose job it is --------------------------------------------------------------------------------


async def test_a_job_that_get_status_has_shown_may_be_cancelled(scene: Scene):
    number = await sent(scene)
    await scene.status()

    assert (await scene.cancel(number)).status == "cancelled"


@pytest.mark.parametrize("view", ["job", "log"])
async def test_a_job_that_was_read_as_a_resource_may_be_cancelled(scene: Scene, view: str):
    number = await sent(scene)

    await scene.box.view(view, {"job_id": number})

    assert (await scene.cancel(number)).status == "cancelled"


async def test_a_job_that_no_answer_has_shown_may_not_and_the_refusal_names_who_shows_it(scene: Scene):
    number = await sent(scene)
    await scene.status(["gpu"])

    reply = await scene.cancel(number)

    assert (reply.status, reply.blocker) == ("blocked", "policy")
    assert reply.reason == f"No answer has shown how job {number} stands since it was submitted."
    assert "wait_for_job, get_status or analyze_log" in reply.summary


async def test_a_refusal_to_cancel_says_whose_job_it_is(scene: Scene):
    of_bob = scene.slurm.submit(user="bob")
    of_alice = scene.slurm.submit(cwd="/home/alice/elsewhere")

    told = (await scene.cancel(of_bob)).reason
    own = (await scene.cancel(of_alice)).reason

    assert told == f"Job {of_bob} was not submitted by submit_job from this project: it is a job of bob."
    assert own.endswith(": it is a job of your user alice, begun in /home/alice/elsewhere.")


# --- refusals -----------------------------------------------------------------------------------------------------------


async def test_an_unchanged_script_after_a_failure_is_not_said_to_fail_again(scene: Scene):
    number = await failed(scene)
    await scene.analyse(job_id=number)
    scene.write("train.py", "import math\n")

    reply = await scene.submit()

    assert "what made it fail is still there" not in reply.reason
    assert "The script's own text has not changed since; what changed outside it is not known here." in reply.reason
    assert "the code, a package" in reply.reason


async def four_jobs(scene: Scene, *minutes: str) -> list[str]:
    """As many as may be active at once, each with its own script and time limit."""
    numbers = []
    for limit in minutes or ("50", "40", "20", "30"):
        scene.write(f"t{limit}.sh", f"{HEAD}sleep {limit}\n")
        scene.slurm.next_job(after=None)
        numbers.append(await sent(scene, script=f"t{limit}.sh", time_limit=limit))
    return numbers


async def test_at_the_cap_the_job_to_wait_for_is_the_one_that_ends_first(scene: Scene):
    a, b, c, d = await four_jobs(scene)

    reply = await scene.submit()

    assert reply.status == "blocked"
    assert f'wait_for_job with job_id="{c}"' in reply.reason
    assert reply.reason.count("wait_for_job") == 1
    assert f"your active jobs are {c}, {d}, {b}, {a}, in the order in which their time limits end." in reply.reason
    assert "--array=0-9%4 takes 4 slots" in reply.reason
    assert f'With dependency="afterany:{c}" it takes over the slot of job {c}.' in reply.reason


async def test_at_the_cap_a_job_may_follow_another_as_the_refusal_says(scene: Scene):
    _, _, first_to_end, next_to_end = await four_jobs(scene)

    follows = await scene.submit(dependency=f"afterany:{first_to_end}")
    scene.write("more.sh", f"{HEAD}sleep 9\n")
    refused = await scene.submit(script="more.sh")

    assert follows.status == "submitted", follows.summary
    assert f"afterany:{first_to_end}" not in refused.reason, "its slot is taken over already"
    assert f'With dependency="afterany:{next_to_end}"' in refused.reason


async def test_a_reason_that_a_refusal_of_generate_script_asks_for_is_taken(scene: Scene):
    ask = {"name": "desk", "command": "jupyter lab --no-browser", "gpus": 0}

    refused = await scene.box.call("generate_script", GenerateScript(**ask))
    written = await scene.box.call("generate_script", GenerateScript(**ask, justification="an hour with the new data"))

    assert (refused.status, written.status) == ("blocked", "written")
    assert "justification" in refused.reason


# --- results ------------------------------------------------------------------------------------------------------------


async def save(scene: Scene, name: str, **more: object) -> Any:
    return await scene.box.call("save_result", SaveResult(name=name, status="success", **more))


async def test_a_result_of_a_job_without_metrics_takes_those_of_its_log_and_says_so(scene: Scene):
    scene.slurm.next_job(after=10, output="loss: 0.9\nloss: 0.25\naccuracy=0.81\n")
    number = await sent(scene, seconds=60)

    reply = await save(scene, "run", job_id=number)

    assert reply.result.metrics == {"loss": 0.25, "accuracy": 0.81}
    assert "No metrics were given: these are the last figures in the log (logs/x.out)" in reply.summary


async def test_metrics_that_are_given_are_kept_as_they_are(scene: Scene):
    scene.slurm.next_job(after=10, output="loss: 0.9\n")
    number = await sent(scene, seconds=60)

    reply = await save(scene, "run", job_id=number, metrics={"loss": 0.1})

    assert (reply.result.metrics, "in the log" in reply.summary) == ({"loss": 0.1}, False)


async def test_a_result_of_a_job_whose_log_tells_no_figure_says_that(scene: Scene):
    number = await sent(scene, seconds=120)

    reply = await save(scene, "run", job_id=number)

    assert reply.result.metrics == {}
    assert "No metrics were given, and the log" in reply.summary


async def test_a_result_of_an_array_holds_the_metrics_of_each_task(scene: Scene):
    scene.write("array.sh", HEAD.replace("x.out", "%a.out") + "sleep 60\n")
    tasks = {index: Ending(after=5, output=f"loss: 0.{index}\n") for index in (1, 2)}
    scene.slurm.next_job(tasks=tasks)
    number = await sent(scene, script="array.sh", array="1-2", seconds=60)

    reply = await save(scene, "sweep", job_id=number)

    assert reply.result.metrics == {"task_1": {"loss": 0.1}, "task_2": {"loss": 0.2}}


async def test_results_of_two_tasks_of_one_array_are_compared_by_the_names_of_their_logs(scene: Scene):
    scene.write("array.sh", HEAD.replace("x.out", "%a.out") + "sleep 60\n")
    scene.slurm.next_job(tasks={index: Ending(after=5, output=f"loss: 0.{index}\n") for index in (1, 2)})
    number = await sent(scene, script="array.sh", array="1-2", seconds=60)
    for task in (1, 2):
        saved = await save(scene, f"task{task}", job_id=f"{number}_{task}")
        assert saved.result.metrics == (await scene.analyse(job_id=f"{number}_{task}", mode="metrics")).metrics
    await save(scene, "all", job_id=number)

    both = await scene.box.call("compare_results", CompareResults(baseline="task1", target="task2"))
    mixed = await scene.box.call("compare_results", CompareResults(baseline="task1", target="all"))

    assert (both.summary, both.metrics["loss"].change) == ("1 metric compared: task2 against task1.", 0.1)
    assert mixed.summary.endswith("one task is saved by its own job_id, such as 28_1.")


async def test_results_without_a_common_metric_are_not_said_to_be_compared(scene: Scene):
    await save(scene, "bare")
    await save(scene, "other", metrics={"loss": 1})

    one = await scene.box.call("compare_results", CompareResults(baseline="bare", target="other"))
    none = await scene.box.call("compare_results", CompareResults(baseline="bare", target="bare"))

    assert one.summary.startswith("Nothing to compare: no metric is in both other and bare.")
    assert one.summary.endswith("In one of them only: loss. Save both with metrics of the same names.")
    assert none.summary.startswith("Nothing to compare: neither bare nor bare has metrics. Save them with metrics, or")


async def test_several_results_are_compared_with_one_baseline_in_one_answer(scene: Scene):
    for name, loss in (("a", 1.0), ("b", 0.5), ("c", 2.0)):
        await save(scene, name, metrics={"loss": loss})

    reply = await scene.box.call("compare_results", CompareResults(baseline="a", target="b", others=["c"]))

    assert (reply.target.experiment_name, reply.metrics["loss"].change) == ("b", -0.5)
    assert [(run.target.experiment_name, run.metrics["loss"].change) for run in reply.others] == [("c", 1.0)]
    assert reply.summary == "1 metric compared: b against a. 1 metric compared: c against a."


# --- what was meant -----------------------------------------------------------------------------------------------------


async def test_a_misspelt_partition_is_replaced_by_the_one_that_it_is_like(scene: Scene):
    scene.write("train.sh", HEAD.replace("=cpu", "=specail") + "sleep 60\n")

    reply = await scene.submit()

    assert "#SBATCH --partition=special" in reply.reason


async def test_a_time_limit_may_be_written_as_people_write_it(scene: Scene):
    reply = await scene.submit(time_limit="2h", dry_run=True)

    assert reply.requested.time_limit_seconds == 2 * 3600


async def test_what_is_no_time_limit_is_refused_by_its_field(scene: Scene):
    with pytest.raises(InputError, match="time_limit"):
        await scene.submit(time_limit="2 fortnights", dry_run=True)


async def test_a_qos_of_the_name_high_is_offered_where_the_priority_high_is_and_else_not(scene: Scene):
    scene.write("high.sh", HEAD.replace("--mem=1G", "--qos=high --mem=1G") + "sleep 60\n")

    refused = await scene.submit(script="high.sh", dry_run=True)
    offered = scene.context.policy.policy.priority
    high = offered.high.model_copy(update={"qos": ("high",)})
    scene.policy(priority=offered.model_copy(update={"high": high}))
    allowed = await scene.submit(script="high.sh", dry_run=True)

    assert "--qos=high asks for the priority high, which this policy does not offer." in refused.reason
    assert allowed.status == "dry_run", allowed.summary
