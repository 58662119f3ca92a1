"""The last plans of a caller: a file each in the state folder, so that they outlive the process that made them."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.store.database import storage
from slurm_agent_tools.store.submissions import Owner, from_text, to_text
from slurm_agent_tools.text import safe_open

MOST = 16
"""Plans that are kept of one caller; the oldest goes first."""

_LARGEST = 2**24

_DRAFT_AGE = 3600.0
"""Seconds after which a draft is left by a process that was killed: one is written within seconds."""

_LOOKED_AT = 4

_Plan = TypeVar("_Plan")


class PlanFiles:
    """The plans of one caller in the state folder. Raises StorageError."""

    def __init__(self, folder: Path, owner: Owner) -> None:
        self._folder = folder / "plans"
        told = f"{owner.user}\0{owner.project}\0{owner.cluster}".encode("utf-8", "surrogateescape")
        self._owner = hashlib.sha256(told).hexdigest()[:16]

    def keep(self, plan_id: str, plan: object) -> None:
        """Write it whole, in place of one with this id; drop the oldest beyond MOST, and drafts that were left."""
        data = to_text(plan).encode()
        if len(data) > _LARGEST:
            raise StorageError(f"the plan is larger than {_LARGEST} bytes, and is not kept", hint="Plan fewer jobs.")
        draft = f".{self._owner}-{secrets.token_hex(8)}"
        with storage(self._folder), safe_open.folder(str(self._folder), make=True) as where:
            with os.fdopen(safe_open.create(where, draft, 0o600), "wb") as file, safe_open.dropped(where, draft):
                file.write(data)
                file.flush()
                now = os.fstat(file.fileno()).st_mtime
                safe_open.replace(where, draft, self._name(plan_id))
            for name in (*self._newest()[MOST:], *self._left_drafts(now)):
                safe_open.remove(str(self._folder / name))

    def find(self, plan_id: str, kind: type[_Plan]) -> _Plan | None:
        """The plan with this id; None where it is none of the last ones."""
        if re.fullmatch(r"[0-9a-f]{1,64}", plan_id) is None:
            return None
        return self._read(self._name(plan_id), kind)

    def ids(self) -> list[str]:
        """The ids of all that are kept, the newest first."""
        return [name.removeprefix(f"{self._owner}-").removesuffix(".json") for name in self._newest()]

    def last(self, kind: type[_Plan], wanted: Callable[[_Plan], bool]) -> _Plan | None:
        """The newest that is wanted; a few are looked at."""
        for name in self._newest()[:_LOOKED_AT]:
            plan = self._read(name, kind)
            if plan is not None and wanted(plan):
                return plan
        return None

    def _name(self, plan_id: str) -> str:
        return f"{self._owner}-{plan_id}.json"

    def _newest(self) -> list[str]:
        """Names of its files, the newest first."""
        with storage(self._folder):
            if not self._folder.is_dir():
                return []
            found = []
            for one in self._folder.glob(f"{self._owner}-*.json"):
                with suppress(FileNotFoundError):  # another process drops the oldest too
                    found.append((one.stat().st_mtime_ns, one.name))
        return [name for _, name in sorted(found, reverse=True)]

    def _left_drafts(self, now: float) -> list[str]:
        """Names of its drafts that nobody writes any more. `now`: by the clock that their times are of."""
        own = re.compile(rf"\.(?:{self._owner}-)?[0-9a-f]{{16}}")
        found = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process drops it too
                    if own.fullmatch(entry.name) and now - entry.stat(follow_symlinks=False).st_mtime > _DRAFT_AGE:
                        found.append(entry.name)
        return found

    def _read(self, name: str, kind: type[_Plan]) -> _Plan | None:
        """None of one that is gone, or that another version wrote: a plan is made again from the same question."""
        try:
            return from_text(kind, safe_open.read(self._folder / name, _LARGEST).decode())
        except (OSError, ValueError):
            return None
