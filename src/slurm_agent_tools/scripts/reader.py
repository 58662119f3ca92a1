"""Drives the pure reading of scripts: has shell parsed, reads files of the project, tells where commands are."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.request import (
    CommandKind,
    CommandRole,
    ScriptLayout,
    ScriptReading,
    ShellCommand,
    ShellWord,
)
from slurm_agent_tools.scripts.analyse import Reading, analyse
from slurm_agent_tools.scripts.program import TooLarge
from slurm_agent_tools.scripts.reading_state import Answer, Need, NeedFile, NeedShell, as_encoded, for_bash
from slurm_agent_tools.scripts.shell_parser import aside, parse
from slurm_agent_tools.scripts.shell_words import Node

if TYPE_CHECKING:
    from slurm_agent_tools.transport.base import Files

MAX_FILE = 2**20


async def read_script(
    data: bytes,
    path: str,
    *,
    project: str,
    files: Files,
    arguments: Mapping[str, str] | None = None,
    args: Sequence[str] | None = None,
) -> ScriptReading:
    """What a batch script asks and does.

    `path` as it is shown, relative to `project`; `arguments` are options on sbatch's command line; `args` the script's
    own arguments, None where they are not known. Raises ConfigError when shfmt cannot be run.
    """
    reading = analyse(data, path, arguments, args=args)
    root = await files.real_path(project)
    need = _next(reading, None)
    parsed = False  # the script's own text: what cannot be read is not laid out either
    while not isinstance(need, ScriptReading):
        answer: Answer
        if isinstance(need, NeedShell):
            answer, size = await parse(need), len(need.text)
            parsed = parsed or ((need.file, need.line) == (path, 1) and isinstance(answer, dict))
        else:
            answer = await _read(need, root, files)
            size = len(answer or "")
        need = await aside(size, _next, reading, answer)
    script = replace(need, leads=await leads(need, root, files))
    found = any(finding.evidence.file == path for finding in script.findings)
    return await _laid_out(script, path) if found and parsed else script


def _next(reading: Reading, answer: Answer) -> Need | ScriptReading:
    """What the reading needs next, or what it came to."""
    try:
        return reading.send(answer)
    except StopIteration as end:
        return cast("ScriptReading", end.value)


ReadsScripts = Callable[..., Awaitable[ScriptReading]]
"""What reads a script as read_script does, with its arguments."""


async def leads(script: ScriptReading, root: str, files: Files) -> Mapping[str, str]:
    """See ScriptReading. A job's name counts where %x puts it; other patterns are known when the job is."""
    request, found = script.request, dict[str, str]()
    stated, below = request.find("input"), f"{root.rstrip('/')}/"
    work = posixpath.join(root, request.chdir or "")
    named = {"chdir": request.chdir, "output": request.output, "error": request.error}
    for option, value in {**named, "input": stated[-1].value if stated else None}.items():
        if not value or value == "/dev/null" or "\0" in value:
            continue
        name = request.name or posixpath.basename(script.path)
        filled = "%".join([part.replace("%x", name) for part in value.split("%%")])
        # Behind a backslash Slurm fills in nothing.
        place = posixpath.join(root if option == "chdir" else work, value if "\\" in value else filled)
        path, real = posixpath.normpath(place), await files.real_path(place)
        if path != real and f"{real}/".startswith(below):
            found[option] = posixpath.relpath(real, root)
        elif path != real and f"{path}/".startswith(below):  # a link outside the project is not for it to answer for
            found[option] = real
    return found


async def _read(need: NeedFile, root: str, files: Files) -> bytes | str | None:
    """A regular file inside the project, links resolved; None for anything else."""
    path = need.path if posixpath.isabs(need.path) else posixpath.join(root, need.path)
    try:
        real = await files.real_path(path)
        if not real.startswith(root.rstrip("/") + "/"):
            return None
        stat = await files.stat(real)
        if stat is None or stat.kind != "file":
            return None
        if stat.size > MAX_FILE:
            return "is too large to be read"
        data = await files.read(real, size=MAX_FILE + 1)
        return "is too large to be read" if data is not None and len(data) > MAX_FILE else data
    except (StorageError, ValueError):  # ValueError: a name that no file can have
        return "cannot be read"


# --- Where the commands of a script stand, for a script in which something was found ----------------------------------


_MAX_COMMANDS, _MAX_DEPTH = 20_000, 200

_KINDS: Mapping[str, CommandKind] = {
    "CallExpr": "call", "DeclClause": "declaration", "ArithmCmd": "arithmetic", "LetClause": "arithmetic",
    "TestClause": "test", "IfClause": "if", "ForClause": "for", "CaseClause": "case", "Block": "group",
    "Subshell": "subshell", "FuncDecl": "function", "TimeClause": "timed", "CoprocClause": "timed",
}  # fmt: skip
_JOINED: Mapping[str, CommandKind] = {"&&": "and", "||": "or", "|": "pipe", "|&": "pipe"}
Lists = Iterator[tuple[CommandRole, Sequence[Node]]]


async def _laid_out(reading: ScriptReading, path: str) -> ScriptReading:
    """The reading with the places of its commands, where the text can be parsed."""
    content = for_bash(as_encoded(reading.text))
    tree = await parse(NeedShell(content, "bash", path, 1, offsets=True))
    try:
        if not isinstance(tree, dict):
            return reading
        return replace(reading, layout=await aside(len(content), layout, tree, content))
    except TooLarge:
        return reading


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
