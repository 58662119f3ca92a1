"""The subcommand of one tool: words to arguments, one call, one answer, one exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from slurm_agent_tools.api import brief, printing, serialize
from slurm_agent_tools.api.catalogue import Tool
from slurm_agent_tools.api.toolbox import Toolbox, closed_after
from slurm_agent_tools.cli.commands.tool_options import (
    FLAG,
    NO_OPTION,
    POSITIONAL,
    ToolOption,
    options,
    parser_of,
    plain_word,
    usage,
    value_of,
)
from slurm_agent_tools.cli.main import COMMANDS
from slurm_agent_tools.cli.terminal import at_terminal
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.settings import Settings, load
from slurm_agent_tools.text import log_events


def read(tool: Tool, words: Sequence[str]) -> dict[str, object]:
    """The arguments that the words give, unchecked but for their spelling. Raises InputError.

    Words after `--args` up to the next option of the tool, and all words after `--`, go to the script as they are.
    """
    known = options(tool)
    own, rest = parted(words)
    flags, plain = _spelled(own, known)
    try:
        found, bare = parser_of(tool, tool.name).parse_known_args(plain)
    except argparse.ArgumentError as error:
        option = known[str(error.argument_name)]
        hint = str(option.how["help"]).replace("%%", "%")
        raise InputError(option.field, None, f"{error.argument_name} needs a value", hint=hint) from error
    given = {name: value for name, value in {**vars(found), **flags}.items() if name}
    if rest and "args" in tool.ask.model_fields:
        given["args"] = [*given.get("args", ()), *rest]
        rest = []
    _place(tool, [*(_meant(word, tool, known, given) for word in bare), *rest], given)
    return {field: value_of(field, tool.ask.model_fields[field], value) for field, value in given.items()}


def parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before and behind the first `--`."""
    end = words.index("--") if "--" in words else len(words)
    return list(words[:end]), list(words[end + 1 :])


def _spelled(words: Sequence[str], known: Mapping[str, ToolOption]) -> tuple[dict[str, str], list[str]]:
    """The words as argparse reads them, and what it does not read: flags with a value, such as --dry-run=false."""
    flags: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        if name not in known:
            plain.append(f"{NO_OPTION}{word}" if word.startswith("-") and len(word) > 1 else word)
        elif known[name].how.get("action") == FLAG["action"]:
            plain.append(name)
            flags.pop(known[name].field, None)
            flags |= {known[name].field: value} if equals else {}
        else:
            plain.append(f"{name}={NO_OPTION}{value}" if equals else name)
    return flags, plain


def _meant(word: str, tool: Tool, known: Mapping[str, ToolOption], given: Mapping[str, Any]) -> str:
    """A bare word. Raises InputError for one that was meant as an option.

    `-1` and `--user=x` are taken for job ids where one may follow: the check of job_id says what is wrong with them.
    """
    if not word.startswith(NO_OPTION):
        return word
    import difflib  # noqa: PLC0415 - for an error alone

    word = plain_word(word)
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


# --- The subcommand of one tool: words to arguments, one call, one answer, one exit code ------------------------------


DONE, FAILED, INVALID, BLOCKED, AGAIN = 0, 1, 2, 3, 4

_BY_STATUS = {
    "blocked": BLOCKED,
    "ask_person": BLOCKED,
    "needs_decision": BLOCKED,
    "none_fits": FAILED,
    "infeasible": FAILED,
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
        from difflib import get_close_matches  # noqa: PLC0415 - for an error alone

        alike = get_close_matches(name, [*COMMANDS, *serialize.BY_NAME], n=1)
        meant = f"Did you mean {alike[0]}? " if alike else ""
        raise InputError("command", name, "is not a command", hint=f"{meant}slurm-agent-tools --help lists them.")
    if {"-h", "--help"} & {*parted(words)[0]}:
        printing.lines([usage(tool, f"slurm-agent-tools {name}")])
        return DONE
    ask = serialize.parse(tool, read(tool, words))
    settings = load()
    settings.need_toolset(tool.toolset, name)
    log_events.configure(settings.log_level)
    body = anyio.run(_call, settings, name, ask)
    printing.document(body, as_json=as_json)
    if (name, body["status"]) == ("sync_files", "partial"):
        return AGAIN
    if name == "get_campaign":
        return DONE
    return _BY_STATUS.get(body["status"], DONE)


async def _call(settings: Settings, name: str, ask: ToolArguments) -> serialize.Document:
    async with closed_after(Toolbox.open(settings)) as toolbox:
        reply = await toolbox.call(
            name, ask, caller=Caller(), progress=_tell if sys.stderr.isatty() else None, asked=at_terminal
        )
        return brief.answer(reply, ask)


async def _tell(done: float, total: float | None, message: str) -> None:
    """Progress for a person at a terminal."""
    share = f"{done:.0f}/{total:.0f} s  " if total else ""
    printing.note(f"{share}{message}")
