"""Write the manual pages, one for each command, from the parsers of the commands: `make man`.

python scripts/man.py [FOLDER]    FOLDER/man1/*.1; build/man without it
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from slurm_agent_tools import __version__
from slurm_agent_tools.cli.commands.command_tree import PROGRAM, KnownCommand, tree

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    ("slurm-agent.toml", "settings of a project; marks its top folder"),
    ("~/.config/slurm-agent-tools/settings.toml", "your settings: clusters, where Slurm's commands are"),
    ("/etc/slurm-agent-tools/policy.yaml", "the policy of the site"),
    ("~/.local/state/slurm-agent-tools", "ledger and decision log"),
)
EXITS = (
    ("0", "done"), ("1", "failed"), ("2", "usage, invalid input or settings, unknown job"),
    ("3", "blocked: a person must act"), ("4", "not finished or not confirmed yet: call again"),
)  # fmt: skip


def text(words: str) -> str:
    """Plain text as roff reads it."""
    line = " ".join(words.replace("\\", "\\e").replace("-", "\\-").split())
    return f"\\&{line}" if line.startswith((".", "'")) else line


def page(root: KnownCommand, command: KnownCommand) -> Iterator[str]:
    """The lines of one page: of the program, or of a command with all that is below it."""
    name = "-".join((PROGRAM, *command.path))
    yield f'.TH "{name.upper()}" 1 "" "{PROGRAM} {__version__}" "User commands"'
    yield ".SH NAME"
    yield f"{text(name)} \\- {text(command.about)}"
    yield ".SH SYNOPSIS"
    yield f".B {text(command.usage)}"
    if command.description:
        yield ".SH DESCRIPTION"
        yield text(command.description)
    if command is root:
        yield ".SH COMMANDS"
        for inner in command.inner:
            yield from entry(inner.path[-1], f"{inner.about}: {PROGRAM}-{inner.path[-1]}(1)")
    yield from taken(command, ".SH OPTIONS")
    for inner in [] if command is root else command.inner:
        yield f'.SH "{text(" ".join(inner.path)).upper()}"'
        yield f".B {text(inner.usage)}"
        yield ".PP"
        yield text(inner.about)
        yield from taken(inner, "")
    for title, rows in (("EXIT STATUS", EXITS), ("FILES", FILES)):
        yield f'.SH "{title}"'
        for word, about in rows:
            yield from entry(word, about)


def taken(command: KnownCommand, title: str) -> Iterator[str]:
    """Words and options."""
    if title and (command.words or command.options):
        yield title
    for word in command.words:
        yield from entry(word.name, word.about)
    for option in command.options:
        shown = ", ".join(option.names)
        yield from entry(f"{shown} {option.value}".strip(), option.about)


def entry(word: str, about: str) -> Iterator[str]:
    """A term and what it is."""
    yield ".TP"
    yield f".B {text(word)}"
    yield text(about) if about.strip() else "\\&"


def main() -> int:
    """Write every page."""
    parser = argparse.ArgumentParser(description="Write the manual pages")
    parser.add_argument("folder", nargs="?", default=str(ROOT / "build" / "man"))
    folder = Path(parser.parse_args().folder) / "man1"
    folder.mkdir(parents=True, exist_ok=True)
    root = tree()
    for command in (root, *root.inner):
        name = "-".join((PROGRAM, *command.path))
        (folder / f"{name}.1").write_text("\n".join([*page(root, command), ""]), encoding="utf-8")
    print(f"{len(root.inner) + 1} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
