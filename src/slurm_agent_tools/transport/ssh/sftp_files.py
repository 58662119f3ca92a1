"""Files of a cluster over SFTP, with the meaning of the local ones.

SFTP opens by path only: that no link is in a path is looked at just before, not in one step with the opening.
"""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar, cast

import anyio

from slurm_agent_tools.errors import SlurmUnreachable, StorageError
from slurm_agent_tools.transport.base import Stat
from slurm_agent_tools.transport.login_shell import as_bytes, as_text
from slurm_agent_tools.transport.ssh.connection import SshConnection

if TYPE_CHECKING:
    import asyncssh


_LIMIT = 60.0  # seconds for one request; a file system that hangs there must not hang us

_PIECE = 4 * 2**20

_HINT = "Check the path, its permissions and the free disk space there."

T = TypeVar("T")


class SshFiles:
    """Reads and writes where the jobs run."""

    def __init__(self, link: SshConnection) -> None:
        self._link = link

    async def stat(self, path: str) -> Stat | None:
        """Follows links; None when there is nothing."""
        return await self._reading(path, lambda sftp: _stat(sftp, path))

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        """Bytes from `offset`; None when there is no regular file. Links in the path are not followed."""
        found = await self._reading(path, lambda sftp: _read(sftp, path, [(offset, size)]))
        return None if found is None else found[0]

    async def read_parts(self, path: str, parts: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """Several parts (offset, size) of one regular file, opened once; None when there is none."""
        return await self._reading(path, lambda sftp: _read(sftp, path, parts))

    async def write_new(self, path: str, data: bytes, *, mode: int = 0o600) -> bool:
        """Write atomically, never over an existing file: False when the name is taken."""
        async with self._told(path) as sftp:
            return await _write_new(sftp, path, data, mode)

    async def append(self, path: str, data: bytes) -> bool:
        """Add at the end of a regular file, all or nothing; False where there is none."""
        async with self._told(path) as sftp:
            return await _append(sftp, path, data)

    async def write_over(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Write a whole file in place of the file that is there, in one step: nobody ever sees half of it."""
        async with self._told(path) as sftp:
            await _write_over(sftp, path, data, mode)

    async def move_over(self, path: str, target: str, *, mode: int = 0o600) -> None:
        """Give a whole file in the same folder the name `target`, in place of the file that is there, in one step."""
        async with self._told(path) as sftp:
            await _unlinked(sftp, posixpath.dirname(path))
            await sftp.chmod(as_bytes(path), mode, follow_symlinks=False)
            await _replace(sftp, as_bytes(path), as_bytes(target))

    async def link_over(self, path: str, leads: str) -> None:
        """Make a symbolic link in place of the file or link that is there, in one step."""
        async with self._told(path) as sftp:
            await _make_folder(sftp, posixpath.dirname(path))
            async with _drafted(sftp, path) as draft:
                await sftp.symlink(as_bytes(leads), draft)
                await _replace(sftp, draft, as_bytes(path))

    async def remove(self, path: str) -> bool:
        """Remove one file or link, never a folder; False where there is none."""
        import asyncssh  # noqa: PLC0415

        async with self._told(path) as sftp:
            await _unlinked(sftp, posixpath.dirname(path))
            try:
                await sftp.remove(as_bytes(path))
            except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
                return False
        return True

    async def make_folder(self, path: str) -> None:
        """Make a folder and those above it; one that is there is fine."""
        await self._reading(path, lambda sftp: _make_folder(sftp, path))

    async def list(self, folder: str) -> list[str] | None:
        """Names in a folder, sorted; None when there is none."""
        return await self._reading(folder, lambda sftp: _list(sftp, folder))

    async def real_path(self, path: str) -> str:
        """Absolute, every link resolved, also for what does not exist yet."""
        return await self._reading(path, lambda sftp: _real_path(sftp, path))

    async def _reading(self, path: str, work: Callable[[asyncssh.SFTPClient], Awaitable[T]]) -> T:
        """Done twice does no harm: after a lost connection it is done again, once."""
        with suppress(SlurmUnreachable):
            async with self._told(path) as sftp:
                return await work(sftp)
        async with self._told(path) as sftp:
            return await work(sftp)

    @asynccontextmanager
    async def _told(self, path: str) -> AsyncIterator[asyncssh.SFTPClient]:
        """Turns what can go wrong into StorageError, a lost connection into SlurmUnreachable."""
        if "\0" in path:
            raise StorageError(f"{path!r}: embedded null byte", hint=_HINT)
        async with self._link.files() as sftp:
            import asyncssh  # noqa: PLC0415 - loaded by now

            try:
                with anyio.fail_after(_LIMIT):
                    yield sftp
            except TimeoutError as error:
                self._link.forget_files()
                raise StorageError(f"{path}: no answer within {_LIMIT:.0f} s", hint="Is its file system up?") from error
            except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection, asyncssh.DisconnectError, OSError) as error:
                self._link.forget_files()
                raise SlurmUnreachable(f"{self._link.host} closed the connection.", hint="Call again.") from error
            except asyncssh.SFTPError as error:
                raise StorageError(f"{path}: {error.reason}", hint=_HINT) from error


async def _stat(sftp: asyncssh.SFTPClient, path: str) -> Stat | None:
    import asyncssh  # noqa: PLC0415

    try:
        found = await sftp.stat(as_bytes(path) or b".")
    except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
        return None
    kinds = {asyncssh.FILEXFER_TYPE_REGULAR: "file", asyncssh.FILEXFER_TYPE_DIRECTORY: "dir"}
    kind, modified = kinds.get(found.type, "other"), datetime.fromtimestamp(found.mtime or 0, UTC)
    return Stat(found.size or 0, kind, modified, found.uid, found.permissions)


async def _read(sftp: asyncssh.SFTPClient, path: str, parts: Sequence[tuple[int, int | None]]) -> list[bytes] | None:
    """Parts (offset, size) of a regular file, None for its rest; None where there is none."""
    file = await _opened(sftp, path)
    if file is None:
        return None
    found = [b""] * len(parts)

    async def take(index: int) -> None:
        offset, size = parts[index]
        found[index] = await _window(file, offset, size)

    try:
        async with anyio.create_task_group() as group:  # one way there and back for all
            for index in range(len(parts)):
                group.start_soon(take, index)
    except ExceptionGroup as several:  # one that is told stands for all
        raise several.exceptions[0] from None
    finally:
        await file.close()
    return found


async def _opened(sftp: asyncssh.SFTPClient, path: str) -> asyncssh.SFTPClientFile | None:
    """A regular file, open to read; None where there is none. Raises StorageError for a link."""
    import asyncssh  # noqa: PLC0415

    name = as_bytes(path)
    try:
        kind = (await sftp.lstat(name)).type
        real = await sftp.realpath(name)
    except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
        return None
    if kind == asyncssh.FILEXFER_TYPE_SYMLINK:
        raise StorageError(f"{path}: is a link", hint=_HINT)
    if kind != asyncssh.FILEXFER_TYPE_REGULAR or real != posixpath.normpath(name):
        return None
    return await sftp.open(name, "rb")


async def _append(sftp: asyncssh.SFTPClient, path: str, data: bytes) -> bool:
    import asyncssh  # noqa: PLC0415

    if await _read(sftp, path, ()) is None:
        return False
    flags = asyncssh.FXF_WRITE | asyncssh.FXF_APPEND
    async with await sftp.open(as_bytes(path), flags, encoding=None) as file:
        before = (await file.stat()).size
        try:
            await file.write(data)
        except asyncssh.SFTPError:
            await file.truncate(before)
            raise
    return True


async def _window(file: asyncssh.SFTPClientFile, offset: int, size: int | None) -> bytes:
    if size is not None:
        return cast("bytes", await file.read(size, offset))
    parts: list[bytes] = []
    while part := cast("bytes", await file.read(_PIECE, offset)):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


async def _write_new(sftp: asyncssh.SFTPClient, path: str, data: bytes, mode: int) -> bool:
    import asyncssh  # noqa: PLC0415

    folder, name = posixpath.split(path)
    await _make_folder(sftp, folder)
    draft = as_bytes(posixpath.join(folder, f".{name[:50]}.{secrets.token_hex(4)}.tmp"))
    flags = asyncssh.FXF_WRITE | asyncssh.FXF_CREAT | asyncssh.FXF_EXCL
    try:
        async with await sftp.open(draft, flags, asyncssh.SFTPAttrs(permissions=mode), encoding=None) as file:
            await file.write(data, 0)
            with suppress(asyncssh.SFTPOpUnsupported):
                await file.fsync()
        return await _take(sftp, draft, as_bytes(path))
    finally:
        with anyio.CancelScope(shield=True), suppress(asyncssh.SFTPError):
            await sftp.remove(draft)


async def _write_over(sftp: asyncssh.SFTPClient, path: str, data: bytes, mode: int) -> None:
    import asyncssh  # noqa: PLC0415

    await _make_folder(sftp, posixpath.dirname(path))
    flags = asyncssh.FXF_WRITE | asyncssh.FXF_CREAT | asyncssh.FXF_EXCL
    async with _drafted(sftp, path) as draft:
        async with await sftp.open(draft, flags, asyncssh.SFTPAttrs(permissions=mode), encoding=None) as file:
            await file.write(data, 0)
        await _replace(sftp, draft, as_bytes(path))


@asynccontextmanager
async def _drafted(sftp: asyncssh.SFTPClient, path: str) -> AsyncIterator[bytes]:
    """A name beside `path` for what is not whole yet; where it did not get its name, it is removed."""
    import asyncssh  # noqa: PLC0415

    folder, name = posixpath.split(path)
    draft = as_bytes(posixpath.join(folder, f".{name[:50]}.{secrets.token_hex(4)}.tmp"))
    try:
        yield draft
    except BaseException:
        with anyio.CancelScope(shield=True), suppress(asyncssh.SFTPError):
            await sftp.remove(draft)
        raise


async def _replace(sftp: asyncssh.SFTPClient, draft: bytes, path: bytes) -> None:
    """Over what has the name: OpenSSH's own request, since SFTP's rename refuses a taken name."""
    import asyncssh  # noqa: PLC0415

    try:
        await sftp.posix_rename(draft, path)
    except asyncssh.SFTPOpUnsupported as error:
        hint = "Its server lacks posix-rename@openssh.com; copy the files by other means."
        raise StorageError(f"{as_text(path)}: the login node replaces no file in one step", hint=hint) from error


async def _unlinked(sftp: asyncssh.SFTPClient, folder: str) -> None:
    """Raise StorageError where a link is on the way to a folder."""
    if await _real_path(sftp, folder) != posixpath.normpath(folder):
        raise StorageError(f"{folder}: a link is in the way", hint=_HINT)


async def _take(sftp: asyncssh.SFTPClient, draft: bytes, path: bytes) -> bool:
    """Give a whole draft its name; False where it is taken. SFTP's rename refuses a taken name, too."""
    import asyncssh  # noqa: PLC0415

    try:
        try:
            await sftp.link(draft, path)
        except asyncssh.SFTPOpUnsupported:
            await sftp.rename(draft, path)
    except asyncssh.SFTPError:
        if await sftp.lexists(path):
            return False
        raise
    return True


async def _make_folder(sftp: asyncssh.SFTPClient, path: str) -> None:
    """For their owner alone. StorageError where a link or a file is in the way."""
    import asyncssh  # noqa: PLC0415

    await _unlinked(sftp, path)
    missing: list[str] = []
    while not await sftp.isdir(as_bytes(path)):
        missing.append(path)
        path = posixpath.dirname(path)
    for each in reversed(missing):
        try:
            await sftp.mkdir(as_bytes(each), asyncssh.SFTPAttrs(permissions=0o700))
        except asyncssh.SFTPFailure:
            if not await sftp.isdir(as_bytes(each)):  # else somebody made it just now
                raise


async def _list(sftp: asyncssh.SFTPClient, folder: str) -> list[str] | None:
    if not await sftp.isdir(as_bytes(folder)):
        return None
    return sorted(as_text(bytes(name)) for name in await sftp.listdir(as_bytes(folder)) if name not in {b".", b".."})


async def _real_path(sftp: asyncssh.SFTPClient, path: str) -> str:
    """The server resolves what is there; each name below that is added as it is (realpath(1), -m)."""
    import asyncssh  # noqa: PLC0415

    try:
        return as_text(bytes(await sftp.realpath(as_bytes(path))))
    except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
        pass
    above, name = posixpath.split(path.rstrip("/"))
    if not name or not above:
        return path
    base = await _real_path(sftp, above)
    if name in {"", "."}:
        return base
    if name == "..":
        return posixpath.dirname(base)
    joined = posixpath.join(base, name)
    return joined if joined == path else await _real_path(sftp, joined)
