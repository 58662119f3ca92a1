"""Devices in Python: settings of the variables that choose them, and devices that are named by their number."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from slurm_agent_tools.programs.program import DEVICES, NUMBERED
from slurm_agent_tools.programs.python_text import PythonText, fold, name_of, number_of, walked

_SETTERS = frozenset({"setdefault", "putenv", "setenv", "__setitem__"})
_NUMBERED_CALLS = frozenset({"cuda", "to", "set_device", "select_device"})
_LISTS = frozenset({"device_ids", "gpu_ids"})
_NUMBERS = frozenset({"gpu_id", "gpu_device_id", "main_gpu"})
_INDICES = frozenset({"DeviceIndex", "CudaDeviceIndex", "OpenCLDeviceIndex", "gpu_ids", "gpu_id"})  # keys of settings
_LISTINGS = frozenset({"devices", "local_devices", "list_physical_devices", "list_logical_devices"})
_TRAINERS = frozenset({"Trainer", "Fabric", "LightningCLI"})
_PRINTING = frozenset({"print", "debug", "info", "warning", "error", "critical", "exception", "log"})
_ASKING = re.compile(r"get_|mem|max_mem|reset_|[dD]evice\Z|utilization|temperature|power_draw")


def used(node: ast.AST) -> Sequence[ast.AST]:
    """Devices on which a call puts something, also where what it gives is only printed."""
    if not isinstance(node, ast.Call) or _ASKING.match(name_of(node)):
        return ()
    moved = node.args[:1] if name_of(node) in {"to", "cuda"} else []
    return [*moved, *(keyword.value for keyword in node.keywords if keyword.arg == "device")]


def names_devices(nodes: Sequence[ast.AST], silent: set[int]) -> bool:
    """Whether the name of such a variable stands somewhere where it is not only read."""
    read = {id(key) for node in nodes for key in _read_keys(node)}
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in silent | read
        and DEVICES.fullmatch(node.value)
        for node in nodes
    )


def _read_keys(node: ast.AST) -> Sequence[ast.AST]:
    """The keys that are only looked up or taken away."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load | ast.Del):
        return [node.slice]
    if isinstance(node, ast.Call) and name_of(node) in {"get", "getenv", "pop", "unsetenv"}:
        return node.args[:1]
    return ()


def judge(reader: PythonText, node: ast.AST) -> None:
    """One node of a program."""
    line = reader.line(node)
    match node:
        case ast.Call():
            _call(reader, node, line)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in (one for one in targets if isinstance(one, ast.Subscript)):
                _stored(reader, target, node.value, line)
        case ast.Dict() if id(node) not in reader.silent:
            for key, value in zip(node.keys, node.values, strict=True):
                if not _reads(value):
                    _sets(reader, key, value, line)
                _indexed(reader, fold(key, reader.constants), value, line)
        case ast.Subscript(value=ast.Call() | ast.Name() as listing) if _lists(reader, listing):
            if (number_of(node.slice) or 0) > 0:
                reader.program.find("device-index", f"it takes device {number_of(node.slice)} of all", line)
        case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp() if id(node) not in reader.silent:
            _named(reader, node, line)
        case _:
            return


def _lists(reader: PythonText, node: ast.Call | ast.Name) -> bool:
    """A list of all devices, or the name of one."""
    given = [node] if isinstance(node, ast.Call) else reader.given.get(node.id, [])
    return any(isinstance(one, ast.Call) and name_of(one) in _LISTINGS for one in given)


def _named(reader: PythonText, node: ast.AST, line: int) -> None:
    """A constant text that is a device's name."""
    value = fold(node, reader.constants)
    if value is not None and NUMBERED.fullmatch(value):
        reader.program.find("device-index", f"it names the device {value}", line)


def _stored(reader: PythonText, target: ast.Subscript, value: ast.AST | None, line: int) -> None:
    """`os.environ[key] = value`; where the key is computed, a name of the family elsewhere is taken for it."""
    _sets(reader, target.slice, value, line)
    owner = ast.unparse(target.value) if isinstance(target.value, ast.Name | ast.Attribute) else ""
    if owner.endswith("environ") and fold(target.slice, reader.constants) is None and reader.names_devices:
        reader.program.find("cuda-visible-devices", "it sets a variable whose name stands elsewhere in the text", line)


def _sets(reader: PythonText, key: ast.AST | None, value: ast.AST | None, line: int) -> None:
    """A setting; to hand on what Slurm set is worth a word only."""
    name = fold(key, reader.constants) or ""
    if not DEVICES.fullmatch(name):
        return
    level = "warn" if value is not None and _reads(value) else "deny"
    reader.program.find("cuda-visible-devices", f"it sets {name}", line, level)  # type: ignore[arg-type]


def _reads(value: ast.AST) -> bool:
    """`os.environ["CUDA_VISIBLE_DEVICES"]`; `os.environ[...].split(",")[0]` is no longer what Slurm set."""
    inner = list(walked(value)) if isinstance(value, ast.Subscript | ast.Call) else []
    cuts = any(isinstance(one, ast.Call) and name_of(one) in {"split", "join"} for one in inner)
    return not cuts and any(isinstance(one, ast.Constant) and DEVICES.fullmatch(str(one.value)) for one in inner)


def _call(reader: PythonText, node: ast.Call, line: int) -> None:
    name, program = reader.called(node), reader.program
    if name == "format":
        _named(reader, node, line)
    first = node.args[0] if node.args else None
    if name in _SETTERS and first is not None:
        _sets(reader, first, node.args[1] if len(node.args) > 1 else None, line)
        if fold(first, reader.constants) is None and reader.names_devices and name == "putenv":
            what = "it sets a variable whose name stands elsewhere in the text"
            program.find("cuda-visible-devices", what, line)
    if name == "setitem" and len(node.args) == 3:
        _sets(reader, node.args[1], node.args[2], line)
    number = reader.number(first)
    if name == "set_device" and re.fullmatch(r"[gxn]pu:\d+", fold(first, reader.constants) or ""):
        program.find("device-index", f"it calls {name}({fold(first, reader.constants)})", line)
    if name in _NUMBERED_CALLS and number is not None:
        program.find("device-index", f"it calls {name}({number})", line)
    if name in {"device", "Device"} and id(node) not in reader.silent:
        _device(reader, node, line)
    for keyword in node.keywords:
        _keyword(reader, name, keyword, line)


def _device(reader: PythonText, node: ast.Call, line: int) -> None:
    """`torch.device("cuda", 1)`, `torch.cuda.device(1)` and `cupy.cuda.Device(1)`."""
    second = number_of(node.args[1]) if len(node.args) > 1 else None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    of_cuda = getattr(owner, "attr", getattr(owner, "id", "")) == "cuda"
    number = second if second is not None else number_of(node.args[0]) if of_cuda and node.args else None
    if number is not None:
        reader.program.find("device-index", f"it names device {number}", line)


def _indexed(reader: PythonText, key: str | None, value: ast.AST, line: int) -> None:
    """`{"DeviceIndex": "0,1"}`, `{"gpu_id": 0}`."""
    items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    texts = [fold(item, reader.constants) for item in items]
    if key in _INDICES and texts and all(re.fullmatch(r"\d[\d,: ]*", text or "") for text in texts):
        reader.program.find("device-index", f"it names devices by number ({key})", line)


def _keyword(reader: PythonText, name: str, keyword: ast.keyword, line: int) -> None:
    program, value = reader.program, keyword.value
    if keyword.arg is not None and name not in _PRINTING:
        _sets(reader, ast.Constant(keyword.arg), value, line)
    numbers = [number_of(item) for item in value.elts] if isinstance(value, ast.List | ast.Tuple) else []
    numbered = [number for number in numbers if number is not None]
    if keyword.arg in _LISTS and numbered:
        program.find("device-index", f"it names devices by number ({keyword.arg})", line)
    if keyword.arg in {"devices", "gpus"} and name in _TRAINERS and numbered:
        program.find("device-index", f"it names devices by number ({keyword.arg}={numbered})", line)
    if keyword.arg in _NUMBERS and number_of(value) is not None:
        program.find("device-index", f"it names a device by its number ({keyword.arg}={number_of(value)})", line)
    if keyword.arg in {"devices", "gpus", "gpu_ids"} and re.fullmatch(
        r"\d+(?:[,:]\d+)+|\d+,", fold(value, reader.constants) or ""
    ):
        program.find("device-index", f"it names devices by number ({keyword.arg})", line)
    number = number_of(value) if keyword.arg == "device" else None
    if number is not None and (number > 0 or name in _NUMBERED_CALLS):  # device=0 is many a library's word for "a GPU"
        program.find("device-index", f"it calls {name}(device={number})", line)
