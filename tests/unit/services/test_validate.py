"""validate_config with a schema of the project's own: whose word counts for what."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox

from slurm_agent_tools.api import render
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.arguments import ValidateConfig
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.scripts.configs.checks import schema_check
from slurm_agent_tools.services import generation, validation

SCHEMA = {"properties": {"lr": {"type": "number"}, "slurm": {}}, "additionalProperties": False}


def project(tmp_path: Path, schema: str, config: str) -> Path:
    folder = tmp_path / "project" / "configs"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(schema)
    (folder / "x.yaml").write_text(config)
    return tmp_path


async def validated(folder: Path, path: str = "configs/x.yaml", *, check: tuple[str, ...] = ()):
    """The answer; `check` is the project's own, as its settings name it."""
    made = toolbox(folder, NothingReachesSlurm())
    context = replace(made.context, settings=made.context.settings.model_copy(update={"dry_run": check}))
    try:
        return await validation.validate_config(context, ValidateConfig(config_path=path))
    finally:
        await made.close()


async def test_the_schema_says_which_keys_there_are(tmp_path: Path):
    reply = await validated(project(tmp_path, json.dumps(SCHEMA), "lr: 0.1\nepochs: 0\n"))

    assert reply.status == "invalid"
    assert [(c.path, c.line) for c in reply.errors] == [("epochs", 2)]
    assert reply.config_summary["schema"] == "configs/schema.json"


async def test_the_schema_itself_can_be_checked(tmp_path: Path):
    folder = project(tmp_path, json.dumps(SCHEMA), "lr: 1\n")

    assert (await validated(folder, "configs/schema.json")).status == "valid"


async def test_a_schema_that_is_broken_is_an_error_and_not_a_config_without_faults(tmp_path: Path):
    folder = project(tmp_path, "{", "lr: 1\n")

    for path in ("configs/x.yaml", "configs/schema.json"):
        with pytest.raises(InputError, match="is not JSON"):
            await validated(folder, path)


async def test_a_schema_that_takes_for_ever_is_an_error_and_holds_nobody_up(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(schema_check, "SECONDS", 1)
    schema = {"properties": {"name": {"pattern": "^(a+)+$"}}}
    folder = project(tmp_path, json.dumps(schema), f"name: {'a' * 50}!\n")

    with pytest.raises(InputError, match="takes longer than 1 s"):
        await validated(folder)


@pytest.mark.parametrize(
    ("schema", "config"),
    [
        ({"properties": {"lr": {"maximum": 5}}}, f"lr: 0x{'f' * 9000}\n"),
        ({"properties": {"lr": {"multipleOf": 0.1}}}, "lr: .nan\n"),
        ({"$schema": 5}, "lr: 1\n"),
        ({"$id": "http://[", "$ref": "x"}, "lr: 1\n"),
    ],
)
async def test_what_the_check_itself_stumbles_over_is_an_error_too(tmp_path: Path, schema, config):
    with pytest.raises(InputError):
        await validated(project(tmp_path, json.dumps(schema), config))


async def test_no_module_of_the_project_runs_in_the_check(tmp_path: Path, monkeypatch):
    folder = project(tmp_path, json.dumps(SCHEMA), "lr: 0.1\n")
    for name in ("json.py", "jsonschema.py", "slurm_agent_tools.py", "sitecustomize.py"):
        (folder / "project" / name).write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(folder / "project")

    assert (await validated(folder)).status == "valid"


async def test_a_schema_outside_the_project_is_not_read(tmp_path: Path):
    folder = project(tmp_path, "{}", "lr: 1\n")
    schema = folder / "project/configs/schema.json"
    schema.rename(tmp_path / "elsewhere.json")
    schema.symlink_to(tmp_path / "elsewhere.json")

    with pytest.raises(InputError, match="leaves the project"):
        await validated(folder)


# --- the project's own check -----------------------------------------------------------------------------------------


def asking(words: str) -> tuple[str, ...]:
    return ("sh", "-c", words, "check", "{path}")


async def test_the_projects_own_check_is_run_in_the_project_and_may_find_the_file_good(tmp_path: Path):
    folder = project(tmp_path, json.dumps(SCHEMA), "lr: 0.1\n")

    reply = await validated(folder, check=asking('grep -q "lr: 0.1" "$1"'))

    assert (reply.status, reply.errors) == ("valid", [])
    assert reply.config_summary["dry_run"].startswith("passed in")


async def test_what_the_projects_own_check_finds_is_an_error_in_its_words(tmp_path: Path):
    folder = project(tmp_path, json.dumps(SCHEMA), "lr: 0.1\n")
    words = "for n in 1 2 3 4; do echo line $n; done; echo $1 is too slow; echo last >&2; exit 3"

    reply = await validated(folder, check=asking(words))

    assert (reply.status, reply.config_summary["dry_run"]) == ("invalid", "failed")
    (found,) = reply.errors
    assert (found.path, found.line) == ("dry_run", None)
    said = "line 2; line 3; line 4; configs/x.yaml is too slow; last"
    assert found.message == f"the project's own check `sh` ended with exit code 3: {said}"
    assert "Mend what it says" in found.remedy


async def test_a_check_that_cannot_be_run_is_an_error_that_names_the_setting(tmp_path: Path):
    folder = project(tmp_path, json.dumps(SCHEMA), "lr: 0.1\n")

    reply = await validated(folder, check=("./none", "{path}"))

    (found,) = reply.errors
    assert "`./none` cannot be run: No such file" in found.message
    assert found.remedy == "Correct the setting dry_run."


async def test_the_check_sees_what_the_policy_passes_on_of_the_environment_and_no_more(tmp_path: Path, monkeypatch):
    folder = project(tmp_path, json.dumps(SCHEMA), "lr: 0.1\n")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    monkeypatch.delenv("MODULEPATH", raising=False)

    reply = await validated(
        folder, check=asking('test "$LANG" = C.UTF-8 && ! env | grep -E "^(SECRET_TOKEN|MODULEPATH)="')
    )

    assert reply.errors == []


async def test_a_file_whose_name_begins_like_an_option_is_none_to_the_check(tmp_path: Path):
    folder = project(tmp_path, json.dumps(SCHEMA), "lr: 0.1\n")
    (folder / "project/-x.yaml").write_text("lr: 1\n")

    reply = await validated(folder, "-x.yaml", check=asking('test "$1" = ./-x.yaml && test -f "$1"'))

    assert reply.config_summary["dry_run"].startswith("passed in")


# --- what stands under slurm: ----------------------------------------------------------------------------------------

CPU = Partition("cpu", "UP", default=True, nodes=2, max_time_seconds=86400, default_time_seconds=None, cpus_per_node=32)
GPU = replace(CPU, name="gpu", default=False, total_gpus=8, gpus_per_node=4)


async def answered(tmp_path: Path, config: str, monkeypatch: pytest.MonkeyPatch, suffix: str = "yaml"):
    """The answer where the cluster has the partitions cpu and gpu."""
    folder = tmp_path / "project" / "configs"
    folder.mkdir(parents=True)
    (folder / f"x.{suffix}").write_text(config)

    async def partitions(context: object) -> dict[str, Partition]:
        return {"cpu": CPU, "gpu": GPU}

    monkeypatch.setattr(generation, "_partitions", partitions)
    return await validated(tmp_path, f"configs/x.{suffix}")


async def test_what_is_wrong_under_slurm_is_told_by_its_key_its_line_and_in_yaml(tmp_path: Path, monkeypatch):
    config = "lr: 0.1\nslurm:\n  partition: gpu\n  gpus: 1\n  mem: 64G\n"

    reply = await answered(tmp_path, config, monkeypatch)

    (found,) = reply.errors
    assert (found.path, found.line) == ("slurm.mem", 5)
    assert found.remedy.splitlines()[:2] == ["Replace slurm.mem (line 5) by:", "  mem-per-gpu: 16G"]
    assert "submit_job has justification" in found.remedy
    assert "#SBATCH" not in reply.model_dump_json()
    assert reply.summary == "configs/x.yaml is not valid: 1 error, 0 warnings."


async def test_a_config_that_does_what_its_answer_says_is_valid(tmp_path: Path, monkeypatch):
    reply = await answered(tmp_path, "slurm:\n  partition: gpu\n  gpus: 1\n  mem-per-gpu: 16G\n", monkeypatch)

    assert reply.errors == []


@pytest.mark.parametrize(
    ("config", "suffix", "place", "line", "told"),
    [
        ("slurm: {time_limit: '2-00:00:00', mem: 1G}\n", "yaml", "slurm.time_limit", 1, '  time_limit: "1-00:00:00"'),
        ("slurm:\n  gpus: 1\n  mem_gb: 64\n", "yaml", "slurm.mem_gb", 3, "  mem-per-gpu: 16G"),
        ("slurm:\n  gpus: 1\n  memory: 64G\n", "yaml", "slurm.memory", 3, "  mem-per-gpu: 16G"),
        ("slurm:\n  num_gpus: 16\n", "yaml", "slurm.num_gpus", 2, "  num_gpus: 4"),
        ('{"slurm": {"gpus": 1,\n"mem": "64G"}}\n', "json", "slurm.mem", 2, '  "mem-per-gpu": "16G"'),
        ('[slurm]\ngpus = 1\nmem = "64G"\n', "toml", "slurm.mem", 3, '  mem-per-gpu = "16G"'),
        (
            "slurm:\n  hold: false\n  exclusive: true\n",
            "yaml",
            "slurm.exclusive",
            3,
            "Delete slurm.exclusive (line 3).",
        ),
        ("slurm:\n  memm: 4G\n", "yaml", "slurm.memm", 2, "  mem: 4G"),
        ("slurm:\n  partition: gpuu\n", "yaml", "slurm.partition", 2, "  partition: gpu"),
    ],
)
async def test_a_remedy_is_written_as_the_file_is(
    config: str, suffix: str, place: str, line: int, told: str, tmp_path: Path, monkeypatch
):
    reply = await answered(tmp_path, config, monkeypatch, suffix)

    found = next(error for error in reply.errors if error.path == place)
    assert found.line == line
    assert told in found.remedy.splitlines()
    assert "#SBATCH" not in f"{found.message} {found.remedy}"


async def test_a_partition_that_is_not_there_is_told_where_the_cluster_answers(tmp_path: Path, monkeypatch):
    reply = await answered(tmp_path, "slurm:\n  partition: gpuu\n", monkeypatch)

    assert [(error.path, error.line) for error in reply.errors] == [("slurm.partition", 2)]
    assert reply.errors[0].message.startswith("There is no partition gpuu.")
    shown = render.lines(render.decision(reply.decision.model_dump(mode="json")))
    assert not any("not evaluated" in line for line in shown)


async def test_a_batch_script_is_told_to_give_its_reason_where_it_is_submitted(tmp_path: Path, monkeypatch):
    script = "#!/bin/bash\n#SBATCH --gpus=1\n#SBATCH --mem=20G\npython x.py\n"

    reply = await answered(tmp_path, script, monkeypatch, "sh")

    assert reply.errors[0].path == "memory-per-gpu"
    assert "Call submit_job with justification=" in reply.errors[0].remedy
    assert "Call again" not in reply.errors[0].remedy
