"""The passkeys that a person enrolled on this machine, where no site's policy lists any: lines in the user's own file.

No setting and no SLURM_AGENT_* variable moves the file. Every program of the user can write it, as it can the ledger.
"""

from __future__ import annotations

import os
from pathlib import Path

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.allowed_passkeys import AllowedPasskey, parse
from slurm_agent_tools.text import safe_open

_LARGEST = 256 * 1024


def place() -> Path:
    """Where they stand."""
    return Path.home() / ".config" / "slurm-agent-tools" / "passkeys"


def enrolled() -> tuple[str, ...]:
    """The lines, none where nobody enrolled one. Raises StorageError where the file cannot be read."""
    path = place()
    try:
        text = safe_open.read(path, _LARGEST).decode("ascii")
        lines = tuple(line for line in text.splitlines() if line.strip())
        for line in lines:
            parse(line)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, ValueError) as error:
        hint = f"Mend or remove {path}, and enrol keys again: slurm-agent-tools passkey add NAME"
        raise StorageError(f"The enrolled passkeys cannot be read: {error}", hint=hint) from error
    return lines


def enrol(key: AllowedPasskey) -> None:
    """Add a key. Raises StorageError."""
    _write([*enrolled(), key.line])


def strike(name: str) -> int:
    """Remove all keys of this name; returns how many there were. Raises StorageError."""
    lines = enrolled()
    kept = [line for line in lines if parse(line).name != name]
    if len(kept) < len(lines):
        _write(kept)
    return len(lines) - len(kept)


def _write(lines: list[str]) -> None:
    path, draft = place(), f".passkeys.{os.getpid()}"
    try:
        with safe_open.folder(str(path.parent), make=True) as where, safe_open.dropped(where, draft):
            handle = safe_open.create(where, draft, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write("".join(f"{line}\n" for line in lines))
                file.flush()
                os.fsync(handle)
            safe_open.replace(where, draft, path.name)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror}", hint="Look at the folder's rights."
        ) from error
