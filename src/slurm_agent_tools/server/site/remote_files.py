"""The files of a caller's project, over the caller's connection: the service asks, the caller's own program reads.

A file is asked for once in a call, whole where it is small, and what was told stays: one judgement has one view of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import ByteStream

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.scripts.reader import MAX_PATH
from slurm_agent_tools.transport import site_socket
from slurm_agent_tools.transport.base import Stat
from slurm_agent_tools.transport.site_socket import FILE, BrokenFrame, SiteFrame

MOST_QUESTIONS, MOST_BYTES = 5000, 64 * 2**20
"""Questions about files in one call, and the bytes that are kept of all answers."""

_WORDS, _NAMES = 2**16, 2**20
"""Bytes of JSON in an answer, and in one with the names in a folder; characters of a path."""


@dataclass(frozen=True, slots=True)
class _Looked:
    real: str
    stat: Stat | None = None
    data: bytes | None = None


class RemoteFiles:
    """Files (see transport.base) of one caller, whose program answers on `stream`. Nothing is ever written."""

    def __init__(self, stream: ByteStream | None, keep: Callable[[int], None] = lambda _: None) -> None:
        self._stream, self._keep, self._lock = stream, keep, anyio.Lock()
        self._looked: dict[str, _Looked] = {}
        self._asked = self._bytes = 0

    async def stat(self, path: str) -> Stat | None:
        """Follows links; None when there is nothing, or it lies outside of the project."""
        return (await self._look(path)).stat

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        """Bytes from `offset`, at most what a frame holds; None when there is nothing."""
        known = await self._look(path)
        if known.data is not None:
            return known.data[offset:] if size is None else known.data[offset : offset + size]
        found = await self.read_parts(path, [(offset, FILE if size is None else min(size, FILE))])
        return None if found is None else found[0]

    async def read_parts(self, path: str, parts: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """Several parts (offset, size) of one file; None when there is none."""
        said = await self._ask("read", path, [list(part) for part in parts])
        sizes = said.words.get("sizes")
        if sizes is None:
            return None
        plain = isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)
        if not plain or len(sizes) != len(parts) or sum(sizes) != len(said.body):
            raise BrokenFrame("what it tells of a file cannot be read")
        found, at = [], 0
        for size in sizes:
            found.append(said.body[at : at + size])
            at += size
        return found

    async def list(self, folder: str) -> list[str] | None:
        """Names in a folder, sorted; None when there is none."""
        names = (await self._ask("list", folder, None)).words.get("names")
        return None if names is None else sorted(str(name) for name in names)

    async def real_path(self, path: str) -> str:
        """Absolute, every link resolved."""
        return (await self._look(path)).real

    async def _look(self, path: str) -> _Looked:
        if len(path) > MAX_PATH:
            raise StorageError(f"{path[:100]}...: the path is too long for a file")
        if path not in self._looked:
            said = await self._ask("look", path, FILE)
            real = said.words.get("real")
            # Half of a character can be spelled in JSON, and neither a file nor the ledger keeps it.
            if not isinstance(real, str) or len(real) > MAX_PATH or real.encode(errors="replace").decode() != real:
                raise BrokenFrame("what it tells of a file cannot be read")
            stat = site_socket.unpacked_stat(said.words.get("stat"))
            found = _Looked(real, stat, said.body if said.words.get("whole") is True else None)
            self._looked[path] = self._looked[real] = found
        return self._looked[path]

    async def _ask(self, what: str, path: str, more: Any) -> SiteFrame:
        if self._stream is None:
            raise StorageError(f"{path}: no program of its user is there to read it")
        async with self._lock:
            self._asked += 1
            if self._asked > MOST_QUESTIONS or self._bytes > MOST_BYTES:
                raise StorageError("the script's files are more than the site's service reads", hint="Run fewer files.")
            await site_socket.send(self._stream, SiteFrame({"ask": what, "path": path, "what": more}))
            said = await site_socket.receive(self._stream, most=_NAMES if what == "list" else _WORDS)
            self._bytes += (size := said.size + 4 * len(path))
            self._keep(size)
        if "failed" in said.words:
            raise StorageError(str(said.words["failed"])[:1000])
        return said

    async def _never(self, path: str, *_: Any, **__: Any) -> Any:
        """Raises StorageError, as all that would write."""
        raise StorageError(f"{path}: the site's service writes no file of a user")

    write_new = append = write_over = move_over = link_over = remove = make_folder = _never
