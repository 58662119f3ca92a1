"""The seam: run a command, touch a file, tell the time. Everything outside the process goes through here."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Protocol, runtime_checkable

# Looked for in slurm.bin_dir where that is set; every other command only on PATH.
SLURM_COMMANDS = frozenset(
    {"sacct", "sacctmgr", "salloc", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "sprio", "squeue", "sreport",
     "srun", "sshare", "sstat"}
)  # fmt: skip

# What a command gets of the surroundings, so that SQUEUE_FORMAT and its kin change nothing.
PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "TZ")

# SLURM_BITSTR_LEN=0: squeue cuts the ids of a long pending array in the middle unless told not to.
# *_ALL: without it nothing is told of a partition with Hidden=YES or with AllowGroups of others, and of the jobs there,
# not even to who sent them: they would count as none.
FIXED = {
    "LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "SCONTROL_ALL": "1", "SINFO_ALL": "1",
    "SQUEUE_ALL": "1",
}  # fmt: skip


def command_environment(environment: Mapping[str, str], conf: PurePath | None) -> dict[str, str]:
    """What every command gets: of the surroundings what is PASSED, what is FIXED, and `conf` as its slurm.conf."""
    found = {name: environment[name] for name in PASSED if name in environment} | FIXED
    return found if conf is None else found | {"SLURM_CONF": conf.as_posix()}


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended, or was ended. Output is bytes, cut at the asked bound (`truncated`)."""

    argv: tuple[str, ...]
    exit_code: int | None  # None: ended by us at the time limit
    stdout: bytes
    stderr: bytes
    seconds: float
    truncated: bool = False

    @property
    def timed_out(self) -> bool:
        """True when the time limit ended it."""
        return self.exit_code is None


BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf)
"""Seconds, in steps, by which the times of commands are counted."""


def command_kind(argv: Sequence[str]) -> str:
    """What a command is counted as: its name, and what it shows."""
    if argv[:2] == ["sacct", "--helpformat"]:
        return " ".join(argv)
    return " ".join(argv[:3]) if argv[0] == "scontrol" and argv[1] == "show" else argv[0]


class CommandTimes:
    """How long commands took. `steps`: how many of a kind, by the first of BOUNDS that they kept; `seconds`: in all."""

    def __init__(self) -> None:
        self.steps: Counter[tuple[str, float]] = Counter()
        self.seconds: dict[str, float] = {}

    def note(self, kind: str, seconds: float) -> None:
        """One command that ended, by itself or at its limit."""
        self.steps[kind, BOUNDS[bisect_left(BOUNDS, seconds)]] += 1
        self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds


OnOutput = Callable[[bytes], None]
"""Is told the next bytes that a command printed."""


class Runner(Protocol):
    """Runs one command by argument vector; no shell, the environment is exactly `env` plus what the place needs."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 10.0,  # noqa: ASYNC109 - the limit of the command, which is ended in order
        max_output: int = 64 * 2**20,
        on_output: OnOutput | None = None,
    ) -> Completed:
        """Run it. Raises SlurmMissing when there is no such program; a time limit is told in the result.

        `on_output`: told what it prints while it does, where the place can; all of it is in the result as well.
        """
        ...


class Channel(Protocol):
    """The other end of a program that runs here: its output to read, its input to write, both bytes."""

    async def read(self) -> bytes:
        """What it wrote next."""
        ...

    async def write(self, data: bytes) -> None:
        """Give it more."""
        ...

    def end(self) -> None:
        """No more comes."""
        ...


@runtime_checkable
class StreamingRunner(Protocol):
    """Runs a command whose input and output are too large to be held."""

    async def joined(self, argv: Sequence[str], channel: Channel, *, cwd: str) -> tuple[int | None, bytes]:
        """Its exit code, None where it was cut off, and what it said on standard error. Raises as `Runner.run`."""
        ...


# What is said of each other kind of file where one with contents is wanted, and what to do.
NO_FILE = {
    "dir": ("is a directory", "Name a file in it."),
    "linked": ("is a hard link to a file of another user", "Name a copy of it."),
    "other": ("is not a regular file", "Name a regular file."),
}


@dataclass(frozen=True, slots=True)
class Stat:
    """What a file is: size in bytes, `uid` its owner, `mode` with its permissions.

    `kind`: file, dir, other, or linked, a hard link to another user's file. `version`: device, inode, and nanoseconds
    of its last write and last change; the same while nothing wrote to it. None where that is not told.
    """

    size: int
    kind: str
    modified: datetime
    uid: int | None = None
    mode: int | None = None
    version: tuple[int, int, int, int] | None = None


class Files(Protocol):
    """Reads and writes files where the jobs run. Raises StorageError; a missing file is None."""

    async def stat(self, path: str) -> Stat | None:
        """Follows links; None when there is nothing."""
        ...

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        """Bytes from `offset`; None when there is nothing."""
        ...

    async def read_parts(self, path: str, parts: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """Several parts (offset, size) of one file, opened once; None when there is nothing."""
        ...

    async def write_new(self, path: str, data: bytes, *, mode: int = 0o600) -> bool:
        """Write atomically, never over an existing file: False when the name is taken."""
        ...

    async def append(self, path: str, data: bytes) -> bool:
        """Add at the end of a regular file, all or nothing; False where there is none."""
        ...

    async def write_over(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Write a whole file in place of the file that is there, in one step: nobody ever sees half of it."""
        ...

    async def move_over(self, path: str, target: str, *, mode: int = 0o600) -> None:
        """Give a whole file in the same folder the name `target`, in place of the file that is there, in one step."""
        ...

    async def link_over(self, path: str, leads: str) -> None:
        """Make a symbolic link in place of the file or link that is there, in one step."""
        ...

    async def remove(self, path: str) -> bool:
        """Remove one file or link, never a folder; False where there is none."""
        ...

    async def make_folder(self, path: str) -> None:
        """Make a folder and those above it; one that is there is fine."""
        ...

    async def list(self, folder: str) -> list[str] | None:
        """Names in a folder, sorted; None when there is none."""
        ...

    async def real_path(self, path: str) -> str:
        """Absolute, every link resolved, also for what does not exist yet."""
        ...


@dataclass(frozen=True, slots=True)
class LoginEnvironment:
    """Who the tools are in a place. `root` is the project folder there: absolute, links resolved."""

    user: str
    root: str
    environ: Mapping[str, str]  # what a login there has; the policy says which of it a job gets


class Transport(Protocol):
    """Where Slurm's commands and the project's files are: this machine, or a login node over SSH."""

    @property
    def key(self) -> str:
        """What tells its records from those of other clusters; known also while nothing answers."""
        ...

    @property
    def runner(self) -> Runner:
        """Runs commands there."""
        ...

    @property
    def files(self) -> Files:
        """Reads and writes files there."""
        ...

    async def login_environment(self) -> LoginEnvironment:
        """Asked once, then remembered. Raises SlurmUnreachable, StorageError and ConfigError."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...


# Asks the person at the client or terminal: (title, instructions, prompts as (text, shown while typed)) -> the
# answers, or None where nobody answers. Never stored, never logged.
AskPerson = Callable[[str, str, Sequence[tuple[str, bool]]], Awaitable[Sequence[str] | None]]

asker: ContextVar[AskPerson | None] = ContextVar("asker", default=None)


class Clock(Protocol):
    """Time, so that tests can hold it."""

    def now(self) -> datetime:
        """UTC now."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
