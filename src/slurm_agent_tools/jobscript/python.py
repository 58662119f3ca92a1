"""What a Python program does, as far as the policy asks: device settings, device numbers, submissions, retries."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from slurm_agent_tools.jobscript.program import NUMBERED, Program, Text
from slurm_agent_tools.jobscript.words import UNKNOWN

MAX_CHARACTERS = 2**20
_SUBMITTERS = frozenset(
    {"submitit", "pyslurm", "dask_jobqueue", "simple_slurm", "simpleslurm", "slurmpy", "pyslurmutils", "parsl"}
)
_RUNNERS_WORDS = """
system popen run call check_call check_output Popen getoutput getstatusoutput create_subprocess_exec
create_subprocess_shell execv execve execvp execvpe execl execlp execle spawnl spawnlp spawnv spawnvp spawn
"""
_RUNNERS = frozenset(_RUNNERS_WORDS.split())
_SETTERS = frozenset({"setdefault", "putenv", "setenv"})
_NUMBERED_CALLS = frozenset({"cuda", "set_device", "select_device"})
_LISTS = frozenset({"device_ids", "gpu_ids"})
_TELLING = frozenset({"print", "debug", "info", "warning", "error", "critical", "exception", "log", "fail", "skip"})
# Only a text with one of these can matter to the shell's reader, which costs a process.
_WORTH = re.compile(
    r"sbatch|salloc|srun|scontrol|scancel|qsub|bsub|VISIBLE|ORDINAL|AFFINITY|:\d|\bsh\b|bash|eval|curl|base64|ssh|GPU"
)


@dataclass(slots=True)
class _Reader:
    program: Program
    first_line: int
    constants: dict[str, str] = field(default_factory=dict)

    def line(self, node: ast.AST) -> int:
        """The line of a node in its file."""
        return int(getattr(node, "lineno", 1)) + self.first_line - 1


def read_python(text: str, first_line: int = 1) -> Program:
    """Walk one program. Text that is no Python, or too large, is opaque."""
    program = Program()
    try:
        if len(text) > MAX_CHARACTERS:
            raise ValueError("too large")  # noqa: TRY301 - one answer for all that cannot be read
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        program.opaque("this Python text cannot be parsed", first_line)
        return program
    nodes = list(ast.walk(tree))
    reader = _Reader(program, first_line, _constants(nodes))
    silent = {id(inner) for node in nodes if _only_tells(node) for inner in ast.walk(node)}
    for node in nodes:
        _visit(reader, node, silent=id(node) in silent)
    return program


def _constants(nodes: list[ast.AST]) -> dict[str, str]:
    """Names with exactly one assignment, of a constant text."""
    values: dict[str, list[str | None]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            for target in targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(fold(value, {}) if value is not None else None)
    return {name: found[0] for name, found in values.items() if len(found) == 1 and found[0] is not None}


def _only_tells(node: ast.AST) -> bool:
    """Comparisons, and calls that print: words in them do nothing."""
    if isinstance(node, ast.Compare):
        return True
    return isinstance(node, ast.Call) and _name(node) in _TELLING and not isinstance(node.func, ast.Call)


def fold(node: ast.AST | None, constants: Mapping[str, str]) -> str | None:  # noqa: PLR0911 - one answer per kind
    """The text of a constant expression: literals, names, `+`, `%`-free joins and f-strings of constants."""
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.Name():
            return constants.get(node.id)
        case ast.BinOp(op=ast.Add()):
            left, right = fold(node.left, constants), fold(node.right, constants)
            return left + right if left is not None and right is not None else None
        case ast.JoinedStr():
            parts = [fold(part, constants) for part in node.values]
            return "".join(part for part in parts if part is not None) if None not in parts else None
        case ast.FormattedValue():
            return fold(node.value, constants)
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str() as glue), attr="join"), args=[ast.List() as items]
        ):
            words = [fold(item, constants) for item in items.elts]
            return glue.join(word for word in words if word is not None) if None not in words else None
        case _:
            return None


def _shape(node: ast.AST | None, constants: Mapping[str, str]) -> str:
    """As `fold`, with a sign in the place of what is not constant."""
    whole = fold(node, constants)
    if whole is not None:
        return whole
    if isinstance(node, ast.JoinedStr):
        return "".join(_shape(part, constants) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _shape(node.left, constants) + _shape(node.right, constants)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"format", "split"}:
        return re.sub(r"\{[^{}]*\}", UNKNOWN, _shape(node.func.value, constants))
    return UNKNOWN


def _name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else str(getattr(node.func, "id", ""))


def _visit(reader: _Reader, node: ast.AST, *, silent: bool) -> None:
    program, line = reader.program, reader.line(node)
    match node:
        case ast.Call():
            _call(reader, node, line)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Subscript):
                    program.sets(fold(target.slice, reader.constants) or "", line)
            if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Dict):  # os.environ |= {...}
                _keys(reader, node.value, line)
        case ast.Import() | ast.ImportFrom():
            _imported(program, node, line)
        case ast.Dict():
            _environment(reader, node, line)
        case ast.Constant(value=str()) | ast.JoinedStr() if not silent:
            value = fold(node, reader.constants)
            if value is not None and NUMBERED.fullmatch(value):
                program.find("device-index", f"it names the device {value}", line)
        case _:
            return


def _keys(reader: _Reader, node: ast.Dict, line: int) -> None:
    for key in node.keys:
        reader.program.sets(fold(key, reader.constants) or "", line)


def _environment(reader: _Reader, node: ast.Dict, line: int) -> None:
    """`{**os.environ, "CUDA_VISIBLE_DEVICES": "0"}`: the environment of a child."""
    if any(key is None for key in node.keys):
        _keys(reader, node, line)


def _call(reader: _Reader, node: ast.Call, line: int) -> None:
    name, program = _name(node), reader.program
    first = node.args[0] if node.args else None
    if name in _SETTERS and first is not None:
        program.sets(fold(first, reader.constants) or "", line)
    number = _number(first)
    if name in _NUMBERED_CALLS and number is not None:
        program.find("device-index", f"it calls {name}({number})", line)
    if name == "device":
        _device(program, node, line)
    for keyword in node.keywords:
        _keyword(reader, name, keyword, line)
    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
        if isinstance(argument, ast.Dict):
            _keys(reader, argument, line)
    if name in _RUNNERS and first is not None:
        _command(reader, node, line)
    if name in {"exec", "eval", "compile"} and isinstance(node.func, ast.Name):
        _evaluated(reader, first, line)
    if name == "SLURMCluster":
        program.find("direct-submission", "it makes a SLURMCluster, which submits jobs", line)


def _number(node: ast.AST | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _device(program: Program, node: ast.Call, line: int) -> None:
    """`torch.device("cuda", 1)` and `torch.cuda.device(1)`."""
    second = _number(node.args[1]) if len(node.args) > 1 else None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    of_cuda = isinstance(owner, ast.Attribute) and owner.attr == "cuda"
    number = second if second is not None else _number(node.args[0]) if of_cuda and node.args else None
    if number is not None:
        program.find("device-index", f"it names device {number}", line)


def _keyword(reader: _Reader, name: str, keyword: ast.keyword, line: int) -> None:
    program, value = reader.program, keyword.value
    if keyword.arg is not None and name not in _TELLING:
        program.sets(keyword.arg, line)
    if keyword.arg == "auto_requeue" and isinstance(value, ast.Constant):
        if value.value is True:
            program.find("auto-retry", "it requeues itself (auto_requeue)", line)
        program.notes.add("no-requeue")
    if (
        keyword.arg in _LISTS
        and isinstance(value, ast.List | ast.Tuple)
        and any(_number(item) is not None for item in value.elts)
    ):
        program.find("device-index", f"it names devices by number ({keyword.arg})", line)
    if keyword.arg == "device" and name in _NUMBERED_CALLS and _number(value) is not None:
        program.find("device-index", f"it calls {name}(device={_number(value)})", line)
    if keyword.arg in {"max_failures", "max_restarts", "max_retries"} and name in {
        "FailureConfig",
        "LaunchConfig",
        "remote",
    }:
        number = _number(value)
        if number:
            program.find("auto-retry", f"{keyword.arg}={number} starts failed work again", line)


def _command(reader: _Reader, node: ast.Call, line: int) -> None:
    """A command that is started: read as the shell would read it."""
    text = " ".join(_command_words(reader, node))
    if _WORTH.search(text):
        reader.program.texts.append(Text("shell", text, line))


def _command_words(reader: _Reader, node: ast.Call) -> Iterator[str]:
    first = node.args[0]
    exec_like = _name(node).startswith(("exec", "spawn", "create_subprocess_exec"))
    for argument in node.args if exec_like else [first]:
        if isinstance(argument, ast.List | ast.Tuple):
            for item in argument.elts:
                yield _quoted(_shape(item, reader.constants))
        elif exec_like:
            yield _quoted(_shape(argument, reader.constants))
        else:
            yield _shape(argument, reader.constants)


def _quoted(word: str) -> str:
    return word if UNKNOWN in word else shlex.quote(word)


def _evaluated(reader: _Reader, first: ast.AST | None, line: int) -> None:
    text = fold(first, reader.constants)
    if text is not None:
        reader.program.texts.append(Text("python", text, line))
    elif isinstance(first, ast.Call) and _name(first) in {
        "b64decode",
        "decode",
        "decompress",
        "loads",
        "fromhex",
        "read",
        "urlopen",
    }:
        reader.program.opaque("it executes a text that it decodes or fetches", line)


def _imported(program: Program, node: ast.Import | ast.ImportFrom, line: int) -> None:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for name in names:
        root = name.partition(".")[0]
        if root in _SUBMITTERS:
            program.find("direct-submission", f"it imports {name}, which submits jobs", line)
        if root in {"lightning", "pytorch_lightning"}:
            program.notes.add("lightning")
