import pytest

from slurm_agent_tools.models.request import Pin
from slurm_agent_tools.models.sbatch_options import find_long, read
from slurm_agent_tools.scripts.directive_lines import (
    MAX_BYTES,
    arguments_to_directives,
    pins_to_directives,
    read_directives,
)
from slurm_agent_tools.scripts.effective_request import effective

GB = 2**30


def header(*lines: str):
    return read_directives(("\n".join(["#!/bin/bash", *lines]) + "\n").encode("utf-8", "surrogateescape"), "j.sh")


def request(*lines: str):
    found = header(*lines)
    assert found.problems == []
    return effective(found.directives)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#SBATCH --mem=64G", {"mem": "64G"}),
        ("#SBATCH--mem=100G", {"mem": "100G"}),
        ("#SLURM --mem=1G", {"mem": "1G"}),
        ("#SBATCH --mem 64G --gpus 2", {"mem": "64G", "gpus": "2"}),
        ("#SBATCH -G8", {"gpus": "8"}),
        ("#SBATCH -Hn4", {"hold": None, "ntasks": "4"}),
        ("#SBATCH -a1-3", {"array": "1-3"}),
        ("#SBATCH --part=gpu", {"partition": "gpu"}),
        ("#SBATCH --ta=3", {"ntasks-per-node": "3"}),
        ("#SBATCH --mem='6'4G", {"mem": "64G"}),
        ('#SBATCH -J "a b"', {"job-name": "a b"}),
        ("#SBATCH --mem=64G#16G", {"mem": "64G"}),
        ("#SBATCH --mem=64G # --gpus=4", {"mem": "64G"}),
        ("#SBATCH --exclusive", {"exclusive": None}),
        ("#SBATCH --exclusive=user", {"exclusive": "user"}),
        ("#SBATCH --requeue", {"requeue": None}),
        ("#SBATCH\t--mem=1G\v--gpus=1", {"mem": "1G", "gpus": "1"}),
        ("##SBATCH --mem=64G", {}),
        (" #SBATCH --mem=64G", {}),
        ("#sbatch --mem=64G", {}),
        ("#SBATCH --wrap=x --mem=1G", {"mem": "1G"}),
    ],
)
def test_a_line_is_read_as_sbatch_reads_it(line, expected):
    found = header(line)
    assert found.problems == []
    assert {directive.option: directive.value for directive in found.directives} == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("#SBATCH --memory=1G", "no option"),
        ("#SBATCH --me=1G", "ambiguous"),
        ("#SBATCH --gre=gpu:1", "ambiguous"),
        ("#SBATCH --gpu=1", "ambiguous"),
        ("#SBATCH gpu", "not an option"),
        ("#SBATCH --mem", "needs a value"),
        ("#SBATCH --hold=1", "takes no value"),
        ("#SBATCH -J 'open", "not closed"),
        ('#SBATCH --mem=64G "" --gpus=4', "empty word"),
        ("#SBATCH --comment=a\\ --mem=64G", "different versions"),
        ("#SBATCH --pty", "no option"),
        ("#SBATCH -y", "no option"),
        ("#PBS -l mem=100gb", "another scheduler"),
        ("#BSUB -M 1", "another scheduler"),
    ],
)
def test_a_line_that_cannot_be_read_is_a_problem_with_its_reason(line, why):
    [problem] = header(line).problems
    assert why in problem.text
    assert problem.line == 2


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"echo hi\n", "#!"),
        (b"\xef\xbb\xbf#!/bin/bash\n", "#!"),
        (b"#!/bin/bash\r\n#SBATCH --mem=1G\r\n", "DOS"),
        (b"#!/bin/bash\n\0", "NUL"),
        (b"#!/bin/bash\n" + b"#" * MAX_BYTES, "larger"),
    ],
)
def test_a_script_that_sbatch_refuses_is_a_problem(data, why):
    [problem] = read_directives(data, "j.sh").problems
    assert why in problem.text


def test_reading_stops_at_the_first_command_and_passes_blank_lines_and_comments():
    found = header("", "  # comment", "\t", "#SBATCH --mem=1G", ":", "#SBATCH --mem=900G")
    assert [directive.value for directive in found.directives] == ["1G"]
    assert [directive.evidence.line for directive in found.directives] == [5]


def test_a_justification_stands_behind_a_resource():
    assert header("#SBATCH --mem=24G  # JUSTIFIED: 7B model").justification == "7B model"
    assert header("#SBATCH -J x  # JUSTIFIED: 7B model").justification is None


def test_het_components_are_counted():
    assert header("#SBATCH -n1", "#SBATCH hetjob", "#SBATCH -n2").components == 2


def test_a_prefix_is_an_option_only_while_it_is_unambiguous():
    assert find_long("req").name == "requeue"
    assert find_long("mem").name == "mem"
    with pytest.raises(ValueError, match="ambiguous"):
        find_long("gpus-per-")


def test_words_behind_a_double_dash_are_refused():
    assert read(["--mem=1G", "--"])[0][1] == "1G"
    with pytest.raises(ValueError, match="behind"):
        read(["--", "x"])


# --- the effective request ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("--mem=16G", "memory_per_node", 16 * GB),
        ("--mem=16384", "memory_per_node", 16 * GB),
        ("--mem=0", "memory_per_node", 0),
        ("--mem-per-cpu=512M", "memory_per_cpu", GB // 2),
        ("--time=20:00", "time_limit", 1200),
        ("--time=90:30", "time_limit", 91 * 60),
        ("--time=1-0", "time_limit", 86400),
        ("--time=0", "time_limit", -1),
        ("--gpus=a100:2,h100:1", "gpus", 3),
        ("--gres=gpu:2", "gpus_per_node", 2),
        ("--gres=gpu", "gpus_per_node", 1),
        ("--gres=gpu:nvidia_h100_80gb_hbm3_3g.40gb:2,license:1", "gpus_per_node", 2),
        ("--gres=none", "gpus_per_node", None),
        ("--gres=shard:4", "gpus_per_node", None),
        ("--tres-per-task=gres/gpu:2", "gpus_per_task", 2),
        ("--nodes=2-4", "nodes_max", 4),
        ("--requeue", "requeue", True),
        ("--no-requeue", "requeue", False),
    ],
)
def test_a_value_is_read_with_its_unit(line, field, value):
    assert getattr(request(f"#SBATCH {line}"), field) == value


@pytest.mark.parametrize(
    "line",
    ["--mem=1.5G", "--mem=16GiB", "--mem=-1", "--mem=18014398509481984G", "--time=1:2:3:4", "--array=5-1", "--nodes=x",
     "--ntasks=two", "--gpus=gpu=2", "--gres=gpu:a:b:c", "--mem=16G --mem-per-gpu=16G"],
)  # fmt: skip
def test_a_value_that_cannot_be_read_is_a_problem(line):
    [problem] = effective(header(f"#SBATCH {line}").directives).problems
    assert problem.line == 2


def test_the_last_one_wins_and_the_command_line_beats_the_script():
    assert request("#SBATCH --gpus=1", "#SBATCH --gpus=4").gpus == 4
    both = [*header("#SBATCH -t 9:00 -p cpu").directives, *arguments_to_directives({"time": "60"})]
    assert (effective(both).time_limit, effective(both).partition) == (3600, "cpu")
    pinned = effective([*both, *pins_to_directives([Pin("--time=30", "")])])
    assert pinned.time_limit == 1800


def test_gres_beats_gpus_per_node():
    assert request("#SBATCH --gres=gpu:4", "#SBATCH --gpus-per-node=1").gpus_per_node == 4
