"""The project's failure modes: one line for each failure record, written by us, kept and edited by people. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slurm_agent_tools.diagnosis.words import flat, inert

FOLDER = "documents/issues"
FILE = "documents/failure-modes.md"
HEAD = """# Failure modes

What failed in this project, newest last. `save_result` adds a line for each failure record; all else here is yours.

"""
_RECORD = re.compile(r"(\d{4}-\d\d-\d\d)_(\d+(?:_\d+)?)_([a-z][a-z0-9-]*)\.md")
_SHOWN = 10


def entry(record: str, explanation: str, proposed: str | None) -> str:
    """The line of one record, named by its file. Raises ValueError for a name that is no record's."""
    found = _RECORD.fullmatch(record)
    if found is None:
        raise ValueError(f"{record!r} is not the name of a failure record")
    day, job, category = found.groups()
    change = f" Next: `{' '.join(flat(proposed).split())}`." if proposed else ""
    why = " ".join(inert(explanation).split()).partition(" Proposed: ")[0]
    return f"- {day} · **{category}** · job {job} · {why}{change} [Record](issues/{record})\n"


def listed(text: str, record: str) -> bool:
    """True where the record has its line already."""
    return f"](issues/{record})" in text


def of_same_job(names: Sequence[str], record: str) -> str | None:
    """The first record of the same job and day among the names of files, whatever its category."""
    job = record.rpartition("_")[0]
    return next((name for name in sorted(names) if _RECORD.fullmatch(name) and name.rpartition("_")[0] == job), None)


def same(names: Sequence[str], record: str) -> list[str]:
    """Earlier records of the same category among the names of files, newest first, at most ten."""
    found = _RECORD.fullmatch(record)
    category = found[3] if found is not None else ""
    known = [name for name in names if (other := _RECORD.fullmatch(name)) and other[3] == category and name != record]
    return sorted(known, reverse=True)[:_SHOWN]
