"""The subcommand of one tool: words to arguments, one call, one answer, one exit code."""

from __future__ import annotations

import argparse
import json
import sys
import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import anyio
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from slurm_agent_tools.api import brief, printing, serialize
from slurm_agent_tools.api.catalogue import Tool
from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.cli.main import COMMANDS, Parser
from slurm_agent_tools.cli.terminal import at_terminal
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.settings import Settings, load
from slurm_agent_tools.text import log_events, safe_open
from slurm_agent_tools.text.bounded_documents import DocumentError, json_value

_MAX_FILE = 2**20

# Stands before a word with a dash that is no option here: argparse takes each such word for one. No word can hold it.
_NO_OPTION = "\0"

_FLAG = {"action": "store_const", "const": "true"}

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
        "--no-wait": ToolOption("timeout_seconds", {**_FLAG, "const": "0", "help": "Look once: --timeout-seconds 0"}),
    },
    "analyze_log": {"--recent-errors": ToolOption("recent_errors", {"nargs": "?", "const": "5"})},
}

_FACE = {
    "--json": ToolOption("", {**_FLAG, "help": "Print one JSON document"}),
    "--text": ToolOption("", {**_FLAG, "help": "Print text for people"}),
    "--help": ToolOption("", {**_FLAG, "help": "Show this help"}),
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
    return _parser(tool, command).format_help()


def read(tool: Tool, words: Sequence[str]) -> dict[str, object]:
    """The arguments that the words give, unchecked but for their spelling. Raises InputError.

    Words after `--args` up to the next option of the tool, and all words after `--`, go to the script as they are.
    """
    known = options(tool)
    own, rest = parted(words)
    flags, plain = _spelled(own, known)
    try:
        found, bare = _parser(tool, tool.name).parse_known_args(plain)
    except argparse.ArgumentError as error:
        option = known[str(error.argument_name)]
        hint = str(option.how["help"]).replace("%%", "%")
        raise InputError(option.field, None, f"{error.argument_name} needs a value", hint=hint) from error
    given = {name: value for name, value in {**vars(found), **flags}.items() if name}
    if rest and "args" in tool.ask.model_fields:
        given["args"] = [*given.get("args", ()), *rest]
        rest = []
    _place(tool, [*(_meant(word, tool, known, given) for word in bare), *rest], given)
    return {field: _value(field, tool.ask.model_fields[field], value) for field, value in given.items()}


def parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before and behind the first `--`."""
    end = words.index("--") if "--" in words else len(words)
    return list(words[:end]), list(words[end + 1 :])


def _parser(tool: Tool, command: str) -> Parser:
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
        return {**about, **_FLAG}
    about["type"] = _word
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


def _word(text: str) -> str:
    return text.removeprefix(_NO_OPTION)


def _spelled(words: Sequence[str], known: Mapping[str, ToolOption]) -> tuple[dict[str, str], list[str]]:
    """The words as argparse reads them, and what it does not read: flags with a value, such as --dry-run=false."""
    flags: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        if name not in known:
            plain.append(f"{_NO_OPTION}{word}" if word.startswith("-") and len(word) > 1 else word)
        elif known[name].how.get("action") == _FLAG["action"]:
            plain.append(name)
            flags.pop(known[name].field, None)
            flags |= {known[name].field: value} if equals else {}
        else:
            plain.append(f"{name}={_NO_OPTION}{value}" if equals else name)
    return flags, plain


def _meant(word: str, tool: Tool, known: Mapping[str, ToolOption], given: Mapping[str, Any]) -> str:
    """A bare word. Raises InputError for one that was meant as an option.

    `-1` and `--user=x` are taken for job ids where one may follow: the check of job_id says what is wrong with them.
    """
    if not word.startswith(_NO_OPTION):
        return word
    import difflib  # noqa: PLC0415 - for an error alone

    word = _word(word)
    bare = {name.lstrip("-"): name for name in known}  # two dashes are no likeness
    near = difflib.get_close_matches(word.partition("=")[0].lstrip("-"), bare, n=1, cutoff=0.75)
    if not near and POSITIONAL.get(tool.name) == ("job_id",) and "job_id" not in given:
        return word
    hint = f"Did you mean {bare[near[0]]}? " if near else ""
    raise InputError("arguments", word, f"is not an option of {tool.name}", hint=hint + _known(tool))


def _known(tool: Tool) -> str:
    return f"Known options: {', '.join(options(tool))}."


def _place(tool: Tool, bare: Sequence[str], given: dict[str, Any]) -> None:
    """Give the bare words to the fields that may go without a name. Raises InputError."""
    fields = POSITIONAL.get(tool.name, ())
    if bare and fields == ("sections",):
        given["sections"] = [*given.get("sections", ()), *bare]
        return
    if len(bare) > len(fields):
        raise InputError("arguments", bare[len(fields)], f"is one word too many for {tool.name}", hint=_known(tool))
    for field, word in zip(fields, bare, strict=False):
        if field in given:
            raise InputError(field, word, f"is given twice, first as {given[field]!r}")
        given[field] = word


def _value(field: str, info: FieldInfo, given: Any) -> object:
    first = _arms(info)[0]
    if get_origin(first) is list and _choices(get_args(first)[0]):
        return [part for word in given for part in word.split(",") if part]
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


# --- The subcommand of one tool: words to arguments, one call, one answer, one exit code ------------------------------


DONE, FAILED, INVALID, BLOCKED, AGAIN = 0, 1, 2, 3, 4

_BY_STATUS = {
    "blocked": BLOCKED,
    "unconfirmed": AGAIN,
    "running": AGAIN,
    "pending": AGAIN,
    "unknown": AGAIN,
    "no_log": FAILED,
    "partial": FAILED,
    "invalid": INVALID,
}


def run(name: str, words: Sequence[str], as_json: bool) -> int:
    """Call the tool and print its answer; returns the exit code. Raises AgentToolsError."""
    tool = serialize.BY_NAME.get(name)
    if tool is None:
        alike = get_close_matches(name, [*COMMANDS, *serialize.BY_NAME], n=1)
        meant = f"Did you mean {alike[0]}? " if alike else ""
        raise InputError("command", name, "is not a command", hint=f"{meant}slurm-agent-tools --help lists them.")
    if {"-h", "--help"} & {*parted(words)[0]}:
        printing.lines([usage(tool, f"slurm-agent-tools {name}")])
        return DONE
    ask = serialize.parse(tool, read(tool, words))
    settings = load()
    log_events.configure(settings.log_level)
    body = anyio.run(_call, settings, name, ask)
    printing.document(body, as_json=as_json)
    return _BY_STATUS.get(body["status"], DONE)


async def _call(settings: Settings, name: str, ask: ToolArguments) -> serialize.Document:
    toolbox = Toolbox.open(settings)
    try:
        reply = await toolbox.call(
            name, ask, caller=Caller(), progress=_tell if sys.stderr.isatty() else None, asked=at_terminal
        )
        return brief.answer(reply, ask)
    finally:
        with anyio.CancelScope(shield=True):
            await toolbox.close()


async def _tell(done: float, total: float | None, message: str) -> None:
    """Progress for a person at a terminal."""
    share = f"{done:.0f}/{total:.0f} s  " if total else ""
    printing.note(f"{share}{message}")
