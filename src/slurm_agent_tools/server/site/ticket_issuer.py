"""Tickets as the service gives them and finds out about them, by files or signed."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.models import submission_ticket
from slurm_agent_tools.models.submission_ticket import SubmissionTicket
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.store.ticket_folder import KEPT, TicketFolder
from slurm_agent_tools.text import safe_open

TicketFate = Literal["open", "told", "spent", "gone", "missing", "over"]
"""open: it can be spent, and was not; told: it can be, and may have been, which jobs in the queue tell; gone: it can
never be, and was not; missing: the same, unless a job in the queue tells otherwise; over: it cannot be spent any more,
and may have been."""

_CLOCKS = timedelta(seconds=60)
"""Between the controller's clock and ours, where a signed ticket says itself when it is over."""

_SPENT_KEPT = timedelta(seconds=KEPT)
"""For this long the file of a spent ticket is certainly there, unless somebody else removed it."""

_KEY_BYTES = 4096


class TicketIssuer:
    """Gives tickets of one site. Raises StorageError."""

    def __init__(self, config: SiteConfig) -> None:
        self._folder = TicketFolder(config.tickets) if config.tokens == "files" else None
        self._key = None if config.tokens == "files" else _key(config.key)
        self._life = timedelta(seconds=config.ticket_seconds)

    def check(self, script: bytes) -> None:
        """Raises InputError for a script that no ticket of this site can be for."""
        if self._key is not None:
            submission_ticket.check_signable(script)

    def check_signable(self, ticket: SubmissionTicket) -> None:
        """Raises InputError for one that names too much to be signed, before anything is kept of it."""
        if self._folder is None:
            submission_ticket.signed(ticket, self._key or b"")

    def publish(self, ticket: SubmissionTicket, script: bytes) -> str:
        """The word for the job's comment; from now on the controller lets the job in, once."""
        if self._folder is None:
            return submission_ticket.comment_word(submission_ticket.signed(ticket, self._key or b""))
        self._folder.add(ticket, script)
        return submission_ticket.comment_word(ticket.nonce)

    def fate(self, nonce: str, given: datetime, now: datetime) -> TicketFate:
        """What became of a ticket; one that is over is taken back, so that it is certain."""
        if self._folder is None:
            return "over" if now > given + self._life + _CLOCKS else "told"
        state = self._folder.state(nonce, now.timestamp())
        if state == "expired":
            return "gone" if self._folder.revoke(nonce) else "spent"
        if state != "unknown":
            return state
        return "missing" if now < given + _SPENT_KEPT else "over"

    def take_back(self, nonce: str) -> bool:
        """Whether it certainly was not spent and never will be. A signed one cannot be taken back."""
        return self._folder is not None and self._folder.revoke(nonce)


def _key(path: Path) -> bytes:
    try:
        key = safe_open.read(path, _KEY_BYTES).rstrip()
    except OSError as error:
        raise ConfigError("key", str(path), f"cannot be read: {error.strerror}", hint="Run `site check`.") from error
    if len(key) < submission_ticket.SHORTEST_KEY:
        problem = f"is shorter than {submission_ticket.SHORTEST_KEY} bytes"
        raise ConfigError("key", str(path), problem, hint="Make a new one.")
    return key
