"""Records as the ledger keeps them in one column: the one place where they become text and come back."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

_Record = TypeVar("_Record")


def to_text(record: Any) -> str:
    """A record as JSON, letters beyond ASCII escaped: a path may hold bytes that no encoding has."""
    kept = (
        dict(record)
        if isinstance(record, Mapping)
        else _adapter(cast("Hashable", type(record))).dump_python(record, mode="json")
    )
    return json.dumps(kept, sort_keys=True)


def from_text(kind: type[_Record], text: str) -> _Record:
    """The record of such a text."""
    return _adapter(cast("Hashable", kind)).validate_python(json.loads(text))  # type: ignore[no-any-return]


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast("Any", kind))
