"""validate_config with a schema of the project's own: whose word counts for what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.toolbox.desks import NothingReachesSlurm, toolbox

from slurm_agent_tools.catalogue import ValidateConfig
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.toolbox import scripts

SCHEMA = {"properties": {"lr": {"type": "number"}, "slurm": {}}, "additionalProperties": False}


def project(tmp_path: Path, schema: str, config: str) -> Path:
    folder = tmp_path / "project" / "configs"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(schema)
    (folder / "x.yaml").write_text(config)
    return tmp_path


async def validated(folder: Path, path: str = "configs/x.yaml"):
    made = toolbox(folder, NothingReachesSlurm())
    try:
        return await scripts.validate_config(made.desk, ValidateConfig(config_path=path))
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


async def test_a_schema_outside_the_project_is_not_read(tmp_path: Path):
    folder = project(tmp_path, "{}", "lr: 1\n")
    schema = folder / "project/configs/schema.json"
    schema.rename(tmp_path / "elsewhere.json")
    schema.symlink_to(tmp_path / "elsewhere.json")

    with pytest.raises(InputError, match="leaves the project"):
        await validated(folder)
