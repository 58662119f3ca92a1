"""sync_files by rsync, through the connection that is open: what breaks off, and where one side has none."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.two_sides import Sides, two_sides
from tests.unit.transport.sshserver import Node

from slurm_agent_tools.backends import sync_transfer


@pytest.fixture
async def sides(tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sides]:
    monkeypatch.setattr(sync_transfer, "_worth_rsync", bool)
    async with two_sides(tmp_path, node) as made:
        yield made


@pytest.mark.proves("sync-goes-on-where-it-broke")
async def test_a_connection_that_is_cut_under_rsync_leaves_no_half_file_and_the_next_run_finishes(
    sides: Sides, node: Node
) -> None:
    texts = {f"f{number:02}": os.urandom(400_000) for number in range(20)}
    for name, data in texts.items():
        sides.write(name, data)
    sides.track()
    left = [5]

    async def cut(done: float, total: float | None, message: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            node.cut()

    sides.on_progress = cut
    reply = await sides.sync("push")
    assert (reply.status, bool(reply.reason)) == ("partial", True)
    whole = {name: data for name, data in sides.files().items() if name in texts}
    assert all(texts[name] == data for name, data in whole.items())
    assert len(whole) < 20
    sides.on_progress = None
    assert (await sides.sync("push")).status == "done"
    assert {name: data for name, data in sides.files().items() if name in texts} == texts


@pytest.mark.parametrize("side", ["here", "there"])
async def test_where_one_side_has_no_rsync_the_files_go_by_sftp(
    sides: Sides, node: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, side: str
) -> None:
    sides.write("a", "x" * 100)
    sides.track()
    if side == "here":
        program = sync_transfer.process.program
        monkeypatch.setattr(
            sync_transfer.process, "program", lambda name, *more: None if name == "rsync" else program(name, *more)
        )
    else:
        for name in ("xargs", "stat", "sha256sum", "readlink", "env", "sh", "id", "cat"):
            (tmp_path / "bin").mkdir(exist_ok=True)
            (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
        node.profile = f"PATH={tmp_path / 'bin'}; export PATH"
    reply = await sides.sync("push")
    assert (reply.status, reply.sent) == ("done", 1)
    assert sides.files() == {"a": b"x" * 100}


async def test_a_file_that_changes_under_rsync_is_told(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sides.write("a", "old\n")
    sides.write("b", "fine\n")
    sides.track()
    planned = sync_transfer.secrets

    async def later(*words: Any) -> Any:
        found = await planned(*words)
        path.write_text("new\n")
        return found

    monkeypatch.setattr(sync_transfer, "secrets", later)
    reply = await sides.sync("push")
    assert (reply.status, reply.sent, reply.differs) == ("partial", 1, ["a"])
    assert "changed while it was read" in reply.summary


async def test_rsync_leaves_files_to_their_owner_and_runs_nothing_that_the_project_has(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    evil = sides.write("bin/rsync", f"#!/bin/sh\ntouch {tmp_path}/proof\n")
    evil.chmod(0o777)
    monkeypatch.setenv("PATH", f"{evil.parent}:{os.environ['PATH']}")
    sides.node.profile = "PATH=/usr/bin:/bin; export PATH"
    monkeypatch.setenv("RSYNC_RSH", f"touch {tmp_path}/proof")
    sides.track()
    assert (await sides.sync("push")).sent == 1
    assert not (tmp_path / "proof").exists()
    assert stat.S_IMODE((sides.there / "bin/rsync").stat().st_mode) == 0o700
    assert stat.S_IMODE((sides.there / "bin").stat().st_mode) == 0o700


@pytest.mark.proves("sync-moves-what-differs")
async def test_many_changed_files_of_which_rsync_is_told_much_at_once_all_arrive(sides: Sides) -> None:
    """The other side tells of each old file what it holds, faster than rsync here reads it while it sends."""
    names = [f"f{number:03}" for number in range(150)]
    for name in names:
        sides.write(name, os.urandom(300_000), there=True)
        sides.write(name, os.urandom(300_000))
    sides.track()
    reply = await sides.sync("push")
    assert (reply.status, reply.sent, reply.reason) == ("done", 150, None)
    assert sides.files() == {name: (sides.here / name).read_bytes() for name in names}
    assert not [*sides.there.rglob("*.slurm-agent-part*")]
