"""Drives the pure reading of scripts: parses shell with shfmt, and reads files of the project."""

from __future__ import annotations

import math
import os
import posixpath
import re
import sysconfig
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from anyio.lowlevel import RunVar

from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.programs.program import TooLarge
from slurm_agent_tools.programs.shell_tree import load
from slurm_agent_tools.scripts.analyse import analyse
from slurm_agent_tools.scripts.reading_state import Answer, Need, NeedFile, NeedShell, as_encoded, for_bash
from slurm_agent_tools.transport import process

if TYPE_CHECKING:
    from slurm_agent_tools.transport.base import Files

_T = TypeVar("_T")

MAX_FILE, MAX_SHELL = 2**20, 2**19
MAX_PATH = 4096
"""Characters of a path: the system opens no longer one, and one of many folders may be made of a short script."""
_SECONDS, _SECONDS_PER_BYTE = 0.5, 1 / 50_000  # of the processor: half of it is plenty on a slow machine
_WAIT, _PATIENCE = 10, 4  # seconds, and how many times as long it may take on a machine that has others to serve
LONG = 2**14
"""Bytes of a text that takes longer than others should wait: it is worked on beside the event loop."""
_MAX_TREE = 48 * 2**20
_MEMORY = 512 * 2**20
"""Bytes that shfmt may have: 10,000 lines need 350 MB, half a megabyte of one-letter commands takes 1.3 GB."""
_MAX_OPEN = 500  # brackets; for 50,000 shfmt takes 130 MB before it says that it cannot go on

# shfmt is written in Go, which collects its garbage less often when it may; the limit keeps its memory bounded.
_GO = {"GOGC": "400", "GOMEMLIMIT": "256MiB", "GOMAXPROCS": "2"}
_AT_ONCE = 2
"""Small texts of one server's, and large ones: many at once have more memory than a service of the site may have."""
WHOSE: ContextVar[object] = ContextVar("WHOSE", default=None)
"""For whom is read: of each one large text at a time, so that nobody waits until all of another's are done."""
_SMALL, _KEPT = 2**18, 32  # bytes printed, and texts
_PRINTED: dict[tuple[str, str, bytes], bytes] = {}
"""Of the last small texts: a refusal reads its text once more, and so does the submission behind a check."""
_LARGE: dict[tuple[str, str, bytes], bytes] = {}
"""Of the last large text, packed: that takes a tenth of the time that shfmt takes, and a fortieth of the room."""
_KILLED = -9  # the exit code of a process that SIGKILL ended: elsewhere `signal` does not name it


async def read_script(
    data: bytes,
    path: str,
    *,
    project: str,
    files: Files,
    arguments: Mapping[str, str] | None = None,
    args: Sequence[str] | None = None,
) -> ScriptReading:
    """What a batch script asks and does.

    `path` as it is shown, relative to `project`; `arguments` are options on sbatch's command line; `args` the script's
    own arguments, None where they are not known. Raises ConfigError when shfmt cannot be run.
    """
    reading = analyse(data, path, arguments, args=args)
    root = await files.real_path(project)
    size = step = len(data)  # of all texts so far, and of those that are read next
    need: Need | ScriptReading | None = None  # at first it is told nothing
    parsed = False  # the script's own text: what cannot be read is not laid out either
    while not isinstance(need, ScriptReading):
        own = isinstance(need, NeedShell) and (need.file, need.line) == (path, 1)
        answer: Answer = await _read(need, root, files) if isinstance(need, NeedFile) else None
        if need is not None:
            told = len(need.text if isinstance(need, NeedShell) else answer or "")
            size, step = size + told, told + sum(len(text.content) for text in need.behind)
        # What is large is worked on in turn, and a reading of much beside the event loop, in which others are answered
        # meanwhile. Its small texts wait for nobody's turn: there may be hundreds.
        async with nullcontext() if step < LONG else _turns().large():
            if isinstance(need, NeedShell):
                answer = await parse(need)
            parsed = parsed or (own and isinstance(answer, dict))
            need = reading.send(answer) if size < LONG else await anyio.to_thread.run_sync(reading.send, answer)
    script = replace(need, leads=await leads(need, root, files))
    found = any(finding.evidence.file == path for finding in script.findings)
    return await _laid_out(script, path) if found and parsed else script


ReadsScripts = Callable[..., Awaitable[ScriptReading]]
"""What reads a script as read_script does, with its arguments."""


async def leads(script: ScriptReading, root: str, files: Files) -> Mapping[str, str]:
    """See ScriptReading. A job's name counts where %x puts it; other patterns are known when the job is."""
    request, found = script.request, dict[str, str]()
    stated, below = request.find("input"), f"{root.rstrip('/')}/"
    work = posixpath.join(root, request.chdir or "")
    named = {"chdir": request.chdir, "output": request.output, "error": request.error}
    for option, value in {**named, "input": stated[-1].value if stated else None}.items():
        if not value or value == "/dev/null" or "\0" in value:
            continue
        name = request.name or posixpath.basename(script.path)
        filled = "%".join([part.replace("%x", name) for part in value.split("%%")])
        # Behind a backslash Slurm fills in nothing.
        place = posixpath.join(root if option == "chdir" else work, value if "\\" in value else filled)
        path, real = posixpath.normpath(place), await files.real_path(place)
        if path != real and f"{real}/".startswith(below):
            found[option] = posixpath.relpath(real, root)
        elif path != real and f"{path}/".startswith(below):  # a link outside the project is not for it to answer for
            found[option] = real
    return found


async def _read(need: NeedFile, root: str, files: Files) -> bytes | str | None:
    """A regular file inside the project, links resolved; None for anything else."""
    path = need.path if posixpath.isabs(need.path) else posixpath.join(root, need.path)
    if len(path) > MAX_PATH:
        return "has a path too long for a file"
    try:
        real = await files.real_path(path)
        if not real.startswith(root.rstrip("/") + "/"):
            return None
        stat = await files.stat(real)
        if stat is None or stat.kind != "file":
            return None
        if stat.size > MAX_FILE:
            return "is too large to be read"
        data = await files.read(real, size=MAX_FILE + 1)
        return "is too large to be read" if data is not None and len(data) > MAX_FILE else data
    except (StorageError, ValueError):  # ValueError: a name that no file can have
        return "cannot be read"


# --- Shell, parsed with shfmt in bounded time and memory --------------------------------------------------------------


async def parse(need: NeedShell) -> dict[str, Any] | str:
    """shfmt's syntax tree, or why there is none."""
    if len(need.text) > MAX_SHELL:
        return f"it is larger than {MAX_SHELL // 2**10} KB"
    if need.text.count(b"(") + need.text.count(b"{") > _MAX_OPEN and _opens(need.text) > _MAX_OPEN:
        return "it is nested too deeply"
    key = (_shfmt(), need.dialect, need.text)
    answer: bytes | str | None = _PRINTED.pop(key, None)
    packed = _LARGE.get(key)
    if answer is None:
        answer = await anyio.to_thread.run_sync(zlib.decompress, packed) if packed else await _printed(*key)
    if isinstance(answer, str):
        return answer
    if len(answer) <= _SMALL:
        _PRINTED[key] = answer
        if len(_PRINTED) > _KEPT:
            del _PRINTED[next(iter(_PRINTED))]
    elif not packed:
        kept = await anyio.to_thread.run_sync(zlib.compress, answer, 1)
        _LARGE.clear()
        _LARGE[key] = kept
    printed = [answer]
    del answer
    try:
        if len(need.text) < LONG:
            return load(printed, need.offsets)
        return await anyio.to_thread.run_sync(load, printed, need.offsets)
    except (ValueError, RecursionError):
        return "it is nested too deeply"


async def _printed(shfmt: str, dialect: str, text: bytes) -> bytes | str:
    """What shfmt prints, or why it prints nothing."""
    seconds = _SECONDS + len(text) * _SECONDS_PER_BYTE
    try:
        async with _turns().small if len(text) < LONG else nullcontext():  # of a large one it is its turn already
            done = await process.run(
                [shfmt, "--to-json", f"-ln={dialect}"],
                stdin=text,
                env={"PATH": os.environ.get("PATH", ""), **_GO},
                timeout=_WAIT + _PATIENCE * seconds,
                max_output=_MAX_TREE,
                limits={"RLIMIT_DATA": _MEMORY, "RLIMIT_CPU": math.ceil(seconds)},
            )
    except OSError as error:
        why = f"cannot be run: {error.strerror}"
        raise ConfigError("shfmt", shfmt, why, hint="Install slurm-agent-tools again.") from error
    if done.exit_code is None or done.exit_code == _KILLED:
        return "it takes too long to parse"
    if done.truncated or b"fatal error:" in done.stderr:
        return "it has too many commands to be read at once"
    if done.exit_code != 0:
        return done.stderr.decode("utf-8", "replace").replace("<standard input>:", "line ").strip()[:200]
    return done.stdout


async def in_turn(size: int, work: Callable[..., _T], *words: object) -> _T:
    """What a work on a text of so many bytes returns; on a large one it is done in turn, beside the event loop."""
    if size < LONG:
        return work(*words)
    async with _turns().large():
        return await anyio.to_thread.run_sync(work, *words)


class _Turns:
    """Whose turn it is, in the order in which they came: to have a small text parsed, and to have a large one read.

    Nobody waits with a small text for large ones. A tree has much memory, so its turn lasts until it is read.
    """

    def __init__(self) -> None:
        self.small, self._large = anyio.CapacityLimiter(_AT_ONCE), anyio.CapacityLimiter(_AT_ONCE)
        self._of: dict[object, anyio.Lock] = {}

    @asynccontextmanager
    async def large(self) -> AsyncIterator[None]:
        whose = WHOSE.get()
        own = self._of.setdefault(whose, anyio.Lock())
        try:
            async with own, self._large:
                yield
        finally:
            if not own.locked() and not own.statistics().tasks_waiting:
                self._of.pop(whose, None)


_TURNS: RunVar[_Turns] = RunVar("_TURNS")


def _turns() -> _Turns:
    try:
        return _TURNS.get()
    except LookupError:
        _TURNS.set(_Turns())
        return _TURNS.get()


def _opens(text: bytes) -> int:
    """How many brackets are open at once at most, quoted ones too."""
    most = depth = 0
    for found in re.finditer(rb"[(){}]", text):
        depth = max(0, depth + (1 if found[0] in b"({" else -1))
        most = max(most, depth)
    return most


@cache
def _shfmt() -> str:
    """The binary that came with the package, else the one on PATH; the bare name where there is none."""
    beside = Path(sysconfig.get_path("scripts")) / "shfmt"
    return str(beside) if beside.exists() else process.program("shfmt") or "shfmt"


async def _laid_out(reading: ScriptReading, path: str) -> ScriptReading:
    """The reading with the places of its commands, where the text can be parsed."""
    content = for_bash(as_encoded(reading.text))
    from slurm_agent_tools.scripts.script_layout import layout  # noqa: PLC0415 - 2 ms, and no accepted script needs it

    small = len(content) < LONG
    try:
        async with nullcontext() if small else _turns().large():
            tree = await parse(NeedShell(content, "bash", path, 1, offsets=True))
            if not isinstance(tree, dict):
                return reading
            places = layout(tree, content) if small else await anyio.to_thread.run_sync(layout, tree, content)
            return replace(reading, layout=places)
    except TooLarge:
        return reading
