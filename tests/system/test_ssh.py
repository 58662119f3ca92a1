"""The same questions to this machine and to the devcluster's own sshd: nothing above the seam can tell them apart."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from tests.system.faces import Place as Home
from tests.system.faces import cut_connections
from tests.watchdog import SECONDS, eventually

from slurm_agent_tools.cli.commands import doctor_steps
from slurm_agent_tools.devcluster import login_node, slurm_daemons
from slurm_agent_tools.devcluster.login_node import LoginNode
from slurm_agent_tools.errors import AccessRefused, SlurmMissing, SlurmUncertain, SlurmUnreachable, StorageError
from slurm_agent_tools.settings import ClusterSettings, Settings, SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.slurm.commands import sbatch
from slurm_agent_tools.transport.base import Completed, Transport
from slurm_agent_tools.transport.local import LocalTransport, SystemClock
from slurm_agent_tools.transport.ssh.remote import SshTransport

OUT = ["sh", "-c", "cat; pwd; echo err >&2; exit 127"]
SHELLS = [shell for shell in ("sh", "bash", "zsh", "tcsh", "fish") if shutil.which(shell)]


@pytest.fixture
def home(place: Home, login: LoginNode) -> Home:
    made = place.another()
    made.own()
    return made


def far(home: Home, login: LoginNode, **more: object) -> SshTransport:
    plain = {"host": login.host, "ssh_config": login.config, "remote_root": str(home.project)}
    return SshTransport("far", ClusterSettings.model_validate(plain | more))


@pytest.fixture(params=["here", "over ssh"])
async def either(home: Home, login: LoginNode, request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    slurm = SlurmSettings(conf=home.cluster.conf)
    near = LocalTransport(Settings(project_root=home.project, slurm=slurm), slurm)
    made: Transport = near if request.param == "here" else far(home, login)
    yield made
    await made.close()


@pytest.fixture
async def there(home: Home, login: LoginNode) -> AsyncIterator[SshTransport]:
    made = far(home, login)
    yield made
    await made.close()


# --- one contract for both ---------------------------------------------------------------------------------------


@pytest.mark.proves("ssh-is-no-different")
async def test_a_command_is_the_same_on_both_ways(either: Transport, home: Home) -> None:
    done = await either.runner.run(OUT, stdin=b"in\0\xff\n", cwd=str(home.project))
    assert (done.exit_code, done.stdout, done.stderr) == (127, b"in\0\xff\n%s\n" % os.fsencode(home.project), b"err\n")
    words = ["printf", "%s|", "a b", "", "!x", "'\"\\", "two\nlines", "\udcff", "$HOME", "-n"]
    assert (await either.runner.run(words)).stdout == b"a b||!x|'\"\\|two\nlines|\xff|$HOME|-n|"


async def test_the_environment_is_the_same_list_on_both_ways(either: Transport) -> None:
    done = await either.runner.run(["env", "-0"], env={"WANTED": "x\ny"})
    found = dict(part.split("=", 1) for part in done.stdout.decode().split("\0") if part)
    assert found.keys() <= {"PATH", "HOME", "USER", "LOGNAME", "TZ", "SLURM_CONF", "LC_ALL", "SLURM_TIME_FORMAT",
                            "SLURM_BITSTR_LEN", "SCONTROL_ALL", "SINFO_ALL", "SQUEUE_ALL", "WANTED"}  # fmt: skip
    assert (found["WANTED"], found["LC_ALL"], "SLURM_CONF" in found) == ("x\ny", "C.UTF-8", True)


async def test_output_and_time_are_bounded_on_both_ways(either: Transport) -> None:
    done = await either.runner.run(["sh", "-c", "yes | head -c 3000000"], max_output=1_000_000)
    assert (len(done.stdout), done.truncated, done.exit_code) == (1_000_000, True, 0)
    done = await either.runner.run(["sh", "-c", "echo begun; exec sleep 77.7"], timeout=0.5)
    assert (done.exit_code, done.stdout) == (None, b"begun\n")
    await nothing_sleeps()


async def nothing_sleeps() -> None:
    await eventually(lambda: not sleeping())


def sleeping() -> bool:
    return any(b"sleep\x0077.7" in command(path) for path in Path("/proc").glob("[0-9]*"))


def command(path: Path) -> bytes:
    try:
        return (path / "cmdline").read_bytes()
    except OSError:
        return b""


def mode(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


async def test_a_cancelled_command_is_ended_on_both_ways(either: Transport) -> None:
    await either.runner.run(["true"])
    with anyio.move_on_after(0.3):
        await either.runner.run(["sleep", "77.7"], timeout=60)
    await nothing_sleeps()


@pytest.mark.parametrize("how", ["absent", "no interpreter", "not executable", "no folder"])
async def test_what_cannot_run_is_missing_on_both_ways(either: Transport, home: Home, how: str) -> None:
    odd = home.project / "odd"
    odd.write_text("#!/no/such/interpreter\n")
    odd.chmod(0o644 if how == "not executable" else 0o755)
    name = {"absent": "sbatch-of-nowhere", "no folder": "true"}.get(how, str(odd))
    with pytest.raises(SlurmMissing):
        await either.runner.run([name], cwd="/no/such" if how == "no folder" else None)


async def test_files_are_the_same_on_both_ways(either: Transport, home: Home) -> None:
    files, base = either.files, str(home.project)
    name = f"{base}/new/deep/\udcff\n x"
    assert [await files.write_new(name, b"0123456789"), await files.write_new(name, b"other")] == [True, False]
    assert mode(name) == 0o600
    assert mode(f"{base}/new") == 0o700
    assert await files.list(f"{base}/new/deep") == ["\udcff\n x"]
    assert [await files.append(name, b"ab"), await files.append(f"{name}?", b"ab")] == [True, False]
    assert await files.read(name) == b"0123456789ab"
    windows = [(0, None), (4, None), (4, 3), (0, 0), (8, 50), (50, None)]
    found = [await files.read(name, offset=offset, size=size) for offset, size in windows]
    assert found == [b"0123456789ab", b"456789ab", b"456", b"", b"89ab", b""]
    whole = await files.stat(name)
    assert whole is not None
    assert (whole.size, whole.kind, abs((whole.modified - SystemClock().now()).total_seconds()) < 60) == (
        12,
        "file",
        True,
    )
    shutil.rmtree(f"{base}/new")


async def test_what_is_no_plain_file_is_the_same_on_both_ways(either: Transport, home: Home) -> None:
    files, base = either.files, home.project
    (base / "folder").mkdir()
    (base / "folder/file").write_text("x")
    (base / "link").symlink_to("folder/file")
    (base / "door").symlink_to("folder")
    os.mkfifo(base / "pipe")
    home.own()
    (base / "dangling").symlink_to("nowhere")
    names = ("folder", "folder/file", "link", "door", "dangling", "pipe", "absent", "folder/file/below")
    kinds = [found and found.kind for found in [await files.stat(f"{base}/{name}") for name in names]]
    assert kinds == ["dir", "file", "file", "dir", None, "other", None, None]
    for name in ("pipe", "folder", "absent", "folder/file/below", "door/file"):
        assert await files.read(f"{base}/{name}") is None
        assert await files.append(f"{base}/{name}", b"x") is (name == "folder/file")
    with pytest.raises(StorageError):
        await files.read(f"{base}/link")
    with pytest.raises(StorageError):
        await files.append(f"{base}/link", b"x")
    for taken in ("link", "dangling", "folder", "pipe"):
        assert await files.write_new(f"{base}/{taken}", b"new") is False
    for way in ("door/new", "folder/file/new"):
        with pytest.raises(StorageError):
            await files.write_new(f"{base}/{way}", b"new")
    assert [await files.list(f"{base}/{name}") for name in ("folder", "absent", "folder/file")] == [
        ["file"],
        None,
        None,
    ]
    reals = ["door/../x", "door/new/../y/./z", "link", "absent/..", "folder/file"]
    found = [await files.real_path(f"{base}/{name}") for name in reals]
    assert found == [os.path.realpath(f"{base}/{name}") for name in reals]  # noqa: ASYNC240
    assert not list(base.glob("*.tmp")) + list(base.glob(".*.tmp"))


async def test_surroundings_are_the_same_on_both_ways(either: Transport, home: Home) -> None:
    environment = await either.login_environment()
    assert (environment.root, "PATH" in environment.environ) == (str(home.project), True)


async def test_slurm_answers_the_same_on_both_ways(either: Transport, home: Home) -> None:
    slurm = SlurmClient(either.runner, SystemClock(), SlurmSettings(), user=home.cluster.user)
    assert (await slurm.info()).accounting
    assert len(await slurm.nodes()) == len(home.cluster.nodes)


# --- login shells ------------------------------------------------------------------------------------------------


@pytest.mark.proves("login-shell-does-not-matter")
@pytest.mark.parametrize("shell", SHELLS)
async def test_every_login_shell_and_its_start_up_files_disturb_nothing(
    home: Home, login: LoginNode, shell: str
) -> None:
    own = home.project.parent
    noise = 'echo "WELCOME to the cluster!"\necho trouble >&2\nalias squeue false\nalias printf false\n'
    for name in (".bashrc", ".profile", ".zshenv", ".zprofile", ".tcshrc", ".login", ".config/fish/config.fish"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(
            noise if shell in {"tcsh", "fish"} else noise.replace("queue f", "queue=f").replace("f f", "f=f")
        )
    home.own()
    with Pretended(home, login, shell) as key:
        place = far(home, login, ssh_config=key)
        environment = await place.login_environment()
        done = await place.runner.run(["squeue", "--version"])
        odd = await place.runner.run(["printf", "%s|", "!", "'", "\n", "\udcff", ""])
        await place.close()
    assert (environment.user, environment.environ["HOME"], done.exit_code) == (home.cluster.user, str(own), 0)
    assert (done.stderr, odd.stdout) == (b"", b"!|'|\n|\xff||")
    assert done.stdout.startswith(b"slurm")


class Pretended:
    """A key with which sshd starts another login shell, as if the user had it."""

    def __init__(self, home: Home, login: LoginNode, shell: str) -> None:
        self._allowed, self._config = login.key.parent / "authorized_keys", home.project.parent / "config"
        self._before = self._allowed.read_text()
        own = shlex.quote(str(home.project.parent))
        sftp = '[ \\"$SSH_ORIGINAL_COMMAND\\" = internal-sftp ] && exec /usr/lib/openssh/sftp-server; '
        start = (
            f'export HOME={own}; {sftp}[ \\"$SSH_ORIGINAL_COMMAND\\" ] && exec {shell} -c \\"$SSH_ORIGINAL_COMMAND\\"; '
        )
        self._line = f'command="{start}exec -a -{shell} {shell}" {self._before}'
        self._text = login.config.read_text()

    def __enter__(self) -> Path:
        self._allowed.write_text(self._line)
        self._config.write_text(self._text)
        return self._config

    def __exit__(self, *_: object) -> None:
        self._allowed.write_text(self._before)


# --- what breaks -------------------------------------------------------------------------------------------------


async def test_sshd_restarted_is_no_trouble(home: Home, there: SshTransport) -> None:
    root = (await there.login_environment()).root
    for _ in range(2):
        await login_node.restart(home.cluster)
        assert (await there.runner.run(["true"])).exit_code == 0
        assert await there.files.list(root) == []


async def test_while_sshd_is_down_nothing_is_sent_and_it_recovers(home: Home, there: SshTransport) -> None:
    await there.login_environment()
    await login_node.stop(home.cluster)
    with pytest.raises(SlurmUnreachable):
        await there.runner.run(["true"])
    await login_node.up(home.cluster)
    with anyio.fail_after(SECONDS):
        while True:
            try:
                assert (await there.runner.run(["true"])).exit_code == 0
                break
            except SlurmUnreachable:
                await anyio.sleep(0.1)


@pytest.mark.proves("ssh-sends-once")
async def test_cut_in_the_middle_of_sbatch_the_job_is_uncertain_and_found_by_its_mark(
    home: Home, there: SshTransport
) -> None:
    bin_dir = home.project.parent / "bin"
    bin_dir.mkdir()
    real = shutil.which("sbatch")
    (bin_dir / "sbatch").write_text(f'#!/bin/sh\n{real} "$@" && touch {bin_dir}/sent && exec sleep 30\n')
    (bin_dir / "sbatch").chmod(0o755)
    (bin_dir / "squeue").symlink_to(str(shutil.which("squeue")))
    home.own()
    place = SshTransport("far", there.settings.model_copy(update={"slurm": SlurmSettings(bin_dir=bin_dir)}))
    await place.login_environment()
    argv = ["sbatch", "--hold", "--comment=mark-4711", "--output=/dev/null"]
    ended: list[Completed] = []

    async def submit() -> None:
        ended.append(await place.runner.run(argv, stdin=b"#!/bin/sh\ntrue\n", timeout=30))

    async with anyio.create_task_group() as group:
        group.start_soon(submit)
        with anyio.fail_after(SECONDS):
            await eventually((bin_dir / "sent").exists)
        cut_connections(home.cluster)
    with pytest.raises(SlurmUncertain):
        sbatch.parse(ended[0])
    rows = (await place.runner.run(["squeue", "-h", "-o", "%A %k"])).stdout.decode().splitlines()
    [found] = [row.split()[0] for row in rows if row.endswith("mark-4711")]
    assert (await there.runner.run(["scancel", found])).exit_code == 0
    await place.close()


async def test_few_sessions_are_enough(home: Home, there: SshTransport) -> None:
    config = home.cluster.folder / "ssh" / "sshd_config"
    text = config.read_text()
    await login_node.stop(home.cluster)
    try:
        with config.open("w") as file:
            file.write("MaxSessions 2\n" + text)
        await slurm_daemons.start(home.cluster, "sshd")
        await slurm_daemons.ready(home.cluster, "sshd")
        done: list[int | None] = []

        async def run() -> None:
            done.append((await there.runner.run(["true"])).exit_code)

        await there.login_environment()
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(run)
    finally:
        await login_node.restart(home.cluster)
    assert done == [0] * 10


# --- who it is ---------------------------------------------------------------------------------------------------


@pytest.mark.proves("host-keys-are-checked")
async def test_through_a_jump_host_each_key_is_checked(home: Home, login: LoginNode) -> None:
    config = home.project.parent / "config"
    plain = login.config.read_text()
    config.write_text(plain + plain.replace(f"Host {login.host}", "Host behind") + f"  ProxyJump {login.host}\n")
    place = far(home, login, host="behind", ssh_config=config)
    assert (await place.runner.run(["true"])).exit_code == 0
    await place.close()
    strange = home.project.parent / "strange"
    strange.write_text("")
    config.write_text(
        plain.replace(str(login.known_hosts), str(strange))
        + plain.replace("Host devcluster", "Host behind")
        + "  ProxyJump devcluster\n"
    )
    with pytest.raises(AccessRefused, match="not known"):
        await far(home, login, host="behind", ssh_config=config).runner.run(["true"])


@pytest.mark.proves("host-keys-are-checked")
async def test_a_host_key_that_changes_is_not_taken(home: Home, login: LoginNode) -> None:
    known = home.project.parent / "known_hosts"
    label, kind, key = login.known_hosts.read_text().split()
    other = (login.key.parent / "id_ed25519.pub").read_text().split()[1]
    for text, words in (("", "not known"), (f"{label} {kind} {other}\n", "has changed")):
        known.write_text(text)
        with pytest.raises(AccessRefused, match=words) as caught:
            await far(home, login, known_hosts=known).runner.run(["true"])
        assert "SHA256:" in caught.value.message
        assert known.read_text() == text
    known.write_text(f"{label} {kind} {key}\n")
    place = far(home, login, known_hosts=known)
    assert (await place.runner.run(["true"])).exit_code == 0
    await place.close()


async def test_doctor_walks_the_whole_way(home: Home, there: SshTransport) -> None:
    found = [step async for step in doctor_steps.check_steps(there)]
    names = ["name", "tcp", "host key", "login", "slurm", "controller", "accounting", "project", "clock"]
    assert [(step.name, step.ok) for step in found] == [(name, True) for name in names]
    gone = SshTransport("far", there.settings.model_copy(update={"remote_root": "nowhere"}))
    last = [step async for step in doctor_steps.check_steps(gone)][-1]
    await gone.close()
    assert (last.name, last.ok, "mkdir -p" in last.todo) == ("project", False, True)
