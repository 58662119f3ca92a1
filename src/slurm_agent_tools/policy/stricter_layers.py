"""Laying a stricter policy over another: every field takes the tighter of the two values."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel

from slurm_agent_tools.units import format_duration, human_memory


class Tighter(Enum):
    """How a field gets tighter that is not a limit, where less is tighter."""

    SHARED = "only what both name"
    INSIDE = "only folders inside the other's"
    UNITED = "what either names"
    HIGHER = "the larger number"
    BASE = "only what the base states"
    OFF = "off wins"
    HARSHER = "the more severe level"


_SEVERITY = ("off", "warn", "justify", "approve", "deny")


_Model = TypeVar("_Model", bound=BaseModel)


def tighten(base: _Model, wanted: _Model, path: str = "") -> tuple[_Model, list[str]]:
    """The tighter policy, and one note for each wish to loosen `base`. Names and versions stay the base's."""
    update: dict[str, object] = {}
    notes: list[str] = []
    for name, field in type(base).model_fields.items():
        old, new = getattr(base, name), getattr(wanted, name)
        if old == new:
            continue
        place = f"{path}{name}"
        if isinstance(old, BaseModel):
            update[name], below = tighten(old, new, f"{place}.")
            notes += below
        elif isinstance(old, tuple):
            how = next(mark for mark in field.metadata if isinstance(mark, Tighter))
            update[name], extra = _list(how, old, new)
            notes += [f"`{place}` cannot be loosened by {item}; ignored" for item in extra]
        elif Tighter.OFF in field.metadata:
            update[name] = "off"
            notes += [f"`{place}` cannot be loosened from off to on; ignored"] if old == "off" else []
        elif Tighter.HARSHER in field.metadata:
            update[name] = max(old, new, key=_SEVERITY.index)
            notes += [f"`{place}` cannot be loosened from {old} to {new}; ignored"] if update[name] == old else []
        elif isinstance(old, dict):
            continue  # the levels of rules: policy.loading lays them over each other
        elif not isinstance(old, str):
            update[name] = max(old, new) if Tighter.HIGHER in field.metadata else _lower(old, new)
            if update[name] != new:
                notes.append(f"`{place}` cannot be loosened from {_said(place, old)} to {_said(place, new)}; ignored")
    return base.model_copy(update=update), notes


def _said(place: str, value: float | None) -> str:
    """A limit as a policy file writes it; bytes and seconds are known by the field's name."""
    if isinstance(value, int) and ("memory" in place or place.endswith("_bytes")):
        return human_memory(value)
    if isinstance(value, int) and "time_limit" in place:
        return format_duration(value)
    return "no limit" if value is None else str(value)


def _lower(old: float | None, new: float | None) -> float | None:
    """The smaller limit; None is no limit."""
    stated = [value for value in (old, new) if value is not None]
    return min(stated, default=None)


def _list(how: Tighter, old: Sequence[Any], new: Sequence[Any]) -> tuple[tuple[Any, ...], list[str]]:
    """The tighter list, and the items of `new` that would loosen it."""
    if how is Tighter.BASE:
        return tuple(old), [f"adding {item}" for item in new if item not in old]
    if how is Tighter.UNITED:
        return tuple(dict.fromkeys([*old, *new])), []
    if how is Tighter.SHARED:
        kept = [item for item in new if item in old]
        return tuple(kept), [f"adding {item}" for item in new if item not in kept]
    kept = [item for item in new if any(_within(item, folder) for folder in old)]
    narrower = [item for item in old if any(_within(item, folder) for folder in new)]
    return tuple(dict.fromkeys([*kept, *narrower])), [f"adding {item}" for item in new if item not in kept]


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
