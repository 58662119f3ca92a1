"""Python's tracebacks in a log, also where several ranks write into one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from slurm_agent_tools.diagnosis.excerpt import LogText, split_rank
from slurm_agent_tools.replies import EvidenceLine

_START = re.compile(r"Traceback \(most recent call last\):\s*$")
_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_RAISED = re.compile(r"(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*)|:?)$")
_HANDLED = "During handling of the above exception, another exception occurred"
_FOREIGN = ("site-packages", "dist-packages", "/lib/python3", "/lib64/python3", "<frozen ", "conda/lib/python")

# What a process dies of when another one died first, or was told to stop.
EFFECTS = frozenset(
    {
        "ChildFailedError", "ProcessExitedException", "ProcessRaisedException", "CalledProcessError",
        "BrokenPipeError", "ConnectionResetError", "ConnectionAbortedError", "EOFError", "KeyboardInterrupt",
        "SystemExit", "SignalException",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: the program's file, and the log line that shows it."""

    file: str
    line: int
    function: str | None
    shown: EvidenceLine

    @property
    def own(self) -> bool:
        """True for a file of the user, not of Python or an installed package."""
        return not any(part in self.file for part in _FOREIGN)


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception with its traceback; `position` is the index of its last line in the text's lines."""

    kind: str
    message: str
    position: int
    line: EvidenceLine
    frames: tuple[Frame, ...]
    handled: bool = False

    @property
    def name(self) -> str:
        """The class without its module."""
        return self.kind.rpartition(".")[2]

    @property
    def origin(self) -> Frame | None:
        """The innermost frame in the user's own file, else the innermost one."""
        own = [frame for frame in self.frames if frame.own]
        return next(reversed(own or list(self.frames)), None)


@dataclass(slots=True)
class _Open:
    """A traceback that is being read."""

    indent: int
    frames: list[Frame] = field(default_factory=list)


def exceptions(text: LogText) -> list[Raised]:
    """Every traceback that ends, in the order of their ends."""
    found: list[Raised] = []
    handled: set[int] = set()
    last: dict[str, int] = {}
    for prefix, item in _read(text):
        if isinstance(item, Raised):
            last[prefix] = len(found)
            found.append(item)
        elif prefix in last:
            handled.add(last[prefix])
    return [_mark(raised, handled=index in handled) for index, raised in enumerate(found)]


def _mark(raised: Raised, *, handled: bool) -> Raised:
    return Raised(raised.kind, raised.message, raised.position, raised.line, raised.frames, handled)


def _read(text: LogText) -> Iterator[tuple[str, Raised | None]]:
    """(rank's prefix, exception), or None for the note that it was being handled when the next one came."""
    reading: dict[str, _Open] = {}
    for position, line in enumerate(text.lines):
        prefix, body = split_rank(line.text)
        start = _START.search(body)
        if start is not None:
            before = body[: start.start()]
            reading[prefix] = _Open(indent=len(before) if not before.strip() else 0)
        elif prefix in reading:
            raised = _next(reading[prefix], body, line, position)
            if raised is not None:
                del reading[prefix]
                yield prefix, raised
        elif body.strip().startswith(_HANDLED):
            yield prefix, None


def _next(state: _Open, body: str, line: EvidenceLine, position: int) -> Raised | None:
    """Take one more line; the exception when this is the last one."""
    frame = _FRAME.match(body)
    if frame is not None:
        state.frames.append(Frame(frame["file"], int(frame["line"]), frame["function"], line))
        return None
    own = body[state.indent :]
    end = None if own[:1].isspace() else _RAISED.match(own)
    if end is None:
        return None
    return Raised(end["kind"], (end["message"] or "").strip(), position, line, tuple(state.frames))
