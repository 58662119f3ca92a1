"""Lines as sbatch reads them. Every accepted row was tried with `sbatch -v --test-only`."""

from __future__ import annotations

import pytest

from slurm_agent_tools.models.sbatch_options import MOST_OPTIONS
from slurm_agent_tools.scripts.directive_lines import MAX_BYTES, MAX_PROBLEMS, Header, read_directives


def header(*lines: str) -> Header:
    return read_directives("\n".join(["#!/bin/bash", *lines, ""]).encode(), "job.sh")


def options(*lines: str) -> list[tuple[str, str | None]]:
    found = header(*lines)
    assert not found.problems, found.problems
    return [(directive.option, directive.value) for directive in found.directives]


READ = [
    (["#SBATCH --mem=16G"], [("mem", "16G")]),
    (["#SBATCH --mem 16G"], [("mem", "16G")]),
    (["#SBATCH--mem=16G"], [("mem", "16G")]),
    (["#SBATCH\t--mem=16G"], [("mem", "16G")]),
    (["#SLURM --mem=16G"], [("mem", "16G")]),
    (["#SBATCH -n4"], [("ntasks", "4")]),
    (["#SBATCH -n 4"], [("ntasks", "4")]),
    (["#SBATCH -n -4"], [("ntasks", "-4")]),
    (["#SBATCH -Hn4"], [("hold", None), ("ntasks", "4")]),
    (["#SBATCH -G2 -a1-3"], [("gpus", "2"), ("array", "1-3")]),
    (["#SBATCH --gpus=2 --mem=16G -t 60"], [("gpus", "2"), ("mem", "16G"), ("time", "60")]),
    (["#SBATCH --exclusive"], [("exclusive", None)]),
    (["#SBATCH --exclusive=user"], [("exclusive", "user")]),
    (["#SBATCH --nice=5 -k"], [("nice", "5"), ("no-kill", None)]),
    (["#SBATCH --job-name='a b'"], [("job-name", "a b")]),
    (["#SBATCH -J \"a 'b'\""], [("job-name", "a 'b'")]),
    (["#SBATCH -J 'a\\'b'"], [("job-name", "a'b")]),
    (["#SBATCH --comment=a\\#b"], [("comment", "a#b")]),
    (["#SBATCH --comment='a#b'"], [("comment", "a#b")]),
    (["#SBATCH --mem=64G#16G"], [("mem", "64G")]),
    (["#SBATCH --mem=64G # --gpus=4"], [("mem", "64G")]),
    (["#SBATCH --mem=64G \\"], [("mem", "64G")]),
    (["#SBATCH --mem=64G\r--gpus=1"], [("mem", "64G"), ("gpus", "1")]),
    (["#SBATCH"], []),
    (["#SBATCH --mem=4G --"], [("mem", "4G")]),
    (["#SBATCH --wrap=x -n3 --help -Q -v --version --usage"], [("ntasks", "3")]),
    (["##SBATCH --mem=1G", " #SBATCH --mem=2G", "#sbatch --mem=3G", "# SBATCH --mem=4G"], []),
    (["", "  \t", "  # a comment", "#SBATCH -n2"], [("ntasks", "2")]),
    (["\f", "#SBATCH -n2"], [("ntasks", "2")]),
    (["#SBATCH -n2", ":", "#SBATCH -n3"], [("ntasks", "2")]),
    (["#SBATCH -n2", "set -e", "#SBATCH -n3"], [("ntasks", "2")]),
    (["cat <<EOF", "#SBATCH -n3", "EOF"], []),
    (["#SBATCH --mem=1G", "#SBATCH --mem=2G"], [("mem", "1G"), ("mem", "2G")]),
    (["#SBATCH --tasks-per-node=2"], [("ntasks-per-node", "2")]),
]


@pytest.mark.parametrize(("lines", "expected"), READ, ids=[" / ".join(lines) for lines, _ in READ])
def test_lines_mean_what_sbatch_reads_in_them(lines: list[str], expected: list[tuple[str, str | None]]):
    assert options(*lines) == expected


REFUSED = [
    ("#SBATCH --memm=1G", "no option"),
    ("#SBATCH --me=1G", "ambiguous"),
    ("#SBATCH --gpu=1", "ambiguous"),
    ("#SBATCH --gre=gpu:1", "ambiguous"),
    ("#SBATCH --extra=x", "depending on Slurm's version"),
    ("#SBATCH -Z", "no option"),
    ("#SBATCH foo", "not an option"),
    ("#SBATCHES are nice", "not an option"),
    ("#SBATCH -", "not an option"),
    ("#SBATCH --mem=16 G", "not an option"),
    ("#SBATCH --exclusive user", "not an option"),
    ("#SBATCH --hold=1", "takes no value"),
    ("#SBATCH --mem", "needs a value"),
    ("#SBATCH -- -n2", "behind"),
    ("#SBATCH :x", "`:`"),
    ("#SBATCH --comment='a", "not closed"),
    ('#SBATCH --mem=64G "" --gpus=4', "drop the rest"),
    ("#SBATCH --comment=a\\ --mem=64G", "different versions"),
    ("#SBATCH -n3\N{NO-BREAK SPACE}-c2 -x", "needs a value"),
    ("#SBATCH --pty", "no option"),
    ("#SBATCH --container-image=x", "no option"),
    ("#SBATCH --workdir=x", "no option"),
    ("#PBS -l mem=100gb", "another scheduler"),
    ("#BSUB -n 4", "another scheduler"),
]


@pytest.mark.parametrize(("line", "reason"), REFUSED, ids=[line for line, _ in REFUSED])
def test_a_line_that_cannot_be_read_is_a_problem_with_its_number(line: str, reason: str):
    problems = header("# first", line).problems

    assert [problem.line for problem in problems] == [3]
    assert reason in problems[0].text
    assert problems[0].file == "job.sh"


WHOLE = [
    (b"", "empty"),
    (b"\n \n", "empty"),
    (b"echo hi\n", "does not start with #!"),
    (b"\xef\xbb\xbf#!/bin/bash\n", "byte order mark"),
    (b"#!/bin/bash\r\n#SBATCH -n1\r\n", "CR LF"),
    (b"#!/bin/bash\n\0", "NUL"),
    (b"#!/bin/bash\n" + b"x" * MAX_BYTES, "larger"),
    (b"#!/bin/bash\n" + b"x" * 70_000, "longer"),
]


@pytest.mark.parametrize(("data", "reason"), WHOLE, ids=[reason for _, reason in WHOLE])
def test_a_script_that_sbatch_refuses_as_a_whole_is_one_problem(data: bytes, reason: str):
    (problem,) = read_directives(data, "job.sh").problems

    assert reason in problem.text


def test_a_value_from_the_next_line_is_read_as_sbatch_does_and_told():
    found = header("#SBATCH --job-name", "#SBATCH --mem=64G")

    assert [(one.option, one.value) for one in found.directives] == [("job-name", "--mem=64G")]
    assert found.problems[0].line == 2
    assert "from line 3" in found.problems[0].text


def test_lines_of_other_schedulers_count_until_a_hundred_lines_of_code():
    near = header(*["true"] * 99, "#PBS -l mem=1gb")
    far = header(*["true"] * 102, "#PBS -l mem=1gb")

    assert [problem.line for problem in near.problems] == [101]
    assert far.problems == []


@pytest.mark.parametrize("word", ["hetjob", "packjob", "HETJOB"])
def test_components_of_a_heterogeneous_job_are_counted(word: str):
    found = header("#SBATCH --mem=4G", f"#SBATCH {word}", "#SBATCH --mem=8G")

    assert found.components == 2
    assert [one.option for one in found.directives] == ["mem", "hetjob", "mem"]


def test_an_option_without_its_value_does_not_reach_into_the_next_component():
    found = header("#SBATCH --mem", "#SBATCH hetjob", "#SBATCH 8G")

    assert [problem.line for problem in found.problems] == [2, 4]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("#SBATCH --mem=24G  # JUSTIFIED: 7B model", "7B model"),
        ("#SBATCH --gres=gpu:2 # justified: two towers", "two towers"),
        ("#SBATCH -t 2-0 #JUSTIFIED: slow", "slow"),
        ("#SBATCH --job-name=x # JUSTIFIED: a name", None),
        ("#SBATCH --mem=24G # JUSTIFIED:", None),
        ("#SBATCH --mem=24G '# JUSTIFIED: no comment'", None),
        ("# JUSTIFIED: on no directive", None),
    ],
)
def test_a_reason_is_found_behind_a_directive_about_resources(line: str, reason: str | None):
    assert header(line).justification == reason


def test_several_reasons_are_kept_together():
    found = header("#SBATCH --mem=24G # JUSTIFIED: model", "#SBATCH -t 2-0 # JUSTIFIED: slow data")

    assert found.justification == "model; slow data"


def test_a_directive_knows_its_line():
    (directive,) = header("# one", "#SBATCH --mem=1G").directives

    assert (directive.source, directive.evidence.line, directive.evidence.text) == ("script", 3, "#SBATCH --mem=1G")


@pytest.mark.parametrize(
    "lines",
    [
        ["#SBATCH" + " -n1" * 16_000] * 3,
        ["#SBATCH -" + "O" * 60_000],
        ["#SBATCH -n 1"] * 2000,
        ["#SBATCH hetjob"] * 2000,
        ["#SBATCH -n1 -c1", "#SBATCH hetjob"] * 2000,
    ],
    ids=["one line", "flags of one word", "lines", "components", "options of components"],
)
def test_more_options_than_there_are_is_a_problem_and_what_is_kept_of_them_is_small(lines: list[str]):
    """Two lines of 64 KB made two gigabytes of a decision, in the one process that all users ask."""
    found = header(*lines)

    assert [problem.text.split(":")[0] for problem in found.problems] == [f"more than {MOST_OPTIONS} options are given"]
    assert len(found.directives) <= 2 * MOST_OPTIONS + 1
    assert sum(len(one.evidence.text) for one in found.directives) < 256 * 1024


def test_as_many_options_as_there_may_be_are_all_read():
    found = header(*["#SBATCH -n1"] * MOST_OPTIONS)

    assert (len(found.directives), found.problems) == (MOST_OPTIONS, [])


@pytest.mark.parametrize("line", ['#SBATCH -n"', "#PBS -n 1"])
def test_of_many_lines_that_cannot_be_read_the_first_are_told_and_how_many_there_are(line: str):
    problems = header(*[line] * 20_000).problems

    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].text.startswith(f"{20_000 - MAX_PROBLEMS} more lines cannot be read")
