"""What a Python program does, as far as the policy asks: device settings, device numbers, submissions, retries."""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from slurm_agent_tools.programs.languages import python_devices, python_retry
from slurm_agent_tools.programs.program import DEVICES, LONG, IdleCommand, InnerText, Program, RunFile
from slurm_agent_tools.programs.python_text import (
    PythonText,
    constants,
    fold,
    name_of,
    number_of,
    parsed,
    shape,
    walked,
)
from slurm_agent_tools.programs.shell_words import UNKNOWN

MAX_CHARACTERS = 2**20

# What Python has loaded before it comes to a program, so that no file beside that can stand in its place.
_LOADED = frozenset(sys.builtin_module_names) | {"os", "io", "abc", "codecs", "stat", "site", "posixpath", "__future__"}

_SUBMITTERS = frozenset(
    {"submitit", "pyslurm", "dask_jobqueue", "simple_slurm", "simpleslurm", "slurmpy", "pyslurmutils", "parsl", "drmaa"}
)

_RUNNERS_WORDS = """
system popen run call check_call check_output Popen getoutput getstatusoutput create_subprocess_exec
create_subprocess_shell execv execve execvp execvpe execl execlp execle spawnl spawnlp spawnv spawnvp spawn
"""

_RUNNERS = frozenset(_RUNNERS_WORDS.split())
_TELLING_WORDS = """
print debug info warning error critical exception log fail skip startswith endswith
which compile match search fullmatch sub find index count replace exists
"""

_TELLING = frozenset(_TELLING_WORDS.split())

_SUBMITTING = re.compile(
    r"(?:^|[;&|(])\s*+(?:[^\s;&|(]*/)?(?:sbatch|salloc|scontrol\s+(?:update|requeue\w*|release|hold))\s+[^\s|]"
)

_RETRYING = frozenset({"FailureConfig", "LaunchConfig", "remote"})
_CLUSTERS = re.compile(r"Slurm\w*(?:Cluster|Provider|Executor|Launcher|BatchSystem)", re.IGNORECASE)
_JOB_API = re.compile(r"/slurm/v0[\d.]*/jobs?/(?:submit|allocate)")

# Only a text with one of these can matter to the shell's reader, which costs a process.
_WORTH = re.compile(
    r"sbatch|salloc|srun|scontrol|scancel|qsub|bsub|VISIBLE|ORDINAL|AFFINITY|:\d|\bsh\b|bash|eval|curl|base64|ssh|GPU"
    r"|\.sh\b|\.py\b|python"
)

_DECODERS = frozenset({"b64decode", "decode", "decompress", "loads", "fromhex", "read", "urlopen", "read_text", "get"})


def read_python(text: str, first_line: int = 1, *, imported: bool = False) -> Program:
    """Walk one program. Text that is no Python, or too large, is opaque.

    `imported`: a module that another program imports, whose `if __name__ == "__main__"` does not run.
    """
    program = Program()
    try:
        if len(text) > MAX_CHARACTERS:
            raise ValueError("too large")  # noqa: TRY301 - one answer for all that cannot be read
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        program.opaque("this Python text cannot be parsed", first_line)
        return program
    if imported:
        tree.body = [node for node in tree.body if not _main_only(node)]
    nodes = list(ast.walk(tree))
    texts, given = constants(nodes)
    telling = _told(nodes)
    silent = {id(inner) for inner in telling} - {id(value) for node in telling for value in python_devices.used(node)}
    named = python_devices.names_devices(nodes, silent)
    reader = PythonText(program, first_line, texts, given, silent, named, _other_names(nodes))
    for node in nodes:
        _visit(reader, node)
    if not imported and re.search(r"\b(?:sleep|pause)\(", text):
        _judge_waits(reader, tree)
    return program


def _told(nodes: Sequence[ast.AST]) -> list[ast.AST]:
    """What only compares or prints, and all that is in it; each node stands behind the one that it is in."""
    found, within = list[ast.AST](), set[int]()
    for node in nodes:
        if id(node) in within or _only_tells(node):
            found.append(node)
            within.update(map(id, ast.iter_child_nodes(node)))
    return found


def _other_names(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """`from subprocess import run as start`."""
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return {alias.asname: alias.name for node in imports for alias in node.names if alias.asname is not None}


def _main_only(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in (getattr(item, "value", None) for item in ast.walk(node.test))


def _only_tells(node: ast.AST) -> bool:
    """Comparisons, and calls that print: words in them do nothing."""
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in {"help", "description", "epilog", "usage", "metavar", "title", "doc", "message", "msg"}
    return isinstance(node, ast.Call) and name_of(node) in _TELLING and not isinstance(node.func, ast.Call)


def _visit(reader: PythonText, node: ast.AST) -> None:
    python_devices.judge(reader, node)
    line = reader.line(node)
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr="path")), args=[*_, last]):
            _searched(reader.program, last)
        case ast.Call():
            _call(reader, node, line)
            python_retry.judge(reader.program, node, line)
        case ast.Import() | ast.ImportFrom():
            _imported(reader.program, node, line)
        case ast.List(elts=[first, _, *_]) if id(node) not in reader.silent:
            _listed(reader, node.elts, fold(first, reader.constants), line)
        case ast.Constant(value=str() as text) if id(node) not in reader.silent:
            if _JOB_API.search(text):
                reader.program.find("direct-submission", "it submits a job through Slurm's web interface", line)
            elif "jobqueue.SLURMCluster" in text:
                reader.program.find("direct-submission", f"it names {text[:60]}, which submits jobs", line)
        case ast.For() | ast.While() | ast.Try() | ast.FunctionDef() | ast.AsyncFunctionDef():
            python_retry.judge(reader.program, node, line)
        case _:
            return


def _searched(program: Program, place: ast.expr) -> None:
    """`sys.path.insert(0, "lib")`: a folder of modules, as it is seen from the project."""
    words = [one.value for one in walked(place) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    folder = re.sub(r"^(?:\.\.?(?:/|$))+", "", posixpath.normpath("/".join(words)))
    program.folders += [folder] if folder else []


def _call(reader: PythonText, node: ast.Call, line: int) -> None:
    name, program = reader.called(node), reader.program
    first = node.args[0] if node.args else None
    for keyword in node.keywords:
        _keyword(program, name, keyword, line)
    if name in _RUNNERS and first is not None:
        for one in reader.given.get(first.id, [first]) if isinstance(first, ast.Name) else [first]:
            _command(reader, name, [one, *node.args[1:]], line)
    elif first is not None and name not in _TELLING and _SUBMITTING.search(shape(first, reader.constants)):
        program.texts.append(InnerText("shell", shape(first, reader.constants), line))
    if name in {"exec", "eval", "compile"} and isinstance(node.func, ast.Name):
        _evaluated(reader, first, line)
    if name in {"import_module", "__import__", "run_module"} and first is not None:
        _module(program, fold(first, reader.constants) or "", line)
    if name == "run_path" and first is not None:
        program.files.append(RunFile("python", fold(first, reader.constants) or "", line))
    if _CLUSTERS.fullmatch(name) and "Job" not in name:
        program.find("direct-submission", f"it makes a {name}, which submits jobs", line)
    if name in {"sbatch", "salloc"}:
        program.find("direct-submission", f"it calls {name}", line)
    _writes(reader, node, name)


def _keyword(program: Program, name: str, keyword: ast.keyword, line: int) -> None:
    value = keyword.value
    if keyword.arg == "auto_requeue" and isinstance(value, ast.Constant):
        if value.value is True:
            program.find("auto-retry", "it requeues itself (auto_requeue)", line)
        program.notes.add("no-requeue")
    if keyword.arg in {"max_failures", "max_restarts", "max_retries"} and name in _RETRYING:
        number = number_of(value)
        if number:
            program.find("auto-retry", f"{keyword.arg}={number} starts failed work again", line)


def _command(reader: PythonText, name: str, args: Sequence[ast.AST], line: int) -> None:
    """A command that is started: read as the shell would read it."""
    text = " ".join(_command_words(reader, name, args))
    if _WORTH.search(text):
        reader.program.texts.append(InnerText("shell", text, line))


def _command_words(reader: PythonText, name: str, args: Sequence[ast.AST]) -> Iterator[str]:
    exec_like = name.startswith(("exec", "spawn", "create_subprocess_exec"))
    for argument in args if exec_like else args[:1]:
        items = _elements(argument)
        if items is not None:
            for item in items:
                yield _quoted(shape(item, reader.constants))
        elif exec_like:
            yield _quoted(shape(argument, reader.constants))
        else:
            yield shape(argument, reader.constants)


def _elements(node: ast.AST) -> Sequence[ast.AST] | None:
    """The elements of a list, also of one that is put together from lists."""
    if isinstance(node, ast.List | ast.Tuple):
        return node.elts
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left = _elements(node.left)
        return None if left is None else [*left, *(_elements(node.right) or [node.right])]
    return None


def _quoted(word: str) -> str:
    return word if UNKNOWN in word else shlex.quote(word)


def _listed(reader: PythonText, items: Sequence[ast.AST], first: str | None, line: int) -> None:
    """`["sbatch", ...]`, wherever it goes from there; a list of programs' names is none."""
    if first is None or first.rpartition("/")[2] not in {"sbatch", "salloc"}:
        return
    others = [fold(item, reader.constants) for item in items[1:]]
    if not all(other is not None and re.fullmatch(r"s[a-z]{3,8}", other) for other in others):
        reader.program.find("direct-submission", f"it makes a command line of {first}", line)


def _evaluated(reader: PythonText, first: ast.AST | None, line: int) -> None:
    text = fold(first, reader.constants)
    if isinstance(first, ast.Call) and name_of(first) == "compile" and first.args:
        return  # judged by itself
    if text is not None:
        reader.program.texts.append(InnerText("python", text, line))
        return
    for one in reader.given.get(first.id, []) if isinstance(first, ast.Name) else [first]:
        if any(isinstance(inner, ast.Call) and name_of(inner) in _DECODERS for inner in walked(one or ast.Pass())):
            reader.program.opaque("it executes a text that it decodes or fetches", line)


def _imported(program: Program, node: ast.Import | ast.ImportFrom, line: int) -> None:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        base = "." * node.level + (node.module or "")
        glue = "" if base.endswith(".") or not base else "."
        names = [*([base] if node.module else []), *(f"{base}{glue}{alias.name}" for alias in node.names[:20])]
    for name in names:
        _module(program, name, line)


def _module(program: Program, name: str, line: int) -> None:
    root = name.partition(".")[0]
    if root in _SUBMITTERS:
        program.find("direct-submission", f"it imports {name.split('.', maxsplit=1)[0]}, which submits jobs", line)
    if root in {"lightning", "pytorch_lightning"}:
        program.notes.add("lightning")
    if root not in _LOADED and name.strip("."):
        program.files.append(RunFile("import", name, line))


def _writes(reader: PythonText, node: ast.Call, name: str) -> None:
    """Files that it writes: their text where it is constant."""
    if name == "open" and len(node.args) > 1 and set(fold(node.args[1], reader.constants) or "") & set("wax"):
        target: ast.AST | None = node.args[0]
    elif name in {"write_text", "write_bytes"} and isinstance(node.func, ast.Attribute):
        target = node.func.value
    else:
        return
    path = shape(target, reader.constants).rpartition("/")[2]
    text = fold(node.args[0], reader.constants) if name == "write_text" and node.args else None
    if path.strip(UNKNOWN) and not DEVICES.search(path):
        made = None if text is None else InnerText("other", text, reader.line(node))
        reader.program.written[path] = made


# --- Waiting for nothing: a program that keeps the job's nodes --------------------------------------------------------


_STARTING = """
start Popen submit Thread Process Timer spawn create_task ensure_future gather init serve serve_forever launch
run_in_executor map_async apply_async create_subprocess_exec create_subprocess_shell add_job every schedule
"""

_QUIET = frozenset({"sleep", "print", "debug", "info", "flush", "now", "time", "strftime", "ctime", "format"})


def _judge_waits(reader: PythonText, tree: ast.Module) -> None:
    """Sleeping for an hour or more, or for ever, where the program comes to it and has started nothing beside it."""
    calls = [inner for inner in ast.walk(tree) if isinstance(inner, ast.Call)]
    if any(name_of(call) in _STARTING.split() for call in calls):
        return
    for node in _comes_to(tree):
        call = node.value if isinstance(node, ast.Expr) else None
        call = call.value if isinstance(call, ast.Await) else call
        name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
        seconds = _seconds(call.args[0], reader.constants) if isinstance(call, ast.Call) and call.args else 0
        if isinstance(node, ast.While) and _only_sleeps(node):
            reader.program.idles.append(IdleCommand("loop", "a loop that only sleeps", reader.line(node)))
        elif name == "signal.pause":
            reader.program.idles.append(IdleCommand("endless", "`signal.pause`", reader.line(node)))
        elif name.rpartition(".")[2] == "sleep" and seconds >= LONG:
            reader.program.idles.append(IdleCommand("long", "`sleep` of an hour or more", reader.line(node)))


def _comes_to(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that a program comes to outside of loops, those of functions that it calls by name among them."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    rest: deque[ast.stmt] = deque(tree.body)
    while rest:
        node = rest.popleft()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.For | ast.AsyncFor):
            continue
        yield node
        if isinstance(node, ast.While):
            continue
        if isinstance(node, ast.Expr):
            names = [name_of(inner) for inner in walked(node.value) if isinstance(inner, ast.Call)]
            inner = [one for name in names if name in functions for one in functions.pop(name).body]
        else:
            inner = [one for part in ("body", "orelse", "finalbody") for one in getattr(node, part, ())]
        rest.extendleft(reversed(inner))


def _only_sleeps(loop: ast.While) -> bool:
    """`while True` around nothing but pauses and words about them."""
    inside = [inner for statement in loop.body for inner in walked(statement)]
    names = [name_of(inner) for inner in inside if isinstance(inner, ast.Call)]
    ends = any(isinstance(inner, ast.Break | ast.Return | ast.Raise | ast.Yield | ast.If) for inner in inside)
    endless = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return endless and not ends and "sleep" in names and _QUIET.issuperset(names)


def _seconds(node: ast.AST, texts: Mapping[str, str]) -> float:
    """A constant number of seconds; what is not known counts nothing."""
    match node:
        case ast.BinOp(op=ast.Mult()):
            return _seconds(node.left, texts) * _seconds(node.right, texts)
        case ast.BinOp(op=ast.Add()):
            return _seconds(node.left, texts) + _seconds(node.right, texts)
        case ast.Attribute(attr="inf"):
            return float("inf")
        case ast.Call(args=[value]) if name_of(node) == "float":
            return _seconds(value, texts)
    text = fold(node, texts) or ""
    return float(text) if re.fullmatch(r"\d{1,12}(?:\.\d{1,12})?(?:e[+]?\d{1,2})?|inf(?:inity)?", text) else 0.0
