"""How often a host that is away is tried, however many call."""

import asyncio
import itertools
import os
from pathlib import Path

import anyio
import pytest

from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.transport.ssh.connection import SshConnection, pause


def test_the_pause_doubles_up_to_a_minute():
    assert [pause(number) for number in (0, 1, 2, 3, 6, 7, 8, 5000)] == [0, 1, 2, 4, 32, 60, 60, 60]


async def test_fifty_callers_of_a_host_that_is_away_wait_once(tmp_path):
    tried = []

    async def silent(reader, writer):
        tried.append(1)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    link = SshConnection(ClusterSettings(host="127.0.0.1", port=port, user="me", remote_root="x", connect_timeout=0.3,
                                known_hosts=tmp_path / "none", ssh_config=Path(os.devnull)))  # fmt: skip
    errors = []

    async def use():
        try:
            await link.connect()
        except SlurmUnreachable as error:
            errors.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(use)
    assert (len(errors), len(tried)) == (50, 1)
    server.close()


async def test_after_the_pause_it_is_tried_again(tmp_path):
    clock = itertools.count(0, 0.4)
    closed = ClusterSettings(
        host="127.0.0.1", port=1, user="me", remote_root="x", known_hosts=tmp_path / "none", ssh_config=Path(os.devnull)
    )
    link = SshConnection(closed, now=lambda: next(clock))
    for _ in range(2):
        with pytest.raises(SlurmUnreachable, match="cannot be reached"):
            await link.connect()
    assert link._failures == 1
    for _ in range(6):
        with pytest.raises(SlurmUnreachable):
            await link.connect()
    assert link._failures > 1
