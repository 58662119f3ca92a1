"""Whole partitions and configurations as scontrol shows them, and changes that it made or refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.unit.slurm.answers import done

from slurm_agent_tools.errors import SlurmGarbled, SlurmRefused, SlurmUncertain
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.slurm.commands import (
    scontrol,
)

MIB, GIB = 2**20, 2**30
AWAY = b"sacct: error: Connection refused"


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


# --- scontrol show partition and config ---------------------------------------------------------------------------

PARTITION = (
    "PartitionName=gpu AllowGroups=ALL Default=YES QoS=N/A DefaultTime=01:00:00 MaxNodes=4 MaxTime=1-00:00:00 "
    "Nodes=g[1-4] OverSubscribe=EXCLUSIVE State=UP TotalCPUs=64 TotalNodes=4 JobDefaults=DefCpuPerGPU=4,DefMemPerGPU=900 "
    "DefMemPerCPU=100 MaxMemPerNode=2000 TRES=cpu=64,mem=4G,node=4,gres/gpu=8"
)


def partition(*changes: tuple[str, str]) -> Partition:
    text = PARTITION
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    [found] = scontrol.parse_partitions(done(f"\n{text}\n\n".encode()))
    return found


def test_a_whole_partition():
    assert partition() == Partition(
        "gpu", "UP", default=True, nodes=4, max_time_seconds=86_400, default_time_seconds=3600, max_nodes=4,
        def_mem_per_cpu=100 * MIB, def_mem_per_gpu=900 * MIB, def_cpu_per_gpu=4, max_mem_per_node=2000 * MIB, exclusive=True,
        total_cpus=64, total_gpus=8,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("MaxTime=1-00:00:00", "MaxTime=UNLIMITED", "max_time_seconds", None),
        ("DefaultTime=01:00:00", "DefaultTime=NONE", "default_time_seconds", None),
        ("MaxNodes=4", "MaxNodes=UNLIMITED", "max_nodes", None),
        ("Default=YES", "Default=NO", "default", False),
        ("OverSubscribe=EXCLUSIVE", "OverSubscribe=NO", "exclusive", False),
        ("OverSubscribe=EXCLUSIVE", "OverSubscribe=NO Exclusive=NODE", "exclusive", True),
        ("DefMemPerCPU=100", "DefMemPerCPU=UNLIMITED", "def_mem_per_cpu", None),
        ("DefMemPerCPU=100", "DefMemPerNode=100", "def_mem_per_node", 100 * MIB),
        ("MaxMemPerNode=2000", "MaxMemPerCPU=50", "max_mem_per_cpu", 50 * MIB),
        ("DefMemPerGPU=900", "DefX=1", "def_mem_per_gpu", None),
        ("DefCpuPerGPU=4,", "", "def_cpu_per_gpu", None),
        ("TRES=cpu=64,mem=4G,node=4,gres/gpu=8", "TRES=(null)", "total_gpus", 0),
        (",gres/gpu=8", "", "total_gpus", 0),
        ("State=UP", "State=DRAIN", "state", "DRAIN"),
        (
            "AllowGroups=ALL",
            "AllowGroups=ALL AllowAccounts=a,b DenyQos=low",
            "limited_to",
            ("AllowAccounts=a,b", "DenyQos=low"),
        ),
        ("State=UP", "RootOnly=NO AllowQos=ALL State=UP", "limited_to", ()),
    ],
)
def test_a_value_of_a_partition_is_what_it_says_or_not_known(old, new, field, value):
    assert getattr(partition((old, new)), field) == value


@pytest.mark.parametrize("broken", [("TotalNodes=4", "Total=4"), ("TotalCPUs=64", "TotalCPUs=x")])
def test_a_partition_that_cannot_be_read_is_an_error_that_names_what(broken):
    with pytest.raises(SlurmGarbled, match="scontrol"):
        scontrol.parse_partitions(done(PARTITION.replace(*broken).encode(), argv=scontrol.partitions_argv()))


BARE = [("DefMemPerCPU=100 ", ""), ("MaxMemPerNode=2000 ", ""), (",DefMemPerGPU=900", "")]


@pytest.mark.parametrize(
    ("stated", "config", "wanted"),
    [
        ({}, {"DefMemPerCPU": "7", "MaxMemPerCPU": "9"}, (7, None, 9, None)),
        ({}, {"DefMemPerNode": "7", "MaxMemPerNode": "9"}, (None, 7, None, 9)),
        ({"def_mem_per_cpu": 1}, {"DefMemPerNode": "7", "MaxMemPerNode": "9"}, (1, None, None, 9)),
        ({"def_mem_per_node": 1}, {"DefMemPerCPU": "7"}, (None, 1, None, None)),
        ({"max_mem_per_cpu": 1}, {"MaxMemPerNode": "9", "DefMemPerCPU": "7"}, (7, None, 1, None)),
        ({"max_mem_per_node": 1}, {"MaxMemPerCPU": "9"}, (None, None, None, 1)),
    ],
)
def test_the_clusters_memory_counts_where_a_partition_states_none(stated, config, wanted):
    part = replace(partition(*BARE), **{name: size * MIB for name, size in stated.items()})
    found = scontrol.with_defaults(part, config)
    told = (found.def_mem_per_cpu, found.def_mem_per_node, found.max_mem_per_cpu, found.max_mem_per_node)
    assert told == tuple(None if size is None else size * MIB for size in wanted)


def test_the_clusters_memory_per_gpu_counts_where_a_partition_states_none():
    config = {"JobDefaults": "DefCpuPerGPU=2,DefMemPerGPU=300"}
    assert scontrol.with_defaults(partition(*BARE), config).def_mem_per_gpu == 300 * MIB
    assert scontrol.with_defaults(partition(), config).def_mem_per_gpu == 900 * MIB
    assert scontrol.with_defaults(partition(*BARE), {}).def_mem_per_gpu is None
    assert scontrol.with_defaults(partition(), config).def_cpu_per_gpu == 4
    assert scontrol.with_defaults(partition(("DefCpuPerGPU=4,", "")), config).def_cpu_per_gpu == 2


def test_a_configuration_is_key_and_value_and_names_its_cluster():
    text = b"Configuration data as of now\nClusterName             = lab\nSlurmctldHost[0]        = h\nEmpty  = \n"
    assert scontrol.parse_config(done(text)) == {"ClusterName": "lab", "Empty": ""}
    with pytest.raises(SlurmGarbled, match="no ClusterName"):
        scontrol.parse_config(done(b"Other = 1\n"))


@pytest.mark.parametrize(
    ("code", "stderr", "error", "words"),
    [
        (1, b"Invalid job id specified", SlurmRefused, "Slurm refused scontrol release: Invalid job id"),
        (1, AWAY, SlurmUncertain, "scontrol release got no answer: sacct"),
        (None, b"", SlurmUncertain, "scontrol release got no answer: time limit"),
        (-9, b"", SlurmUncertain, "time limit"),
    ],
)
def test_a_change_that_failed_was_refused_or_nobody_knows(code, stderr, error, words):
    with pytest.raises(error, match=words):
        scontrol.check_change(done(b"", stderr, code, argv=["scontrol", "release", "7"]))
    scontrol.check_change(done(b"", AWAY, 0))
