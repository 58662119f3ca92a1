"""The devcluster's whole way, up and down, as an ordinary user brings it up; its programs are stand-ins that run."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.devcluster import stand_ins
from tests.watchdog import eventually

from slurm_agent_tools.cli.commands import devcluster_command
from slurm_agent_tools.devcluster import (
    accounting_database,
    cgroups,
    config_files,
    definition,
    folders,
    lifecycle,
    login_node,
    packages,
    processes,
    slurm_daemons,
    workers,
)
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError
from slurm_agent_tools.settings import devcluster_place

USERS_OF_ROOT = (accounting_database, cgroups, config_files, definition, folders, login_node, packages, slurm_daemons)


class Ground:
    """A folder for the cluster, and what the stand-ins say."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin_dir, self.said = folder / "c", folder / "24.11" / "bin", folder / "said"
        stand_ins.make(self.bin_dir, self.said)
        self.lines: list[str] = []

    async def up(self, **more: object) -> Cluster:
        return await lifecycle.up(self.folder, slurm="24.11", say=self.lines.append, **more)

    async def down(self, **more: bool) -> None:
        await lifecycle.down(self.folder, say=self.lines.append, **more)

    def calls(self, start: str) -> list[str]:
        """How the programs were called, in their order."""
        return [line for line in (self.said / "calls").read_text().splitlines() if line.startswith(start)]


@pytest.fixture
async def ground(tmp_path, monkeypatch) -> AsyncIterator[Ground]:
    async def nothing(*_: object, **__: object) -> None:
        pass

    made = Ground(tmp_path)
    for module in USERS_OF_ROOT:
        monkeypatch.setattr(module, "is_root", lambda: False)
    search = f"{made.bin_dir}:{definition.SEARCH}"
    for module in (login_node, slurm_daemons):
        monkeypatch.setattr(module, "SEARCH", search)
    monkeypatch.setattr(config_files, "loopback", lambda: "127.0.0.1")
    monkeypatch.setattr(packages, "programs", lambda _: made.bin_dir)
    monkeypatch.setattr(packages, "ensure_packages", nothing)
    monkeypatch.setattr(packages, "ensure_release", nothing)
    yield made
    await lifecycle.down(made.folder, say=lambda _: None)


def alive(pids: list[int]) -> list[int]:
    """Those that still run; one that is only waited for does not."""
    return [pid for pid in pids if _state(pid) not in {"X", "Z"}]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


# --- up ----------------------------------------------------------------------------------------------------------


async def test_a_cluster_comes_up_with_its_accounting_in_order_and_is_ready_for_jobs(ground):
    cluster = await ground.up(extra_conf="MinJobAge=77\n")

    status = await lifecycle.status(ground.folder)
    assert status.up
    assert list(status.daemons) == cluster.daemons
    assert len(set(status.daemons.values())) == len(cluster.daemons)
    assert status.nodes == dict.fromkeys(cluster.nodes, "idle")
    assert status.memory.by == "polling"
    conf = cluster.conf.read_text()
    assert "MinJobAge=77" in conf
    assert "ProctrackType=proctrack/linuxproc" in conf
    daemons = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd -D")
    begun = [line.split()[0] for line in ground.calls("") if line.startswith(daemons)]
    assert begun[:3] == ["munged", "mariadbd", "slurmdbd"]
    # These find each other in any order; each tells of itself as soon as it runs.
    assert sorted(begun[3:]) == ["slurmctld", *["slurmd"] * len(cluster.nodes)]
    assert "scontrol update PartitionName=cpu State=UP" in ground.calls("scontrol")
    assert cluster.project.is_dir()
    assert (cluster.folder / "munge/munge.key").stat().st_mode & 0o777 == 0o600


async def test_one_that_is_up_is_returned_as_it_is(ground):
    first = await ground.up()
    before = (await lifecycle.status(ground.folder)).daemons
    again = await ground.up()
    assert again == first
    assert (await lifecycle.status(ground.folder)).daemons == before
    assert ground.lines[-1] == f"already up in {ground.folder}"


async def test_members_and_database_are_made_once_and_found_again(ground):
    await ground.up()
    await ground.down()
    await ground.up()
    assert len(ground.calls("mariadb-install-db")) == 1
    assert len(ground.calls("sacctmgr -i load")) == 1
    assert [line.split()[3] for line in ground.calls("sacctmgr -i add qos")] == ["qos"] * 3


async def test_members_that_a_killed_run_entered_already_are_no_error(ground):
    (ground.said / "refuses.sacctmgr").write_text(" Nothing new added.\n")
    (ground.said / "refuses.sacctmgr").rename(ground.said / "later")
    cluster = await ground.up()
    (cluster.folder / "db/members").unlink()
    (ground.said / "later").rename(ground.said / "refuses.sacctmgr")
    await accounting_database.members(cluster)
    assert (cluster.folder / "db/members").exists()


async def test_a_refusal_of_the_accounting_is_told_with_its_words(ground):
    cluster = await ground.up()
    (cluster.folder / "db/members").unlink()
    (ground.said / "refuses.sacctmgr").write_text("Access denied\n")
    with pytest.raises(DevclusterError, match=r"(?s)sacctmgr add qos scavenger.*Access denied"):
        await accounting_database.members(cluster)


async def test_a_database_that_cannot_be_made_is_tried_twice_and_told(ground):
    (ground.said / "refuses.mariadb-install-db").write_text("one\ntwo: no space left\n")
    with pytest.raises(DevclusterError, match=r"(?s)mariadb-install-db failed:.*no space left"):
        await ground.up()
    assert len(ground.calls("mariadb-install-db")) == 2
    assert lifecycle.find(ground.folder) is None


async def test_without_accounting_no_database_is_made(ground):
    cluster = await ground.up(accounting=False)
    assert cluster.daemons[:2] == ["munged", "slurmctld"]
    assert ground.calls("mariadb") == []


async def test_a_node_that_does_not_come_up_leaves_nothing_running_and_its_words_are_told(ground):
    (ground.said / "ends.spec01").write_text("slurmd: fatal: no such gres\n")
    with pytest.raises(DevclusterError, match=r"(?s)node \w\wspec01 did not come up \(unknown\).*no such gres"):
        await ground.up(accounting=False)
    assert set((await lifecycle.status(ground.folder)).daemons.values()) == {None}


async def test_a_daemon_that_ends_at_once_is_told_with_its_words(ground):
    (ground.said / "ends.munged").write_text("munged: Error: keyfile is insecure\n")
    (ground.said / "refuses.munge").touch()
    with pytest.raises(DevclusterError, match=r"(?s)^munged ended.*keyfile is insecure"):
        await ground.up(accounting=False)
    for name in ("ends.munged", "refuses.munge"):
        (ground.said / name).unlink()
    await ground.up(accounting=False)  # and the folder is good for another try
    assert "cleaning up after an earlier run" not in ground.lines


# --- single daemons ----------------------------------------------------------------------------------------------


async def test_a_daemon_is_stopped_signalled_and_started_alone(ground):
    cluster = await ground.up(accounting=False)
    pids = (await lifecycle.status(ground.folder)).daemons
    await lifecycle.stop_daemon(cluster, "slurmctld")
    now = (await lifecycle.status(ground.folder)).daemons
    assert now == pids | {"slurmctld": None}
    assert not (await lifecycle.status(ground.folder)).up
    with pytest.raises(DevclusterError, match="slurmctld does not run"):
        await lifecycle.signal_daemon(cluster, "slurmctld", signal.SIGCONT)
    await lifecycle.start_daemon(cluster, "slurmctld")
    assert (await lifecycle.status(ground.folder)).up
    await lifecycle.signal_daemon(cluster, "munged", signal.SIGKILL)
    await eventually(lambda: processes.running(cluster, "munged") is None)


async def test_a_daemon_that_stands_still_is_woken_to_be_ended(ground):
    cluster = await ground.up(accounting=False)
    await lifecycle.signal_daemon(cluster, "munged", signal.SIGSTOP)
    await lifecycle.stop_daemon(cluster, "munged")
    assert processes.running(cluster, "munged") is None


# --- down --------------------------------------------------------------------------------------------------------


async def test_down_ends_every_process_and_keeps_the_state(ground):
    await ground.up()
    pids = [pid for pid in (await lifecycle.status(ground.folder)).daemons.values() if pid]
    await ground.down()
    assert alive(pids) == []
    assert lifecycle.find(ground.folder) is None
    assert (ground.folder / "db/made").exists()
    assert ground.lines[-1] == f"down; its state stays in {ground.folder}"
    await ground.down(wipe=True)
    assert not ground.folder.exists()


async def test_down_closes_the_partitions_before_it_cancels_what_runs(ground):
    await ground.up(accounting=False)
    (ground.said / "jobs").write_text("12\n11\n12\n")
    await ground.down()
    calls = ground.calls("")
    closed = calls.index("scontrol update PartitionName=gpu State=DOWN")
    assert closed < calls.index("scancel --quiet 11 12")
    assert len(ground.calls("scancel")) == 1


async def test_down_asks_nothing_of_a_controller_that_does_not_answer(ground):
    await ground.up(accounting=False)
    (ground.said / "refuses.scontrol").write_text("DOWN\n")
    await ground.down()
    assert ground.calls("scancel") == []


async def test_what_an_earlier_run_left_is_ended_before_the_next(ground):
    await ground.up(accounting=False)
    before = (await lifecycle.status(ground.folder)).daemons
    (ground.folder / "run/up").unlink()  # as where `up` itself was killed
    cluster = await ground.up(accounting=False)
    assert "cleaning up after an earlier run" in ground.lines
    assert alive(list(before.values())) == []
    assert all((await lifecycle.status(ground.folder)).daemons.values())
    assert cluster.folder == ground.folder


async def test_a_process_that_nobody_recorded_is_named_when_it_is_ended(ground):
    cluster = await ground.up(accounting=False)
    job = subprocess.Popen(["sleep", "600"], env={"SLURMD_NODENAME": next(iter(cluster.nodes))})  # noqa: ASYNC220
    await ground.down()
    assert job.wait(10) == -signal.SIGKILL
    assert f"ended a left-over process: {job.pid} sleep 600" in ground.lines


# --- nodes -------------------------------------------------------------------------------------------------------


async def test_a_controller_that_starts_again_is_waited_for_until_it_knows_the_nodes(ground):
    cluster = await ground.up(accounting=False)
    await workers.heard_of(cluster)
    assert await workers.node_states(cluster) == dict.fromkeys(cluster.nodes, "idle")


async def test_a_slurm_that_tells_no_version_is_an_error(ground):
    cluster = Cluster(ground.folder, 20000, definition.me(), ground.bin_dir)
    (ground.bin_dir / "slurmd").write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(DevclusterError, match="tells no version: hello"):
        await slurm_daemons.version(cluster)


# --- the login node ----------------------------------------------------------------------------------------------


async def test_the_login_node_answers_on_its_port_and_a_client_finds_it(ground):
    cluster = await ground.up(accounting=False, ssh=True)
    node = login_node.login_node(cluster)
    with socket.create_connection(("127.0.0.1", node.port), timeout=10):
        pass
    asked = ["ssh", "-F", str(node.config), "-G", node.host]
    shown = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()  # noqa: ASYNC221
    assert {f"user {cluster.user}", "hostname 127.0.0.1", f"port {node.port}", f"identityfile {node.key}"} <= set(shown)
    assert node.known_hosts.read_text().startswith(f"[127.0.0.1]:{node.port} ssh-ed25519 ")
    assert node.key.stat().st_mode & 0o777 == 0o600
    server = (cluster.folder / "ssh/sshd_config").read_text()
    assert f"Port {node.port}\nListenAddress 127.0.0.1\n" in server
    assert f"AllowUsers {cluster.user}\n" in server
    assert "PasswordAuthentication no\n" in server
    assert f"SLURM_CONF={cluster.conf}" in server


async def test_a_login_node_that_is_restarted_ends_its_sessions_and_keeps_its_keys(ground):
    cluster = await ground.up(accounting=False, ssh=True)
    key = login_node.login_node(cluster).key.read_bytes()
    await eventually(lambda: login_node.sessions(cluster))
    before = login_node.sessions(cluster)
    await login_node.restart(cluster)
    await eventually(lambda: not alive(before))
    assert processes.running(cluster, "sshd") is not None
    assert login_node.login_node(cluster).key.read_bytes() == key


async def test_a_login_node_joins_a_cluster_that_is_up(ground):
    cluster = await ground.up(accounting=False)
    assert "sshd" not in cluster.daemons
    await ground.up(ssh=True)
    assert processes.running(cluster, "sshd") is not None


async def test_without_sshd_the_package_is_named(ground, monkeypatch):
    (ground.bin_dir / "sshd").unlink()
    monkeypatch.setattr(login_node, "SEARCH", str(ground.bin_dir))
    with pytest.raises(DevclusterError) as caught:
        await login_node.up(Cluster(ground.folder, 20000, definition.me(), ground.bin_dir))
    assert "openssh-server" in caught.value.hint


# --- the command -------------------------------------------------------------------------------------------------


async def test_the_command_brings_it_up_shows_it_and_takes_it_down(ground, capsys, monkeypatch):
    parser = argparse.ArgumentParser()
    devcluster_command.add_arguments(parser)

    async def command(*words: str) -> tuple[int, list[str]]:
        code = await devcluster_command.run(parser.parse_args([*words, "--folder", str(ground.folder)]))
        return code, capsys.readouterr().out.splitlines()

    code, shown = await command("up", "--slurm", "24.11")
    line = f'export SLURM_CONF={ground.folder}/etc/slurm.conf PATH={ground.bin_dir}:"$PATH"'
    assert (code, shown) == (0, [f"to use it, run in the terminal in which you start your client: {line}"])
    monkeypatch.setenv(devcluster_place.VARIABLE, str(ground.folder))
    assert devcluster_place.unused() == line
    code, shown = await command("env")
    assert (code, shown[0]) == (0, f"export SLURM_CONF={ground.folder}/etc/slurm.conf")
    assert shown[1].startswith(f"export PATH={ground.bin_dir}:")
    code, shown = await command("status")
    assert (code, shown[0]) == (0, "up")
    assert sum(line.endswith(" idle") for line in shown) == 5
    assert (await command("down", "--wipe"))[0] == 0
    assert devcluster_place.unused() is None
    assert not ground.folder.exists()
    assert "slurmd" in os.listdir(ground.bin_dir)  # noqa: PTH208 - only its own folder is deleted
