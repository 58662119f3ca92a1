import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.watchdog import until

from slurm_agent_tools.devcluster import processes, slurm_daemons
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, me
from slurm_agent_tools.errors import InputError

PLAIN = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def cluster(tmp_path):
    for name in ("pids", "log"):
        (tmp_path / name).mkdir()
    return Cluster(tmp_path, 63000, me())


@pytest.fixture
def sleeper():
    """Starts processes that sleep, and ends them."""
    made = []

    def start(program: str = "/bin/sleep", **env: str) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen([program, "600"], env=PLAIN | env))
        return made[-1]

    yield start
    for process in made:
        process.kill()
        process.wait()


def start(cluster: Cluster, *argv: str) -> int:
    return processes.start(cluster, "munged", me(), list(argv), PLAIN)


async def test_a_started_daemon_is_known_until_it_is_stopped(cluster):
    pid = start(cluster, "sleep", "600")

    assert processes.running(cluster, "munged") == pid
    assert os.getsid(pid) == pid
    await processes.stop(cluster, "munged")
    assert processes.running(cluster, "munged") is None
    assert list((cluster.folder / "pids").iterdir()) == []


async def test_a_daemon_that_does_not_listen_to_term_is_killed(cluster):
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    start(cluster, sys.executable, "-c", deaf)
    until(lambda: processes.output(cluster, "munged").read_text())

    await processes.stop(cluster, "munged", 0.2)
    assert processes.running(cluster, "munged") is None


def test_a_pid_that_was_given_to_another_process_is_not_ours(cluster, sleeper):
    other = sleeper()
    (cluster.folder / "pids" / "munged").write_text(f"{other.pid} 1\n")

    assert processes.running(cluster, "munged") is None
    assert not processes.send(cluster, "munged", signal.SIGKILL)
    assert other.poll() is None


@pytest.mark.parametrize("text", ["", "garbage", "12"])
def test_a_record_that_was_not_written_to_its_end_is_no_process(cluster, text):
    (cluster.folder / "pids" / "munged").write_text(text)

    assert processes.running(cluster, "munged") is None


def test_a_program_that_is_not_installed_is_named(cluster):
    with pytest.raises(DevclusterError, match="no-such-daemon is not installed"):
        start(cluster, "no-such-daemon")


def named(folder: Path, name: str) -> str:
    """A copy of sleep under the name of a daemon."""
    return shutil.copy("/bin/sleep", folder / name)


def test_left_over_steps_and_jobs_are_found_but_no_persons_shell(cluster, sleeper):
    conf = {"SLURM_CONF": str(cluster.conf)}
    node = next(iter(cluster.nodes))
    shell = sleeper(**conf)
    step = sleeper(named(cluster.folder, "slurmstepd"), **conf)
    job = sleeper(**conf, SLURMD_NODENAME=node)
    stranger = sleeper(named(cluster.folder, "slurmd"), SLURM_CONF="/etc/slurm/slurm.conf")

    until(lambda: len(processes.leftovers(cluster)) == 2)
    assert set(processes.leftovers(cluster)) == {step.pid, job.pid}
    assert (shell.poll(), stranger.poll()) == (None, None)


def test_looking_for_left_over_processes_takes_no_exit_code_from_its_parent(cluster):
    with subprocess.Popen(["sh", "-c", "exit 3"], env=PLAIN) as other:
        until(lambda: not alive(other.pid))
        assert processes.leftovers(cluster) == []
        assert other.wait(10) == 3


def test_left_over_processes_are_ended_with_their_children(cluster, tmp_path):
    code = "import subprocess, sys; open(sys.argv[1], 'w').write(str(subprocess.Popen(['sleep', '600'], env={}).pid)); input()"
    env = PLAIN | {"SLURMD_NODENAME": next(iter(cluster.nodes))}
    note = tmp_path / "child"
    with subprocess.Popen([sys.executable, "-c", code, str(note)], env=env, stdin=subprocess.PIPE) as job:
        until(lambda: note.exists() and note.read_text())

        ended = anyio.run(processes.end_leftovers, cluster)
        assert [line.split()[0] for line in ended] == [str(job.pid)]
        assert job.wait(10) == -signal.SIGKILL
        until(lambda: not alive(int(note.read_text())))


def test_processes_that_end_while_their_tree_is_read_are_no_error():
    for _ in range(10):  # with a glob over /proc about one of ten raised
        with subprocess.Popen(["sh", "-c", "for i in $(seq 100); do true | cat & done; wait"], env=PLAIN) as shell:
            while shell.poll() is None:
                assert processes.trees([shell.pid])[0] == shell.pid


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


async def test_a_daemon_that_ends_before_it_answers_is_an_error_with_its_last_words(cluster):
    asks = cluster.folder / "bin" / "munge"
    asks.parent.mkdir()
    asks.write_text("#!/bin/sh\necho nobody answers >&2; exit 1\n")
    asks.chmod(0o755)
    cluster = replace(cluster, bin_dir=asks.parent)
    start(cluster, "sh", "-c", "echo cannot open the key; exit 1")

    with pytest.raises(DevclusterError, match=r"(?s)munged ended.*cannot open the key"):
        await slurm_daemons.ready(cluster, "munged")


def test_a_daemon_that_the_cluster_does_not_have_is_refused_by_name(cluster):
    with pytest.raises(InputError, match="slurmctld, slurmd"):
        slurm_daemons.known(cluster, "slurmrestd")
