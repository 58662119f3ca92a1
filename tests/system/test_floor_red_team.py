"""Requests and changes of which Slurm gave more than the floor or a ticket counted: each is refused now, by every version."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.system.ticket_site import VERSION, Site, asked_by_root, private, sbatch
from tests.watchdog import until

pytestmark = pytest.mark.proves("floor-holds")

# Partition, words. What was given for them stands behind, as (CPUs, MB, GPUs) of each node; limits: 8 GPUs, 16G for each.
BEYOND = [
    "three --gpus-per-node=4 --constraint=[a100*2&h100*1] --mem-per-gpu=16G",  # (1,65536,4) three times
    "gpu --gpus-per-node=4 --constraint=a100*2 --mem-per-gpu=16G",
    "three --gpus-per-task=4 -n1 --constraint=[a100*1&h100*1] --mem=64G",
    "gpu --gpus=4 -N2 --cpus-per-gpu=8 --mem-per-cpu=2G",  # 24.11, 26.05: (24,49152,3)(24,49152,1)
    "gpu --gpus-per-task=1 -N2 -n4 --cpus-per-gpu=8 --mem-per-cpu=2G",
    "gpu --gpus=4 -N2 --ntasks-per-node=3 --cpus-per-gpu=4 --mem-per-cpu=4G",  # 24.11: (12,49152,3)(12,49152,1)
    "three --gpus=4 --gpus-per-socket=4 --sockets-per-node=1 -N2 --ntasks-per-node=4 --mem-per-gpu=16G",  # 22.05: 12 GPUs
    "gpu --gpus=4 --gpus-per-socket=1 --sockets-per-node=2 -N1 -n1 --mem=64G",  # (1,65536,1)
    "gpu --gres=gpu:1 -N1 -n8 -w{pre}gpu01,{pre}gpu02 --mem-per-cpu=2340M",  # 24.11, 26.05: (8,18720,1)
    "gpu --gres=gpu:3 --mem=3G -wfeature{{a100}}",  # 24.11, 26.05: (1,3072,3)(1,3072,3)
    "special --gpus=h100:4 --gpus-per-node=a100:4 -N1 --mem-per-gpu=16G",  # where a node has both: (1,131072,8)
    "special -N1 -n1 --gpus-per-task=h100:4 --gres=gpu:a100:4 --mem=64G",  # the same
    "three --gpus=1 -n12 --ntasks-per-socket=1 --mem=1G",  # 24.11, 26.05, of -n6: 3 GPUs on three nodes
    "special -N1 -n1 --gpus=1 --cpus-per-gpu=1 --ntasks-per-core=60 --mem-per-cpu=15G",  # 24.11, 26.05: (60,921600,1)
    "special -N1 -n1 --gpus-per-task=h100:4 --cpus-per-gpu=1 --mem-per-gpu=16G",  # 22.05: 8 GPUs
    "three -w{pre}gpu01,{pre}spec01 --contiguous --gres=gpu:2 --mem=32G",  # 22.05: gpu02 as well
    "three -N2-3 -w{pre}gpu01,{pre}gpu02,{pre}spec01 --gpus=4 --cpus-per-gpu=8 --mem-per-cpu=2G",  # 24.11, 26.05: 48G for 1
    "special -N1 --gpus=4 --gpus-per-task=1 -c4 --mem=64G",  # 22.05: 1 GPU
    "gpu -n1 --gpus=4 --gpus-per-node=2 --mem=32G -mblock:block",  # 24.11, where GPUs are taken: (32G,2)(32G,0)
    "three -N1-3 --gres=gpu:1 --cpus-per-gpu=8 -mplane=60 --mem-per-cpu=2G",  # 22.05: (24,49152,1) and two whole nodes
    "three -N1-2 -n2 --gpus-per-node=2 -mplane=60 --mem=32G",  # 26.05: (32G,2)(32G,0)
    "three -N1 -n1 --ntasks-per-gpu=3 --mem=17G",  # 22.05: no GPU
    "three -n6 --ntasks-per-gpu=1 --gpus-per-node=2 --cpus-per-gpu=1 --mem-per-gpu=16G",  # 24.11: 6 GPUs on three nodes
    "gpu -N1 -n4 --ntasks-per-node=1 --gpus-per-task=1 --mem=64G",  # 24.11, 26.05, once released: (1,65536,1)
    "special -N1 -n1 --ntasks-per-node=4 --gpus-per-task=1 --mem=16G",  # the same, four GPUs where one was asked for
    "three --ntasks-per-node=6 --gpus-per-node=4 --mem-per-gpu=16G -O --cores-per-socket=8",  # 24.11: two nodes, 8 GPUs
    "gpu -O --cores-per-socket=16 --gpus-per-node=4 --mem-per-cpu=16G",  # 22.05: the same
    "three -O --sockets-per-node=2 --cores-per-socket=16 --gpus-per-task=0 --mem-per-cpu=6G",  # 22.05: (32,196608)
    "three -N1 -O --cores-per-socket=16 --gpus-per-task=0 --gpus-per-node=1 --mem-per-cpu=12G",  # 22.05: (16,196608,1)
    "gpu -N1 --gpus=maaazaaaznmm:3,a100:1 --mem=64G",  # to Slurm one type, of which the last number counts: (1,65536,1)
    "secret,three -N3 --mem-per-cpu=2G",  # 22.05, 24.11: whole nodes, 160 CPUs, 320G, 16 GPUs
    "gpu,secret -N1 -n1 --mem=1G",
    "gpu -N2 -n3 --ntasks-per-node=1 --gpus=2 --cpus-per-gpu=3 --mem-per-cpu=5400M -mplane=2",  # 26.05: (6,32400,1)
    "three -n2 --ntasks-per-node=1 --cpus-per-gpu=7 -mplane=2 --mem=50M",  # 22.05: 58 CPUs, and two in the accounting
    "gpu -n2 --gpus-per-node=2 --mem-per-gpu=16G --threads-per-core=1 -mplane=2",  # 24.11: (2,32G,2)(32,32G,0)
    "gpu -N1 -n4 --ntasks-per-gpu=1 --mem=64G",  # 24.11 never runs it once it was held, 26.05 takes the GPUs off by a flag
]
WITHIN = [
    "gpu --gpus=4 -N1 --cpus-per-gpu=8 --mem-per-cpu=2G",
    "gpu --gpus-per-node=2 -N2 --cpus-per-gpu=4 --mem-per-cpu=4G",
    "gpu --gpus=2 --constraint=a100 --mem-per-gpu=16G",
    "three --gpus=1 --ntasks-per-gpu=3 -n9 --mem-per-gpu=16G",  # 24.11, 26.05: three GPUs, which are free
    "gpu -N1 -n2 --gpus=2 --ntasks-per-socket=1 --mem=16G",
    "gpu -n1 --gpus=2 --mem=32G",
    "gpu --gpus=1 --cpus-per-gpu=8 --mem=16G",  # sbatch of 24.11 and 26.05 writes the CPUs of GPUs as those of the job
    "gpu --gpus-per-node=1 --cpus-per-gpu=8 --mem=16G",
    "gpu --gpus-per-node=4 --cpus-per-gpu=2 --mem=64G",
    "gpu --gres=gpu:2 --cpus-per-gpu=4 --mem=32G",
    "gpu -N1 -n2 --gpus-per-node=2 --mem-per-gpu=16G --threads-per-core=1",
]
# 22.05 with -O and plane: memory, or no limit of it, and no GPU, and its slurmctld ends when a step is started there.
OF_TASKS = [
    "special -N1 --gpus=4 --gpus-per-task=1 -c4 --mem-per-gpu=16G",
    "gpu -N1 -n1 --gpus-per-task=4 -c4 --mem=64G -O -mplane=8",
    "gpu -N1 -n2 --gpus-per-task=2 --cpus-per-gpu=4 --mem-per-cpu=1000 -O -mplane=8",
    "three -N2 -n2 --gpus=3 --cpus-per-gpu=2 --mem-per-gpu=1G -O",  # no GPU on the second node, where a step runs
]
(BEYOND if VERSION is None else WITHIN).extend(OF_TASKS)
# Words of a job, whether it has a ticket, and the change: what it gave.
CHANGES = [
    ("--partition=gpu --gpus=1 -N1 -n1 -c32 --mem-per-gpu=16G", True, "MinMemoryCPU=1999"),  # (32,63968,1)
    ("--partition=gpu --gpus=1 -N1 -n1 -c32 --mem-per-gpu=1G", True, "MinMemoryCPU=1999"),
    ("--partition=three --gpus=4 -n4 -N1 --mem=4000M", False, "TresPerTask=gres/gpu:2"),  # 24.11, 26.05: 8 GPUs
    ("--partition=three --gpus=4 -n4 -N1 --mem=4000M", True, "TresPerTask=gres/gpu:2"),
    ("--partition=three --gpus-per-node=4 --mem-per-gpu=16G", False, "Features=a100*2"),  # 8 GPUs
    ("--partition=three --gpus-per-node=4 --mem-per-gpu=16G", True, "Features=a100*2"),
    ("--partition=three --gres=gpu:1 -N1 --mem=1G", False, "NumNodes=1-3"),
    ("--partition=three --gres=gpu:1 -N1 --mem=1G", True, "NumNodes=1-3"),
    (
        "--partition=gpu -N1 --ntasks-per-node=4 --gpus-per-task=1 --mem=16G",
        False,
        "NumNodes=2",
    ),  # 24.11, 26.05: 8 GPUs
    ("--partition=gpu -N1 --ntasks-per-node=4 --gpus-per-task=1 --mem=16G", True, "NumNodes=2"),
    *(
        ("--partition=gpu -N1 -n1 --gpus=4 --mem-per-cpu=2G", ticket, f"TresPerJob=gres{sign}gpu:1")
        for ticket in (False, True)
        for sign in ":/"  # with many tasks by node: 64G for it
    ),
    ("--partition=special -N1 -n1 -c50 --mem=1G", False, "MinCPUsNode=1"),  # then MinMemoryCPU=16384: (50,819200)
    ("--partition=special -N1 -n50 --ntasks-per-node=50 --mem=18G", True, "MinCPUsNode=1"),
    ("--partition=special -N1 -n1 --ntasks-per-node=60 --mem=1G", False, "MinMemoryCPU=16384"),  # 24.11: (60,983040)
    ("--partition=special -N1 -n1 --ntasks-per-node=30 --mem=15G", True, "MinMemoryCPU=16384"),
    (
        "--partition=special -N1 -n60 --ntasks-per-node=60 --gpus=1 --cpus-per-gpu=1 -O --mem=1G",
        False,
        "MinMemoryCPU=16384",
    ),
    ("--partition=gpu -N1 -n2 --gpus-per-task=1 --mem-per-gpu=16G", False, "TresPerTask=gres/gpu:2"),
    ("--partition=special -N1 -n1 --mem-per-cpu=16G", False, "NumNodes=60"),  # 22.05 refuses it, and gave (60,983040)
    ("--partition=special -N1 -n1 --mem-per-cpu=16G", True, "NumNodes=60"),
    # With -O and a layout: 16 CPUs for it.
    ("--partition=gpu -N1 -n1 --gpus=1 --mem-per-cpu=12G", False, "TresPerTask="),
    ("--partition=gpu -N1 --gpus-per-node=1 --cpus-per-gpu=1 --mem-per-cpu=8G", True, "CpusPerTres="),
    # 22.05 adds them to the four: a100=4,h100=2
    ("--partition=three -N2 --gpus=a100:4 --mem=16G", False, "TresPerJob=gres:gpu:h100:2"),
    ("--partition=three -N2 -n2 --gpus=a100:4 --mem=16G", True, "TresPerJob=gres:gpu:a100:2,gres:gpu:h100:2"),
    # Slurm refuses the last word, and what stands before it stays: (1,65536,1) and, on 22.05, (16,262144)
    ("--partition=special -N1 -n1 --gpus=1 --mem=1G", False, "TresPerJob=gres:gpu:4 MinMemoryNode=65536 Contiguous=1"),
    ("--partition=special -N1 -n1 --gpus=1 --mem=1G", False, "TresPerJob=gres/gpu:4 MinMemoryNode=65536 Contiguous=1"),
    ("--partition=special -N1 -n1 --mem-per-cpu=16G --hold", False, "NumCPUs=16 MinMemoryCPU=1024 Nice=-5"),
    ("--partition=special -N1 -n1 --mem-per-cpu=16G --hold", True, "NumCPUs=16 MinMemoryCPU=1024 Nice=-5"),
]
if VERSION is not None:  # 22.05 is given no such job
    CHANGES += [
        ("--partition=gpu -N1 -n1 -c4 --gpus-per-task=1 --mem=1G", False, "MinMemoryNode=65536"),
        ("--partition=gpu -N2 -n2 -c8 --gpus-per-task=1 --mem=1G", False, "MinMemoryCPU=16384"),  # (8,131072,1) twice
    ]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with private() as made:
        nodes = [name for name in made.place.cluster.nodes if "gpu" in name or "spec" in name]
        asked_by_root(made, "scontrol", "create", "PartitionName=three", f"Nodes={','.join(nodes)}", "State=UP")
        closed = ("AllowGroups=root", "OverSubscribe=EXCLUSIVE", "State=UP")
        asked_by_root(made, "scontrol", "create", "PartitionName=secret", f"Nodes={','.join(nodes)}", *closed)
        yield made


def answered(site: Site, words: str) -> tuple[str | None, str]:
    """The job that was accepted, and what was said."""
    prefix = next(iter(site.place.cluster.nodes))[:-5]
    partition, *rest = words.format(pre=prefix).split()
    told = sbatch(site, f"-p{partition}", "-t5", *rest)
    site.place.run(["scancel", "--me"])
    return told


@pytest.mark.parametrize("words", BEYOND)
def test_what_slurm_gives_more_of_than_the_words_say_is_refused(site: Site, words: str):
    job, said = answered(site, words)
    assert job is None, said


@pytest.mark.parametrize("words", WITHIN)
def test_what_is_like_it_and_within_the_limits_is_let_in(site: Site, words: str):
    job, said = answered(site, words)
    assert job is not None, said


@pytest.mark.parametrize("ticket", [False, True])
@pytest.mark.parametrize(
    ("words", "added"),
    [
        ("--partition=gpu -n1 --gpus=2 --mem=32G", "-mcyclic:block"),
        ("--partition=three --ntasks-per-node=6 --gpus-per-node=4 --mem-per-gpu=16G", "-O --threads-per-core=1"),
        ("--partition=three --nodes=1-2 -n1 --mem=16G", "-mplane=4"),
        ("--partition=three --gpus=1 --cpus-per-gpu=8 --mem=16G", ""),
        ("--partition=three --gpus-per-node=2 --cpus-per-gpu=4 --mem=32G", ""),
    ],
)
def test_a_job_comes_on_no_more_nodes_than_were_counted(site: Site, words: str, added: str, ticket: bool):
    """24.11 else gave two: with a way for sockets all of the memory again."""
    asked = (*words.split(), "--time=5")
    more = (f"--comment={site.give(site.ceilings(asked))}",) if ticket else ()
    job, said = sbatch(site, *asked, *added.split(), "--hold", *more)
    assert job is not None, said
    shown = site.place.run(["scontrol", "--oneliner", "show", "job", job]).stdout
    assert re.search(rb" NumNodes=1(?:-1)? ", shown), shown


def test_a_partition_with_a_fewest_number_of_nodes_gives_no_more_than_the_limits(site: Site):
    nodes = [name for name in site.place.cluster.nodes if "gpu" in name or "spec" in name]
    asked_by_root(site, "scontrol", "create", "PartitionName=two", f"Nodes={','.join(nodes)}", "MinNodes=2", "State=UP")
    beyond = ("--partition=two", "--gpus-per-node=4", "--mem-per-gpu=16G", "--time=5")  # 8 GPUs on two nodes
    assert sbatch(site, *beyond)[0] is None
    one = replace(site.ceilings(("--partition=three", *beyond[1:])), partitions=())
    assert sbatch(site, *beyond, f"--comment={site.give(one)}")[0] is None
    job, said = sbatch(site, "--partition=two", "--gpus=2", "--mem=1G", "--time=5")
    assert job is not None, said  # MaxNodes is not less than MinNodes
    shown = site.place.slurm("scontrol", "-o", "show", "job", job)
    site.place.run(["scancel", job])
    assert " NumNodes=2" in shown


@pytest.mark.parametrize("words", ["--mem-per-cpu=1G", "--mem=32G --gpus-per-node=2"])
def test_each_node_of_such_a_partition_has_a_task(site: Site, words: str):
    """22.05 gave the second one, which had none, 32 CPUs and no limit of memory, or 32G and no GPU."""
    nodes = [name for name in site.place.cluster.nodes if "gpu" in name]
    asked_by_root(
        site, "scontrol", "create", "PartitionName=both", f"Nodes={','.join(nodes)}", "MinNodes=2", "State=UP"
    )
    job, said = sbatch(site, "--partition=both", "-n1", "-O", "-mplane=60", "--time=5", *words.split())
    assert job is not None, said
    asked_by_root(site, "scontrol", "release", job)
    shown = ("scontrol", "--details", "--oneliner", "show", "job", job)
    until(lambda: "JobState=RUNNING" in site.place.slurm(*shown))
    told = re.findall(r" Mem=(\d+) GRES=(\S*)", site.place.slurm(*shown))
    site.place.run(["scancel", job])
    asked_by_root(site, "scontrol", "delete", "PartitionName=both")
    assert [(int(size) > 0, "gpu" in gres) for size, gres in told] == [(True, "gpus" in words)] * len(told)
    assert len(told) in {1, 2}  # of both together where they are alike


@pytest.mark.parametrize("added", ["--constraint=a100*2", "--constraint=[a100*2&h100*1]", "--prefer=a100*2"])
def test_no_ticket_lets_a_constraint_name_more_nodes_than_it_is_for(site: Site, added: str):
    """Two nodes and three of one were given, with 8 and 12 GPUs of four."""
    asked = ("--partition=three", "--gpus-per-node=4", "--mem-per-gpu=16G", "--time=5")
    word = f"--comment={site.give(site.ceilings(asked))}"
    job, said = sbatch(site, *asked, added, word)
    assert (job, "with a number of nodes takes more than it shows" in said) == (None, True)
    job, said = sbatch(site, *asked, "--constraint=a100", word)
    site.place.run(["scancel", "--me"])
    assert job is not None, said


@pytest.mark.parametrize("ticket", [False, True])
def test_a_job_with_memory_of_each_gpu_can_be_changed_once_slurm_has_looked_at_it(site: Site, ticket: bool):
    """A memory of 0 stands beside it then, for which each change of it was refused."""
    asked = ("--partition=three", "--nodes=1", "--gpus=4", "--mem-per-gpu=16G", "--time=5", "--begin=now+1hour")
    more = (f"--comment={site.give(site.ceilings(asked))}",) if ticket else ()
    job, said = sbatch(site, *asked, *more)
    assert job is not None, said
    fewer = re.sub(r"4$", "3", re.findall(r"TresPerJob=\S+", site.place.slurm("scontrol", "show", "job", job))[0])
    for words in ("TimeLimit=4", "Features=ib", "Comment=mine", fewer):
        site.place.slurm("scontrol", "update", f"JobId={job}", words)
    done = site.place.run(["scontrol", "update", f"JobId={job}", "MinMemoryNode=1024"])
    shown = site.place.slurm("scontrol", "-o", "show", "job", job)
    site.place.run(["scancel", job])
    assert done.returncode != 0
    assert "gpu:3" in shown
    assert "Features=ib" in shown


@pytest.mark.parametrize("ticket", [False, True])
@pytest.mark.parametrize("words", ["--gpus=2 --mem-per-gpu=1G", "-n2 --gpus=2 --ntasks-per-node=2 --mem=1G"])
def test_a_job_waits_for_no_more_nodes_than_its_partition_gives(site: Site, words: str, ticket: bool):
    """What Slurm would give on one node waited for ever for PartitionNodeLimit, once two were written into it."""
    asked = ("--partition=special", *words.split(), *(("--nodes=1",) if ticket else ()), "--time=5")
    more = (f"--comment={site.give(site.ceilings(asked))}",) if ticket else ()
    job, said = sbatch(site, *asked, *more)
    assert job is not None, said
    asked_by_root(site, "scontrol", "release", job)
    state = ("squeue", "--noheader", f"--jobs={job}", "--format=%T %r")
    until(lambda: re.search(r"RUNNING|PartitionNodeLimit", site.place.slurm(*state)))
    shown = site.place.slurm(*state)
    site.place.run(["scancel", job])
    assert "RUNNING" in shown


@pytest.mark.parametrize("ticket", [False, True])
@pytest.mark.parametrize(
    ("words", "node"),
    [
        ("-N3 -n48 --ntasks-per-node=16 --mem-per-cpu=1G", "16G"),  # 22.05: 61G on one node of four
        ("-N2 -n6 -c2 --ntasks-per-node=3 --gpus-per-node=2 --mem-per-cpu=1G", "6G"),
        ("-N2 -n4 --ntasks-per-node=2 --gpus-per-node=1 --mem-per-cpu=8G", "16G"),
    ],
)
def test_tasks_of_each_node_have_the_memory_that_was_counted_for_it(site: Site, words: str, node: str, ticket: bool):
    asked = ("--partition=three", *words.split(), "--time=5")
    more = (f"--comment={site.give(site.ceilings(asked))}",) if ticket else ()
    job, said = sbatch(site, *asked, "-mplane=2", *more)
    assert job is not None, said
    shown = site.place.slurm("scontrol", "--oneliner", "show", "job", job)
    later = site.place.run(["scontrol", "update", f"JobId={job}", "MinMemoryCPU=8G"])
    site.place.run(["scancel", job])
    assert f" MinMemoryNode={node} " in shown
    assert later.returncode != 0


@pytest.mark.parametrize(("words", "ticket", "change"), CHANGES)
def test_a_change_by_which_slurm_gives_more_is_refused(site: Site, words: str, ticket: bool, change: str):
    asked = (*words.split(), "--time=5")
    more = (f"--comment={site.give(site.ceilings(asked))}",) if ticket else ()
    time.sleep(0.06)  # after twenty that are refused in a second others are refused unread
    job, said = sbatch(site, *asked, *more)
    assert job, said
    before, cpus = site.log(), re.findall(r"NumCPUs=\S+", site.place.slurm("scontrol", "show", "job", job))
    done = site.place.run(["scontrol", "update", f"JobId={job}", *change.split()])
    shown = site.place.slurm("scontrol", "show", "job", job)
    site.place.run(["scancel", job])
    assert done.returncode != 0
    assert re.findall(r"NumCPUs=\S+", shown) == cpus
    assert "slurm-agent-tools floor: refused" in site.log()[len(before) :]  # not by Slurm, which may have half done it


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("--partition=gpu --gpus=1 --cpus-per-gpu=8 -N1 --mem=1G", "TresPerJob=gres{sign}gpu:4"),  # (32,1024,4)
        ("--partition=three -N1 --ntasks-per-node=4 --mem=1G", "NumNodes=3-3"),  # (4,1024,0) three times
        ("--partition=three -N1 --mincpus=4 -n1 --mem=1G", "NumNodes=3"),  # 22.05: not done, and yet 12 CPUs
    ],
)
def test_nodes_and_gpus_that_bring_cpus_along_are_not_made_more(site: Site, words: str, change: str):
    asked = (*words.split(), "--time=5")
    ticket = replace(site.ceilings(asked), gpus=4, nodes=3)
    job, said = sbatch(site, *asked, "--hold", f"--comment={site.give(ticket)}")
    assert job, said
    (before,) = re.findall(r"NumCPUs=\d+", site.place.slurm("scontrol", "show", "job", job))
    for sign in ":/":
        assert site.place.run(["scontrol", "update", f"JobId={job}", change.format(sign=sign)]).returncode != 0
    shown = site.place.slurm("scontrol", "show", "job", job)
    site.place.run(["scancel", job])
    assert f"{before} " in shown


@pytest.mark.parametrize("ticket", [False, True])
def test_no_change_takes_the_end_of_a_jobs_nodes_away(site: Site, ticket: bool):
    """24.11 and 26.05 gave the job of a ticket for one node six; 22.05 sends no such change."""
    asked = ("--partition=three", "-N1", "-n2", "-c8", "--mem=2G", "--time=5")
    more = (f"--comment={site.give(site.ceilings(asked))}",) if ticket else ()
    job, said = sbatch(site, *asked, "--hold", *more)
    assert job is not None, said
    done = site.place.run(["scontrol", "update", f"JobId={job}", "NumNodes=1-0"])
    assert done.returncode != 0 or b"Invalid numeric value" in done.stderr
    site.place.slurm("scontrol", "release", job)
    shown = site.place.slurm("scontrol", "-o", "show", "job", job)
    site.place.run(["scancel", job])
    assert re.search(r" NumNodes=1(?:-1)? ", shown), shown


def test_the_partition_to_which_the_jobs_of_one_that_drains_come_is_judged_too(site: Site):
    """Of all versions: a bare job with 4 nodes, 16 GPUs and 256G, and with a whole node."""
    nodes = [name for name in site.place.cluster.nodes if "gpu" in name or "spec" in name]
    asked_by_root(
        site, "scontrol", "create", "PartitionName=both", f"Nodes={','.join(nodes)}", "MinNodes=2", "State=UP"
    )
    words = ("PartitionName=drains", f"Nodes={','.join(nodes)}", "State=DRAIN", "Alternate=both")
    asked_by_root(site, "scontrol", "create", *words)
    asked = ("--partition=drains", "--gpus-per-node=4", "--mem-per-gpu=16G", "--time=5")
    assert sbatch(site, *asked)[0] is None
    job, said = sbatch(site, *asked, f"--comment={site.give(site.ceilings(asked))}")
    assert job is None
    assert "is not in its ticket" in said or "nodes are more than" in said


def test_a_partition_where_the_user_may_not_run_leaves_a_job_no_more_nodes(site: Site):
    """24.11 and 26.05 let the job wait there with its MinNodes, and moved it: 8 GPUs and 128G; 22.05 refuses it."""
    nodes = [name for name in site.place.cluster.nodes if "gpu" in name or "spec" in name]
    words = ("PartitionName=theirs", f"Nodes={','.join(nodes)}", "MinNodes=2", "AllowGroups=root", "State=UP")
    asked_by_root(site, "scontrol", "create", *words)
    job, said = sbatch(site, "--partition=theirs", "--gpus-per-node=4", "--mem-per-gpu=16G", "--time=5")
    assert job is not None or "not permitted" in said
    if job is not None:
        done = site.place.run(["scontrol", "update", f"JobId={job}", "Partition=gpu"])
        shown = site.place.slurm("scontrol", "-o", "show", "job", job)
        site.place.run(["scancel", job])
        assert done.returncode != 0 or re.search(r" NumNodes=1(?:-1)? ", shown), shown
    job, said = sbatch(site, "--partition=three", "--gpus-per-node=4", "--mem-per-gpu=16G", "--time=5", "--hold")
    assert job is not None, said
    site.place.slurm("scontrol", "update", f"JobId={job}", "Partition=gpu")
    site.place.run(["scancel", job])


def test_a_ticket_for_memory_of_a_whole_node_is_for_no_memory_of_each_cpu(site: Site):
    """96 CPUs with 6G each were given, 576G, for a ticket of 16G."""
    nodes = [name for name in site.place.cluster.nodes if "gpu" in name or "spec" in name]
    whole = "Exclusive=NODE" if VERSION == "26.05" else "OverSubscribe=EXCLUSIVE"
    asked_by_root(site, "scontrol", "create", "PartitionName=alone", f"Nodes={','.join(nodes)}", whole, "State=UP")
    asked = ("--partition=alone", "-n1", "-N1", "--mem=16G", "--time=5", "--exclusive")
    for memory in ("--mem-per-cpu=6G", "--mem=16G"):
        word = site.give(replace(site.ceilings(asked), cpus=96))
        job, said = sbatch(site, *asked[:3], memory, *asked[4:], f"--comment={word}")
        assert (job is None) is memory.startswith("--mem-per"), said
    site.place.run(["scancel", "--me"])


def test_thousands_of_names_are_not_looked_through(site: Site):
    asked = ("--partition=cpu", "--mem=1G", "--time=5")
    ticket = f"--comment={site.give(site.ceilings(asked))}"
    job, said = sbatch(site, f"-p{'a,' * 20_000}", *asked[1:], ticket)
    assert (job, said.count("partition is longer than 1024 letters")) == (None, 1)
    job, said = sbatch(site, *asked, ticket)
    site.place.run(["scancel", "--me"])
    assert job, said
