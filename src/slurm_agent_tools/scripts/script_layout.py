"""Where the commands of a script stand, from the tree of its text: asked for a script in which something was found."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slurm_agent_tools.models.request import CommandKind, CommandRole, ScriptLayout, ShellCommand, ShellWord
from slurm_agent_tools.programs.program import TooLarge
from slurm_agent_tools.programs.shell_words import Node

_MAX_COMMANDS, _MAX_DEPTH = 20_000, 200

_KINDS: Mapping[str, CommandKind] = {
    "CallExpr": "call", "DeclClause": "declaration", "ArithmCmd": "arithmetic", "LetClause": "arithmetic",
    "TestClause": "test", "IfClause": "if", "ForClause": "for", "CaseClause": "case", "Block": "group",
    "Subshell": "subshell", "FuncDecl": "function", "TimeClause": "timed", "CoprocClause": "timed",
}  # fmt: skip
_JOINED: Mapping[str, CommandKind] = {"&&": "and", "||": "or", "|": "pipe", "|&": "pipe"}
Lists = Iterator[tuple[CommandRole, Sequence[Node]]]


def layout(tree: Node, data: bytes) -> ScriptLayout:
    """The layout of a text of which shfmt made `tree`, whose positions are offsets in `data`. Raises TooLarge."""
    lines = [0, *(at + 1 for at, sign in enumerate(data) if sign == 0x0A)]
    made = _Layout(data, lines, data.isascii())
    made.add(tree.get("Stmts", ()), "body", -1, 0)
    return ScriptLayout(tuple(made.commands))


@dataclass(slots=True)
class _Layout:
    data: bytes
    lines: list[int]
    ascii: bool
    commands: list[ShellCommand] = field(default_factory=list)
    branches: int = 0
    known: tuple[int, int] = (0, 0)  # an offset in bytes, and the same in characters

    def add(self, statements: Sequence[Node], role: CommandRole, parent: int, depth: int) -> None:
        """One list of statements, and all that is inside of them."""
        self.branches += 1
        branch = self.branches
        if depth > _MAX_DEPTH or len(self.commands) + len(statements) > _MAX_COMMANDS:
            raise TooLarge
        for statement in statements:
            index = len(self.commands)
            self.commands.append(self._command(statement, index, parent, role, branch))
            for inner_role, inner in _lists(statement):
                self.add(inner, inner_role, index, depth + 1)

    def _command(self, statement: Node, index: int, parent: int, role: CommandRole, branch: int) -> ShellCommand:
        command, redirects = statement.get("Cmd") or {}, statement.get("Redirs", ())
        ends = [command.get("End", 0), *(item["Word"]["End"] for item in redirects)]
        start, end = statement["Pos"], max([statement["Pos"], *ends])
        semicolon = statement.get("Semicolon")
        stop = max(end, semicolon + 1) if semicolon is not None else end
        named = command.get("Name") or (command.get("Loop") or {}).get("Name") or {}
        declared, heredocs = command.get("Type") == "DeclClause", (item.get("Hdoc") for item in redirects)
        return ShellCommand(
            index=index,
            parent=parent,
            role=role,
            branch=branch,
            kind=_kind(command),
            start=self._at(start),
            end=self._at(end),
            stop=self._at(stop),
            line=bisect_right(self.lines, start),
            name=named.get("Value", ""),
            words=tuple(self._word(word) for word in command.get("Args", ())) if not declared else (),
            assigns=tuple(self._word(word) for word in command.get("Args" if declared else "Assigns", ())),
            redirected=bool(redirects),
            negated=bool(statement.get("Negated")),
            background=bool(statement.get("Background")),
            heredocs=tuple((self._at(h["Pos"]), self._at(h["End"])) for h in heredocs if h),
        )

    def _word(self, word: Node) -> ShellWord:
        return ShellWord(self._at(word["Pos"]), self._at(word["End"]), self._text(word))

    def _text(self, word: Node) -> str:
        if "Parts" in word:
            return "".join(self._part(part) for part in word["Parts"])
        return self.data[word["Pos"] : word["End"]].decode("utf-8", "replace")

    def _part(self, part: Node) -> str:
        if part["Type"] == "DblQuoted":
            return "".join(self._part(inner) for inner in part.get("Parts", ()))
        if part["Type"] in {"Lit", "SglQuoted"}:
            return str(part.get("Value", ""))
        return self.data[part["Pos"] : part["End"]].decode("utf-8", "replace")

    def _at(self, offset: int) -> int:
        """The same place counted in characters; places mostly come in order."""
        if self.ascii:
            return offset
        before, count = self.known if self.known[0] <= offset else (0, 0)
        count += len(self.data[before:offset].decode("utf-8", "surrogateescape"))
        self.known = (offset, count)
        return count


def _kind(command: Node) -> CommandKind:
    kind = command.get("Type", "")
    if kind == "BinaryCmd":
        return _JOINED.get(command.get("Op", ""), "other")
    if kind == "WhileClause":
        return "until" if command.get("Until") else "while"
    return _KINDS.get(kind, "other")


def _lists(statement: Node) -> Lists:
    """The lists of statements directly inside one statement, in order of the text."""
    yield from _inside(statement.get("Cmd") or {})
    for redirect in statement.get("Redirs", ()):
        yield from _substituted(redirect.get("Word"))


def _inside(command: Node) -> Lists:
    match command.get("Type"):
        case "BinaryCmd":
            yield "left", [command["X"]]
            yield "right", [command["Y"]]
        case "IfClause":
            yield from _branches(command)
        case "WhileClause":
            yield "condition", command.get("Cond", ())
            yield "body", command.get("Do", ())
        case "ForClause":
            yield from _substituted(command.get("Loop"))
            yield "body", command.get("Do", ())
        case "CaseClause":
            yield from _substituted(command.get("Word"))
            for item in command.get("Items", ()):
                yield "body", item.get("Stmts", ())
        case "Block" | "Subshell":
            yield "body", command.get("Stmts", ())
        case "FuncDecl":
            yield "body", [command["Body"]]
        case "TimeClause" | "CoprocClause":
            yield "right", [command["Stmt"]] if command.get("Stmt") else []
        case _:
            yield from _substituted(command)


def _branches(command: Node) -> Lists:
    branch: Node | None = command
    while branch:
        yield "condition", branch.get("Cond", ())
        yield "body", branch.get("Then", ())
        branch = branch.get("Else")


def _substituted(node: object) -> Lists:
    """The statements of `$(...)` and `<(...)` in words, the outermost ones."""
    stack: list[Any] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += reversed(item)
        elif isinstance(item, dict):
            if item.get("Type") in {"CmdSubst", "ProcSubst"}:
                yield "inside", item.get("Stmts", ())
            else:
                stack += [value for value in reversed(item.values()) if isinstance(value, list | dict)]
