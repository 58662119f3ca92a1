"""Makefiles that are written to keep their reader busy: a line is read to a length, what targets share is kept once."""

import pytest

from slurm_agent_tools.programs.workflow_files import read_config, read_makefile


def test_a_line_that_is_too_long_is_not_read_but_asked_about():
    read = read_makefile(f"x = $(shell{' ' * 20_000}\nall:\n\techo one\n", ["all"])
    assert [(rule, line) for rule, _, _, line in read.findings] == [("opaque-code", 1)]
    assert [text.text.strip() for text in read.texts] == ["echo one"]


def test_lines_that_are_continued_count_together():
    read = read_makefile("x = " + "a \\\n" * 6_000 + "b\nall:\n\techo one\n", ["all"])
    assert [(rule, line) for rule, _, _, line in read.findings] == [("opaque-code", 1)]


def test_the_recipe_of_many_targets_is_read_once_for_all_of_them():
    targets = [f"t{number}" for number in range(1_000)]
    read = read_makefile(f"all: {' '.join(targets)}\n{' '.join(targets)}: all\n" + "\techo one\n" * 3_000, ["all"])
    assert read.texts[0].text.count("echo one") == 3_000


def test_a_command_inside_of_a_line_is_found_with_brackets_in_it():
    read = read_makefile("x := $(shell   ls $(HOME) | (cat) ; sbatch ${y}.sh)\nall:\n", ["all"])
    assert [text.text for text in read.texts] == ["ls ${HOME} | (cat) ; sbatch ${y}.sh"]


@pytest.mark.parametrize(
    ("line", "submits"),
    [("cluster: sbatch --mem=1", True), ("cluster: 'mkdir logs && sbatch x'", True), ("executor = 'slurm'", True),
     ("sbatch: my cluster", False), ("cluster: qsub", False), ("executor = 'local'", False)],
)  # fmt: skip
def test_settings_that_submit_are_found_whatever_stands_between(line, submits):
    assert bool(read_config(line).findings) is submits
