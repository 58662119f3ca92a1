import fcntl
import os
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import packages
from slurm_agent_tools.devcluster.definition import DevclusterError
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.process import EndedProcess

TARGETS = "Debian-Security|https://mirror/security/\nDebian|https://mirror/debian/\n"


class Machine:
    """A machine whose tools do what they are told; `said` is each command's standard output, by its last name."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.ran: list[list[str]] = []
        self.said = {"apt-get": TARGETS, "slurmctld": "slurm-wlm 24.11.5\n"}
        self.fails = ""
        self.names = [*packages._PROGRAMS]

    async def run(self, argv, *, env, timeout):
        self.ran.append(argv)
        name = Path(argv[0]).name
        if name == self.fails:
            return EndedProcess(1, b"", b"E: nothing there", 0.1, truncated=False)
        if name == "mmdebstrap":
            self.unpack(Path(argv[-2]))
        return EndedProcess(0, self.said.get(name, "").encode(), b"", 0.1, truncated=False)

    def unpack(self, where: Path) -> None:
        libraries = where / "usr/lib/some-machine"
        (libraries / "slurm-wlm").mkdir(parents=True)
        (libraries / "ld-linux-some.so.2").touch()
        for name in self.names:
            folder = where / "usr" / ("sbin" if name.startswith("slurm") else "bin")
            folder.mkdir(exist_ok=True)
            (folder / (f"{name}-wlm" if name == "slurmd" else name)).write_text(name)

    def argv(self, name: str) -> list[str]:
        return next(argv for argv in self.ran if argv[0] == name)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    made = Machine(tmp_path)
    monkeypatch.setenv("SLURM_AGENT_DEVCLUSTER_RELEASES", str(made.cache))
    monkeypatch.setattr(process, "run", made.run)
    return made


def quiet(_: str) -> None:
    pass


async def test_a_version_is_unpacked_from_debians_own_archive_once(machine):
    said: list[str] = []
    made = await packages.ensure_release("24.11", said.append)

    assert machine.argv("mmdebstrap")[-3:] == ["trixie", str(machine.cache / "24.11.new/all"), "https://mirror/debian/"]
    assert sorted(path.name for path in made.iterdir()) == sorted(packages._PROGRAMS)
    assert (made / "slurmd").read_text() == "slurmd"
    assert "once" in said[0]
    count = len(machine.ran)
    assert await packages.ensure_release("24.11", said.append) == made
    assert len(machine.ran) == count


async def test_programs_find_loader_libraries_and_plugins_where_the_version_will_lie(machine):
    made = await packages.ensure_release("24.11", quiet)

    libraries = f"{machine.cache}/24.11/lib/some-machine"
    words = machine.argv("patchelf")
    assert words[words.index("--set-interpreter") + 1] == f"{libraries}/ld-linux-some.so.2"
    assert words[words.index("--set-rpath") + 1] == f"{libraries}/slurm-wlm:{libraries}"
    assert packages.plugins(made) == Path(libraries, "slurm-wlm")
    assert sorted(path.name for path in made.parent.iterdir()) == ["bin", "lib"]


@pytest.mark.parametrize("tool", ["apt-get", "mmdebstrap", "patchelf"])
async def test_a_step_that_fails_says_why_and_leaves_nothing(machine, tool):
    machine.fails = tool

    with pytest.raises(DevclusterError, match=f"{tool} failed:\nE: nothing there"):
        await packages.ensure_release("24.11", quiet)
    assert [path.name for path in machine.cache.iterdir()] == ["lock"]


async def test_a_release_that_moved_on_is_refused(machine):
    machine.said["slurmctld"] = "slurm-wlm 27.05.1\n"

    with pytest.raises(DevclusterError, match=r"sid holds slurm-wlm 27\.05\.1 and no 26\.05"):
        await packages.ensure_release("26.05", quiet)
    assert not packages.programs("26.05").exists()


async def test_packages_without_a_program_are_refused(machine):
    machine.names.remove("srun")

    with pytest.raises(DevclusterError, match="hold no srun"):
        await packages.ensure_release("24.11", quiet)


async def test_a_machine_of_another_distribution_keeps_its_own_slurm(machine):
    machine.said["apt-get"] = "Ubuntu|https://mirror/ubuntu/\n"

    with pytest.raises(DevclusterError, match="no archive of Debian") as caught:
        await packages.ensure_release("24.11", quiet)
    assert "--slurm" in str(caught.value.hint)


async def test_a_cache_of_another_user_is_not_trusted(machine, monkeypatch):
    machine.cache.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: machine.cache.stat().st_uid + 1)

    with pytest.raises(DevclusterError, match="belongs to another user"):
        await packages.ensure_release("24.11", quiet)
    assert machine.ran == []


async def test_while_a_version_is_unpacked_nobody_else_does_it(machine):
    locked = []

    class Tried(Machine):
        def unpack(self, where: Path) -> None:
            with (self.cache / "lock").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    locked.append(True)
            super().unpack(where)

    machine.__class__ = Tried
    await packages.ensure_release("24.11", quiet)
    assert locked == [True]


@pytest.mark.parametrize("version", ["22.05", "24", "../24.11", ""])
def test_an_unknown_version_is_refused_with_those_that_there_are(version):
    with pytest.raises(InputError, match=r"24\.11, 26\.05"):
        packages.checked_release(version)


def test_no_version_is_the_distributions_own():
    assert packages.checked_release(None) is None
    assert packages.checked_release("24.11") == "24.11"
