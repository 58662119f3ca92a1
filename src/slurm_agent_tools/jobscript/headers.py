"""#SBATCH lines from values: quoted so that every Slurm version reads back what was meant."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]-]+")


def directive(option: str, value: str | None = None) -> str:
    """One line. sbatch groups by double quotes and takes a backslash's next character as it is.

    Raises ValueError for a value that one line cannot hold.
    """
    if value is None:
        return f"#SBATCH --{option}"
    if not value or any(not sign.isprintable() for sign in value):
        raise ValueError(f"not a value for one line: {value!r}")
    if _PLAIN.fullmatch(value):
        return f"#SBATCH --{option}={value}"
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'#SBATCH --{option}="{quoted}"'
