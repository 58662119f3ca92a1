"""Files of this machine, of a cluster over SFTP and of the fake Slurm mean the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from slurm_agent_tools.devcluster.fake.fake_files import MemoryFiles
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.transport.base import Files
from slurm_agent_tools.transport.local import LocalFiles
from slurm_agent_tools.transport.ssh.remote import SshTransport


@pytest.fixture(params=["memory", "disk", "sftp"])
async def place(request, tmp_path, node) -> AsyncIterator[tuple[Files, str]]:
    """Files of each kind, and an empty folder there."""
    remote = SshTransport("there", node.settings())
    files: Files = {"memory": MemoryFiles(), "disk": LocalFiles(), "sftp": remote.files}[request.param]
    folder = "/home/alice/project" if request.param == "memory" else str(tmp_path.resolve() / "project")
    await files.make_folder(folder)
    yield files, folder
    await remote.close()


async def test_a_file_is_written_once_and_read_in_parts(place):
    files, folder = place
    path = f"{folder}/a.txt"
    assert await files.write_new(path, b"0123456789") is True
    assert await files.write_new(path, b"another") is False
    assert await files.read(path) == b"0123456789"
    assert await files.read(path, offset=4) == b"456789"
    assert await files.read(path, offset=4, size=3) == b"456"
    assert await files.read_parts(path, [(0, 2), (8, 5)]) == [b"01", b"89"]


async def test_what_is_not_there_is_none_and_nothing_is_added_to_it(place):
    files, folder = place
    path = f"{folder}/none"
    assert await files.stat(path) is None
    assert await files.read(path) is None
    assert await files.read_parts(path, [(0, 1)]) is None
    assert await files.list(path) is None
    assert await files.append(path, b"x") is False
    assert await files.stat(path) is None


async def test_what_is_added_comes_at_the_end_and_the_permissions_stay(place):
    files, folder = place
    path = f"{folder}/log"
    await files.write_new(path, b"one\n", mode=0o640)
    assert await files.append(path, b"two\n") is True
    assert await files.read(path) == b"one\ntwo\n"
    found = await files.stat(path)
    assert (found.size, found.kind, found.mode & 0o777) == (8, "file", 0o640)


async def test_a_folder_lists_its_own_names_and_not_those_below(place):
    files, folder = place
    await files.make_folder(f"{folder}/deep/deeper")
    await files.make_folder(f"{folder}/deep")  # one that is there is fine
    await files.write_new(f"{folder}/deep/deeper/x", b"")
    await files.write_new(f"{folder}/b", b"")
    await files.write_new(f"{folder}/a", b"")
    assert await files.list(folder) == ["a", "b", "deep"]
    assert await files.list(f"{folder}/deep") == ["deeper"]
    assert (await files.stat(f"{folder}/deep")).kind == "dir"


async def test_a_file_and_a_folder_never_have_one_name(place):
    files, folder = place
    await files.write_new(f"{folder}/file", b"")
    with pytest.raises(StorageError):
        await files.make_folder(f"{folder}/file")
    await files.make_folder(f"{folder}/folder")
    assert await files.write_new(f"{folder}/folder", b"") is False
    assert (await files.stat(f"{folder}/folder")).kind == "dir"


async def test_a_path_is_told_without_dots(place):
    files, folder = place
    assert await files.real_path(f"{folder}/a/../b/./c") == f"{folder}/b/c"


async def test_a_name_with_odd_letters_stays_one_name(place):
    files, folder = place
    path = f"{folder}/a b'\"$(x)\n\udcff"
    assert await files.write_new(path, b"1") is True
    assert await files.list(folder) == ["a b'\"$(x)\n\udcff"]
    assert await files.read(path) == b"1"


async def test_a_folder_is_no_file(place):
    files, folder = place
    assert await files.read(folder) is None
    assert await files.append(folder, b"x") is False
    assert await files.list(f"{folder}/none") is None


# --- In place of what is there ----------------------------------------------------------------------------------------


async def test_a_file_takes_the_place_of_another_whole_and_leaves_no_draft(place):
    files, folder = place
    path = f"{folder}/new/a b\n.txt"
    await files.write_over(path, b"first", mode=0o600)
    await files.write_over(path, b"second", mode=0o700)
    assert await files.read(path) == b"second"
    assert (await files.stat(path)).mode & 0o777 == 0o700
    assert await files.list(f"{folder}/new") == ["a b\n.txt"]


async def test_a_part_gets_its_name_and_its_permissions_in_one_step(place):
    files, folder = place
    await files.write_new(f"{folder}/.part", b"whole", mode=0o600)
    await files.write_new(f"{folder}/-name", b"old")
    await files.move_over(f"{folder}/.part", f"{folder}/-name", mode=0o700)
    assert await files.list(folder) == ["-name"]
    assert await files.read(f"{folder}/-name") == b"whole"
    assert (await files.stat(f"{folder}/-name")).mode & 0o777 == 0o700
    with pytest.raises(StorageError):
        await files.move_over(f"{folder}/none", f"{folder}/-name")


async def test_no_file_takes_the_place_of_a_folder(place):
    files, folder = place
    await files.make_folder(f"{folder}/taken/inner")
    await files.write_new(f"{folder}/part", b"x")
    with pytest.raises(StorageError):
        await files.write_over(f"{folder}/taken", b"x")
    with pytest.raises(StorageError):
        await files.move_over(f"{folder}/part", f"{folder}/taken")
    with pytest.raises(StorageError):
        await files.remove(f"{folder}/taken")
    assert await files.list(folder) == ["part", "taken"]


async def test_one_file_is_removed_and_a_missing_one_is_told(place):
    files, folder = place
    await files.write_new(f"{folder}/a", b"x")
    assert [await files.remove(f"{folder}/a"), await files.remove(f"{folder}/a")] == [True, False]
    assert await files.list(folder) == []


@pytest.mark.parametrize("place", ["disk", "sftp"], indirect=True)
async def test_a_link_takes_the_place_of_a_file_and_nothing_is_written_through_one(place):
    files, folder = place
    await files.make_folder(f"{folder}/real")
    await files.write_new(f"{folder}/door", b"x")
    await files.link_over(f"{folder}/door", "real")
    assert await files.real_path(f"{folder}/door") == f"{folder}/real"
    for work in (
        files.write_over(f"{folder}/door/a", b"x"), files.link_over(f"{folder}/door/a", "b"),
        files.remove(f"{folder}/door/a"), files.move_over(f"{folder}/door/a", f"{folder}/door/b"),
    ):  # fmt: skip
        with pytest.raises(StorageError):
            await work
    assert await files.list(f"{folder}/real") == []
    assert await files.remove(f"{folder}/door") is True
    assert await files.list(folder) == ["real"]
