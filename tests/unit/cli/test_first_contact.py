"""What the command says by itself, on each kind of machine, and what it takes a misspelt word for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import first_contact
from slurm_agent_tools.devcluster import folders, workstation
from slurm_agent_tools.settings import devcluster_place, load, setting_sources, workstation_place


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without anything: no Slurm on PATH, no file of settings, a project that is not set up."""
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(first_contact, "_WHERE", str(tmp_path / "sbin"))
    monkeypatch.setattr(workstation_place, "_OTHERS", ())
    monkeypatch.setattr(workstation_place, "find", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return tmp_path


def programs(folder: Path, *names: str) -> None:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def told(capsys: pytest.CaptureFixture[str]) -> str:
    assert main.main([]) == 0
    return capsys.readouterr().out


def test_without_anything_the_demo_and_the_workstation_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys)

    assert first_contact.machine(load()).case == "nothing"
    assert "no Slurm here, and no cluster in the settings" in out
    assert out.index("slurm-agent-tools demo") < out.index("slurm-agent-tools workstation up")
    assert "slurm-agent-tools init" in out


def test_where_the_daemons_are_the_workstation_comes_first(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs(machine / "sbin", "slurmctld", "slurmd", "munged")
    out = told(capsys)

    assert first_contact.machine(load()).case == "parts"
    assert out.index("slurm-agent-tools workstation up") < out.index("slurm-agent-tools demo")


@pytest.mark.parametrize("daemons", [(), ("slurmctld", "slurmd", "munged")])
def test_root_is_offered_a_private_slurm_as_a_workstation_runs_no_jobs_of_root(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], daemons: tuple[str, ...]
) -> None:
    programs(machine / "sbin", *daemons)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    out = told(capsys)

    assert "slurm-agent-tools devcluster up" in out
    assert "workstation up" not in out


def test_where_slurm_is_it_is_said_where_and_no_demo_is_offered(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs(machine / "bin", "sbatch")
    monkeypatch.setenv("SLURM_CONF", str(machine / "slurm.conf"))
    out = told(capsys)

    assert f"Slurm's commands are in {machine / 'bin'}" in out
    assert "slurm-agent-tools get_status" in out
    assert "demo" not in out


def test_a_login_node_of_the_settings_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    path = setting_sources.user_file()
    path.parent.mkdir(parents=True)
    path.write_text('[clusters.lab]\nhost = "login.lab.example"\nremote_root = "work"\n')
    out = told(capsys)

    assert "lab (over SSH: login.lab.example)" in out
    assert "slurm-agent-tools sync push" in out


def test_a_workstation_that_was_brought_up_is_known(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = workstation_place.WorkstationPlace(machine / "workstation")
    monkeypatch.setattr(workstation_place, "find", lambda: place)

    assert first_contact.machine(load()).case == "workstation"


def test_a_devcluster_that_runs_comes_before_one_that_could_be_made(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs(machine / "bin", "sbatch")
    monkeypatch.setattr(devcluster_place, "unused", lambda: "export SLURM_CONF=/srv/d/etc/slurm.conf")
    out = told(capsys)

    assert "a devcluster runs on it" in out
    assert "slurm-agent-tools devcluster env" in out
    assert "workstation up" not in out


def test_a_folder_that_is_set_up_is_not_offered_init(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (machine / "slurm-agent.toml").write_text("")
    out = told(capsys)

    assert "is set up for agents" in out
    assert "slurm-agent-tools init" not in out


def test_settings_that_cannot_be_read_are_said_and_no_failure(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / "slurm-agent.toml").write_text('polcy = "x"\n')

    assert "polcy: belongs to no setting" in told(capsys)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["polcy", "show"], "policy"),
        (["submit_jb"], "submit_job"),
        (["policy", "chek"], "check"),
        (["doctor", "--jsn"], "--json"),
        (["policy", "check", "a.sh", "--jsno"], "--json"),
        (["serve", "--listn", "x"], "--listen"),
        (["completion", "bsh"], "bash"),
        (["submit_job", "--partitoin", "x"], "--partition"),
        (["policy", "explain", "cuda_visible_device"], "cuda-visible-devices"),
    ],
)
def test_a_misspelt_word_is_taken_for_the_nearest(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(words) == 2
    assert f"Did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "text", "meant"),
    [
        ("slurm-agent.toml", 'polcy = "x"\n', "policy"),
        ("slurm-agent.toml", "[slurm]\nread_timeot = 3\n", "slurm.read_timeout"),
        ("p.yaml", "limits:\n  max_concurent_jobs: 2\n", "`max_concurrent_jobs`"),
        ("p.yaml", "rules:\n  opaque-cod: deny\n", "`opaque-code`"),
    ],
)
def test_a_misspelt_setting_or_key_of_a_policy_is_taken_for_the_nearest(
    file: str, text: str, meant: str, machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / "slurm-agent.toml").write_text('policy = "p.yaml"\n')
    (machine / file).write_text(text)

    assert main.main(["policy", "show"]) == 2
    assert f"Did you mean {meant}?" in capsys.readouterr().err


def test_a_workstation_that_is_up_is_not_brought_up(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = workstation_place.WorkstationPlace(machine / "workstation")
    monkeypatch.setattr(workstation_place, "find", lambda: place)
    assert first_contact.machine(load()).steps[0][0] == "workstation up"

    monkeypatch.setattr(workstation, "running", lambda _: True)
    assert [words for words, _ in first_contact.machine(load()).steps] == ["doctor", "get_status"]


def test_root_is_not_offered_a_demo_that_would_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for unread, offered in (([], True), ([Path("/root/.local")], False)):
        monkeypatch.setattr(folders, "unread_by", lambda _, found=unread: found)
        assert ("demo" in [words for words, _ in first_contact.machine(load()).steps]) is offered
