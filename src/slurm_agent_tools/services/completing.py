"""What may stand for an argument: this caller's jobs, partitions, scripts of the project, tags of remembered jobs.

A help for people who type: quick, bounded, and empty where something cannot be asked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import anyio.to_thread

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.insights.job_search import tags
from slurm_agent_tools.services.context import ClusterContext, ContextRegistry
from slurm_agent_tools.text import log_events, sanitize

MOST = 100  # the protocol's limit

SECONDS = 2.0

_SCRIPTS = (".sh", ".sbatch", ".slurm")

_ENTRIES, _DEPTH = 20_000, 8

_RECORDS = 500

_log = log_events.get_logger()


async def at(registry: ContextRegistry, cluster: str | None, kind: str, typed: str) -> tuple[list[str], int]:
    """(at most 100 values that begin with what was typed, else hold it; how many there are). Raises nothing."""
    found: list[str] = []
    with anyio.move_on_after(SECONDS):
        try:
            found = await KINDS[kind](await registry.at(cluster))
        except AgentToolsError as error:
            _log.info("nothing to complete", kind=kind, code=error.code, message=error.message)
        except Exception as error:  # noqa: BLE001 - a help for typing never fails
            _log.error("completion failed unexpectedly", kind=kind, exc_info=error)
    sure = [value for value in found if value == sanitize.shown(sanitize.line(value))]  # others could not be said back
    small = typed.casefold()
    begins = [value for value in sure if value.casefold().startswith(small)]
    fitting = begins or [value for value in sure if small in value.casefold()]
    return fitting[:MOST], len(fitting)


async def job_ids(context: ClusterContext) -> list[str]:
    """Jobs of this caller that the ledger or the queue knows, newest first."""
    records = await context.db(context.store.history, context.owner, limit=_RECORDS)
    known = {int(record.job_id) for record in records}
    try:
        known |= context.slurm.mine(await context.slurm.queue()).bases
    except AgentToolsError as error:  # those of the ledger are something
        _log.info("the queue is not known", code=error.code)
    return [str(base) for base in sorted(known, reverse=True)]


async def partitions(context: ClusterContext) -> list[str]:
    """Partitions of the cluster, the default one first."""
    found = await context.slurm.partitions()
    return sorted(found, key=lambda name: (not found[name].default, name))


async def scripts(context: ClusterContext) -> list[str]:
    """Batch scripts in the project, as paths in it; generated ones last."""
    found = await anyio.to_thread.run_sync(_walked, Path(context.project), abandon_on_cancel=True)
    return sorted(found, key=lambda path: ("/generated/" in path, path))


def _walked(root: Path) -> list[str]:
    """Looks at a bounded number of entries for a bounded time; follows no link, enters no hidden folder."""
    found: list[str] = []
    end, left = time.monotonic() + SECONDS, _ENTRIES
    open_folders = [(root, 0)]
    while open_folders and left > 0 and time.monotonic() < end:
        folder, depth = open_folders.pop(0)
        for entry in _entries(folder):
            left -= 1
            if entry.name.startswith("."):
                continue
            if entry.is_file(follow_symlinks=False) and entry.name.endswith(_SCRIPTS):
                found.append(os.path.relpath(entry.path, root))
            elif depth < _DEPTH and entry.is_dir(follow_symlinks=False):
                open_folders.append((Path(entry.path), depth + 1))
    return found


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_ENTRIES), entries, strict=False):
                yield entry
    except OSError as error:
        _log.info("a folder was not looked into", folder=str(folder), why=error.strerror)


async def known_tags(context: ClusterContext) -> list[str]:
    """Tags of remembered jobs, those of the newest first."""
    records = await context.db(context.store.history, context.owner, limit=_RECORDS)
    return list(dict.fromkeys(tag for record in records for tag in tags(record)))


KINDS: Mapping[str, Callable[[ClusterContext], Awaitable[list[str]]]] = {
    "job_id": job_ids,
    "partition": partitions,
    "script": scripts,
    "tag": known_tags,
}
