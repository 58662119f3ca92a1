"""The private Slurm itself: it comes up beside another one, as root and as an ordinary user, and leaves nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.system.faces import Place

from slurm_agent_tools.devcluster import definition, lifecycle, packages

CLI = [sys.executable, "-m", "slurm_agent_tools", "devcluster"]
SYSTEM = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
VERSION = os.environ.get("SLURM_AGENT_TEST_SLURM") or None
UP = partial(lifecycle.up, slurm=VERSION, yes=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    anyio.run(partial(lifecycle.down, path, wipe=True))
    subprocess.run(["rm", "-rf", str(path)], check=True)


def remains(folder: Path) -> list[str]:
    """Processes and listening sockets that belong to the cluster in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            inner = (process / "environ").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if int(process.name) != os.getpid() and (f"{folder}/" in words or f"SLURM_CONF={folder}/" in inner):
            found.append(f"{process.name} {words}")
    sockets = Path("/proc/net/unix").read_text()
    return found + [line for line in sockets.splitlines() if f"{folder}/" in line]


class Strangers:
    """A MariaDB and a munge of somebody else's, each asked for a sign of life by its own client."""

    def __init__(self, home: Path) -> None:
        data = ["mariadb-install-db", "--no-defaults", f"--datadir={home}/data", "--skip-test-db", *self._user("mysql")]
        home.chmod(0o755)
        (home / "key").touch(0o600)
        (home / "key").write_bytes(os.urandom(64))
        subprocess.run(data, env=SYSTEM, check=True, capture_output=True, timeout=60)
        self.database = ["mariadb-admin", "--no-defaults", f"--socket={home}/data/db.sock", "ping"]
        self.munge = ["munge", "-S", f"{home}/munge.sock", "-n"]
        self.daemons = [
            self._start(
                ["mariadbd", "--no-defaults", f"--datadir={home}/data", f"--socket={home}/data/db.sock", "--skip-networking",
                 f"--pid-file={home}/data/pid", *self._user("mysql")]
            ),
            self._start(
                ["munged", "--foreground", "--force", f"--key-file={home}/key", f"--socket={home}/munge.sock",
                 f"--pid-file={home}/pid", f"--log-file={home}/log", f"--seed-file={home}/seed"]
            ),
        ]  # fmt: skip

    def _user(self, name: str) -> list[str]:
        return [f"--user={name}"] if os.geteuid() == 0 else []

    def _start(self, argv: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(argv, env=SYSTEM, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answer(self) -> bool:
        asked = [subprocess.run(argv, env=SYSTEM, capture_output=True) for argv in (self.database, self.munge)]
        return all(done.returncode == 0 for done in asked) and all(daemon.poll() is None for daemon in self.daemons)

    def end(self) -> None:
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()


@pytest.fixture
def strangers() -> Iterator[Strangers]:
    home = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    made = Strangers(home)
    try:
        for _ in range(600):
            if made.answer():
                break
            time.sleep(0.1)
        yield made
    finally:
        made.end()
        shutil.rmtree(home)


@pytest.mark.proves("devcluster-leaves-nothing")
def test_a_second_cluster_comes_up_beside_the_first_and_down_leaves_nothing(cluster, folder, strangers):
    assert strangers.answer()
    second = anyio.run(partial(UP, folder))
    assert second.base_port != cluster.base_port
    done = subprocess.run(
        second.as_user(["srun", "-pgpu", "--gpus=2", "printenv", "CUDA_VISIBLE_DEVICES"]),
        capture_output=True, env={"PATH": os.environ["PATH"], **second.environment()}, cwd="/", timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == b"0,1", done.stderr
    assert "COMPLETED" in accounted(second)
    assert remains(folder)
    assert {address.split(".")[0] for address in listening(second)} == {"127"}
    sleeper = second.as_user(["sbatch", "-pcpu", "-o", "/dev/null"])
    subprocess.run(sleeper, input=b"#!/bin/bash\nsleep 500\n", env={"PATH": os.environ["PATH"], **second.environment()},
                   cwd="/", timeout=60, check=True, capture_output=True)  # fmt: skip
    assert strangers.answer()
    anyio.run(partial(lifecycle.down, folder))
    assert remains(folder) == []
    assert anyio.run(lifecycle.status, cluster.folder).up
    assert strangers.answer()


@pytest.mark.proves("devcluster-leaves-nothing")
def test_a_crash_of_every_daemon_is_mended_by_up_and_cleaned_by_down(folder):
    crashed = anyio.run(partial(UP, folder))
    nap = f"sleep {10**6 + os.getpid()}"  # a number of our own: other runs of the tests have naps too
    script = f"#!/bin/bash\nenv -i setsid {nap} &\n{nap}\n".encode()
    env = {"PATH": os.environ["PATH"], **crashed.environment()}
    submit = crashed.as_user(["sbatch", "--parsable", "-pcpu", "-o", "/dev/null", "--no-requeue"])
    subprocess.run(submit, input=script, env=env, cwd="/", timeout=60, check=True, capture_output=True)
    for _ in range(600):
        if naps(nap) == 2:
            break
        time.sleep(0.1)
    kill_daemons(crashed)
    assert naps(nap) == 2
    assert anyio.run(lifecycle.status, folder).up is False
    again = anyio.run(partial(UP, folder))
    assert (again, anyio.run(lifecycle.status, folder).up) == (crashed, True)
    assert naps(nap) == 0
    # Whether the first job is remembered is Slurm's affair: slurmctld writes its state every few seconds.
    subprocess.run(again.as_user(["srun", "-pgpu", "true"]), env=env, cwd="/", timeout=60, check=True)
    assert "COMPLETED" in accounted(again)
    kill_daemons(again)
    anyio.run(partial(lifecycle.down, folder))
    assert remains(folder) == []


def naps(nap: str) -> int:
    done = subprocess.run(["pgrep", "-fxc", nap], capture_output=True, text=True)
    return int(done.stdout)


def kill_daemons(cluster: definition.Cluster) -> None:
    for name in cluster.daemons:
        anyio.run(lifecycle.signal_daemon, cluster, name, signal.SIGKILL)


@pytest.mark.proves("devcluster-leaves-nothing")
@pytest.mark.parametrize("seconds", [0.4, 1.5, 3.0])
def test_an_up_that_is_killed_half_way_is_cleaned_by_down(folder, seconds):
    started = subprocess.Popen([*CLI, "up", "--yes", "--folder", str(folder)], stdout=subprocess.PIPE)
    time.sleep(seconds)
    started.send_signal(signal.SIGKILL)
    started.communicate()
    anyio.run(partial(lifecycle.down, folder))
    assert remains(folder) == []


def listening(cluster: definition.Cluster) -> list[str]:
    """The addresses on which somebody listens at the cluster's ports; the kernel shows them byte by byte, last first."""
    found = []
    for line in (Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()).splitlines():
        words = line.split()
        if len(words) > 3 and words[3] == "0A":
            address, port = words[1].split(":")
            if cluster.base_port < int(port, 16) < cluster.base_port + 1000:
                found.append(".".join(str(byte) for byte in reversed(bytes.fromhex(address))))
    assert len(found) == 2 + len(cluster.nodes)
    return found


@pytest.mark.proves("memory-kill-is-named")
def test_an_ordinary_user_brings_up_a_cluster_and_a_memory_kill_is_named(cluster, folder):
    """Without cgroups Slurm calls the job FAILED 0:9; the tools still name memory as the cause."""
    if os.geteuid() == 0:
        os.chown(folder, *user_ids(cluster.user))
    home = folder / "home-of-user"
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "USER": cluster.user, "LOGNAME": cluster.user}
    as_user = partial(subprocess.run, capture_output=True, env=env, cwd="/", timeout=60)
    mine = folder / "cluster"
    env |= {"SLURM_AGENT_DEVCLUSTER_RELEASES": str(packages.default_cache())}  # those that root unpacked will do
    version = [f"--slurm={VERSION}"] if VERSION else []
    done = as_user(cluster.as_user([*CLI, "up", "--yes", *version, "--folder", str(mine)]))
    try:
        assert done.returncode == 0, done.stderr
        found = lifecycle.find(mine)
        assert found is not None
        place = Place(found, found.project)
        hold = "import time; held = bytearray(400 << 20); time.sleep(40)"  # polling looks every two seconds
        script = f"#!/bin/bash\n/usr/bin/python3 -c '{hold}'\n".encode()
        job = place.slurm("sbatch", "--parsable", "-pcpu", "--mem=100", "-o", "out-%j.txt", stdin=script)
        code, reply = place.cli("wait_for_job", f"--job-id={job}", "--timeout=60")
        assert (code, reply["job"]["state"], reply["job"]["signal"]) == (0, "FAILED", 9), reply
        assert "memory" in reply["summary"]
        code, reply = place.cli("analyze_log", f"--job-id={job}")
        assert reply["diagnosis"]["category"] == "host-out-of-memory", reply
    finally:
        as_user(cluster.as_user([*CLI, "down", "--wipe", "--folder", str(mine)]))
    assert remains(mine) == []


def test_a_memory_limit_ends_a_job_out_of_memory_with_cgroups_and_by_a_signal_without(cluster):
    hold = "import time; held = bytearray(400 << 20); time.sleep(40)"
    env = {"PATH": os.environ["PATH"], **cluster.environment()}
    submit = cluster.as_user(["sbatch", "--parsable", "--wait", "-pcpu", "--mem=100", "-o", "/dev/null"])
    job = subprocess.run(
        submit, input=f"#!/bin/bash\n/usr/bin/python3 -c '{hold}'\n".encode(), env=env, cwd="/", timeout=60,
        capture_output=True,
    ).stdout.decode().strip()  # fmt: skip
    asked = ["sacct", "-n", "-X", "-P", "-j", job, "-o", "State,ExitCode"]
    memory = anyio.run(lifecycle.status, cluster.folder).memory
    assert memory is not None
    wanted = "FAILED|0:9" if memory.by == "polling" else "OUT_OF_MEMORY|0:125"
    told = ""
    for _ in range(300):
        told = subprocess.run(asked, env=env, capture_output=True, text=True, timeout=60).stdout.strip()
        if told == wanted:
            break
        time.sleep(0.2)
    assert told == wanted


def accounted(cluster: definition.Cluster) -> str:
    """The states that sacct tells; a record follows its job within seconds."""
    env = {"PATH": os.environ["PATH"], **cluster.environment()}
    for _ in range(300):
        words = ["sacct", "-n", "-X", "-a", "-o", "State"]
        told = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60)
        assert told.returncode == 0, told.stderr
        if "COMPLETED" in told.stdout:
            return told.stdout
        time.sleep(0.2)
    return "nothing"


def user_ids(name: str) -> tuple[int, int]:
    import pwd  # noqa: PLC0415 - where there is a root there are users

    entry = pwd.getpwnam(name)
    return entry.pw_uid, entry.pw_gid


def test_env_prints_what_points_slurms_own_commands_at_it(cluster):
    done = subprocess.run([*CLI, "env", "--folder", str(cluster.folder)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    shown = subprocess.run(["bash", "-c", f"{done.stdout}\nsinfo -h -o %R"], capture_output=True, text=True, timeout=60)
    assert set(shown.stdout.split()) == {"gpu", "cpu", "special"}


@pytest.mark.proves("versions-are-tried")
def test_the_cluster_is_of_the_version_that_was_asked_for(cluster):
    env = {"PATH": os.environ["PATH"], **cluster.environment()}
    for words in (["sinfo", "--version"], ["scontrol", "show", "config"]):
        told = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60, check=True).stdout
        number = re.search(r"(?:slurm\S* |SLURM_VERSION\s+= )(\d+\.\d+)\.", told)
        assert number is not None
        if VERSION is None:
            assert number[1] not in packages.RELEASES
        else:
            assert number[1] == VERSION


def test_status_tells_every_daemon_and_node(cluster):
    done = subprocess.run(
        [*CLI, "status", "--json", "--folder", str(cluster.folder)], capture_output=True, text=True, timeout=60
    )
    body = json.loads(done.stdout)
    assert done.returncode == 0
    assert {"munged", "mariadbd", "slurmdbd", "slurmctld"} <= set(body["daemons"])
    assert len(body["nodes"]) == 5


def loose(folder: Path) -> list[str]:
    """What others than its owner may write, sockets and devices aside, and keys and passwords that they may read.

    The database's files are also written by its own group, in a folder that is closed.
    """
    found = []
    for path in (folder, *folder.rglob("*")):
        state = path.lstat()
        kind = stat.S_IFMT(state.st_mode)
        if kind in {stat.S_IFREG, stat.S_IFDIR} and state.st_mode & (0o002 if folder / "db" in path.parents else 0o022):
            found.append(f"{path} {state.st_mode:o}")
        if path.name in {"munge.key", "slurmdbd.conf", "host_ed25519", "id_ed25519", "data"} and state.st_mode & 0o077:
            found.append(f"{path} {state.st_mode:o}")
    return found


@pytest.mark.proves("devcluster-is-written-by-its-owner")
def test_under_a_umask_that_closes_nothing_nobody_else_can_write_what_the_cluster_made(folder: Path):
    """A record of a process says what is ended, as root: whoever wrote there could have anything ended."""
    folder.rmdir()
    words = ["up", "--folder", str(folder), "--yes", "--sshd"]
    done = subprocess.run([*CLI, *words], env=os.environ, capture_output=True, text=True, timeout=300, umask=0)

    assert done.returncode == 0, done.stderr
    assert loose(folder) == []
