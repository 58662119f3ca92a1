"""Python's tracebacks in a log, also where several ranks write into one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from slurm_agent_tools.diagnosis.excerpt import LogText, is_gap, split_rank
from slurm_agent_tools.models.shapes import EvidenceLine

_START = re.compile(r"Traceback \(most recent call last\):\s*$")

_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')

_FRAME_ALONE = re.compile(r'\s+File "[^"]+", line \d+, in \S')

_FRAME_INDENT = 2

_RAISED = re.compile(r"(?P<kind>[A-Za-z_][\w.]*(?:\(\w+\))?)(?:: (?P<message>.*)|:?)$")

_HANDLED = "During handling of the above exception, another exception occurred"

_FOREIGN = (
    "site-packages",
    "dist-packages",
    "/lib/python",
    "/lib64/python",
    "conda/lib/python",
    "/spack/",
    "/easybuild/",
)

_GROUP = re.compile(r"^ *\| ?")  # of exception groups, which are drawn as a tree

# What stands before a traceback that did not end the program: the interpreter got over it, or a log call shows it.
_IGNORED = re.compile(
    r"^(?:Exception in thread .{0,60}\(_pin_memory_loop\)|Exception ignored (?:in|on|while)"
    r"|--- Logging error ---|Error in atexit)|^Error in sys\.excepthook"
    r"|\bwill not be (?:enabled|available)\b"
)

# A library that tells of something that it could not load, and shows the traceback of it; programs go on behind it.
_NOT_LOADED = re.compile(r"(?i)\b(?:could not|cannot|failed to|unable to) (?:load|import|initiali[sz]e|find)\b")

_SAID = 12  # characters of a message that is recognized in another line

_SOCKET = re.compile(r"\b_?sock(?:et)?\b|\.(?:getpeername|connect|recv\w*|send|sendall|shutdown)\(")

_LOGGED = re.compile(r"^Exception in thread |(?<![\w.])(?:ERROR|WARNING|CRITICAL|INFO|DEBUG)\b")

_BEHIND = 4  # lines that a message may take

_OTHER = re.compile(r"Traceback|During handling of|srun: |slurm|\S*(?:Error|Exception)\b|\[|[-=*]{3}")

# What launchers say of a process that failed, without why.
LAUNCHERS = frozenset({"ChildFailedError", "ProcessExitedException", "ProcessRaisedException"})

# What a process dies of when another one died first, or was told to stop.
EFFECTS = frozenset(
    {
        "CalledProcessError", "RuleException",
        "BrokenPipeError", "ConnectionResetError", "ConnectionAbortedError", "EOFError", "KeyboardInterrupt",
        "SystemExit", "SignalException", "BrokenProcessPool", "ExceptionGroup", "BaseExceptionGroup",
        "ActorDiedError", "RayActorError", "WorkerCrashedError", "BrokenExecutor",
    }
)  # fmt: skip

_NO_NUMBER = re.compile(r"(?i)is_?(?:nan|inf|finite)|check_numerics|assert_all_finite")

_LOST = re.compile(
    r"\b(?:connection (?:was )?(?:closed|reset|aborted)|broken pipe|closed by (?:remote )?peer|peer process|"
    r"worker.{0,40}(?:died|exited|failed)|one of the subprocess|engine core initialization failed|"
    r"exception in a background process)",
    re.IGNORECASE,
)


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
        return not self.file.startswith("<") and not any(part in self.file for part in _FOREIGN)


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception with its traceback; `position` is the index of its last line in the text's lines."""

    kind: str
    message: str
    position: int
    line: EvidenceLine
    frames: tuple[Frame, ...]
    handled: bool = False
    caught: bool = False  # shown by a log call or in a thread: the program may have gone on
    source: str = ""  # the program's line in the innermost frame
    apart: bool = False  # the message stands on the lines behind this one

    @property
    def about_numbers(self) -> bool:
        """True where the program itself looked for a number that is none."""
        return _NO_NUMBER.search(self.source) is not None

    @property
    def no_program(self) -> bool:
        """True where a program that was to be started does not exist."""
        inner = self.frames[-1].function if self.frames else None
        return self.name == "FileNotFoundError" and inner == "_execute_child" and "/" not in self.message

    @property
    def of_a_socket(self) -> bool:
        """True where it was raised in the use of a connection, not of a file."""
        inner = self.frames[-1].file if self.frames else ""
        return inner.endswith(("/socket.py", "/ssl.py")) or _SOCKET.search(self.source) is not None

    @property
    def effect(self) -> bool:
        """True for what a process dies of when another one died first."""
        return self.name in EFFECTS | LAUNCHERS or (
            self.name in {"RuntimeError", "OSError", "Exception"} and bool(_LOST.search(self.message))
        )

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
    caught: bool = False
    ignored: bool = False
    announced: str = ""  # the line before it
    inner: bool = False  # the one that a worker process sent along: it replaces the one before it
    source: str = ""
    frames: list[Frame] = field(default_factory=list)


def exceptions(text: LogText) -> list[Raised]:
    """Every traceback that ends, in the order of their ends."""
    return list(tracebacks(text)[0])


def tracebacks(text: LogText) -> tuple[tuple[Raised, ...], frozenset[int]]:
    """Every traceback that ends, in the order of their ends; and the lines that quote source, or what was ignored."""
    found: list[Raised] = []
    handled: set[int] = set()
    quoted: set[int] = set()
    last: dict[str, int] = {}
    noted: dict[str, int] = {}  # handled only where the log shows the next one: it may be cut off before that
    for prefix, item in _read(text, quoted):
        if isinstance(item, Raised):
            handled.update({noted.pop(prefix)} if prefix in noted else ())
            last[prefix] = len(found)
            found.append(item)
        elif prefix in last:
            noted[prefix] = last[prefix]
    whole = (_with_message(replace(raised, handled=index in handled), text) for index, raised in enumerate(found))
    return tuple(whole), frozenset(quoted)


def _with_message(raised: Raised, text: LogText) -> Raised:
    """Where the line ends with the name, its message is what follows, until a blank line or one of another kind."""
    if raised.message:
        return raised
    prefix = split_rank(raised.line.text)[0]
    message: list[str] = []
    number = raised.line.line
    for line in text.lines[raised.position + 1 : raised.position + 1 + _BEHIND]:
        other, body = split_rank(line.text)
        number += bool(number)
        if is_gap(line) or line.line != number or other != prefix or body[:1].isspace() or _OTHER.match(body):
            break
        message.append(body.strip())
    return replace(raised, message=" ".join(message), apart=True) if message else raised


def _read(text: LogText, quoted: set[int]) -> Iterator[tuple[str, Raised | None]]:
    """(rank's prefix, exception), or None for the note that it was being handled when the next one came.

    `quoted` takes the lines of frames, and all lines of a traceback that was ignored. A frame opens a traceback whose
    beginning is not in the log, too.
    """
    reading: dict[str, _Open] = {}
    before: dict[str, str] = {}
    for position, line in enumerate(text.lines):
        if is_gap(line):  # what follows belongs to no traceback from before it
            reading.clear()
            continue
        prefix, body = split_rank(line.text)
        start = _START.search(body)
        if start is not None:
            reading[prefix] = _opened(body[: start.start()], before.get(prefix, ""))
            quoted.update({position} if reading[prefix].ignored else ())
            if reading[prefix].inner:
                yield prefix, None
        elif prefix in reading or _FRAME_ALONE.match(body):
            opened = reading.setdefault(prefix, _Open(indent=max(0, len(body) - len(body.lstrip()) - _FRAME_INDENT)))
            raised = _next(opened, body, line, position)
            if raised is not None:
                reading.pop(prefix)
                quoted.update({position} if opened.ignored else ())
                yield from () if opened.ignored else ((prefix, raised),)
            elif body[:1].isspace() or _FRAME.match(body):
                quoted.add(position)
        elif body.strip().startswith(_HANDLED):
            yield prefix, None
        before[prefix] = body


def _opened(lead: str, before: str) -> _Open:
    """What begins with a line that says `Traceback`: the text before that on the line, and the line before."""
    return _Open(
        indent=len(lead) if not lead.strip() else 0,
        caught=bool(_LOGGED.search(lead) or _LOGGED.search(before[:200])),
        ignored=bool(_IGNORED.search(before)),
        inner=lead.strip() == "Original",
        announced=before,
    )


def _next(state: _Open, body: str, line: EvidenceLine, position: int) -> Raised | None:
    """Take one more line; the exception when this is the last one."""
    body = _GROUP.sub("", body)
    frame = _FRAME.match(body)
    if frame is not None:
        state.frames.append(Frame(frame["file"], int(frame["line"]), frame["function"], line))
        return None
    own = body[min(state.indent, len(body) - len(body.lstrip())) :]
    end = None if own[:1].isspace() else _RAISED.match(own)
    if end is None:
        state.source = own.strip() if own.strip(" ~^") else state.source
        return None
    frames, message = tuple(state.frames), (end["message"] or "").strip()
    caught = state.caught or (
        len(message) >= _SAID and message in state.announced and _NOT_LOADED.search(state.announced) is not None
    )
    return Raised(end["kind"], message, position, line, frames, caught=caught, source=state.source)
