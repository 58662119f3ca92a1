"""A workstation's whole way, as an ordinary user brings it up; its programs are stand-ins that run."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.devcluster import stand_ins
from tests.unit.devcluster.test_whole_way import USERS_OF_ROOT
from tests.watchdog import eventually

from slurm_agent_tools.cli.commands import workstation_command
from slurm_agent_tools.devcluster import (
    cgroups,
    config_files,
    definition,
    folders,
    lifecycle,
    login_node,
    machine_facts,
    packages,
    processes,
    slurm_daemons,
    workers,
    workstation,
)
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, MemoryLimits
from slurm_agent_tools.devcluster.machine_facts import Kept, MachineGpu, MachineNode
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.settings import Settings, SlurmSettings, workstation_place

GPUS = (MachineGpu("a100", "/dev/tty50", "stands in"),)


class Ground:
    """A folder for the workstation, and what the stand-ins say."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin_dir, self.said = folder / "ws", folder / "24.11" / "bin", folder / "said"
        stand_ins.make(self.bin_dir, self.said)
        self.lines: list[str] = []

    async def up(self, **more: object) -> Cluster:
        return await workstation.up(self.folder, slurm="24.11", say=self.lines.append, **more)

    async def down(self, **more: object) -> None:
        await workstation.down(self.folder, say=self.lines.append, **more)

    def calls(self, start: str) -> list[str]:
        return [line for line in (self.said / "calls").read_text().splitlines() if line.startswith(start)]

    def step(self, cluster: Cluster) -> subprocess.Popen[bytes]:
        """A process that holds a job, by its name, as slurmstepd does."""
        program = self.bin_dir / "slurmstepd"
        program.unlink(missing_ok=True)
        program.symlink_to(sys.executable)
        words = [str(program), "-c", "import time; open('/proc/self/comm', 'w').write('slurmstepd'); time.sleep(600)"]
        return subprocess.Popen(words, env={"SLURM_CONF": f"{cluster.folder}/etc/slurm.conf"})


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
    monkeypatch.setattr(machine_facts, "_order", lambda *_: [])
    monkeypatch.setenv(workstation_place.VARIABLE, str(made.folder))
    yield made
    await workstation.down(made.folder, jobs="end", say=lambda _: None)


async def test_it_comes_up_with_what_the_machine_has_and_for_its_user_alone(ground):
    cluster = await ground.up(gpus=GPUS, kept=Kept(cores=0, memory=2000))
    kinds = [name.partition(".")[0] for name in cluster.daemons]
    assert kinds == ["munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd"]
    told = await workstation.status(ground.folder)
    assert told.status.up
    assert told.cluster == cluster
    assert cluster.machine.memory <= 30000
    assert (cluster.machine.gpus, cluster.machine.kept_memory) == (GPUS, 2000)
    assert "--force" in ground.calls("munged")[0]  # the folder is closed to others
    assert ground.calls("slurmctld") == [line for line in ground.calls("slurmctld") if " -i" not in line]
    assert cluster.folder.stat().st_mode & 0o777 == 0o700
    assert not (cluster.folder / "home").exists()
    assert (cluster.folder / "etc/gres.conf").read_text() == "Name=gpu Type=a100 File=/dev/tty50\n"
    assert [line.split()[2:4] for line in ground.calls("sacctmgr -i add")] == [["add", "cluster"], ["add", "user"]]


async def test_what_does_not_hold_is_told_in_status_and_to_answers(ground):
    cluster = await ground.up(gpus=GPUS)
    (wall, *others) = workstation.notes(cluster)
    assert wall.startswith("No wall between jobs holds for memory, cores and GPUs on this workstation: ")
    assert "CUDA_VISIBLE_DEVICES is only advice" in wall
    assert bool(others) == (os.geteuid() == 0)
    assert wall in (await workstation.status(ground.folder)).notes
    place = workstation.WorkstationTransport(Settings(project_root=ground.folder), SlurmSettings(conf=cluster.conf))
    assert wall in place.notes()


@pytest.mark.parametrize(
    ("walls", "gpus", "said"),
    [
        (cgroups.WALLS, GPUS, None), (("memory", "cores"), (), None), (("memory", "cores"), GPUS, "for GPUs on"),
        (("memory",), (), "for cores on"), ((), (), "for memory and cores on"),
    ],
)  # fmt: skip
def test_a_wall_that_holds_is_not_told(tmp_path, monkeypatch, walls, gpus, said):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    cluster = Cluster(tmp_path, 16000, "ada", machine=MachineNode(4, 1, 4, 1, 8000, gpus=gpus))
    assert workstation.notes(cluster) == ()  # nothing is known of one that never came up
    (tmp_path / "run").mkdir()
    cgroups.record(cluster, MemoryLimits("cgroup/v1", "here", walls))
    found = workstation.notes(cluster)
    assert (found == ()) if said is None else (said in found[0])


def test_jobs_of_root_are_said_to_be_off(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (found,) = workstation.notes(Cluster(tmp_path, 16000, "ada"))
    assert found.startswith("Jobs of root are off")
    assert found.endswith("slurm-agent-tools devcluster up --yes")


async def test_daemons_that_died_are_started_again_and_the_others_stay(ground):
    cluster = await ground.up(gpus=GPUS)
    before = (await workstation.status(ground.folder)).status.daemons
    conf = cluster.conf.read_text()
    for name in ("munged", "slurmdbd"):
        await lifecycle.signal_daemon(cluster, name, signal.SIGKILL)
        await eventually(lambda name=name: processes.running(cluster, name) is None)
    assert await ground.up() == cluster
    after = (await workstation.status(ground.folder)).status
    assert after.up
    assert {name for name in before if before[name] != after.daemons[name]} == {"munged", "slurmdbd"}
    assert cluster.conf.read_text() == conf
    assert ground.lines[-3:] == [
        "starting munged, which did not run", "starting slurmdbd, which did not run", f"up in {ground.folder}",
    ]  # fmt: skip
    await ground.up()
    assert ground.lines[-1] == f"already up in {ground.folder}"


async def test_after_a_crash_of_slurmctld_no_number_of_a_job_is_given_twice(ground):
    cluster = await ground.up(gpus=GPUS)
    assert "FirstJobId" not in cluster.conf.read_text()
    before = (await workstation.status(ground.folder)).status.daemons
    await lifecycle.signal_daemon(cluster, "slurmctld", signal.SIGKILL)
    await eventually(lambda: processes.running(cluster, "slurmctld") is None)
    (ground.said / "last").write_text("41\n")
    again = await ground.up(gpus=GPUS)
    assert "FirstJobId=1041\n" in again.conf.read_text()
    after = (await workstation.status(ground.folder)).status
    assert after.up
    assert not set(before.values()) & set(after.daemons.values())
    await ground.down()
    assert "FirstJobId" not in (await ground.up(gpus=GPUS)).conf.read_text()


async def test_a_log_that_grew_large_goes_on_in_a_new_file(ground, monkeypatch):
    cluster = await ground.up()
    await ground.down()
    (cluster.folder / "log/slurmctld.log").write_text("much\n")
    monkeypatch.setattr(folders, "_LARGEST_LOG", 4)
    await ground.up()
    assert (cluster.folder / "log/slurmctld.log").read_text() == ""
    assert (cluster.folder / "log/slurmctld.log.old").read_text() == "much\n"


async def test_while_jobs_of_before_run_the_machine_stays_what_it_was_for_them(ground):
    cluster = await ground.up(gpus=GPUS)
    step = ground.step(cluster)
    await eventually(lambda: processes.steps(cluster) == [step.pid])
    with pytest.raises(InputError, match="parts of jobs still run") as caught:
        await ground.down()
    assert "--keep-jobs" in caught.value.hint
    assert (await workstation.status(ground.folder)).status.up
    await ground.down(jobs="keep")
    assert step.poll() is None
    assert (await ground.up()).machine.gpus == GPUS
    await ground.down(jobs="end")
    assert step.wait(10) == -signal.SIGKILL
    assert (await ground.up()).machine.gpus == ()


async def test_jobs_that_nothing_holds_any_more_are_told_to_slurmctld_before_its_node_starts(ground):
    cluster = await ground.up(gpus=GPUS)
    (node,) = cluster.nodes
    down = f"scontrol update NodeName={node} State=DOWN"
    assert ground.calls(down) == []
    await ground.down(jobs="keep")
    (ground.said / "jobs").write_text("12\n")
    await ground.up(gpus=GPUS)
    calls = ground.calls("")
    (place,) = [number for number, line in enumerate(calls) if line.startswith(down)]
    assert [line.startswith("slurmd -D") for line in calls[place:]].count(True) == 1
    (ground.said / "jobs").unlink()


async def test_jobs_that_still_run_are_not_told_as_dead(ground):
    cluster = await ground.up(gpus=GPUS)
    step = ground.step(cluster)
    await eventually(lambda: processes.steps(cluster))
    await ground.down(jobs="keep")
    (ground.said / "jobs").write_text("12\n")
    await ground.up()
    assert [line for line in ground.calls("scontrol update") if "State=DOWN" in line and "NodeName" in line] == []
    (ground.said / "jobs").unlink()
    step.kill()
    step.wait()


async def test_a_start_that_fails_leaves_no_daemon_and_no_job_is_touched(ground):
    first = await ground.up(gpus=GPUS)
    step = ground.step(first)
    await eventually(lambda: processes.steps(first))
    await ground.down(jobs="keep")
    (ground.said / "refuses.mariadb").write_text("no space left\n")
    with pytest.raises(DevclusterError, match="no space left"):
        await ground.up()
    assert set((await workstation.status(ground.folder)).status.daemons.values()) == {None}
    assert step.poll() is None
    (ground.said / "refuses.mariadb").unlink()
    await ground.up()
    step.kill()
    step.wait()


async def test_what_is_kept_for_the_person_stays_until_something_else_is_said(ground):
    await ground.up(kept=Kept(memory=2000))
    with pytest.raises(InputError, match=r"keep_memory.*it is up") as caught:
        await ground.up(kept=Kept(memory=3000))
    assert caught.value.hint == "Take it down first."
    with pytest.raises(InputError, match="keep_cores"):
        await ground.up(kept=Kept(cores=0))
    await ground.down()
    assert (await ground.up()).machine.kept_memory == 2000
    await ground.down()
    changed = (await ground.up(kept=Kept(cores=0))).machine
    assert (changed.kept, changed.kept_memory) == (Kept(0, 2000), 2000)


async def test_the_state_of_one_version_of_slurm_is_not_given_to_another(ground):
    cluster = await ground.up()
    with pytest.raises(InputError, match=r"does not read the state .* of Slurm 24\.11") as caught:
        await workstation.up(ground.folder, slurm="26.05", say=ground.lines.append)
    assert "--wipe" in caught.value.hint
    await ground.down()
    again = await workstation.up(ground.folder, say=ground.lines.append)  # nothing said: what it has
    assert again.bin_dir == cluster.bin_dir


async def test_beside_the_machines_own_it_says_that_both_give_the_same(ground, monkeypatch):
    monkeypatch.setattr(workstation, "running", lambda folder: folder == workstation_place.MACHINES)
    await ground.up()
    assert any("the machine's own workstation" in line for line in ground.lines)


async def test_down_says_where_its_state_is_and_wipes_when_told(ground):
    await ground.up()
    await ground.down()
    assert ground.lines[-1] == f"down; its state stays in {ground.folder}"
    with pytest.raises(InputError, match="cannot be kept"):
        await ground.down(jobs="keep", wipe=True)
    await ground.down(wipe=True)
    assert not ground.folder.exists()
    await ground.down()
    assert ground.lines[-1] == f"no workstation in {ground.folder}"


async def test_whether_it_runs_is_seen_without_asking_slurm(ground, monkeypatch):
    assert workstation.running(ground.folder) is False
    cluster = await ground.up()
    slurm = SlurmSettings(conf=cluster.conf)
    assert workstation.running(ground.folder) is True
    assert workstation.asleep(slurm) is None
    await lifecycle.signal_daemon(cluster, "slurmctld", signal.SIGKILL)
    await eventually(lambda: workstation.running(ground.folder) is False)
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    assert "slurm-agent-tools workstation up" in workstation.asleep(slurm)
    assert workstation.asleep(slurm).endswith(": slurm-agent-tools workstation down --wipe")
    monkeypatch.setenv(workstation_place.VARIABLE, str(ground.folder / "own"))
    assert "--wipe" not in workstation.asleep(slurm)  # who cannot delete that of the machine


async def test_where_processes_of_others_are_hidden_it_is_not_said_to_be_down(ground, monkeypatch):
    cluster = await ground.up()
    monkeypatch.setattr(processes, "running", lambda *_: None)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert workstation.running(ground.folder) is None
    assert workstation.asleep(SlurmSettings(conf=cluster.conf)) is None
    monkeypatch.undo()


async def test_a_folder_with_other_things_in_it_is_not_taken(ground):
    ground.folder.mkdir()
    (ground.folder / "thesis.tex").touch()
    with pytest.raises(DevclusterError, match="holds other things"):
        await ground.up()
    (ground.folder / "thesis.tex").unlink()


async def test_a_garbled_record_is_told(ground):
    ground.folder.mkdir()
    (ground.folder / "cluster.json").write_text("{")
    with pytest.raises(StorageError, match=r"cluster\.json"):
        await workstation.status(ground.folder)
    (ground.folder / "cluster.json").unlink()


def test_under_sudo_the_accounting_knows_the_person_and_a_unit_keeps_whom_it_knew(monkeypatch):
    monkeypatch.setattr(definition, "is_root", lambda: True)
    monkeypatch.setenv("SUDO_USER", "ada")
    assert workstation._person(None) == "ada"
    monkeypatch.delenv("SUDO_USER")
    assert workstation._person(Cluster(Path("/x"), 16000, "ada")) == "ada"
    assert workstation._person(None) == definition.me()


def test_a_workstation_of_root_asks_for_every_wall_and_the_devcluster_for_memory(monkeypatch):
    monkeypatch.setattr(cgroups, "walls", lambda *_: cgroups.WALLS)
    desk = Cluster(Path("/x"), 16000, "ada", machine=MachineNode(4, 1, 4, 1, 8000))
    assert workers.held(desk, cgroups.Way.V1) == cgroups.WALLS
    assert workers.held(Cluster(Path("/x"), 17000, "ada"), cgroups.Way.V1) == ("memory",)


# --- the command -------------------------------------------------------------------------------------------------


async def test_the_command_brings_it_up_shows_it_and_takes_it_down(ground, capsys):
    parser = argparse.ArgumentParser()
    workstation_command.add_arguments(parser)

    async def command(*words: str) -> tuple[int, list[str]]:
        code = await workstation_command.run(parser.parse_args(words))
        return code, capsys.readouterr().out.splitlines()

    code, shown = await command("status")
    assert (code, shown) == (1, ["not up; run: slurm-agent-tools workstation up"])
    with pytest.raises(DevclusterError, match="is not up"):
        await command("env")
    code, shown = await command("up", "--slurm", "24.11", "--keep-memory", "2G", "--yes")
    assert code == 0
    assert " 0 GPUs; " in shown[0]
    assert shown[0].endswith("and 2048 MiB are kept for you")
    code, shown = await command("status")
    assert (code, shown[0]) == (0, "up")
    assert any(line.startswith("mind: No wall between jobs holds") for line in shown)
    assert any(line.startswith("memory limits: polled") for line in shown)
    code, (text,) = await command("status", "--json")
    body = json.loads(text)
    assert (body["up"], body["machine"]["kept_memory"], body["folder"]) == (True, 2048, str(ground.folder))
    code, shown = await command("env")
    assert (code, shown[0]) == (0, f"export SLURM_CONF={ground.folder}/etc/slurm.conf")
    assert (await command("down", "--wipe"))[0] == 0
    assert not ground.folder.exists()


async def test_gpus_are_shown_with_what_is_known_of_them(ground, capsys):
    await ground.up(gpus=(MachineGpu("t4", "/dev/tty50", "Tesla T4", 15 * 2**30), *GPUS))
    parser = argparse.ArgumentParser()
    workstation_command.add_arguments(parser)
    await workstation_command.run(parser.parse_args(["status"]))
    shown = capsys.readouterr().out
    assert "  t4: Tesla T4, 15G, /dev/tty50\n" in shown
    assert "  a100: stands in, memory not known, /dev/tty50\n" in shown


@pytest.mark.parametrize(
    "words", [["down", "--keep-jobs", "--end-jobs"], ["up", "--gpus", "x"], ["up", "--folder", "/x"], []]
)
def test_no_words_name_device_files_or_another_folder(words):
    parser = argparse.ArgumentParser()
    workstation_command.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(words)


async def test_a_size_that_is_none_is_an_error_that_names_it():
    parser = argparse.ArgumentParser()
    workstation_command.add_arguments(parser)
    with pytest.raises(InputError, match="keep_memory"):
        await workstation_command.run(parser.parse_args(["up", "--keep-memory", "much"]))
