"""doctor goes the way to a cluster step by step and ends at the first thing that is wrong."""

import asyncssh
import pytest
from tests.unit.transport.sshserver import Node

from slurm_agent_tools.cli.commands import doctor_steps
from slurm_agent_tools.devcluster import workstation
from slurm_agent_tools.settings import ClusterSettings, Settings, SlurmSettings, devcluster_place, workstation_place
from slurm_agent_tools.transport.local import LocalTransport
from slurm_agent_tools.transport.ssh.remote import SshTransport

WELL = {
    "sinfo": "echo slurm 22.05.8",
    "scontrol": "echo Slurmctld is UP",
    "sacct": "true",
    "date": "exec /bin/date +%s",
}
FAULTS = {  # what is wrong -> the first step that fails, what is seen, what to do
    "unknown name": ("name", "no-such-host.invalid is not a known name", "VPN"),
    "closed port": ("tcp", "nothing answers at 127.0.0.1:1", "`port`"),
    "broken configuration": ("name", "config line 2: ", "Mend it until `ssh node` works"),
    "unknown key": ("host key", "is not known (ssh-ed25519 SHA256:", "compare this fingerprint"),
    "wrong user key": ("login", "refused the login", "ssh-add"),
    "shell that ends": ("login", "ran no command: Closed today", "Look at what"),
    "no sinfo": ("slurm", "sinfo is not installed on node", "slurm.bin_dir"),
    "no slurm.conf": ("slurm", "could not establish a configuration source", "conf"),
    "no controller": ("controller", "Slurmctld is DOWN", "scontrol ping"),
    "no slurmdbd": ("accounting", "Problem talking to the database", "slurmdbd"),
    "no project": ("project", "is not a folder on node", "mkdir -p"),
    "clock": ("clock", " s ahead of this machine", "NTP"),
}


async def test_doctor_stops_at_the_first_thing_that_fails(node):
    place = SshTransport("there", node.settings())
    found = [step async for step in doctor_steps.check_steps(place)]
    assert [step.name for step in found][:4] == ["name", "tcp", "host key", "login"]
    assert [step.ok for step in found] == [True] * (len(found) - 1) + [found[-1].ok]
    await place.close()
    unknown = SshTransport("there", node.settings(known_hosts=node.folder / "absent"))
    found = [step async for step in doctor_steps.check_steps(unknown)]
    assert [(step.name, step.ok) for step in found] == [("name", True), ("tcp", True), ("host key", False)]
    assert found[-1].todo


def _spoiled(node: Node, fault: str) -> ClusterSettings:
    """Settings with which just this goes wrong."""
    spoiled = {
        "no slurm.conf": ("sinfo", "echo sinfo: could not establish a configuration source; exit 1"),
        "no controller": ("scontrol", "echo Slurmctld is DOWN; exit 1"),
        "no slurmdbd": ("sacct", "echo sacct: error: Problem talking to the database >&2; exit 1"),
        "clock": ("date", "echo $(( $(/bin/date +%s) + 3600 ))"),
    }
    for name, text in (WELL | dict(filter(None, [spoiled.get(fault)]))).items():
        (node.folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (node.folder / name).chmod(0o755)
    (node.folder / "sinfo").unlink() if fault == "no sinfo" else None
    node.profile = f"PATH={node.folder}:$PATH\n" + ("echo Closed today; exit" if fault == "shell that ends" else "")
    settings = node.settings(slurm={"bin_dir": node.folder})
    if fault == "wrong user key":
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(node.folder / "key"))
    if fault == "unknown key":
        settings.known_hosts.write_text("")
    if fault == "broken configuration":
        settings.ssh_config.write_text("Host node\n User\n")
    more = {"unknown name": {"host": "no-such-host.invalid"}, "closed port": {"port": 1},
            "no project": {"remote_root": "absent"}}.get(fault, {})  # fmt: skip
    return settings.model_copy(update=more)


@pytest.mark.parametrize("fault", FAULTS)
async def test_doctor_ends_at_what_is_wrong_and_says_what_to_do(node, fault):
    place = SshTransport("there", _spoiled(node, fault))
    found = [step async for step in doctor_steps.check_steps(place)]
    await place.close()
    name, seen, todo = FAULTS[fault]
    assert [step.ok for step in found] == [True] * (len(found) - 1) + [False]
    assert (found[-1].name, seen in found[-1].seen, todo in found[-1].todo) == (name, True, True), found[-1]
    if fault == "clock":  # on a busy machine the answer comes seconds after the question
        assert abs(int(found[-1].seen.split()[0]) - 3600) < 60


async def test_doctor_tells_what_a_workstation_does_not_hold_and_is_content_with_it(tmp_path, monkeypatch):
    for name, text in WELL.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    settings = Settings(project_root=tmp_path, slurm=SlurmSettings(bin_dir=tmp_path))
    plain, desk = (LocalTransport(settings, settings.slurm) for _ in range(2))
    monkeypatch.setattr(desk, "notes", lambda: ("No wall holds.", "Jobs of root are off."))
    found = [step async for step in doctor_steps.check_steps(desk)]
    assert [(step.ok, step.seen) for step in found if step.name == "walls"] == [
        (True, "No wall holds."), (True, "Jobs of root are off."),
    ]  # fmt: skip
    assert "walls" not in [step.name async for step in doctor_steps.check_steps(plain)]


async def test_root_whose_jobs_a_workstation_refuses_is_not_told_that_it_works(tmp_path, monkeypatch):
    monkeypatch.setattr(workstation, "running", lambda _: True)
    for name, text in WELL.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "cluster.json").write_text('{"base_port": 16000, "user": "ada"}')
    slurm = SlurmSettings(bin_dir=tmp_path, conf=tmp_path / "etc" / "slurm.conf")
    place = workstation.WorkstationTransport(Settings(project_root=tmp_path, slurm=slurm), slurm)
    monkeypatch.setattr(workstation_place, "is_root", lambda: True)
    *before, last = [step async for step in doctor_steps.check_steps(place)]
    assert {step.ok for step in before} == {True}
    assert not any("Jobs of root" in step.seen for step in before)
    assert (last.name, last.ok, last.seen) == ("user", False, "root's jobs are refused here")
    assert last.todo.startswith("work as an ordinary user, or ")
    assert last.todo.endswith("slurm-agent-tools devcluster up --yes")
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    assert all([step.ok async for step in doctor_steps.check_steps(place)])


async def _without_slurm(folder):
    """What doctor says where there is no sinfo, and where there is one that finds no cluster."""
    settings = Settings(project_root=folder, slurm=SlurmSettings(bin_dir=folder))
    place = LocalTransport(settings, settings.slurm)
    (missing,) = [step async for step in doctor_steps.check_steps(place)]
    (folder / "sinfo").write_text("#!/bin/sh\necho sinfo: could not establish a configuration source; exit 1\n")
    (folder / "sinfo").chmod(0o755)
    (silent,) = [step async for step in doctor_steps.check_steps(place)]
    return missing, silent


async def test_doctor_says_that_the_configuration_of_the_terminal_is_gone(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "gone.conf"))
    step, _ = await _without_slurm(tmp_path)
    assert (step.name, step.ok, step.seen) == (
        "slurm",
        False,
        f"SLURM_CONF names {tmp_path}/gone.conf, which is not there",
    )
    assert step.todo.startswith("Run `unset SLURM_CONF`")


async def test_doctor_names_a_private_slurm_for_root_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(workstation_place, "is_root", lambda: True)
    missing, silent = await _without_slurm(tmp_path)
    for step in (missing, silent):
        assert 0 < step.todo.index("run: slurm-agent-tools devcluster up --yes") < step.todo.lower().index("bin_dir")
        assert "workstation up" not in step.todo


async def test_doctor_names_the_workstation_where_there_is_no_slurm(tmp_path, monkeypatch):
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    settings = Settings(project_root=tmp_path, slurm=SlurmSettings(bin_dir=tmp_path))
    (tmp_path / "sinfo").write_text("#!/bin/sh\necho sinfo: could not establish a configuration source; exit 1\n")
    (tmp_path / "sinfo").chmod(0o755)
    place = LocalTransport(settings, settings.slurm)
    (step,) = [step async for step in doctor_steps.check_steps(place)]
    assert "slurm-agent-tools workstation up" in step.todo
    (tmp_path / "sinfo").unlink()
    (step,) = [step async for step in doctor_steps.check_steps(place)]
    assert "slurm-agent-tools workstation up" in step.todo


async def test_doctor_names_the_devcluster_that_runs_first_and_each_variable_in_full(tmp_path, monkeypatch):
    line = "export SLURM_CONF=/srv/d/etc/slurm.conf"
    monkeypatch.setattr(devcluster_place, "unused", lambda: line)
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    missing, silent = await _without_slurm(tmp_path)
    for step in (missing, silent):
        assert step.todo.index(line) < step.todo.index("slurm-agent-tools workstation up")
    assert "SLURM_AGENT_SLURM__BIN_DIR or SLURM_AGENT_SLURM__CONF" in silent.todo
    assert "..." not in silent.todo


async def test_doctor_is_content_where_all_is_well(node):
    place = SshTransport("there", _spoiled(node, "nothing"))
    found = [step async for step in doctor_steps.check_steps(place)]
    await place.close()
    names = ["name", "tcp", "host key", "login", "slurm", "controller", "accounting", "project", "clock"]
    assert [(step.name, step.ok) for step in found] == [(name, True) for name in names]


@pytest.mark.parametrize(
    ("text", "name"), [("echo 'ClusterName             = devcluster'", "devcluster"), ("exit 1", None)]
)
async def test_slurms_own_name_of_a_cluster_is_asked_and_not_known_where_it_does_not_say(tmp_path, text, name):
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\n{text}\n")
    (tmp_path / "scontrol").chmod(0o755)
    settings = Settings(project_root=tmp_path, slurm=SlurmSettings(bin_dir=tmp_path))
    assert await doctor_steps.slurm_name(LocalTransport(settings, settings.slurm)) == name
