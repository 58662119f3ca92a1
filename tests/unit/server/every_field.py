"""Records with something of its own in every field, and what of a document a page shows."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from slurm_agent_tools.server.web import fragments


class Filled:
    """Makes models whose texts and numbers are all different; `around` is put around every text."""

    def __init__(self, around: str = "") -> None:
        self._numbers = itertools.count(1013, 13)
        self._around = around

    def of(self, model: type[BaseModel], **given: Any) -> Any:
        fields = {name: field.annotation for name, field in model.model_fields.items() if name not in given}
        made = {name: self._value(name, kind) for name, kind in fields.items()}
        return model.model_validate({**made, **given})

    def _value(self, name: str, kind: Any) -> Any:
        origin, inside = get_origin(kind), get_args(kind)
        if origin in (Literal, Union, types.UnionType):
            return inside[0] if origin is Literal else self._value(name, inside[0])
        if origin in (list, tuple):
            return [self._value(name, inside[0])]
        if origin in (dict, Mapping):
            return {f"key{next(self._numbers)}{self._around}": self._value(name, inside[1])}
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self.of(kind)
        return self._plain(name, kind)

    def _plain(self, name: str, kind: Any) -> Any:
        number = next(self._numbers)
        if kind is datetime:
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
        return {bool: True, int: number, float: number / 10_000}.get(kind, f"{name}{number}{self._around}")


def leaves(document: Any, way: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every value in a document, with the names on the way to it, joined by points."""
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield from leaves(value, (*way, "*" if name.startswith("key") else name))
    elif isinstance(document, list):
        for value in document:
            yield from leaves(value, way)
    elif document is not None and not isinstance(document, bool):
        yield ".".join(way), document


def spellings(value: Any) -> set[str]:
    """How a page may write a value."""
    if isinstance(value, str):
        try:
            return {value, f"{datetime.fromisoformat(value):%Y-%m-%d %H:%M:%S}"}
        except ValueError:
            return {value}
    told = {str(value), fragments.number(value), fragments.percent(value), fragments.lasts(value)}
    return told | ({fragments.memory(value)} if isinstance(value, int) else set())
