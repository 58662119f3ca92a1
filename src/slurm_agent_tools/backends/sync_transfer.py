"""Bringing files from one side to the other: whole, verified, under their names last, and going on where it broke."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from slurm_agent_tools.backends.sync_plan import LOOKED_AT, PART, KeptFile, SyncEntry, secret_content
from slurm_agent_tools.backends.sync_sides import SyncSide, hashes, local_state, prefix_hash
from slurm_agent_tools.errors import SlurmError, SlurmMissing, StorageError
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.base import StreamingRunner
from slurm_agent_tools.transport.login_shell import as_bytes, as_text

_PIECE = 8 * 2**20
"""Bytes: a file up to this size is held in memory and written whole, a larger one grows as a part."""

_BATCH_SIZE, _BATCH_FILES = 64 * 2**20, 500

_READ_BACK = 2**20

_AT_ONCE = 16

_MOST_FAILED = 20
"""Files that cannot be read, after which no more are tried."""

Told = Callable[[int, str], Awaitable[None]]
"""Is told of each file that is whole: bytes, name."""


@dataclass(slots=True)
class SyncOutcome:
    """What became of a transfer: names that are whole there, bytes that moved, and what was not done, with why."""

    done: list[str] = field(default_factory=list)
    size: int = 0
    failed: list[KeptFile] = field(default_factory=list)
    stopped: str | None = None  # why the rest was not tried


async def copy(
    source: SyncSide, target: SyncSide, entries: Sequence[SyncEntry], told: Told, *, out: bool
) -> SyncOutcome:
    """Bring files over, the small ones several at once. `out`: from here, where secrets stay and all is hashed already.

    Nothing stands under its name before it is whole. What breaks off ends with `stopped`; the next call goes on.
    """
    outcome = SyncOutcome()
    files = [one for one in entries if one.kind == "file"]
    try:
        for entry in (one for one in entries if one.kind == "link"):
            await target.files.link_over(target.path(entry.path), entry.leads or "")
            outcome.done.append(entry.path)
        if out and _worth_rsync(files) and await _by_rsync(source, target, files, outcome, told):
            return outcome
        for batch in _batches([one for one in files if one.size <= _PIECE]):
            await _small(source, target, batch, outcome, told, out=out)
        for entry in (one for one in files if one.size > _PIECE):
            try:
                await _large(source, target, entry, outcome, told, out=out)
            except _UnreadFileError as error:
                _unread(entry, error, outcome, out=out)
    except (StorageError, SlurmError) as error:
        outcome.stopped = f"{error.message.rstrip('.')}. {error.hint}".strip()
    return outcome


class _UnreadFileError(StorageError):
    """One file cannot be read; the others may be."""


def _unread(entry: SyncEntry, error: StorageError, outcome: SyncOutcome, *, out: bool) -> None:
    """Leave one file there out, so that the rest comes back. What is sent is whole or not sent. Raises StorageError."""
    if out or len(outcome.failed) >= _MOST_FAILED:
        raise error
    outcome.failed.append(KeptFile(entry.path, error.message.rpartition(f"{entry.path}: ")[2]))


# --- By rsync, over the connection that is open: one login, and what the SSH configuration says holds for it ----


_RSYNC_FILES = 20
"""So many files, or a large one, are worth its start."""

_RSYNC = (
    "-s", "-I", "-p", "-t", "--chmod=Fu+rw,Fgo=", "--files-from=-", "--from0", "--no-implied-dirs",
    f"--partial-dir={PART}", "--timeout=60",
    "--blocking-io",  # else what rsync is slow to read makes our end of its pipe fail
)  # fmt: skip

_TOO_OLD = frozenset({1, 2, 4})  # rsync(1): an option or a protocol that one of both does not know

_DAY = 86_400.0

_LAST_WORDS = 15.0
"""Seconds for the other side to say why it ended."""


def _worth_rsync(files: Sequence[SyncEntry]) -> bool:
    return len(files) >= _RSYNC_FILES or any(entry.size > _PIECE for entry in files)


class _Counted:
    """A channel that tells how much went out."""

    def __init__(self, pipes: process.ShellPipes, told: Told) -> None:
        self._pipes, self._told, self._size = pipes, told, 0
        self.write, self.end = pipes.write, pipes.end

    async def read(self) -> bytes:
        """See Channel."""
        data = await self._pipes.read()
        self._size += len(data)
        await self._told(self._size, "rsync")
        return data


async def _by_rsync(
    source: SyncSide, target: SyncSide, files: Sequence[SyncEntry], outcome: SyncOutcome, told: Told
) -> bool:
    """Send files with rsync, which sends of a changed one only what changed. False where one side has none it can use.

    Only out: who pulls with rsync trusts the other side with the names under which it writes here.
    """
    program = process.program("rsync", Path(source.root))
    if program is None or not isinstance(target.runner, StreamingRunner) or os.name != "posix":
        return False
    for folder in sorted({posixpath.dirname(entry.path) for entry in files}):
        await target.files.make_folder(posixpath.normpath(target.path(folder)))
    words = await _run_rsync(program, source, target, target.runner, files, told)
    if words is None:
        return False
    arrived = await hashes(target.runner, target.root, [entry.path for entry in files])
    for entry in files:
        if arrived.get(entry.path) == entry.sha256:
            await _noted(entry.path, entry.size, outcome, told)
        elif not words:
            outcome.failed.append(KeptFile(entry.path, "it changed while it was read"))
    outcome.stopped = words or None
    return True


async def _run_rsync(
    program: str, source: SyncSide, target: SyncSide, runner: StreamingRunner, files: Sequence[SyncEntry], told: Told
) -> str | None:
    """Why rsync broke off, empty where it did not; None where it was never begun."""
    names = b"".join(as_bytes(entry.path) + b"\0" for entry in files)
    pipes = process.ShellPipes()
    env = {"LC_ALL": "C.UTF-8"}
    argv = [program, "-e", process.REMOTE_SHELL, *_RSYNC, "--", "./", f"there:{target.root}/"]
    failures: list[Exception] = []
    ended_there = anyio.Event()

    async def there() -> None:
        try:
            words = await pipes.words()
            await runner.joined(["rsync", *words[2:]], _Counted(pipes, told), cwd=target.root)
        except (SlurmError, StorageError) as error:
            failures.append(error)
            pipes.end()
        ended_there.set()
        while True:  # it ends when it has said all; nobody hears it any more
            await pipes.read()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(there)
            done = await process.run(argv, stdin=names, env=env | pipes.environment, cwd=source.root, timeout=_DAY)
            if done.exit_code not in {0, *_TOO_OLD}:
                with anyio.move_on_after(_LAST_WORDS):  # ours ends when its pipe does, before the reason has come
                    await ended_there.wait()
            group.cancel_scope.cancel()
    finally:
        pipes.close()
    if done.exit_code in _TOO_OLD or any(isinstance(error, SlurmMissing) for error in failures):
        return None
    if failures:
        raise failures[0]
    said = sanitize.line("; ".join(as_text(done.stderr).split("\n")).strip("; "))[-300:]
    return "" if done.exit_code == 0 else f"rsync ended with {done.exit_code}: {said}"


async def secrets(source: SyncSide, entries: Sequence[SyncEntry]) -> list[KeptFile]:
    """Those of the files that begin with what looks like a secret. Raises StorageError."""
    found: list[KeptFile] = []

    async def look(entry: SyncEntry) -> None:
        why = secret_content(await source.files.read(source.path(entry.path), size=LOOKED_AT) or b"")
        found.extend([KeptFile(entry.path, why)] if why else [])

    await _several([entry for entry in entries if entry.kind == "file"], look)
    return sorted(found, key=lambda kept: kept.path)


def _batches(entries: Sequence[SyncEntry]) -> list[list[SyncEntry]]:
    found: list[list[SyncEntry]] = []
    size = 0
    for entry in entries:
        if not found or len(found[-1]) >= _BATCH_FILES or size + entry.size > _BATCH_SIZE:
            found.append([])
            size = 0
        found[-1].append(entry)
        size += entry.size
    return found


async def _small(
    source: SyncSide, target: SyncSide, batch: Sequence[SyncEntry], outcome: SyncOutcome, told: Told, *, out: bool
) -> None:
    """Read all, verify all, write all. A file there that grew meanwhile is what it was when it was read."""
    data: dict[str, bytes] = {}

    async def read(entry: SyncEntry) -> None:
        try:
            found = await source.files.read(source.path(entry.path), size=entry.size)
        except StorageError as error:
            _unread(entry, error, outcome, out=out)
            return
        if found is None:
            outcome.failed.append(KeptFile(entry.path, "it disappeared meanwhile"))
        else:
            data[entry.path] = found

    await _several(batch, read)
    expected = await _expected(source, batch, data, out=out)
    good = [one for one in batch if one.path in data and _right(one.path, data[one.path], expected, outcome, out=out)]

    async def write(entry: SyncEntry) -> None:
        await target.files.write_over(target.path(entry.path), data[entry.path], mode=_mode(entry))
        if not out:
            await _noted(entry.path, len(data[entry.path]), outcome, told)

    await _several(good, write)
    if out and good:
        arrived = await _arrived(target, good)
        for entry in good:
            if arrived.get(entry.path) == expected[entry.path]:
                await _noted(entry.path, entry.size, outcome, told)
            else:
                outcome.failed.append(KeptFile(entry.path, "it is not the same there after it was sent"))


async def _arrived(target: SyncSide, entries: Sequence[SyncEntry]) -> dict[str, str]:
    """The hashes of files that were sent. Few and small ones are read back: a command there takes longer."""
    if len(entries) >= _RSYNC_FILES or sum(entry.size for entry in entries) > _READ_BACK:
        return await hashes(target.runner, target.root, [entry.path for entry in entries])
    found: dict[str, str] = {}

    async def read(entry: SyncEntry) -> None:
        data = await target.files.read(target.path(entry.path), size=entry.size + 1)
        found[entry.path] = hashlib.sha256(data or b"").hexdigest()

    await _several(entries, read)
    return found


async def _expected(
    source: SyncSide, batch: Sequence[SyncEntry], data: Mapping[str, bytes], *, out: bool
) -> dict[str, str | None]:
    """The hash that each file has to have."""
    if out:
        return {entry.path: entry.sha256 for entry in batch}
    found: dict[str, str | None] = {**await hashes(source.runner, source.root, list(data))}
    for path, read in data.items():
        if found.get(path) != hashlib.sha256(read).hexdigest():
            found[path] = await prefix_hash(source, path, len(read))
    return found


def _right(path: str, data: bytes, expected: Mapping[str, str | None], outcome: SyncOutcome, *, out: bool) -> bool:
    secret = secret_content(data) if out else None
    if secret is None and expected.get(path) == hashlib.sha256(data).hexdigest():
        return True
    outcome.failed.append(KeptFile(path, secret or "it changed while it was read"))
    return False


async def _several(entries: Sequence[SyncEntry], work: Callable[[SyncEntry], Awaitable[None]]) -> None:
    """Do it for several at once; the first failure ends what was not begun and is raised."""
    limit, failures = anyio.CapacityLimiter(_AT_ONCE), list[Exception]()

    async def one(entry: SyncEntry) -> None:
        async with limit:
            if failures:
                return
            try:
                await work(entry)
            except (StorageError, SlurmError) as error:
                failures.append(error)

    async with anyio.create_task_group() as group:
        for entry in entries:
            group.start_soon(one, entry)
    if failures:
        raise failures[0]


async def _noted(path: str, size: int, outcome: SyncOutcome, told: Told) -> None:
    outcome.done.append(path)
    outcome.size += size
    await told(outcome.size, path)


def _mode(entry: SyncEntry) -> int:
    return 0o700 if entry.executable else 0o600


async def _large(
    source: SyncSide, target: SyncSide, entry: SyncEntry, outcome: SyncOutcome, told: Told, *, out: bool
) -> None:
    """A part grows piece by piece, and goes on where it broke off; it gets its name when its hash is right."""
    path, place = target.path(entry.path), source.path(entry.path)
    if out and (why := secret_content(await source.files.read(place, size=LOOKED_AT) or b"")):
        outcome.failed.append(KeptFile(entry.path, why))
        return
    expected = entry.sha256 if out else await prefix_hash(source, entry.path, entry.size)
    folder, name = posixpath.split(path)
    part = posixpath.join(folder, f".{name[:50]}.{(expected or '')[:12]}{PART}")
    await target.files.make_folder(folder)
    if not out and await target.files.stat(part) is None:
        await _begun_with_ours(source, target, entry, part)
    for _ in range(2):  # a part that something else wrote into is begun anew, once
        begun = await target.files.stat(part)
        at = begun.size if begun is not None else 0
        if at > entry.size or (begun is None and not await target.files.write_new(part, b"")):
            await target.files.remove(part)
            continue
        moved = await _grown(place, part, at, entry, source, target, outcome, told)
        if expected is not None and await _digest(target, posixpath.relpath(part, target.root), out=out) == expected:
            await target.files.move_over(part, path, mode=_mode(entry))
            outcome.size += moved
            outcome.done.append(entry.path)
            return
        await target.files.remove(part)
    outcome.failed.append(KeptFile(entry.path, "it changed while it was read"))


async def _begun_with_ours(source: SyncSide, target: SyncSide, entry: SyncEntry, part: str) -> None:
    """A log that grew there begins with what is here already: only its end comes over."""
    path = target.path(entry.path)
    ours = await anyio.to_thread.run_sync(lambda: local_state(target.root, entry.path, hashed=True))
    if ours is None or ours.sha256 is None or not 0 < ours.size < entry.size:
        return
    if await prefix_hash(source, entry.path, ours.size) != ours.sha256:
        return
    await target.files.write_new(part, b"")
    for at in range(0, ours.size, _PIECE):
        await target.files.append(part, await target.files.read(path, offset=at, size=_PIECE) or b"")


async def _grown(
    place: str,
    part: str,
    at: int,
    entry: SyncEntry,
    source: SyncSide,
    target: SyncSide,
    outcome: SyncOutcome,
    told: Told,
) -> int:
    """Add to a part until it is as long as the file; the bytes that moved."""
    moved = 0
    while at < entry.size:
        try:
            piece = await source.files.read(place, offset=at, size=min(_PIECE, entry.size - at))
        except StorageError as error:
            if not at:
                await target.files.remove(part)
            raise _UnreadFileError(error.message, hint=error.hint) from error
        if not piece:
            break
        if not await target.files.append(part, piece):
            raise StorageError(f"{part} is gone meanwhile", hint="Call again.")
        at, moved = at + len(piece), moved + len(piece)
        await told(outcome.size + moved, entry.path)
    return moved


async def _digest(target: SyncSide, name: str, *, out: bool) -> str | None:
    if out:
        return (await hashes(target.runner, target.root, [name])).get(name)
    entry = await anyio.to_thread.run_sync(lambda: local_state(target.root, name, hashed=True))
    return None if entry is None else entry.sha256
