"""Who may look at the pages: by a link that works once, or by a token. From then on a cookie of one place says so.

A cookie knows no ports: a browser shows that of `127.0.0.1` to every server there, other users' on a login node too. So
each visitor gets a place of its own, `/v/PLACE/`, that nobody can guess, and a cookie that is sent there alone.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from slurm_agent_tools.store.tokens import Token, Tokens

COOKIE = "sat_visit"

LASTS = 12 * 3600.0
"""Seconds that a visit lasts."""

_MOST, _OF_ONE_TOKEN = 200, 60
"""Visits at once in all, and by one token; the oldest ends."""

_SAME_NAME = 8

_BYTES = 32


@dataclass(frozen=True, slots=True)
class Visitor:
    """One who may look. `sha256` of the cookie's value; `token` by which they came, None for the link."""

    place: str
    sha256: str
    since: float
    token: Token | None = None


@dataclass(slots=True)
class Visitors:
    """All of one process; nothing of it is on disk. `now` counts seconds."""

    tokens: Tokens
    now: Callable[[], float] = time.monotonic
    _known: dict[str, Visitor] = field(default_factory=dict)
    _link: str | None = None

    def link(self) -> str:
        """A new key for `/open/KEY`, which works once; one that was given out before works no more."""
        key = secrets.token_urlsafe(_BYTES)
        self._link = _hash(key)
        return key

    def redeem(self, key: str) -> tuple[Visitor, str] | None:
        """The visitor and the value of the cookie; None for a key that was used or never given out."""
        kept = self._link or "0" * 64
        if not hmac.compare_digest(kept, _hash(key)):
            return None
        self._link = None
        return self.enter(None)

    def bearer(self, token: str) -> Token | None:
        """The record of a token that counts now and may read or more. Raises StorageError."""
        found = self.tokens.find(token.strip())
        return None if found is None or found.scope == "scrape" or found.expired(datetime.now(UTC)) else found

    def at(self, place: str, cookies: str) -> Visitor | None:
        """Who comes to a place with these cookies; None for strangers, and for tokens that were revoked meanwhile."""
        known = self._known.get(place)
        if known is None or not any(hmac.compare_digest(known.sha256, _hash(one)) for one in _values(cookies)):
            return None
        over = self.now() - known.since > LASTS
        if over or (known.token is not None and known.token.id not in {one.id for one in self.tokens.current()}):
            self._known.pop(place, None)  # another request of the same visit may have come first
            return None
        return known

    def enter(self, token: Token | None) -> tuple[Visitor, str]:
        """A new visitor, and the value of the cookie. Only in the event loop's thread."""
        value = secrets.token_urlsafe(_BYTES)
        made = Visitor(secrets.token_hex(16), _hash(value), self.now(), token)
        self._known[made.place] = made
        same = [one.place for one in self._known.values() if token and one.token and one.token.id == token.id]
        for place in same[:-_OF_ONE_TOKEN]:
            del self._known[place]
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return made, value


def _values(cookies: str) -> list[str]:
    """The values of cookies with our name: another server of the machine may have set one beside ours."""
    pairs = [one.strip().partition("=") for one in cookies.split(";")]
    return [value for name, _, value in pairs if name == COOKIE][:_SAME_NAME]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
