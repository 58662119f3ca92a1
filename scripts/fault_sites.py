"""Where a small fault could be put into a module, and what the module reads with it.

A fault is what a tired person writes: `<` for `<=`, a forgotten `not`, a branch that does nothing, an argument left
out. No fault is put where nothing behaves otherwise by it: annotations, decorators, texts that are told to people or
logs, a rule's examples with all that only they use, which are tests themselves, the order in which `min` and `max` get
what they compare and `find` the names of options, and how often a text is split of which only the first or last part is
used.
"""

from __future__ import annotations

import ast
import copy
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPPOSITE: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
_UNTOUCHED_FIELDS = frozenset({"annotation", "returns", "decorator_list", "bases", "format_spec"})
_UNTOUCHED_CALLS = frozenset({"Example", "ConfigDict", "TypeVar", "ContextVar", "cast", "get_logger"})
_ORDERLESS = frozenset({"min", "max", "find"})
_SPLITS = frozenset({"split", "rsplit"})
_LOGS = frozenset({"debug", "info", "warning", "error"})
_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Site:
    """One possible fault: `replacement` takes the place of what `parent` holds in `field` (at `index` of a list).

    `statement`: what has to be executed for the fault to matter; `function`: the nearest one around it, or "".
    """

    kind: str
    parent: ast.AST
    field: str
    index: int | None
    replacement: ast.AST
    statement: ast.stmt
    function: str

    @property
    def node(self) -> ast.AST:
        """What stands there."""
        held = getattr(self.parent, self.field)
        found: ast.AST = held if self.index is None else held[self.index]
        return found

    @property
    def change(self) -> tuple[str, str]:
        """What stands there, and what with the fault: a line each, cut to where they differ."""
        before, after = _line(self.node), _line(self.replacement)
        same = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
        start = max(0, same - _WIDTH // 2)
        return _cut(before, start), _cut(after, start)

    def apply(self) -> None:
        """Put the fault into the tree."""
        if self.index is None:
            setattr(self.parent, self.field, self.replacement)
        else:
            getattr(self.parent, self.field)[self.index] = self.replacement


def draw(texts: Sequence[tuple[str, str]], count: int, seed: str) -> list[tuple[str, int]]:
    """`count` faults as (path, number of the site in it): a statement by chance, a kind, and one of that kind in it.

    So a statement with many arguments is not drawn more often than a short one. `texts`: (path, source).
    """
    numbers: dict[tuple[str, int], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for path, text in texts:
        for number, site in enumerate(sites(ast.parse(text))):
            numbers[path, site.statement.lineno][site.kind].append(number)
    chance = random.Random(seed)  # noqa: S311 - it has to be the same again
    drawn = []
    for path, line in chance.sample(sorted(numbers), min(count, len(numbers))):
        kinds = numbers[path, line]
        drawn.append((path, chance.choice(kinds[chance.choice(sorted(kinds))])))
    return drawn


def faulty(text: str, number: int) -> str:
    """The module with one of its faults."""
    tree = ast.parse(text)
    sites(tree)[number].apply()
    return ast.unparse(ast.fix_missing_locations(tree))


def marked(text: str, numbers: Mapping[int, int]) -> str:
    """The module with a call of `fault_marks.reached` before the statements of some sites; number -> site.

    What is executed when a module is imported is marked at the beginning of each of its functions.
    """
    tree = ast.parse(text)
    here, parents = sites(tree), {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for number, site in numbers.items():
        mark = ast.parse(f"_fault_reached({number})").body[0]
        statement = here[site].statement
        around: ast.AST | None = statement
        while around is not None and not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            around = parents.get(around)
        if around is None:
            for node in ast.walk(tree):
                _mark_function(node, mark)
        elif around is statement:
            _mark_function(around, mark)
        else:
            body = _list_of(parents[statement], statement)
            body.insert(next(at for at, one in enumerate(body) if one is statement), mark)
    future = [at for at, one in enumerate(tree.body) if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    place = max(future, default=0) + 1
    tree.body[place:place] = ast.parse("from fault_marks import reached as _fault_reached").body
    return ast.unparse(ast.fix_missing_locations(tree))


def _mark_function(node: ast.AST, mark: ast.stmt) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node.body.insert(0 if ast.get_docstring(node) is None else 1, mark)


def _list_of(parent: ast.AST, statement: ast.stmt) -> list[ast.stmt]:
    lists = (value for _, value in ast.iter_fields(parent) if isinstance(value, list))
    return next(value for value in lists if any(one is statement for one in value))


def sites(tree: ast.Module) -> list[Site]:
    """All faults that could be put into a module, always in the same order."""
    return list(_Walk(_for_examples(tree)).inside(tree, tree.body[0] if tree.body else ast.Pass(), ""))


def _for_examples(tree: ast.Module) -> list[ast.stmt]:
    """What an example of a rule is, and what stands in the module for the examples alone."""
    named = {name: stmt for stmt in tree.body for name in _defined(stmt) if name.startswith("_")}
    used = {name: set(_users(tree, name)) for name in named}
    found: set[str] = set()
    while more := {
        name for name, users in used.items() if name not in found and users and users <= found | {"Example"}
    }:
        found |= more
    return [stmt for stmt in tree.body if isinstance(stmt, ast.ClassDef) and stmt.name == "Example"] + [
        named[name] for name in found
    ]


def _defined(stmt: ast.stmt) -> list[str]:
    if isinstance(stmt, ast.FunctionDef):
        return [stmt.name]
    return [one.id for one in stmt.targets if isinstance(one, ast.Name)] if isinstance(stmt, ast.Assign) else []


def _users(tree: ast.Module, name: str) -> Iterator[str]:
    """Where in a module a name is read: in an `Example`, in what defines another name, or elsewhere ("")."""
    for stmt in tree.body:
        examples = [node for node in ast.walk(stmt) if isinstance(node, ast.Call) and _called(node) == "Example"]
        inside = {id(node) for one in examples for node in ast.walk(one)}
        for node in ast.walk(stmt):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                yield "Example" if id(node) in inside else next(iter(_defined(stmt)), "")


def _called(node: ast.Call) -> str:
    """The name of what is called, without what it belongs to."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


class _Walk:
    """Goes through a tree and names each place with its statement and its function."""

    def __init__(self, left_out: Sequence[ast.stmt]) -> None:
        self._left_out = left_out

    def inside(self, parent: ast.AST, statement: ast.stmt, function: str) -> Iterator[Site]:
        for field, value in ast.iter_fields(parent):
            if field in _UNTOUCHED_FIELDS:
                continue
            for index, node in enumerate(value) if isinstance(value, list) else ((None, value),):
                if isinstance(node, ast.AST) and not _untouched(node) and node not in self._left_out:
                    yield from self._at(parent, field, index, node, statement, function)

    def _at(
        self, parent: ast.AST, field: str, index: int | None, node: ast.AST, statement: ast.stmt, function: str
    ) -> Iterator[Site]:
        if isinstance(node, ast.stmt):
            statement = node
        for kind, replacement in _replacements(parent, field, node):
            yield Site(kind, parent, field, index, replacement, statement, function)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        yield from self.inside(node, statement, function)


def _untouched(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == "Literal"
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _LOGS and ast.unparse(node.func.value).endswith("log")
    return isinstance(node.func, ast.Name) and node.func.id in _UNTOUCHED_CALLS


def _replacements(parent: ast.AST, field: str, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for kind, made in _OPERATORS:
        for replacement in made(parent, field, node):
            yield kind, replacement


def _comparisons(_parent: ast.AST, _field: str, node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[index] = _SWAPPED[type(operator)]()
            yield changed


def _conditions(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    """The condition the other way round, where it is not a comparison that is swapped already."""
    asked = field == "test" or (field == "ifs" and isinstance(parent, ast.comprehension))
    if asked and isinstance(node, ast.expr) and not isinstance(node, ast.Compare | ast.UnaryOp):
        yield ast.UnaryOp(ast.Not(), copy.deepcopy(node))
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)


def _junctions(_parent: ast.AST, _field: str, node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), copy.deepcopy(node.values))


def _negations(_parent: ast.AST, _field: str, node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield copy.deepcopy(node.operand)


def _sums(_parent: ast.AST, _field: str, node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPPOSITE:
        yield ast.BinOp(copy.deepcopy(node.left), _OPPOSITE[type(node.op)](), copy.deepcopy(node.right))


def _numbers(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    often = isinstance(parent, ast.Call) and _called(parent) in _SPLITS and field == "args"
    often |= isinstance(parent, ast.keyword) and parent.arg == "maxsplit"
    if isinstance(node, ast.Constant) and type(node.value) in {int, float} and not often:
        yield ast.Constant(node.value + 1)


def _returns(_parent: ast.AST, _field: str, node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Return) and node.value is not None:
        constant = isinstance(node.value, ast.Constant) and (node.value.value is None or node.value.value is False)
        if not constant:
            yield ast.Return(ast.Constant(None))


def _arguments(parent: ast.AST, _field: str, node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call) or (isinstance(parent, ast.Subscript) and _called(node) in _SPLITS):
        return
    for index, argument in enumerate(node.args):
        if len(node.args) + len(node.keywords) > 1 and not _told(argument):
            shorter = copy.deepcopy(node)
            del shorter.args[index]
            yield shorter
    for index, keyword in enumerate(node.keywords):
        if not _told(keyword.value):
            shorter = copy.deepcopy(node)
            del shorter.keywords[index]
            yield shorter
    for index in () if _called(node) in _ORDERLESS else range(len(node.args) - 1):
        swapped = copy.deepcopy(node)
        swapped.args[index : index + 2] = reversed(swapped.args[index : index + 2])
        yield swapped


def _told(argument: ast.expr) -> bool:
    """Whether it is a text: most are for people to read."""
    return isinstance(argument, ast.JoinedStr) or (
        isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    )


def _branches(_parent: ast.AST, _field: str, node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.If):
        return
    for field in ("body", "orelse"):
        branch = getattr(node, field)
        if branch and not isinstance(branch[0], ast.Pass) and not (field == "orelse" and isinstance(branch[0], ast.If)):
            changed = copy.deepcopy(node)
            setattr(changed, field, [ast.Pass()])
            yield changed


def _compared_texts(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    """A text that something is compared with, alone or among others."""
    if field in {"left", "comparators"} and isinstance(parent, ast.Compare) and _holds_text(node):
        changed = copy.deepcopy(node)
        first = next(one for one in ast.walk(changed) if isinstance(one, ast.Constant) and isinstance(one.value, str))
        first.value = f"{first.value}-"
        yield changed
    if isinstance(parent, ast.MatchValue) and isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield ast.Constant(f"{node.value}-")


def _holds_text(node: ast.AST) -> bool:
    members = node.elts if isinstance(node, ast.Tuple | ast.Set | ast.List) else [node]
    return any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in members)


_Operator = Callable[[ast.AST, str, ast.AST], Iterator[ast.AST]]
_OPERATORS: tuple[tuple[str, _Operator], ...] = (
    ("comparison", _comparisons),
    ("condition", _conditions),
    ("and or", _junctions),
    ("not", _negations),
    ("sum", _sums),
    ("number", _numbers),
    ("return", _returns),
    ("argument", _arguments),
    ("branch", _branches),
    ("text", _compared_texts),
)


def _line(node: ast.AST) -> str:
    return " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())


def _cut(words: str, start: int) -> str:
    end = "…" if len(words) > start + _WIDTH else ""
    return f"{'…' if start else ''}{words[start : start + _WIDTH]}{end}"
