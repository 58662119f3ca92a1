"""YAML, TOML and JSON to one value, with the line of every key. Pure: the bytes are handed in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.text import bounded_documents, yaml_documents
from slurm_agent_tools.text.bounded_documents import DEPTH, NOT_WHOLE, DocumentError, decoded, half_place

_FORMATS = {".yaml": "YAML", ".yml": "YAML", ".toml": "TOML", ".json": "JSON"}

_PLACE = 500
"""Characters of a key with all above it: each place is kept as text."""

_TAG = "tag:yaml.org,2002:"

# What the three formats have in common, and `<<`. The others have an order that no reader keeps, or none in JSON.
_VALUE_TAGS = frozenset(f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "seq", "map"))
_KEY_TAGS = frozenset({f"{_TAG}str", f"{_TAG}int", f"{_TAG}merge", f"{_TAG}value"})


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration: its value, the line of every key (`a.b[0]`), and places that YAML reads as base 60."""

    value: object
    format: str
    lines: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[str, str] = field(default_factory=dict)  # place -> text as written, 12:00:00


def parse_config(data: bytes, suffix: str, path: str, field: str = "config_path") -> Config:
    """Read the bytes by the file's suffix. Raises InputError naming the field, the file, the line and what is wrong."""
    kind = _FORMATS.get(suffix.lower())
    if kind is None:
        raise _unreadable(field, path, f"has the suffix {suffix!r}", "Use .yaml, .yml, .toml or .json.")
    try:
        config = {"YAML": _yaml, "TOML": _toml, "JSON": _json}[kind](decoded(data))
        for _ in walk(config.value):  # what it makes of merged keys stays below the limits as well
            pass
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        problem = getattr(error, "problem", None) or str(error)
        raise _unreadable(field, path, f"is not {kind}{where}: {problem}", "Correct it.") from error
    except DocumentError as error:
        raise _unreadable(field, path, str(error), error.mend) from error
    half = half_place("", config.value)
    if half is not None:
        place = half[0].removeprefix(".") or "a key"
        raise _unreadable(field, path, f"is not {kind}: {place} {NOT_WHOLE}", "Correct it.")
    if config.value is None:
        raise _unreadable(field, path, "is empty", "Write `key: value` lines.")
    return config


def _unreadable(field: str, path: str, problem: str, hint: str) -> InputError:
    return InputError(field, path, problem, hint=hint)


def _yaml(text: str) -> Config:
    node = yaml_documents.node(text)
    if node is None:
        return Config(None, "YAML")
    _usual(None, node)
    lines: dict[str, int] = {}
    clocks: dict[str, str] = {}
    for place, line, item in _nodes(node):
        lines[place] = line
        if item.tag in {f"{_TAG}int", f"{_TAG}float"} and ":" in str(item.value):
            clocks[place] = str(item.value)
    return Config(yaml_documents.value(node), "YAML", lines, clocks)


def _nodes(node: yaml.Node, place: str = "") -> Iterator[tuple[str, int, yaml.Node]]:
    """Every key and list item with its place and line; a key that occurs twice is an error."""
    if isinstance(node, yaml.SequenceNode):
        inner = [(f"{place}[{index}]", item, item) for index, item in enumerate(node.value)]
    elif isinstance(node, yaml.MappingNode):
        inner = [(join(place, str(key.value)), key, item) for key, item in node.value]
    else:
        return
    seen: set[str] = set()
    for where, key, item in inner:
        _usual(key if key is not item else None, item)
        if where in seen and key.tag != "tag:yaml.org,2002:merge":
            raise yaml.MarkedYAMLError(problem=f"the key {where[-80:]!r} occurs twice", problem_mark=key.start_mark)
        if len(where) > _PLACE:
            problem = f"the key {where[:50]!r}... has more than {_PLACE} characters with those above it; shorten it"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        seen.add(where)
        yield where, key.start_mark.line + 1, item
        yield from _nodes(item, where)


def _usual(key: yaml.Node | None, item: yaml.Node) -> None:
    """Raise MarkedYAMLError for a key that is no text, as `on:` and `2026-01-01:` are none, and for another tag."""
    if key is not None and key.tag not in _KEY_TAGS:
        named = repr(key.value[:80]) if isinstance(key, yaml.ScalarNode) else "here"
        problem = f"the key {named} is read as a {key.tag.removeprefix(_TAG)[:80]}: put it in quotes"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
    if item.tag not in _VALUE_TAGS:
        problem = f"the tag {item.tag.replace(_TAG, '!!')[:80]} is not read: write text, numbers, lists and mappings"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=item.start_mark)


def _json(text: str) -> Config:
    if not text.strip():
        return Config(None, "JSON")
    value = bounded_documents.json_value(text, once=True)
    try:  # JSON is YAML but for tabs; without it only the line numbers are missing
        return Config(value, "JSON", _yaml(text.replace("\t", " ")).lines)
    except yaml.YAMLError:
        return Config(value, "JSON")


_TOML_TABLE = re.compile(r"\s*+\[([^\[\]]++)\]\s*+(?:#.*)?$")

_TOML_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*+\.\s*+(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*+=""")


def _toml(text: str) -> Config:
    """Line numbers of plain tables and keys only; those in lists of tables are left out."""
    value = bounded_documents.toml(text)
    known = {place for place, _ in walk(value)}
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if "=" not in line and "[" not in line:
            continue
        heading, key = _TOML_TABLE.match(line), _TOML_KEY.match(line)
        if heading is not None:
            table = re.sub(r"[\s\"']", "", heading[1])
            lines.setdefault(table, number)
        elif key is not None:
            lines.setdefault(join(table, re.sub(r"[\s\"']", "", key[1])), number)
    return Config(value or None, "TOML", {place: number for place, number in lines.items() if place in known})


def join(place: str, key: str) -> str:
    """The place of a key inside a place."""
    return f"{place}.{key}" if place else key


def walk(value: object, place: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Every key and list item below `value` with its place. Raises DocumentError beyond the limits."""
    if depth > DEPTH:
        raise DocumentError(f"is nested deeper than {DEPTH} levels", mend="Flatten it.")
    if isinstance(value, Mapping):
        inner = [(join(place, str(key)), item) for key, item in value.items()]
    elif isinstance(value, list):
        inner = [(f"{place}[{index}]", item) for index, item in enumerate(value)]
    else:
        return
    for where, item in inner:
        if len(where) > _PLACE:
            problem = f"has a key of more than {_PLACE} characters with those above it: {where[:50]!r}"
            raise DocumentError(problem, mend="Shorten it.")
        yield where, item
        yield from walk(item, where, depth + 1)


def leaf(place: str) -> str:
    """The key's own name: `a.b[0]` is `b`."""
    return re.sub(r"(?<!\])(?:\[\d+\])+$", "", place).rpartition(".")[2]


# --- Which values of a configuration name files that a run reads. Pure: whether they exist is the caller's business ---


_OUTPUT = re.compile(r"out(?:put)?|save|log|checkpoint|ckpt|cache|result|work|tmp|temp|dest|export", re.IGNORECASE)

_PATH_KEY = re.compile(r"(?:^|_)(?:path|dir|directory|file|folder|root)s?$", re.IGNORECASE)


def input_paths(config: Config) -> list[str]:
    """Values that name a file or folder which the run reads, each once; resolved by the caller."""
    found = [value for place, value in walk(config.value) if isinstance(value, str) and is_input(place, value)]
    return list(dict.fromkeys(found))


def is_input(place: str, value: str) -> bool:
    """True where the key is called like a path to read, and the value can be one."""
    name = leaf(place)
    if not _PATH_KEY.search(name) or _OUTPUT.search(name) or place.startswith("slurm."):
        return False
    return value.isprintable() and 0 < len(value) < 1000 and not re.search(r"://|[$~{}*<>]", value)
