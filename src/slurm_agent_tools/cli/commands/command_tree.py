"""Every command with its words and options, read from the parsers themselves: for completion and manual pages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.api.catalogue import TOOLS
from slurm_agent_tools.cli.commands.tool_options import POSITIONAL, parser_of
from slurm_agent_tools.cli.main import COMMANDS, command_parser, summaries

PROGRAM = "slurm-agent-tools"


@dataclass(frozen=True, slots=True)
class CommandOption:
    """One option: its names, its help, and what stands behind it. `value` is empty for a flag."""

    names: tuple[str, ...]
    about: str
    value: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommandWord:
    """A word that stands without an option's name."""

    name: str
    about: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownCommand:
    """One command; `path` are the words that lead to it, none for the program itself."""

    path: tuple[str, ...]
    about: str
    usage: str
    description: str
    words: tuple[CommandWord, ...]
    options: tuple[CommandOption, ...]
    inner: tuple[KnownCommand, ...]

    def all(self) -> Iterator[KnownCommand]:
        """This one and all below it."""
        yield self
        for command in self.inner:
            yield from command.all()


def tree() -> KnownCommand:
    """The whole program."""
    told = summaries()
    inner = [_of_tool(tool.name, told) for tool in TOOLS]
    inner += [_read(command_parser(name), (name,), told.get(name, "")) for name in COMMANDS]
    own = (
        CommandOption(("--help", "-h"), "Show the commands", "", ()),
        CommandOption(("--version",), "Show the version", "", ()),
    )
    about = "guarded Slurm tools for coding agents, over MCP and as a command line"
    return KnownCommand((), about, f"{PROGRAM} COMMAND [ARGUMENTS]", "", (), own, tuple(inner))


def _of_tool(name: str, told: Mapping[str, str]) -> KnownCommand:
    tool = next(tool for tool in TOOLS if tool.name == name)
    found = _read(parser_of(tool, f"{PROGRAM} {name}"), (name,), told.get(name, tool.title))
    bare = (
        CommandWord(field, tool.ask.model_fields[field].description or "", ()) for field in POSITIONAL.get(name, ())
    )
    return KnownCommand(found.path, found.about, found.usage, found.description, tuple(bare), found.options, ())


def _read(parser: argparse.ArgumentParser, path: tuple[str, ...], about: str) -> KnownCommand:
    words, options = [], []
    inner: list[KnownCommand] = []
    for action in parser._actions:  # noqa: SLF001 - argparse tells of itself in no public way, and this name is as old
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            inner += _below(action, path)
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            options.append(_option(action))
        else:
            words.append(CommandWord(_named(action), action.help or "", _choices(action)))
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    return KnownCommand(path, about, usage, parser.description or "", tuple(words), tuple(options), tuple(inner))


def _below(
    action: argparse._SubParsersAction[argparse.ArgumentParser], path: tuple[str, ...]
) -> Iterator[KnownCommand]:
    told = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001 - as above
    for name, parser in action.choices.items():
        yield _read(parser, (*path, name), told.get(name, parser.description or ""))


def _option(action: argparse.Action) -> CommandOption:
    value = "" if action.nargs == 0 else _named(action)
    return CommandOption(tuple(action.option_strings), _filled(action), value, _choices(action))


def _filled(action: argparse.Action) -> str:
    """The help with what argparse puts into it."""
    return (action.help or "") % {**vars(action), "prog": PROGRAM} if action.help else ""


def _named(action: argparse.Action) -> str:
    shown = action.metavar if action.metavar is not None else action.dest
    return " ".join(shown) if isinstance(shown, tuple) else shown.upper() if action.metavar is None else shown


def _choices(action: argparse.Action) -> tuple[str, ...]:
    """What may stand there: choices, or a metavar that lists them, as the options of tools do."""
    if action.choices is not None:
        return tuple(str(choice) for choice in action.choices)
    shown = action.metavar if isinstance(action.metavar, str) else ""
    return tuple(shown[1:-1].split(",")) if shown.startswith("{") and shown.endswith("}") else ()


def suggestions(parser: argparse.ArgumentParser) -> Sequence[str]:
    """Every word and option that a parser knows, of those below it too."""
    found: list[str] = []
    for command in _read(parser, (), "").all():
        found += command.path[-1:]
        found += [choice for word in command.words for choice in word.choices]
        found += [name for option in command.options for name in (*option.names, *option.choices)]
    return found
