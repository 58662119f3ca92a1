"""Every node as `scontrol show nodes` tells it: states in the compact words of sinfo, GPUs by type, reasons with their time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode
from slurm_agent_tools.errors import SlurmGarbled, SlurmUnreachable
from slurm_agent_tools.insights.capacity import usable
from slurm_agent_tools.slurm.commands import scontrol_nodes
from slurm_agent_tools.slurm.commands.scontrol_nodes import NodeRecords
from slurm_agent_tools.transport.base import Completed

HEAD = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=16  CPUAlloc=8 CPUEfctv=32 CPUTot=32 CPULoad=5.23 Gres={gres}"
    " GresDrain=N/A GresUsed={used} NodeAddr=10.0.0.1 OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=256000"
    " AllocMem=64000 FreeMem=14515 Sockets=2 Boards=1 State={state} ThreadsPerCore=2 Partitions=gpu,all "
    " CfgTRES=cpu=32,mem=250G,gres/gpu=4 AllocTRES=cpu=8"
)


def told(state: str = "MIXED", gres: str = "gpu:a100:4", used: str = "gpu:a100:3(IDX:0-2)", more: str = "") -> bytes:
    return (HEAD.format(name="g1", gres=gres, used=used, state=state) + more + "\n").encode()


def completed(stdout: bytes, *, truncated: bool = False) -> Completed:
    return Completed(("scontrol",), 0, stdout, b"", 0.1, truncated)


def node(**more: str):
    return NodeRecords().parse(completed(told(**more)))[0]


def test_what_jobs_were_given_is_told_beside_what_there_is():
    found = node()
    assert (found.cpus, found.cpus_used, found.threads_per_core) == (32, 8, 2)
    assert (found.memory_bytes, found.memory_used_bytes) == (256000 * 2**20, 64000 * 2**20)
    assert [(one.kind, one.total, one.used) for one in found.gpu_groups] == [("a100", 4, 3)]
    assert (found.gpus, found.gpus_used, found.partitions) == (4, 3, ("gpu", "all"))


def test_gpus_of_several_types_are_told_apart():
    found = node(gres="gpu:a100:2(S:0),gpu:a30:4(S:1),shard:8", used="gpu:a100:1(IDX:0),gpu:a30:0(IDX:N/A)")
    assert [(one.kind, one.total, one.used) for one in found.gpu_groups] == [("a100", 2, 1), ("a30", 4, 0)]


@pytest.mark.parametrize(
    ("gres", "used", "groups"),
    [
        ("gpu:8", "gpu:(null):3(IDX:0-2)", [("", 8, 3)]),
        ("gpu:8(S:0-1)", "gpu:a100:3(IDX:0-2)", [("", 8, 3)]),
        ("gpu:a100:8", "gpu:(null):3(IDX:0-2)", [("a100", 8, 3)]),
        ("gpu:a100:2,gpu:a30:2", "gpu:(null):1(IDX:0)", [("a100", 2, None), ("a30", 2, None)]),
        ("gpu:a100:2,gpu:a30:2", "gpu:(null):0(IDX:N/A)", [("a100", 2, 0), ("a30", 2, 0)]),
        ("gpu:a100:2,shard:a100:8", "gpu:a100:0(IDX:N/A),shard:a100:3(3/4,0/4)", [("a100", 2, 1)]),
        ("gpu:a100:2,shard:a100:8", "gpu:a100:1(IDX:0),shard:a100:0(0/4,0/4)", [("a100", 2, 1)]),
        ("gpu:a100:2,mps:a100:200", "gpu:a100:0(IDX:N/A),mps:a100:50(0/100,50/100)", [("a100", 2, 1)]),
        ("vgpu:4,mygpu:a100:2", "vgpu:1,mygpu:a100:0", []),
    ],
)  # fmt: skip
def test_a_gpu_that_is_in_use_is_never_told_as_free_however_slurm_words_it(gres, used, groups):
    found = node(gres=gres, used=used)
    assert [(one.kind, one.total, one.used) for one in found.gpu_groups] == groups


def test_memory_that_is_kept_from_jobs_is_not_counted():
    text = told().replace(b"FreeMem=14515", b"FreeMem=14515 MemSpecLimit=4096")
    assert NodeRecords().parse(completed(text))[0].memory_bytes == (256000 - 4096) * 2**20


@pytest.mark.parametrize("state", ["IDLE+INVALID_REG", "MIXED+INVALID_REG", "IDLE+REBOOT_ISSUED", "IDLE+BLOCKED"])
def test_a_node_that_slurm_keeps_jobs_from_is_not_usable(state: str):
    assert not usable(node(state=state))


def test_a_node_in_no_partition_is_not_usable():
    text = told(state="IDLE")
    (alone,) = NodeRecords().parse(completed(text.replace(b" Partitions=gpu,all ", b"")))
    assert (usable(node(state="IDLE")), usable(alone)) == (True, False)


def test_what_is_in_use_is_not_known_where_slurm_does_not_tell_it():
    assert node(used="(null)").gpus_used is None
    assert node(gres="(null)", used="(null)").gpus_used == 0


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("IDLE", "idle"), ("MIXED", "mix"), ("ALLOCATED", "alloc"), ("IDLE+DRAIN", "drain"), ("MIXED+DRAIN", "drng"),
        ("DOWN*", "down*"), ("DOWN*+DRAIN", "drain*"), ("IDLE+CLOUD+POWERED_DOWN", "idle~"), ("MIXED+CLOUD", "mix"),
        ("IDLE+MAINTENANCE", "maint"), ("IDLE+RESERVED", "resv"), ("IDLE+PLANNED", "plnd"), ("IDLE+COMPLETING", "comp"),
        ("IDLE+NOT_RESPONDING", "idle*"), ("ALLOCATED+FAIL", "failg"),
    ],
)  # fmt: skip
def test_states_are_the_words_of_sinfo(state: str, word: str):
    assert node(state=state).state == word


def test_a_reason_has_its_time_and_cannot_write_the_other_fields():
    found = node(more=" Reason=State=IDLE bad fan CPUTot=9 [root@1700000000] Comment=RealMemory=1", state="DOWN")
    assert found.reason == "State=IDLE bad fan CPUTot=9"
    assert found.since == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert (found.state, found.cpus, found.memory_bytes) == ("down", 32, 256000 * 2**20)


@pytest.mark.parametrize("reason", ["Lüfter defekt", "a\u2028b", "x" * 256])
def test_a_reason_may_hold_anything(reason: str):
    assert node(more=f" Reason={reason} [root@1700000000]").reason == reason


def test_memory_that_is_not_told_is_not_known():
    text = told().replace(b"FreeMem=14515", b"FreeMem=N/A")
    assert NodeRecords().parse(completed(text))[0].memory_free_bytes is None


def test_a_reason_may_hold_a_newline():
    text = told(more=" Reason=one\ntwo [root@1700000000]") + told()
    first, second = NodeRecords().parse(completed(text))
    assert (first.reason, second.reason) == ("one\ntwo", None)


@pytest.mark.proves("garbage-is-an-error")
@pytest.mark.parametrize("text", [b"NodeName=g1 what is this\n", told().replace(b"CPUAlloc=8", b"CPUAlloc=many")])
def test_what_cannot_be_read_is_an_error(text: bytes):
    with pytest.raises(SlurmGarbled):
        NodeRecords().parse(completed(text))


def test_a_cut_answer_is_an_error_and_silence_is_no_empty_cluster():
    with pytest.raises(SlurmGarbled):
        NodeRecords().parse(completed(told(), truncated=True))
    with pytest.raises(SlurmUnreachable):
        NodeRecords().parse(
            Completed(("scontrol",), 1, b"", b"slurm_load_node error: Unable to contact slurm controller\n", 0.1)
        )


async def test_what_is_in_use_on_the_fake_cluster_is_told():
    nodes = [FakeNode("a1", gpus=4, gpu_type="a100"), FakeNode("b1", down="fan"), FakeNode("c1", drained="disk")]
    slurm = FakeSlurm(nodes=nodes)
    slurm.submit("#!/bin/bash\nsleep 60\n", "--gres=gpu:2", "--mem=8G")
    await slurm.clock.advance(5)
    there = {one.name: one for one in NodeRecords().parse(answered(slurm, scontrol_nodes.argv()))}
    assert {name: (one.state, one.reason) for name, one in there.items()} == {
        "a1": ("mix", None), "b1": ("down", "fan"), "c1": ("drain", "disk"),
    }  # fmt: skip
    assert (there["a1"].gpus, there["a1"].gpus_used, there["a1"].memory_used_bytes) == (4, 2, 8 * 2**30)
    assert (there["b1"].gpus, there["b1"].gpus_used) == (0, 0)


def answered(slurm: FakeSlurm, argv: list[str]) -> Completed:
    said = slurm.command(*argv)
    return Completed(tuple(argv), said.code, said.out.encode(), said.err.encode(), 0.1)


def test_of_a_second_look_only_what_changed_is_read_again():
    records, other = NodeRecords(), told().replace(b"g1", b"g2")
    first, second = records.parse(completed(told() + other))
    again, changed = records.parse(completed(told() + other.replace(b"CPUAlloc=8", b"CPUAlloc=9")))
    assert again is first
    assert (second.cpus_used, changed.cpus_used) == (8, 9)
    assert [one.name for one in records.parse(completed(other))] == ["g2"]
