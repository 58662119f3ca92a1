"""Reading the policy: a base (shipped, or a site's or a trusted file over it), and layers that can only tighten it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.models.shapes import PROVEN, SITE_WORTH, WORTH, Channel
from slurm_agent_tools.policy.document import BANDS, ORDER, SETTABLE, Bands, Level, Part, Policy, Tighter, harsher
from slurm_agent_tools.text import yaml_documents
from slurm_agent_tools.text.bounded_documents import DocumentError, decoded
from slurm_agent_tools.units import format_duration, human_memory

if TYPE_CHECKING:
    from slurm_agent_tools.policy.site_rules import Expression

MAX_BYTES = 256 * 1024

KeyPath = tuple[str | int, ...]


class Document(NamedTuple):
    """A policy file's mapping, and path -> line (from 1) of every key and list item in it."""

    data: dict[str, object]
    lines: Mapping[KeyPath, int]


def read(source: str, content: bytes) -> Document:
    """The mapping in `content`; an empty file is an empty mapping. ConfigError names the line."""
    if len(content) > MAX_BYTES:
        raise ConfigError(source, len(content), f"is larger than {MAX_BYTES} bytes", hint="Shorten the policy file.")
    lines: dict[KeyPath, int] = {}
    try:
        node = yaml_documents.node(decoded(content), aliases=False)
        if node is None:
            return Document({}, lines)
        _walk(node, (), lines)
        data = yaml_documents.value(node)
    except (yaml.YAMLError, DocumentError) as error:
        raise _unreadable(source, error) from error
    if not isinstance(data, dict):
        raise ConfigError(source, type(data).__name__, "is not a mapping", hint="Write `field: value` lines.")
    return Document(data, lines)


def _walk(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int]) -> None:
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
    problem = getattr(error, "problem", None) or str(error)
    return ConfigError("policy", source, f"cannot be read{where}: {problem}", hint=f"Mend {source}{where}.")


# --- a base (shipped, or a site's or a trusted file over it), and layers that can only tighten it ---------------------


_SHIPPED = "the shipped policy"


class Base(NamedTuple):
    """A file that a person in charge laid over the shipped policy: it may also loosen. `kind`: site or trusted."""

    kind: str
    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """The policy in force. `notes`: what was wished and ignored. `floors`: rules that layers made harsher.

    `layers`: the files, lowest first, each with what it is. `by_site`: whether a site's file, which no user can change,
    is the base.
    """

    policy: Policy
    sha256: str
    version: str
    name: str
    layers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    floors: Mapping[str, Level] = field(default_factory=dict)
    expressions: tuple[Expression, ...] = ()
    by_site: bool = False

    def worth(self, way: Channel) -> str:
        """What a person's yes by this way is worth, in words."""
        return SITE_WORTH.get(way, WORTH[way]) if self.by_site else WORTH[way]

    @property
    def source(self) -> str:
        """The layers in one line."""
        return " + ".join(self.layers)

    def told(self) -> dict[str, Any]:
        """All of it as JSON shows it."""
        return {
            "name": self.name,
            "version": self.version,
            "sha256": self.sha256,
            "source": self.source,
            "layers": list(self.layers),
            "notes": list(self.notes),
            "floors": dict(self.floors),
            "policy": self.policy.model_dump(mode="json"),
        }

    def limits_in_brief(self) -> dict[str, str | int]:
        """Every limit in a few words, for people; those that are off are left out."""
        limits = self.policy.limits
        shown: dict[str, str | int] = {
            "memory_per_gpu": _bands(limits.memory_per_gpu, human_memory),
            "memory_without_gpus": _bands(limits.memory_without_gpus, human_memory),
            "gpus": _bands(limits.gpus, str),
            "time_limit": _bands(limits.time_limit, format_duration),
            "max_concurrent_jobs": limits.max_concurrent_jobs,
        }
        optional = {name: getattr(limits, name) for name in _OPTIONAL}
        return shown | {name: f"{value:g}" for name, value in optional.items() if value is not None}


_OPTIONAL = (
    "max_pending_jobs", "max_daily_submissions", "gpu_hours_per_job", "cpu_hours_per_job", "price_per_job",
    "gpu_hours_per_day", "cpu_hours_per_day",
)  # fmt: skip


def _bands(bands: Bands, show: Callable[[int], str]) -> str:
    return f"{show(bands.free)} free, {show(bands.justify)} with a written reason, more by a person"


def load(
    shipped: bytes,
    layers: Sequence[tuple[str, bytes]] = (),
    *,
    base: Base | None = None,
    notes: Sequence[str] = (),
) -> LoadedPolicy:
    """The base, tightened by each (source, content) in turn. Raises ConfigError.

    The hash is the shipped file's own; with more files, the hash of the list of all files' hashes.
    """
    data, policy = _base(shipped, base)
    notes = [*notes, *_ignored_ways(base, policy)]
    layers = [(name, content) for name, content in layers if content != shipped]
    current, found, floors = policy, list(notes), dict[str, Level]()
    for name, content in layers:
        layer = read(name, content)
        wanted = _validate(name, _ordered(_merged(data, layer.data), layer.data), layer.lines)
        _, refused = tighten(policy, wanted)
        current, _ = tighten(current, wanted)
        stated = layer.data.get("rules")
        refused += _raise(floors, policy.rules, {rule: wanted.rules[rule] for rule in stated or {}})  # type: ignore[attr-defined]
        found += [f"{name}: {note}" for note in refused]
    expressions: tuple[Expression, ...] = ()
    if current.site_rules:
        from slurm_agent_tools.policy.site_rules import compile_rules  # noqa: PLC0415 - few policies have any

        expressions = compile_rules(current.site_rules)
    contents = [shipped, *([base.content] if base else []), *(content for _, content in layers)]
    named = ["shipped", *([f"{base.kind} {base.path}"] if base else []), *(name for name, _ in layers)]
    return LoadedPolicy(
        current, _digest(contents), policy.version, policy.name, tuple(named), tuple(found), floors,
        expressions, base is not None and base.kind == "site",
    )  # fmt: skip


def _base(shipped: bytes, base: Base | None) -> tuple[dict[str, object], Policy]:
    document = read(_SHIPPED, shipped)
    policy = _validate(_SHIPPED, document.data, document.lines)
    if base is None:
        return document.data, policy
    over = read(base.path, base.content)
    data = _ordered(_merged(document.data, over.data), over.data)
    policy = _validate(base.path, data, over.lines)
    if base.kind != "site":
        return data, policy
    ways = [way for way in policy.approval_channels if way in PROVEN]
    return data | {"approval_channels": ways}, policy.model_copy(update={"approval_channels": tuple(ways)})


def _ignored_ways(base: Base | None, policy: Policy) -> list[str]:
    """What a site's file names as ways of approval and cannot count: every program of a user could give such a yes."""
    stated = read(base.path, base.content).data.get("approval_channels") if base is not None else None
    if base is None or base.kind != "site" or not isinstance(stated, list):
        return []
    why = "every program of a user, a job too, can give that yes; list `signed` and who may sign in `allowed_signers`"
    why += ", or `passkey` and the keys in `allowed_passkeys`"
    return [
        f"{base.path}: `approval_channels` does not count {way} under a site's policy: {why}"
        for way in stated
        if way not in policy.approval_channels
    ]


def _raise(floors: dict[str, Level], base: Mapping[str, Level], stated: Mapping[str, Level]) -> list[str]:
    """Lay a layer's levels over the rules; returns the wishes to loosen, which are ignored."""
    notes = []
    for rule, level in stated.items():
        softer = level in {"off", "warn"} if rule not in base else harsher(level, base[rule]) != level
        if softer:
            notes.append(f"`rules.{rule}` cannot be loosened to {level}; ignored")
        else:
            floors[rule] = harsher(level, floors.get(rule, level))
    return notes


def shipped() -> bytes:
    """The shipped policy's bytes: from the wheel, or from the repository in an editable install."""
    asset = resources.files("slurm_agent_tools") / "assets" / "default.yaml"
    if asset.is_file():
        return asset.read_bytes()
    try:
        return (Path(__file__).parents[3] / "policies" / "default.yaml").read_bytes()
    except OSError as error:
        raise ConfigError("policy", str(asset), "is missing", hint="Install slurm-agent-tools again.") from error


def _merged(base: Mapping[str, object], layer: Mapping[str, object]) -> dict[str, object]:
    """What the layer states, with the base's value wherever it is silent."""
    result = dict(base)
    for key, value in layer.items():
        below = result.get(key)
        both = isinstance(value, dict) and isinstance(below, dict)
        result[key] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return result


def _ordered(data: dict[str, object], stated: Mapping[str, object]) -> dict[str, object]:
    """The same; where a file states only one end of a band, beyond the other end, both are what it states."""
    limits, wished = data.get("limits"), stated.get("limits")
    if not isinstance(limits, dict) or not isinstance(wished, dict):
        return data
    changed = dict(limits)
    for name, kind in BANDS.items():
        ends, own = limits.get(name), wished.get(name)
        if isinstance(ends, dict) and isinstance(own, dict) and len(own) == 1 and _crossed(kind, ends):
            changed[name] = dict.fromkeys(("free", "justify"), next(iter(own.values())))
    return {**data, "limits": changed}


def _crossed(kind: type[Part], ends: Mapping[str, object]) -> bool:
    try:
        kind.model_validate(ends)
    except ValidationError as error:
        return error.errors()[0]["loc"] == ()  # each end is well, only not their order
    return False


def _validate(name: str, data: Mapping[str, object], lines: Mapping[KeyPath, int]) -> Policy:
    try:
        return Policy.model_validate(data)
    except ValidationError as error:
        from difflib import get_close_matches  # noqa: PLC0415 - for an error alone

        first = error.errors()[0]
        place = first["loc"]
        field_name = ".".join(str(part) for part in place) or "policy"
        line = next((lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in lines), None)
        where = name if line is None else f"{name}, line {line}"
        unknown = first["type"] == "extra_forbidden"
        problem = "is not a field of a policy" if unknown else first["msg"].removeprefix("Value error, ")
        wrong, known = (place[-1], _fields_at(place[:-1])) if unknown else _rule_names(place, first.get("input"))
        alike = get_close_matches(str(wrong), known, n=1) if known else []
        hint = f"Did you mean `{alike[0]}`? " if alike else ""
        hint += f"Correct `{field_name}` in {where}."
        raise ConfigError(field_name, first.get("input"), f"{problem} ({where})", hint=hint) from error


def _rule_names(place: tuple[int | str, ...], given: object) -> tuple[object, list[str]]:
    """A rule that there is not, and those that there are."""
    wrong = [rule for rule in given if rule not in SETTABLE] if place == ("rules",) and isinstance(given, dict) else []
    return (wrong[0], list(SETTABLE)) if wrong else ("", [])


def _fields_at(place: tuple[int | str, ...]) -> list[str]:
    """The fields of the part of a policy that lies there; none where it is a mapping of free names."""
    part: type[BaseModel] = Policy
    for step in place:
        field = part.model_fields.get(str(step))
        kind = None if field is None else field.annotation
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return []
        part = kind
    return list(part.model_fields)


def _digest(contents: Sequence[bytes]) -> str:
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


# --- Laying a stricter policy over another: every field takes the tighter of the two values ---------------------------


_Model = TypeVar("_Model", bound=BaseModel)


def tighten(base: _Model, wanted: _Model, path: str = "") -> tuple[_Model, list[str]]:
    """The tighter policy, and one note for each wish to loosen `base`. Names and versions stay the base's."""
    update: dict[str, object] = {}
    notes: list[str] = []
    for name, info in type(base).model_fields.items():
        old, new = getattr(base, name), getattr(wanted, name)
        if old == new:
            continue
        place = f"{path}{name}"
        if isinstance(old, BaseModel):
            update[name], below = tighten(old, new, f"{place}.")
            notes += below
        elif isinstance(old, tuple):
            how = next(mark for mark in info.metadata if isinstance(mark, Tighter))
            update[name], extra = _list(how, old, new)
            notes += [f"`{place}` cannot be loosened by {item}; ignored" for item in extra]
        elif Tighter.OFF in info.metadata:
            update[name] = "off"
            notes += [f"`{place}` cannot be loosened from off to on; ignored"] if old == "off" else []
        elif Tighter.HARSHER in info.metadata:
            update[name] = max(old, new, key=ORDER.index)
            notes += [f"`{place}` cannot be loosened from {old} to {new}; ignored"] if update[name] == old else []
        elif isinstance(old, dict):
            continue  # the levels of rules: policy.loading lays them over each other
        elif not isinstance(old, str):
            update[name] = max(old, new) if Tighter.HIGHER in info.metadata else _lower(old, new)
            if update[name] != new:
                notes.append(f"`{place}` cannot be loosened from {said(place, old)} to {said(place, new)}; ignored")
    return base.model_copy(update=update), notes


def said(place: str, value: object) -> str:
    """A limit as a policy file writes it; bytes and seconds are known by the field's name."""
    if isinstance(value, int) and ("memory" in place or place.endswith("_bytes")):
        return human_memory(value)
    if isinstance(value, int) and "time_limit" in place:
        return format_duration(value)
    return "no limit" if value is None else str(value)


def _lower(old: float | None, new: float | None) -> float | None:
    """The smaller limit; None is no limit."""
    stated = [value for value in (old, new) if value is not None]
    return min(stated, default=None)


def _list(how: Tighter, old: Sequence[Any], new: Sequence[Any]) -> tuple[tuple[Any, ...], list[str]]:
    """The tighter list, and the items of `new` that would loosen it."""
    if how is Tighter.BASE:
        return tuple(old), [f"adding {item}" for item in new if item not in old]
    if how is Tighter.UNITED:
        return tuple(dict.fromkeys([*old, *new])), []
    if how is Tighter.SHARED:
        kept = [item for item in new if item in old]
        return tuple(kept), [f"adding {item}" for item in new if item not in kept]
    kept = [item for item in new if any(_within(item, folder) for folder in old)]
    narrower = [item for item in old if any(_within(item, folder) for folder in new)]
    return tuple(dict.fromkeys([*kept, *narrower])), [f"adding {item}" for item in new if item not in kept]


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
