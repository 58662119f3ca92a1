"""A plan made again of arrays and slices that were begun: exactly what was not sent is planned, by its true numbers."""

import json

import pytest
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.api import serialize
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition
from slurm_agent_tools.errors import InputError

SWEEP = (
    "#!/bin/bash\n#SBATCH --job-name=sweep\n#SBATCH --gres=gpu:1\n#SBATCH --mem=1G\n#SBATCH --time=01:00:00\n"
    "{test}sleep 1000\n"
)
TRAIN = SWEEP.replace("name=sweep", "name=train").replace("01:00:00", "08:00:00").replace("1000", "3000")

pytestmark = pytest.mark.proves("plans-are-made-again")


@pytest.fixture
def box(tmp_path):
    nodes = [FakeNode("g0", cpus=16, gpus=4, memory=64_000, gpu_type="a100")]
    slurm = FakeSlurm(nodes=nodes, partitions=[FakePartition("gpu", nodes=("g0",), default=True)])
    made = fake_toolbox(tmp_path, slurm)
    made.slurm, made.clock, made.folder = slurm, slurm.clock, tmp_path / "project"
    write(made)
    (made.folder / "train.sh").write_text(TRAIN.format(test=""))
    return made


def write(box, test="", text=SWEEP):
    (box.folder / "sweep.sh").write_text(text.format(test=test))


async def asked(box, tool, **arguments):
    return await box.call(tool, serialize.parse(serialize.BY_NAME[tool], arguments))


async def plan(box, *more, count=5, gpus=4):
    jobs = [{"name": "sweep", "count": count, "script": "sweep.sh", "expected": "1000s"}, *more]
    return await asked(box, "plan_jobs", jobs=jobs, pool={"gpus": gpus}, seconds=0)


async def sent(box, **words):
    await asked(box, "get_status")
    answer = await asked(box, "submit_job", **{"script": "sweep.sh", **words})
    assert answer.status == "submitted", answer.summary
    return answer.job_id


async def rows(box, reply):
    return json.loads(await box.view("plan", {"plan_id": reply.uri.rpartition("/")[2]}))["jobs"]


async def test_of_an_array_whose_first_tasks_are_done_the_others_are_planned_by_their_own_numbers(box):
    await plan(box)
    await sent(box, array="0-2")
    await box.clock.advance(1100)
    again = await plan(box)
    (step,) = again.submissions
    assert (step.how, step.array) == ("array", "3-4")
    assert {row["name"] for row in await rows(box, again)} == {"sweep.3", "sweep.4"}
    assert "3 ended" in again.changes[0]


async def test_tasks_with_gaps_are_named_one_by_one_and_a_single_one_is_an_array_too(box):
    await plan(box)
    await sent(box, array="0,2-3")
    await box.clock.advance(1100)
    assert (await plan(box)).submissions[0].array == "1,4"
    await sent(box, array="1")
    await box.clock.advance(1100)
    (step,) = (await plan(box)).submissions
    assert (step.how, step.array) == ("array", "4")


async def test_tasks_in_the_queue_are_not_sent_twice_beside_those_that_were_never_sent(box):
    await plan(box, gpus=2)
    first = await sent(box, array="0-3%2")
    await box.clock.advance(60)
    again = await plan(box, gpus=2)
    assert [step.array for step in again.submissions] == ["4"]
    assert "2 run, 2 wait in the queue" in again.changes[0]
    await box.clock.advance(1100)
    later = await plan(box, gpus=2)
    assert [step.array for step in later.submissions] == ["4"]
    ids = {row["name"]: row.get("job_id") for row in await rows(box, later)}
    assert ids == {"sweep (running 2)": first, "sweep (running 3)": first, "sweep.4": None}
    assert "2 ended, 2 run" in later.changes[0]


async def test_an_array_that_waits_as_a_whole_is_named_by_its_id_and_not_sent_again(box):
    blocker = await sent(box, script="train.sh")
    await plan(box)
    waits = await sent(box, array="0-4%2", dependency=f"afterany:{blocker}")
    again = await plan(box)
    assert again.submissions == []
    assert {row["job_id"] for row in await rows(box, again)} == {waits}


async def test_failed_tasks_are_left_to_a_person_and_what_waits_for_them_is_left_out(box):
    write(box, "[ $SLURM_ARRAY_TASK_ID != 1 ] || exit 3\n")
    behind = {"name": "report", "script": "train.sh", "expected": "10min", "after": ["sweep"]}
    beside = {"name": "other", "expected": "10min", "resources": {"gpus": 1}}
    await plan(box, behind, beside)
    job = await sent(box, array="0-2")
    await box.clock.advance(1100)
    again = await plan(box, behind, beside)
    assert {step.job: step.array for step in again.submissions} == {"sweep": "3-4", "other": None}
    told = " ".join(again.changes)
    assert "Failed, and left to a person: tasks 1 of sweep." in told
    assert f'analyze_log with job_id="{job}"' in told
    assert "Not planned, as they wait for what failed: report." in told


async def test_where_only_failed_tasks_are_left_nothing_is_planned_until_the_script_is_mended(box):
    write(box, "[ $SLURM_ARRAY_TASK_ID != 1 ] || exit 3\n")
    await plan(box)
    await sent(box, array="0-4%4")
    await box.clock.advance(2500)
    with pytest.raises(InputError) as caught:
        await plan(box)
    assert ("sweep" in caught.value.message, "'1'" in caught.value.message) == (True, True), caught.value.message
    assert "mend the script" in caught.value.hint
    write(box)
    again = await plan(box)
    assert [step.array for step in again.submissions] == ["1"]
    assert "1 failed and are planned again" in again.changes[0]


async def test_a_failed_task_that_was_sent_again_and_went_well_is_done(box):
    write(box, "[ $SLURM_ARRAY_TASK_ID != 1 ] || exit 3\n")
    await plan(box)
    job = await sent(box, array="0-2")
    await box.clock.advance(1100)
    await asked(box, "analyze_log", job_id=job)
    write(box)
    await sent(box, array="1")
    await box.clock.advance(1100)
    again = await plan(box)
    assert [step.array for step in again.submissions] == ["3-4"]
    assert not any("Failed" in text for text in again.changes)


async def test_the_numbers_of_the_scripts_own_array_are_the_tasks_of_its_copies(box):
    write(box, text=SWEEP.replace("#SBATCH --mem", "#SBATCH --array=1-5\n#SBATCH --mem"))
    first = await plan(box)
    assert first.submissions[0].array.partition("%")[0] == "1-5"
    await sent(box, array="1-3")
    await box.clock.advance(1100)
    assert (await plan(box)).submissions[0].array == "4-5"


async def test_a_script_that_asks_for_an_array_is_planned_with_all_its_tasks_where_no_count_is_given(box):
    write(box, text=SWEEP.replace("#SBATCH --mem", "#SBATCH --array=2,4-6\n#SBATCH --mem"))
    first = await plan(box, count=1, gpus=2)
    assert (first.submissions[0].array, first.makespan_seconds) == ("2,4-6%2", 2000)
    write(box, text=SWEEP.replace("#SBATCH --mem", "#SBATCH --array=7\n#SBATCH --mem"))
    assert (await plan(box, count=1)).submissions[0].array == "7"


# --- slices -----------------------------------------------------------------------------------------------------------


async def in_slices(box):
    job = {"name": "train", "script": "train.sh", "expected": "7h", "restart": "1min"}
    return await asked(box, "plan_jobs", jobs=[job], pool={"gpus": 4}, seconds=0)


@pytest.mark.proves("slices-are-offered")
async def test_of_three_slices_with_one_done_two_are_left(box):
    first = await in_slices(box)
    assert first.slices.calls == 3
    await sent(box, script="train.sh", time_limit="01:00:00")
    await box.clock.advance(4000)
    again = await in_slices(box)
    assert again.slices.calls == 2
    assert again.makespan_seconds == 6 * 3600
    assert "train: 1 of 3 slices ended." in again.changes
    whole = json.loads(await box.view("plan", {"plan_id": again.uri.rpartition("/")[2]}))["slices"]
    assert [row.get("time_limit") for row in whole] == ["02:01:00", None]
    assert "dependency" not in whole[0]


@pytest.mark.proves("slices-are-offered")
async def test_slices_in_the_queue_are_not_sent_again_and_the_last_one_ends_the_job(box):
    await in_slices(box)
    one = await sent(box, script="train.sh", time_limit="01:00:00")
    two = await sent(box, script="train.sh", time_limit="02:01:00", dependency=f"afterany:{one}")
    begun = await in_slices(box)
    ids = {row["name"]: row.get("job_id") for row in await rows(box, begun)}
    assert ids == {"train slice 1": one, "train slice 2": two, "train": None}
    assert [step.dependency for step in begun.submissions] == [f"afterany:{two}"]
    last = await sent(box, script="train.sh", dependency=f"afterany:{two}", justification="slices ran well")
    await box.clock.advance(7000)
    later = await in_slices(box)
    assert {row["job_id"] for row in await rows(box, later)} == {last}
    assert later.submissions == []
    await box.clock.advance(9000)
    done = await in_slices(box)
    assert (done.changes, done.slices.calls) == ([], 3)


async def test_a_slice_that_was_stopped_at_its_time_limit_has_ended_as_it_should(box):
    await in_slices(box)
    box.slurm.next_job(after=9000)
    await sent(box, script="train.sh", time_limit="01:00:00")
    await box.clock.advance(4000)
    assert "train: 1 of 3 slices ended." in (await in_slices(box)).changes


async def test_a_single_submission_with_the_scripts_own_limit_is_the_whole_job(box):
    await in_slices(box)
    job = await sent(box, script="train.sh")
    again = await in_slices(box)
    assert {row["name"]: row["job_id"] for row in await rows(box, again)} == {"train": job}


async def test_slices_that_were_cancelled_behind_one_in_which_the_program_was_done_are_not_planned_again(box):
    train = {"name": "train", "script": "train.sh", "expected": "7h", "restart": "1min"}
    other = {"name": "sweep", "script": "sweep.sh", "expected": "1000s"}

    async def both():
        return await asked(box, "plan_jobs", jobs=[train, other], pool={"gpus": 4}, seconds=0)

    await both()
    one = await sent(box, script="train.sh", time_limit="01:00:00")
    two = await sent(box, script="train.sh", time_limit="02:01:00", dependency=f"afterany:{one}")
    await asked(box, "wait_for_job", job_id=two, timeout_seconds=0)
    ended = await asked(box, "cancel_job", job_id=two, reason="the program was done in its first slice")
    assert ended.status == "cancelled", ended.summary
    await box.clock.advance(4000)
    again = await both()
    assert {row["name"] for row in await rows(box, again)} == {"sweep"}
    assert "train: 1 slices ended, and none is left." in again.changes


async def test_tasks_of_which_nothing_is_told_any_more_count_as_ended_and_that_is_said(box):
    await plan(box)
    await sent(box, array="0-3%1")
    await box.clock.advance(1500)
    box.slurm.accounting_down()
    again = await plan(box)
    assert [step.array for step in again.submissions] == ["4"]
    assert "Tasks 0 of sweep ended; nothing tells how, so they count as done." in again.changes
