"""What a batch script asks and does, as a generator that asks for parse trees and files and touches neither itself."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace

from slurm_agent_tools.jobscript.directives import read_directives
from slurm_agent_tools.jobscript.python import read_python
from slurm_agent_tools.jobscript.request import arguments_to_directives, effective
from slurm_agent_tools.jobscript.shell import Program, read_shell
from slurm_agent_tools.jobscript.words import UNKNOWN, Node
from slurm_agent_tools.model import Evidence, Finding, ScriptReading

MAX_DEPTH = 4
MAX_TEXTS = 60
_SHELLS = ("sh", "bash", "dash", "ksh", "mksh")


@dataclass(frozen=True, slots=True)
class NeedShell:
    """Parse this shell text; the answer is its tree, or the text of the parse error."""

    text: bytes
    dialect: str


@dataclass(frozen=True, slots=True)
class NeedFile:
    """Read this file of the project; the answer is its bytes, or None when it is not one."""

    path: str


Answer = Node | str | bytes | None
Reading = Generator[NeedShell | NeedFile, Answer, ScriptReading]


@dataclass(frozen=True, slots=True)
class _Text:
    language: str
    content: str
    file: str
    line: int  # of the text's first line in its file
    depth: int


@dataclass(slots=True)
class _State:
    findings: list[Finding] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    written: dict[str, tuple[str, int]] = field(default_factory=dict)
    seen: set[tuple[str, str]] = field(default_factory=set)
    todo: list[_Text] = field(default_factory=list)
    wanted: list[tuple[str, str, _Text]] = field(default_factory=list)


def analyse(data: bytes, path: str, arguments: Mapping[str, str] | None = None) -> Reading:
    """Read one batch script, with the options that come on the command line."""
    header = read_directives(data, path)
    request = effective([*header.directives, *arguments_to_directives(arguments or {})])
    request = replace(
        request,
        problems=(*header.problems, *request.problems),
        components=header.components,
        interpreter=header.interpreter,
        justification=header.justification,
    )
    text = data.decode("utf-8", "surrogateescape")
    state = _State()
    if len(data) <= 4 * 2**20 and b"\0" not in data:
        state.todo.append(_Text(interpreter(header.interpreter or ""), text, path, 1, 0))
        yield from _read_all(state)
    return ScriptReading(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        text=text,
        request=request,
        findings=tuple(dict.fromkeys(state.findings)),
        files=state.files,
    )


def interpreter(line: str) -> str:
    """`shell`, `python`, or the name of something that is not read."""
    words = [word.rpartition("/")[2] for word in line.split()]
    name = next((word for word in words if word != "env" and not word.startswith("-")), "")
    if name in _SHELLS:
        return "shell"
    return "python" if re.fullmatch(r"python[\d.]*", name) else name or "nothing"


def _read_all(state: _State) -> Generator[NeedShell | NeedFile, Answer, None]:
    for _ in range(MAX_TEXTS):
        if state.todo:
            yield from _read_text(state, state.todo.pop(0))
        elif state.wanted:
            yield from _follow(state, *state.wanted.pop(0))
        else:
            return
    state.findings.append(
        Finding("opaque-code", "it runs more texts than are followed", Evidence("", 0, ""), "approve")
    )


def _read_text(state: _State, text: _Text) -> Generator[NeedShell | NeedFile, Answer, None]:
    if (text.language, text.content) in state.seen:
        return
    state.seen.add((text.language, text.content))
    if text.language == "python":
        program = read_python(text.content, text.line)
        _collect(state, program, text, offset=0)
        return
    if text.language != "shell":
        _scan(state, text)
        return
    tree = yield NeedShell(text.content.encode("utf-8", "surrogateescape"), "bash")
    if not isinstance(tree, dict):
        why = f"it cannot be parsed as a shell script: {tree!s}"
        state.findings.append(Finding("opaque-code", why, _evidence(text, 1), "approve"))
        return
    _collect(state, read_shell(tree, posixpath.basename(text.file)), text, offset=text.line - 1)


def _scan(state: _State, text: _Text) -> None:
    """A language without a reader here: look for the words themselves, and leave the rest to a person."""
    why = f"it is written for {text.language}, which is not read"
    state.findings.append(Finding("opaque-code", why, _evidence(text, 1), "approve"))
    for number, line in enumerate(text.content.splitlines(), start=1):
        if re.search(r"(CUDA|HIP|ROCR|NVIDIA)_VISIBLE_DEVICES\W", line) and not line.lstrip().startswith("#"):
            state.findings.append(
                Finding("cuda-visible-devices", "it names a device variable", _evidence(text, number), "deny")
            )


def _collect(state: _State, program: Program, text: _Text, *, offset: int) -> None:
    for rule, what, level, line in program.findings:
        inner = line if offset else line - text.line + 1
        place = Evidence(text.file, line + offset, _line(text, inner))
        state.findings.append(Finding(rule, what, place, level))  # type: ignore[arg-type]
    state.written |= program.written
    if text.depth >= MAX_DEPTH:
        if program.texts or program.files:
            state.findings.append(Finding("opaque-code", "it nests programs too deeply", _evidence(text, 1), "approve"))
        return
    for language, content, line in program.texts:
        clean = content.replace(UNKNOWN, "_")
        state.todo.append(_Text(language, clean, text.file, line + offset, text.depth + 1))
    state.wanted += [(how, path, text) for how, path, _ in program.files]


def _follow(state: _State, how: str, path: str, text: _Text) -> Generator[NeedShell | NeedFile, Answer, None]:
    """Read a file that the program runs: one that it wrote itself, else one of the project."""
    name = path.removeprefix("./")
    if name in state.written:
        content, start = state.written[name]
        state.todo.append(_Text(_kind(how, name, content), content, text.file, start, text.depth + 1))
        return
    if UNKNOWN in path or not path:
        return
    data = yield NeedFile(posixpath.normpath(path))
    if not isinstance(data, bytes):
        return
    content = data.decode("utf-8", "surrogateescape")
    kind = _kind(how, name, content)
    if kind == "nothing":
        return
    state.files[posixpath.normpath(path)] = hashlib.sha256(data).hexdigest()
    state.todo.append(_Text(kind, content, posixpath.normpath(path), 1, text.depth + 1))


def _kind(how: str, name: str, content: str) -> str:
    if how in {"source", "shell"}:
        return "shell"
    if how == "python" or name.endswith(".py"):
        return "python"
    first = content.split("\n", 1)[0]
    return interpreter(first[2:]) if first.startswith("#!") else "shell" if name.endswith(".sh") else "nothing"


def _evidence(text: _Text, line: int) -> Evidence:
    return Evidence(text.file, line + text.line - 1, _line(text, line))


def _line(text: _Text, line: int) -> str:
    lines = text.content.split("\n")
    return lines[line - 1].strip()[:300] if 0 < line <= len(lines) else ""
