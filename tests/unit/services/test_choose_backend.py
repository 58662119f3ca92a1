"""choose_backend over Slurms in memory: live facts, pages, several clusters, history, and what is noted down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.api import brief, serialize
from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.backends import page_templates
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition
from slurm_agent_tools.errors import ConfigError, InputError
from slurm_agent_tools.models.backend_answer import ChooseReply
from slurm_agent_tools.models.script_arguments import GenerateScript
from slurm_agent_tools.models.submission_answer import GenerateReply
from slurm_agent_tools.models.toolset_arguments import ChooseBackend
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.slurm.client import SlurmClient, Watcher

HOUR = 3600
GPU = {"gpus": 1, "memory": "16G"}
CLOUD = """kind: skypilot
partitions:
  - name: a100
    purpose: production
    gpus: {type: a100, per_node: 1, memory: "40G"}
price: {currency: USD, gpu_hour: 1.5, priced_on: 2026-11-01}
usual_wait: "5m"
"""
TESTING = "kind: slurm\ncluster: local\npartitions:\n  - {name: special, purpose: testing}\n"


class Clusters:
    """A registry of several clusters in memory; the first one is the usual one."""

    def __init__(self, folder: Path, slurms: Mapping[str, FakeSlurm]) -> None:
        first, *others = slurms
        context = fake_toolbox(folder, slurms[first]).context
        if others or first != "local":
            settings = context.settings.model_copy(
                update={"clusters": {name: ClusterSettings() for name in slurms}, "cluster": first}
            )
            context = replace(context, settings=settings, cluster=first)
        self.project = Path(context.project)
        self.contexts = {first: context}
        for name in others:
            client = SlurmClient(slurms[name], slurms[first].clock, context.settings.slurm, user="alice")
            watcher = Watcher(client, slurms[first].clock)
            self.contexts[name] = replace(context, slurm=client, watcher=watcher, cluster=name)
        self.box = Toolbox(self)

    async def at(self, cluster: str | None) -> ClusterContext:
        return self.contexts[cluster] if cluster is not None else await self.home()

    async def home(self) -> ClusterContext:
        return next(iter(self.contexts.values()))

    async def close(self) -> None:
        next(iter(self.contexts.values())).store.close()

    def page(self, name: str, text: str) -> None:
        (self.project / "backends").mkdir(exist_ok=True)
        (self.project / "backends" / f"{name}.yaml").write_text(text)

    async def choose(self, **ask: Any) -> ChooseReply:
        """The answer; the call that it names is one that its tool takes."""
        reply = await self.box.call("choose_backend", ChooseBackend(**ask))
        assert isinstance(reply, ChooseReply)
        if reply.next is not None:
            more = {"name": "n", "command": "true"} if reply.next.tool == "generate_script" else {}
            serialize.BY_NAME[reply.next.tool].ask.model_validate(reply.next.arguments | more)
        return reply

    def noted(self) -> list[dict[str, Any]]:
        log = next(iter(self.contexts.values())).store.folder / "decisions.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
async def one(tmp_path: Path, slurm: FakeSlurm):
    made = Clusters(tmp_path, {"local": slurm})
    yield made
    await made.close()


def other(**partition: Any) -> FakeSlurm:
    nodes = [FakeNode("big01", 64, 512_000, 4, "h100")]
    return FakeSlurm(nodes=nodes, partitions=[FakePartition("main", ("big01",), default=True, **partition)])


def fill(slurm: FakeSlurm) -> None:
    """Every GPU of the devcluster is in use."""
    for _ in range(2):
        slurm.submit("#!/bin/bash\nsleep 90000\n", "--partition=gpu", "--gres=gpu:4", "--time=2-00:00:00")
    slurm.submit("#!/bin/bash\nsleep 90000\n", "--partition=special", "--gres=gpu:8", "--time=4:00:00")
    slurm.clock.move(15)


async def test_without_any_page_the_partitions_of_the_cluster_are_the_places(one: Clusters) -> None:
    found = await one.choose(resources=GPU, expected="2h")
    assert (found.status, found.question, found.backend, found.partition) == ("chosen", 3, "local", "gpu")
    assert any("no page says what local/gpu is for" in reason for reason in found.reasons)
    assert any("8 GPUs free now for 1" in reason for reason in found.reasons)
    assert {(other.backend, other.partition) for other in found.alternatives} == {
        ("local", "cpu"),
        ("local", "special"),
    }
    assert found.next is not None
    assert found.next.tool == "generate_script"
    assert found.next.arguments["partition"] == "gpu"


@pytest.mark.proves("backends-are-data")
async def test_a_backend_is_added_by_one_file_and_nothing_else(one: Clusters, slurm: FakeSlurm) -> None:
    fill(slurm)
    before = await one.choose(resources=GPU, expected="2h", urgency="urgent")
    assert before.backend == "local"
    one.page("rented", CLOUD)
    after = await one.choose(resources=GPU, expected="2h", urgency="urgent")
    assert (after.backend, after.partition, after.question) == ("rented", "a100", 3)
    assert after.expected is not None
    assert after.expected.cost is not None
    assert (after.expected.cost.amount, after.expected.cost.currency) == (3.0, "USD")
    assert str(after.expected.cost.priced_on) == "2026-11-01"
    assert after.next is not None
    assert after.next.arguments["format"] == "skypilot"
    assert after.next.arguments["backend"] == after.backend


@pytest.mark.proves("backends-are-data")
async def test_what_the_cluster_says_wins_over_the_page_and_the_contradiction_is_told(one: Clusters) -> None:
    one.page("local", "kind: slurm\npartitions:\n"
        '  - {name: gpu, purpose: production, time_limit: "12h", gpus: {type: v100, per_node: 8}}\n'
        '  - {name: gone, purpose: testing}\n')  # fmt: skip
    found = await one.choose(resources=GPU, expected="20h")
    assert (found.question, found.partition) == (4, "gpu")
    told = " ".join(found.contradictions)
    assert "the page says time limit 12:00:00, the cluster 2-00:00:00, which counts" in told
    assert "the page says GPUs of a node 8, the cluster 4" in told
    assert "the page says v100 GPUs, the cluster a100" in told
    assert "the page names the partition gone, which the cluster does not have" in told


async def test_a_page_that_agrees_contradicts_nothing_and_gives_partitions_their_purpose(one: Clusters) -> None:
    one.page("local", TESTING)
    found = await one.choose(resources=GPU, expected="30m")
    assert (found.question, found.backend, found.partition) == (2, "local", "special")
    assert found.contradictions == []


async def test_waits_are_told_with_their_quantiles_and_the_jobs_they_rest_on(one: Clusters, slurm: FakeSlurm) -> None:
    for _ in range(12):
        slurm.submit("#!/bin/bash\nsleep 600\n", "--partition=gpu", "--gres=gpu:4", "--time=20")
    slurm.clock.move(2 * HOUR)
    found = await one.choose(resources={"gpus": 4}, expected="2h")
    assert found.expected is not None
    assert found.expected.wait is not None
    assert found.expected.wait.basis == 12
    assert found.expected.wait.p95 is not None
    assert found.expected.wait.p95 > found.expected.wait.median > 0
    assert "12 jobs" in found.expected.wait.source


async def test_the_run_time_of_a_script_comes_from_its_runs_else_from_its_limit(
    one: Clusters, slurm: FakeSlurm
) -> None:
    text = "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --gpus=1\n#SBATCH --time=10:00:00\nsleep 5400\n"
    (one.project / "train.sh").write_text(text)
    before = await one.choose(script="train.sh", new_configuration=False)
    assert before.question == 4
    assert before.expected is not None
    assert before.expected.run is not None
    assert "its time limit" in before.expected.run.source
    for _ in range(3):
        slurm.submit(text, "--partition=gpu", cwd=str(one.project))
    slurm.clock.move(4 * HOUR)
    after = await one.choose(script="train.sh", new_configuration=False)
    assert after.question == 3
    assert after.expected is not None
    assert after.expected.run is not None
    assert (after.expected.run.median, after.expected.run.basis) == (5400, 3)
    assert "3 completed runs" in after.expected.run.source
    assert after.next is not None
    assert (after.next.tool, after.next.arguments["script"]) == ("submit_job", "train.sh")


@pytest.mark.parametrize(
    ("template", "more", "held"),
    [
        ("pbs", {}, ["#PBS -q prod", "ngpus=1"]),
        ("kubernetes", {"image": "example.org/train:1"}, ["kueue.x-k8s.io/queue-name: research", "nvidia.com/gpu"]),
        ("cloud", {}, ["A100:1", "max_hourly_cost: 1.29"]),
    ],
)
async def test_the_next_call_writes_the_script_that_a_person_starts_elsewhere(
    one: Clusters, slurm: FakeSlurm, template: str, more: dict[str, Any], held: list[str]
) -> None:
    slurm.controller_down()
    one.page("there", page_templates.template(template))
    found = await one.choose(resources=GPU, expected="2h")
    assert (found.backend, found.status) == ("there", "chosen")
    assert found.next is not None
    ask = GenerateScript(name="train", command="python train.py", **found.next.arguments | more)
    written = await one.box.call("generate_script", ask)
    assert isinstance(written, GenerateReply)
    assert written.status == "written", written.summary
    assert all(words in (written.script or "") for words in held), written.script


async def test_a_length_that_nobody_knows_is_asked_for(one: Clusters) -> None:
    with pytest.raises(InputError, match="expected is needed"):
        await one.choose(resources=GPU)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ({}, "script or resources is needed"),
        ({"resources": GPU, "script": "a.sh"}, "script or resources"),
        ({"resources": GPU, "expected": "soon"}, "expected"),
        ({"resources": GPU, "expected": "UNLIMITED"}, "no length of time"),
        ({"resources": {"memory": "much"}, "expected": "1h"}, "resources.memory"),
        ({"script": "../a.sh"}, "leaves the project"),
    ],
)
async def test_what_cannot_be_read_is_named(one: Clusters, ask: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        await one.choose(**ask)


async def test_a_new_configuration_gets_a_smoke_run_of_half_an_hour(one: Clusters) -> None:
    one.page("local", TESTING)
    found = await one.choose(resources=GPU, new_configuration=True)
    assert (found.status, found.question, found.stage, found.partition) == ("chosen", 2, "smoke", "special")
    assert found.next is not None
    assert found.next.arguments["time_limit"] == "00:30:00"


async def test_50_jobs_are_one_array_with_as_many_at_once_as_the_policy_lets(one: Clusters) -> None:
    (one.project / "job.sh").write_text("#!/bin/bash\n#SBATCH --gpus=1\n#SBATCH --time=2:00:00\nsleep 60\n")
    at_once = one.contexts["local"].policy.policy.limits.max_concurrent_jobs
    found = await one.choose(script="job.sh", jobs=50)
    assert found.question == 6
    assert found.next is not None
    assert found.next.arguments["array"] == f"0-49%{at_once}"


@pytest.mark.proves("fallbacks-are-noted")
async def test_a_cluster_that_does_not_answer_is_passed_over_and_the_fallback_is_written_down(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    both = Clusters(tmp_path, {"lab": slurm, "second": other(max_time=48 * HOUR)})
    slurm.controller_down()
    found = await both.choose(resources=GPU, expected="2h")
    assert (found.status, found.question, found.backend, found.partition) == ("chosen", 7, "second", "main")
    assert found.fallback is not None
    assert "lab would have been chosen" in found.fallback
    assert found.next is not None
    assert found.next.arguments["cluster"] == "second"
    (noted,) = both.noted()
    assert (noted["event"], noted["tool"], noted["chosen"]) == ("fallback", "choose_backend", "second/main")
    assert noted["note"] == found.fallback
    await both.close()


async def test_where_nothing_was_missed_nothing_is_written_down(one: Clusters) -> None:
    await one.choose(resources=GPU, expected="2h")
    assert one.noted() == []


async def test_a_cluster_that_is_named_is_the_only_one_that_is_asked(tmp_path: Path, slurm: FakeSlurm) -> None:
    both = Clusters(tmp_path, {"lab": slurm, "second": other(max_time=48 * HOUR)})
    both.page("rented", CLOUD)
    found = await both.choose(resources=GPU, expected="2h", cluster="second")
    assert found.backend == "second"
    assert found.alternatives == []
    assert slurm.asked == []
    await both.close()


async def test_two_clusters_are_compared_by_what_is_free_now(tmp_path: Path, slurm: FakeSlurm) -> None:
    both = Clusters(tmp_path, {"lab": slurm, "second": other(max_time=48 * HOUR)})
    assert (await both.choose(resources=GPU, expected="2h")).backend == "lab"
    fill(slurm)
    assert (await both.choose(resources=GPU, expected="2h")).backend == "second"
    await both.close()


async def test_free_gpus_on_different_nodes_are_not_free_for_a_job_on_one(one: Clusters, slurm: FakeSlurm) -> None:
    for node in ("gpu01", "gpu02"):
        slurm.submit("#!/bin/bash\nsleep 90000\n", "--partition=gpu", f"--nodelist={node}", "--gres=gpu:2")
    slurm.clock.move(5)
    found = await one.choose(resources={"gpus": 4, "nodes": 1}, expected="2h")
    (gpu,) = [other for other in found.alternatives if other.partition == "gpu"]
    assert "0 GPUs free now for 4" in gpu.why_not


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("kind: slurm\ncluster: local\nusers: [ada]\npartitions: [{name: gpu, purpose: production}]\n", "does not name alice"),
        ("kind: slurm\ncluster: local\nprice: {allocation_hours: 9, allocation_ends: 2020-01-01}\npartitions: [{name: gpu, purpose: production}]\n", "its allocation ended on 2020-01-01"),
    ],
)  # fmt: skip
async def test_who_may_use_it_and_an_allocation_that_ended_are_on_the_page(one: Clusters, page: str, why: str) -> None:
    one.page("lab", page)
    found = await one.choose(resources=GPU, expected="2h")
    assert found.status == "none_fits"
    assert why in " ".join(other.why_not for other in found.alternatives)


async def test_a_page_of_a_cluster_that_the_settings_do_not_know_says_what_to_add(one: Clusters) -> None:
    one.page("far", "kind: slurm\npartitions: [{name: gpu, purpose: production}]\n")
    found = await one.choose(resources=GPU, expected="2h")
    (far,) = [other for other in found.alternatives if other.backend == "far"]
    assert "[clusters.far]" in far.why_not


async def test_a_page_that_is_wrong_is_an_error_with_its_line(one: Clusters) -> None:
    one.page("bad", "kind: slurm\npartitions: []\n")
    with pytest.raises(ConfigError, match="partitions") as caught:
        await one.choose(resources=GPU, expected="2h")
    assert "bad.yaml in line 2" in caught.value.hint


async def test_a_person_is_asked_with_both_figures_where_money_buys_an_earlier_start(
    one: Clusters, slurm: FakeSlurm
) -> None:
    one.page("rented", CLOUD)
    for _ in range(8):
        slurm.submit("#!/bin/bash\nsleep 7200\n", "--partition=gpu", "--gres=gpu:4", "--time=3:00:00")
    slurm.clock.move(timedelta(hours=9).total_seconds())
    fill(slurm)
    found = await one.choose(resources={"gpus": 1}, expected="2h")
    assert (found.status, found.backend) == ("ask_person", None)
    assert found.question_for_person is not None
    assert "3.00 USD" in found.question_for_person
    assert "10 jobs" in found.question_for_person
    assert (await one.choose(resources={"gpus": 1}, expected="2h", budget=5)).backend == "rented"


async def test_what_the_policy_asks_a_person_for_is_said(one: Clusters) -> None:
    context = one.contexts["local"]
    limits = context.policy.policy.limits.model_copy(update={"gpu_hours_per_job": 8.0})
    policy = context.policy.policy.model_copy(update={"limits": limits})
    one.contexts["local"] = replace(context, policy=replace(context.policy, policy=policy))
    found = await one.choose(resources={"gpus": 4}, expected="3h")
    assert any("8 GPU hours" in reason and "12.0" in reason for reason in found.reasons)
    fine = await one.choose(resources={"gpus": 4}, expected="2h")
    assert not any("GPU hours" in reason for reason in fine.reasons)


async def test_a_brief_answer_is_below_3_kb_and_leaves_out_what_others_would_cost(one: Clusters) -> None:
    for number in range(8):
        one.page(f"rented{number}", CLOUD)
    found = brief.brief(await one.choose(resources=GPU, expected="2h"))
    assert len(json.dumps(found).encode()) < 3_000
    assert len(found["alternatives"]) == 5
    assert found["alternatives_not_shown"] == 5
    assert "expected" not in found["alternatives"][0]


async def test_what_is_wrong_with_one_of_several_clusters_is_told_as_it_is(tmp_path: Path, slurm: FakeSlurm) -> None:
    both = Clusters(tmp_path, {"lab": slurm, "second": other()})

    async def at(cluster: str | None) -> ClusterContext:
        raise ConfigError("policy", "/etc/policy.yaml", "could be changed by others than root")

    both.at = at  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match="could be changed"):
        await both.choose(resources=GPU, expected="2h")
    await both.close()


async def test_a_page_that_was_never_filled_in_is_told_with_the_answer(one: Clusters) -> None:
    one.page("rented", page_templates.template("cloud"))
    one.page("ours", CLOUD)
    (told,) = (await one.choose(resources=GPU, expected="2h")).contradictions
    assert told.startswith("rented: its page still says what the template says")
    one.page("rented", page_templates.template("cloud").replace("Rented GPUs", "Ours"))
    (told,) = (await one.choose(resources=GPU, expected="2h")).contradictions
    assert (
        told
        == "rented: its page still has examples of the template in partitions a100, partitions a100-8, price: fill them in."
    )
