"""Pages of facts: one YAML file for each place where jobs can run. Adding a backend is adding a file.

A page is looked for in the user's folder, then the site's, then the project's: what an agent may write counts last.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from slurm_agent_tools.errors import ConfigError, InputError
from slurm_agent_tools.models.document_fields import Amount, Bytes, Count, Line, Seconds, Text, with_unit
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.scripts.configs.experiment_config import Config, parse_config
from slurm_agent_tools.scripts.configs.form_problems import line_of
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.units import format_duration, parse_span

Kind = Literal["slurm", "workstation", "pbs", "kubernetes", "skypilot"]

Purpose = Literal["testing", "production", "long"]

FOLDER = "backends"

SITE = Path("/etc/slurm-agent-tools") / FOLDER

LARGEST = 64 * 1024
"""Bytes of one page."""

_PAGES = 64

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class _Page(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class PageGpus(_Page):
    """GPUs of one node. Memory of one GPU, bytes."""

    type: Line
    per_node: Count
    memory: Bytes | None = None


class PageQueue(_Page):
    """A partition or queue, or a size of machine. Memory of one node, bytes; times in seconds."""

    name: Line
    purpose: Purpose
    time_limit: Seconds | None = None
    nodes: Count | None = None
    cpus_per_node: Count | None = None
    memory_per_node: Bytes | None = None
    gpus: PageGpus | None = None
    max_jobs: Count | None = None
    """Jobs of one user that may run at once."""
    gpu_hour: Amount | None = None
    """Price of a GPU hour here, where it is not that of the page."""


class Price(_Page):
    """What an hour costs, or how many hours are free with an allocation. `priced_on`: when somebody looked."""

    currency: Annotated[str, Field(strict=True, min_length=1, max_length=8)] | None = None
    gpu_hour: Amount | None = None
    cpu_hour: Amount | None = None
    priced_on: date | None = None
    allocation_hours: Amount | None = None
    """Hours of the allocation that are left, of GPUs where the job has any, else of CPUs."""
    allocation_ends: date | None = None

    @model_validator(mode="after")
    def _in_a_currency(self) -> Price:
        if (self.gpu_hour or self.cpu_hour) and self.currency is None:
            raise ValueError("currency is needed beside a price")
        return self


class BackendPage(_Page):
    """All that is written of one backend."""

    kind: Kind
    title: Line | None = None
    cluster: Line | None = None
    """The name of a cluster in the settings, for kind slurm; default: the page's own name."""
    reach: Line | None = None
    who: Line | None = None
    users: tuple[Line, ...] = ()
    """Who may use it, by user name; empty: whoever reaches it."""
    queues: tuple[PageQueue, ...] = Field(min_length=1, alias="partitions")
    price: Price = Price()
    can_be_ended: bool = Field(False, strict=True)
    """Whether jobs can be ended without warning, as on spot machines."""
    usual_wait: Annotated[int, with_unit(parse_span, "5m"), Field(ge=0)] | None = None
    files: Text | None = None
    kueue_queue: Line | None = None
    image: Line | None = None
    """The container image of a job, for kinds kubernetes and skypilot."""
    notes: tuple[Text, ...] = ()

    @field_validator("queues")
    @classmethod
    def _each_once(cls, value: tuple[PageQueue, ...]) -> tuple[PageQueue, ...]:
        names = [one.name for one in value]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"names {', '.join(sorted(twice))} more than once")
        return value


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page and where it was found; `hidden`: files of the same name that do not count."""

    name: str
    path: str
    page: BackendPage
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuPrices:
    """A GPU hour by partition, all in one currency; None: its price is in another one."""

    by_partition: Mapping[str, float | None] = field(default_factory=dict)
    currency: str | None = None


def gpu_prices(found: Iterable[FoundPage], cluster: str, currency: str | None = None) -> GpuPrices:
    """What the pages of a cluster say. `currency`: of all other prices; without it that of the first price counts."""
    prices: dict[str, float | None] = {}
    for one in found:
        price = one.page.price
        for queue in one.page.queues if cluster == (one.page.cluster or one.name) else ():
            hour = price.gpu_hour if queue.gpu_hour is None else queue.gpu_hour
            if hour is not None:
                currency = currency or price.currency
                prices[queue.name] = hour if price.currency in {None, currency} else None
    return GpuPrices(prices, currency)


def folders(project: Path) -> tuple[Path, ...]:
    """Where pages lie, the one that counts first first."""
    return (Path.home() / ".config" / "slurm-agent-tools" / FOLDER, SITE, project / FOLDER)


def found_pages(project: Path) -> list[FoundPage]:
    """Every page that counts, by its name. Raises ConfigError: a page that cannot be used is never skipped."""
    chosen: dict[str, Path] = {}
    hidden: dict[str, list[str]] = {}
    for path in page_files(project):
        if path.stem in chosen:
            hidden.setdefault(path.stem, []).append(str(path))
        else:
            chosen[path.stem] = path
    return [
        FoundPage(name, str(path), read_page(path, project), tuple(hidden.get(name, ())))
        for name, path in sorted(chosen.items())
    ]


def purposes(project: Path, cluster: str) -> dict[str, str]:
    """What the partitions of a cluster are for, by its page. Nothing where there is none, or where one is broken.

    Who asks for a partition only to advise it is not kept from working by a page.
    """
    try:
        found = [one for one in found_pages(project) if cluster in {one.name, one.page.cluster}]
    except ConfigError:
        return {}
    return {queue.name: queue.purpose for one in found for queue in one.page.queues}


def page_files(project: Path) -> Iterator[Path]:
    """All files of pages, of every folder. Raises ConfigError for too many of them and for a name that is none."""
    for folder in folders(project):
        paths = _files(folder)
        if len(paths) > _PAGES:
            hint = "Keep what is used, and put the rest elsewhere."
            raise ConfigError("backends", str(folder), f"holds more than {_PAGES} pages", hint=hint)
        for path in paths:
            if path.suffix != ".yaml":
                raise ConfigError("backends", str(path), "is not read", hint=f"Name it {path.stem}.yaml.")
            checked_name(path.stem)
            yield path


def _files(folder: Path) -> list[Path]:
    """The files of pages in a folder, which need not be there. Raises ConfigError where it cannot be looked into."""
    try:
        with os.scandir(folder) as found:
            named = (Path(one.path) for one in found if one.name.endswith((".yaml", ".yml")))
            return sorted(islice((path for path in named if not path.name.startswith(".")), _PAGES + 1))
    except FileNotFoundError:
        return []
    except OSError as error:
        hint = "Mend its permissions: a page that cannot be read is never skipped."
        raise ConfigError("backends", str(folder), f"cannot be read: {error.strerror}", hint=hint) from error


def checked_name(name: str) -> str:
    """A backend's name. Raises ConfigError."""
    if NAME.fullmatch(name) is None:
        hint = "Name it like lab-cluster: small letters, digits and dashes, at most 63."
        raise ConfigError("backends", name, "is no name of a backend", hint=hint)
    return name


def read_page(path: Path, project: Path) -> BackendPage:
    """The page in a file. Raises ConfigError with the file, the line, the field and the value."""
    problems = list(problems_of(data := _bytes(path, project), str(path)))
    if problems:
        raise problems[0]
    return parsed_page(data, str(path))


def parsed_page(data: bytes, path: str) -> BackendPage:
    """The page in a text that is known to be right. Raises as pydantic does, and ConfigError."""
    return _validated(_parsed(data, path).value)


def checked_file(path: Path, project: Path) -> list[ConfigError]:
    """All that is wrong with the page in a file; empty where nothing is. Raises ConfigError where it cannot be read."""
    return list(problems_of(_bytes(path, project), str(path)))


def problems_of(data: bytes, path: str) -> Iterator[ConfigError]:
    """All that is wrong with a page's text, each with its line."""
    try:
        config = _parsed(data, path)
    except ConfigError as error:
        yield error
        return
    try:
        _validated(config.value)
    except ValidationError as error:
        found = error.errors(include_url=False)
        places = [_place(one["loc"]) for one in found]
        for one, place in zip(found, places, strict=True):
            if one["type"] == "too_short" and any(other.startswith(f"{place}[") for other in places):
                continue  # pydantic counts only what is right
            hint = f"Correct {path}{_line(config.lines, place)}. {_KNOWN}"
            missing = one["type"] == "missing" or not place
            yield ConfigError(place or "the page", None if missing else one["input"], _problem(one), hint=hint)


def _problem(one: ErrorDetails) -> str:
    said = {"extra_forbidden": "belongs to no page", "missing": "is required", "model_type": "is not a mapping"}
    return said.get(one["type"]) or one["msg"].removeprefix("Value error, ")


_KNOWN = "`slurm-agent-tools backends new --help` names the templates that show every field."


def _validated(value: object) -> BackendPage:
    return BackendPage.model_validate(value, by_alias=True)


def _place(parts: Iterable[str | int]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _line(lines: Mapping[str, int], place: str) -> str:
    line = line_of(lines, place)
    return "" if line is None else f" in line {line}"


def _parsed(data: bytes, path: str) -> Config:
    try:
        return parse_config(data, ".yaml", path)
    except InputError as error:
        raise ConfigError(
            "backends", None, f"cannot be read: {error.message.removeprefix('config_path: ')}", hint=f"Correct {path}."
        ) from error


def _bytes(path: Path, project: Path) -> bytes:
    """What lies in the project is read from there; what people say must not be for others to write."""
    inside = path.is_relative_to(project)
    try:
        if not inside:
            for one in (path, path.parent):
                of_people(one.stat(), one)
        return safe_open.read(path, LARGEST, within=project if inside else None)
    except OSError as error:
        hint = "Mend or remove it."
        raise ConfigError("backends", str(path), f"cannot be read: {error.strerror}", hint=hint) from error


def of_people(found: os.stat_result, path: Path) -> None:
    """Raises ConfigError for a file or folder that others could change."""
    mine = not hasattr(os, "geteuid") or found.st_uid in {0, os.geteuid()}
    if not mine or (os.name == "posix" and found.st_mode & _OTHERS):
        raise ConfigError("backends", str(path), "could be changed by others", hint=f"Run: chmod go-w {path}")


# --- what a live cluster says otherwise -------------------------------------------------------------------------------


def contradictions(backend: str, partition: Partition, queue: PageQueue | None, nodes: Iterable[Node]) -> list[str]:
    """What Slurm says otherwise than the page, which then does not count."""
    if queue is None:
        return []
    limit = partition.max_time_seconds
    pairs: list[tuple[str, int | None, int | None, Callable[[int | None], str]]] = [
        ("time limit", queue.time_limit, limit, _duration),
        ("nodes", queue.nodes, partition.nodes, str),
        ("CPUs of a node", queue.cpus_per_node, partition.cpus_per_node, str),
        ("GPUs of a node", queue.gpus.per_node if queue.gpus else None, partition.gpus_per_node, str),
    ]
    told = [
        f"{backend}/{partition.name}: the page says {what} {shown(said)}, the cluster {shown(live)}, which counts."
        for what, said, live, shown in pairs
        if said is not None and said != live
    ]
    types = {kind.lower() for node in nodes if partition.name in node.partitions for kind in node.gpu_types}
    if queue.gpus is not None and types and queue.gpus.type.lower() not in types:
        said, has = queue.gpus.type, ", ".join(sorted(types))
        told.append(f"{backend}/{partition.name}: the page says {said} GPUs, the cluster {has}, which counts.")
    return told


def _duration(seconds: int | None) -> str:
    return "none" if seconds is None else format_duration(seconds)


def unknown_partitions(backend: str, page: FoundPage | None, partitions: Mapping[str, Partition]) -> list[str]:
    """Partitions of the page that the cluster does not have."""
    named = [] if page is None else [one.name for one in page.page.queues if one.name not in partitions]
    return [f"{backend}: the page names the partition {name}, which the cluster does not have." for name in named]
