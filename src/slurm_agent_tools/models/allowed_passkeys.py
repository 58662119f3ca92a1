"""Lines of a list of passkeys: whose, for pages of which origin, the key's id, and its public half."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK = "http://localhost"
"""The origin of pages on this machine, at any port: a browser takes a passkey for a name alone, never for 127.0.0.1."""

_NAME = re.compile(r"[!-~]{1,100}")

_ORIGIN = re.compile(r"https://[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]{1,5})?")

_MOST = 4096
"""Characters of one part of a line."""


@dataclass(frozen=True, slots=True)
class AllowedPasskey:
    """One line. `key_id` and `key` (COSE) as the authenticator gave them."""

    name: str
    origin: str
    key_id: bytes
    key: bytes

    @property
    def rp_id(self) -> str:
        """The name that the key was made for, as WebAuthn calls it: that of the origin."""
        return urlsplit(self.origin).hostname or ""

    @property
    def line(self) -> str:
        """How it stands in a list."""
        return " ".join((self.name, self.origin, encoded(self.key_id), encoded(self.key)))

    def counts_at(self, origin: str) -> bool:
        """Whether pages of this origin may ask for it: that of its line, of loopback at any port."""
        if self.origin != LOOPBACK:
            return origin == self.origin
        return origin == LOOPBACK or re.fullmatch(rf"{LOOPBACK}:[0-9]{{1,5}}", origin) is not None


def parse(line: str) -> AllowedPasskey:
    """One line `NAME ORIGIN ID KEY`. Raises ValueError."""
    parts = line.split()
    if len(parts) != 4:
        raise ValueError("is not NAME ORIGIN ID KEY, as slurm-agent-tools passkey add writes it")
    name, origin = parts[:2]
    if not _NAME.fullmatch(name):
        raise ValueError("the name may be 100 plain characters at most")
    if not is_origin(origin):
        raise ValueError(f"the origin {origin!r} is neither {LOOPBACK} nor https://NAME")
    return AllowedPasskey(name, origin, *(decoded(part) for part in parts[2:]))


def is_origin(text: str) -> bool:
    """Whether keys can be made for pages of this origin."""
    return text == LOOPBACK or _ORIGIN.fullmatch(text) is not None


def encoded(data: bytes) -> str:
    """Bytes as base64url without padding, as browsers write them."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(text: str) -> bytes:
    """The same back. Raises ValueError."""
    if not 1 <= len(text) <= _MOST or re.fullmatch(r"[A-Za-z0-9_-]+", text) is None:
        raise ValueError("is no base64url")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError("is no base64url") from error
