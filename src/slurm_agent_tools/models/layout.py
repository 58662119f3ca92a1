"""Where the commands of a shell script stand in its text, so that a correction can take out just one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

CommandKind = Literal[
    "call", "declaration", "arithmetic", "test", "pipe", "and", "or", "if", "while", "until", "for", "case",
    "group", "subshell", "function", "timed", "other",
]  # fmt: skip

CommandRole = Literal["body", "condition", "left", "right", "inside"]


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word or an assignment: characters `start` to `end` of the text; `text` without quotes where it is constant."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command: characters `start` to `end` of the text with its redirections, `stop` with the `;` or `&` behind.

    `index` is its place in the layout, `parent` that of the command around it (-1: none); commands of one `parent`
    and `branch` are one list. `heredocs` are the characters that its here-documents take, their last lines included.
    """

    index: int
    parent: int
    role: CommandRole
    branch: int
    kind: CommandKind
    start: int
    end: int
    stop: int
    line: int
    name: str = ""  # of a function, or of the variable of a loop
    words: tuple[ShellWord, ...] = ()
    assigns: tuple[ShellWord, ...] = ()
    redirected: bool = False
    negated: bool = False
    background: bool = False
    heredocs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptLayout:
    """The commands of a text in their order, each before those inside it."""

    commands: tuple[ShellCommand, ...] = ()

    def parent(self, command: ShellCommand) -> ShellCommand | None:
        """The command around this one."""
        return self.commands[command.parent] if command.parent >= 0 else None

    def around(self, command: ShellCommand) -> Iterator[ShellCommand]:
        """The commands around this one, from the nearest on."""
        outer = self.parent(command)
        while outer is not None:
            yield outer
            outer = self.parent(outer)

    def within(self, command: ShellCommand) -> Iterator[ShellCommand]:
        """The commands inside this one, at any depth: they follow it."""
        for inner in self.commands[command.index + 1 :]:
            if inner.start >= command.stop or inner.index == command.index:
                return
            yield inner

    def children(self, command: ShellCommand) -> list[ShellCommand]:
        """The commands directly inside this one."""
        return [inner for inner in self.within(command) if inner.parent == command.index]

    def at(self, line: int) -> list[ShellCommand]:
        """The commands that begin in this line."""
        return [command for command in self.commands if command.line == line]
