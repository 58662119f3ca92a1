"""Python's own syntax tree of a text, and the text of an expression as far as it is constant."""

from __future__ import annotations

import ast
import base64
import binascii
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurm_agent_tools.programs.program import Program, spend
from slurm_agent_tools.programs.shell_words import UNKNOWN

MAX_CONSTANT = 4096

# Methods of a constant text whose result is as constant.
_METHODS = frozenset({"lower", "upper", "strip", "lstrip", "rstrip", "replace", "title", "capitalize", "removeprefix"})
_KEPT = frozenset({"decode", "encode", "str", "which", "quote", "Path", "expanduser", "expandvars", "fspath", "intern"})


def walked(node: ast.AST) -> Iterator[ast.AST]:
    """As `ast.walk`, but counted: what is looked through from many nodes of one text costs by its square."""
    for inner in ast.walk(node):
        spend(1)
        yield inner


_IMPORTS = re.compile(r"\b(?:import|from)\b(?>(?:[\w., \t\f]|\\(?:\r\n?|\n))*)")

_COPIED = 4_000_000
"""Letters that Python's parser may copy: it joins a name of an import part by part, 30,000 of them in a gigabyte."""

_PARSING = (
    threading.Lock()
)  # Python 3.11 counts how deep it is for all threads together, and warnings are all threads' too


def parsed(text: str, mode: str = "exec") -> Any:
    """The syntax tree, without Python's warnings about a text that is not ours. Raises as `ast.parse`."""
    if sum(len(names) * names.count(".") for names in _IMPORTS.findall(text)) > _COPIED:
        raise ValueError("the names of its imports are too long")
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode=mode)


def fold(node: ast.AST | None, constants: Mapping[str, str]) -> str | None:
    """The text of a constant expression: literals, names, joins, formats and slices of constants, decoded bytes."""
    text = _fold(node, constants)
    spend(1 if text is None else 1 + len(text) // 16)
    return text if text is None or len(text) <= MAX_CONSTANT else None


def _fold(node: ast.AST | None, constants: Mapping[str, str]) -> str | None:  # noqa: PLR0911 - one answer per kind
    match node:
        case ast.Constant(value=value):
            return value.decode("latin-1") if isinstance(value, bytes) else str(value)
        case ast.Name():
            return constants.get(node.id)
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr):
            return constants.get(attr)
        case ast.BinOp(op=ast.Add()):
            return _joined([fold(node.left, constants), fold(node.right, constants)])
        case ast.BinOp(op=ast.Mod()):
            items = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return _formatted(fold(node.left, constants), items, constants, str.__mod__)
        case ast.JoinedStr():
            return _joined([fold(part, constants) for part in node.values])
        case ast.FormattedValue():
            return fold(node.value, constants)
        case ast.Subscript():
            return _sliced(fold(node.value, constants), node.slice)
        case ast.Call():
            return _called(node, constants)
        case _:
            return None


def _joined(parts: Sequence[str | None], glue: str = "") -> str | None:
    texts = [part for part in parts if part is not None]
    small = len(glue) * len(texts) + sum(map(len, texts)) <= MAX_CONSTANT
    return glue.join(texts) if small and len(texts) == len(parts) else None


def _formatted(
    pattern: str | None, items: Sequence[ast.AST], constants: Mapping[str, str], form: Callable[[str, Any], str]
) -> str | None:
    """A format with constant items. A width could make it endless, so that there may be none."""
    values = [fold(item, constants) for item in items]
    if pattern is None or None in values or re.search(r"\d|%[^sdi%]|\{[^}]", pattern):
        return None
    try:
        return form(pattern.replace("%d", "%s").replace("%i", "%s"), tuple(values))
    except (TypeError, ValueError, LookupError, AttributeError):
        return None


def _sliced(text: str | None, index: ast.AST) -> str | None:
    if text is None:
        return None
    if not isinstance(index, ast.Slice):
        number = _number(index)
        return text[number] if number is not None and -len(text) <= number < len(text) else None
    bounds = [index.lower, index.upper, index.step]
    numbers = [None if bound is None else _number(bound) for bound in bounds]
    if any(number is None and bound is not None for number, bound in zip(numbers, bounds, strict=True)) or not (
        index.step is None or numbers[2]
    ):
        return None
    return text[slice(*numbers)]


def _number(node: ast.AST) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _called(node: ast.Call, constants: Mapping[str, str]) -> str | None:  # noqa: PLR0911 - one answer per kind
    name = name_of(node)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    args = node.args
    if name == "join" and owner is not None and len(args) == 1:
        return _joined(_items(args[0], constants), fold(owner, constants) or "")
    if name == "format" and owner is not None and not node.keywords:
        return _formatted(fold(owner, constants), args, constants, lambda text, values: text.format(*values))
    if name in _METHODS and owner is not None:
        text, values = fold(owner, constants), [fold(item, constants) for item in args]
        if text is None or None in values or len(text) * max([1, *(len(value or "") for value in values)]) > 2**16:
            return None
        try:
            return str(getattr(text, name)(*values))
        except TypeError:
            return None
    if name in _KEPT:
        return fold(args[0], constants) if args and name not in {"decode", "encode"} else fold(owner, constants)
    if name in {"b64decode", "standard_b64decode", "urlsafe_b64decode", "fromhex", "unhexlify"} and args:
        return _decoded(name, fold(args[0], constants))
    if name == "chr" and len(args) == 1:
        number = _number(args[0])
        return chr(number) if number is not None and 0 <= number < 0x110000 else None
    return None


def _items(node: ast.AST, constants: Mapping[str, str]) -> Sequence[str | None]:
    """The elements that a join gets."""
    if isinstance(node, ast.List | ast.Tuple):
        return [fold(item, constants) for item in node.elts]
    if isinstance(node, ast.Call) and name_of(node) == "reversed" and node.args:
        text = fold(node.args[0], constants)
        return [None] if text is None else [text[::-1]]
    if isinstance(node, ast.Call) and name_of(node) == "map" and len(node.args) == 2:
        elements = node.args[1].elts if isinstance(node.args[1], ast.List | ast.Tuple) else ()
        numbers = [_number(item) for item in elements]
        kept = [chr(number) for number in numbers if number is not None and 0 <= number < 0x110000]
        return kept if kept and len(kept) == len(numbers) and getattr(node.args[0], "id", "") == "chr" else [None]
    return [None]


def _decoded(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        data = bytes.fromhex(text) if "hex" in name else base64.b64decode(text)
    except (ValueError, binascii.Error):
        return None
    return data.decode("utf-8", "replace")


def shape(node: ast.AST | None, constants: Mapping[str, str]) -> str:
    """As `fold`, with a sign in the place of what is not constant."""
    whole = fold(node, constants)
    if whole is not None:
        return whole
    if isinstance(node, ast.JoinedStr):
        return "".join(shape(part, constants) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _blanks(shape(node.left, constants), "%s", "%d")
    if isinstance(node, ast.BinOp):
        return shape(node.left, constants) + shape(node.right, constants)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"format", "split"}:
        return _braces(shape(node.func.value, constants))
    return UNKNOWN


def _blanks(text: str, *signs: str) -> str:
    for sign in signs:
        text = text.replace(sign, UNKNOWN)
    return text


def _braces(text: str) -> str:
    """The fields of a format replaced; one pass, whatever stands in it."""
    out, rest = [], text
    while "{" in rest:
        before, _, behind = rest.partition("{")
        field, closed, rest = behind.partition("}")
        out += [before, UNKNOWN if closed else "{" + field]
    return "".join([*out, rest])


def name_of(node: ast.Call) -> str:
    """The last name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else str(getattr(node.func, "id", ""))


def number_of(node: ast.AST | None) -> int | None:
    """A whole number that stands there as such."""
    return None if node is None else _number(node)


def constants(nodes: Sequence[ast.AST]) -> tuple[dict[str, str], dict[str, list[ast.AST]]]:
    """Names with exactly one assignment, of a constant text; and what every name is assigned, the first eight."""
    values: dict[str, list[ast.AST | None]] = {}
    for node in nodes:
        for name, value in _bound(node):
            values.setdefault(name, []).append(value)
    texts: dict[str, str] = {}
    for name, found in values.items():
        text = fold(found[0], texts) if len(found) == 1 else None
        if text is not None:
            texts[name] = text
    given = {name: [value for value in found[:8] if value is not None] for name, found in values.items()}
    return texts, given


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _unpacked(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.For(target=target, iter=looped):
            values = looped.elts if isinstance(looped, ast.List | ast.Tuple) else ()
            yield from ((name, None) for name, _ in _unpacked(target, None))
            for value in values:
                yield from _unpacked(target, value)


def _unpacked(target: ast.AST, value: ast.AST | None) -> Iterator[tuple[str, ast.AST | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        yield target.attr, value
    elif isinstance(target, ast.Tuple | ast.List):
        same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        values: Sequence[ast.AST | None] = value.elts if same else [None] * len(target.elts)  # type: ignore[union-attr]
        for inner, one in zip(target.elts, values, strict=True):
            if isinstance(inner, ast.Name):
                yield inner.id, one


@dataclass(slots=True)
class PythonText:
    """One program while it is read: its constants, what each name is given, and the words that only print."""

    program: Program
    first_line: int
    constants: dict[str, str]
    given: dict[str, list[ast.AST]]
    silent: set[int]
    names_devices: bool
    other_names: dict[str, str]

    def number(self, node: ast.AST | None) -> int | None:
        """A whole number, also one that a name stands for."""
        text = self.constants.get(node.id, "") if isinstance(node, ast.Name) else ""
        return int(text) if text.isdecimal() and len(text) < 4 else number_of(node)

    def called(self, node: ast.Call) -> str:
        """The name of what is called, through `import ... as`, an assignment and getattr."""
        name = name_of(node)
        if isinstance(node.func, ast.Call) and name_of(node.func) == "getattr" and len(node.func.args) > 1:
            return fold(node.func.args[1], self.constants) or ""
        if isinstance(node.func, ast.Name):
            values = self.given.get(name, [])
            owned = values[0].attr if len(values) == 1 and isinstance(values[0], ast.Attribute) else name
            return self.other_names.get(name, owned)
        return name

    def line(self, node: ast.AST) -> int:
        """The line of a node in its file."""
        return int(getattr(node, "lineno", 1)) + self.first_line - 1
