"""sync_files: what comes back from a cluster, what never does, and what is left where it breaks off."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services.two_sides import Sides, two_sides
from tests.unit.transport.sshserver import Node

from slurm_agent_tools.backends import sync_sides, sync_transfer
from slurm_agent_tools.errors import SlurmUnreachable, StorageError


@pytest.fixture
async def sides(tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sides]:
    monkeypatch.setattr(sync_transfer, "_RSYNC_FILES", 10**9)
    async with two_sides(tmp_path, node) as made:
        yield made


# --- And back -----------------------------------------------------------------------------------------------------


@pytest.mark.proves("sync-moves-what-differs")
async def test_logs_results_and_checkpoints_come_back_and_then_only_what_is_new(sides: Sides) -> None:
    for name in ("logs/1.out", "results/a.json", "checkpoints/step-1.pt", "data/raw.bin", "two\nlines", "slurm-7.out"):
        sides.write(name, name, there=True)
    first = await sides.sync("pull")
    assert (first.status, first.received) == ("done", 4)
    assert sorted(sides.files(there=False)) == ["checkpoints/step-1.pt", "logs/1.out", "results/a.json", "slurm-7.out"]
    sides.write("logs/1.out", "longer than before", there=True)
    again = await sides.sync("pull")
    assert (again.received, again.unchanged) == (1, 3)
    assert sides.files(there=False)["logs/1.out"] == b"longer than before"
    assert (await sides.sync("pull", paths=["data/*", "two*"])).received == 2
    assert sides.files(there=False)["two\nlines"] == b"two\nlines"


@pytest.mark.proves("sync-keeps-changed-files")
async def test_a_tracked_file_is_overwritten_only_where_it_is_named_exactly(sides: Sides) -> None:
    sides.write("results/best.json", "mine")
    sides.track()
    sides.write("results/best.json", "theirs", there=True)
    reply = await sides.sync("pull", paths=["results/*"])
    assert (reply.status, reply.received, reply.differs) == ("done", 0, ["results/best.json"])
    assert "name exactly this file" in reply.kept[0].why
    assert sides.files(there=False)["results/best.json"] == b"mine"
    assert (await sides.sync("pull", paths=["results/best.json"])).received == 1
    assert sides.files(there=False)["results/best.json"] == b"theirs"


@pytest.mark.proves("sync-keeps-changed-files")
@pytest.mark.parametrize("name", ["conftest.py", ".mcp.json", ".git/hooks/pre-commit", ".env", "slurm-agent.toml"])
async def test_what_would_change_how_this_machine_works_does_not_come_back(sides: Sides, name: str) -> None:
    sides.write(name, "evil", there=True)
    sides.write("fine.txt", there=True)
    for paths in (["**"], [name, "fine.txt"]):
        await sides.sync("pull", paths=paths)
        assert sorted(sides.files(there=False)) == ["fine.txt"]
    assert not (sides.here / ".git/hooks/pre-commit").exists()


async def test_the_rules_file_says_what_comes_back_and_never_comes_back_itself(sides: Sides) -> None:
    sides.write(".slurm-agent-sync", "pull: out/**/*.csv\n!out/tmp\n")
    for name in ("out/a.csv", "out/deep/b.csv", "out/tmp/c.csv", "logs/x", ".slurm-agent-sync"):
        sides.write(name, name, there=True)
    assert (await sides.sync("pull")).received == 2
    reply = await sides.sync("pull", paths=[".slurm-agent-sync"])
    assert (reply.received, reply.differs) == (0, [".slurm-agent-sync"])


@pytest.mark.proves("sync-stays-in-its-folders")
@pytest.mark.parametrize("side", ["here", "there"])
async def test_a_linked_folder_is_no_way_for_what_comes_back(sides: Sides, tmp_path: Path, side: str) -> None:
    outside = tmp_path / "outside"
    (outside / "logs").mkdir(parents=True)
    if side == "here":
        sides.write("logs/a", "log", there=True)
        (sides.here / "logs").symlink_to(outside / "logs")
    else:
        (outside / "logs/a").write_text("theirs")
        (sides.there / "away").symlink_to(outside)
    reply = await sides.sync("pull", paths=["logs/a", "away/logs/a", "away/logs"])
    assert (reply.received, len(reply.kept)) == (0, 1)
    assert "is a link" in reply.kept[0].why
    assert [path.name for path in (outside / "logs").iterdir()] == (["a"] if side == "there" else [])


# --- What breaks off ------------------------------------------------------------------------------------------------


class Breaking:
    """Files that do as those behind them do until one call in a row is reached, and then fail."""

    def __init__(self, files: Any, call: str, at: int, error: Exception) -> None:
        self._files, self._call, self._left, self._error = files, call, at, error

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._files, name)

        async def broken(*words: Any, **more: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise self._error
            return await method(*words, **more)

        return broken if name == self._call else method


def breaking(sides: Sides, call: str, at: int, error: Exception) -> Any:
    """Let the files there fail; what puts it right again."""
    remote = sides.box.context.transport
    whole = remote.files
    object.__setattr__(remote, "files", Breaking(whole, call, at, error))
    return lambda: object.__setattr__(remote, "files", whole)


@pytest.mark.proves("sync-goes-on-where-it-broke")
@pytest.mark.parametrize("error", [StorageError("a: No space left"), SlurmUnreachable("node closed the connection.")])
async def test_what_breaks_off_leaves_whole_files_and_the_next_run_finishes(sides: Sides, error: Exception) -> None:
    for number in range(20):
        sides.write(f"f{number:02}", str(number))
    sides.track()
    mended = breaking(sides, "write_over", 5, error)
    reply = await sides.sync("push")
    assert reply.status == "partial"
    assert reply.reason
    assert len(reply.differs) >= 15
    assert all(data == str(int(name[1:])).encode() for name, data in sides.files().items())
    mended()
    again = await sides.sync("push")
    assert again.status == "done"
    assert again.unchanged >= 5
    assert again.sent + again.unchanged == 20


class Locked:
    """Files of which some cannot be read."""

    def __init__(self, files: Any, part: str) -> None:
        self._files, self._part = files, part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    async def read(self, path: str, **more: Any) -> Any:
        if self._part in path:
            raise StorageError(f"{path}: Permission denied", hint="Check the file.")
        return await self._files.read(path, **more)


def lock(sides: Sides, part: str) -> None:
    remote = sides.box.context.transport
    object.__setattr__(remote, "files", Locked(remote.files, part))


@pytest.mark.proves("sync-goes-on-where-it-broke")
@pytest.mark.parametrize("size", [10, 5000])
async def test_a_file_there_that_cannot_be_read_keeps_no_other_from_coming_back(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(sync_transfer, "_PIECE", 1000)
    for name in ("a", "locked", "z"):
        sides.write(f"logs/{name}", name[0].encode() * size, there=True)
    lock(sides, "locked")
    reply = await sides.sync("pull")
    assert (reply.status, reply.received, reply.differs) == ("partial", 2, ["logs/locked"])
    assert (reply.kept[0].path, reply.kept[0].why) == ("logs/locked", "Permission denied")
    assert sorted(sides.files(there=False)) == ["logs/a", "logs/z"]


async def test_where_many_files_cannot_be_read_the_rest_is_not_tried(sides: Sides) -> None:
    for number in range(50):
        sides.write(f"logs/locked{number:02}", there=True)
    sides.write("logs/zzz", there=True)
    lock(sides, "locked")
    reply = await sides.sync("pull")
    assert (reply.status, reply.received, len(reply.differs)) == ("partial", 0, 51)
    assert "Permission denied" in (reply.reason or "")
    assert len(reply.kept) == 20


@pytest.mark.proves("sync-goes-on-where-it-broke")
async def test_a_connection_that_is_cut_under_sftp_is_told_and_the_next_run_finishes(sides: Sides, node: Node) -> None:
    texts = {f"f{number:02}": os.urandom(200_000) for number in range(40)}
    for name, data in texts.items():
        sides.write(name, data)
    sides.track()
    files = sides.box.context.transport.files
    whole, left = files.write_over, [10]

    async def cutting(*words: Any, **more: Any) -> None:
        await whole(*words, **more)
        left[0] -= 1
        if left[0] == 0:  # others are under way
            node.cut()

    object.__setattr__(files, "write_over", cutting)
    reply = await sides.sync("push")
    assert (reply.status, bool(reply.reason)) == ("partial", True)
    assert all(texts[name] == data for name, data in sides.files().items() if name in texts)
    assert (await sides.sync("push")).status == "done"
    assert {name: data for name, data in sides.files().items() if name in texts} == texts


@pytest.mark.proves("sync-goes-on-where-it-broke")
@pytest.mark.parametrize("direction", ["push", "pull"])
async def test_a_large_file_goes_on_where_it_broke_off(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    monkeypatch.setattr(sync_transfer, "_PIECE", 1000)
    monkeypatch.setattr(sync_transfer, "_worth_rsync", lambda _: False)
    data = bytes(range(256)) * 40
    there = direction == "pull"
    sides.write("logs/big", data, there=there)
    sides.track() if not there else None
    call = "append" if direction == "push" else "read"
    mended = breaking(sides, call, 4, SlurmUnreachable("node closed the connection."))
    reply = await sides.sync(direction)
    assert (reply.status, reply.differs) == ("partial", ["logs/big"])
    assert sides.files(there=not there).get("logs/big") is None
    left = [size for name, body in sides.files(there=not there).items() if (size := len(body))]
    assert left == [4000]
    mended()
    again = await sides.sync(direction)
    assert (again.status, again.bytes) == ("done", len(data) - 4000)
    assert sides.files(there=not there) == {"logs/big": data}


@pytest.mark.parametrize("grown", [True, False])
async def test_of_a_log_that_grew_only_the_end_comes_over(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, grown: bool
) -> None:
    monkeypatch.setattr(sync_transfer, "_PIECE", 1000)
    before, more = b"a" * 5500, b"b" * 700
    sides.write("logs/big", before, there=True)
    await sides.sync("pull")
    sides.write("logs/big", before + more if grown else b"c" * 5500 + more, there=True)
    reply = await sides.sync("pull")
    assert (reply.status, reply.bytes) == ("done", 700 if grown else 6200)
    assert sides.files(there=False) == {"logs/big": sides.files()["logs/big"]}


async def test_a_part_that_somebody_wrote_into_is_begun_anew(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_transfer, "_PIECE", 1000)
    monkeypatch.setattr(sync_transfer, "_worth_rsync", lambda _: False)
    data = b"y" * 5000
    sides.write("big", data)
    sides.track()
    mended = breaking(sides, "append", 2, StorageError("broken"))
    await sides.sync("push")
    mended()
    (part,) = [sides.there / name for name in sides.files()]
    part.write_bytes(b"z" * 3000)
    assert (await sides.sync("push")).status == "done"
    assert sides.files() == {"big": data}
    part.write_bytes(b"z" * 9000)  # longer than the file
    sides.write("big", data[1:] + b"!")
    assert (await sides.sync("push")).status == "done"


async def test_a_log_that_grows_while_it_is_read_comes_back_as_it_was(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sides.write("logs/a.out", "one\n", there=True)
    asked = sync_sides.remote_states

    async def grown(*words: Any, **more: Any) -> Any:
        found = await asked(*words, **more)
        with path.open("a") as file:
            file.write("two\n")
        return found

    monkeypatch.setattr(sync_sides, "remote_states", grown)
    reply = await sides.sync("pull")
    assert (reply.status, reply.received) == ("done", 1)
    assert sides.files(there=False)["logs/a.out"] == b"one\n"


@pytest.mark.parametrize("direction", ["push", "pull"])
async def test_a_file_that_is_rewritten_while_it_is_read_is_told_and_not_taken(
    sides: Sides, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    path = sides.write("logs/a", "old\n", there=direction == "pull")
    sides.track() if direction == "push" else None
    whole = sync_transfer._expected

    async def rewritten(*words: Any, **more: Any) -> Any:
        if direction == "pull":
            path.write_text("new and longer\n")
        return await whole(*words, **more)

    monkeypatch.setattr(sync_transfer, "_expected", rewritten)
    if direction == "push":
        planned = sync_transfer.secrets

        async def later(*words: Any) -> Any:
            path.write_text("new\n")
            return await planned(*words)

        monkeypatch.setattr(sync_transfer, "secrets", later)
    reply = await sides.sync(direction)
    assert (reply.status, reply.differs) == ("partial", ["logs/a"])
    assert "changed while it was read" in reply.summary
    assert sides.files(there=direction == "push") == {}


async def test_a_host_that_is_away_moves_nothing_and_says_so(sides: Sides, node: Node) -> None:
    sides.write("a")
    sides.track()

    class Away:
        async def run(self, *words: Any, **more: Any) -> Any:
            raise SlurmUnreachable("node did not let us in.", hint="Try `ssh node`.")

    remote = sides.box.context.transport
    object.__setattr__(remote, "runner", Away())
    reply = await sides.sync("push")
    assert (reply.status, reply.blocker) == ("blocked", "cluster_unreachable")
    assert "ssh node" in reply.summary


async def test_every_transfer_is_in_the_decision_log(sides: Sides) -> None:
    sides.write("a")
    sides.track()
    await sides.sync("push")
    log = (sides.box.context.store.folder / "decisions.jsonl").read_text()
    assert '"tool":"sync_files"' in log.replace(" ", "")
