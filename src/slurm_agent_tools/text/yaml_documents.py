"""YAML that somebody else may have written, within limits that hold before any value is made of it.

libyaml tells one event after the other; the tree is put together here, and given up at the first event beyond a limit.
An alias counts as all that it stands for, so nothing unfolds later. Numbers are short: one in base 60 took 27 s.
Everything that can be wrong is a yaml.MarkedYAMLError with its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from slurm_agent_tools.text.bounded_documents import DEPTH, NOT_WHOLE, VALUES, WORD, is_half

_QUICK = getattr(yaml, "CSafeLoader", None)

_SLOW_LIMIT = 2**18
"""Characters that are read where PyYAML came without libyaml: it takes 2 s for them."""

_TAG = "tag:yaml.org,2002:"

_NUMBERS = frozenset({f"{_TAG}{name}" for name in ("int", "float", "timestamp", "bool", "null")})

_KEYS = frozenset({f"{_TAG}int", f"{_TAG}float"})

_NUMERIC = re.compile(r"[-+]?(?:0x[0-9a-fA-F_]+|0b[01_]+|[0-9.][0-9_:.eE+-]*)")
"""What may be a number of any length."""

_KEY_DIGITS = 18
"""Of a number that is a key: longer ones can be chosen so that Python finds each only behind all the others."""


@dataclass(slots=True)
class _Anchored:
    """What an anchor names: how many values, and how many levels, an alias to it stands for."""

    node: yaml.Node
    values: int
    height: int


@dataclass(slots=True)
class _Composer:
    loader: Any
    aliases: bool
    values: int = 0
    anchors: dict[str, _Anchored | None] = field(default_factory=dict)

    def document(self) -> yaml.Node | None:
        """The one document of the stream; None where it is empty."""
        self._event()
        if self.loader.check_event(yaml.StreamEndEvent):
            return None
        self._event()
        root = self._node(0)[0]
        self._event()
        if not self.loader.check_event(yaml.StreamEndEvent):
            _refuse("a second document begins here", self._event())
        return root

    def _event(self) -> Any:
        return self.loader.get_event()

    def _node(self, depth: int) -> tuple[yaml.Node, int]:
        """The next node, and how many levels are in it."""
        event = self._event()
        self._count(event, depth, 1)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        before = self.values
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node, height = self._composed(event, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(node, 1 + self.values - before, height)
        return node, height

    def _composed(self, event: Any, depth: int) -> tuple[yaml.Node, int]:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event), 0
        self._count(event, depth + 1, 0)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, depth)
        return self._mapping(event, depth)

    def _count(self, event: Any, depth: int, more: int) -> None:
        self.values += more
        if depth > DEPTH:
            _refuse(f"it is nested deeper than {DEPTH} levels; flatten it", event)
        if self.values > VALUES + 1:  # the whole is one as well
            _refuse(f"it holds more than {VALUES} values; write what is large into a file of its own", event)

    def _alias(self, event: Any, depth: int) -> tuple[yaml.Node, int]:
        if not self.aliases:
            _refuse("anchors and aliases are not accepted", event)
        if event.anchor not in self.anchors:
            _refuse(f"no anchor has the name {event.anchor[:50]!r}", event)
        meant = self.anchors[event.anchor]
        if meant is None:
            _refuse(f"{event.anchor[:50]!r} stands for itself, without end", event)
        self._count(event, depth + meant.height, meant.values)
        return meant.node, meant.height

    def _scalar(self, event: Any) -> yaml.ScalarNode:
        tag = self._tag(yaml.ScalarNode, event, event.value)
        if tag in _NUMBERS and len(event.value) > WORD:
            _refuse(f"a number has more than {WORD} characters; shorten it, or put quotes around it", event)
        if is_half(event.value):
            _refuse(f"it {NOT_WHOLE}", event)
        return yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark, style=event.style)

    def _sequence(self, event: Any, depth: int) -> tuple[yaml.Node, int]:
        items, height = [], 0
        while not self.loader.check_event(yaml.SequenceEndEvent):
            item, inner = self._node(depth + 1)
            items.append(item)
            height = max(height, inner + 1)
        end = self._event().end_mark
        tag = self._tag(yaml.SequenceNode, event, None)
        return yaml.SequenceNode(tag, items, event.start_mark, end, flow_style=event.flow_style), height

    def _mapping(self, event: Any, depth: int) -> tuple[yaml.Node, int]:
        pairs, height = [], 0
        while not self.loader.check_event(yaml.MappingEndEvent):
            key, within = self._node(depth + 1)
            self.values -= isinstance(key, yaml.ScalarNode)  # it counts with its value
            if key.tag in _KEYS and len(key.value) > _KEY_DIGITS:
                _refuse(f"a key is a number of more than {_KEY_DIGITS} characters; put quotes around it", key)
            value, inner = self._node(depth + 1)
            pairs.append((key, value))
            height = max(height, within + 1, inner + 1)
        end = self._event().end_mark
        tag = self._tag(yaml.MappingNode, event, None)
        return yaml.MappingNode(tag, pairs, event.start_mark, end, flow_style=event.flow_style), height

    def _tag(self, kind: type[yaml.Node], event: Any, value: str | None) -> str:
        if event.tag is not None and event.tag != "!":
            return str(event.tag)
        if value is not None and len(value) > WORD and event.implicit[0]:  # the patterns keep each of its parts
            return f"{_TAG}{'int' if _NUMERIC.fullmatch(value) else 'str'}"
        return str(self.loader.resolve(kind, value, event.implicit))


def node(text: str, *, aliases: bool = True) -> yaml.Node | None:
    """The tree of the one document in `text`; None where there is none. Raises yaml.MarkedYAMLError."""
    kind = _QUICK or yaml.SafeLoader
    if _QUICK is None and len(text) > _SLOW_LIMIT:
        raise yaml.MarkedYAMLError(problem=f"it is larger than {_SLOW_LIMIT} characters")
    try:
        loader = kind(text)
        try:
            return _Composer(loader, aliases).document()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        if error.problem_mark is not None and error.problem_mark.line > text.count("\n"):  # behind the last line
            error.problem_mark = error.context_mark
        raise
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:  # signs that no text may hold
        raise yaml.MarkedYAMLError(problem=_said(error)) from error


def value(root: yaml.Node | None) -> Any:
    """What a tree means, by the tags of plain YAML alone. Raises yaml.MarkedYAMLError."""
    if root is None:
        return None
    try:
        return yaml.constructor.SafeConstructor().construct_document(root)
    except yaml.MarkedYAMLError as error:
        error.problem = _said(error)  # it may quote a tag of any length
        raise
    except (ValueError, KeyError, AttributeError, TypeError, IndexError, OverflowError) as error:
        raise yaml.MarkedYAMLError(problem="a value is not what its tag says", problem_mark=_misfit(root)) from error


def load(text: str) -> Any:
    """The value of the one document in `text`; None where there is none. Raises yaml.MarkedYAMLError."""
    return value(node(text))


def _misfit(root: yaml.Node) -> yaml.Mark | None:
    """Where the first value stands that cannot be made."""
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if isinstance(one, yaml.ScalarNode):
            try:
                yaml.constructor.SafeConstructor().construct_document(one)
            except Exception:  # noqa: BLE001 - whatever it was, it was this one
                return one.start_mark
        elif isinstance(one, yaml.MappingNode):
            waiting += [inner for pair in reversed(one.value) for inner in reversed(pair)]
        else:
            waiting += reversed(one.value)
    return root.start_mark


def _said(error: Exception) -> str:
    return str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).split("\n")[0][:200]


def _refuse(problem: str, where: Any) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=where.start_mark)
