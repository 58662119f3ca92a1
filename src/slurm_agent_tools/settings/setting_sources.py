"""Where settings are said: SLURM_AGENT_* in the environment, the user's file, the site's, and the project's.

What an agent may write counts last, and only for what changes no limit, no program and no place: the rest is an error.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.text.bounded_documents import DocumentError, decoded, json_value, toml

FILE_NAME = "slurm-agent.toml"

ENVIRONMENT = "environment"

SITE = Path("/etc/slurm-agent-tools/settings.toml")

PREFIX = "SLURM_AGENT_"

_LARGEST = 256 * 1024  # bytes of a file of settings

_PROJECTS = "projects"
"""The user's table of what holds for one project alone: `[projects."/home/ada/thesis"]`."""

_BESIDE = ("devcluster", "workstation", "test_")  # how names begin that are for private clusters and the tests

_ASKING = ("read_timeout", "submit_timeout", "poll_scale", "cache_seconds")

_HARMLESS = frozenset(
    f"{table}{name}"
    for table, listed in (
        ("", ("policy", "tool_prefix", "toolsets", "log_level", "approval_timeout", "mail_user", "cluster")),
        ("slurm.", _ASKING),
        ("clusters.*.", ("connect_timeout", "idle_seconds")),
        ("clusters.*.slurm.", _ASKING),
        ("http.", ("max_body", "max_connections", "max_calls", "per_minute")),
        ("http.", ("head_timeout", "body_timeout", "stop_seconds")),
        ("rates.", ("currency", "cpu_hour", "gpu_hour")),
        ("efficiency.", ("memory", "cpu", "target")),
        ("fleet.", ("tiers", "gpu_memory", "may_vanish")),
        ("memory.", ("timeout", "pause")),
    )
    for name in listed
)
"""What the project's file may say. A setting that is not named here is for people alone.

None of these makes an alarm for people quieter: when a GPU counts as idle, how long its measurement may take and which
alerts are sent is theirs to say.
"""


def user_file() -> Path:
    """The settings of whoever runs the server. No setting and no SLURM_AGENT_* variable moves it."""
    return Path.home() / ".config" / "slurm-agent-tools" / "settings.toml"


def find_root(start: Path) -> Path:
    """The nearest folder upward that holds slurm-agent.toml or .git, else `start`; links resolved."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in (FILE_NAME, ".git")):
            return folder
    return start


def whole_path(value: Path | None) -> Path | None:
    """A path from the top, its `~` read once and for all: nothing that is used later depends on where it is used."""
    if value is None:
        return None
    try:
        found = value.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value} names the home folder of nobody here") from error
    if not (found.is_absolute() or found.as_posix().startswith("/")):  # on Windows, of a cluster elsewhere
        raise ValueError("is no whole path: begin it with / or ~/")
    return found


def sources(root: Path, model: type[BaseModel], tables: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What is said and where, as nested tables; the first that says something counts. Raises ConfigError.

    `tables`: settings that may be given whole in one variable, as JSON.
    """
    written = _file(root / FILE_NAME, within=root)
    if written:
        check_project(written, root / FILE_NAME, root, model)
    user, site = _of_people(user_file(), root, model), _of_people(SITE, root, model)
    mine = user.pop(_PROJECTS, {})
    here = mine.get(str(root)) if isinstance(mine, dict) else None
    user = merged(user, here) if isinstance(here, dict) else user
    return {ENVIRONMENT: environment(model, tables), str(user_file()): user, str(SITE): site, FILE_NAME: written}


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Both, table by table; where both say something, `above` counts."""
    result = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


# --- files ------------------------------------------------------------------------------------------------------------


def _file(path: Path, *, within: Path | None = None) -> dict[str, Any]:
    """What a file says; nothing where there is none. Raises ConfigError."""
    try:
        return toml(decoded(safe_open.read(path, _LARGEST, within=within)))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except DocumentError as error:
        raise ConfigError(path.name, str(path), f"cannot be read: {error}", hint=f"{error.mend} ({path})") from error
    except OSError as error:
        if path.is_dir():
            return {}
        hint = f"Put an ordinary file in its place, or remove it: {path}"
        raise ConfigError(path.name, str(path), f"cannot be read: {error.strerror}", hint=hint) from error


def _of_people(path: Path, root: Path, model: type[BaseModel]) -> dict[str, Any]:
    """The user's or the site's file, which others must not be able to write. Raises ConfigError."""
    written = _file(path)
    if not written:
        return {}
    found = path.stat()
    mine = not hasattr(os, "geteuid") or found.st_uid in {0, os.geteuid()}
    if not mine or (os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise ConfigError(path.name, str(path), "could be changed by others", hint=f"Run: chmod go-w {path}")
    if "project_root" in written:
        hint = f"Set {PREFIX}PROJECT_ROOT where the server is started."
        raise ConfigError("project_root", written["project_root"], f"cannot be set in {path}", hint=hint)
    if path.resolve().is_relative_to(root):  # the home folder is the project
        check_project(written, path, root, model)
        written.pop(_PROJECTS, None)
    return written


def check_project(written: Mapping[str, Any], path: Path, root: Path, model: type[BaseModel]) -> None:
    """What a file that an agent may write must not say. Raises ConfigError."""
    guarded = _guarded(model)
    for parts, value in _said(written, ()):
        plain = ("clusters", "*", *parts[2:]) if parts[0] == "clusters" else parts
        if any(plain[:end] in guarded for end in range(1, len(plain) + 1)):
            problem = f"cannot be set in {path}, because an agent may write that file"
            raise ConfigError(".".join(parts), sayable(parts, value), problem, hint=_elsewhere(parts))
    policy = written.get("policy")
    if isinstance(policy, str) and not Path(os.path.normpath(root / policy)).is_relative_to(root):
        problem = f"lies outside of the project, and {path} names it, which an agent may write"
        raise ConfigError("policy", policy, problem, hint=_elsewhere(("policy",)))


def sayable(parts: Sequence[str], value: object) -> object:
    """A wrong value as an error may tell it: one of `notify` may be an address that stands where its name should."""
    return None if list(parts[:1]) == ["notify"] else value


def _elsewhere(parts: tuple[str, ...]) -> str:
    variable = f"Set {PREFIX}{'__'.join(parts).upper()} where the server is started (the client's configuration)"
    return f"{variable}." if parts[0] == "project_root" else f"{variable}, or write it into {user_file()} or {SITE}."


def _said(table: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Each value with the names that lead to it."""
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _said(value, (*above, name))
        else:
            yield (*above, name), value


def _guarded(model: type[BaseModel]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(name.split(".")) for name in names(model) - _HARMLESS)


def names(model: type[BaseModel]) -> frozenset[str]:
    """Every setting by its name, as `clusters.*.host`."""
    found: set[str] = set()
    for name, info in model.model_fields.items():
        kind = info.annotation
        inner = get_args(kind)[1] if get_origin(kind) is dict else kind
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            above = name if inner is kind else f"{name}.*"
            found |= {f"{above}.{one}" for one in names(inner)}
        else:
            found.add(name)
    return frozenset(found)


def in_project(name: str) -> bool:
    """Whether the project's file may say a setting, by its name as `clusters.*.host`."""
    return name in _HARMLESS


# --- the environment --------------------------------------------------------------------------------------------------


def environment(model: type[BaseModel], tables: Iterable[str]) -> dict[str, Any]:
    """What SLURM_AGENT_* variables say: `__` goes a level down, an empty one is not set, a table or a list is JSON."""
    found: dict[str, Any] = {}
    for variable, value in os.environ.items():
        if not value or not variable.upper().startswith(PREFIX):
            continue
        first, *rest = variable[len(PREFIX) :].lower().split("__")
        if first in model.model_fields:
            json_text = first in tables and value.lstrip().startswith(("{", "["))
            entry = _parsed(variable, value) if json_text else value
            for part in reversed(rest):
                entry = {part: entry}
            found = merged(found, {first: entry})
        elif not first.startswith(_BESIDE):
            raise _unknown(variable, value, first, model)
    return found


def _unknown(variable: str, value: str, name: str, model: type[BaseModel]) -> ConfigError:
    """A misspelt name must not leave a wish without effect, such as that for a stricter policy."""
    from difflib import get_close_matches  # noqa: PLC0415 - for an error alone

    near = get_close_matches(name, model.model_fields, n=1)
    hint = f"Did you mean {PREFIX}{near[0].upper()}?" if near else "slurm-agent-tools doctor --settings lists them."
    return ConfigError(variable, value, "belongs to no setting", hint=hint)


def near(model: type[BaseModel], cluster: type[BaseModel], parts: Sequence[str]) -> str:
    """The setting whose name is near to one that there is not; `cluster` is what stands below clusters.NAME."""
    from difflib import get_close_matches  # noqa: PLC0415 - for an error alone

    part: Any = model
    for name in parts[:-1]:
        field = getattr(part, "model_fields", {}).get(name)
        part = cluster if field is None else field.annotation
    alike = get_close_matches(parts[-1], getattr(part, "model_fields", ()), n=1)
    return f"Did you mean {'.'.join([*parts[:-1], alike[0]])}? " if alike else ""


def _parsed(variable: str, text: str) -> Any:
    try:
        return json_value(text)
    except DocumentError as error:
        told = sayable(variable[len(PREFIX) :].lower().split("__"), text)
        raise ConfigError(variable, told, str(error), hint=f"Correct {variable}.") from error
