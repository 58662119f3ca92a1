"""What `slurm-agent-tools workstation` prints, and with which code it ends; the workstation itself is a stand-in."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from slurm_agent_tools.cli.commands import workstation_command, workstation_unit
from slurm_agent_tools.devcluster import workstation
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, MemoryLimits, Status
from slurm_agent_tools.devcluster.machine_facts import Kept, MachineGpu, MachineNode
from slurm_agent_tools.devcluster.workstation import WorkstationStatus
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.settings import workstation_place
from slurm_agent_tools.settings.workstation_place import WorkstationPlace

GPUS = (
    MachineGpu("a100", "/dev/nvidia0", "NVIDIA A100\x1b[31m-SXM4-80GB", 80 * 2**30),
    MachineGpu("gpu", "/dev/dri/renderD128", "unknown"),
)
MACHINE = MachineNode(8, 1, 4, 2, 16000, kept_memory=1600, reserved=(0, 1), gpus=GPUS)
PLACE = Path("/srv/my station")
CLUSTER = Cluster(PLACE, 6000, "ada", Path("/opt/slurm 24/bin"), MACHINE)
UP = Status(
    True, {"slurmctld": 12, "slurmd": 13}, {"ws1": "idle"}, MemoryLimits("cgroup/v2", "root brought it up", ("memory",))
)
DOWN = Status(False, {"slurmctld": 12, "slurmd": None}, {})


async def run(monkeypatch: pytest.MonkeyPatch, found: WorkstationStatus, *words: str) -> int:
    async def status() -> WorkstationStatus:
        return found

    monkeypatch.setattr(workstation, "status", status)
    return await called(*words)


async def called(*words: str) -> int:
    parser = argparse.ArgumentParser()
    workstation_command.add_arguments(parser)
    return await workstation_command.run(parser.parse_args(words))


async def test_status_tells_people_what_runs_what_jobs_can_have_and_what_does_not_hold(monkeypatch, capsys):
    code = await run(monkeypatch, WorkstationStatus(PLACE, CLUSTER, UP, ("No wall holds.",)), "status")
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "up",
        "slurmctld 12",
        "slurmd 13",
        "ws1 idle",
        "for jobs: 6 CPUs, 16000 MiB, 2 GPUs; 2 CPUs and 1600 MiB are kept for you",
        "a100: NVIDIA A100\\x1b[31m-SXM4-80GB, 80G, /dev/nvidia0",
        "gpu: unknown, memory not known, /dev/dri/renderD128",
        "memory limits: enforced by the kernel (cgroup/v2): root brought it up",
        "mind: No wall holds.",
    ]


async def test_one_of_which_something_does_not_run_is_told_with_the_command_that_mends_it(monkeypatch, capsys):
    assert await run(monkeypatch, WorkstationStatus(PLACE, CLUSTER, DOWN, ()), "status") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "not up; run: slurm-agent-tools workstation up"
    assert lines[2].split() == ["slurmd", "not", "running"]
    assert not any("memory limits" in line for line in lines)


@pytest.mark.parametrize(("status", "cluster", "code"), [(UP, CLUSTER, 0), (DOWN, None, 1)])
async def test_status_as_json_is_one_document(monkeypatch, capsys, status, cluster, code):
    assert await run(monkeypatch, WorkstationStatus(PLACE, cluster, status, ("mind",)), "status", "--json") == code
    body = json.loads(capsys.readouterr().out)
    assert (body["up"], body["folder"], body["notes"]) == (status.up, str(PLACE), ["mind"])
    assert body["daemons"] == status.daemons
    if cluster is None:
        assert body["machine"] is None
    else:
        assert body["machine"]["gpus"][0]["model"] == GPUS[0].model


async def test_env_prints_lines_that_a_shell_reads_back_and_none_of_one_that_is_not_up(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/usr/bin")
    assert await run(monkeypatch, WorkstationStatus(PLACE, CLUSTER, UP, ()), "env") == 0
    assert capsys.readouterr().out.splitlines() == [
        "export SLURM_CONF='/srv/my station/etc/slurm.conf'",
        "export PATH='/opt/slurm 24/bin:/usr/bin'",
    ]
    for found in (WorkstationStatus(PLACE, None, UP, ()), WorkstationStatus(PLACE, CLUSTER, DOWN, ())):
        with pytest.raises(DevclusterError, match="not up"):
            await run(monkeypatch, found, "env")
    assert capsys.readouterr().out == ""


async def test_up_passes_on_what_its_person_keeps_and_tells_what_jobs_can_have(monkeypatch, capsys):
    asked: list[dict[str, object]] = []

    async def up(**given: object) -> Cluster:
        asked.append(given)
        return CLUSTER

    monkeypatch.setattr(workstation, "up", up)
    monkeypatch.setattr(workstation, "notes", lambda _: ("No wall holds.",))
    assert await called("up", "--yes", "--keep-cores", "2", "--keep-memory", "4G") == 0
    assert await called("up") == 0
    first, plain = [{name: one[name] for name in ("kept", "slurm", "yes")} for one in asked]
    assert first == {"kept": Kept(2, 4096), "slurm": None, "yes": True}
    assert plain == {"kept": Kept(), "slurm": None, "yes": False}
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "for jobs: 6 CPUs, 16000 MiB, 2 GPUs; 2 CPUs and 1600 MiB are kept for you"
    assert out[3] == "No wall holds."
    with pytest.raises(InputError, match="keep_memory"):
        await called("up", "--keep-memory", "much")
    assert len(asked) == 2


@pytest.mark.parametrize("root", [True, False])
async def test_root_is_told_first_that_its_own_jobs_are_refused(monkeypatch, capsys, root):
    told: list[str] = []

    async def up(**_: object) -> Cluster:
        told.append(capsys.readouterr().err)
        return CLUSTER

    monkeypatch.setattr(workstation, "up", up)
    monkeypatch.setattr(workstation_place, "is_root", lambda: root)
    assert await called("up") == 0
    (line,) = told
    assert line.count("\n") == root
    assert ("jobs of root are refused" in line, "slurm-agent-tools devcluster up --yes" in line) == (root, root)


@pytest.mark.parametrize(
    ("words", "jobs", "wipe"),
    [((), None, False), (("--keep-jobs",), "keep", False), (("--end-jobs", "--wipe"), "end", True)],
)
async def test_down_says_what_becomes_of_jobs_and_folder(monkeypatch, words, jobs, wipe):
    asked: list[tuple[object, object]] = []

    async def down(*, jobs: str | None, wipe: bool, say: object) -> None:
        asked.append((jobs, wipe))

    monkeypatch.setattr(workstation, "down", down)
    assert await called("down", *words) == 0
    assert asked == [(jobs, wipe)]


@pytest.mark.parametrize("what", ["enable", "disable"])
async def test_enable_and_disable_tell_what_they_did(monkeypatch, capsys, what):
    async def did() -> list[str]:
        return [f"{what}d", "and more"]

    monkeypatch.setattr(workstation_unit, what, did)
    assert await called(what) == 0
    assert capsys.readouterr().out == f"{what}d\nand more\n"


async def test_who_takes_down_what_is_the_machines_is_told_that_root_does(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(workstation_place, "folder", lambda: tmp_path / "mine")
    monkeypatch.setattr(workstation_place, "find", lambda: WorkstationPlace(tmp_path / "machine"))
    assert await called("down") == 0
    err = capsys.readouterr().err
    assert f"no workstation in {tmp_path / 'mine'}; that of the machine is {tmp_path / 'machine'}: root" in err
    monkeypatch.setattr(workstation_place, "find", lambda: None)
    assert await called("down") == 0
    assert "of the machine" not in capsys.readouterr().err
