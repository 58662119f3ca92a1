"""The subcommand `completion`: what makes bash, zsh or fish complete commands, options and the values that are known.

The scripts are tables without a start of Python: a TAB is answered at once. Where nothing is known, names of files are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping

from slurm_agent_tools.api import printing
from slurm_agent_tools.cli.commands.command_tree import PROGRAM, CommandOption, KnownCommand, tree

_HOW = """\
bash: slurm-agent-tools completion bash > ~/.local/share/bash-completion/completions/slurm-agent-tools
zsh: slurm-agent-tools completion zsh > FOLDER/_slurm-agent-tools, in a FOLDER of fpath, before compinit
fish: slurm-agent-tools completion fish > ~/.config/fish/completions/slurm-agent-tools.fish"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of `completion`."""
    parser.description = "Print what makes a shell complete the commands and options of slurm-agent-tools."
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _HOW
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help="For which shell")


def run(args: argparse.Namespace) -> int:
    """Print the script; always 0."""
    printing.lines(_SCRIPTS[args.shell](tree()))
    return 0


def _offers(command: KnownCommand) -> Iterator[tuple[str, str]]:
    """The words that may come next, each with what it is: commands, choices of a word, options."""
    for inner in command.inner:
        yield inner.path[-1], inner.about
    for word in command.words:
        for choice in word.choices:
            yield choice, word.about
    for option in command.options:
        for name in option.names:
            yield name, option.about


def _valued(root: KnownCommand) -> Iterator[tuple[KnownCommand, CommandOption]]:
    """Options of which the value is one of a few."""
    for command in root.all():
        for option in command.options:
            if option.choices:
                yield command, option


def _plain(text: str, marks: Mapping[int, str]) -> str:
    """A help text as one line of a script's own text."""
    return " ".join(text.translate(marks).split())


# --- bash -------------------------------------------------------------------------------------------------------------


def _bash(root: KnownCommand) -> Iterator[str]:
    yield f"# bash completion of {PROGRAM}; made by `{PROGRAM} completion bash`"
    yield "_slurm_agent_tools() {"
    yield '    local word place="" offers="" number'
    yield "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}"
    yield "    for ((number = 1; number < COMP_CWORD; number++)); do"
    yield "        word=${COMP_WORDS[number]}"
    yield from _walk(root, "        ", 'place="${place:+$place }$word"')
    yield "    done"
    yield '    case "$place $before" in'
    for command, option in _valued(root):
        where = "|".join(f'"{" ".join(command.path)} {name}"' for name in option.names)
        yield f'        {where}) COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$current")); return ;;'
    yield "    esac"
    yield '    case "$place" in'
    for command in root.all():
        yield f'        "{" ".join(command.path)}") offers="{" ".join(name for name, _ in _offers(command))}" ;;'
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$offers" -- "$current"))'
    yield "}"
    yield f"complete -o default -F _slurm_agent_tools {PROGRAM}"


def _walk(root: KnownCommand, indent: str, step: str) -> Iterator[str]:
    """The lines that go from a place to the place behind a word, for bash and zsh."""
    steps = [f'"{" ".join(one.path[:-1])} {one.path[-1]}"' for one in root.all() if one.path]
    yield f'{indent}case "$place $word" in'
    yield f"{indent}    {'|'.join(steps)}) {step} ;;"
    yield f"{indent}esac"


# --- zsh --------------------------------------------------------------------------------------------------------------

_IN_ZSH = str.maketrans({"'": "", ":": "\\:", "`": "", "\\": ""})


def _zsh(root: KnownCommand) -> Iterator[str]:
    yield f"#compdef {PROGRAM}"
    yield f"# made by `{PROGRAM} completion zsh`"
    yield "_slurm_agent_tools() {"
    yield '    local word place="" number before=${words[CURRENT - 1]}'
    yield "    local -a offers"
    yield "    for ((number = 2; number < CURRENT; number++)); do"
    yield "        word=${words[number]}"
    yield from _walk(root, "        ", 'place="${place:+$place }$word"')
    yield "    done"
    yield '    case "$place $before" in'
    for command, option in _valued(root):
        where = "|".join(f'"{" ".join(command.path)} {name}"' for name in option.names)
        yield f"        {where}) compadd -- {' '.join(option.choices)}; return ;;"
    yield "    esac"
    yield '    case "$place" in'
    for command in root.all():
        offers = " ".join(f"'{name}:{_plain(about, _IN_ZSH)}'" for name, about in _offers(command))
        yield f'        "{" ".join(command.path)}") offers=({offers}) ;;'
    yield "    esac"
    yield "    _describe -t commands 'command or option' offers"
    for command in root.all():
        if command.inner:
            yield f'    [[ $place == "{" ".join(command.path)}" ]] && return'
    yield "    _files"
    yield "}"
    yield '_slurm_agent_tools "$@"'


# --- fish -------------------------------------------------------------------------------------------------------------

_IN_FISH = str.maketrans({"'": "", "\\": ""})


def _fish(root: KnownCommand) -> Iterator[str]:
    yield f"# fish completion of {PROGRAM}; made by `{PROGRAM} completion fish`"
    yield "function __slurm_agent_tools_at"
    yield "    set -l place"
    yield "    for word in (commandline -opc)[2..-1]"
    yield '        switch (string join " " -- $place $word)'
    steps = " ".join(f"'{' '.join(one.path)}'" for one in root.all() if one.path)
    yield f"            case {steps}"
    yield "                set place $place $word"
    yield "        end"
    yield "    end"
    yield '    test "$place" = "$argv"'
    yield "end"
    yield f"complete -c {PROGRAM} -n '__slurm_agent_tools_at' -f"
    for command in root.all():
        here = f"complete -c {PROGRAM} -n '__slurm_agent_tools_at {' '.join(command.path)}'"
        for inner in command.inner:
            yield f"{here} -f -a {inner.path[-1]} -d '{_plain(inner.about, _IN_FISH)}'"
        for word in filter(lambda one: one.choices, command.words):
            yield f"{here} -f -a '{' '.join(word.choices)}' -d '{_plain(word.about, _IN_FISH)}'"
        for option in command.options:
            yield f"{here} {_fish_option(option)}"


def _fish_option(option: CommandOption) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.value else ""
    return f"{' '.join(names)}{value} -d '{_plain(option.about, _IN_FISH)}'"


_SCRIPTS: Mapping[str, Callable[[KnownCommand], Iterable[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
