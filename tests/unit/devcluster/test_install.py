"""What set-up finds missing, and the script that installs it: with the table, apt-get and update-rc.d of the test."""

import io
import os
import subprocess
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import packages
from slurm_agent_tools.devcluster import packages as packages_module
from slurm_agent_tools.devcluster.definition import DevclusterError
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.process import EndedProcess

GUARD = "#!/bin/sh\n# Made by slurm-agent-tools while it installs packages: no service is started.\nexit 101\n"


class Machine:
    """A machine without Slurm: records what is run; the script brings everything."""

    def __init__(self, monkeypatch) -> None:
        self.present = {"apt-get"}
        self.ran: list[list[str]] = []
        self.said: list[str] = []
        self.exit_code = 0
        monkeypatch.setattr(packages, "is_root", lambda: True)
        monkeypatch.setattr(packages.shutil, "which", self.which)
        monkeypatch.setattr(process, "run", self.run)

    def which(self, name: str, **_: str) -> str | None:
        return name if name in self.present else None

    async def run(self, argv, *, env, timeout):
        self.ran.append(argv)
        if self.exit_code == 0:
            self.present |= {need.program for need in packages.needs() if need.package in argv}
        return EndedProcess(self.exit_code, b"", b"no space left", 0.1, truncated=False)

    async def ensure(self, *, yes: bool = True, ssh: bool = False) -> None:
        await packages.ensure_packages(accounting=False, yes=yes, say=self.said.append, ssh=ssh)

    def have(self, *kinds: str) -> None:
        self.present |= {need.program for need in packages.needs() if need.kind in kinds}


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


async def test_nothing_is_asked_or_run_where_everything_is_there(machine):
    machine.have("cluster")

    await machine.ensure(yes=False)
    assert (machine.ran, machine.said) == ([], [])


async def test_packages_are_named_then_installed_at_once(machine):
    await machine.ensure(ssh=True)

    assert "slurmctld slurmd slurm-client munge openssh-server openssh-client" in machine.said[0]
    assert machine.ran == [["sh", str(packages_module.SCRIPT), *machine.said[0].split(": ")[1].split(" (")[0].split()]]


async def test_a_failed_installation_says_why(machine):
    machine.exit_code = 100

    with pytest.raises(DevclusterError, match="no space left"):
        await machine.ensure()


async def test_an_installation_that_brings_nothing_is_not_believed(machine, monkeypatch):
    async def nothing(argv, **_):
        return EndedProcess(0, b"", b"", 0.1, truncated=False)

    monkeypatch.setattr(process, "run", nothing)
    with pytest.raises(DevclusterError, match="still missing: slurmctld"):
        await machine.ensure()


async def test_without_a_terminal_and_without_yes_nothing_is_installed(machine, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    with pytest.raises(DevclusterError, match="nothing was installed") as caught:
        await machine.ensure(yes=False)
    assert "--yes" in caught.value.hint
    assert machine.ran == []


async def test_an_ordinary_user_gets_the_one_line_to_run(machine, monkeypatch):
    monkeypatch.setattr(packages, "is_root", lambda: False)

    with pytest.raises(DevclusterError, match="slurmctld slurmd slurm-client munge") as caught:
        await machine.ensure()
    assert caught.value.hint.startswith("run: sudo apt-get install -y")
    assert "\n" not in caught.value.hint
    assert machine.ran == []


async def test_what_unpacks_another_slurm_is_installed_only_when_one_is_asked_for(machine):
    machine.have("cluster")

    assert packages.missing_packages(accounting=False) == []
    assert packages.missing_packages(accounting=False, release=True) == ["mmdebstrap", "patchelf"]


def test_a_file_counts_as_there_when_its_wildcards_match_one(tmp_path):
    (tmp_path / "x86/slurm-wlm").mkdir(parents=True)
    need = packages.Need("accounting", f"{tmp_path}/*/slurm*/storage.so", "plugin")

    assert not need.met()
    (tmp_path / "x86/slurm-wlm/storage.so").touch()
    assert need.met()


class Root:
    """A root folder in which the real script installs, with an apt-get that says what it met."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.policy = folder / "usr/sbin/policy-rc.d"
        self.wants = folder / "etc/systemd/system/multi-user.target.wants"
        for place in (self.bin, self.policy.parent, self.wants, folder / "etc/init.d"):
            place.mkdir(parents=True)
        self.program("apt-get", f'echo "apt-get $*" >>{folder}/calls\ncat {self.policy} >>{folder}/met\n')
        self.program("update-rc.d", f'echo "update-rc.d $*" >>{folder}/calls\n')

    def program(self, name: str, text: str = "") -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)

    def service(self, name: str) -> Path:
        (self.folder / "etc/init.d" / name).touch()
        link = self.wants / f"{name}.service"
        link.symlink_to(f"/lib/systemd/system/{name}.service")
        return link

    def install(self, *packages: str) -> int:
        # Of the programs here only those that the script is written with; no daemon that this machine may have.
        for name in ("dirname", "cat", "rm", "chmod", "find"):
            if not (self.bin / name).exists():
                (self.bin / name).symlink_to(f"/usr/bin/{name}")
        env = {"PATH": str(self.bin), "SLURM_AGENT_INSTALL_ROOT": str(self.folder)}
        return subprocess.run(["/bin/sh", packages_module.SCRIPT, *packages], env=env, capture_output=True).returncode

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path)


def test_one_apt_get_installs_all_and_removes_nothing(root):
    assert root.install("munge", "slurm-wlm") == 0

    wait = "-o DPkg::Lock::Timeout=300"
    line = f"apt-get install -y -q --no-install-recommends --no-remove {wait} munge slurm-wlm"
    assert root.calls() == [f"apt-get update -q {wait}", line]


def test_no_service_starts_while_packages_are_installed_and_none_is_enabled_afterwards(root):
    link = root.service("munge")

    root.install("munge")
    assert (root.folder / "met").read_text() == GUARD * 2
    assert not root.policy.exists()
    assert not link.is_symlink()
    assert "update-rc.d munge disable" in root.calls()


def test_the_policy_for_services_is_a_script_that_forbids_each_start(root):
    root.program("apt-get", f"{root.policy} munge start; echo $? >>{root.folder}/calls\n")

    root.install("munge")
    assert root.calls() == ["101", "101"]


def test_a_service_that_was_there_before_stays_enabled(root):
    root.program("munged")
    link = root.service("munge")

    root.install("slurm-wlm")
    assert link.is_symlink()
    assert not any("munge disable" in call for call in root.calls())


def test_only_links_to_the_new_services_are_taken_back(root):
    root.program("sshd")
    theirs, units = root.service("ssh"), root.folder / "etc/systemd/system"
    (units / "mysql.service").symlink_to("/lib/systemd/system/mariadb.service")
    (units / "munge.service").symlink_to("/dev/null")
    (units / "slurmd.service").write_text("[Service]\n")

    root.install("mariadb-server")
    assert sorted(path.name for path in units.iterdir()) == [
        "multi-user.target.wants",
        "munge.service",
        "slurmd.service",
    ]
    assert theirs.is_symlink()


def test_a_failed_installation_leaves_no_guard_and_no_enabled_service(root):
    root.program("apt-get", "exit 100\n")
    link = root.service("munge")

    assert root.install("munge") == 100
    assert not root.policy.exists()
    assert not link.is_symlink()


def test_the_machines_own_policy_for_services_is_kept(root):
    root.policy.write_text("#!/bin/sh\nexit 101\n")

    root.install("munge")
    assert root.policy.read_text() == "#!/bin/sh\nexit 101\n"


def test_a_guard_that_a_killed_run_left_is_taken_away(root):
    root.policy.write_text(GUARD)

    root.install("munge")
    assert not root.policy.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_set_up_names_all_packages_in_one_line_to_an_ordinary_user(tmp_path):
    """The real set-up, with a table that asks for what no machine has; nothing is made or downloaded."""
    tree = tmp_path / "clone"
    (tree / "scripts").mkdir(parents=True)
    devcluster = tree / "src/slurm_agent_tools/devcluster"
    devcluster.mkdir(parents=True)
    set_up = Path(__file__).parents[3] / "scripts/setup.sh"
    (tree / "scripts/setup.sh").write_text(set_up.read_text())
    (tree / "requirements.txt").touch()
    rows = ["login never-there-1 one service", "login /never/*/there two", "login sh dash", "other never-there-2 three"]
    (devcluster / "packages.txt").write_text("\n".join(rows) + "\n")
    for place in [tmp_path, *tmp_path.parents[:2], tree]:
        place.chmod(0o755)

    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/bin/sh", "scripts/setup.sh", "login"]
    ended = subprocess.run(argv, cwd=tree, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.endswith("--no-remove one two\n")
    assert not (tree / ".venv").exists()
