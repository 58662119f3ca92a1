"""A configuration against the project's own JSON Schema (json-schema.org, 2020-12 and the drafts before it). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.submission_answer import Complaint
from slurm_agent_tools.scripts.configs.experiment_config import Config, join
from slurm_agent_tools.text.bounded_documents import DocumentError, decoded, json_value

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator
import sys

from slurm_agent_tools.scripts.configs.experiment_config import parse_config

FILE = "configs/schema.json"

_SHOWN = 50

_FORMS = {"anyOf", "oneOf"}


class UnusableSchema(InputError):
    """A schema that cannot be used."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__("schema", FILE, problem, hint=hint)
        self.problem = problem


def complaints_against(config: Config, schema: bytes) -> list[Complaint]:
    """What the schema says against the configuration, by line. Raises Unusable."""
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - few projects have a schema

    validator = _validator(schema)
    try:
        found = sorted(_told(config, validator), key=lambda told: (told.line or 0, told.path))
    except Unresolvable as error:
        raise UnusableSchema(
            f"refers to {error.ref!r}, which is not in it", "Move what it refers to below its own `$defs`."
        ) from error
    except RecursionError as error:
        raise UnusableSchema("refers to itself without end", "Correct its `$ref`s.") from error
    more = len(found) - _SHOWN
    if more > 0:
        last = Complaint(path="", message=f"{more} more places do not fit {FILE}.", remedy="Mend those above first.")
        found = [*found[:_SHOWN], last]
    return found


def _validator(data: bytes) -> Validator:
    """The schema, checked itself; nothing is ever fetched for it."""
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415
    from jsonschema.validators import validator_for  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415

    try:
        schema = json_value(decoded(data))
    except DocumentError as error:
        raise UnusableSchema(str(error), error.mend) from error
    if not isinstance(schema, dict | bool):
        raise UnusableSchema(f"holds {type(schema).__name__} instead of a schema", "Write an object with `properties`.")
    known = validator_for(schema, default=Draft202012Validator)
    try:
        known.check_schema(schema)
    except SchemaError as error:
        place = _place(error.absolute_path) or "its top"
        raise UnusableSchema(f"is not a JSON Schema at {place}: {error.message}", "Correct it.") from error
    made: Validator = known(schema, registry=Registry())
    return made


def _told(config: Config, validator: Validator) -> Iterator[Complaint]:
    for error in validator.iter_errors(_plain(config.value)):
        nearest = _nearest(error)
        place = _place(nearest.absolute_path)
        for key, message, remedy in _words(nearest):
            where = join(place, key) if key else place
            line = config.lines.get(where, config.lines.get(place, 1))
            yield Complaint(path=where, line=line, message=f"{where or 'The file'} {message}.", remedy=remedy)


def _plain(value: object) -> Any:
    """The value as JSON has it: YAML and TOML also know dates, times and keys that are no text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, date | time) else value


def _nearest(error: ValidationError) -> ValidationError:
    """Of several forms, the one that fits best tells more than that none fits: the fault deepest inside."""
    while error.validator in _FORMS and error.context:
        error = max(error.context, key=lambda inner: (len(inner.absolute_path), inner.validator != "type"))
    return error


def _place(path: Iterable[str | int]) -> str:
    place = ""
    for part in path:
        place = f"{place}[{part}]" if isinstance(part, int) else join(place, part)
    return place


def _words(error: ValidationError) -> Iterator[tuple[str, str, str]]:
    """(key below the place, what is wrong, what to do), one for each key concerned."""
    schema, value, wanted = error.schema, error.instance, error.validator_value
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    if error.validator == "required":
        for key in [key for key in wanted if error.message.startswith(f"{key!r} ")]:
            yield key, "is missing", _purpose(properties.get(key)) or f"Write `{key}:` with its value."
    elif error.validator == "additionalProperties" and wanted is False:
        patterns = schema.get("patternProperties", {}) if isinstance(schema, Mapping) else {}
        for key in sorted(key for key in value if key not in properties and not _matched(key, patterns)):
            yield key, "is not a known key", _meant(key, properties)
    else:
        yield "", _against(error), _purpose(schema) or "Write a value that fits."


def _matched(key: str, patterns: Mapping[str, object]) -> bool:
    return any(re.search(pattern, key) for pattern in patterns)


def _meant(key: str, properties: Mapping[str, object]) -> str:
    near = get_close_matches(key, properties, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]}?"
    known = ", ".join(list(properties)[:12])
    return f"Remove it. Known here: {known}." if known else "Remove it."


def _purpose(schema: object) -> str:
    """What the schema's author wrote about the key."""
    told = schema.get("description") or schema.get("title") if isinstance(schema, Mapping) else None
    return str(told)[:300] if told else ""


def _against(error: ValidationError) -> str:
    value = _short(error.instance)
    wanted = _short(error.validator_value)
    says = {
        "type": f"is {value} instead of {_types(error.validator_value)}",
        "enum": f"is {value}, not one of {wanted}",
        "const": f"is {value} instead of {wanted}",
        "minimum": f"is {value}, less than {wanted}",
        "maximum": f"is {value}, more than {wanted}",
        "exclusiveMinimum": f"is {value}, not more than {wanted}",
        "exclusiveMaximum": f"is {value}, not less than {wanted}",
        "multipleOf": f"is {value}, not a multiple of {wanted}",
        "pattern": f"is {value}, which does not match {wanted}",
        "minItems": f"has fewer than {wanted} items",
        "maxItems": f"has more than {wanted} items",
        "minLength": f"is {value}, shorter than {wanted} characters",
    }
    return says.get(str(error.validator)) or f"does not fit `{error.validator}: {wanted}`"


def _types(wanted: object) -> str:
    names = {
        "integer": "a whole number", "number": "a number", "string": "text", "boolean": "true or false",
        "array": "a list", "object": "keys and values", "null": "nothing",
    }  # fmt: skip
    asked = wanted if isinstance(wanted, list) else [wanted]
    return " or ".join(names.get(str(name), str(name)) for name in asked)


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 120 else f"{text[:100]}..."


# --- The check against a schema in a process of its own, which can be ended: a regular expression or a form m----------


SECONDS = 10

MEMORY = 2 * 2**30
"""Bytes of address space, where the system knows such a limit."""


def checked_apart(suffix: str, config: bytes, schema: bytes) -> dict[str, Any]:
    """What is printed. A configuration that nobody can read was refused before."""
    try:
        found = complaints_against(parse_config(config, suffix, "config_path"), schema)
    except UnusableSchema as error:
        return {"problem": error.problem, "hint": error.hint}
    return {"complaints": [complaint.model_dump() for complaint in found]}


def main() -> None:
    """Answer the one question on standard input."""
    _bound()
    suffix, size = sys.argv[1], int(sys.argv[2])
    data = sys.stdin.buffer.read()
    sys.stdout.write(json.dumps(checked_apart(suffix, data[:size], data[size:])))


def _bound() -> None:
    try:
        import resource  # noqa: PLC0415 - not everywhere
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # should nobody be left to end it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    main()
