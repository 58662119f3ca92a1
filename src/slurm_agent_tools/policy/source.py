"""Strict reading of a policy file: safe YAML, no duplicate key, no alias, and the line of every value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import yaml

from slurm_agent_tools.errors import ConfigError

MAX_BYTES = 256 * 1024
Path = tuple[str | int, ...]


class Document(NamedTuple):
    """A policy file's mapping, and path -> line (from 1) of every key and list item in it."""

    data: dict[str, object]
    lines: Mapping[Path, int]


class _Loader(yaml.SafeLoader):
    """Aliases are refused: they can make a small file unfold into a huge one."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
            mark = event.start_mark
            raise yaml.MarkedYAMLError(problem="anchors and aliases are not accepted", problem_mark=mark)  # type: ignore[arg-type]
        return super().compose_node(parent, index)


def read(source: str, content: bytes) -> Document:
    """The mapping in `content`; an empty file is an empty mapping. ConfigError names the line."""
    if len(content) > MAX_BYTES:
        raise ConfigError(source, len(content), f"is larger than {MAX_BYTES} bytes", hint="Shorten the policy file.")
    lines: dict[Path, int] = {}
    try:
        loader = _Loader(content.decode("utf-8"))
        node = loader.get_single_node()
        if node is None:
            return Document({}, lines)
        _walk(node, (), lines)
        data = loader.construct_document(node)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise _unreadable(source, error) from error
    if not isinstance(data, dict):
        raise ConfigError(source, type(data).__name__, "is not a mapping", hint="Write `field: value` lines.")
    return Document(data, lines)


def _walk(node: yaml.Node, path: Path, lines: dict[Path, int]) -> None:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*path, index)] = item.start_mark.line + 1
            _walk(item, (*path, index), lines)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise yaml.MarkedYAMLError(problem="a key must be a plain word", problem_mark=key.start_mark)
            place = (*path, key.value)
            if place in lines:
                problem = f"the key {key.value!r} occurs twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            lines[place] = key.start_mark.line + 1
            _walk(value, place, lines)


def _unreadable(source: str, error: Exception) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    where = "" if mark is None else f" in line {mark.line + 1}"
    problem = getattr(error, "problem", None) or str(error) or type(error).__name__
    return ConfigError("policy", source, f"cannot be read{where}: {problem}", hint=f"Mend {source}{where}.")
