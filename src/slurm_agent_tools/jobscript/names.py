"""Names that are safe in a file name."""

from __future__ import annotations

import re


def safe_name(text: str, *, limit: int = 60) -> str:
    """Letters, digits, dot, underscore and dash only, never empty, never starting with a dot or dash."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:limit] or "job"
