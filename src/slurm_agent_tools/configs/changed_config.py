"""A configuration with other values: YAML, JSON or TOML, the keys by dots. Comments are not kept. Pure."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import date, datetime, time
from typing import Any

import yaml

from slurm_agent_tools.configs.experiment_config import parse_config
from slurm_agent_tools.errors import InputError

Scalar = int | float | bool | str


def with_values(text: str, path: str, values: Mapping[str, Scalar]) -> str:
    """The text of a configuration in which each key, `a.b.c`, has its value; what holds a new key is made.

    Raises InputError for a file that cannot be read, that is no mapping, or whose key lies inside of a single value.
    """
    config = parse_config(text.encode(), posixpath.splitext(path)[1], path)
    value = deepcopy(config.value)
    if not isinstance(value, dict):
        raise InputError("config_file", path, "is not a mapping of names to values", hint="Write `key: value` lines.")
    for key, one in values.items():
        _put(value, key, one, path)
    if config.format == "JSON":
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    if config.format == "TOML":
        return "\n".join(_tables(value)).lstrip("\n") + "\n"
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def _put(value: dict[str, Any], key: str, one: Scalar, path: str) -> None:
    *above, last = key.split(".")
    for part in above:
        value = value.setdefault(part, {})
        if not isinstance(value, dict):
            hint = f"Correct the parameter's config key, or make {part} a mapping in {path}."
            raise InputError("config", key, f"has to lie in a mapping, and {part} is none in {path}", hint=hint)
    if isinstance(value.get(last), dict | list):
        hint = "Name the key of a single value."
        raise InputError("config", key, f"is no single value in {path}", hint=hint)
    value[last] = one


# --- TOML, which Python reads and does not write ----------------------------------------------------------------------


def _tables(table: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """The lines of a table: its own values first, then the tables in it."""
    inner = {key: one for key, one in table.items() if isinstance(one, dict)}
    yield from (f"{_key(key)} = {_written(one)}" for key, one in table.items() if key not in inner)
    for key, one in inner.items():
        where = f"{place}.{_key(key)}" if place else _key(key)
        yield from ("", f"[{where}]")
        yield from _tables(one, where)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key, re.ASCII) else _text(key)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(_written(one) for one in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_written(one)}' for key, one in value.items())} }}"
    return repr(value)  # a number; inf and nan are written so in TOML as well


def _text(value: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for DEL, which JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
