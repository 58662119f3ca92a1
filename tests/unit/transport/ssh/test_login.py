"""Opening one connection: what runs on the way to it, and what is left when it ends."""

import os

import anyio
import pytest
from tests.watchdog import SECONDS

from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.transport.ssh.connection import SshConnection
from slurm_agent_tools.transport.ssh.remote import SshTransport


async def test_a_condition_that_runs_a_command_runs_it_once_for_a_login(node):
    settings, ran = node.settings(), node.folder / "ran"
    text = settings.ssh_config.read_text()
    settings.ssh_config.write_text(f'Match originalhost node exec "echo %n >> {ran}"\n  Compression yes\n{text}')
    link = SshConnection(settings)
    await link.connect()
    await link.close()
    assert ran.read_text() == "node\n"


async def test_a_proxy_command_ends_with_its_connection_and_may_say_what_it_likes(node):
    settings, pid = node.settings(idle_seconds=0.1), node.folder / "pid"
    relay = node.folder / "relay"
    relay.write_text(
        f"""#!/usr/bin/env python3
import os, socket, sys, threading
open({str(pid)!r}, "w").write(str(os.getpid()))
sys.stderr.write("WELCOME\\nSSH-1.0-noise\\n")
sys.stderr.close()
there = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def copy(read, write):
    while piece := read(65536):
        write(piece)
threading.Thread(target=copy, args=(there.recv, lambda piece: os.write(1, piece)), daemon=True).start()
copy(lambda size: os.read(0, size), there.sendall)
"""
    )
    relay.chmod(0o755)
    with settings.ssh_config.open("a") as file:
        file.write(f"  ProxyCommand {relay} '%h' %p # of the site\n")
    for end in ("closed", "idle"):
        link = SshConnection(settings)
        await link.connect()
        process = int(pid.read_text())
        if end == "closed":
            await link.close()
        else:
            async with link.files():
                pass
        await gone(process)


async def gone(process: int) -> None:
    """Waits until a process has ended."""
    with anyio.fail_after(SECONDS):
        while await anyio.Path(f"/proc/{process}").exists():  # noqa: ASYNC110 - no child of ours to be told of
            await anyio.sleep(0.02)


async def test_a_proxy_command_that_fails_is_named(node):
    settings = node.settings()
    with settings.ssh_config.open("a") as file:
        file.write("  ProxyCommand false\n")
    with pytest.raises(SlurmUnreachable, match="its ProxyCommand ended before the login"):
        await SshConnection(settings).connect()


async def test_a_proxy_command_finds_no_program_that_lies_where_we_run(node, tmp_path, monkeypatch):
    (tmp_path / "relay-of-the-site").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "relay-of-the-site").chmod(0o755)
    settings = node.settings()
    with settings.ssh_config.open("a") as file:
        file.write("  ProxyCommand relay-of-the-site %h %p\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SlurmUnreachable, match="its ProxyCommand ended before the login"):
        await SshConnection(settings).connect()

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("written", ["~", "~/", "~/below", "below"])
async def test_the_project_folder_counts_from_the_home_folder_there(node, written):
    (node.folder / "below").mkdir()
    node.profile = f"export HOME={node.folder}"
    place = SshTransport("there", node.settings(remote_root=written))
    root = (await place.login_environment()).root
    await place.close()
    assert root == str(node.folder / "below" if "below" in written else node.folder)
