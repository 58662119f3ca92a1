"""A workstation is the cluster `workstation` without anything written by hand, and steps on no other."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from slurm_agent_tools import settings
from slurm_agent_tools.api import context_registry
from slurm_agent_tools.errors import ConfigError, InputError, SlurmUnreachable
from slurm_agent_tools.settings import Settings, workstation_place

RECORD = {"base_port": 16000, "user": "ada", "bin_dir": None}


@pytest.fixture(autouse=True)
def no_other_slurm(monkeypatch, tmp_path):
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(workstation_place, "_OTHERS", ())
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))


def brought_up(folder: Path, **more: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster.json").write_text(json.dumps(RECORD | more))
    return folder


def test_without_one_nothing_is_added():
    found = settings.load()
    assert (found.cluster, found.clusters) == (None, {})


def test_it_is_the_usual_cluster_where_there_is_no_other_slurm():
    folder = brought_up(workstation_place.folder())
    found = settings.load()
    assert found.cluster == "workstation"
    assert found.clusters["workstation"].slurm.conf == folder / "etc/slurm.conf"
    assert found.clusters["workstation"].host is None


def test_an_ordinary_users_lies_in_the_state_folder_and_roots_in_the_machines(monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert workstation_place.folder() == Path.home() / ".local/state/slurm-agent-tools/workstation"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert workstation_place.folder() == workstation_place.MACHINES


def test_that_of_the_machine_is_found_by_its_users_after_their_own(monkeypatch):
    me = os.geteuid()
    machines = brought_up(workstation_place.MACHINES)
    monkeypatch.setattr(os, "geteuid", lambda: me or 1000)
    assert workstation_place.find().folder == machines
    if me:
        mine = brought_up(workstation_place.folder())
        assert workstation_place.find().folder == mine


@pytest.mark.parametrize(("user", "words"), [(0, "devcluster up --yes"), (1000, "workstation up")])
def test_root_is_offered_a_slurm_that_runs_its_jobs(monkeypatch, user, words):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert workstation_place.offered() == words
    assert workstation_place.offer().endswith(f", run: slurm-agent-tools {words}")


def test_the_record_of_a_stranger_and_a_garbled_one_count_for_nothing(monkeypatch, tmp_path):
    folder = brought_up(tmp_path / "ws")
    monkeypatch.setenv(workstation_place.VARIABLE, str(folder))
    assert workstation_place.find().folder == folder
    owner = folder.stat().st_uid
    if owner:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        assert workstation_place.find() is None
        monkeypatch.setattr(os, "geteuid", lambda: owner)
    for text in ("[]", "{", '"x"'):
        (folder / "cluster.json").write_text(text)
        assert workstation_place.find() is None


def test_another_slurm_stays_the_usual_one_and_the_workstation_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv(workstation_place.VARIABLE, str(brought_up(tmp_path / "ws", bin_dir="/opt/24.11/bin")))
    monkeypatch.setenv("SLURM_CONF", "/srv/slurm.conf")
    found = settings.load()
    assert found.cluster == "local"
    assert found.clusters["workstation"].slurm.bin_dir == Path("/opt/24.11/bin")
    monkeypatch.delenv("SLURM_CONF")
    monkeypatch.setenv("SLURM_AGENT_SLURM__BIN_DIR", "/opt/slurm/bin")
    assert settings.load().cluster == "local"


@pytest.mark.parametrize(("names", "usual"), [(("lab",), "lab"), (("lab", "big"), None)])
def test_clusters_that_were_written_down_go_before_it(monkeypatch, tmp_path, names, usual):
    monkeypatch.setenv(workstation_place.VARIABLE, str(brought_up(tmp_path / "ws")))
    tables = {name: {"host": name, "remote_root": "/p"} for name in names}
    monkeypatch.setenv("SLURM_AGENT_CLUSTERS", json.dumps(tables))
    found = settings.load()
    assert (found.cluster, set(found.clusters)) == (usual, {*names, "workstation"})


def test_a_cluster_of_that_name_that_was_written_down_is_left_as_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv(workstation_place.VARIABLE, str(brought_up(tmp_path / "ws")))
    table = {"workstation": {"host": "desk", "remote_root": "/p"}}
    monkeypatch.setenv("SLURM_AGENT_CLUSTERS", json.dumps(table))
    assert settings.load().clusters["workstation"].host == "desk"


async def test_a_server_that_runs_finds_the_one_that_was_brought_up_since(monkeypatch, tmp_path):
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    monkeypatch.setenv(workstation_place.VARIABLE, str(tmp_path / "ws"))
    opened = context_registry.OpenedContexts(Settings(project_root=tmp_path, state_dir=tmp_path / "state"))
    try:
        assert (await opened.at(None)).cluster == "local"
        with pytest.raises(InputError):
            await opened.at("workstation")
        brought_up(tmp_path / "ws")
        context = await opened.at(None)
        assert context.cluster == "workstation"
        with pytest.raises(SlurmUnreachable, match="squeue was not run: the workstation is not up") as caught:
            await context.transport.runner.run(["squeue"])
        assert caught.value.hint.startswith("Run: slurm-agent-tools workstation up; to forget it")
        assert caught.value.hint.endswith("slurm-agent-tools workstation down --wipe")
        assert context.refused() == ""
        monkeypatch.setattr(workstation_place, "is_root", lambda: True)
        with pytest.raises(SlurmUnreachable) as caught:
            await context.transport.runner.run(["squeue"])
        assert caught.value.hint.startswith("A workstation runs no jobs of root; ")
        assert caught.value.hint.endswith("slurm-agent-tools devcluster up --yes")
        assert context.refused().startswith("work as an ordinary user")
        assert (await context.transport.runner.run(["true"])).exit_code == 0
    finally:
        await opened.close()


def test_a_variable_that_only_looks_like_its_name_is_still_an_error(monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_WORK", "/x")
    with pytest.raises(ConfigError):
        settings.load()
