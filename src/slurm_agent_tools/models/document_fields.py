"""Fields of documents that people write: quantities with their units, texts that can be printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from slurm_agent_tools.units import UNLIMITED, parse_memory, parse_span


def with_unit(read: Callable[[str], int], example: str) -> BeforeValidator:
    """A quantity as text with its unit alone: YAML reads 24:00:00 as the number 86400."""

    def check(value: object) -> int:
        if not isinstance(value, str):
            raise ValueError(f'write it in quotes and with its unit, for example "{example}"')  # noqa: TRY004
        found = read(value)
        if found == UNLIMITED:
            raise ValueError("cannot be without a limit: leave the line out where there is none")
        return found

    return BeforeValidator(check)


Seconds = Annotated[
    int,
    with_unit(parse_span, "24h"),
    Field(gt=0),
    WithJsonSchema({"type": "string", "description": "A duration with its unit", "examples": ["90min", "24h"]}),
]

Bytes = Annotated[
    int,
    with_unit(parse_memory, "80G"),
    Field(gt=0),
    WithJsonSchema({"type": "string", "description": "Memory with its unit", "examples": ["16G"]}),
]


def _printable(value: str) -> str:
    if not all(line.isprintable() for line in value.split("\n")):
        raise ValueError("has a character that cannot be printed")
    return value


def _one_line(value: str) -> str:
    if "\n" in value:
        raise ValueError("has to be one line")
    return value


Text = Annotated[str, Field(strict=True, min_length=1, max_length=2000), AfterValidator(_printable)]

Line = Annotated[Text, AfterValidator(_one_line)]

Count = Annotated[int, Field(strict=True, ge=1)]

Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
