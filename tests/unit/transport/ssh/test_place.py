import asyncio
import logging
import os
from contextlib import contextmanager
from pathlib import Path

import anyio
import asyncssh
import pytest
from tests.unit.transport.sshserver import Node, connects, running
from tests.watchdog import eventually

from slurm_agent_tools.errors import AccessRefused, ConfigError, SlurmMissing, SlurmUnreachable
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.transport.base import asker
from slurm_agent_tools.transport.ssh import target
from slurm_agent_tools.transport.ssh.connection import SshConnection
from slurm_agent_tools.transport.ssh.remote import SshTransport

SAY = ["sh", "-c", "echo out; echo err >&2; exit 127"]


@pytest.fixture
async def place(node):
    place = SshTransport("there", node.settings())
    yield place
    await place.close()


@contextmanager
def answered(ask):
    """Who answers what is asked."""
    token = asker.set(ask)
    yield
    asker.reset(token)


# --- commands ----------------------------------------------------------------------------------------------------


async def test_a_command_runs_there_and_its_own_exit_code_comes_back(place):
    done = await place.runner.run(SAY)
    assert (done.exit_code, done.stdout, done.stderr, done.argv) == (127, b"out\n", b"err\n", tuple(SAY))


@pytest.mark.proves("login-shell-does-not-matter")
async def test_a_banner_and_a_broken_start_up_file_disturb_nothing(node):
    node.profile = "echo WELCOME; echo trouble >&2; alias sh=false; printf 'no newline'"
    place = SshTransport("there", node.settings())
    done = await place.runner.run(SAY)
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
    await place.close()


async def test_a_login_that_runs_nothing_is_unreachable_with_its_words(node):
    node.profile = "echo 'This account is \x1b[31mexpired.'; exit 1"
    place = SshTransport("there", node.settings())
    with pytest.raises(SlurmUnreachable, match="expired") as caught:
        await place.runner.run(SAY)
    assert "\x1b" not in caught.value.message
    await place.close()


async def test_a_command_that_comes_to_a_closed_account_is_surely_not_run(node, place):
    await place.environ()
    node.profile = "echo closed; exit 1"
    with pytest.raises(SlurmUnreachable, match="closed"):
        await place.runner.run(SAY)


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("exit 3", "ran no command: it ended with 3 and printed nothing"),
        ("echo Closed; exit", "ran no command: Closed"),
    ],
)
async def test_a_login_that_ends_at_once_is_not_called_slow(node, profile, words):
    node.profile = profile
    with pytest.raises(SlurmUnreachable, match=words):
        await SshTransport("there", node.settings()).environ()


async def test_a_connection_cut_during_the_login_is_told_so(node):
    node.profile = f"touch {node.folder}/begun; exec sleep 20"
    place, errors = SshTransport("there", node.settings()), []

    async def login():
        try:
            await place.environ()
        except SlurmUnreachable as error:
            errors.append(error.message)

    async with anyio.create_task_group() as group:
        group.start_soon(login)
        await eventually((node.folder / "begun").exists)
        node.cut()
    assert "was cut off while it started" in errors[0]


@pytest.mark.proves("ssh-sends-once")
async def test_the_connection_cut_in_the_middle_is_told_as_no_end(node, place, tmp_path):
    await place.environ()
    async with anyio.create_task_group() as group:
        ended = []

        async def run():
            argv = ["sh", "-c", f"echo x >> {tmp_path}/ran; exec sleep 600"]
            ended.append(await place.runner.run(argv, timeout=600))

        group.start_soon(run)
        await eventually(lambda: (tmp_path / "ran").exists() and (tmp_path / "ran").read_text() != "")
        node.cut()
        await eventually(lambda: ended)  # long before its time limit
    assert ended[0].exit_code is None
    assert (tmp_path / "ran").read_text() == "x\n"  # never sent again by itself
    assert (await place.runner.run(SAY)).exit_code == 127
    assert node.logins == 2


async def test_a_connection_that_broke_while_at_rest_is_opened_again(node, place):
    for _ in range(3):
        assert (await place.runner.run(SAY)).exit_code == 127
        assert await place.files.list(str(node.folder)) is not None
        at_rest = await place.link.connect()
        node.cut()
        await eventually(at_rest.is_closed)
    assert node.logins == 3


async def test_a_time_limit_is_told_and_the_connection_goes_on(node, place):
    assert (await place.runner.run(["sleep", "30"], timeout=0.2)).timed_out
    assert (await place.runner.run(SAY)).exit_code == 127
    assert node.logins == 1


async def test_at_most_eight_commands_run_at_once_on_one_connection(node, place):
    async with anyio.create_task_group() as group:
        for _ in range(30):
            group.start_soon(place.runner.run, ["sleep", "0.02"])
    assert (node.logins, 2 < node.most <= 9) == (1, True)


async def test_a_program_that_is_not_there_is_missing(place):
    with pytest.raises(SlurmMissing, match="sbatch"):
        await place.runner.run(["sbatch-of-nowhere"])


async def test_a_program_whose_interpreter_is_not_there_is_missing(place, tmp_path):
    (tmp_path / "odd").write_text("#!/no/such/interpreter\n")
    (tmp_path / "odd").chmod(0o755)
    with pytest.raises(SlurmMissing):
        await place.runner.run([str(tmp_path / "odd")])


async def test_an_idle_connection_is_closed_and_opened_again(node):
    place = SshTransport("there", node.settings(idle_seconds=0.1))
    assert (await place.runner.run(SAY)).exit_code == 127
    await eventually(lambda: all(each.is_closed() for each in node.open))
    assert (await place.runner.run(SAY)).exit_code == 127
    assert node.logins == 2
    await place.close()


# --- login -------------------------------------------------------------------------------------------------------


async def test_a_wrong_key_is_refused_with_what_to_do(node):
    settings = node.settings()
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(node.folder / "key"))
    with pytest.raises(AccessRefused, match=r"me@127\.0\.0\.1") as caught:
        await SshConnection(settings).connect()
    assert "ssh-add" in caught.value.hint


async def test_a_key_with_a_passphrase_is_named_with_the_way_to_load_it(node):
    settings = node.settings()
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(
        str(node.folder / "key"), "pkcs8-pem", passphrase="long"
    )
    with pytest.raises(
        AccessRefused, match=f"{node.folder}/key has a passphrase and is not in the SSH agent"
    ) as caught:
        await SshConnection(settings).connect()
    assert f"`ssh-add {node.folder}/key`" in caught.value.hint


async def test_keys_that_are_not_there_or_are_none_are_passed_over(node):
    settings = node.settings()
    (node.folder / "junk").write_text("no key")
    text = settings.ssh_config.read_text()
    names = ("absent", "junk", "authorized")
    settings.ssh_config.write_text("".join(f"IdentityFile {node.folder}/{name}\n" for name in names) + text)
    await connects(settings)


@pytest.mark.proves("codes-are-asked-and-not-kept")
async def test_a_one_time_code_is_asked_of_the_person_and_told_to_nobody(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    asked = []

    async def ask(title, text, prompts):
        asked.append((title, text, list(prompts)))
        return ["424242"]

    async with running(Node(tmp_path, code="424242")) as node:
        link = SshConnection(node.settings())
        with answered(ask):
            await link.connect()
        await link.close()
    assert asked == [
        (f"SSH login to me@127.0.0.1:{node.port}", "Two factors\nLook at your \\x1b[31mphone", [("Code: ", False)])
    ]
    assert "424242" not in caplog.text
    assert "424242" not in repr(vars(link))


async def test_a_person_may_take_longer_than_the_host(tmp_path):
    async def ask(title, text, prompts):
        await anyio.sleep(3.5)
        return ["1"]

    async with running(Node(tmp_path, code="1")) as node:
        link = SshConnection(node.settings(connect_timeout=3))
        with answered(ask):
            await link.connect()
        await link.close()


@pytest.mark.parametrize("given", ["nobody", "declined"])
async def test_without_an_answer_the_login_says_what_else_there_is(tmp_path, given):
    async def ask(title, text, prompts):
        return None

    async with running(Node(tmp_path, code="1")) as node:
        link = SshConnection(node.settings())
        for _ in range(2):  # the next caller may have somebody: it is not told to wait
            with answered(None if given == "nobody" else ask), pytest.raises(AccessRefused, match="nobody") as caught:
                await link.connect()
        assert "ssh-add" in caught.value.hint

        async def right(title, text, prompts):
            return ["1"]

        with answered(right):
            await link.connect()
        await link.close()


async def test_a_host_that_hangs_up_after_the_login_asks_for_no_second_code(tmp_path):
    asked = []

    async def ask(title, text, prompts):
        asked.append(prompts)
        return ["1"]

    async with running(Node(tmp_path, code="1", hangs_up=True)) as node:
        place = SshTransport("there", node.settings())
        with answered(ask), pytest.raises(SlurmUnreachable, match="closed the connection"):
            await place.runner.run(SAY)
        await place.close()
    assert (len(asked), node.logins) == (1, 1)


async def test_a_wrong_code_ends_after_a_few_questions(tmp_path):
    asked = []

    async def ask(title, text, prompts):
        asked.append(prompts)
        return ["wrong"]

    async with running(Node(tmp_path, code="right")) as node:
        with answered(ask), pytest.raises(AccessRefused, match="refused the login"):
            await SshConnection(node.settings()).connect()
    assert 1 <= len(asked) <= 3


# --- what is away ------------------------------------------------------------------------------------------------


def _closed_port(tmp_path: Path) -> ClusterSettings:
    return ClusterSettings(
        host="127.0.0.1", port=1, user="me", remote_root="x", known_hosts=tmp_path / "none", ssh_config=Path(os.devnull)
    )


async def test_a_host_that_hangs_up_before_the_login_is_said(tmp_path):
    """As sshd does it when too many are logging in (MaxStartups)."""

    async def full(reader, writer):
        writer.write(b"Exceeded MaxStartups\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(full, "127.0.0.1", 0) as server:
        settings = _closed_port(tmp_path).model_copy(update={"port": server.sockets[0].getsockname()[1]})
        with pytest.raises(SlurmUnreachable, match="closed the connection before the login"):
            await SshConnection(settings).connect()


async def test_a_name_that_nobody_knows_is_said(tmp_path):
    settings = _closed_port(tmp_path).model_copy(update={"host": "no-such-host.invalid"})
    with pytest.raises(SlurmUnreachable, match=r"no-such-host\.invalid"):
        await SshConnection(settings).connect()


async def test_a_broken_configuration_is_named(tmp_path):
    (tmp_path / "config").write_text("Port many\n")
    with pytest.raises(ConfigError, match="ssh_config"):
        await SshConnection(ClusterSettings(host="x", remote_root="x", ssh_config=tmp_path / "config")).connect()


# --- files, surroundings, doctor ---------------------------------------------------------------------------------


async def test_a_project_folder_that_is_not_there_is_named_with_its_mend(node):
    place = SshTransport("there", node.settings(remote_root=str(node.folder / "absent")))
    with pytest.raises(ConfigError, match=r"clusters\.there\.remote_root") as caught:
        await place.login_environment()
    assert f"ssh node mkdir -p {node.folder}/absent" in caught.value.hint
    await place.close()


async def test_the_key_is_known_without_a_connection(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host login\n HostName login.example.org\n User jo\n Port 2222\n")
    settings = ClusterSettings(host="login", ssh_config=config, remote_root="x")
    assert SshTransport("x", settings).key == "ssh:jo@login.example.org:2222"
    named = settings.model_copy(update={"user": "ann", "port": 22})
    assert SshTransport("x", named).key == "ssh:ann@login.example.org:22"


@pytest.mark.parametrize(("text", "host", "user", "port"), [("gate", "gate", None, None), ("a@gate:22", "gate", "a", 22),
                                                            ("ssh://a@[::1]:2", "::1", "a", 2), ("[::1]", "::1", None, None)])  # fmt: skip
def test_jump_hosts_are_read(text, host, user, port):
    assert target.read_hop(text) == target.SshHop(host, user, port)
