"""The kinds of values in a policy file, each with its JSON Schema for editors; and which of two values is tighter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from enum import Enum
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from slurm_agent_tools.units import UNLIMITED, format_duration, human_memory, parse_memory, parse_time_limit


def _text(parse: Callable[[str], int], example: str) -> Callable[[object], object]:
    """YAML reads 24:00:00 as the number 86400 and 16 as nobody knows what: only text with a unit is taken."""

    def check(value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f'write it in quotes and with its unit, for example "{example}"')  # noqa: TRY004
        return parse(value)

    return check


def _limit(text: str) -> int:
    seconds = parse_time_limit(text)
    if seconds == UNLIMITED:
        raise ValueError("a limit cannot be UNLIMITED")
    return seconds


def _inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError("name a folder inside the project, without a leading / and without ..")
    return path


def _absolute(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError("name an absolute folder, without ..")
    return path


def _switch(value: object) -> object:
    """YAML 1.1 reads a bare on and off as true and false."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _day(value: object) -> object:
    if isinstance(value, str | date):
        return value
    raise ValueError("write a date, for example 2027-01-31")


Memory = Annotated[
    int,
    BeforeValidator(_text(parse_memory, "16G")),
    Field(gt=0),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+[KMGT]$", "examples": ["16G"]}),
]

Seconds = Annotated[
    int,
    BeforeValidator(_text(_limit, "24:00:00")),
    Field(gt=0),
    WithJsonSchema({"type": "string", "examples": ["24:00:00", "3-00:00:00"]}),
]

Count = Annotated[int, Field(strict=True, ge=0)]

Some = Annotated[int, Field(strict=True, ge=1)]

Hours = Annotated[float, Field(strict=True, gt=0)]

Word = Annotated[str, Field(strict=True, min_length=1)]

Folder = Annotated[Word, AfterValidator(_inside)]

Absolute = Annotated[Word, AfterValidator(_absolute)]

Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]

Switch = BeforeValidator(_switch)

Yes = WithJsonSchema({"anyOf": [{"enum": ["on", "off"]}, {"type": "boolean"}]})


class Part(BaseModel):
    """Base of the policy and its parts: frozen, an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


# --- Laying a stricter policy over another: every field takes the tighter of the two values ---------------------------


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
