"""The kinds of values in a policy file: text with units, folders, patterns; each with its JSON Schema for editors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from slurm_agent_tools.units import UNLIMITED, parse_memory, parse_time_limit


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
