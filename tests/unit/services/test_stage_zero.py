"""Stage 0: validate_config lists what a script reads, names what is missing, and runs the project's own check."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.services.ladders import FILES, laboratory
from tests.unit.services.scenes import Scene

from slurm_agent_tools.models.arguments import ValidateConfig


@pytest.fixture
def lab(scene: Scene) -> Scene:
    return laboratory(scene)


async def validated(scene: Scene, path: str = "train.sh", **more: Any) -> Any:
    return await scene.box.call("validate_config", ValidateConfig(config_path=path, **more))


def checked_by(scene: Scene, *argv: str) -> None:
    """The settings name this command."""
    settings = scene.context.settings.model_copy(update={"dry_run": argv})
    scene.box.context = scene.box.registry.context = replace(scene.context, settings=settings)


@pytest.mark.proves("stage-zero-is-free")
async def test_every_file_that_a_script_reads_is_listed_with_its_size_and_hash(lab: Scene):
    reply = await validated(lab, detail="full")

    files = reply.config_summary["files"]
    assert set(files) == set(FILES) - {"train.sh"}
    text = FILES["data/points.csv"].encode()
    assert files["data/points.csv"] == {"size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    assert lab.sent() == []


async def test_a_brief_answer_lists_the_first_files_and_counts_the_others(lab: Scene):
    for number in range(30):
        lab.write(f"data/part{number}.csv", "1\n")
    lab.write("train.sh", FILES["train.sh"] + "".join(f"cat data/part{number}.csv\n" for number in range(30)))

    summary = (await validated(lab)).config_summary

    assert len(summary["files"]) == 20
    assert summary["files_not_shown"] == len(FILES) - 1 + 30 - 20


@pytest.mark.proves("stage-zero-is-free")
@pytest.mark.parametrize(
    ("line", "gone"),
    [
        ("python train.py --config configs/b.yaml", ["configs/b.yaml"]),
        ("python other.py", ["other.py"]),
        ("sort < data/none.csv", ["data/none.csv"]),
        ("python train.py --config configs/a.yaml --out runs/x.json", []),
        ("echo 1 > data/made.csv\nsort < data/made.csv", []),
        ("cd lab\npython other.py", []),
        ('python train.py --config "$1"', []),
        ("# python other.py", []),
    ],
)
async def test_an_input_that_is_not_there_is_named(lab: Scene, line: str, gone: list[str]):
    lab.write("train.sh", f"#!/bin/bash\n#SBATCH --partition=cpu\n{line}\n")

    reply = await validated(lab)

    assert [one.path for one in reply.warnings] == gone
    assert reply.status == "valid"
    assert (await validated(lab, strict=True)).status == ("invalid" if gone else "valid")


async def test_a_declaration_that_cannot_be_read_is_named(lab: Scene):
    lab.write("train.sh", FILES["train.sh"].replace("length: --steps", "length: --nodes"))

    (told,) = (await validated(lab)).warnings

    assert (told.path, "--nodes" in told.message) == ("#SMOKE", True)


@pytest.mark.proves("stage-zero-is-free")
@pytest.mark.parametrize("path", ["train.sh", "configs/a.yaml"])
async def test_the_projects_own_check_is_run_where_the_settings_name_one(lab: Scene, path: str):
    checked_by(lab, sys.executable, "-c", "import sys; print('saw', sys.argv[1]); sys.exit(3)", "{path}")

    reply = await validated(lab, path)

    told = next(one for one in reply.errors if one.path == "dry_run")
    assert "ended with exit code 3" in told.message
    assert f"saw {path}" in told.message
    assert (reply.status, reply.config_summary["dry_run"]) == ("invalid", "failed")


async def test_a_check_that_passes_is_told_and_none_is_run_without_a_setting(lab: Scene):
    assert "dry_run" not in (await validated(lab)).config_summary
    checked_by(lab, sys.executable, "-c", "pass")

    reply = await validated(lab)

    assert reply.status == "valid"
    assert "passed" in reply.config_summary["dry_run"]


async def test_a_check_that_cannot_be_run_is_an_error(lab: Scene):
    checked_by(lab, "/nowhere/check")

    (told,) = (await validated(lab)).errors

    assert "cannot be run" in told.message


async def test_of_a_check_that_failed_the_last_five_lines_are_told(lab: Scene):
    checked_by(lab, sys.executable, "-c", "import sys; [print('line', n) for n in range(7)]; sys.exit(1)")

    told = next(one for one in (await validated(lab)).errors if one.path == "dry_run")

    assert told.message.endswith(": line 2; line 3; line 4; line 5; line 6")


async def test_a_path_that_looks_like_an_option_is_none_to_the_projects_own_check(lab: Scene):
    lab.write("-c.sh", FILES["train.sh"])
    checked_by(lab, sys.executable, "-c", "import sys; print('saw', sys.argv[1]); sys.exit(3)", "{path}")

    told = next(one for one in (await validated(lab, "-c.sh")).errors if one.path == "dry_run")

    assert "saw ./-c.sh" in told.message
