"""A plan on pools that another scheduler has: its calls are those of generate_script, judged as what they would write."""

import json

import pytest
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.api import serialize
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition

SCRIPT = (
    "#!/bin/bash\n#SBATCH --job-name={0}\n#SBATCH --gres=gpu:1\n#SBATCH --mem=8G\n#SBATCH --time=01:00:00\n"
    "python {0}.py $SLURM_ARRAY_TASK_ID\n"
)
PBS = "kind: pbs\npartitions:\n  - {name: workq, purpose: production}\n"
KUBERNETES = (
    "kind: kubernetes\nkueue_queue: research\nimage: registry.example.org/team/train:1.2\n"
    "partitions:\n  - {name: large, purpose: production, gpus: {type: h100, per_node: 8}}\n"
)
JOBS = [
    {"name": "prepare", "script": "prepare.sh", "expected": "10min"},
    {"name": "sweep", "script": "sweep.sh", "expected": "30min", "count": 6, "after": ["prepare"]},
]

pytestmark = pytest.mark.proves("plans-go-elsewhere")


@pytest.fixture
def box(tmp_path):
    nodes = [FakeNode("g0", cpus=16, gpus=4, memory=64_000, gpu_type="a100")]
    made = fake_toolbox(tmp_path, FakeSlurm(nodes=nodes, partitions=[FakePartition("gpu", ("g0",), default=True)]))
    made.folder = tmp_path / "project"
    (made.folder / "backends").mkdir()
    for name in ("prepare", "sweep"):
        (made.folder / f"{name}.sh").write_text(SCRIPT.format(name))
    return made


def page(box, text, name="there"):
    (box.folder / "backends" / f"{name}.yaml").write_text(text)


async def asked(box, tool, **arguments):
    return await box.call(tool, serialize.parse(serialize.BY_NAME[tool], arguments))


async def plan(box, *pools, jobs=JOBS, **more):
    found = list(pools) or [{"name": "there", "gpus": 4}]
    return await asked(box, "plan_jobs", jobs=jobs, pool=found, seconds=0, **more)


async def test_on_pbs_every_call_is_one_of_generate_script_that_is_taken_as_it_is(box):
    page(box, PBS)
    reply = await plan(box)
    first, second = reply.submissions
    assert (first.script, first.array, first.generate_script["command"]) == (None, None, "bash prepare.sh")
    assert first.generate_script["time_limit"] == "01:00:00"
    assert second.dependency == "afterok:<prepare>"
    assert second.generate_script["array"] == "0-5%4"
    assert [step.verdict for step in reply.submissions] == ["allow", "allow"]
    written = await asked(box, "generate_script", **second.generate_script)
    assert written.status == "written", written.reason
    assert "#PBS -J 0-5%4" in written.script
    assert "#PBS -l walltime=01:00:00" in written.script
    assert "ngpus=1" in written.script
    assert "mem=8gb" in written.script
    assert "bash sweep.sh" in written.script
    assert written.manual_commands == [f"qsub {written.path}"]


async def test_on_kubernetes_no_job_waits_for_another_inside_of_it(box):
    page(box, KUBERNETES)
    reply = await plan(box)
    second = reply.submissions[1]
    assert (second.dependency, second.after) == (None, ["prepare"])
    written = await asked(box, "generate_script", **second.generate_script)
    assert written.status == "written", written.reason
    assert "completions: 6" in written.script
    assert "parallelism: 4" in written.script


async def test_between_slurm_and_another_scheduler_a_person_waits_for_the_end(box):
    page(box, PBS)
    here = {"name": "cluster", "cpus": 4, "gpus": 0}
    there = {"name": "there", "gpus": 4, "cpus": 32}
    jobs = [{"name": "prepare", "expected": "10min", "resources": {"cpus": 4}}, JOBS[1]]
    reply = await plan(box, here, {**there, "cpu_hour": 9}, jobs=jobs, objective="cost")
    steps = {step.job: step for step in reply.submissions}
    assert steps["prepare"].generate_script is None
    assert (steps["sweep"].dependency, steps["sweep"].after) == (None, ["prepare"])
    assert steps["sweep"].generate_script["format"] == "pbs"


async def test_copies_of_one_kind_in_two_places_are_two_calls_with_the_numbers_of_each(box):
    page(box, PBS)
    jobs = [{**JOBS[1], "after": None}]
    reply = await plan(box, {"name": "cluster", "gpus": 2}, {"name": "there", "gpus": 2}, jobs=jobs)
    mine, other = sorted(reply.submissions, key=lambda step: step.generate_script is not None)
    arrays = [mine.array, other.generate_script["array"]]
    numbers = [int(one) for text in arrays for one in spread(text.partition("%")[0])]
    assert sorted(numbers) == list(range(6))


def spread(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


async def test_what_generate_script_would_refuse_is_denied_with_its_words(box):
    page(box, PBS.replace("production", "production, time_limit: 30min"))
    reply = await plan(box)
    assert [step.verdict for step in reply.submissions] == ["deny", "deny"]
    assert "time_limit" in reply.submissions[0].because[0]


@pytest.mark.parametrize(
    ("text", "named"), [("srun python a.py\n", "srun"), ("echo $SLURM_CPUS_PER_TASK\n", "SLURM_CPUS_PER_TASK")]
)
async def test_a_script_that_needs_slurm_itself_is_denied_there(box, text, named):
    page(box, PBS)
    (box.folder / "prepare.sh").write_text(SCRIPT.format("prepare") + "# srun: not this one\n" + text)
    reply = await plan(box)
    assert [step.verdict for step in reply.submissions] == ["deny", "allow"]
    assert named in reply.submissions[0].because[0]


async def test_a_job_without_a_script_has_no_command_and_a_limit_of_twice_what_is_expected(box):
    page(box, PBS)
    reply = await plan(box, jobs=[{"name": "a", "expected": "3h", "resources": {"gpus": 2, "memory": "16G"}}])
    (step,) = reply.submissions
    assert step.verdict is None
    assert step.generate_script == {
        "name": "a", "gpus": 2, "memory": "16G", "time_limit": "06:00:00", "format": "pbs", "backend": "there",
    }  # fmt: skip


async def test_a_pool_that_is_named_like_no_page_or_one_of_slurm_is_planned_as_before(box):
    page(box, PBS, name="other")
    page(box, PBS.replace("pbs", "slurm"))
    reply = await plan(box)
    assert all(step.generate_script is None for step in reply.submissions)
    whole = json.loads(await box.view("plan", {"plan_id": reply.uri.rpartition("/")[2]}))
    assert all("generate_script" not in step for step in whole["submissions"])
