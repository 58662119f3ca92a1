"""Answers that are kept: one command for simultaneous questions, one for many single ones, and some for an hour."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.text.bounded_documents import decoded, json_value
from slurm_agent_tools.transport.base import Clock, Completed

T = TypeVar("T")

K = TypeVar("K", bound=Hashable)

_MOMENT = 5  # rounds of the event loop in which those that one answer woke up ask on

_FAILED = 1.0  # seconds: what was away may be back, and answers that are not there age faster than those that are

_KEPT = timedelta(seconds=60)  # the most that cache_seconds can be


@dataclass(frozen=True, slots=True)
class _Wanted:
    """From when an answer has to be: asked for since one moment, or failed since another."""

    asked: datetime
    failed: datetime

    @classmethod
    def by(cls, clock: Clock, max_age: float) -> _Wanted:
        now = clock.now()
        return cls(now - timedelta(seconds=max_age), now - timedelta(seconds=min(max_age, _FAILED)))

    def has(self, asked: datetime | None, failed: datetime | None) -> bool:
        """Whether what is kept is new enough."""
        if failed is not None:
            return failed >= self.failed
        return asked is not None and asked >= self.asked


def _bare(error: AgentToolsError) -> AgentToolsError:
    """The error without the frames that it came through and what it was made of: both hold whole answers of Slurm.

    One that is raised again would also gather the frames of each caller.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class SharedAnswer(Generic[T]):
    """One question whose answer is kept for a while; simultaneous askers wait for the same command."""

    def __init__(self, clock: Clock, ask: Callable[[], Awaitable[T]]) -> None:
        self._clock, self._ask = clock, ask
        self._busy: anyio.Event | None = None
        self._answer: T | None = None
        self._error: AgentToolsError | None = None
        self._asked: datetime | None = None
        self._failed: datetime | None = None
        self._changed: datetime | None = None

    def changed(self) -> None:
        """What was asked for before this moment no longer holds."""
        self._changed = self._clock.now()

    @property
    def age(self) -> float | None:
        """Seconds since the kept answer was asked for; None where there is none."""
        if self._asked is None or self._error is not None:
            return None
        return (self._clock.now() - self._asked).total_seconds()

    async def get(self, max_age: float) -> T:
        """An answer that was asked for at most `max_age` seconds before this call. Raises what came instead."""
        wanted = _Wanted.by(self._clock, max_age)
        if self._changed is not None and self._changed > wanted.asked:
            wanted = _Wanted(self._changed, wanted.failed)
        while not wanted.has(self._asked, self._failed):
            if self._busy is not None:
                await self._busy.wait()  # and look again: whoever asked may have been cancelled, or asked too early
            else:
                await self._refresh()
        if self._error is not None:
            raise _bare(self._error)
        return self._answer  # type: ignore[return-value]  # set together with _asked

    async def _refresh(self) -> None:
        self._busy, asked = anyio.Event(), self._clock.now()
        try:
            self._answer, self._error, self._failed = await self._ask(), None, None
            self._asked = asked
        except AgentToolsError as error:
            self._answer, self._error = None, _bare(error)
            self._asked, self._failed = asked, self._clock.now()
        finally:
            busy, self._busy = self._busy, None
            busy.set()


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    asked: datetime
    answer: T | None
    error: AgentToolsError | None
    failed: datetime | None = None


class SharedAnswers(Generic[K, T]):
    """Questions about single things. Those that come in the same moment, or while one is out, are asked as one.

    `ask` also gets how old its answer may be, in seconds.
    """

    def __init__(self, clock: Clock, ask: Callable[[frozenset[K], float], Awaitable[Mapping[K, T]]]) -> None:
        self._clock, self._ask = clock, ask
        self._busy: anyio.Event | None = None
        self._due: dict[K, datetime] = {}
        self._out: dict[K, datetime] = {}
        self._kept: dict[K, _Kept[T]] = {}

    async def get(self, keys: Iterable[K], max_age: float) -> dict[K, T]:
        """What is told of these, asked for at most `max_age` seconds before this call. Raises what came instead."""
        wanted = _Wanted.by(self._clock, max_age)
        asked = tuple(keys)
        while missing := [key for key in asked if not self._has(key, wanted)]:
            coming = {key for key, moment in self._out.items() if moment >= wanted.asked}
            since = wanted.asked
            self._due |= {key: max(since, self._due.get(key, since)) for key in missing if key not in coming}
            if self._busy is not None:
                await self._busy.wait()
            else:
                await self._round()
        found = {key: self._kept[key] for key in asked}
        for kept in found.values():
            if kept.error is not None:
                raise _bare(kept.error)
        return {key: kept.answer for key, kept in found.items() if kept.answer is not None}

    def _has(self, key: K, wanted: _Wanted) -> bool:
        kept = self._kept.get(key)
        return kept is not None and wanted.has(kept.asked, kept.failed)

    async def _round(self) -> None:
        self._busy = anyio.Event()
        try:
            for _ in range(_MOMENT):
                await anyio.lowlevel.checkpoint()
            keys, asked = frozenset(self._due), self._clock.now()
            age = (asked - max(self._due.values())).total_seconds()
            self._due, self._out = {}, dict.fromkeys(keys, asked)
            self._kept = {key: kept for key, kept in self._kept.items() if kept.asked >= asked - _KEPT}
            try:
                told = await self._ask(keys, age)
                self._kept |= {key: _Kept(asked, told.get(key), None) for key in keys}
            except AgentToolsError as error:
                self._kept |= {key: _Kept(asked, None, _bare(error), self._clock.now()) for key in keys}
        finally:
            self._out = {}
            busy, self._busy = self._busy, None
            busy.set()


# --- Several questions at once, each with its own answer or error -----------------------------------------------------


@dataclass(slots=True)
class ConcurrentQuestion(Generic[T]):
    """A question that is asked once; its answer, or AgentToolsError, is kept until it is looked at."""

    ask: Callable[[], Awaitable[T]] | None
    answer: T | None = None  # None where there is none: not yet, or an error instead
    error: AgentToolsError | None = None

    async def run(self) -> None:
        """Ask, and let go of the question: its owner may be part of it, and should end with its last user."""
        ask, self.ask = self.ask, None
        if ask is None:
            raise RuntimeError("a question is asked once")
        try:
            self.answer = await ask()
        except AgentToolsError as error:
            self.error = error

    def value(self) -> T:
        """The answer; raises the error that came instead."""
        if self.error is not None:
            raise self.error
        return self.answer  # type: ignore[return-value]  # None only where T allows it


async def ask_all(*questions: ConcurrentQuestion[Any]) -> None:
    """Ask all at once and wait for the last; a task group only where there are several."""
    if len(questions) == 1:
        await questions[0].run()
        return
    async with anyio.create_task_group() as group:
        for question in questions:
            group.start_soon(question.run)


# --- What partitions rest on: kept in a file as well, for the next process --------------------------------------------

# What their nodes have, and the cluster's own defaults of memory, seldom change. Kept for an hour, in memory and in a
# file, and only as long as `scontrol show partition` says the same word for word but for states: other nodes, limits or
# another cluster are asked anew. A file that is old, foreign or broken is not there. Nothing rests on it alone: the
# held job is compared with what was allowed.

BACKDROP_AGE = 3600.0
"""Seconds."""

_FORMAT = 1

_LARGEST = 2**22  # bytes

_DEFAULTS = ("DefMemPerCPU", "DefMemPerNode", "MaxMemPerCPU", "MaxMemPerNode", "JobDefaults")

_STATE = re.compile(rb" State=\S*")


@dataclass(frozen=True, slots=True)
class Equipment:
    """What the nodes of one partition have; the names and units are those of Partition."""

    gpus_per_node: int
    cpus_per_node: int
    memory_per_node: int
    memory_per_node_max: int
    gpus_per_node_min: int
    threads_per_core: int
    total_gpus: int

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Equipment:
        """What these have, as far as a partition tells it."""
        memory, gpus = [node.memory_bytes for node in nodes], [node.gpus for node in nodes]
        return cls(
            gpus_per_node=max(gpus, default=0),
            cpus_per_node=max((node.cpus for node in nodes), default=0),
            memory_per_node=min(memory, default=0),
            memory_per_node_max=max(memory, default=0),
            gpus_per_node_min=min(filter(None, gpus), default=0),
            threads_per_core=max((node.threads_per_core for node in nodes), default=1),
            total_gpus=sum(gpus),
        )

    def on(self, partition: Partition) -> Partition:
        """The partition with what its nodes have."""
        return replace(partition, **asdict(self))


@dataclass(frozen=True, slots=True)
class Backdrop:
    """When (seconds since 1970) and beside which partitions it was told: the cluster's defaults, and the equipment."""

    at: float
    mark: str
    config: Mapping[str, str]
    equipment: Mapping[str, Equipment]


def backdrop_mark(done: Completed) -> str:
    """What changes with anything that `scontrol show partition` says, but for states."""
    return hashlib.sha256(_STATE.sub(b"", done.stdout)).hexdigest()


def backdrop_of(now: datetime, sign: str, config: Mapping[str, str], nodes: Mapping[str, Sequence[Node]]) -> Backdrop:
    """What is kept of these answers; `nodes` by the name of their partition."""
    kept = {name: config[name] for name in _DEFAULTS if name in config}
    return Backdrop(now.timestamp(), sign, kept, {name: Equipment.of(found) for name, found in nodes.items()})


class KeptBackdrop:
    """The last one of a cluster; `path` is its file, None where it lives as long as the process."""

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._read = path, False
        self._known: Backdrop | None = None

    async def get(self, now: datetime, sign: str, names: frozenset[str]) -> Backdrop | None:
        """What is kept beside just these partitions, and not too old."""
        if self._known is None and not self._read and self._path is not None:
            self._read, self._known = True, await anyio.to_thread.run_sync(partial(_load, self._path))
        known = self._known
        if known is None or known.mark != sign or not 0 <= now.timestamp() - known.at <= BACKDROP_AGE:
            return None
        return known if names == known.equipment.keys() else None

    async def keep(self, found: Backdrop) -> None:
        """Keep it. A disk that cannot be written costs the next process two commands, and no more."""
        self._known = found
        if self._path is not None:
            await anyio.to_thread.run_sync(partial(_save, self._path, found))

    def forget(self) -> None:
        """Somebody wants to know it anew."""
        self._known, self._read = None, True


def _load(path: Path) -> Backdrop | None:
    try:
        return None if path.is_symlink() else _understood(json_value(decoded(safe_open.read(path, _LARGEST))))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _understood(told: Any) -> Backdrop | None:
    equipment = {name: Equipment(**numbers) for name, numbers in told["equipment"].items()}
    config = {name: text for name, text in told["config"].items() if name in _DEFAULTS and isinstance(text, str)}
    numbers = [number for one in equipment.values() for number in asdict(one).values()]
    if told["format"] != _FORMAT or any(type(number) is not int or number < 0 for number in numbers):
        return None
    return Backdrop(float(told["at"]), str(told["mark"]), config, equipment)


def _save(path: Path, found: Backdrop) -> None:
    """Whole or not at all, for its owner alone."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                json.dump({"format": _FORMAT, **asdict(found)}, file)
            draft.replace(path)
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
