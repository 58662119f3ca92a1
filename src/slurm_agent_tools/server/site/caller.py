"""Who is at the other end of the site's socket, by the kernel's word alone, and how much that user gets."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurm_agent_tools.errors import AccessError

_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class UnixUser:
    """A user of this machine, as the kernel knows it."""

    uid: int
    name: str


def peer(connection: socket.socket) -> UnixUser:
    """The user whose process connected. Raises AccessError for one whose jobs no ticket can bind.

    These are the credentials of the moment of connecting: a program that hands its connection on, hands on its name.
    """
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(told)
    return user(uid)


def user(uid: int) -> UnixUser:
    """The user of a number. Raises AccessError for root, whom the controller asks for no ticket, and for a stranger."""
    if uid == 0:
        hint = "Run it as the user whose job it is; what root submits is root's to answer for."
        raise AccessError("root's requests are not judged here", hint=hint)
    import pwd  # noqa: PLC0415 - not everywhere

    try:
        return UnixUser(uid, pwd.getpwuid(uid).pw_name)
    except KeyError as error:
        raise AccessError(f"this machine knows no user with the number {uid}", hint="Ask an administrator.") from error


# --- What one user may take of the service ----------------------------------------------------------------------------

MOST, MOST_OF_ONE = 256, 16
"""Connections at once: of all, and of one user."""

_SHARE = 8
"""One user has at most this part of the connections that are still free: so the first one is left for everybody."""

_MINUTE = timedelta(minutes=1)

_NAMED = 20
"""Users in a line of the log."""


class CallLimits:
    """Connections and calls of each user. Who is refused is counted, for one line in the log now and then."""

    def __init__(self, calls_per_minute: int) -> None:
        self._most = calls_per_minute
        self._open = Counter[int]()
        self._calls = Counter[int]()
        self._since: datetime | None = None
        self._refused = Counter[tuple[int, str]]()

    def over(self, uid: int, now: datetime) -> tuple[str, str] | None:
        """The limit that one more call of this user would break, and what to do; else the call is counted."""
        if self._since is None or not self._since <= now < self._since + _MINUTE:
            self._since = now
            self._calls.clear()
        free = MOST - self._open.total()
        most = min(MOST_OF_ONE, max(1, free // _SHARE))
        again = "Call again in a moment."
        if free <= 0:
            return self._noted(uid, "connections of all", f"too many calls at once: {MOST} of all users", again)
        if self._open[uid] >= most:
            told = f"too many calls at once: {most} of one user while {free} of {MOST} are free"
            return self._noted(uid, "connections", told, again)
        if self._calls[uid] >= self._most:
            told = f"too many calls: {self._most} of one user in a minute (calls_per_minute)"
            return self._noted(uid, "calls_per_minute", told, "Call again in a minute.")
        self._calls[uid] += 1
        return None

    def _noted(self, uid: int, limit: str, told: str, hint: str) -> tuple[str, str]:
        self._refused[uid, limit] += 1
        return told, hint

    @contextmanager
    def call(self, uid: int) -> Iterator[None]:
        """A call that holds its connection."""
        self._open[uid] += 1
        try:
            yield
        finally:
            self._open[uid] -= 1
            self._open += Counter[int]()  # those of nobody are dropped

    def at_once(self, uid: int | None = None) -> int:
        """Calls that are open now, of one user or of all."""
        return self._open.total() if uid is None else self._open[uid]

    def refused(self) -> dict[str, int]:
        """How often whom which limit refused since this was asked last, the most frequent first."""
        found, self._refused = self._refused, Counter()
        shown = {f"uid {uid}, {limit}": count for (uid, limit), count in found.most_common(_NAMED)}
        rest = found.total() - sum(shown.values())
        return shown | ({"others": rest} if rest else {})
