"""A devcluster that runs is found by its folder alone, and named by the line that makes a terminal use it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import workstation
from slurm_agent_tools.errors import SlurmMissing, SlurmUnconfigured
from slurm_agent_tools.settings import Settings, SlurmSettings, devcluster_place, setting_sources, workstation_place
from slurm_agent_tools.transport.local import LocalRunner


@pytest.fixture(autouse=True)
def controller(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The record of a devcluster that is up; a process stands for its controller."""
    folder = tmp_path / "devcluster"
    for name in ("pids", "run"):
        (folder / name).mkdir(parents=True)
    (folder / "cluster.json").write_text(json.dumps({"base_port": 17000, "user": "ada", "bin_dir": None}))
    (folder / "run/up").touch()
    with subprocess.Popen(["sleep", "600"]) as process:
        began = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        (folder / "pids/slurmctld").write_text(f"{process.pid} {began}\n")
        monkeypatch.setenv(devcluster_place.VARIABLE, str(folder))
        monkeypatch.delenv("SLURM_CONF", raising=False)
        yield folder
        process.kill()


def test_one_that_runs_is_named_by_the_line_that_uses_it(controller: Path) -> None:
    line = f"export SLURM_CONF={controller}/etc/slurm.conf"

    assert devcluster_place.unused() == line
    assert f"`{line}`" in devcluster_place.hint()


def test_the_hint_says_where_a_client_that_hands_no_environment_on_takes_it_from() -> None:
    words = f"takes it from `env` in its own file, or put `conf` below [slurm] into {setting_sources.user_file()}. "

    assert devcluster_place.hint().endswith(words)


def test_a_slurm_that_is_not_the_distributions_comes_before_it_on_path(controller: Path) -> None:
    (controller / "cluster.json").write_text(json.dumps({"bin_dir": "/opt/a b/bin"}))

    assert str(devcluster_place.unused()).endswith("""/etc/slurm.conf PATH='/opt/a b/bin':"$PATH\"""")


def test_one_that_is_used_already_is_no_advice(controller: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", f"{controller}/etc/slurm.conf")

    assert (devcluster_place.unused(), devcluster_place.hint()) == (None, "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pids/slurmctld", None), ("run/up", None), ("cluster.json", None), ("cluster.json", "garbled"),
        ("pids/slurmctld", "1 1"), ("pids/slurmctld", "garbled"), ("pids/slurmctld", "999999999 1"),
    ],
)  # fmt: skip
def test_one_that_is_down_is_not_named(controller: Path, name: str, text: str | None) -> None:
    (controller / name).unlink()
    if text is not None:
        (controller / name).write_text(text)

    assert devcluster_place.unused() is None


def test_the_folder_of_somebody_else_is_not_trusted(controller: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = controller.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)

    assert devcluster_place.unused() is None


def test_roots_lies_in_a_folder_that_outlives_a_restart_and_an_ordinary_users_in_its_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(devcluster_place.VARIABLE)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert devcluster_place.folder() == devcluster_place.ROOTS
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert devcluster_place.folder() == Path.home() / ".cache/slurm-agent-devcluster"


async def test_where_a_command_is_missing_the_devcluster_comes_before_a_workstation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    runner = LocalRunner(Settings(project_root=tmp_path, slurm=SlurmSettings(bin_dir=tmp_path)))
    with pytest.raises(SlurmMissing) as caught:
        await runner.run(["sinfo"])

    assert caught.value.hint.index("export SLURM_CONF=") < caught.value.hint.index("slurm-agent-tools workstation up")


def test_a_workstation_that_sleeps_is_named_behind_a_devcluster_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    told = str(workstation.asleep(SlurmSettings(conf=workstation_place.WorkstationPlace(tmp_path / "none").conf)))

    assert told.index("export SLURM_CONF=") < told.index("Or run: slurm-agent-tools workstation up")


def test_to_root_a_workstation_that_sleeps_is_no_advice_where_a_devcluster_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workstation_place, "is_root", lambda: True)
    told = str(workstation.asleep(SlurmSettings(conf=workstation_place.WorkstationPlace(tmp_path / "none").conf)))

    assert told == f"The workstation is not up. {devcluster_place.hint().strip()}"


UNCONFIGURED = "#!/bin/sh\necho 'squeue: fatal: Could not establish a configuration source' >&2\nexit 1\n"


def squeue(folder: Path) -> LocalRunner:
    """Runs a squeue that finds no configuration."""
    (folder / "squeue").write_text(UNCONFIGURED)
    (folder / "squeue").chmod(0o755)
    return LocalRunner(Settings(project_root=folder, slurm=SlurmSettings(bin_dir=folder)))


async def test_a_server_without_slurm_conf_is_told_of_the_devcluster_that_runs(
    controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workstation_place, "_OTHERS", ())
    with pytest.raises(SlurmUnconfigured) as caught:
        await squeue(tmp_path).run(["squeue"])

    assert "SLURM_CONF is not set for this process" in caught.value.message
    assert caught.value.hint == devcluster_place.hint().strip()
    assert f"export SLURM_CONF={controller}/etc/slurm.conf" in caught.value.hint


async def test_without_a_devcluster_it_is_told_where_the_variable_of_a_terminal_has_to_be_written(
    controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (controller / "run/up").unlink()
    monkeypatch.setattr(workstation_place, "_OTHERS", ())
    with pytest.raises(SlurmUnconfigured) as caught:
        await squeue(tmp_path).run(["squeue"])

    assert "a client that hands no environment on takes it from `env` in its own file" in caught.value.hint
    assert "scontrol ping" not in caught.value.hint


async def test_a_configuration_that_is_named_may_come_back_and_is_slurms_to_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workstation_place, "_OTHERS", ())
    monkeypatch.setenv("SLURM_CONF", "/srv/slurm.conf")

    assert (await squeue(tmp_path).run(["squeue"])).exit_code == 1


def test_only_a_variable_that_no_setting_repeats_is_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devcluster_place.of_terminal(None) == ""
    monkeypatch.setenv("SLURM_CONF", "/srv/slurm.conf")
    assert 'needs `"SLURM_CONF": "/srv/slurm.conf"` in `env` of its own file' in devcluster_place.of_terminal(None)
    assert devcluster_place.of_terminal(Path("/srv/slurm.conf")) == ""
