"""Where the policy's files lie: the site's, one that a person trusted on this machine, and the layers that tighten."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path

from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.policy.loading import MAX_BYTES, Base, LoadedPolicy, load, said, shipped
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.text.bounded_documents import decoded, json_value

SITE = Path("/etc/slurm-agent-tools/policy.yaml")

_LAYERS = 64

LARGEST = MAX_BYTES
"""Bytes of a file of policy."""

_RECORD = 64 * 1024  # bytes of a record of trust

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def load_for(project: Path, named: Path | None, *, site: tuple[str, bytes] | None = None) -> LoadedPolicy:
    """The policy in force in a project: base, then its policies/*.yaml, then the file that the settings name.

    `site` is the site file of a cluster elsewhere, (where, bytes): it decides there, as the one here does here.

    Raises ConfigError: a file that cannot be read or used is never skipped.
    """
    layers = _listed(project / "policies")
    path = None if named is None else Path(os.path.normpath(project / named))
    layers += [] if path is None or path.resolve() in [layer.resolve() for layer in layers] else [path]
    base, notes = _base() if site is None else (Base("site", *site), [])
    contents = tuple((_shown(path, project), _layer(path, project)) for path in layers)
    return _loaded(shipped(), contents, base, tuple(notes))


def _listed(folder: Path) -> list[Path]:
    """The project's own layers. Raises ConfigError where there are too many."""
    found = list(islice(folder.glob("*.yaml"), _LAYERS + 1))
    if len(found) > _LAYERS:
        problem = f"holds more than {_LAYERS} files *.yaml"
        raise ConfigError("policy", str(folder), problem, hint="Put what belongs together into one file.")
    return sorted(found)


def _layer(path: Path, project: Path) -> bytes:
    """What lies in the project is read from there: a link out of it could show a file that is nobody's policy."""
    return _read(path, within=project if path.is_relative_to(project) else None)


@lru_cache(maxsize=16)
def _loaded(
    first: bytes, layers: tuple[tuple[str, bytes], ...], base: Base | None, notes: tuple[str, ...]
) -> LoadedPolicy:
    """Files are read for every request, and understood again only when a byte of them changed."""
    return load(first, layers, base=base, notes=notes)


def _shown(path: Path, project: Path) -> str:
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)


def _base() -> tuple[Base | None, list[str]]:
    """The site's file; without one, the file that a person trusted here, as long as it has not changed since."""
    site = _site()
    record = _record()
    if site is not None:
        notes = [] if record is None else [f"{record['path']} is trusted, but {SITE} decides here; ignored"]
        return Base("site", str(SITE), site), notes
    if record is None:
        return None, []
    path = Path(record["path"])
    try:
        content = safe_open.read(path, LARGEST)
    except OSError as error:
        return None, [f"{path} was trusted and cannot be read ({error.strerror}): it counts for nothing"]
    if record["host"] != platform.node():
        return None, [f"{path} was trusted on {record['host']}, not on this machine: it counts for nothing"]
    if hashlib.sha256(content).hexdigest() != record["sha256"]:
        again = f"run `slurm-agent-tools policy trust {path}` again on a terminal"
        return None, [f"{path} has changed since it was trusted: it counts for nothing; {again}"]
    return Base("trusted", str(path), content), []


def _site() -> bytes | None:
    """The site file's bytes. One that others than root may change is an error, not a policy."""
    try:
        places = [SITE.lstat(), SITE.parent.lstat()]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(
            "policy", str(SITE), f"cannot be read: {error.strerror}", hint="Ask an administrator."
        ) from error
    if any(stat.S_ISLNK(one.st_mode) for one in places):  # a link of root's may lead to what others can write
        real = Path(os.path.realpath(SITE))
        places += [place.lstat() for place in (real, *real.parents) if place.exists()]
    of_root_alone([(one.st_uid, 0 if stat.S_ISLNK(one.st_mode) else one.st_mode) for one in places], str(SITE))
    return _read(SITE)


def of_root_alone(owners: Iterable[tuple[int | None, int | None]], site: str) -> None:
    """Raises ConfigError where others than root may change the site's file: user id and mode of it and its folder."""
    if any(uid != 0 or mode is None or mode & _OTHERS for uid, mode in owners):
        hint = f"An administrator runs: chown root {SITE.parent} {SITE}; chmod go-w {SITE.parent} {SITE}"
        raise ConfigError("policy", site, "could be changed by others than root", hint=hint)


def _read(path: Path, *, within: Path | None = None) -> bytes:
    try:
        return safe_open.read(path, LARGEST, within=within)
    except OSError as error:
        raise ConfigError(
            "policy", str(path), f"cannot be read: {error.strerror}", hint="Mend or remove it."
        ) from error


# --- trust --------------------------------------------------------------------------------------------------------


def trust_record() -> Path:
    """Where it is written which file a person trusted. No setting and no SLURM_AGENT_* variable moves it."""
    return Path.home() / ".config" / "slurm-agent-tools" / "trusted-policy.json"


def _record() -> dict[str, str] | None:
    path = trust_record()
    try:
        record = json_value(decoded(safe_open.read(path, _RECORD)))
        return {name: str(record[name]) for name in ("path", "sha256", "host")}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "Remove it, or trust a file again with `slurm-agent-tools policy trust FILE`."
        raise ConfigError("policy", str(path), "is not a record of trust that can be read", hint=hint) from error


def trustworthy(path: Path) -> tuple[bytes, LoadedPolicy]:
    """The file's bytes and the policy that it would make. Raises ConfigError where a site file decides instead."""
    if _site() is not None:
        hint = "Ask an administrator to change the site's policy."
        raise ConfigError("policy", str(path), f"cannot be trusted here: {SITE} decides", hint=hint)
    content = _read(path)
    return content, load(shipped(), base=Base("trusted", str(path), content))


def trust(path: Path, content: bytes) -> None:
    """Record that a person trusts exactly these bytes on this machine. Raises StorageError."""
    record = {
        "path": str(path),
        "sha256": hashlib.sha256(content).hexdigest(),
        "host": platform.node(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    target = trust_record()
    try:
        for folder in [*reversed(target.parent.parents), target.parent]:  # each private
            folder.mkdir(mode=0o700, exist_ok=True)
        _write(target, json.dumps(record, indent=2) + "\n")
    except OSError as error:
        hint = "Check the folder's owner and the free disk space."
        raise StorageError(f"cannot write {target}: {error.strerror}", hint=hint) from error


def _write(target: Path, text: str) -> None:
    """The whole file or, where it does not fit, the one that was there. Raises OSError."""
    new = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with new.open("w", encoding="utf-8") as file:
            new.chmod(0o600)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def distrust() -> bool:
    """Forget the trusted file; False where there was none. Raises StorageError."""
    try:
        trust_record().unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageError(f"cannot remove {trust_record()}: {error.strerror}", hint="Remove it by hand.") from error
    return True


def changed_from_shipped(base: LoadedPolicy) -> Sequence[str]:
    """What a policy changes in the shipped one, in a few words for the person who is asked."""
    shipped_one = load(shipped())
    now, before = base.limits_in_brief(), shipped_one.limits_in_brief()
    changed = [f"limits.{name}: {before.get(name, 'none')} -> {now.get(name, 'none')}" for name in {**before, **now}
               if now.get(name) != before.get(name)]  # fmt: skip
    changed += [f"rules.{rule}: {level}" for rule, level in base.policy.rules.items()]
    changed += [f"exception: {item.rule} until {item.until}" for item in base.policy.exceptions]
    return [*changed, *_changes(_rest(shipped_one), _rest(base))]


_TOLD = {"name", "version", "limits", "rules", "exceptions", "site_rules"}
"""Parts of a policy that are told in words of their own, or can only forbid."""


def _rest(loaded: LoadedPolicy) -> dict[str, object]:
    return loaded.policy.model_dump(mode="json", exclude=_TOLD)


def _changes(before: Mapping[str, object], now: Mapping[str, object], path: str = "") -> Iterator[str]:
    """Each field that is another: its values, or of a list what came and what went."""
    for name, new in now.items():
        old, place = before.get(name), f"{path}{name}"
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changes(old, new, f"{place}.")
        elif isinstance(old, list) and isinstance(new, list):
            more, less = [f"+ {one}" for one in new if one not in old], [f"- {one}" for one in old if one not in new]
            if more or less:
                yield f"{place}: {', '.join(more + less)}"
        elif old != new:
            yield f"{place}: {said(place, old)} -> {said(place, new)}"
