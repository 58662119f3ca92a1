"""Parses shell with shfmt, in bounded time and memory; what is long to do is done beside the event loop."""

from __future__ import annotations

import math
import os
import re
import sysconfig
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import RunVar

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.scripts.reading_state import NeedShell
from slurm_agent_tools.scripts.shell_tree import load
from slurm_agent_tools.transport import process

T = TypeVar("T")

MAX_SHELL = 2**19
_SECONDS, _SECONDS_PER_BYTE = 0.5, 1 / 50_000  # of the processor: half of it is plenty on a slow machine
_WAIT, _PATIENCE = 10, 4  # seconds, and how many times as long it may take on a machine that has others to serve
_LONG = 2**14  # bytes of a text that takes longer than others should wait
_MAX_TREE = 48 * 2**20
_MEMORY = 512 * 2**20
"""Bytes that shfmt may have: 10,000 lines need 350 MB, half a megabyte of one-letter commands takes 1.3 GB."""
_MAX_OPEN = 500  # brackets; for 50,000 shfmt takes 130 MB before it says that it cannot go on

# shfmt is written in Go, which collects its garbage less often when it may; the limit keeps its memory bounded.
_GO = {"GOGC": "400", "GOMEMLIMIT": "256MiB", "GOMAXPROCS": "2"}
_AT_ONCE = 2
"""Small texts of one server's, and one large one: many at once have more memory than a service of the site may have."""
_TURNS: RunVar[tuple[anyio.CapacityLimiter, anyio.CapacityLimiter]] = RunVar("_TURNS")
_SMALL, _KEPT = 2**18, 32  # bytes printed, and texts
_PRINTED: dict[tuple[str, str, bytes], bytes] = {}
"""Of the last small texts: a refusal reads its text once more, and so does the submission behind a check."""
_LARGE: dict[tuple[str, str, bytes], bytes] = {}
"""Of the last large text, packed: that takes a tenth of the time that shfmt takes, and a fortieth of the room."""
_KILLED = -9  # the exit code of a process that SIGKILL ended: elsewhere `signal` does not name it


async def aside(size: int, work: Callable[..., T], *args: object) -> T:
    """Work on a text of so many bytes: on a large one beside the event loop, in which others are answered meanwhile."""
    return work(*args) if size < _LONG else await anyio.to_thread.run_sync(work, *args)


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
        answer = await aside(_LONG, zlib.decompress, packed) if packed else await _printed(*key)
    if isinstance(answer, str):
        return answer
    if len(answer) <= _SMALL:
        _PRINTED[key] = answer
        if len(_PRINTED) > _KEPT:
            del _PRINTED[next(iter(_PRINTED))]
    elif not packed:
        kept = await aside(_LONG, zlib.compress, answer, 1)
        _LARGE.clear()
        _LARGE[key] = kept
    printed = [answer]
    del answer  # what is printed is large, and `load` lets go of it before the tree is made
    return await aside(len(need.text), _tree, printed, need.offsets)


def _tree(printed: list[bytes], offsets: bool) -> dict[str, Any] | str:
    """The tree in what shfmt printed, or why there is none."""
    try:
        return load(printed.pop(), offsets=offsets)
    except (ValueError, RecursionError):
        return "it is nested too deeply"


async def _printed(shfmt: str, dialect: str, text: bytes) -> bytes | str:
    """What shfmt prints, or why it prints nothing."""
    seconds = _SECONDS + len(text) * _SECONDS_PER_BYTE
    try:
        async with _turns(len(text)):
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


def _turns(size: int) -> anyio.CapacityLimiter:
    """Whose turn it is to be parsed, in the order in which they came. Nobody waits with a small text for large ones."""
    try:
        small, large = _TURNS.get()
    except LookupError:
        small, large = anyio.CapacityLimiter(_AT_ONCE), anyio.CapacityLimiter(1)
        _TURNS.set((small, large))
    return small if size < _LONG else large


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
