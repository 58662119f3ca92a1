"""What both faces share: arguments from outside become an Ask, a Reply or an error becomes one JSON document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from slurm_agent_tools.api.catalogue import TOOLS, Tool
from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.models.shapes import ErrorInfo, ErrorReply, Reply
from slurm_agent_tools.text import bounded_documents, sanitize

Document = dict[str, Any]

_MOST_ITEMS = 10_000  # each wrong one is an error of its own, and a million of them held up every other caller

_LATER = ("detail", "cluster")

BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}


def parse(tool: Tool, arguments: Mapping[str, object]) -> ToolArguments:
    """The tool's checked arguments. Raises InputError naming the field, the value and the mend."""
    for name, value in arguments.items():
        if name not in tool.ask.model_fields:
            raise _unknown(tool, name, value)
    given = {name: _unpacked(tool, name, value) for name, value in arguments.items()}
    for name, value in given.items():
        if isinstance(value, list) and len(value) > _MOST_ITEMS:
            hint = f"Give at most {_MOST_ITEMS}; the first beyond is {_place((name, _MOST_ITEMS), given)}."
            raise InputError(name, f"{len(value)} entries", "is too long", hint=hint)
        _whole(name, value)
    try:
        return tool.ask.model_validate(given)
    except ValidationError as error:
        raise _explained(tool, error.errors(include_url=False), given) from error


def named_values(field: str, text: str, known: Sequence[str]) -> dict[str, object]:
    """`gpus=4,cpus=32` as a mapping. Raises InputError."""
    found: dict[str, object] = {}
    for word in text.split(","):
        name, equals, value = word.strip().partition("=")
        if not equals or name not in known or not value:
            hint = f"Write {', '.join(f'{one}=...' for one in known)}, with commas between."
            raise InputError(field, word, "is not NAME=VALUE of a known name", hint=hint)
        found[name] = value
    return found


def document(reply: Reply) -> Document:
    """The one JSON form of a reply; what is not known is an explicit null."""
    body = sanitize.document(reply.model_dump(mode="json"))
    return body | {"data_only": [name for name in reply.written_by_others if sanitize.holds(body, name)]}


def failure(error: Exception, tool: str) -> Document:
    """The one JSON form of a failure. What an unexpected error says goes to the log, not to the caller."""
    if isinstance(error, AgentToolsError):
        info = ErrorInfo(code=error.code, message=error.message, hint=error.hint)
    else:
        info = ErrorInfo(
            code="internal",
            message=f"{tool} failed in a way that was not foreseen ({type(error).__name__})",
            hint="The details are in the log on standard error. Nothing is known of the outcome: call get_status.",
        )
    return sanitize.document(ErrorReply(error=info).model_dump(mode="json"))


def text(body: Document) -> str:
    """A document as one line of JSON, safe for any encoding."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def _whole(name: str, value: object) -> None:
    """Raise InputError for an argument that holds half of a character, or too much to look for one."""
    try:
        half = bounded_documents.half_place(name, value)
    except ValueError as error:
        raise InputError(name, None, str(error), hint="Give a path to a file instead, or less of it.") from error
    if half is not None:
        raise InputError(*half, bounded_documents.NOT_WHOLE, hint=bounded_documents.WHOLE_HINT)


def _unknown(tool: Tool, name: str, value: object) -> InputError:
    known = sorted(tool.ask.model_fields, key=_LATER.__contains__)  # few need those
    return InputError(
        name,
        value,
        f"is not an argument of {tool.name}",
        hint=f"{_meant(name, known)}Known arguments: {', '.join(known)}.",
    )


def _meant(name: str, known: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415 - for an error alone

    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}? " if near else ""


def _unpacked(tool: Tool, name: str, value: object) -> object:
    """Some clients send lists and objects as JSON text; a plain text field stays as it is."""
    annotation = tool.ask.model_fields[name].annotation
    if not isinstance(value, str) or annotation in (str, str | None) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _place(way: Sequence[str | int], given: Mapping[str, object]) -> str:
    """Where it lies, `jobs 'train': resources.gpus`: an entry of a list by its name where it has one, or its number."""
    told, value = "", cast("object", given)
    for part in way:
        value = _inside(value, part)
        name = value.get("name") if isinstance(part, int) and isinstance(value, Mapping) else None
        if isinstance(name, str) and name:
            told += f" {name!r}:"
        else:
            told += f" {part}" if told.endswith(":") else f".{part}" if told else str(part)
    return told.removesuffix(":")


def _inside(value: object, part: str | int) -> object:
    """None where there is no such thing."""
    if isinstance(value, Mapping):
        return value.get(part)
    return value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None


def _explained(tool: Tool, found: list[ErrorDetails], given: Mapping[str, object]) -> InputError:
    first = found[0]
    if first["type"] == "extra_forbidden":
        return _unknown_inside(tool, first, given)
    field = _place(first["loc"], given) or tool.name
    about = tool.ask.model_fields.get(str(first["loc"][0])) if first["loc"] else None
    missing = first["type"] == "missing"
    problem = "is required" if missing else first["msg"][:1].lower() + first["msg"][1:]
    problem = f"is null: {problem}" if first["input"] is None else problem
    hints = [about.description] if about is not None and about.description else []
    hints += [f"Also wrong: {_place(other['loc'], given)} ({other['msg']})" for other in found[1:4]]
    return InputError(field, None if missing else first["input"], problem, hint=". ".join(hints))


def _unknown_inside(tool: Tool, found: ErrorDetails, given: Mapping[str, object]) -> InputError:
    """A name that the object in an argument does not have: the error says which ones it has."""
    *way, name = (str(part) for part in found["loc"])
    known = list(_model_at(tool.ask, way).model_fields)
    hint = f"{_meant(name, known)}Known fields: {', '.join(known)}."
    problem = f"is not a field of {_place(found['loc'][:-1], given)}"
    return InputError(_place(found["loc"], given), found["input"], problem, hint=hint)


def _model_at(model: type[BaseModel], way: Sequence[str]) -> type[BaseModel]:
    """The model of the object that lies there; what is on the way and no field, as a number in a list, is passed by."""
    for part in way:
        field = model.model_fields.get(part)
        inner = () if field is None else (field.annotation, *get_args(field.annotation))
        model = next((one for one in inner if isinstance(one, type) and issubclass(one, BaseModel)), model)
    return model
