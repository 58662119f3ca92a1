"""What does not have the form of a document that people write: pydantic's errors, in the document's own places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic_core import ErrorDetails

from slurm_agent_tools.scripts.configs.experiment_config import join

_INNER = re.compile(r"[.\[]")


@dataclass(frozen=True, slots=True)
class FormProblem:
    """One thing that is wrong: where in the file, the value, what, and what to do about it."""

    place: str
    value: object
    what: str
    mend: str = ""


def line_of(lines: Mapping[str, int], place: str) -> int | None:
    """The line where a place stands; of what is missing, that of what should hold it."""
    while place:
        if place in lines:
            return lines[place]
        place = place[: max(place.rfind("."), place.rfind("["), 0)]
    return None


def form_problems(value: object, errors: Sequence[ErrorDetails]) -> list[FormProblem]:
    """What is not of the form, each place once: of a value that may be one of several kinds all were tried."""
    by_place: dict[str, list[ErrorDetails]] = {}
    for one in errors:
        by_place.setdefault(_place(value, one), []).append(one)
    found, above = [], {place[: mark.start()] for place in by_place for mark in _INNER.finditer(place)}
    for place, told in by_place.items():
        below = place in above
        kept = _of_its_kind(told, _at(value, place), below)
        if kept and not (kept[0]["type"] == "too_short" and below):  # pydantic counts only what is right
            found.append(_of_place(place, kept))
    return found


def _place(value: object, error: ErrorDetails) -> str:
    """Where it stands in the file: the names of kinds that pydantic puts between are left out."""
    place, here = "", value
    parts = error["loc"]
    for index, part in enumerate(parts):
        if isinstance(here, Mapping) and part in here:
            place, here = join(place, str(part)), here[part]
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            place, here = f"{place}[{part}]", here[part]
        elif index == len(parts) - 1 and error["type"] == "missing":
            place = join(place, str(part))
    return place


def _of_its_kind(errors: Sequence[ErrorDetails], value: object, below: bool) -> Sequence[ErrorDetails]:
    """The errors without those that say that a list is no mapping, or a mapping no list, where others say more."""
    other = {"tuple_type"} if isinstance(value, Mapping) else {"model_type"} if isinstance(value, list) else set()
    kept = [one for one in errors if one["type"] not in other]
    return kept if kept or below else errors


def _at(value: object, place: str) -> object:
    for part in re.findall(r"[^.\[\]]+", place):
        if isinstance(value, list):
            value = value[int(part)]
        elif isinstance(value, Mapping):
            value = value.get(part)
    return value


_ONE_VALUE = frozenset({"int_type", "float_type", "bool_type", "string_type"})

_MENDS = {
    "extra_forbidden": "Remove it, or spell it as the form does.",
    "missing": "Write it.",
    "literal_error": "Use one of these.",
}

_SAID = {
    "extra_forbidden": "is not known here",
    "missing": "is required",
    "model_type": "has to be a mapping of names to values",
    "model_attributes_type": "has to be a mapping of names to values",
    "dict_type": "has to be a mapping of names to values",
    "tuple_type": "has to be a list",
    "union_tag_not_found": "has no kind",
}


def _of_place(place: str, errors: Sequence[ErrorDetails]) -> FormProblem:
    one = errors[0]
    told = {error["type"] for error in errors}
    if {"tuple_type", "model_type"} <= told:
        what = "has to be a list of values, or a range with low and high"
    elif len(told & _ONE_VALUE) > 1:
        own = next((error for error in errors if error["type"] not in _ONE_VALUE), None)
        what = _message(own) if own else "has to be a number, true or false, or one line of text"
    else:
        what = _SAID.get(one["type"]) or _message(one)
    absent = one["type"] == "missing" or not place or isinstance(one["input"], Mapping)
    return FormProblem(place, None if absent else one["input"], what, _MENDS.get(one["type"], "Correct it."))


def _message(one: ErrorDetails) -> str:
    return one["msg"].removeprefix("Value error, ").replace("Input should", "has to")
