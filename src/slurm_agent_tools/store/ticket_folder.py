"""The folder in which a site's service leaves tickets for Slurm's controller, a file each.

The controller spends a ticket by renaming its file into `used`, so nothing here can bring one back. Files are for their
owner and the folder's group, which is the controller's account. Raises StorageError.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Literal

from slurm_agent_tools.models.submission_ticket import (
    SubmissionTicket,
    is_nonce,
    parse_ticket_file,
    ticket_file,
)
from slurm_agent_tools.store.database import storage
from slurm_agent_tools.text import safe_open

USED = "used"
"""The folder of spent tickets below it."""

TicketState = Literal["open", "spent", "expired", "unknown"]

_LARGEST = 2**26

_MODE = 0o640

KEPT = 24 * 3600
"""Seconds for which a spent ticket is still told after its time."""

_DRAFT = ".draft-"

_DRAFT_AGE = 3600
"""Seconds after which a draft is left by a process that was killed."""


class TicketFolder:
    """Tickets by their number. Times are seconds of the epoch."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(os.path.realpath(folder))
        self.bytes_of: Counter[int] = Counter()  # by the number of the user whose tickets they are, at the last sweep

    def add(self, ticket: SubmissionTicket, script: bytes | None) -> None:
        """Leave a ticket, whole and on disk, or not at all. One whose number is there is an error."""
        data, draft = ticket_file(ticket, script), f"{_DRAFT}{secrets.token_hex(16)}"
        with (
            storage(self._folder),
            safe_open.folder(str(self._folder), make=False) as where,
            os.fdopen(safe_open.create(where, draft, _MODE), "wb") as file,
            safe_open.dropped(where, draft),
        ):
            os.fchmod(file.fileno(), _MODE)  # whatever the mask of this process is
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if not safe_open.take(where, draft, ticket.nonce):
                raise FileExistsError(errno.EEXIST, "there is a ticket of this number")

    def state(self, nonce: str, now: float) -> TicketState:
        """What became of a ticket; one that was removed is unknown."""
        if not is_nonce(nonce):
            return "unknown"
        with storage(self._folder):
            ticket = self._read(self._folder / nonce)
            if ticket is not None:
                return "open" if now <= ticket.ceilings.expires else "expired"
            return "spent" if (self._folder / USED / nonce).exists() else "unknown"

    def open(self, now: float) -> tuple[SubmissionTicket, ...]:
        """The tickets that can still be spent."""
        with storage(self._folder):
            found = [self._read(path) for path in self._named(self._folder)]
        return tuple(ticket for ticket in found if ticket is not None and now <= ticket.ceilings.expires)

    def revoke(self, nonce: str) -> bool:
        """Take back a ticket; False where it was spent or is not known. Of both at once only one comes to pass."""
        with storage(self._folder):
            return is_nonce(nonce) and safe_open.remove(str(self._folder / nonce))

    def sweep(self, now: float) -> int:
        """Remove what is expired, spent ones a day later, and drafts of killed processes; how many files that were."""
        removed, bytes_of = 0, Counter[int]()
        with storage(self._folder):
            for folder, kept in ((self._folder, 0), (self._folder / USED, KEPT)):
                for path in self._named(folder):
                    ticket = self._read(path)
                    if ticket is None:
                        continue
                    with suppress(FileNotFoundError):  # it was spent meanwhile, and is counted there
                        if now > ticket.ceilings.expires + kept:
                            removed += safe_open.remove(str(path))
                        else:
                            bytes_of[ticket.ceilings.uid] += path.lstat().st_size
            for path in self._folder.glob(f"{_DRAFT}*"):
                with suppress(FileNotFoundError):
                    if now - path.lstat().st_mtime > _DRAFT_AGE:
                        removed += safe_open.remove(str(path))
        self.bytes_of = bytes_of
        return removed

    def _named(self, folder: Path) -> list[Path]:
        names = sorted(os.listdir(folder)) if folder.is_dir() else []  # noqa: PTH208 - names alone
        return [folder / name for name in names if is_nonce(name)]

    def _read(self, path: Path) -> SubmissionTicket | None:
        """None of one that is gone by now, or that is not whole: the controller refuses it too."""
        try:
            return parse_ticket_file(safe_open.read(path, _LARGEST))
        except (FileNotFoundError, safe_open.NotStored, ValueError):
            return None
