"""Where `watch` sends alerts: addresses from the environment or a private file, and Apprise, which knows the services.

An address holds a secret, so it is never printed, logged or put into an error: a target is told by where it was named
and the word before its `://`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.fleet.notices import NoticeMessage
from slurm_agent_tools.settings import NotifySettings
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.text.bounded_documents import DocumentError, decoded

_LARGEST = 64 * 1024

_SCHEME = re.compile(r"[a-z0-9]{1,24}(?=://)", re.IGNORECASE)

_STATUS = re.compile(r"error[= ](\d{3})\b")

_EXTRA = "pip install 'slurm-agent-tools[notify]'"


@dataclass(frozen=True, slots=True)
class NotifyTarget:
    """One address. `id` tells it from others without holding it; `shown` is what people see of it."""

    id: str
    shown: str
    address: str = field(repr=False)


def targets(settings: NotifySettings) -> list[NotifyTarget]:
    """The targets of the settings, each once. Raises ConfigError, which holds no address."""
    named: list[tuple[str, str]] = []
    for variable in settings.env:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ConfigError("notify.env", variable, "is not set in the environment", hint=f"Export {variable}.")
        named.append((variable, value))
    named += _written(settings)
    found: dict[str, NotifyTarget] = {}
    for place, address in named:
        scheme = _SCHEME.match(address)
        if scheme is None:
            raise _wrong(place, "holds no address: it begins with a word and ://")
        key = hashlib.sha256(address.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        found.setdefault(key, NotifyTarget(key, f"{place} ({scheme[0].lower()})", address))
    return list(found.values())


def _written(settings: NotifySettings) -> list[tuple[str, str]]:
    """The lines of the file. Raises ConfigError where others could read or write it."""
    path = settings.file
    if path is None:
        return []
    try:
        found, text = path.stat(), decoded(safe_open.read(path, _LARGEST))
    except (OSError, DocumentError) as error:
        why = getattr(error, "strerror", None) or "is no text"
        raise ConfigError("notify.file", str(path), f"cannot be read: {why}", hint="Name a file of yours.") from None
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077):
        raise ConfigError("notify.file", str(path), "can be read or changed by others", hint=f"chmod 600 {path}")
    lines = [line.strip() for line in text.splitlines()]
    return [(f"line {number} of {path.name}", line) for number, line in enumerate(lines, 1) if line and line[0] != "#"]


def _wrong(place: str, problem: str) -> ConfigError:
    hint = "The address is as Apprise writes it: https://appriseit.com/services/"
    return ConfigError("notify", place, problem, hint=hint)


class _Status(logging.Handler):
    """Keeps of what Apprise logs the status of HTTP alone: the rest can hold the address."""

    def __init__(self) -> None:
        super().__init__()
        self.last: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Look at one line."""
        found = _STATUS.search(record.getMessage())
        self.last = found[1] if found else self.last


class Sender:
    """Sends texts by Apprise. Raises ConfigError where it is not installed."""

    def __init__(self) -> None:
        try:
            self._apprise: Any = import_module("apprise")
        except ImportError as error:
            raise ConfigError("notify", "apprise", "is not installed", hint=f"Run: {_EXTRA}") from error
        self._status = _Status()
        log = logging.getLogger("apprise")
        log.handlers, log.propagate = [self._status], False

    def check(self, target: NotifyTarget) -> None:
        """Raises ConfigError for an address that Apprise does not understand."""
        self._made(target)

    def send(self, target: NotifyTarget, told: NoticeMessage) -> str | None:
        """Send it, in seconds; what went wrong in words, None where it was taken."""
        self._status.last = None
        try:
            plain = self._apprise.NotifyFormat.TEXT
            taken = bool(self._made(target).notify(title=told.title, body=told.text, body_format=plain))
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin of whatever service; its words can hold the address
            return f"did not take it ({type(error).__name__})"
        if taken:
            return None
        return "did not take it" if self._status.last is None else f"did not take it (HTTP {self._status.last})"

    def _made(self, target: NotifyTarget) -> Any:
        made = self._apprise.Apprise(asset=self._apprise.AppriseAsset(app_id="slurm-agent-tools", secure_logging=True))
        if not made.add(target.address):
            raise _wrong(target.shown, "is no address that Apprise understands")
        return made
