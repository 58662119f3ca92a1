import argparse
import fcntl
import json
import os
from pathlib import Path

import pytest

from slurm_agent_tools.cli.commands import devcluster_command
from slurm_agent_tools.devcluster import cgroups, definition, lifecycle, packages
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, MemoryLimits
from slurm_agent_tools.errors import InputError


@pytest.fixture(autouse=True)
def no_packages_are_missing(monkeypatch):
    async def ensure(**_: object) -> None:
        pass

    monkeypatch.setattr(packages, "ensure_packages", ensure)


@pytest.fixture
def parser():
    made = argparse.ArgumentParser()
    devcluster_command.add_arguments(made)
    return made


async def test_a_folder_with_other_things_in_it_is_not_taken(tmp_path):
    (tmp_path / "thesis.tex").touch()

    with pytest.raises(DevclusterError, match="holds other things"):
        await lifecycle.up(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


async def test_the_folder_of_another_user_is_not_trusted(tmp_path, monkeypatch):
    definition.save(Cluster(tmp_path, 63000, "ada"))
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)

    for act in (lifecycle.up, lifecycle.down):
        with pytest.raises(DevclusterError, match="belongs to another user"):
            await act(tmp_path)


async def test_only_one_process_at_a_time_brings_a_cluster_up_or_down(tmp_path):
    definition.save(Cluster(tmp_path, 63000, "ada"))
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        with pytest.raises(DevclusterError, match="another process"):
            await lifecycle.down(tmp_path)


async def test_a_start_that_fails_is_taken_down_again(tmp_path, monkeypatch):
    taken = []

    async def bring(cluster: Cluster, **_: object) -> None:
        raise DevclusterError("munged ended")

    async def take(cluster: Cluster) -> list[str]:
        taken.append(cluster.folder)
        return []

    monkeypatch.setattr(lifecycle, "bring", bring)
    monkeypatch.setattr(lifecycle, "take", take)
    with pytest.raises(DevclusterError, match="munged ended"):
        await lifecycle.up(tmp_path)
    assert taken == [tmp_path]
    assert lifecycle.find(tmp_path) is None


async def test_down_where_nothing_was_brought_up_says_so(tmp_path):
    said = []

    await lifecycle.down(tmp_path, wipe=True, say=said.append)
    assert said == [f"no devcluster in {tmp_path}"]
    assert tmp_path.is_dir()


async def test_status_of_no_cluster_is_one_document_and_exit_1(tmp_path, parser, capsys):
    code = await devcluster_command.run(parser.parse_args(["status", "--json", "--folder", str(tmp_path)]))

    assert code == 1
    assert json.loads(capsys.readouterr().out) == {"up": False, "daemons": {}, "nodes": {}, "memory": None}


async def test_status_names_each_daemon_that_does_not_run(tmp_path, parser, capsys):
    definition.save(Cluster(tmp_path, 63000, "ada"))

    assert await devcluster_command.run(parser.parse_args(["status", "--folder", str(tmp_path)])) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "not up"
    assert "munged" in shown[1]
    assert "not running" in shown[1]


async def test_status_of_what_was_brought_up_tells_how_memory_is_limited_and_why(tmp_path, parser, capsys):
    made = Cluster(tmp_path, 63000, "ada")
    definition.save(made)
    (tmp_path / "run").mkdir()
    cgroups.record(made, MemoryLimits("polling", "nothing is mounted"))
    await devcluster_command.run(parser.parse_args(["status", "--folder", str(tmp_path)]))
    assert "memory" not in capsys.readouterr().out

    (tmp_path / "run/up").touch()
    await devcluster_command.run(parser.parse_args(["status", "--folder", str(tmp_path)]))
    assert "memory limits: polled every two seconds, because nothing is mounted" in capsys.readouterr().out
    await devcluster_command.run(parser.parse_args(["status", "--json", "--folder", str(tmp_path)]))
    assert json.loads(capsys.readouterr().out)["memory"] == {
        "by": "polling", "reason": "nothing is mounted", "walls": [],
    }  # fmt: skip


async def test_env_of_a_cluster_that_is_not_up_says_what_to_run(tmp_path, parser):
    with pytest.raises(DevclusterError) as caught:
        await devcluster_command.run(parser.parse_args(["env", "--folder", str(tmp_path)]))

    assert caught.value.hint == f"run: slurm-agent-tools devcluster up --yes --folder {tmp_path}"


def test_no_text_tells_to_bring_one_up_by_a_command_that_asks():
    folders = [Path(devcluster_command.__file__).parents[2], Path(__file__).parents[3] / "evals"]
    told = [(path, line) for folder in folders for path in folder.rglob("*.py")
            for line in path.read_text().splitlines() if "run: slurm-agent-tools devcluster up" in line]  # fmt: skip
    assert told
    assert [(path, line) for path, line in told if "devcluster up --yes" not in line] == []


@pytest.mark.parametrize("words", [[], ["sideways"], ["up", "--base-port", "x"], ["up", "--slurm", "23.02"]])
def test_an_unknown_command_is_a_usage_error(parser, words):
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(words)

    assert caught.value.code == 2


async def test_a_version_that_there_is_not_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(InputError, match=r"24\.11, 26\.05"):
        await lifecycle.up(tmp_path / "new", slurm="23.02")
    assert not (tmp_path / "new").exists()


async def test_the_folder_of_one_version_is_not_taken_by_another(tmp_path, monkeypatch):
    async def unpack(*_: object) -> None:
        pass

    monkeypatch.setattr(packages, "ensure_release", unpack)
    definition.save(Cluster(tmp_path, 63000, "ada"))

    with pytest.raises(DevclusterError, match="the distribution's Slurm") as caught:
        await lifecycle.up(tmp_path, slurm="24.11")
    assert "--folder" in str(caught.value.hint)
    definition.save(Cluster(tmp_path, 63000, "ada", packages.programs("26.05")))
    with pytest.raises(DevclusterError, match=r"Slurm 26\.05"):
        await lifecycle.up(tmp_path)
