"""Bringing files from one side to the other: whole, verified, under their names last, and going on where it broke."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.to_thread

from slurm_agent_tools.backends.sync_plan import LOOKED_AT, PART, KeptFile, SyncEntry, secret_content
from slurm_agent_tools.backends.sync_sides import SyncSide, hashes, local_state, prefix_hash
from slurm_agent_tools.errors import SlurmError, StorageError

_PIECE = 8 * 2**20
"""Bytes: a file up to this size is held in memory and written whole, a larger one grows as a part."""

_BATCH_SIZE, _BATCH_FILES = 64 * 2**20, 500

_AT_ONCE = 16

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
    try:
        for entry in (one for one in entries if one.kind == "link"):
            await target.files.link_over(target.path(entry.path), entry.leads or "")
            outcome.done.append(entry.path)
        for batch in _batches([one for one in entries if one.kind == "file" and one.size <= _PIECE]):
            await _small(source, target, batch, outcome, told, out=out)
        for entry in (one for one in entries if one.kind == "file" and one.size > _PIECE):
            await _large(source, target, entry, outcome, told, out=out)
    except (StorageError, SlurmError) as error:
        outcome.stopped = f"{error.message} {error.hint}".strip()
    return outcome


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
        found = await source.files.read(source.path(entry.path), size=entry.size)
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
        arrived = await hashes(target.runner, target.root, [entry.path for entry in good])
        for entry in good:
            if arrived.get(entry.path) == expected[entry.path]:
                await _noted(entry.path, entry.size, outcome, told)
            else:
                outcome.failed.append(KeptFile(entry.path, "it is not the same there after it was sent"))


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
        piece = await source.files.read(place, offset=at, size=min(_PIECE, entry.size - at))
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
