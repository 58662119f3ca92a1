"""Lessons of a project: one line for each failure that was mended, and those that fit a new failure. Pure, texts in."""

from __future__ import annotations

import re
from datetime import date

from slurm_agent_tools.text import sanitize

PLACE = "documents/lessons.md"

HEAD = "# Lessons\n\nOne line for each failure that was mended: date, category, what failed, what mended it.\n\n"

_LINE = re.compile(r"- (\d{4}-\d\d-\d\d) ([a-z][a-z0-9-]{1,40}): (.{1,600})")

_MOST = 3
"""Lessons that an answer shows: the newest."""

LONGEST = 2**20
"""Bytes of the file."""


def lesson(on: date, category: str, failed: str, mended: str) -> str:
    """The line of one lesson. Texts that jobs wrote become one line without signs that steer a terminal."""
    what, how = (sanitize.line(text).strip().rstrip(".")[:280] for text in (failed, mended))
    return f"- {on.isoformat()} {category}: {what}. Mended by: {how}."


def with_lesson(text: str, line: str) -> str:
    """The file with one line more, as it was where the same lesson stands there already, of whatever day."""
    if any(
        known.partition(" ")[2].partition(" ")[2] == line.partition(" ")[2].partition(" ")[2] for known in _lines(text)
    ):
        return text
    return f"{text.rstrip()}\n{line}\n" if text.strip() else f"{HEAD}{line}\n"


def _lines(text: str) -> list[str]:
    return [line for line in text[-LONGEST:].split("\n") if _LINE.fullmatch(line)]


def fitting(text: str, category: str) -> list[str]:
    """What was learned of this category of failure in this project, the newest first, each behind its day."""
    found = [match for line in _lines(text) if (match := _LINE.fullmatch(line)) is not None and match[2] == category]
    newest = sorted(found, key=lambda match: match[1], reverse=True)[:_MOST]
    return [f"{match[1]}: {sanitize.line(match[3])}" for match in newest]
