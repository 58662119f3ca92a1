"""Files on the other side, as they are there."""

from dataclasses import replace

import asyncssh
import pytest
from tests.unit.transport.sshserver import Node, running

from slurm_agent_tools.errors import SlurmUnreachable, StorageError
from slurm_agent_tools.transport.local import LocalFiles
from slurm_agent_tools.transport.ssh.remote import SshTransport


async def test_a_file_is_what_it_is_on_the_other_side(node, tmp_path):
    place = SshTransport("there", node.settings())
    (tmp_path / "kept").write_text("x")
    (tmp_path / "kept").chmod(0o620)
    for path in (tmp_path / "kept", tmp_path, tmp_path / "none"):
        found, known = await place.files.stat(str(path)), await LocalFiles().stat(str(path))
        assert (found is None) == (known is None)
        if found is not None:
            assert found.version is None  # SFTP tells no inode, so nothing shows that a file is the one of before
            assert replace(found, modified=known.modified, version=known.version) == known
            assert abs((found.modified - known.modified).total_seconds()) < 1
    await place.close()


async def test_where_sftp_is_off_the_error_says_so(tmp_path):
    async with running(Node(tmp_path, sftp=False)) as node:
        place = SshTransport("there", node.settings())
        with pytest.raises(StorageError, match="SFTP is switched off"):
            await place.files.read(str(tmp_path / "x"))
        assert (await place.runner.run(["sh", "-c", "exit 127"])).exit_code == 127
        await place.close()


@pytest.mark.parametrize("lasting", [False, True])
async def test_a_connection_that_breaks_while_parts_are_read_is_told_or_read_again(tmp_path, lasting):
    reads = []

    class Breaking(asyncssh.SFTPServer):
        def read(self, file_obj, offset, size):
            reads.append(offset)
            if lasting or len(reads) == 1:
                file_obj.close()
                node.cut()
                raise asyncssh.SFTPFailure("nobody hears this")
            return super().read(file_obj, offset, size)

    (tmp_path / "log").write_bytes(b"0123456789")
    async with running(Node(tmp_path, sftp=Breaking)) as node:
        place = SshTransport("there", node.settings())
        if lasting:
            with pytest.raises(SlurmUnreachable, match="closed the connection"):
                await place.files.read_parts(str(tmp_path / "log"), [(0, 3), (7, 5)])
        else:
            assert await place.files.read_parts(str(tmp_path / "log"), [(0, 3), (7, 5)]) == [b"012", b"789"]
        await place.close()


async def test_what_the_other_side_refuses_while_parts_are_read_is_told(tmp_path):
    class Broken(asyncssh.SFTPServer):
        def read(self, file_obj, offset, size):
            raise asyncssh.SFTPFailure("Input/output error")

    (tmp_path / "log").write_bytes(b"0123456789")
    async with running(Node(tmp_path, sftp=Broken)) as node:
        place = SshTransport("there", node.settings())
        with pytest.raises(StorageError, match="log: Input/output error"):
            await place.files.read_parts(str(tmp_path / "log"), [(0, 3), (7, 5)])
        with pytest.raises(StorageError, match="log: Input/output error"):
            await place.files.read(str(tmp_path / "log"))
        await place.close()


async def test_links_are_never_read_through_nor_written_through(node, tmp_path):
    place = SshTransport("there", node.settings())
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "real/file")
    (tmp_path / "way").symlink_to(tmp_path / "real")
    with pytest.raises(StorageError, match="is a link"):
        await place.files.read(str(tmp_path / "link"))
    assert await place.files.read(str(tmp_path / "way/file")) is None
    for write in (
        place.files.make_folder(str(tmp_path / "way/new")),
        place.files.write_new(str(tmp_path / "way/x"), b""),
    ):
        with pytest.raises(StorageError, match="a link is in the way"):
            await write
    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == ["file"]
    assert await place.files.real_path(str(tmp_path / "way/none/../x")) == str(tmp_path / "real/x")
    await place.close()


async def test_what_the_other_side_forbids_is_told_and_leaves_no_draft(tmp_path):
    class Forbidding(asyncssh.SFTPServer):
        def link(self, oldpath, newpath):
            raise asyncssh.SFTPPermissionDenied("Permission denied")

    async with running(Node(tmp_path, sftp=Forbidding)) as node:
        place = SshTransport("there", node.settings())
        with pytest.raises(StorageError, match="new: Permission denied"):
            await place.files.write_new(str(tmp_path / "made/new"), b"x")
        assert list((tmp_path / "made").iterdir()) == []
        with pytest.raises(StorageError, match="null byte"):
            await place.files.stat("a\0b")
        await place.close()


async def test_where_links_are_not_known_a_draft_is_renamed_and_never_over_another(tmp_path):
    class Old(asyncssh.SFTPServer):
        def link(self, oldpath, newpath):
            raise asyncssh.SFTPOpUnsupported("no such operation")

    async with running(Node(tmp_path, sftp=Old)) as node:
        place = SshTransport("there", node.settings())
        assert await place.files.write_new(str(tmp_path / "new"), b"one") is True
        assert await place.files.write_new(str(tmp_path / "new"), b"two") is False
        assert (tmp_path / "new").read_bytes() == b"one"
        await place.close()


async def test_half_of_what_is_added_is_taken_away_again(tmp_path):
    class Full(asyncssh.SFTPServer):
        def write(self, file_obj, offset, data):
            super().write(file_obj, offset, data[:2])
            raise asyncssh.SFTPFailure("No space left on device")

    (tmp_path / "log").write_bytes(b"before\n")
    async with running(Node(tmp_path, sftp=Full)) as node:
        place = SshTransport("there", node.settings())
        with pytest.raises(StorageError, match="No space left"):
            await place.files.append(str(tmp_path / "log"), b"after\n")
        assert (tmp_path / "log").read_bytes() == b"before\n"
        await place.close()
