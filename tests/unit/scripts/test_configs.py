from __future__ import annotations

import json

import pytest

from slurm_agent_tools.programs.workflow_files import read_config, read_makefile, read_notebook

MAKEFILE = """\
SUBMIT := sbatch
all: figures

figures: data.csv
\t@python plot.py $< $(wildcard data/*.csv)

submit: figures
\t$(SUBMIT) --mem=4G \\
\t  run.sh
"""


def texts(program: object) -> list[str]:
    return [text.text.strip() for text in program.texts]  # type: ignore[attr-defined]


def test_make_runs_the_recipes_of_its_first_target():
    assert texts(read_makefile(MAKEFILE, ())) == ["python plot.py ${_} ${_}"]


def test_make_runs_the_recipes_of_its_goals_and_what_they_need():
    (text,) = read_makefile(MAKEFILE, ("submit",)).texts

    lines = text.text.split("\n")
    assert lines[4].startswith("python plot.py")
    assert lines[7].split() == ["sbatch", "--mem=4G", "run.sh"]


def test_a_variable_on_the_command_line_of_make_counts():
    program = read_makefile("TOOL = echo\ngo:\n\t$(TOOL) next.sh\n", ("go", "TOOL=sbatch"))

    assert texts(program) == ["sbatch next.sh"]


def test_a_makefile_that_exports_a_device_variable_is_found():
    ((rule, _, _, line),) = read_makefile("export CUDA_VISIBLE_DEVICES := 1\nx:\n\ttrue\n", ()).findings

    assert (rule, line) == ("cuda-visible-devices", 1)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("direct-submission", "process.executor = 'slurm'"),
        ("direct-submission", "process {\n  executor = 'slurm'\n}"),
        ("direct-submission", 'cluster: "mkdir -p logs && sbatch --mem=4G"'),
        ("direct-submission", "slurm: true"),
        ("auto-retry", "restart-times: 3"),
        ("auto-retry", "process.errorStrategy = 'retry'"),
    ],
)
def test_settings_that_submit_or_try_again_are_found(rule: str, text: str):
    assert {found[0] for found in read_config(text).findings} == {rule}


@pytest.mark.parametrize(
    "text",
    [
        "process.executor = 'local'",
        "profiles {\n  hpc {\n    process.executor = 'slurm'\n  }\n}",
        "restart-times: 0",
        "# executor: slurm",
        "cores: 8",
    ],
)
def test_everyday_settings_pass(text: str):
    assert not read_config(text).findings


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]})


def test_a_notebook_is_read_as_python_and_its_escapes_as_shell():
    program = read_notebook(notebook("import os\n%matplotlib inline\nout = !sbatch a.sh", "%%bash\nsbatch b.sh"))

    found = {text.language: text.text for text in program.texts}
    assert found["shell"] == "sbatch a.sh\nsbatch b.sh"
    assert found["python"].split("\n") == ["import os", "pass", "pass"]


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"cells": 3}', "[" * 100_000])
def test_what_is_no_notebook_does_no_harm(text: str):
    program = read_notebook(text)

    assert not program.texts
