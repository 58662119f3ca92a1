"""The subcommand of one tool: words to arguments, one call, one answer, one exit code."""

from __future__ import annotations

import difflib
import json
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import anyio
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from slurm_agent_tools.api import printing, serialize
from slurm_agent_tools.api.catalogue import Tool
from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.cli.terminal import at_terminal
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.settings import Settings, load
from slurm_agent_tools.text import log_events

Kind = Literal["flag", "text", "words", "choices", "mapping"]

_MAX_FILE = 2**20

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


@dataclass(frozen=True, slots=True)
class ToolOption:
    """One option string: the field it sets, what it takes, and the word it stands for when it takes none."""

    name: str
    field: str
    kind: Kind
    about: str = ""
    stands_for: str | None = None


_ALIASES: Mapping[str, tuple[ToolOption, ...]] = {
    "get_status": (
        ToolOption("--section", "sections", "choices", "The same as --sections"),
        ToolOption("--no-cache", "refresh", "flag", "The same as --refresh"),
    ),
    "validate_config": (
        ToolOption("--config", "config_path", "text", "The same as --config-path"),
        ToolOption("--path", "config_path", "text", "The same as --config-path"),
    ),
    "wait_for_job": (
        ToolOption("--timeout", "timeout_seconds", "text", "The same as --timeout-seconds"),
        ToolOption("--no-wait", "timeout_seconds", "flag", "Look once: --timeout-seconds 0", "0"),
    ),
    "analyze_log": (ToolOption("--recent-errors", "recent_errors", "text", "The newest N failures (5)", "5"),),
}

FACE = (
    ToolOption("--json", "", "flag", "Print one JSON document"),
    ToolOption("--text", "", "flag", "Print text for people"),
    ToolOption("--help", "", "flag", "Show this help"),
)


def options(tool: Tool) -> dict[str, ToolOption]:
    """Every option of the tool by its name: one per field, then the old spellings, then those of every command."""
    own = [_option(name, info) for name, info in tool.ask.model_fields.items()]
    return {option.name: option for option in (*own, *_ALIASES.get(tool.name, ()), *FACE)}


def read(tool: Tool, words: Sequence[str]) -> dict[str, object]:
    """The arguments that the words give, unchecked but for their spelling. Raises InputError.

    Words after `--args` up to the next option of the tool, and all words after `--`, go to the script as they are.
    """
    given = _Given(tool)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            given.after_dashes(rest)
            break
        if word.startswith("-") and len(word) > 1:
            given.option(word, rest)
        else:
            given.bare(word)
    return given.arguments()


def usage(tool: Tool, command: str) -> str:
    """The help text of one tool."""
    import argparse  # noqa: PLC0415 - only for help

    parser = argparse.ArgumentParser(prog=command, description=tool.description, add_help=False)
    for field in POSITIONAL.get(tool.name, ()):
        parser.add_argument(field.upper(), nargs="?", help=tool.ask.model_fields[field].description)
    for option in options(tool).values():
        takes = _metavar(option, tool.ask.model_fields.get(option.field))
        shown: dict[str, Any] = {"action": "store_true"} if option.kind == "flag" else {"metavar": takes}
        parser.add_argument(option.name, dest=option.name, help=option.about.replace("%", "%%"), **shown)
    if "args" in tool.ask.model_fields:
        parser.epilog = (
            "--args takes each following word up to the next option above; all words after -- go to the script as"
            " they are: job.sh --dry-run -- --lr 0.1"
        )
    return parser.format_help()


def _metavar(option: ToolOption, info: FieldInfo | None) -> str:
    """What an option takes: its choices, N for a number, else its kind."""
    arms = () if info is None else _arms(info)
    if option.kind == "choices":
        return "{" + ",".join(get_args(get_args(arms[0])[0])) + "}"
    if len(arms) == 1 and get_origin(arms[0]) is Literal:
        return "{" + ",".join(get_args(arms[0])) + "}"
    return "N" if arms in {(int,), (float,)} else option.kind.upper()


class _Given:
    """What has been read so far."""

    def __init__(self, tool: Tool) -> None:
        self._tool, self._known = tool, options(tool)
        self._open = list(POSITIONAL.get(tool.name, ()))
        self._values: dict[str, list[str]] = {}
        self._kinds = {name: _kind(info) for name, info in tool.ask.model_fields.items()}

    def option(self, word: str, rest: list[str]) -> None:
        name, equals, value = word.partition("=")
        option = self._find(name)
        if option is None:
            self._unknown(word, name)
        elif not option.field:
            return
        elif option.kind == "flag":
            self._set(option.field, [value if equals else option.stands_for or "true"], alone=True)
        elif equals:
            self._set(option.field, [value], alone=option.kind == "text")
        elif option.kind == "text":
            self._set(option.field, [self._next(option, rest)], alone=True)
        else:
            self._set(option.field, self._run(option, rest), alone=False)

    def bare(self, word: str) -> None:
        if not self._open:
            raise InputError(
                "arguments", word, f"is one word too many for {self._tool.name}", hint=_known_hint(self._known)
            )
        field = self._open[0]
        if self._kinds[field] not in {"words", "choices"}:
            self._open.pop(0)
            if field in self._values:
                raise InputError(field, word, f"is given twice, first as {self._values[field][0]!r}")
        self._set(field, [word], alone=False)

    def after_dashes(self, rest: list[str]) -> None:
        if "args" in self._tool.ask.model_fields:
            self._set("args", rest, alone=False)
        else:
            for word in rest:
                self.bare(word)

    def arguments(self) -> dict[str, object]:
        return {
            field: _value(field, self._kinds[field], self._tool.ask.model_fields[field], words)
            for field, words in self._values.items()
        }

    def _find(self, name: str) -> ToolOption | None:
        return self._known.get("--help" if name == "-h" else name.replace("_", "-"))

    def _unknown(self, word: str, name: str) -> None:
        known = {option.lstrip("-"): option for option in self._known}  # two dashes are no likeness
        near = [known[found] for found in difflib.get_close_matches(name.lstrip("-"), known, n=1, cutoff=0.75)]
        if not near and self._open == ["job_id"] and "job_id" not in self._values:
            self.bare(word)  # `-1` and `--user=x` are meant as job ids: let the check of job_id say what is wrong
            return
        meant = f"Did you mean {near[0]}? " if near else ""
        raise InputError(
            "arguments", word, f"is not an option of {self._tool.name}", hint=meant + _known_hint(self._known)
        )

    def _next(self, option: ToolOption, rest: list[str]) -> str:
        """The option's value; a value may begin with a dash as long as it is no option itself."""
        free = bool(rest) and rest[0] != "--" and self._find(rest[0].partition("=")[0]) is None
        if free and (option.stands_for is None or not rest[0].startswith("-")):
            return rest.pop(0)
        if option.stands_for is not None:
            return option.stands_for
        raise InputError(option.field, None, f"{option.name} needs a value", hint=option.about)

    def _run(self, option: ToolOption, rest: list[str]) -> list[str]:
        words: list[str] = []
        while rest and rest[0] != "--" and self._find(rest[0].partition("=")[0]) is None:
            words.append(rest.pop(0))
        if not words:
            raise InputError(option.field, None, f"{option.name} needs a value", hint=option.about)
        return words

    def _set(self, field: str, words: list[str], *, alone: bool) -> None:
        self._values[field] = words if alone else self._values.get(field, []) + words


def _option(name: str, info: FieldInfo) -> ToolOption:
    return ToolOption("--" + name.replace("_", "-"), name, _kind(info), info.description or "")


def _arms(info: FieldInfo) -> tuple[Any, ...]:
    """The types a field may have, None left out."""
    union = get_origin(info.annotation) in (Union, types.UnionType)
    return tuple(arm for arm in (get_args(info.annotation) if union else (info.annotation,)) if arm is not type(None))


def _kind(info: FieldInfo) -> Kind:
    arms = _arms(info)
    if arms == (bool,):
        return "flag"
    if len(arms) != 1:  # save_result's config: a mapping or a path, told apart by the first character
        return "text"
    if get_origin(arms[0]) is list:
        return "choices" if get_origin(get_args(arms[0])[0]) is Literal else "words"
    mapping = get_origin(arms[0]) is dict or (isinstance(arms[0], type) and issubclass(arms[0], BaseModel))
    return "mapping" if mapping else "text"


def _value(field: str, kind: Kind, info: FieldInfo, words: list[str]) -> object:
    if kind == "choices":
        return [part for word in words for part in word.split(",") if part]
    if kind == "words":
        return words
    if kind == "mapping":
        first = next(iter(_arms(info)[0].model_fields), None) if hasattr(_arms(info)[0], "model_fields") else None
        return _mapping(field, words, first)
    return words[-1]


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
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(field, text, f"is not JSON: {error}") from error


def _text_of(field: str, path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            raise InputError(field, path, "is a file above 1 MiB")
        return data.decode()
    except (OSError, ValueError) as error:
        raise InputError(
            field, path, f"is no JSON file that can be read: {error}", hint="Give JSON, key=value words or a file."
        ) from error


def _scalar(text: str) -> object:
    """A number, true, false or null as JSON has them, anything else as text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, (dict, list, str)) else value


def _known_hint(known: Mapping[str, ToolOption]) -> str:
    return f"Known options: {', '.join(known)}."


def wants_help(words: Sequence[str]) -> bool:
    """True when -h or --help stands before any `--`."""
    own = words[: list(words).index("--")] if "--" in words else words
    return "-h" in own or "--help" in own


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
        raise InputError("command", name, "is not a command", hint="slurm-agent-tools --help lists them.")
    if wants_help(words):
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
        return serialize.document(reply)
    finally:
        with anyio.CancelScope(shield=True):
            await toolbox.close()


async def _tell(done: float, total: float | None, message: str) -> None:
    """Progress for a person at a terminal."""
    share = f"{done:.0f}/{total:.0f} s  " if total else ""
    printing.note(f"{share}{message}")
