"""Frozen records to rows of a table and back: times are seconds since 1970, flags are 0 and 1."""

from __future__ import annotations

import sqlite3
import types
import typing
from collections.abc import Collection
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

_Record = TypeVar("_Record")


def to_row(record: Any, only: Collection[str] | None = None) -> dict[str, object]:
    """A column for each field, or for those in `only`."""
    row: dict[str, object] = {}
    for item in fields(record):
        if only is None or item.name in only:
            value = getattr(record, item.name)
            row[item.name] = value.timestamp() if isinstance(value, datetime) else value
    return row


def from_row(kind: type[_Record], row: sqlite3.Row) -> _Record:
    """The record of a row; other columns are left out."""
    hints = _hints(kind)  # type: ignore[arg-type]  # every class is hashable
    return kind(**{item.name: _value(row[item.name], hints[item.name]) for item in fields(kind)})  # type: ignore[arg-type]


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _value(value: Any, hint: Any) -> Any:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None:
        return None
    if datetime in kinds:
        return datetime.fromtimestamp(value, UTC)
    return bool(value) if bool in kinds else value
