"""get_fleet over a Slurm in memory: what it costs Slurm, how short it is, and what a silent Slurm leaves."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.api import brief, serialize
from slurm_agent_tools.devcluster.fake.answering import Fault
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition
from slurm_agent_tools.errors import InputError, SlurmUnconfigured
from slurm_agent_tools.fleet.sections.section_list import SECTIONS
from slurm_agent_tools.transport.base import Completed

TOOL = serialize.BY_NAME["get_fleet"]
DEFAULT = ("inventory", "free", "idle", "waits", "cost", "shares", "alerts")
COMMANDS = {"scontrol show nodes": 1, "scontrol show partition": 1, "scontrol show reservation": 1}


async def look(box, **asked):
    ask = serialize.parse(TOOL, asked)
    reply = await box.call("get_fleet", ask)
    return reply, brief.answer(reply, ask)


@pytest.fixture
def slurm():
    return FakeSlurm()


@pytest.fixture
def box(tmp_path, slurm):
    return fake_toolbox(tmp_path, slurm)


NUMBER = 712_345  # no part of it is its own end: whatever stands before it, it is found where it begins


class Crowded(FakeSlurm):
    """A Slurm in memory whose first job stands 20,000 times in the queue."""

    async def run(self, argv: Sequence[str], **more: Any) -> Completed:
        done = await super().run(argv, **more)
        if argv[0] != "squeue":
            return done
        lines = done.stdout.decode().rstrip("\n").split("\n")
        row = next(line for line in lines if str(NUMBER) in line)
        copies = [row.replace(str(NUMBER), str(800_000 + index)) for index in range(20_000)]
        return replace(done, stdout=("\n".join([*lines, *copies]) + "\n").encode())


async def large() -> FakeSlurm:
    """2,000 nodes of eight kinds in six partitions, some down; 20,000 jobs, and those of the caller wait and idle."""
    kinds = [("h100", 8), ("a100", 4), ("a100_80gb", 8), ("v100", 4), ("t4", 2), ("rtx_4090", 4), ("", 0), ("", 0)]
    nodes = [
        FakeNode(
            f"node{number:04d}",
            gpus=gpus,
            gpu_type=kind,
            down="no answer since the power cut" if number % 97 == 0 else None,
        )
        for number in range(2000)
        for kind, gpus in [kinds[number % len(kinds)]]
    ]
    names = [node.name for node in nodes]
    partitions = [FakePartition(f"part{index}", tuple(names[index::6]), default=index == 0) for index in range(6)]
    slurm = Crowded(nodes=nodes, partitions=partitions, first_job_id=NUMBER)
    slurm.submit("#!/bin/bash\nsleep 9\n", "--partition=part1", "--begin=now+1hour", user="bob")
    for _ in range(3):
        slurm.submit("#!/bin/bash\nsleep 60000\n", "--gres=gpu:2", "--partition=part1")
    await slurm.clock.advance(700)
    for _ in range(30):
        slurm.submit("#!/bin/bash\nsleep 60000\n", "--gres=gpu:2", "--begin=now+1hour")
    return slurm


@pytest.mark.proves("the-fleet-is-one-look")
async def test_one_look_at_the_nodes_serves_all_sections(box, slurm):
    reply, _ = await look(box)
    assert reply.status == "ok"
    calls = Counter(box.context.slurm.calls)
    assert {name: calls[name] for name in COMMANDS} == COMMANDS
    assert {name: calls[name] for name in ("squeue", "sacct", "sstat")} == {"squeue": 1, "sacct": 1, "sstat": 0}
    again = Counter(box.context.slurm.calls)
    await look(box)
    assert Counter(box.context.slurm.calls) == again


@pytest.mark.proves("the-fleet-is-short")
async def test_two_thousand_nodes_are_told_in_two_kilobytes(tmp_path):
    _, body = await look(fake_toolbox(tmp_path, await large()))
    assert {name: one["error"] for name, one in body.items() if isinstance(one, dict) and "error" in one} == {}
    assert body["status"] == "ok"
    assert len(json.dumps(body).encode()) < 2048, {name: len(json.dumps(one)) for name, one in body.items()}
    assert sum(one["pending"] + one["running"] for one in body["waits"]["queue"]) > 20_000
    assert sum(tier["nodes"] for tier in body["inventory"]["tiers"]) == 2000


async def test_figures_are_those_of_the_jobs_that_run(box, slurm):
    slurm.submit("#!/bin/bash\nsleep 600\n", "--partition=gpu", "--gres=gpu:3", "--cpus-per-task=8", "--mem=32G")
    await slurm.clock.advance(5)
    reply, _ = await look(box, sections=["free", "inventory"], detail="full")
    assert (reply.inventory.gpus, reply.free.gpus, reply.free.gpus_used) == (16, 13, 3)
    assert reply.free.cpus_used == 8
    assert reply.free.memory_used_bytes == 32 * 2**30
    assert reply.match is None


async def test_with_a_match_alone_no_other_section_is_made(box):
    reply, body = await look(box, match={"gpus": 6, "gpu_memory": "60G"})
    assert (reply.inventory, reply.free) == (None, None)
    assert body["match"]["best"] == "80G and more"
    assert "6 GPUs of 60G fits 80G and more" in body["summary"]


@pytest.mark.proves("bad-input-names-the-field")
async def test_a_match_that_cannot_be_read_is_an_error_with_its_field(box):
    with pytest.raises(InputError, match=r"match\.memory"):
        await look(box, match={"memory": "lots"})


async def test_a_section_that_cannot_be_read_is_an_error_and_never_an_empty_cluster(box, slurm):
    slurm.lose_next_reply("scontrol show nodes")
    reply, body = await look(box, sections=["inventory", "free"])
    assert reply.status == "partial"
    assert body["inventory"]["error"]["code"] == "cluster_unreachable"
    assert "Not readable: inventory, free." in body["summary"]


async def test_reservations_that_cannot_be_read_are_told_and_stop_nothing(box, slurm):
    slurm.lose_next_reply("scontrol show reservation")
    reply, _ = await look(box, sections=["free"])
    assert reply.status == "ok"
    assert "reserved nodes" in {one.what for one in reply.not_measured}


async def test_a_page_that_cannot_be_read_breaks_what_jobs_cost_and_nothing_else(box, tmp_path):
    (tmp_path / "project" / "backends").mkdir(parents=True)
    (tmp_path / "project" / "backends" / "lab.yaml").write_text("kind: 3\n")
    reply, body = await look(box)
    assert reply.status == "partial"
    assert "kind: Input should be" in body["cost"]["error"]["message"]
    assert reply.inventory.nodes


async def test_nodes_that_cannot_be_read_are_no_reason_to_tell_that_none_is_down(box, slurm):
    slurm.lose_next_reply("scontrol show nodes")
    reply, _ = await look(box, sections=["alerts"])
    assert "nodes that are down" in {one.what for one in reply.not_measured}


GPU_JOB = ("#!/bin/bash\nsleep 6000\n", "--partition=gpu", "--gres=gpu:2", "--time=2:00:00")


@pytest.mark.proves("idle-is-measured")
async def test_a_job_that_sleeps_on_its_gpus_is_found_idle(box, slurm):
    job = slurm.submit(*GPU_JOB)
    await slurm.clock.advance(300)
    early, _ = await look(box, sections=["idle"])
    await slurm.clock.advance(400)
    reply, body = await look(box, sections=["idle"])
    assert early.idle == []
    assert [(one["job_id"], one["gpus"], one["kind"], one["source"]) for one in body["idle"]] == [
        (str(job), 2, "held-empty", "cpu_time")
    ]
    assert any("no Prometheus is set" in one.why for one in reply.not_measured)


async def test_who_waits_is_told_with_why(box, slurm):
    for _ in range(5):
        slurm.submit(*GPU_JOB)
    await slurm.clock.advance(30)
    reply, _ = await look(box, sections=["waits"])
    assert [one.why for one in reply.waits.jobs]
    assert {one.partition: (one.pending, one.running) for one in reply.waits.queue} == {"gpu": (1, 4)}


async def test_a_silent_sstat_leaves_idle_not_measured(box, slurm):
    slurm.submit(*GPU_JOB)
    await slurm.clock.advance(700)
    slurm.lose_next_request("sstat", times=None)
    reply, _ = await look(box, sections=["idle"])
    assert (reply.status, reply.idle) == ("ok", [])
    assert any("sstat did not answer" in one.why for one in reply.not_measured)


class WithGpus(FakeSlurm):
    """A Slurm in memory in whose jobs nvidia-smi answers."""

    answer = "GPU-1, 0\nGPU-2, 55\n"

    async def run(self, argv: Sequence[str], **more: Any) -> Completed:
        if argv[0] != "srun":
            return await super().run(argv, **more)
        self.asked.append(tuple(argv))
        return Completed(tuple(argv), 0, self.answer.encode(), b"", 0.1)


def with_steps(folder, slurm):
    """A toolbox whose settings let nvidia-smi be run in jobs."""
    made = fake_toolbox(folder, slurm)
    fleet = made.context.settings.fleet.model_copy(update={"gpu_steps": True})
    settings = made.context.settings.model_copy(update={"fleet": fleet})
    made.context = made.registry.context = replace(made.context, settings=settings)
    return made


async def test_nvidia_smi_is_run_in_the_callers_own_jobs_alone_and_once_a_minute(tmp_path):
    slurm = WithGpus()
    mine = slurm.submit("#!/bin/bash\nsleep 60000\n", "--partition=gpu", "--gres=gpu:2")
    slurm.submit("#!/bin/bash\nsleep 60000\n", "--partition=gpu", "--gres=gpu:1", user="bob")
    await slurm.clock.advance(30)
    box = with_steps(tmp_path, slurm)
    before = box.context.slurm.calls["srun"]
    reply, _ = await look(box, sections=["idle"])
    await look(box, sections=["idle"])
    steps = [argv for argv in slurm.asked if argv[0] == "srun"]
    assert [f"--jobid={mine}" in argv for argv in steps] == [True]
    assert box.context.slurm.calls["srun"] - before == 1
    assert not any("GPU use of jobs" in one.what for one in reply.not_measured)
    await slurm.clock.advance(61)
    await look(box, sections=["idle"])
    assert len([argv for argv in slurm.asked if argv[0] == "srun"]) == 2


async def test_gpus_that_are_not_the_jobs_own_are_not_measured_and_nothing_runs_unasked(tmp_path):
    slurm = WithGpus()
    slurm.submit("#!/bin/bash\nsleep 60000\n", "--partition=gpu", "--gres=gpu:1")
    await slurm.clock.advance(30)
    reply, _ = await look(with_steps(tmp_path, slurm), sections=["idle"])
    assert any("sees 2 GPUs of the node, and the job has 1" in one.why for one in reply.not_measured)
    count = len([argv for argv in slurm.asked if argv[0] == "srun"])
    await look(fake_toolbox(tmp_path, slurm), sections=["idle"])
    assert len([argv for argv in slurm.asked if argv[0] == "srun"]) == count


async def test_waiting_tasks_of_an_array_are_counted_one_by_one(tmp_path):
    slurm = FakeSlurm()
    slurm.submit("#!/bin/bash\nsleep 60000\n", "--partition=cpu", "--array=0-49", "--begin=now+1hour", user="bob")
    reply, _ = await look(fake_toolbox(tmp_path, slurm), sections=["waits"])
    assert [(one.partition, one.pending) for one in reply.waits.queue] == [("cpu", 50)]
    assert reply.summary.startswith("50 jobs wait, 0 of them yours")


@pytest.mark.parametrize("sections", [None, ["waits", "cost"]])
async def test_where_no_slurm_is_in_reach_it_is_told_once_and_the_other_sections_point_there(box, slurm, sections):
    gone = SlurmUnconfigured("Slurm's commands find no configuration.", hint="Write SLURM_CONF into `env`.")
    for command in ("squeue", "scontrol", "sinfo", "sacct", "sacctmgr", "sstat"):
        slurm.faults.add(Fault(command, None, error=gone))

    reply, body = await look(box, **({"sections": sections} if sections else {}))

    said = [body[name]["error"] for name in SECTIONS if "error" in (body.get(name) or {})]
    assert len(said) == len(sections or [*DEFAULT])
    assert reply.summary.endswith(". Slurm's commands find no configuration. Write SLURM_CONF into `env`.")
    assert {one["code"] for one in said} == {"cluster_unreachable"}
    assert [one["message"] for one in said[1:]] == ["As `summary` says."] * (len(said) - 1)
    first = next(one for name in SECTIONS if (one := getattr(reply, name)) is not None)
    assert (first.error.message, first.error.hint) == (gone.message, gone.hint)
    assert len(json.dumps(body)) < 1500
    full, _ = await look(box, detail="full", **({"sections": sections} if sections else {}))
    assert {getattr(full, name).error.message for name in sections or DEFAULT} == {gone.message}
