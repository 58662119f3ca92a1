"""choose_backend for several jobs, on what its figures rest, and what it tells first: arrays, failed runs, limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.services.test_choose_backend import CLOUD, HOUR, Clusters

from slurm_agent_tools.backends.page_templates import template
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.models.script_arguments import GenerateScript

SCRIPT = "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --gpus=1\n#SBATCH --time=2:00:00\n#SBATCH --mem=4G\n"


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
async def one(tmp_path: Path, slurm: FakeSlurm):
    made = Clusters(tmp_path, {"local": slurm})
    yield made
    await made.close()


async def test_an_array_in_the_script_is_as_many_jobs(one: Clusters) -> None:
    (one.project / "a.sh").write_text(f"{SCRIPT}#SBATCH --array=0-59\nsleep 60\n")
    assert (await one.choose(script="a.sh", new_configuration=False)).question == 6


async def test_as_many_jobs_as_may_run_at_once_need_no_limit_in_their_array(one: Clusters) -> None:
    (one.project / "a.sh").write_text(f"{SCRIPT}sleep 60\n")
    most = one.contexts["local"].policy.policy.limits.max_concurrent_jobs
    all_of_them = await one.choose(script="a.sh", jobs=most, new_configuration=False)
    one_more = await one.choose(script="a.sh", jobs=most + 1, new_configuration=False)
    assert all_of_them.next is not None
    assert one_more.next is not None
    assert all_of_them.next.arguments["array"] == f"0-{most - 1}"
    assert one_more.next.arguments["array"] == f"0-{most}%{most}"


async def test_the_smaller_of_the_pages_and_the_policys_limit_counts(one: Clusters) -> None:
    (one.project / "a.sh").write_text(f"{SCRIPT}sleep 60\n")
    one.page(
        "local",
        "kind: slurm\npartitions:\n  - {name: gpu, purpose: production, max_jobs: 2}\n"
        "  - {name: special, purpose: testing}\n",
    )
    found = await one.choose(script="a.sh", jobs=60, new_configuration=False)
    assert found.next is not None
    assert found.next.arguments["array"] == "0-59%2"


async def test_runs_that_failed_say_nothing_of_the_run_time(one: Clusters, slurm: FakeSlurm) -> None:
    (one.project / "a.sh").write_text(f"{SCRIPT}sleep 60\n")
    for _ in range(3):
        slurm.next_job(after=60, exit_code=1)
        slurm.submit(f"{SCRIPT}sleep 60\n", "--partition=gpu", cwd=str(one.project))
    slurm.clock.move(4 * HOUR)
    found = await one.choose(script="a.sh", new_configuration=False)
    assert found.expected is not None
    assert found.expected.run is not None
    assert (found.expected.run.median, found.expected.run.basis) == (2 * HOUR, 0)


async def test_waits_are_those_of_jobs_of_about_this_size_where_there_are_enough(
    one: Clusters, slurm: FakeSlurm
) -> None:
    for gpus, number in ((4, 6), (1, 8)):
        for _ in range(number):
            words = ("--partition=gpu", f"--gres=gpu:{gpus}", "--time=20", "--mem=4G")
            slurm.submit("#!/bin/bash\nsleep 600\n", *words)
    slurm.clock.move(3 * HOUR)
    found = await one.choose(resources={"gpus": 4}, expected="2h")
    assert found.expected is not None
    assert found.expected.wait is not None
    assert (found.expected.wait.basis, "of about this size" in found.expected.wait.source) == (6, True)


async def test_what_a_job_without_gpus_costs_is_not_told_by_the_price_of_gpus(one: Clusters) -> None:
    one.page("rented", CLOUD)
    found = await one.choose(resources={"cpus": 2}, expected="2h")
    (rented,) = (shown for shown in found.alternatives if shown.backend == "rented")
    assert rented.expected is not None
    assert rented.expected.cost is not None
    assert (rented.expected.cost.amount, rented.expected.cost.currency) == (None, None)


async def test_a_smoke_run_elsewhere_is_written_with_its_short_time_limit(one: Clusters, slurm: FakeSlurm) -> None:
    slurm.controller_down()
    one.page("there", template("pbs"))
    found = await one.choose(resources={"gpus": 1, "memory": "16G"}, expected="5h", new_configuration=True)
    assert found.next is not None
    assert (found.partition, found.next.arguments["time_limit"]) == ("debug", "00:30:00")
    ask = GenerateScript(name="train", command="python train.py", **found.next.arguments)
    written = await one.box.call("generate_script", ask)
    assert written.status == "written"
    assert "walltime=00:30:00" in written.script


@pytest.mark.parametrize(("limit", "given"), [("1h", "01:00:00"), ("2h", None), ("9h", None)])
async def test_a_page_with_less_time_than_a_script_gets_by_itself_gives_its_own(
    one: Clusters, slurm: FakeSlurm, limit: str, given: str | None
) -> None:
    slurm.controller_down()
    page = f'kind: pbs\npartitions:\n  - {{name: work, purpose: production, time_limit: "{limit}", gpus: {{type: a, per_node: 1}}}}\n'
    one.page("there", page)
    found = await one.choose(resources={"gpus": 1}, expected="30m", new_configuration=False)
    assert found.next is not None
    assert found.next.arguments.get("time_limit") == given


@pytest.mark.parametrize(
    ("array", "given"), [("1-60%8", "1-60%4"), ("1-120:2", "1-120:2%4"), ("[1-60]", "1-60%4"), ("1-60%2", None)]
)
async def test_the_numbers_of_a_scripts_own_array_stay_as_they_are(
    one: Clusters, array: str, given: str | None
) -> None:
    (one.project / "a.sh").write_text(f"{SCRIPT}#SBATCH --array={array}\nsleep 60\n")
    found = await one.choose(script="a.sh", new_configuration=False)
    assert found.next is not None
    assert (found.question, found.next.arguments.get("array")) == (6, given)


async def test_elsewhere_the_scripts_own_array_is_said_with_its_numbers(one: Clusters, slurm: FakeSlurm) -> None:
    slurm.controller_down()
    one.page("there", template("pbs"))
    (one.project / "a.sh").write_text(f"{SCRIPT}#SBATCH --array=1-60%2\nsleep 60\n")
    found = await one.choose(script="a.sh", new_configuration=False)
    assert found.next is not None
    assert (found.backend, found.next.arguments["array"]) == ("there", "1-60%2")


@pytest.mark.parametrize(("array", "given"), [("3-60%8", "3"), ("3", None)])
async def test_a_smoke_run_takes_the_first_task_of_the_scripts_array(
    one: Clusters, array: str, given: str | None
) -> None:
    (one.project / "a.sh").write_text(f"{SCRIPT}#SBATCH --array={array}\nsleep 60\n")
    found = await one.choose(script="a.sh", new_configuration=True)
    assert found.next is not None
    assert (found.stage, found.next.arguments.get("array")) == ("smoke", given)


@pytest.mark.parametrize("seconds", [600, 1800])
async def test_a_smoke_run_is_as_long_as_the_policy_lets_one_be(one: Clusters, seconds: int) -> None:
    (context,) = one.contexts.values()
    policy = context.policy.policy
    stages = policy.smoke_first.model_copy(update={"smoke_time_limit": seconds})
    made = replace(context.policy, policy=policy.model_copy(update={"smoke_first": stages}))
    one.contexts["local"] = replace(context, policy=made)
    (one.project / "a.sh").write_text(f"{SCRIPT}sleep 60\n")
    found = await one.choose(script="a.sh", new_configuration=True)
    assert found.next is not None
    assert found.next.arguments["time_limit"] == {600: "00:10:00", 1800: "00:30:00"}[seconds]


async def test_what_no_node_has_is_told_before_anybody_is_asked_how_long_it_takes(one: Clusters) -> None:
    found = await one.choose(resources={"gpus": 160})
    assert (found.status, found.backend) == ("none_fits", None)
    assert found.reasons[0] == "How long it runs is not known."
    assert all("GPU" in other.why_not or "are needed" in other.why_not for other in found.alternatives)
    assert all(other.expected is None for other in found.alternatives)


async def test_a_short_cpu_job_that_goes_to_a_partition_is_not_said_to_need_none(one: Clusters) -> None:
    found = await one.choose(resources={"cpus": 1}, expected="5min")
    assert found.summary == f"It goes to {found.backend}/{found.partition}."
    assert found.reasons[0] == (
        "A CPU job of 00:05:00 is below half an hour: on this machine where it fits, else where it is cheapest."
    )
