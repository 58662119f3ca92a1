"""The unit of systemd: written where systemd runs, as its own checker takes it, and taken away again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_agent_tools.cli.commands import workstation_unit
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.settings import workstation_place


@pytest.fixture(params=[True, False], ids=["root", "user"])
def root(request, monkeypatch, tmp_path) -> bool:
    monkeypatch.setattr(workstation_unit, "is_root", lambda: request.param)
    monkeypatch.setattr(workstation_unit, "SYSTEM", tmp_path / "system")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return request.param


@pytest.fixture
def systemd(monkeypatch, tmp_path) -> Path:
    """A machine on which systemd runs: its systemctl notes what it is asked."""
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\n[ ! -e {tmp_path}/refuses ] || {{ echo no bus >&2; exit 1; }}\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(workstation_unit, "RUNS", tmp_path)
    monkeypatch.setattr(workstation_unit, "SEARCH", f"{program.parent}:/usr/bin:/bin")
    return tmp_path


async def test_it_starts_and_stops_the_workstation_and_ends_no_job(root):
    text = workstation_unit.text()
    lines = text.splitlines()
    assert f"ExecStart={sys.executable} -m slurm_agent_tools workstation up" in lines
    assert f"ExecStop={sys.executable} -m slurm_agent_tools workstation down --keep-jobs" in lines
    assert {"KillMode=process", "Delegate=yes", "Type=oneshot", "RemainAfterExit=yes"} <= set(lines)
    assert lines[-1] == f"WantedBy={'multi-user' if root else 'default'}.target"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemds_own_checker_takes_it(root, monkeypatch, tmp_path):
    monkeypatch.setenv(workstation_place.VARIABLE, "/srv/a place with 100 %")
    path = tmp_path / workstation_unit.UNIT
    path.write_text(workstation_unit.text())
    words = ["systemd-analyze", *([] if root else ["--user"]), "verify", str(path)]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert (done.returncode, workstation_unit.UNIT in done.stderr) == (0, False), done.stderr


def test_where_it_lies_is_told_to_it_with_every_sign_as_it_is(root, monkeypatch):
    monkeypatch.setenv(workstation_place.VARIABLE, '/srv/100% "x" $HOME')
    assert f'Environment="{workstation_place.VARIABLE}=/srv/100%% \\"x\\" $HOME"\n' in workstation_unit.text()


def test_a_program_in_a_folder_with_odd_signs_is_one_word_of_the_command(root, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/home/a da/100%/$x/python")
    assert 'ExecStart="/home/a da/100%%/$$x/python" -m slurm_agent_tools workstation up\n' in workstation_unit.text()


async def test_without_systemd_nothing_is_written_and_the_line_for_by_hand_is_told(root, monkeypatch, tmp_path):
    monkeypatch.setattr(workstation_unit, "RUNS", tmp_path / "nowhere")
    lines = await workstation_unit.enable()
    assert not workstation_unit.path().exists()
    assert f"  @reboot {sys.executable} -m slurm_agent_tools workstation up" in lines
    assert await workstation_unit.disable() == [f"there is no {workstation_unit.path()}"]


async def test_enable_writes_it_and_disable_removes_it(root, systemd):
    lines = await workstation_unit.enable()
    assert workstation_unit.path().read_text() == workstation_unit.text()
    assert workstation_unit.path().parent == (systemd / "system" if root else Path.home() / ".config/systemd/user")
    assert lines[0] == f"written: {workstation_unit.path()}"
    assert ("loginctl enable-linger" in lines[-1]) == (not root)
    assert len(lines) == (1 if root else 2)
    (said,) = await workstation_unit.disable()
    assert said == f"removed: {workstation_unit.path()}; what runs goes on"
    assert not workstation_unit.path().exists()
    user = "" if root else "--user "
    assert (systemd / "asked").read_text().splitlines() == [
        f"{user}daemon-reload", f"{user}enable {workstation_unit.UNIT}",
        f"{user}disable {workstation_unit.UNIT}", f"{user}daemon-reload",
    ]  # fmt: skip


async def test_what_systemctl_refuses_is_left_to_the_person_as_a_line(root, systemd):
    (systemd / "refuses").touch()
    lines = await workstation_unit.enable()
    refused = [line for line in lines if line.startswith("please run `systemctl ")]
    assert len(refused) == 2
    assert all(line.endswith("no bus") for line in refused)
    assert workstation_unit.path().exists()


async def test_without_systemctl_the_lines_are_told_too(root, systemd, monkeypatch):
    monkeypatch.setattr(workstation_unit, "SEARCH", "/nonexistent")
    assert len([line for line in await workstation_unit.enable() if line.startswith("please run")]) == 2


async def test_a_folder_that_cannot_be_written_is_told(root, systemd):
    workstation_unit.path().parent.parent.mkdir(parents=True, exist_ok=True)
    workstation_unit.path().parent.touch()
    with pytest.raises(StorageError, match="could not be written"):
        await workstation_unit.enable()
