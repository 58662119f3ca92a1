from __future__ import annotations

import pytest

from slurm_agent_tools.models.request import JobRequest, Pin
from slurm_agent_tools.scripts.directive_lines import arguments_to_directives, pins_to_directives, read_directives
from slurm_agent_tools.scripts.effective_request import effective

GIB = 2**30


def request(line: str, **arguments: str) -> JobRequest:
    found = read_directives(f"#!/bin/bash\n#SBATCH {line}\n".encode(), "job.sh")
    assert not found.problems, found.problems
    named = {name.replace("_", "-"): value for name, value in arguments.items()}
    return effective([*found.directives, *arguments_to_directives(named)])


VALUES = [
    ("--mem=16G", "memory_per_node", 16 * GIB),
    ("--mem=16GB", "memory_per_node", 16 * GIB),
    ("--mem=4000", "memory_per_node", 4000 * 2**20),
    ("--mem=' 16G'", "memory_per_node", 16 * GIB),
    ("--mem=+16g", "memory_per_node", 16 * GIB),
    ("--mem=16777217K", "memory_per_node", 16385 * 2**20),
    ("--mem=0", "memory_per_node", 0),
    ("--mem-per-cpu=2G", "memory_per_cpu", 2 * GIB),
    ("--mem-per-gpu=1T", "memory_per_gpu", 1024 * GIB),
    ("-t 20", "time_limit", 1200),
    ("-t 20:00", "time_limit", 1200),
    ("-t 90:30", "time_limit", 91 * 60),
    ("-t 1:99:00", "time_limit", 159 * 60),
    ("-t 1-", "time_limit", 86400),
    ("-t 1-2", "time_limit", 26 * 3600),
    ("-t 1-2:3:4", "time_limit", 86400 + 7440),
    ("-t 0", "time_limit", -1),
    ("-t infinite", "time_limit", -1),
    ("-n 08", "ntasks", 8),
    ("-n '  4'", "ntasks", 4),
    ("-N 1k", "nodes", 1024),
    ("-N 2-4", "nodes_max", 4),
    ("-N +2", "nodes", 2),
    ("-N 1m", "nodes", 2**20),
    ("-N 1,5,9", "nodes_max", 9),
    ("-N 2-8:2", "nodes", 2),
    ("-G 4", "gpus", 4),
    ("-G a100:4", "gpus", 4),
    ("-G a100:2,h100:1", "gpus", 3),
    ("-G a100", "gpus", 1),
    ("--gpus-per-node=a100:2", "gpus_per_node", 2),
    ("--gpus-per-task=2", "gpus_per_task", 2),
    ("--gpus-per-socket=1", "gpus_per_socket", 1),
    ("--gres=gpu", "gpus_per_node", 1),
    ("--gres=gpu:2", "gpus_per_node", 2),
    ("--gres=gres:gpu:2", "gpus_per_node", 2),
    ("--gres=gpu:a100", "gpus_per_node", 1),
    ("--gres=gpu:a100:2", "gpus_per_node", 2),
    ("--gres=gpu:nvidia_h100_80gb_hbm3_3g.40gb:1", "gpus_per_node", 1),
    ("--gres=gpu:a100:2,gpu:h100:1", "gpus_per_node", 3),
    ("--gres=gpu:1,gpu:2", "gpus_per_node", 2),
    ("--gres=gpu:1 --gres=gpu:4", "gpus_per_node", 4),
    ("--gres=gpu:0", "gpus_per_node", 0),
    ("--gres=none", "gpus_per_node", None),
    ("--gres=shard:4,lustre:1", "gpus_per_node", None),
    ("--gpus-per-node=1 --gres=gpu:4", "gpus_per_node", 4),
    ("--gres=gpu:4 --gpus-per-node=1", "gpus_per_node", 4),
    ("--gres=lustre:1 --gpus-per-node=2", "gpus_per_node", 2),
    ("--tres-per-task=cpu=4,gres/gpu=2", "gpus_per_task", 2),
    ("--tres-per-task=cpu:4,gres/gpu:a100:2", "cpus_per_task", 4),
    ("--tres-per-task=cpu=4", "gpus_per_task", None),
    ("--requeue", "requeue", True),
    ("--requeue --no-requeue", "requeue", False),
    ("--no-requeue --requeue", "requeue", True),
    ("-n4 -n2", "ntasks", 2),
    ("-N4 -n2", "nodes", 2),
    ("-N1-3 -n1", "nodes_max", 1),
    ("-p gpu,cpu", "partition", "gpu,cpu"),
    ("-d afterok:1", "dependency", "afterok:1"),
    ("-D x -o y -e z", "chdir", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "field", "value"), VALUES, ids=[line for line, *_ in VALUES])
def test_a_value_is_read_as_sbatch_reads_it(line: str, field: str, value: object):
    found = request(line)

    assert not found.problems
    assert getattr(found, field) == value


BAD = [
    "--mem=1.5G", "--mem=16Gi", "--mem=16GiB", "--mem=0x10G", "--mem=1P", "--mem=-1", "--mem=16B", "--mem='16G '", "--mem=",
    "--mem=18014398509481984G", "--mem-per-cpu=x", "-t 5s", "-t 1:2:3:4", "-t ' 10'", "--time=:30", "-t 1.5", "-t 99999999999",
    "-t -5", "-n 0", "-n -3", "-n 4k", "-n 4.5", "-n 0x10", "-n '4 '", "-c 0", "-N 0", "-N 2-1", "-N 2-", "-N x",
    "--gres=gpu=2", "--gres=gpu:a100=2", "--gres=gpu:a100:2,gpu:1", "--gres=gpu:a:b:3", "--gres=gpu:-1", "-G x:y", "-G -1",
    "-a x", "-a 3-1", "--mincpus=x", "-B a:b", "--tres-per-task=x", "-n x -n 2",
    "--gpus-per-task=1 --ntasks-per-gpu=1 -n1", "--gpus-per-socket=1 --ntasks-per-gpu=1", "--ntasks-per-node=1 --ntasks-per-gpu=1",
    "--core-spec=1 --thread-spec=1", "--tmp=x", "-w ./nodes", "-x /tmp/nodes", "--mem=1G --mem-per-cpu=1G", "--mem-per-gpu=1G --mem=1G --gpus=1", "--tres-per-task=cpu=2 -c 2",
]  # fmt: skip


@pytest.mark.parametrize("line", BAD)
def test_a_value_that_cannot_be_read_is_a_problem(line: str):
    problems = request(line).problems

    assert len(problems) == 1
    assert problems[0].line == 2
    assert problems[0].text.startswith("--")


def test_the_command_line_beats_the_script_and_a_pin_beats_both():
    script = read_directives(b"#!/bin/bash\n#SBATCH -p cpu -t 60 -n 4\n", "job.sh").directives
    arguments = arguments_to_directives({"partition": "gpu", "time": "30"})
    pins = pins_to_directives([Pin("--time=10", "short"), Pin("--mem-per-gpu=16G", "none stated")])

    found = effective([*pins, *script, *arguments])

    assert (found.partition, found.time_limit, found.ntasks, found.memory_per_gpu) == ("gpu", 600, 4, 16 * GIB)
    assert [one.source for one in found.find("time")] == ["script", "argument", "pinned"]


def test_memory_on_the_command_line_does_not_replace_another_kind_in_the_script():
    assert "exclude each other" in request("--mem-per-cpu=1G", mem="4G").problems[0].text


def test_an_array_keeps_its_throttle():
    array = request("-a 0-99%4").array

    assert array is not None
    assert (array.count, array.concurrency) == (100, 4)


def test_an_argument_or_pin_that_sbatch_does_not_know_is_refused():
    with pytest.raises(ValueError, match="no option"):
        arguments_to_directives({"bogus": "1"})
    with pytest.raises(ValueError, match="no option"):
        pins_to_directives([Pin("--bogus", "why")])


@pytest.mark.parametrize("line", ["--account=", "--qos=", "--qos=,"])
def test_an_option_that_names_nothing_is_a_problem_that_says_which_and_what_to_do(line: str):
    (problem,) = request(line).problems
    option, _, value = line.partition("=")
    assert problem.text == f"{option}: an empty word names nothing: {value!r} (write a name, or delete the option)"


LONG = [
    ("partition", ",".join(["gpu"] * 300), 1024), ("qos", "q," * 600, 1024), ("account", "a" * 1025, 1024),
    ("licenses", "l," * 600, 1024), ("reservation", "r," * 600, 1024), ("constraint", "c&" * 600, 1024),
    ("gres", ",".join(["gpu:1"] * 300), 1024), ("gpus", ",".join(["a:1"] * 300), 1024), ("nodes", "1," * 600, 1024),
    ("tres-per-task", ",".join(["cpu=1"] * 300), 1024), ("array", ",".join(map(str, range(2000))), 4096),
    ("dependency", f"afterok{':1' * 3000}", 4096), ("comment", "c" * 1025, 1024),
]  # fmt: skip


@pytest.mark.parametrize(("option", "value", "most"), LONG, ids=[option for option, _, _ in LONG])
def test_a_value_that_is_longer_than_slurm_takes_is_a_problem_that_says_which_and_what_to_do(
    option: str, value: str, most: int
):
    (problem,) = request(f"--{option}={value}").problems

    assert problem.text == f"--{option}: longer than {most} letters: {value[:40]!r}... (name fewer, each once)"


@pytest.mark.parametrize("option", ["nodelist", "exclude"])
def test_more_nodes_than_slurm_takes_are_a_problem(option: str):
    assert request(f"--{option}=n[1-5000]").problems == ()
    for names in (",".join(["n[1-2]"] * 2501), f"n[1-{'9' * 5000}]"):
        (problem,) = request(f"--{option}={names}").problems
        assert problem.text == f"--{option}: names more than 5000 nodes: {names[:40]!r}... (name fewer, each once)"


def test_what_a_ticket_names_is_known_where_it_is_too_long_as_well():
    found = request(f"--partition={'p' * 1025} --qos={'q' * 1025} --dependency={'d' * 5000}")

    assert [len(text or "") for text in (found.partition, found.qos, found.dependency)] == [1025, 1025, 5000]
    assert len(found.problems) == 3


def test_a_long_value_is_told_in_part():
    (problem,) = request(f"--mem={'x' * 10_000}").problems

    assert len(problem.text) < 500
    assert problem.text.endswith("(write 512M, 16G or 1T)")
