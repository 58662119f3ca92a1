"""Snakefiles and pipelines of Nextflow: the shell and the Python in them, and the files that they include."""

from __future__ import annotations

import ast
import posixpath
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice

from slurm_agent_tools.programs.program import How, InnerText, Program, RunFile
from slurm_agent_tools.programs.python_text import parsed
from slurm_agent_tools.programs.workflow_files import read_config

MAX_TASKS = 200
"""Tasks that are read of one file."""


def as_shell(program: Program, commands: Iterable[tuple[int, str]]) -> None:
    """Commands as one text, each at about its line."""
    lines: list[str] = []
    for line, text in sorted(commands)[:MAX_TASKS]:
        lines += [""] * (line - 1 - len(lines))
        lines += text.split("\n")
    if lines:
        program.texts.append(InnerText("shell", "\n".join(lines), 1))


_BLOCK = re.compile(r"(\s*)(shell|run|script|notebook|include|onstart|onsuccess|onerror)\s*:\s*(.*)")

_KEYWORDS = (
    "rule|checkpoint|use rule|module|onstart|onsuccess|onerror|localrules|include|configfile|workdir|container|report"
    "|envvars|ruleorder|wildcard_constraints|pepfile|pepschema|storage|scattergather|singularity|conda"
)

_TOP = re.compile(rf"(\s*)(?:{_KEYWORDS})\b[^=(]*:")


_MODULE = re.compile(r"\s+snakefile\s*:\s*(?:(?:github|gitlab|bitbucket)\(|[\"']https?://)")


def read_snakefile(program: Program, text: str, folder: str) -> None:
    """Shell texts, Python blocks, scripts and included files of the rules, and the Python around them."""
    lines, shell, plain = text.split("\n"), list[tuple[int, str]](), list[str]()
    inside = -1
    for number, line in enumerate(lines, start=1):
        indent = len(line) - len(line.lstrip())
        inside = -1 if line.strip() and indent <= inside else inside
        inside = indent if inside < 0 and _TOP.match(line) else inside
        plain.append("" if inside >= 0 else line)
        if inside >= 0 and re.match(r"\s+retries\s*:\s*[1-9]", line):
            program.find("auto-retry", "this setting starts failed work again", number)
        if inside >= 0 and _MODULE.match(line):
            program.opaque("it takes rules from elsewhere while the job runs", number, "warn")
        block = _BLOCK.fullmatch(line)
        if block is not None and inside >= 0:
            behind = list(_block([block[3], *lines[number : number + MAX_TASKS]], indent))
            _part(program, shell, block[2], behind, number, folder)
    as_shell(program, shell)
    try:
        parsed("\n".join(plain))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        program.texts.append(InnerText("other", "\n".join(plain), 1))
    else:
        program.texts.append(InnerText("python", "\n".join(plain), 1))


def _block(lines: Sequence[str], indent: int) -> Iterator[str]:
    """The first line and those that stand deeper; those in a string may stand anywhere."""
    quoted = False
    for number, line in enumerate(lines):
        if number and line.strip() and len(line) - len(line.lstrip()) <= indent and not quoted:
            return
        quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1
        yield line


def _part(program: Program, shell: list[tuple[int, str]], kind: str, behind: list[str], line: int, folder: str) -> None:
    """One block of a rule."""
    if kind in {"run", "onstart", "onsuccess", "onerror"}:
        program.texts.append(InnerText("python", textwrap.dedent("\n".join(behind[1:])), line + 1))
        return
    value = parsed("(" + "\n".join(behind).strip() + "\n)", "eval")
    words = "".join(str(one.value) for one in ast.walk(value) if isinstance(one, ast.Constant))
    if kind == "shell":
        own = {"{{": "{", "}}": "}"}
        command = re.sub(r"\{\{|\}\}|\{[^{}]*\}", lambda found: own.get(found[0], "${_}"), words)
        shell.append((line + (not behind[0].strip()), command))
    elif kind == "include":
        program.files.append(RunFile("tasks", posixpath.join(folder, words), line, ("snakemake",)))
    elif words:
        hows: dict[str, How] = {"py": "python", "ipynb": "notebook", "sh": "shell"}
        how = hows.get(words.rpartition(".")[2], "other")
        program.files.append(RunFile(how, posixpath.join(folder, words), line))


_TRIPLE = re.compile(r"(\"\"\"|''')(.*?)\1", re.DOTALL)
_INCLUDED = re.compile(r"\binclude\s*\{[^{}]*\}\s*from\s*[\"'](\.[^\"'$]+)[\"']")
_STARTED = re.compile(r"[\"'](?>[^\"'\n]*\b(sbatch|salloc)\b)[^\"'\n]*+[\"']\s*+\.execute\(")


_LABELS = re.compile(r"\b(script|shell|stub|exec|input|output|when)\s*:")
_ONE_LINE = re.compile(r"\b(?:script|shell)\s*:\s*([\"'])(?!\1\1)((?:\\.|(?!\1)[^\\\n])+)\1")


def _is_script(before: str) -> bool:
    """Whether a text with three quotes, behind `before`, is a process's command; `script:` may be left out."""
    process = before.rpartition("\nprocess ")[2] if "\nprocess " in before else ""
    depths = list(accumulate({"{": 1, "}": -1}[sign] for sign in re.findall(r"[{}]", _TRIPLE.sub("", process))))
    if not all(depths) or not depths or re.search(r"[=(]\s*$|info\s*$", before):
        return False
    labels = _LABELS.findall(process)[-1:]
    alone = not before.rpartition("\n")[2].strip()
    return labels in (["script"], ["shell"]) or (alone and labels not in (["stub"], ["exec"]))


def _numbered(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """What is found, and the line where it begins."""
    number, last = 1, 0
    for found in pattern.finditer(text):
        number, last = number + text.count("\n", last, found.start()), found.start()
        yield number, found


def read_nextflow(program: Program, text: str, folder: str) -> None:
    """The scripts of the processes, the settings among them, and the files that are included."""
    shell = []
    for found in islice(_TRIPLE.finditer(text), 2 * MAX_TASKS):
        if _is_script(f"\n{text[max(0, found.start() - 20_000) : found.start()]}"):
            unknown = r"(?<!\\)\$(?:\{[^}]*\}|\w+(?:\.\w+)*)" if found[1] == '"""' else r"!\{[^}]*\}"
            command = re.sub(unknown, "${_}", textwrap.dedent(found[2])).replace("\\$", "$").replace("\\\\", "\\")
            shell.append((text.count("\n", 0, found.start()) + 1, command))
    shell += [
        (text.count("\n", 0, found.start(2)) + 1, found[2]) for found in islice(_ONE_LINE.finditer(text), MAX_TASKS)
    ]
    as_shell(program, shell)
    for rule, what, level, number in read_config(text).findings:
        program.find(rule, what, number, level)
    for number, found in _numbered(_STARTED, text):
        program.find("direct-submission", f"it runs {found[1]}", number)
    for number, found in _numbered(_INCLUDED, text):
        for tail in ("", ".nf", "/main.nf"):
            path = posixpath.normpath(posixpath.join(folder, found[1] + tail))
            program.files.append(RunFile("tasks", path, number, ("nextflow",)))
