"""plan_jobs over a Slurm in memory: where figures come from, what is answered, and what is refused."""

import json

import pytest
from tests.unit.planning import problems
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.api import brief, serialize
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.planning import exact

TOOL = serialize.BY_NAME["plan_jobs"]
SCRIPT = "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --gres=gpu:1\n#SBATCH --mem=16G\n#SBATCH --time=02:00:00\nsrun python train.py\n"

POOL = {"gpus": 4}


@pytest.fixture
def box(tmp_path):
    nodes = [FakeNode(f"g{number}", cpus=16, gpus=2, memory=64_000, gpu_type="a100") for number in range(2)]
    return fake_toolbox(
        tmp_path, FakeSlurm(nodes=nodes, partitions=[FakePartition("gpu", nodes=("g0", "g1"), default=True)])
    )


async def plan(box, jobs, pool=POOL, **more):
    ask = serialize.parse(TOOL, {"jobs": jobs, "seconds": 0, **({"pool": pool} if pool else {}), **more})
    return await box.call("plan_jobs", ask), ask


def fifty(seed=0):
    problem = problems.gangs(seed)
    return [
        {"name": f"experiment-{number}", "expected": f"{round(job.seconds)}s", "resources": {"gpus": job.gpus}}
        for number, job in enumerate(problem.jobs)
    ]


@pytest.mark.proves("plans-are-short")
async def test_fifty_different_jobs_are_answered_in_three_kilobytes_with_bound_gap_and_the_order_given(box):
    reply, ask = await plan(box, fifty())
    body = brief.answer(reply, ask)
    assert len(json.dumps(body).encode()) < 3000
    assert body["status"] == "planned"
    assert body["bound_seconds"] <= body["makespan_seconds"] < body["naive_seconds"]
    assert body["gap"] == pytest.approx(body["makespan_seconds"] / body["bound_seconds"] - 1, abs=1e-3)
    assert len(body["groups"]) <= 8
    assert body["submissions_not_shown"] == 42


@pytest.mark.proves("plans-are-short")
async def test_long_names_and_many_that_are_waited_for_make_no_longer_answer(box):
    first = [{"name": f"{'prepare ' * 6}{number}", "expected": f"{number + 1}h"} for number in range(40)]
    last = {"name": "train", "expected": "1h", "after": [job["name"] for job in first]}
    for jobs in ([*first, last], [{**first[0], "expected": "1min"}, *({**job, "after": [first[0]["name"]]} for job in first[1:]), last]):  # fmt: skip
        reply, ask = await plan(box, jobs, pool={"gpus": 3, "jobs": 3})
        assert len(json.dumps(brief.answer(reply, ask)).encode()) < 3000
        assert len(reply.submissions) + reply.submissions_not_shown == 41
    job = {"name": "next", "expected": "1h", "after": [one["name"] for one in first[:2]]}
    reply, _ = await plan(box, [*first[:2], job])
    assert len(reply.submissions) == 3


@pytest.mark.proves("plans-are-short")
async def test_the_whole_plan_and_its_picture_are_resources(box):
    reply, _ = await plan(box, fifty())
    plan_id = reply.uri.removeprefix("slurm://plans/")
    rows = json.loads(await box.view("plan", {"plan_id": plan_id}))
    picture = await box.view("plan-gantt", {"plan_id": plan_id})
    assert len(rows["jobs"]) == 50
    assert len(rows["submissions"]) == 50
    assert picture.startswith("<svg ")
    assert picture.count("<rect ") == sum(len(row["gpus"]) for row in rows["jobs"])
    assert reply.gantt_uri == f"{reply.uri}/gantt"


async def test_a_plan_that_is_not_kept_is_refused_with_what_to_do(box):
    with pytest.raises(InputError, match="plan_id") as caught:
        await box.view("plan", {"plan_id": "0"})
    assert "plan_jobs" in caught.value.hint


async def test_the_same_question_has_the_same_uri_and_another_has_another(box):
    first, _ = await plan(box, fifty())
    again, _ = await plan(box, fifty())
    other, _ = await plan(box, fifty(1))
    assert first.uri == again.uri != other.uri


async def test_without_a_pool_the_nodes_and_the_cap_are_planned_on(box):
    slots = box.context.policy.policy.limits.max_concurrent_jobs
    reply, _ = await plan(box, [{"name": "a", "count": 12, "expected": "1h", "resources": {"gpus": 1}}], pool=None)
    assert reply.makespan_seconds == 3600 * -(-12 // min(4, slots))
    assert "4 GPUs and 32 CPUs of 2 usable nodes" in reply.assumptions[0]


async def test_a_job_of_which_nothing_is_said_holds_one_gpu_and_one_cpu_where_there_are_none(box):
    job = {"name": "a", "count": 8, "expected": "1h"}
    on_gpus, _ = await plan(box, [job])
    on_cpus, _ = await plan(box, [job], pool={"cpus": 2})
    assert (on_gpus.makespan_seconds, on_cpus.makespan_seconds) == (2 * 3600, 4 * 3600)


@pytest.mark.parametrize("objective", ["makespan", "mean_completion", "deadlines", "cost"])
async def test_a_pool_without_gpus_is_planned_on(box, objective):
    job = {"name": "a", "count": 8, "expected": "1h", "resources": {"cpus": 1}}
    reply, _ = await plan(box, [job], pool={"gpus": 0, "cpus": 2}, objective=objective)
    assert (reply.makespan_seconds, reply.gap) == (4 * 3600, 0)


@pytest.mark.proves("plans-refuse-by-name")
async def test_two_jobs_of_one_name_are_refused_and_none_is_left_out(box):
    with pytest.raises(InputError, match="'a': name: 'a' is given twice"):
        await plan(box, [{"name": "a", "expected": "1h"}, {"name": "a", "expected": "2h"}])


async def test_gpus_that_a_pool_does_not_name_are_said_to_be_without_limit(box):
    reply, _ = await plan(box, [{"name": "a", "expected": "1h", "resources": {"gpus": 9}}], pool={"cpus": 2})
    assert any("unlimited" in text for text in reply.assumptions)


async def test_a_script_says_what_it_holds_and_its_limit_counts_where_no_run_is_known(box, tmp_path):
    (tmp_path / "project" / "train.sh").write_text(SCRIPT)
    reply, _ = await plan(box, [{"name": "train", "count": 8, "script": "train.sh"}])
    (step,) = reply.submissions
    assert reply.makespan_seconds == 2 * 7200
    assert (step.how, step.script, step.verdict, step.because) == ("array", "train.sh", "justify", ["smoke-first"])
    assert step.array.startswith("0-7%")


async def test_every_script_is_judged_in_the_order_of_the_submissions(box, tmp_path):
    for number in range(12):
        (tmp_path / "project" / f"s{number}.sh").write_text(SCRIPT.replace("02:00:00", f"{number // 2 + 1:02}:00:00"))
    long = "a name of more letters than an answer shows"
    jobs = [{"name": f"{number} {long}", "script": f"s{number}.sh"} for number in range(12)]
    reply, _ = await plan(box, jobs)
    rows = json.loads(await box.view("plan", {"plan_id": reply.uri.removeprefix("slurm://plans/")}))["submissions"]
    assert {step.verdict for step in reply.submissions} == {step["verdict"] for step in rows} == {"allow"}
    names = [step["job"] for step in rows]
    assert sorted(names) == sorted(job["name"] for job in jobs)
    assert all(f"<{name}>" in "".join(step.get("dependency", "") for step in rows) for name in names[:4])


async def test_more_at_once_than_the_policy_lets_through_is_said(box):
    slots = box.context.policy.policy.limits.max_concurrent_jobs
    wide = [{"name": "a", "count": 90, "expected": "1h", "resources": {"gpus": 1}}]
    reply, _ = await plan(box, wide, pool={"gpus": 90})
    assert any(f"the policy lets {slots} through" in text for text in reply.assumptions)
    assert reply.submissions[0].array == f"0-89%{slots}"


async def test_a_deadline_that_no_order_meets_is_infeasible_and_named(box):
    jobs = [
        {"name": "late", "expected": "2h", "resources": {"gpus": 1}, "deadline": "1h"},
        {"name": "fine", "expected": "2h", "resources": {"gpus": 1}, "deadline": "1d"},
    ]
    reply, _ = await plan(box, jobs, objective="deadlines")
    assert reply.status == "infeasible"
    assert reply.missed == ["late"]
    assert "late" in reply.summary


async def test_deadlines_are_times_with_a_zone_or_lengths(box):
    now = box.context.clock.now()
    job = {"name": "a", "expected": "2h", "resources": {"gpus": 1}}
    for deadline, status in ((now.replace(year=now.year + 1).isoformat(), "planned"), ("90min", "infeasible")):
        reply, _ = await plan(box, [{**job, "deadline": deadline}])
        assert reply.status == status
    with pytest.raises(InputError, match="names no time zone"):
        await plan(box, [{**job, "deadline": "2030-01-01T00:00:00"}])


@pytest.mark.proves("plans-refuse-by-name")
@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"name": "a"}, "'a': expected"),
        ({"name": "a", "expected": "soon"}, "'a': expected"),
        ({"name": "a", "expected": "-5m"}, "'a': expected"),
        ({"name": "a", "expected": "1h", "resources": {"gpus": 9}}, "'a': gpus"),
        ({"name": "a", "expected": "1h", "resources": {"memory": "lots"}}, "'a': memory"),
        ({"name": "a", "expected": "1h", "count": 10**6}, "'a': count"),
        ({"name": "a", "expected": "1h", "after": ["a"]}, "'a': after"),
        ({"name": "a", "expected": "1h", "deadline": "yesterday"}, "'a': deadline"),
        (
            {"name": "a", "expected": "1h", "deadline": "2020-01-01T00:00Z"},
            "'a': deadline: '2020-01-01T00:00Z' is not in",
        ),
    ],
)
async def test_bad_jobs_are_refused_by_name_with_a_mend(box, job, words):
    with pytest.raises(InputError) as caught:
        await plan(box, [job])
    assert words in caught.value.message
    assert caught.value.hint


async def test_prices_are_told_where_pools_have_them(box):
    pools = [{"name": "own", "gpus": 1}, {"name": "cloud", "gpus": 4, "gpu_hour": 2.5}]
    jobs = [{"name": "a", "count": 4, "expected": "1h", "resources": {"gpus": 1}, "deadline": "2h"}]
    reply, _ = await plan(box, jobs, pool=pools, objective="cost")
    assert (reply.cost, reply.missed) == (5.0, [])


@pytest.mark.proves("slices-are-offered")
async def test_jobs_that_checkpoint_are_offered_slices_with_what_they_cost(box, tmp_path):
    (tmp_path / "project" / "train.sh").write_text(SCRIPT)
    job = {"name": "train", "script": "train.sh", "expected": "7h", "restart": "1min"}
    reply, _ = await plan(box, [job])
    assert (reply.slices.restarts, reply.slices.lost_seconds, reply.slices.calls) == (2, 120, 3)
    rows = json.loads(await box.view("plan", {"plan_id": reply.uri.removeprefix("slurm://plans/")}))["slices"]
    assert [row.get("time_limit") for row in rows] == ["01:00:00", "02:01:00", None]
    assert rows[1]["dependency"] == "afterany:<train slice 1>"
    with pytest.raises(InputError, match="restart"):
        await plan(box, [{**job, "restart": "soon"}])


@pytest.mark.skipif(not exact.available(), reason="the extra `plan` is not installed")
@pytest.mark.proves("solver-never-harms")
async def test_with_the_solver_the_plan_is_never_worse_than_by_lists(box):
    lists, _ = await plan(box, fifty(18))
    solved, _ = await plan(box, fifty(18), seconds=1)
    assert solved.makespan_seconds <= lists.makespan_seconds
    assert solved.bound_seconds <= solved.makespan_seconds


async def test_long_names_that_differ_in_their_ends_are_told_apart(box):
    name = "experiment with a learning rate of its own and seed"
    reply, _ = await plan(box, [{"name": f"{name} {seed}", "expected": "1h"} for seed in range(6)])
    assert len({step.job for step in reply.submissions}) == 6
    assert all(len(step.job) <= 32 for step in reply.submissions)
