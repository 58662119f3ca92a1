"""The subcommand `watch`: looks at the cluster now and then, and sends alerts where people are, each once."""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from slurm_agent_tools.api import printing, serialize
from slurm_agent_tools.api.context_registry import ledger_folder
from slurm_agent_tools.api.notify_targets import NotifyTarget, Sender, targets
from slurm_agent_tools.api.toolbox import Toolbox, closed_after
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.fleet.notices import NoticeBook, NoticeMessage, is_quiet, message
from slurm_agent_tools.models.shapes import Alert, SectionError
from slurm_agent_tools.settings import NotifySettings, Settings, load
from slurm_agent_tools.store.database import storage
from slurm_agent_tools.store.ledger_location import named_lock
from slurm_agent_tools.text import log_events, safe_open
from slurm_agent_tools.text.bounded_documents import DocumentError, decoded, json_value

DONE, FAILED = 0, 1

_LARGEST = 4 * 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `watch`."""
    parser.description = (
        "Look at the cluster now and then, and send each alert once to the targets of the settings (notify.env,"
        " notify.file). Without targets alerts are printed. Runs until Ctrl-C; changes nothing."
    )
    parser.add_argument("--seconds", type=float, default=60.0, metavar="N", help="between two looks (60)")
    parser.add_argument("--once", action="store_true", help="one look, as for cron")
    parser.add_argument("--test", action="store_true", help="send a word to every target, and look at nothing")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings")


async def run(args: argparse.Namespace) -> int:
    """Watch; 1 where, with --once or --test, something could not be looked at or sent. Raises AgentToolsError."""
    settings = load()
    settings.need_toolset("fleet", "watch")
    if args.seconds < 10:
        raise InputError("--seconds", args.seconds, "is below 10", hint="Slurm is shared: 60 is a good pause.")
    log_events.configure(settings.log_level)
    found = targets(settings.notify)
    sender = Sender() if found else None
    if sender is not None:
        for one in found:
            sender.check(one)
    if args.test:
        return await _test(found, sender)
    if not found:
        printing.note("No target is set (notify.env, notify.file), so alerts are printed here alone.")
    named = args.cluster or settings.cluster or ""
    folder, name = ledger_folder(settings).folder, _name(settings, named)
    with named_lock(folder, f"{name}.lock.sqlite3") as alone:
        if not alone:
            hint = "One is enough: two would send everything twice."
            raise InputError("watch", str(settings.project_root), "is watched by another process", hint=hint)
        return await _Watch(settings, args, found, sender, folder / f"{name}.json", named or "slurm").during()


def _name(settings: Settings, cluster: str) -> str:
    words = f"{settings.project_root}\0{cluster}"
    return f"watch-{hashlib.sha256(words.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"


async def _test(found: list[NotifyTarget], sender: Sender | None) -> int:
    if sender is None:
        raise InputError(
            "--test", True, "has no target", hint="Set notify.env or notify.file; see the guide monitoring."
        )
    word, wrong = NoticeMessage("slurm-agent-tools", "A word to try the way."), 0
    for one in found:
        problem = await anyio.to_thread.run_sync(sender.send, one, word)
        wrong += problem is not None
        printing.lines([f"{one.shown}: {problem or 'took it'}"])
    return FAILED if wrong else DONE


class _Watch:
    """One process that watches one cluster for one project. The book is on disk after each target."""

    def __init__(
        self,
        settings: Settings,
        args: argparse.Namespace,
        found: list[NotifyTarget],
        sender: Sender | None,
        path: Path,
        cluster: str,
    ) -> None:
        self._settings, self._args, self._targets, self._sender = settings, args, found, sender
        self._path, self._cluster = path, cluster
        self._book = _read(path)

    async def during(self) -> int:
        """Look and send until the end; the exit code."""
        async with closed_after(Toolbox.open(self._settings)) as toolbox:
            while True:
                good = await self._round(toolbox)
                if self._args.once:
                    return DONE if good else FAILED
                await anyio.sleep(self._args.seconds)

    async def _round(self, toolbox: Toolbox) -> bool:
        """Look and send. Whether all could be looked at, and all that was due was taken."""
        alerts, whole = await _alerts(toolbox, self._args.cluster)
        self._book.see(alerts, [one.id for one in self._targets], time.time(), whole=whole)
        if self._sender is None:
            self._print()
        good = whole
        for one in self._targets if self._sender is not None else ():
            good = await self._send(one, self._settings.notify) and good
        await anyio.to_thread.run_sync(self._save)
        return good

    async def _send(self, target: NotifyTarget, notify: NotifySettings) -> bool:
        now, sender = time.time(), self._sender
        quiet = is_quiet(notify.quiet_hours, datetime.fromtimestamp(now).astimezone().time())
        due = self._book.due(target.id, now, least=notify.least, quiet=quiet)
        if not due or sender is None:
            return target.id not in self._book.failing
        told = message(due, self._cluster, now)
        problem = await anyio.to_thread.run_sync(sender.send, target, told)
        if problem is None:
            self._book.sent(target.id, due)
            printing.lines([f"{target.shown}: took {told.title}"])
        else:
            again = datetime.fromtimestamp(self._book.failed(target.id, time.time())).astimezone()
            printing.note(f"{target.shown} {problem}: {told.title}. It is tried again after {again:%H:%M:%S}.")
        await anyio.to_thread.run_sync(self._save)
        return problem is None

    def _print(self) -> None:
        """What is new, where nobody else is told."""
        due = self._book.due("terminal", time.time(), least=self._settings.notify.least, quiet=False)
        if due:
            told = message(due, self._cluster, time.time())
            printing.lines([told.title, *(f"  {line}" for line in told.text.splitlines())])
            self._book.sent("terminal", due)

    def _save(self) -> None:
        """Whole or not at all, for its owner alone. Raises StorageError."""
        draft = self._path.with_suffix(".draft")
        with storage(self._path):
            with suppress(FileNotFoundError):
                draft.unlink()
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(self._book.document())
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)


def _read(path: Path) -> NoticeBook:
    """What was told before. Raises StorageError for a file that cannot be read: all would be told again."""
    try:
        return NoticeBook.read(json_value(decoded(safe_open.read(path, _LARGEST))))
    except FileNotFoundError:
        return NoticeBook()
    except (OSError, DocumentError, ValueError) as error:
        hint = "Remove it: then every alert that there is now is told once more."
        raise StorageError(f"cannot use {path}: {error}", hint=hint) from error


async def _alerts(toolbox: Toolbox, cluster: str | None) -> tuple[list[Alert], bool]:
    """What get_fleet alerts of, and whether all of it could be read. Raises AgentToolsError for ledger and settings."""
    asked: dict[str, Any] = {"sections": ["alerts"]} | ({"cluster": cluster} if cluster else {})
    reply: Any = await toolbox.call("get_fleet", serialize.parse(serialize.BY_NAME["get_fleet"], asked))
    if isinstance(reply.alerts, SectionError):
        return [Alert(severity="critical", code="cluster_unreachable", message=reply.alerts.error.message)], False
    return list(reply.alerts or ()), not reply.not_measured
