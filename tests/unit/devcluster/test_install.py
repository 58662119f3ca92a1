import io
import subprocess
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import packages
from slurm_agent_tools.devcluster.definition import DevclusterError
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.process import EndedProcess


class Machine:
    """A machine without Slurm: records what is run; apt-get brings everything."""

    def __init__(self, monkeypatch, folder: Path) -> None:
        self.present = {"apt-get"}
        self.ran: list[list[str]] = []
        self.said: list[str] = []
        self.guard: list[str] = []
        self.exit_code = 0
        monkeypatch.setattr(packages, "is_root", lambda: True)
        monkeypatch.setattr(packages, "POLICY", folder / "policy-rc.d")
        monkeypatch.setattr(packages.shutil, "which", self.which)
        monkeypatch.setattr(process, "run", self.run)
        monkeypatch.setattr(packages, "links", lambda _: [])
        monkeypatch.setattr(packages, "_scripts", list)

    def which(self, name: str, **_: str) -> str | None:
        return name if name in self.present else None

    async def run(self, argv, *, env, timeout):
        self.ran.append(argv)
        if argv[0] == "apt-get":
            self.guard.append(packages.POLICY.read_text())
        if argv[:2] == ["apt-get", "install"] and self.exit_code == 0:
            self.present |= {*packages._BASE, *packages._STORED}
        return EndedProcess(self.exit_code, b"", b"no space left", 0.1, truncated=False)

    async def ensure(self, *, yes: bool = True) -> None:
        await packages.ensure_packages(accounting=False, yes=yes, say=self.said.append)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    return Machine(monkeypatch, tmp_path)


async def test_nothing_is_asked_or_run_where_everything_is_there(machine):
    machine.present |= {*packages._BASE}

    await machine.ensure(yes=False)
    assert (machine.ran, machine.said) == ([], [])


async def test_packages_are_named_then_installed_and_no_service_starts_or_is_enabled(machine):
    await machine.ensure()

    assert "slurm-wlm munge" in machine.said[0]
    assert machine.ran[0] == ["apt-get", "update"]
    assert machine.ran[1] == [
        "apt-get",
        "install",
        "-y",
        "--no-install-recommends",
        "--no-remove",
        "slurm-wlm",
        "munge",
    ]
    assert all(text.endswith("exit 101\n") for text in machine.guard)
    assert not packages.POLICY.exists()
    assert ["update-rc.d", "munge", "disable"] in machine.ran


async def test_a_service_that_was_there_before_stays_enabled(machine):
    machine.present.add("munged")

    await machine.ensure()
    assert ["update-rc.d", "slurmctld", "disable"] in machine.ran
    assert ["update-rc.d", "munge", "disable"] not in machine.ran


async def test_a_failed_installation_says_why_and_leaves_no_guard(machine):
    machine.exit_code = 100

    with pytest.raises(DevclusterError, match="no space left"):
        await machine.ensure()
    assert not packages.POLICY.exists()


async def test_the_machines_own_policy_for_services_is_kept(machine):
    packages.POLICY.write_text("#!/bin/sh\nexit 101\n")

    await machine.ensure()
    assert packages.POLICY.read_text() == "#!/bin/sh\nexit 101\n"


async def test_a_guard_that_a_killed_run_left_is_taken_away(machine):
    packages.POLICY.write_text(packages._GUARD)

    await machine.ensure()
    assert not packages.POLICY.exists()


async def test_without_a_terminal_and_without_yes_nothing_is_installed(machine, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    with pytest.raises(DevclusterError, match="nothing was installed") as caught:
        await machine.ensure(yes=False)
    assert "--yes" in caught.value.hint
    assert machine.ran == []


async def test_an_ordinary_user_gets_the_one_line_to_run(machine, monkeypatch):
    monkeypatch.setattr(packages, "is_root", lambda: False)

    with pytest.raises(DevclusterError, match="slurm-wlm munge") as caught:
        await machine.ensure()
    assert caught.value.hint.startswith("run: sudo apt-get install -y")
    assert "\n" not in caught.value.hint
    assert machine.ran == []


def test_only_links_to_the_named_services_are_taken_back(tmp_path):
    wants = tmp_path / "multi-user.target.wants"
    wants.mkdir()
    (wants / "mariadb.service").symlink_to("/lib/systemd/system/mariadb.service")
    (tmp_path / "mysql.service").symlink_to("/lib/systemd/system/mariadb.service")
    (wants / "ssh.service").symlink_to("/lib/systemd/system/ssh.service")
    (tmp_path / "munge.service").symlink_to("/dev/null")
    (tmp_path / "mariadb.service").write_text("[Service]\n")

    found = packages.links(["mariadb", "munge"], tmp_path)
    assert found == [wants / "mariadb.service", tmp_path / "mysql.service"]
    assert packages.links([], tmp_path) == []


def test_the_policy_for_services_is_a_script_that_forbids_each_start(tmp_path):
    script = tmp_path / "policy"
    script.write_text(packages._GUARD)
    script.chmod(0o755)

    assert subprocess.run([script, "munge", "start"]).returncode == 101


async def test_what_unpacks_another_slurm_is_installed_only_when_one_is_asked_for(machine):
    machine.present |= {*packages._BASE}

    assert packages.missing_packages(accounting=False) == []
    assert packages.missing_packages(accounting=False, release=True) == ["mmdebstrap", "patchelf"]
