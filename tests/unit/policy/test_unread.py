"""The answer to options that cannot be read takes away what is wrong, and nothing that is right."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.counting import counted
from tests.unit.policy.applying import Request, apply, ways
from tests.unit.policy.plans import asks

from slurm_agent_tools.api.rule_examples import FILE
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.sbatch_options import NAMES
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules import directives
from slurm_agent_tools.scripts.directive_lines import arguments_to_directives, read_directives
from slurm_agent_tools.scripts.effective_request import effective

CALLS = 800_000  # twice of what it takes
POLICY = load(shipped()).policy


def plan(text: str, arguments: dict[str, str] | None = None) -> PlannedRequest:
    header = read_directives(text.encode(), FILE)
    request = effective([*header.directives, *arguments_to_directives(arguments or {})])
    request = replace(request, problems=(*header.problems, *request.problems))
    made = asks("x")
    assert made.reading is not None
    return replace(made, reading=replace(made.reading, text=text, request=request))


def answer(text: str, arguments: dict[str, str] | None = None) -> RuleDecision:
    return directives.DIRECTIVES.check(plan(text, arguments), POLICY)


def mended(text: str, way: int = 0) -> str:
    request = Request({FILE: text}, FILE)
    apply([ways(answer(text).remedy or "")[way]], request)
    return request.text


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("--partition=cpu --mem=100M --time=5 --frobnicate=3", "--partition=cpu --mem=100M --time=5"),
        ("--frobnicate 3 --mem=100M", "--mem=100M"),
        ("--mem=lots --partition=cpu", "--partition=cpu"),
        ("-p cpu -Z -t 5", "--partition=cpu --time=5"),
        ("--mem=1G --mem-per-gpu=2G", "--mem=1G"),
        ("--mem=1G --time=5hours", "--mem=1G --time=05:00:00"),
        ("--time=2days", "--time=2-00:00:00"),
        ("--gpus=1 --comment='half", "--gpus=1"),
        ("--gpus=1 --mem", "--gpus=1"),
        ("--frob --mem=20G  # JUSTIFIED: the 7B model", "--mem=20G  # JUSTIFIED: the 7B model"),
        ('--comment="two words" --frob', '--comment="two words"'),
    ],
)
def test_the_line_stays_without_what_is_wrong_with_it(line: str, new: str):
    text = f"#!/bin/bash\n#SBATCH {line}\necho\n"
    assert answer(text).outcome == "deny"

    assert mended(text).split("\n")[1] == f"#SBATCH {new}"


@pytest.mark.parametrize("line", ["#SBATCH --frobnicate=3", "#PBS -l nodes=9", "#SBATCH 'x"])
def test_a_line_of_nothing_else_goes(line: str):
    assert mended(f"#!/bin/bash\n{line}\necho\n") == "#!/bin/bash\necho\n"


def test_a_misspelt_option_among_others_is_kept_when_it_is_the_one_that_was_meant():
    text = "#!/bin/bash\n#SBATCH --gpus=1 --memm=8G\necho\n"

    assert mended(text).split("\n")[1] == "#SBATCH --gpus=1"
    assert mended(text, way=1).split("\n")[1] == "#SBATCH --gpus=1 --mem=8G"


def test_of_two_lines_that_exclude_each_other_the_first_stays():
    text = "#!/bin/bash\n#SBATCH --mem=1G\n#SBATCH --gpus=1 --mem-per-gpu=2G\necho\n"

    assert mended(text).split("\n")[1:3] == ["#SBATCH --mem=1G", "#SBATCH --gpus=1"]


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("#!/bin/bash\r\n#SBATCH --gpus=1\r\necho a\r\n", "#!/bin/bash\n#SBATCH --gpus=1\necho a\n"),
        ("\ufeff#!/bin/bash\necho a\n", "#!/bin/bash\necho a\n"),
        ("#!/bin/bash\necho a\0b\n", "#!/bin/bash\necho ab\n"),
        ("echo a\n", "#!/bin/bash\necho a\n"),
        ("\n#SBATCH --gpus=1\necho a\n", "#!/bin/bash\n#SBATCH --gpus=1\necho a\n"),
    ],
)
def test_a_file_that_cannot_be_read_as_a_whole_is_converted_and_loses_no_line(text: str, new: str):
    assert answer(text).outcome == "deny"

    assert mended(text) == new
    assert answer(new).outcome == "pass"


def test_a_file_with_blanks_in_its_name_is_quoted_for_the_shell():
    made = plan("#!/bin/bash\r\n")
    assert made.reading is not None
    made = replace(made, reading=replace(made.reading, path="a b's.sh"))

    remedy = directives.DIRECTIVES.check(made, POLICY).remedy

    assert remedy == r"""Run `sed -i 's/\r$//' 'a b'"'"'s.sh'`."""


def test_an_empty_script_is_to_be_written():
    assert "generate_script" in (answer("\n").remedy or "")


def test_a_time_of_the_call_that_people_write_is_told_as_slurm_writes_it():
    told = answer("#!/bin/bash\necho\n", {"time": "5hours"})

    assert told.message.startswith("--time: not a time limit: '5hours'")
    assert 'Call again with time_limit="05:00:00".' in (told.remedy or "")
    assert "Call again without the argument partition." not in (told.remedy or "")


def test_very_many_lines_are_told_in_part():
    remedy = answer("#!/bin/bash\n" + "#PBS -q x\n" * 200).remedy or ""

    assert remedy.count("Delete line") == 20
    assert remedy.endswith("check again after these.")


def test_lines_made_to_be_slow_are_told_for_bounded_work():
    options = " ".join(f"--{name}=1" for name in sorted(NAMES - {"time", "wrap"}))
    lines = [f"#SBATCH {options[at : at + 300]}" for at in range(0, len(options), 300)]
    text = "\n".join(["#!/bin/bash", *lines, *["#SBATCH " + "-H " * 120 + "--frob"] * 200, ""])

    told, calls = counted(lambda: answer(text))

    assert told.message
    assert calls < CALLS


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#!/bin/bash\n#SBATCH --time=1\necho " + "a" * 70_000 + "\necho b\n", 3),
        ("#!/bin/bash\n" + "echo\n" * 900_000, 1),
    ],
    ids=["a long line", "a large script"],
)
def test_what_is_too_long_to_be_read_is_not_taken_away_but_named(text: str, line: int):
    remedy = answer(text).remedy or ""

    assert remedy.startswith(f"Change line {line} (")
    assert "yourself: write what is long into a file of the project" in remedy
    assert "Delete" not in remedy
