"""What a batch script asks and does, as a generator that asks for parse trees and files and touches neither itself."""

from __future__ import annotations

import hashlib
import posixpath
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from slurm_agent_tools.models.request import JobRequest, ScriptReading
from slurm_agent_tools.programs.languages.shell_program import read_shell
from slurm_agent_tools.programs.program import (
    BEFORE_PYTHONS_OWN,
    Effort,
    InnerText,
    Program,
    RunFile,
    TooLarge,
    cost,
    included,
    within,
)
from slurm_agent_tools.programs.shell_words import OWN_JOB, POSITIONAL, SELF, TAME, UNKNOWN
from slurm_agent_tools.scripts import reading_state
from slurm_agent_tools.scripts.directive_lines import arguments_to_directives, read_directives, unreadable
from slurm_agent_tools.scripts.effective_request import effective
from slurm_agent_tools.scripts.reading_state import (
    MAX_ASKED,
    MAX_OPENED,
    SILENT,
    Answer,
    Need,
    NeedFile,
    NeedShell,
    ReadingState,
    TextToRead,
    as_encoded,
    as_shown,
    for_bash,
    refused,
    scan,
    undecodable,
)

MAX_DEPTH = 4
MAX_TEXTS = 60
MAX_BYTES = 2 * 2**20
MAX_SCANNED = 2**20
MAX_FOLDERS = 16
MAX_IMPORTED = 40  # modules of the project; beyond that no further one is read
MAX_SOUGHT = 400
MAX_SETTINGS = 40  # files of settings that are sought, and the bytes of one that is read
MAX_SETTING = 2**18

# What stands for a sign of the folded text when that text is read as a program of its own.
_IN_SHELL = {UNKNOWN: "${_}", TAME: "${SLURM_}", OWN_JOB: "${SLURM_JOB_ID}", SELF: "$0", POSITIONAL: "$1"}

_SHELL_SIGNS = {ord(sign): text for sign, text in _IN_SHELL.items()}

_LARGE = (
    "it, or all that it runs together, has more words and signs than are read; "
    "put the part that is long into files of data"
)

_PYTHON_SIGNS = dict.fromkeys(_SHELL_SIGNS, "_")

Reading = Generator[Need | ScriptReading, Answer, None]


def analyse(
    data: bytes, path: str, arguments: Mapping[str, str] | None = None, *, args: Sequence[str] | None = None
) -> Reading:
    """Read one batch script, with sbatch's options and its own arguments; yields what it needs, then the reading."""
    request = requested(data, path, arguments)
    text = data.decode("utf-8", "surrogateescape")
    home = posixpath.dirname(path)
    folders = [folder for folder in (home, request.chdir or "") if folder]  # where relative paths may start
    state = ReadingState(path.rpartition("/")[2], args, folders, home, effort=Effort.sized(data))
    reading_state.exports(state, request)
    if unreadable(data) is None:
        lines, state.text = text.split("\n"), text
        state.todo.append(TextToRead(reading_state.interpreter(request.interpreter or ""), text, path, 1, lines, 0))
        yield from _read_all(state)
    if "lightning" in state.notes and "no-requeue" not in state.notes:
        reading_state.signals(state, request)
    yield ScriptReading(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        text=as_shown(text),
        request=request,
        findings=tuple(dict.fromkeys(state.findings)),
        files=state.files,
        settings=state.settings,
    )


def requested(data: bytes, path: str, arguments: Mapping[str, str] | None = None) -> JobRequest:
    """What a batch script asks for, by its own lines and by the options of sbatch's command line."""
    header = read_directives(as_shown(data.decode("utf-8", "surrogateescape")).encode(), path)
    header.problems += [] if data.isascii() else undecodable(data, path)
    request = effective([*header.directives, *arguments_to_directives(arguments or {})])
    return replace(
        request, problems=(*header.problems, *request.problems), components=header.components,
        interpreter=header.interpreter, justification=header.justification,
    )  # fmt: skip


def _read_all(state: ReadingState) -> Generator[Need, Answer, None]:
    """Texts first, then the files that they run, until nothing is left or it is too much."""
    last: TextToRead | None = None
    while state.todo or state.wanted:
        if state.todo:
            last = state.todo.popleft()
            if state.texts >= MAX_TEXTS or state.size > MAX_BYTES:
                state.find("opaque-code", "it runs more text than is followed", last.evidence(last.line), "approve")
                return
            yield from _read_text(state, last)
        else:
            yield from _follow(state, *state.wanted.popleft())


def _read_text(state: ReadingState, source: TextToRead) -> Generator[Need, Answer, None]:
    key = (source.language, source.content, source.args, source.zero)
    if key in state.seen:
        return
    state.seen.add(key)
    if source.language == "import":
        _read_module(state, source)
        return
    state.texts += 1
    state.size += len(source.content)
    if source.language not in {"shell", "python"}:
        _read_another(state, source)
        return
    content = as_encoded(source.content)
    state.effort.signs -= cost(content, source.language)
    if state.effort.signs < 0:
        _scan(state, source, _LARGE)
    elif source.language == "python":
        _read_python(state, source)
    else:
        yield from _read_shell(state, source, content)


def _read_another(state: ReadingState, source: TextToRead) -> None:
    """What is neither shell nor Python."""
    match source.language:
        case "config" | "settings" | "notebook" | "make":
            from slurm_agent_tools.programs import workflow_files  # noqa: PLC0415 - 4 ms, and few scripts run such a file

            program = workflow_files.read(source.language, source.content, source.args or ())
            _collect(state, program, source, offset=source.line - 1)
        case "tasks":
            from slurm_agent_tools.programs import task_files  # noqa: PLC0415 - few scripts run tasks

            _collect(state, task_files.read_tasks(source.content, source.args or ("",), source.file), source, offset=0)
        case "other":
            _look(state, source, silent=("#", "%", "//"))
            program = Program()
            program.files += [RunFile("other", path, 1) for path in included(source.content, source.file)]
            _collect(state, program, source, offset=source.line - 1)
        case _:
            _scan(state, source, f"it is written for {source.language}, which is not read")


def _read_python(state: ReadingState, source: TextToRead) -> None:
    from slurm_agent_tools.programs.languages.python_program import read_python  # noqa: PLC0415 - most scripts run no Python text

    try:
        with within(state.effort):
            program = read_python(reading_state.python_text(source.content), source.line)
    except ValueError as error:
        _scan(state, source, f"it is written in the encoding {error}, which is not read")
    except (TooLarge, RecursionError):
        _scan(state, source, "it is too large or nested too deeply to be read")
    else:
        _collect(state, program, source, offset=0)


def _read_module(state: ReadingState, source: TextToRead) -> None:
    """A module that a program of the project imports. A large project is read in part: no reason to ask a person."""
    from slurm_agent_tools.programs.languages.python_program import read_python  # noqa: PLC0415 - most scripts run no Python text

    state.modules["read"] += 1
    state.imported.signs -= cost(as_encoded(source.content), "python")
    if state.modules["read"] > MAX_IMPORTED or state.imported.signs < 0:
        return
    try:
        with within(state.imported):
            _collect(state, read_python(reading_state.python_text(source.content), imported=True), source, offset=0)
    except ValueError as error:
        _scan(state, source, f"it is written in the encoding {error}, which is not read")
    except (TooLarge, RecursionError):
        return


def _read_shell(state: ReadingState, source: TextToRead, content: bytes) -> Generator[Need, Answer, None]:
    tree = yield NeedShell(content, "bash", source.file, source.line, behind=state.todo)
    if isinstance(tree, str) and for_bash(content) != content:
        tree = yield NeedShell(for_bash(content), "bash", source.file, source.line, behind=state.todo)
    if isinstance(tree, str) and source.lines[0].startswith("#!") and "zsh" in source.lines[0]:
        tree = yield NeedShell(for_bash(content), "zsh", source.file, source.line, behind=state.todo)
    if not isinstance(tree, dict):
        line, why = refused(str(tree))
        line += source.line - 1
        file = f"it runs {source.file}, which" if source.file in state.files else "it"
        _scan(state, source, f"{file} cannot be parsed as a shell script: line {line}: {why}", line)
        return
    with within(state.effort):
        args = state.args if source.depth == 0 else source.args
        around = [{}, *reading_state.inherited(state, source.content)] if state.variables else [{}]
        found: list[Program] = []
        for variables in around:  # as it stands first: not all of them may be set, or exported
            program = read_shell(tree, args=args, script=state.script, zero=source.zero, variables=variables)
            found.append(program.without(found))
    for program in found:
        _collect(state, program, source, offset=source.line - 1)


def _scan(state: ReadingState, source: TextToRead, why: str, line: int = 0) -> None:
    """A text without a reader: what it names counts, and a person has to look at the rest."""
    state.find("opaque-code", why, source.evidence(line or source.line), "approve")
    _look(state, source)


def _look(state: ReadingState, source: TextToRead, silent: tuple[str, ...] = SILENT) -> None:
    """What a text without a reader names."""
    content = source.content[: max(MAX_SCANNED - state.scanned, 0)]
    state.scanned += len(content)
    for rule, what, line in scan(content, silent):
        state.find(rule, what, source.evidence(line + source.line - 1))


def _collect(state: ReadingState, program: Program, source: TextToRead, *, offset: int) -> None:
    for idle in program.idles:
        state.keep(idle, source, offset)
    for rule, what, level, line in program.findings:
        state.find(rule, what, source.evidence(line + offset), level)
    state.notes |= program.notes
    for name, values in program.variables.items():
        state.variables[name] = list(dict.fromkeys([*state.variables.get(name, ()), *values]))
    state.copied |= program.copied
    state.fetched += program.fetched[:16]
    if program.folders:
        state.folders = list(dict.fromkeys((*state.folders, *reading_state.plain_folders(program.folders))))
    if len(state.folders) > MAX_FOLDERS:
        del state.folders[MAX_FOLDERS:]
        what = f"it changes to more than {MAX_FOLDERS} folders, where files that it runs may stand"
        state.find("opaque-code", what, source.evidence(source.line), "approve")
    for name, made in program.written.items():
        placed = replace(made, line=made.line + offset) if made is not None else None
        state.written[name] = (placed, source)
    if source.depth >= MAX_DEPTH:
        if program.texts or any(file.how != "import" for file in program.files):
            state.find("opaque-code", "it nests programs too deeply", source.evidence(source.line), "approve")
        return
    for text in program.texts:
        _queue(state, text, text.language, source, text.line + offset)
    state.wanted += [(replace(file, line=file.line + offset), source) for file in program.files]


def _queue(
    state: ReadingState, text: InnerText, language: str, source: TextToRead, line: int, args: tuple[str, ...] = ()
) -> None:
    signs = _PYTHON_SIGNS if language == "python" else _SHELL_SIGNS
    content = text.text.translate(signs)
    known = _plain(args or text.args)
    state.todo.append(
        TextToRead(language, content, source.file, line, source.lines, source.depth + 1, known, text.zero)
    )


def _follow(state: ReadingState, file: RunFile, source: TextToRead) -> Generator[Need, Answer, None]:
    """A file that the program runs: one that it wrote itself, and those of the project that it may mean."""
    name = file.path.rpartition("/")[2]
    if name in state.copied and name not in state.written:
        file = replace(file, path=state.copied[name])
        name = file.path.rpartition("/")[2]
    if file.how == "import" and f"{name.rpartition('.')[2]}.py" in state.written:
        _run_written(state, f"{name.rpartition('.')[2]}.py", replace(file, how="python"), source)
    if file.how in {"import", "settings", "tasks"}:
        yield from (_import if file.how == "import" else _settings)(state, file, source)
        return
    _run_made(state, name, file, source)
    for path in list(reading_state.candidate_paths(file, state.bases())):
        if path in {"-", "."} or path == source.file:
            continue
        if path not in state.answers and state.asked_enough():
            what = f"it runs more files than are followed ({MAX_ASKED}, or {MAX_OPENED // 2**20} MB)"
            state.find("opaque-code", what, source.evidence(file.line), "approve")
            state.wanted.clear()
            return
        if path not in state.answers:
            state.answers[path] = yield NeedFile(path, state.todo)
        data = state.answers[path]
        if isinstance(data, str):
            state.find("opaque-code", f"it runs {path}, which {data}", source.evidence(file.line), "approve")
        elif isinstance(data, bytes):
            _open(state, file, path, data, source)


def _import(state: ReadingState, file: RunFile, source: TextToRead) -> Generator[Need, Answer, None]:
    """The files of a module and of the packages around it, as far as they are the project's."""
    first = [
        note.removeprefix(BEFORE_PYTHONS_OWN) for note in sorted(state.notes) if note.startswith(BEFORE_PYTHONS_OWN)
    ]
    for paths in reading_state.modules(file.path, source.file, state.bases(), first):
        for path in paths:
            if path not in state.answers:
                kind = "own" if file.path.partition(".")[0] in sys.stdlib_module_names else "sought"
                state.modules[kind] += 1
                if state.modules[kind] > MAX_SOUGHT:
                    return
                state.answers[path] = yield NeedFile(path, state.todo)
            data = state.answers[path]
            if not isinstance(data, bytes):
                continue
            if (path, file.how, ()) not in state.opened:
                state.opened.add((path, file.how, ()))
                content = data.decode("utf-8", "surrogateescape")
                state.files[path] = hashlib.sha256(data).hexdigest()
                state.todo.append(TextToRead("import", content, path, 1, content.split("\n"), source.depth))
            break


def _settings(state: ReadingState, file: RunFile, source: TextToRead) -> Generator[Need, Answer, None]:
    """A file of settings that a program is given, or of tasks. Many and large ones are read in part."""
    there = False
    for path in reading_state.candidate_paths(file, state.bases()):
        state.modules[file.how] += path not in state.answers
        if state.modules[file.how] > MAX_SETTINGS:
            break
        if path not in state.answers:
            data = yield NeedFile(path, state.todo)
            state.answers[path] = data if isinstance(data, bytes) and len(data) <= MAX_SETTING else None
        data = state.answers[path]
        if isinstance(data, bytes):
            there = True
            _open(state, file, path, data, source)
    if file.elsewhere and not there:
        state.find("opaque-code", file.elsewhere, source.evidence(file.line), "warn")


def _run_made(state: ReadingState, name: str, file: RunFile, source: TextToRead) -> None:
    """A file that the program wrote or fetched before."""
    if name in state.written and name:
        _run_written(state, name, file, source)
    if file.how in {"shell", "python", "source"} and reading_state.files_under(file.path, state.fetched):
        what = f"it runs {file.path}, which comes from elsewhere while the job runs"
        state.find("opaque-code", what, source.evidence(file.line), "approve")


def _run_written(state: ReadingState, name: str, file: RunFile, source: TextToRead) -> None:
    made, writer = state.written[name]
    if made is None:
        what = f"it runs {name}, which is made while the job runs"
        state.find("opaque-code", what, source.evidence(file.line), "approve")
        return
    language = reading_state.file_kind(file, made.text.replace(UNKNOWN, "_"))
    if file.how == "multi-prog":
        made, language = _programs(made), "shell"
    args = () if POSITIONAL in made.text else file.args  # its `$1` may be one that was put in when it was written
    _queue(state, made, language, replace(writer, depth=max(writer.depth, source.depth)), made.line, args)


def _programs(text: InnerText) -> InnerText:
    """The commands of a file for srun --multi-prog, which names ranks in front of each."""
    return replace(text, text=re.sub(r"(?m)^[^\S\n]*[\d,*-]+\s+", "", text.text))


def _open(state: ReadingState, file: RunFile, path: str, data: bytes, source: TextToRead) -> None:
    if (path, file.how, file.args) in state.opened:
        return
    state.opened.add((path, file.how, file.args))
    content = data.decode("utf-8", "surrogateescape")
    language = reading_state.file_kind(file, content)
    kept = state.settings if file.how in {"config", "settings"} else state.files
    kept[path] = hashlib.sha256(data).hexdigest()
    if language == "nothing":
        if file.how in {"python", "shell", "source"}:
            state.find("opaque-code", f"it runs {path}, which is no text", source.evidence(file.line), "approve")
        return
    if file.how == "multi-prog":
        content, language = _programs(InnerText("other", content, 1)).text, "shell"
    part = file.how == source.language and file.how in {"tasks", "other"}  # what a workflow or a program includes
    depth = source.depth + (not part)
    if depth > MAX_DEPTH:
        state.find("opaque-code", "it nests programs too deeply", source.evidence(file.line), "approve")
        return
    known = _plain(file.args)
    state.todo.append(TextToRead(language, content, path, 1, content.split("\n"), depth, known))


def _plain(args: tuple[str, ...]) -> tuple[str, ...] | None:
    """The words that a program gets. None, which is anything, where there are none."""
    return args[:100] or None
