"""The socket of a site's service: frames of bounded length, and the user's half, which asks and is asked.

A frame begins with two lengths of four bytes, the most significant first: of its JSON, and of the bytes behind that.
Nothing of the other side is believed: what is longer, late or no JSON object ends the connection.
"""

from __future__ import annotations

import json
import os
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from anyio.abc import ByteStream

from slurm_agent_tools.errors import (
    AccessError,
    AccountingUnreachable,
    AgentToolsError,
    InputError,
    SiteUnreachable,
    SlurmGarbled,
    SlurmMissing,
    SlurmRefused,
    SlurmUnreachable,
    StorageError,
)
from slurm_agent_tools.text.bounded_documents import json_value
from slurm_agent_tools.transport.base import Files, Stat

SOCKET = "/run/slurm-agent-tools/site.sock"
"""Where a site's service listens, unless its administrator says otherwise."""

WORDS, BODY = 4 * 2**20, 2 * 2**20
"""Bytes of a frame: of its JSON, and of what lies behind."""

QUESTION = 2**18
"""Bytes of the JSON with which a call begins."""

FILE = 2**20 + 1
"""Bytes of one file that are asked for at once: one more than a script's reader takes."""

_KEPT = 1024
"""Bytes of what is kept around the texts of a frame, each of whose letters may take four."""

PATIENCE = 20.0
"""Seconds for the rest of a frame, and for the other side to take one."""

_HEAD = struct.Struct("!II")

_FILES = frozenset({"file", "dir", "other", "linked"})

_VERSION = ("device", "inode", "modified", "changed")

_KINDS: Mapping[str, type[AgentToolsError]] = {
    kind.code: kind for kind in (
        AccessError, AccountingUnreachable, SlurmGarbled, SlurmMissing, SlurmRefused, SlurmUnreachable, StorageError,
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SiteFrame:
    """One message."""

    words: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""
    size: int = field(default=0, compare=False)  # bytes that one which came takes at most, where only texts are kept


class BrokenFrame(Exception):
    """What the other side sent is no frame, or it went away."""


async def send(stream: ByteStream, frame: SiteFrame) -> None:
    """Hand over one frame. Raises BrokenFrame."""
    words = json.dumps(frame.words, separators=(",", ":")).encode("ascii")
    if len(words) > WORDS or len(frame.body) > BODY:
        raise BrokenFrame("it would be longer than a frame may be")
    try:
        with anyio.fail_after(PATIENCE):
            await stream.send(_HEAD.pack(len(words), len(frame.body)) + words + frame.body)
    except (OSError, TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        raise BrokenFrame("the other side does not take it") from error


async def receive(stream: ByteStream, *, wait: float = PATIENCE, most: int = WORDS) -> SiteFrame:
    """The next frame, which begins within `wait` seconds and has at most `most` bytes of JSON. Raises BrokenFrame."""
    try:
        with anyio.fail_after(wait):
            first = await stream.receive(_HEAD.size)
        with anyio.fail_after(PATIENCE):
            head = first + await _exactly(stream, _HEAD.size - len(first))
            words, body = _HEAD.unpack(head)
            if words > most or body > BODY:
                raise BrokenFrame("it is longer than a frame may be")
            found = json_value((await _exactly(stream, words)).decode())
            rest = await _exactly(stream, body)
    except (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        raise BrokenFrame("the other side went away") from error
    except (ValueError, RecursionError) as error:
        raise BrokenFrame("it is no JSON") from error
    if not isinstance(found, dict):
        raise BrokenFrame("it is no JSON object")
    return SiteFrame(found, rest, body + 4 * words + _KEPT)


async def _exactly(stream: ByteStream, size: int) -> bytes:
    parts = []
    while size:
        part = await stream.receive(min(size, 2**16))
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# --- What stands in frames --------------------------------------------------------------------------------------------


def told(error: AgentToolsError) -> dict[str, str]:
    """An error as it is sent."""
    return {"code": error.code, "message": error.message, "hint": error.hint}


def raised(words: Mapping[str, Any]) -> AgentToolsError:
    """The error that the other side told."""
    code, message, hint = (str(words.get(name, "")) for name in ("code", "message", "hint"))
    if code == InputError.code:
        field_name, _, problem = message.partition(" ")
        return InputError(field_name.rstrip(":") or "request", None, problem or "cannot be used", hint=hint)
    return _KINDS.get(code, SiteUnreachable)(message, hint=hint)


def packed_stat(found: Stat | None) -> list[Any] | None:
    """A stat as it is sent."""
    if found is None:
        return None
    modified = found.modified.timestamp()
    return [
        found.size,
        found.kind,
        modified,
        found.uid,
        found.mode,
        None if found.version is None else [*found.version],
    ]


def unpacked_stat(words: Any) -> Stat | None:
    """The stat that the other side told. Raises BrokenFrame."""
    if words is None:
        return None
    try:
        size, kind, modified, uid, mode, version = words
        when = datetime.fromtimestamp(modified, UTC)
        numbers = None if version is None else tuple(map(int, version))
        found = Stat(int(size), str(kind), when, uid, mode, numbers)  # type: ignore[arg-type]  # as looked at below
    except (TypeError, ValueError, OverflowError, OSError) as error:  # OSError: of a time that no calendar has
        raise BrokenFrame("what it tells of a file cannot be read") from error
    plain = all(isinstance(one, int | None) for one in (uid, mode))  # they are kept, and anything else is of any size
    if not plain or found.kind not in _FILES or (numbers is not None and len(numbers) != len(_VERSION)):
        raise BrokenFrame("what it tells of a file cannot be read")
    return found


# --- The user's half: calls, and the service's questions about files of the project answered --------------------------

# The service opens no file of a user: it asks, and this program reads with the user's own rights, inside the project
# alone and no more than a frame holds.

_LONGEST = 120.0
"""Seconds for any call: the service looks at Slurm meanwhile."""

_NAMES = 20_000  # of one folder

_HINT = "Nothing was sent. Call again; where it stays away, ask an administrator: `slurm-agent-tools site check`."


@dataclass(frozen=True, slots=True)
class SiteClient:
    """Asks the service behind one socket about one project. A call is a connection of its own."""

    socket: str
    root: str
    files: Files

    async def ask(self, call: str, words: Mapping[str, Any], body: bytes = b"") -> Mapping[str, Any]:
        """The service's answer. Raises SiteUnreachable where it breaks off, and the error that it tells."""
        try:
            with anyio.fail_after(_LONGEST):
                return await self._asked(SiteFrame({"call": call, "project": self.root, **words}, body))
        except TimeoutError as error:
            raise SiteUnreachable(
                f"the site's service at {self.socket} did not answer within {_LONGEST:.0f} s", hint=_HINT
            ) from error
        except (OSError, BrokenFrame) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise SiteUnreachable(f"the site's service at {self.socket} does not answer: {why}", hint=_HINT) from error

    async def tell(self, call: str, words: Mapping[str, Any]) -> None:
        """Tell it something without waiting for what comes of it. Where it is away it finds out by itself."""
        try:
            async with await anyio.connect_unix(self.socket) as stream:
                await send(stream, SiteFrame({"call": call, "project": self.root, **words}))
        except (OSError, BrokenFrame):
            return

    async def _asked(self, question: SiteFrame) -> Mapping[str, Any]:
        async with await anyio.connect_unix(self.socket) as stream:
            await send(stream, question)
            return await self._answered(stream)

    async def _answered(self, stream: ByteStream) -> Mapping[str, Any]:
        while True:
            said = await receive(stream, wait=_LONGEST)
            if "error" in said.words:
                raise raised(said.words["error"])
            if "answer" in said.words:
                answer = said.words["answer"]
                if not isinstance(answer, dict):
                    raise BrokenFrame("its answer is none")
                return answer
            await send(stream, await self._of_files(said.words))

    async def _of_files(self, words: Mapping[str, Any]) -> SiteFrame:
        """What the service asks of the project's files."""
        kinds: Mapping[object, Callable[[str, Any], Awaitable[SiteFrame]]] = {
            "look": self._look, "read": self._read, "list": self._list,
        }  # fmt: skip
        path, how = words.get("path"), kinds.get(words.get("ask"))
        if how is None or not isinstance(path, str):
            raise BrokenFrame("it asks for what nobody tells")
        try:
            return await how(path, words.get("what"))
        except (StorageError, ValueError) as error:
            return SiteFrame({"failed": error.message if isinstance(error, StorageError) else str(error)})

    async def _look(self, path: str, most: Any) -> SiteFrame:
        """Where a path leads; of what lies in the project also what it is, and a small file whole."""
        real = await self.files.real_path(path)
        if not self._inside(real):
            return SiteFrame({"real": real, "outside": True})
        found = await self.files.stat(real)
        whole = found is not None and found.kind == "file" and found.size <= min(int(most or 0), FILE)
        data = await self.files.read(real, size=FILE) if whole else None
        told = {"real": real, "stat": packed_stat(found), "whole": data is not None}
        return SiteFrame(told, data or b"")

    async def _read(self, path: str, parts: Any) -> SiteFrame:
        spans: Sequence[tuple[int, int]] = [(int(offset), int(size)) for offset, size in parts]
        if sum(max(0, size) for _, size in spans) > FILE or min((min(span) for span in spans), default=0) < 0:
            raise BrokenFrame("it asks for more than a frame holds")
        found = await self.files.read_parts(path, spans) if await self._ours(path) else None
        sizes = None if found is None else [len(part) for part in found]
        return SiteFrame({"sizes": sizes}, b"".join(found or ()))

    async def _list(self, path: str, _: Any) -> SiteFrame:
        names = await self.files.list(path) if await self._ours(path) else None
        if names is not None and len(names) > _NAMES:
            raise StorageError(f"{path} holds more than {_NAMES} names")
        return SiteFrame({"names": names})

    async def _ours(self, path: str) -> bool:
        return self._inside(await self.files.real_path(path))

    def _inside(self, real: str) -> bool:
        return real == self.root or real.startswith(self.root.rstrip(os.sep) + os.sep)


# --- What one user may take of the service, whose half this is ------------------------------------------------------

MOST, MOST_OF_ONE = 256, 16
"""Connections at once: of all, and of one user."""

HELD = 2**30
"""Bytes that all calls together keep of what their users told: half of what the service's unit may take."""

_SHARE = 8
"""One user has at most this part of the connections, and bytes, that are still free: so some are left for everybody."""

_MINUTE = timedelta(minutes=1)

_NAMED = 20
"""Users in a line of the log."""


class CallLimits:
    """Connections and calls of each user. Who is refused is counted, for one line in the log now and then.

    `connections`: how many there are for all users together.
    """

    def __init__(self, calls_per_minute: int, *, connections: int = MOST) -> None:
        self._most, self._connections = calls_per_minute, connections
        self._open, self._held = Counter[int](), Counter[int]()
        self._calls = Counter[int]()
        self._since: datetime | None = None
        self._refused = Counter[tuple[int, str]]()

    def over(self, uid: int, now: datetime) -> tuple[str, str] | None:
        """The limit that one more call of this user would break, and what to do; else the call is counted."""
        if self._since is None or not self._since <= now < self._since + _MINUTE:
            self._since = now
            self._calls.clear()
        every = self._connections
        free = every - self._open.total()
        most = min(MOST_OF_ONE, max(1, free // _SHARE))
        again = "Call again in a moment."
        if free <= 0:
            return self._noted(uid, "connections of all", f"too many calls at once: {every} of all users", again)
        if self._open[uid] >= most:
            told = f"too many calls at once: {most} of one user while {free} of {every} are free"
            return self._noted(uid, "connections", told, again)
        if self._calls[uid] >= self._most:
            told = f"too many calls: {self._most} of one user in a minute (calls_per_minute)"
            return self._noted(uid, "calls_per_minute", told, "Call again in a minute.")
        self._calls[uid] += 1
        return None

    def _noted(self, uid: int, limit: str, told: str, hint: str) -> tuple[str, str]:
        self._refused[uid, limit] += 1
        return told, hint

    @contextmanager
    def call(self, uid: int) -> Iterator[Callable[[int], None]]:
        """A call that holds its connection, and so many bytes until it ends: BrokenFrame where these are too many."""
        kept = 0

        def keep(size: int) -> None:
            nonlocal kept
            if self._held[uid] + size > (HELD - self._held.total()) // _SHARE:
                self._refused[uid, "bytes"] += 1
                raise BrokenFrame("with those of other calls they are more than the service keeps; call again then")
            self._held[uid] += size
            kept += size

        self._open[uid] += 1
        try:
            yield keep
        finally:
            self._open[uid] -= 1
            self._held[uid] -= kept
            for counts in (self._open, self._held):
                counts += Counter[int]()  # those of nobody are dropped

    def at_once(self, uid: int | None = None) -> int:
        """Calls that are open now, of one user or of all."""
        return self._open.total() if uid is None else self._open[uid]

    def refused(self) -> dict[str, int]:
        """How often whom which limit refused since this was asked last, the most frequent first."""
        found, self._refused = self._refused, Counter()
        shown = {f"uid {uid}, {limit}": count for (uid, limit), count in found.most_common(_NAMED)}
        rest = found.total() - sum(shown.values())
        return shown | ({"others": rest} if rest else {})
