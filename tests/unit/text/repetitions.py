"""Which expressions of a module read a text again and again: two repetitions side by side that take the same letters.

For `a\\s*\\(?\\s*b` a text of n blanks is read n times for each way to share the blanks out, and `re` holds the
interpreter meanwhile. Nothing is timed: the expressions are looked at.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

_FUNCTIONS = frozenset({
    "re.compile", "re.search", "re.match", "re.fullmatch", "re.sub", "re.split", "re.findall", "re.finditer",
})  # fmt: skip
_LETTERS = frozenset(map(chr, range(128)))
_LONG = 1000
_KINDS = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s", sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip

Tree = Sequence[tuple[Any, Any]]


def expressions(name: str) -> Iterator[tuple[int, str, str]]:
    """Line, function and text of each expression that a module writes down, those with variables of the module too."""
    module = importlib.import_module(name)
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _FUNCTIONS:
            text = _value(module, node.args[0])
            if isinstance(text, str):
                yield node.lineno, ast.unparse(node.func), text


def _value(module: ModuleType, node: ast.expr) -> object:
    try:
        return eval(compile(ast.Expression(node), "", "eval"), dict(vars(module)))  # noqa: S307 - our own source
    except NameError:
        return None  # it is made of what a function was given


@dataclass(frozen=True)
class _Item:
    """A part of an expression: what it begins with, all that it takes, and whether it may be left out or given back."""

    first: frozenset[str]
    every: frozenset[str]
    optional: bool
    long: bool = False
    kept: bool = False


def shared(expression: str, *, whole: bool = False) -> list[str]:
    """The letters that two repetitions share where nothing parts them and something can fail behind them.

    `whole`: the text has to match to its end.
    """
    return [min(letters) for letters in _shared(parser.parse(expression), whole)]


def leads(expression: str) -> bool:
    """Whether it begins with a repetition and goes on: looked for anywhere, that is read anew from each letter on."""
    tree = parser.parse(expression)
    ways = tree[0][1][1] if len(tree) == 1 and tree[0][0] is sre.BRANCH else [tree]
    return any(
        items[0].long and any(not item.optional for item in items[1:])
        for way in ways
        if len(way) and way[0][0] not in (sre.AT, sre.ASSERT, sre.ASSERT_NOT) and (items := list(_items(way)))
    )


def _shared(tree: Tree, ends: bool) -> Iterator[frozenset[str]]:
    items = list(_items(tree))
    for place, item in enumerate(items):
        if item.long and not item.kept:
            yield from _behind(item, items[place + 1 :], ends)
    for kind, value in _flat(tree):
        for inner in _inner(kind, value):
            again = _long(kind, value) and kind is not sre.POSSESSIVE_REPEAT
            yield from _shared([*inner, *inner] if again else inner, True)


def _behind(item: _Item, behind: Sequence[_Item], ends: bool) -> Iterator[frozenset[str]]:
    for place, other in enumerate(behind):
        both = item.every & other.first
        fails = ends or any(not one.optional for one in behind[place + 1 :])
        if other.long and both and fails:
            yield both
        if not other.optional and not both:
            return


def _items(tree: Tree) -> Iterator[_Item]:
    for kind, value in _flat(tree):
        first, optional = _first([(kind, value)])
        yield _Item(first, _every([(kind, value)]), optional, _long(kind, value), kind is sre.POSSESSIVE_REPEAT)


def _flat(tree: Tree) -> Iterator[tuple[Any, Any]]:
    for kind, value in tree:
        if kind is sre.SUBPATTERN:
            yield from _flat(value[3])
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[1] == 1 and any(_long(*one) for one in _flat(value[2])):
            yield from _flat(value[2])
        elif kind not in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
            yield kind, value


def _long(kind: Any, value: Any) -> bool:
    repeats = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
    return kind in repeats and (value[1] is sre.MAXREPEAT or value[1] >= _LONG)


def _every(tree: Tree) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for kind, value in _flat(tree):
        inner = _inner(kind, value)
        found |= frozenset().union(*map(_every, inner)) if inner else _letters(kind, value)
    return found


def _inner(kind: Any, value: Any) -> list[Tree]:
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [value[2]]
    if kind is sre.SUBPATTERN:
        return [value[3]]
    if kind is sre.BRANCH:
        return list(value[1])
    return [value] if kind is sre.ATOMIC_GROUP else []


def _first(tree: Tree) -> tuple[frozenset[str], bool]:
    """The letters that a text of this may begin with, and whether it may be empty."""
    found: frozenset[str] = frozenset()
    for kind, value in tree:
        inner = [_first(one) for one in _inner(kind, value)]
        if inner:
            found = found.union(*(letters for letters, _ in inner))
            empty = any(may for _, may in inner) or (
                kind not in (sre.SUBPATTERN, sre.BRANCH, sre.ATOMIC_GROUP) and not value[0]
            )
        elif kind in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
            empty = True
        else:
            found, empty = found | _letters(kind, value), False
        if not empty:
            return found, False
    return found, True


def _letters(kind: Any, value: Any) -> frozenset[str]:
    if kind is sre.LITERAL:
        return frozenset({chr(value)})
    if kind is sre.NOT_LITERAL:
        return _LETTERS - {chr(value)}
    if kind is sre.IN:
        taken = frozenset(letter for one in value for letter in _LETTERS if _in(letter, *one))
        return _LETTERS - taken if value[0][0] is sre.NEGATE else taken
    return _LETTERS - {"\n"}  # any; and what a group found before


def _in(letter: str, kind: Any, value: Any) -> bool:
    if kind is sre.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    if kind is sre.CATEGORY:
        return re.match(_KINDS[value], letter) is not None
    return bool(kind is sre.LITERAL and chr(value) == letter)
