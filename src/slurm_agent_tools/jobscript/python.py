"""What a Python program does, as far as the policy asks: device settings, device numbers, submissions, retries."""

from __future__ import annotations

import ast
import re

from slurm_agent_tools.jobscript.shell import DEVICES, Program

_DEVICE = re.compile(r"(?:cuda|hip|xpu):\d+|/(?:device:)?GPU:\d+", re.IGNORECASE)
_SUBMITTERS = {"submitit", "pyslurm", "dask_jobqueue", "simple_slurm", "parsl"}
_NUMBERED = {"cuda", "set_device"}
_RUNNERS = {"system", "popen", "run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput"}


def read_python(text: str, first_line: int = 1) -> Program:
    """Walk one program. Text that is no Python is opaque."""
    program = Program()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        program.find("opaque-code", "this Python text cannot be parsed", first_line, "approve")
        return program
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1) + first_line - 1
        if isinstance(node, ast.Call):
            _call(program, node, line)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                _target(program, target, line)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            _imported(program, node, line)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DEVICE.fullmatch(node.value):
            program.find("device-index", f"it names the device {node.value}", line)
        elif isinstance(node, ast.JoinedStr) and _DEVICE.fullmatch(constant(node) or ""):
            program.find("device-index", f"it names the device {constant(node)}", line)
    return program


def constant(node: ast.AST) -> str | None:
    """The text of a constant expression: literals, `+`, f-strings of constants."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = constant(node.left), constant(node.right)
        return left + right if left is not None and right is not None else None
    if isinstance(node, ast.JoinedStr):
        parts = [constant(part) for part in node.values]
        return "".join(part for part in parts if part is not None) if None not in parts else None
    return constant(node.value) if isinstance(node, ast.FormattedValue) else None


def _target(program: Program, target: ast.AST, line: int) -> None:
    if isinstance(target, ast.Subscript):
        _variable(program, constant(target.slice), line)


def _variable(program: Program, name: str | None, line: int) -> None:
    if name is not None and DEVICES.fullmatch(name):
        program.find("cuda-visible-devices", f"it sets {name}", line)


def _call(program: Program, node: ast.Call, line: int) -> None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0] if node.args else None
    if name in {"setdefault", "putenv", "setenv"} and first is not None:
        _variable(program, constant(first), line)
    if name in _NUMBERED and isinstance(first, ast.Constant) and type(first.value) is int:
        program.find("device-index", f"it calls {name}({first.value})", line)
    if (
        name == "device"
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
        and type(node.args[1].value) is int
    ):
        program.find("device-index", f"it names device {node.args[1].value}", line)
    for keyword in node.keywords:
        _keyword(program, keyword, line)
    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
        if isinstance(argument, ast.Dict):
            for key in argument.keys:
                _variable(program, constant(key) if key is not None else None, line)
    if name in _RUNNERS and first is not None:
        _command(program, first, line)


def _keyword(program: Program, keyword: ast.keyword, line: int) -> None:
    if keyword.arg is not None:
        _variable(program, keyword.arg, line)
    value = keyword.value
    if keyword.arg == "auto_requeue" and isinstance(value, ast.Constant) and value.value is True:
        program.find("auto-retry", "it requeues itself (auto_requeue)", line)
    if keyword.arg in {"device_ids", "gpu_ids"} and isinstance(value, ast.List):
        numbers = [item for item in value.elts if isinstance(item, ast.Constant) and type(item.value) is int]
        if numbers:
            program.find("device-index", f"it names devices by number ({keyword.arg})", line)


def _command(program: Program, first: ast.AST, line: int) -> None:
    words = [constant(item) for item in first.elts] if isinstance(first, ast.List | ast.Tuple) else [constant(first)]
    text = " ".join(word for word in words if word is not None)
    if re.search(r"(?:^|[\s;&|/])(?:sbatch|salloc)\b", text):
        program.find("direct-submission", "it runs sbatch", line)
    if re.search(r"\bsrun\b.*--pty", text):
        program.find("interactive", "it runs srun --pty", line)
    if re.search(r"\bscontrol\s+requeue", text):
        program.find("auto-retry", "it runs scontrol requeue", line)
    if (setting := re.search(r"\b(\w+)=", text)) is not None:
        _variable(program, setting[1], line)


def _imported(program: Program, node: ast.Import | ast.ImportFrom, line: int) -> None:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for name in names:
        if name.partition(".")[0] in _SUBMITTERS:
            program.find("direct-submission", f"it imports {name}, which submits jobs", line)
