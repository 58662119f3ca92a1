"""Bad input of every kind gets a clear error that names the field, and nothing reaches Slurm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox

from slurm_agent_tools.api import catalogue
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models import script_arguments

ASKS = {tool.name: tool.ask for tool in catalogue.TOOLS}
GOOD = "#!/bin/bash\n#SBATCH --partition=cpu\ntrue\n"


@pytest.fixture
def tools(tmp_path: Path):
    made = toolbox(tmp_path, NothingReachesSlurm())
    project = tmp_path / "project"
    (project / "good.sh").write_text(GOOD)
    (project / "empty.sh").write_text("")
    (project / "blank.sh").write_text(" \n\n")
    (project / "plain.txt").write_text("echo hello\n")
    (project / "binary").write_bytes(b"\x7fELF\0\0\1\2")
    (project / "nul.sh").write_bytes(b"#!/bin/bash\necho \0\n")
    (project / "folder").mkdir()
    (tmp_path / "outside.sh").write_text(GOOD)
    (project / "link.sh").symlink_to(tmp_path / "outside.sh")
    (project / "linked").symlink_to(tmp_path)
    os.mkfifo(project / "pipe")
    yield made
    made.context.store.close()


async def refuse(tools, name: str, arguments: dict[str, object], field: str) -> InputError:
    ask = ASKS[name].model_validate(arguments)
    with pytest.raises(InputError) as caught:
        await tools.call(name, ask)
    assert caught.value.field == field
    assert caught.value.message.startswith(f"{field}: ")
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.proves("bad-input-names-the-field")
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing.sh", "does not exist"),
        ("folder", "is a directory"),
        ("pipe", "is not a regular file"),
        ("empty.sh", "is empty"),
        ("blank.sh", "is empty"),
        ("binary", "binary"),
        ("nul.sh", "binary"),
        ("plain.txt", "does not start with #!"),
        ("../outside.sh", "leaves the project folder"),
        ("folder/../../outside.sh", "leaves the project folder"),
        ("/etc/passwd", "leaves the project folder"),
        ("link.sh", "leaves the project folder"),
        ("linked/outside.sh", "leaves the project folder"),
        ("", "is empty"),
        ("a\nb.sh", "control character"),
        ("a\0b.sh", "control character"),
    ],
)
@pytest.mark.parametrize("tool", ["submit_job", "validate_config"])
async def test_a_bad_script_path_is_refused_by_name(tools, tool, path, problem):
    if tool == "validate_config" and path in {"plain.txt", "empty.sh", "blank.sh", "binary"}:
        path, problem = "folder", "is a directory"
    field = {"submit_job": "script", "validate_config": "config_path"}[tool]
    error = await refuse(tools, tool, {field: path}, field)
    assert problem in error.message


BAD_IDS = [
    "--user=x",
    "1;id",
    "-1",
    "0",
    "",
    " 1",
    "1 ",
    "1\n2",
    "1,2",
    "1_",
    "1_2_3",
    "a",
    "1+",
    "9_[1-3]",
    "١٢",
    "$(id)",
    "1e3",
]


@pytest.mark.parametrize("job_id", BAD_IDS)
@pytest.mark.parametrize("tool", ["wait_for_job", "analyze_log", "cancel_job", "save_result"])
async def test_a_bad_job_id_is_refused_by_name(tools, tool, job_id):
    more: dict[str, object] = {
        "cancel_job": {"reason": "test"},
        "save_result": {"name": "x", "status": "failed"},
    }.get(tool, {})
    await refuse(tools, tool, {"job_id": job_id, **more}, "job_id")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("job_name", "two\nlines"),
        ("job_name", "bell\x07"),
        ("job_name", ""),
        ("job_name", "x" * 300),
        ("partition", "cpu\n--uid=0"),
        ("time_limit", "soon"),
        ("time_limit", "1:2:3:4"),
        ("array", "5-1"),
        ("array", "1;2"),
        ("dependency", "afterok:1\n"),
        ("idempotency_key", "a\tb"),
        ("run_id", "\x1b[31m"),
    ],
)
async def test_a_bad_argument_of_submit_job_is_refused_by_name(tools, field, value):
    await refuse(tools, "submit_job", {"script": "good.sh", field: value}, field)


async def test_a_script_argument_with_a_nul_byte_is_refused_with_its_place(tools):
    await refuse(tools, "submit_job", {"script": "good.sh", "args": ["fine", "a\0b"]}, "args[1]")


async def test_analyze_log_wants_exactly_one_thing(tools):
    await refuse(tools, "analyze_log", {}, "job_id, path, recent_errors")
    await refuse(tools, "analyze_log", {"job_id": "1", "path": "x.log"}, "job_id, path, recent_errors")


@pytest.mark.parametrize("name", ["", "two\nlines", "..", "/etc/passwd"])
async def test_a_bad_experiment_name_is_refused(tools, name):
    await refuse(tools, "save_result", {"name": name, "status": "success"}, "name")


async def test_results_stay_inside_the_project(tools):
    arguments = {"name": "x", "status": "success", "output_dir": "../elsewhere"}
    await refuse(tools, "save_result", arguments, "output_dir")


async def test_a_result_that_is_not_there_is_named(tools):
    await refuse(tools, "compare_results", {"baseline": "nothing", "target": "nothing"}, "baseline")


@pytest.mark.parametrize("name", ["two\nlines", "#SBATCH --mem=900G\n"])
async def test_a_bad_name_for_a_generated_script_is_refused(tools, name):
    with pytest.raises((InputError, AssertionError)) as caught:
        await tools.call("generate_script", script_arguments.GenerateScript(name=name, command="true"))
    assert isinstance(caught.value, InputError)
    assert caught.value.field == "name"
