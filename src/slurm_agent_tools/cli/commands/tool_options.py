"""The options of one tool, made from the fields of its arguments, and what their words are worth."""

from __future__ import annotations

import argparse
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from slurm_agent_tools.api.catalogue import Tool
from slurm_agent_tools.cli.main import Parser
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.text.bounded_documents import DocumentError, json_value

_MAX_FILE = 2**20

# Stands before a word with a dash that is no option here: argparse takes each such word for one. No word can hold it.
NO_OPTION = "\0"

FLAG = {"action": "store_const", "const": "true"}

_SEVERAL = {"action": "extend", "nargs": "+"}

_AFTER = (
    "--args takes each following word up to the next option above; all words after -- go to the script as they are:"
    " job.sh --dry-run -- --lr 0.1"
)

# Which fields may be given without their option's name, in this order.
POSITIONAL: Mapping[str, tuple[str, ...]] = {
    "get_status": ("sections",),
    "validate_config": ("config_path",),
    "submit_job": ("script",),
    "wait_for_job": ("job_id",),
    "analyze_log": ("job_id",),
    "save_result": ("name",),
    "compare_results": ("baseline", "target"),
    "cancel_job": ("job_id",),
    "sync_files": ("direction",),
    "choose_backend": ("script",),
    "get_campaign": ("name",),
    "advance_campaign": ("name",),
}


class ToolOption(NamedTuple):
    """The field that an option sets, and what argparse is told of it beside that."""

    field: str
    how: Mapping[str, Any]


# Old spellings, and how each differs from the option of the same field.
_ALIASES: Mapping[str, Mapping[str, ToolOption]] = {
    "get_status": {
        "--section": ToolOption("sections", {"help": "The same as --sections"}),
        "--no-cache": ToolOption("refresh", {"help": "The same as --refresh"}),
    },
    "validate_config": {
        "--config": ToolOption("config_path", {"help": "The same as --config-path"}),
        "--path": ToolOption("config_path", {"help": "The same as --config-path"}),
    },
    "wait_for_job": {
        "--timeout": ToolOption("timeout_seconds", {"help": "The same as --timeout-seconds"}),
        "--no-wait": ToolOption("timeout_seconds", {**FLAG, "const": "0", "help": "Look once: --timeout-seconds 0"}),
    },
    "analyze_log": {"--recent-errors": ToolOption("recent_errors", {"nargs": "?", "const": "5"})},
}

_FACE = {
    "--json": ToolOption("", {**FLAG, "help": "Print one JSON document"}),
    "--text": ToolOption("", {**FLAG, "help": "Print text for people"}),
    "--help": ToolOption("", {**FLAG, "help": "Show this help"}),
}


def options(tool: Tool) -> dict[str, ToolOption]:
    """Every option of the tool by its name: one per field, then the old spellings, then those of every command."""
    own = {"--" + name.replace("_", "-"): ToolOption(name, _how(info)) for name, info in tool.ask.model_fields.items()}
    for name, (field, how) in _ALIASES.get(tool.name, {}).items():
        usual = {} if "action" in how else _how(tool.ask.model_fields[field])
        own[name] = ToolOption(field, {**usual, **how})
    return own | _FACE


def usage(tool: Tool, command: str) -> str:
    """The help text of one tool."""
    return parser_of(tool, command).format_help()


def parser_of(tool: Tool, command: str) -> Parser:
    """What reads the options of a tool, `command` being how it was called."""
    bare = "".join(f"[{field.upper()}] " for field in POSITIONAL.get(tool.name, ()))
    made = Parser(
        prog=command,
        usage=f"{command} {bare}[OPTIONS]",
        description=tool.description,
        epilog=_AFTER if "args" in tool.ask.model_fields else None,
        argument_default=argparse.SUPPRESS,
        add_help=False,
        allow_abbrev=False,
        exit_on_error=False,
    )
    for name, (field, how) in options(tool).items():
        made.add_argument(name, dest=field, **how)
    return made


def _how(info: FieldInfo) -> dict[str, Any]:
    """What argparse is told of a field: its help, and what follows the option's name."""
    about: dict[str, Any] = {"help": (info.description or "").replace("%", "%%")}
    first, *others = _arms(info)
    if first is bool:
        return {**about, **FLAG}
    about["type"] = plain_word
    if get_origin(first) is list:
        return {**about, **_SEVERAL, "metavar": _choices(get_args(first)[0]) or "WORD"}
    if _holds_pairs(info):
        return {**about, **_SEVERAL, "metavar": "NAME=VALUE"}
    return {**about, "metavar": "N" if first in {int, float} and not others else _choices(first) or "TEXT"}


def _choices(kind: Any) -> str:
    return "{" + ",".join(get_args(kind)) + "}" if get_origin(kind) is Literal else ""


def _arms(info: FieldInfo) -> tuple[Any, ...]:
    """The types a field may have, None left out."""
    union = get_origin(info.annotation) in (Union, types.UnionType)
    return tuple(arm for arm in (get_args(info.annotation) if union else (info.annotation,)) if arm is not type(None))


def _holds_pairs(info: FieldInfo) -> bool:
    """True for a mapping or a model. What may also be a path, as save_result's config, is one word."""
    first, *others = _arms(info)
    return not others and (get_origin(first) is dict or (isinstance(first, type) and issubclass(first, BaseModel)))


def plain_word(text: str) -> str:
    """A word as it was typed."""
    return text.removeprefix(NO_OPTION)


# --- the value of a field ---------------------------------------------------------------------------------------------


def value_of(field: str, info: FieldInfo, given: Any) -> object:
    """What the words of a field stand for, unchecked: a list, a mapping, or text. Raises InputError."""
    first = _arms(info)[0]
    if get_origin(first) is list and _choices(get_args(first)[0]):
        return [part for word in given for part in word.split(",") if part]
    kind = get_args(first)[0] if get_origin(first) is list else None
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [one for word in given for one in _several(field, word)]
    if _holds_pairs(info):
        return _mapping(field, given, next(iter(getattr(first, "model_fields", ())), None))
    return given


def _mapping(field: str, words: list[str], first: str | None) -> object:
    """JSON text, `key=value` words, or the path of a JSON file; a bare word is the value of the key `first`."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _json(field, words[0])
    if all("=" in word for word in words):
        return {key: _scalar(value) for key, _, value in (word.partition("=") for word in words)}
    if len(words) == 1:
        return {first: words[0]} if first else _json(field, _text_of(field, words[0]))
    raise InputError(field, " ".join(words), "is neither JSON, nor key=value words, nor a JSON file")


def _several(field: str, word: str) -> list[object]:
    """Mappings: JSON text of one or of a list, or the path of a JSON file."""
    found = _json(field, word if word.lstrip().startswith(("[", "{")) else _text_of(field, word))
    return found if isinstance(found, list) else [found]


def _json(field: str, text: str) -> object:
    try:
        return json_value(text)
    except DocumentError as error:
        raise InputError(field, text, str(error), hint=error.mend) from error


def _text_of(field: str, path: str) -> str:
    try:
        return safe_open.read(Path(path), _MAX_FILE).decode()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            field, path, f"is no JSON file that can be read: {why}", hint="Give JSON, key=value words or a file."
        ) from error


def _scalar(text: str) -> object:
    """A number, true, false or null as JSON has them, anything else as text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, (dict, list, str)) else value
