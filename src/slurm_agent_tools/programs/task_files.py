"""Files of tasks that a program runs: package.json, justfile, pixi, poe, invoke, doit, dvc, snakemake, Nextflow.

Loaded by the scripts that call such a program. Read are the tasks that the command names and those that they need; the
commands of one file become one text, each about where it stands. A large workflow is read in part.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from slurm_agent_tools.programs.languages.workflow_languages import MAX_TASKS, as_shell, read_nextflow, read_snakefile
from slurm_agent_tools.programs.program import InnerText, Program, RunFile
from slurm_agent_tools.programs.python_text import parsed
from slurm_agent_tools.programs.workflow_files import REMOTE, read_makefile
from slurm_agent_tools.programs.wrapped_command import Command
from slurm_agent_tools.text import bounded_documents, yaml_documents

MAX_TEXT = 2**19  # characters of a file

_TOML = ("pixi.toml", "pyproject.toml", "poe_tasks.toml")

# The files in which each program looks for its tasks; the words behind its options name some of them.
FILES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("pixi", "poe", "pdm", "hatch", "rye"), _TOML),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    **dict.fromkeys(("inv", "invoke"), ("tasks.py", "tasks/__init__.py")),
    "fab": ("fabfile.py",),
    "doit": ("dodo.py",),
    "dvc": ("dvc.yaml",),
    "snakemake": ("Snakefile", "workflow/Snakefile", "snakefile", "workflow/snakefile"),
    "nextflow": (),  # named in its command
}

_FILE_OPTIONS = {
    "just": ("-f", "--justfile"),
    "task": ("-t", "--taskfile"),
    "doit": ("-f", "--file"),
    "snakemake": ("-s", "--snakefile"),
    "pixi": ("--manifest-path",),
    **dict.fromkeys(("inv", "invoke", "fab"), ("-c", "--collection")),
}

_FOLDER_OPTIONS = {
    "npm": ("--prefix", "-C"),
    "pnpm": ("-C", "--dir"),
    **dict.fromkeys(("yarn", "bun"), ("--cwd",)),
    "just": ("-d", "--working-directory"),
    "task": ("-d", "--dir"),
    "poe": ("-C", "--directory", "--root"),
    "doit": ("-d", "--dir"),
    "snakemake": ("-d", "--directory"),
    **dict.fromkeys(("inv", "invoke", "fab"), ("-r", "--search-root")),
}
"""Options that name the folder in which the program looks for its file, or runs."""

_OWN_WORDS = frozenset({"run", "run-script", "exec", "repro", "exp"})
_INSTALLING = frozenset({"install", "ci", "add", "i", "create", "init", "build"})


def runs(call: Command) -> None:
    """The files of tasks that a command reads, and which of them it runs."""
    if call.name not in FILES:
        _matlab(call)
        return
    named, goals, folder = _words(call)
    if goals[:1] and goals[0] in _INSTALLING and call.name not in {"just", "task", "snakemake"}:
        return
    if folder:
        call.program.folders.append(folder)
    ending = ".py" if call.name in {"inv", "invoke", "fab"} else ""  # of a collection, which is named without it
    for path in [f"{one}{ending}" for one in named[-1:]] or FILES[call.name]:
        away = REMOTE.match(path) is not None
        what = f"it runs {path}, which comes from elsewhere while the job runs" if away else ""
        tasks = RunFile("tasks", path, call.line, (call.name, *goals[:20]), what)
        call.program.files += [tasks] if away or not folder else [tasks, replace(tasks, path=f"{folder}/{path}")]


def _words(call: Command) -> tuple[list[str], list[str], str]:
    """The files that a command names, its goals, and the folder that it changes to."""
    named, goals, folder, rest = list[str](), list[str](), "", iter(call.rest)
    for word in rest:
        option, sign, value = word.partition("=")
        if option in _FILE_OPTIONS.get(call.name, ()):
            named.append(value if sign else next(rest, ""))
        elif option in _FOLDER_OPTIONS.get(call.name, ()):
            folder = value if sign else next(rest, "")
        elif call.name == "dvc" and word.partition(":")[0].endswith("dvc.yaml"):
            named.append(word.partition(":")[0])
        elif not word.startswith("-") and not sign and word not in _OWN_WORDS:
            goals.append(word)
    return named, goals, folder


def _matlab(call: Command) -> None:
    """`matlab -batch "train"`: the text, and the files that it names."""
    given = ("-batch", "-r", "--eval")
    for text in [call.rest[place + 1] for place, word in enumerate(call.rest[:-1]) if word in given]:
        call.program.texts.append(InnerText("other", text, call.line))
        call.program.folders += re.findall(r"\b(?:addpath|cd)\(?\s*[\"']([^\"']+)", text)[:4]
        named = re.findall(r"\brun\(?\s*[\"']?([\w./-]+)", text)
        named += re.findall(r"(?:^|[;,(]|\btry\b)\s*([A-Za-z]\w*)", text)
        files = dict.fromkeys(name if name.endswith(".m") else f"{name}.m" for name in named[:20])
        call.program.files += [RunFile("other", name, call.line) for name in files]
    call.program.files += [RunFile("other", word, call.line) for word in call.rest if word.endswith(".m")][:1]


def read_tasks(text: str, words: Sequence[str], path: str) -> Program:
    """What the tasks of one file run. `words`: the program and its goals; `path` of the file."""
    program, kind, goals = Program(), words[0], words[1:]
    try:
        if len(text) > MAX_TEXT:
            raise ValueError("too large")  # noqa: TRY301 - one answer for all that cannot be read
        if kind == "just":
            return _justfile(text, goals, posixpath.dirname(path))
        if kind in {"inv", "invoke", "fab", "doit"}:
            _python(program, text, kind, goals)
        elif kind == "snakemake":
            read_snakefile(program, text, posixpath.dirname(path))
        elif kind == "nextflow":
            read_nextflow(program, text, posixpath.dirname(path))
        else:
            _listed(program, text, kind, goals)
    except (ValueError, RecursionError, MemoryError, SyntaxError, AttributeError, TypeError, yaml.YAMLError):
        program.opaque(f"this file of tasks for {kind} cannot be read", 1)
    return program


# --- tables of tasks: JSON, TOML, YAML --------------------------------------------------------------------------------


_PARTS = ("cmd", "cmds", "shell", "do", "task", "sequence", "composite", "chain", "depends-on", "depends_on", "deps")


def _listed(program: Program, text: str, kind: str, goals: Sequence[str]) -> None:
    """The commands of the tasks that are wanted, of all where none is named, and of those that they need."""
    if kind in {"dvc", "task"}:
        loaded = yaml_documents.load(text) or {}
        tasks = loaded.get("tasks" if kind == "task" else "stages") or {}
    else:
        toml = kind in {"pixi", "poe", "pdm", "hatch", "rye"}
        loaded = bounded_documents.toml(text) if toml else {}
        tasks = _tables(loaded) if toml else _scripts(text)
    wanted = goals if kind != "dvc" else ()  # what a stage needs are files
    rest, seen, found = list(wanted) or list(tasks), set[str](), list[tuple[int, str]]()
    for variable in _environment(loaded) if kind == "task" else ():
        program.sets(variable, _line(text, "env", variable))
    while rest and len(seen) < MAX_TASKS:
        name = rest.pop().rpartition(":")[2] if kind == "hatch" else rest.pop()
        if name in seen or name not in tasks:
            continue
        seen.add(name)
        for variable in _environment(tasks[name]):
            program.sets(variable, _line(text, name, variable))
        rest += [f"{part}{name}" for part in ("pre", "post")] if kind not in {"dvc", "task"} else []
        for command in _commands(tasks[name]):
            rest += [command] if command in tasks else []
            found += [(_line(text, name, command), _filled(command))] if command not in tasks else []
    as_shell(program, found)


def _environment(task: object) -> list[str]:
    """Variables that a task, or all of a file, sets for its commands."""
    variables = task.get("env") if isinstance(task, dict) else None
    return [str(name) for name in variables] if isinstance(variables, dict) else []


def _filled(command: str) -> str:
    """The command without what the program itself puts in."""
    return re.sub(r"\{\{(?>(?:(?!\{\{|\}\}).)*)\}\}|\$\{\w++[.\[](?>(?:(?!\$\{)[^}])*)\}", "${_}", command)


def _commands(value: object, depth: int = 0) -> Iterator[str]:
    """The commands, and the names of other tasks, in one task."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth < 4:
        for item in value[:MAX_TASKS]:
            yield from _commands(item, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        for key in _PARTS:
            yield from _commands(value.get(key), depth + 1)
        if isinstance(value.get("script"), str):
            yield f"python -m {value['script'].partition(':')[0]}"


def _line(text: str, name: str, command: str) -> int:
    """Where a command stands: behind the name of its task, or at that name."""
    found = re.search(rf"(?m)^[^\n\w]*+(?>(?:[\w.]+\.)?{re.escape(name)}\b).*[:=\]]", text)
    start = found.start() if found is not None else 0
    place = text.find(command.split("\n", maxsplit=1)[0][:40], start)
    return text.count("\n", 0, max(place, start)) + 1


def _scripts(text: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = bounded_documents.json_value(text).get("scripts") or {}
    return found


def _tables(loaded: dict[str, Any]) -> dict[str, Any]:
    """The tasks of pixi, poe, pdm, hatch and rye. A list of words behind `cmd` is one command."""
    tool = loaded.get("tool") or {}
    places = [loaded, tool.get("pixi", {})]
    places += [part for one in places for key in ("feature", "target") for part in one.get(key, {}).values()]
    found: dict[str, Any] = {name: task for one in places for name, task in one.get("tasks", {}).items()}
    places = [tool.get(name, {}) for name in ("poe", "pdm", "rye")] + list(
        tool.get("hatch", {}).get("envs", {}).values()
    )
    found |= {name: task for one in places for key in ("tasks", "scripts") for name, task in one.get(key, {}).items()}
    for name, task in found.items():
        if isinstance(task, dict) and isinstance(task.get("cmd"), list):
            found[name] = {**task, "cmd": " ".join(map(str, task["cmd"]))}
    return found


# --- files that are programs ------------------------------------------------------------------------------------------


def _python(program: Program, text: str, kind: str, goals: Sequence[str]) -> None:
    """tasks.py and dodo.py without the tasks that nobody asks for; the texts in `actions` are commands."""
    tree, lines, shell = parsed(text), text.split("\n"), list[tuple[int, str]]()
    asked = {part.replace("-", "_") for goal in goals for part in goal.split(".")}
    named = [_names(node) for node in tree.body]
    everywhere = Counter(name for names in named for name in names)
    for node, own in zip(tree.body, named, strict=True):
        if asked and isinstance(node, ast.FunctionDef) and _is_task(node, kind) and _idle(node, asked, own, everywhere):
            first, end = min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1, node.end_lineno or 1
            lines[first:end] = [""] * (end - first)
        else:
            shell += _actions(node)
    program.texts.append(InnerText("python", "\n".join(lines), 1))
    as_shell(program, shell)


def _names(node: ast.AST) -> set[str]:
    """Names and constants in a statement."""
    return {str(getattr(one, "id", getattr(one, "value", ""))) for one in ast.walk(node)}


def _is_task(node: ast.FunctionDef, kind: str) -> bool:
    marked = any("task" in ast.unparse(one) for one in node.decorator_list)
    return node.name.startswith("task_") if kind == "doit" else marked


def _idle(node: ast.FunctionDef, asked: set[str], own: set[str], everywhere: Counter[str]) -> bool:
    """Whether a task is neither asked for nor named by anything else in the file."""
    name = node.name.removeprefix("task_")
    return name not in asked and everywhere[name] == (name in own)


def _actions(node: ast.AST) -> list[tuple[int, str]]:
    """The constant texts behind the key `actions`."""
    tables = [inner for inner in ast.walk(node) if isinstance(inner, ast.Dict)]
    pairs = [pair for one in tables for pair in zip(one.keys, one.values, strict=True)]
    values = [value for key, value in pairs if getattr(key, "value", "") == "actions"]
    texts = [one for value in values for one in ast.walk(value) if isinstance(one, ast.Constant)]
    return [(one.lineno, one.value) for one in texts if isinstance(one.value, str)]


_IMPORTS = re.compile(r"(?m)^(?:import\??\s+[\"']([^\"']+)[\"']|mod\??\s+(\w+)\s*$)")  # of just


def _justfile(text: str, goals: Sequence[str], folder: str) -> Program:
    """The recipes that are wanted, and the files in which more of them stand."""
    plain = _as_makefile(text)
    made = read_makefile(plain, goals)
    first = re.search(r"(?m)^[\w-]+: ?(.*)", plain)
    wanted = goals or (first[1].split() if first is not None else [])
    named = [found[1] or f"{found[2]}.just" for found in _IMPORTS.finditer(text)] if wanted else []
    made.files += [RunFile("tasks", posixpath.join(folder, one), 1, ("just", *wanted)) for one in named[:20]]
    return made


def _as_makefile(text: str) -> str:
    """A justfile as a makefile, line by line: parameters go, `{{x}}` is a variable."""
    made = []
    for line in text.split("\n"):
        if line[:1] in {" ", "\t"}:
            plain = re.sub(
                r"\{\{(?!\s*\w+\s*\}\})(?>(?:(?!\{\{|\}\}).)*)\}\}", "$${_}", line.strip().replace("$", "$$")
            )
            made.append("\t" + re.sub(r"\{\{\s*(\w+)\s*\}\}", r"$(\1)", plain))
            continue
        header = re.match(r"@?([\w-]+)(?:\s[^:]*)?:(?!=)(.*)", line)
        needs = re.sub(r"[()&]|\".*?\"|'.*?'", " ", header[2]) if header is not None else ""
        made.append(
            f"{header[1]}: {needs}" if header is not None else re.sub(r":=\s*[\"']?([^\"']*)[\"']?", r"= \1", line)
        )
    return "\n".join(made)
