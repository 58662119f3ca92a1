"""Times of processes, several in turn, so that a busy moment of the machine meets all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Spent(NamedTuple):
    """Seconds: on the clock, and of the processor (the process's children that it waited for included)."""

    wall: float
    cpu: float


def in_turn(makers: Sequence[Callable[[], Spent]], runs: int) -> list[Spent]:
    """The least of `runs` runs of each, wall and processor time each by itself. The first round only warms up."""
    for make in makers:
        make()
    rounds = [[make() for make in makers] for _ in range(runs)]
    return [
        Spent(min(spent.wall for spent in column), min(spent.cpu for spent in column))
        for column in zip(*rounds, strict=True)
    ]


def python(*words: str) -> list[str]:
    """The command line of this interpreter."""
    return [sys.executable, *words]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """A user's environment with a home folder of its own; bytecode may be written, as everywhere but in tests.

    This machine's own workstation, where one is up, is not in it.
    """
    names = ("PATH", "LANG", "LC_ALL", "TZ")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, "HOME": str(folder), "SLURM_AGENT_WORKSTATION": str(folder / "no-workstation"), **more}


def whole(argv: Sequence[str], env: Mapping[str, str], cwd: Path = ROOT) -> Spent:
    """A process from its start to its end. CalledProcessError when it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(
        argv, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with process.stderr:  # type: ignore[union-attr]  # it is a pipe
        said = process.stderr.read()  # type: ignore[union-attr]
    used = _ended(process)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv, stderr=said)
    return Spent(time.perf_counter() - start, used)


def at_once(commands: Sequence[Sequence[str]], env: Mapping[str, str], cwd: Path = ROOT) -> Spent:
    """Several processes that are started together, until the last has ended."""
    start = time.perf_counter()
    running = [
        subprocess.Popen(argv, env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for argv in commands
    ]
    used = [_ended(process) for process in running]
    return Spent(time.perf_counter() - start, sum(used))


def first_line(argv: Sequence[str], env: Mapping[str, str], sent: bytes, cwd: Path = ROOT) -> tuple[Spent, bytes]:
    """From the start of a process to the first line that it answers to `sent`; the process is ended then."""
    start = time.perf_counter()
    process = subprocess.Popen(
        argv, env=dict(env), cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        process.stdin.write(sent)  # type: ignore[union-attr]  # they are pipes
        process.stdin.flush()  # type: ignore[union-attr]
        line = process.stdout.readline()  # type: ignore[union-attr]
        return Spent(time.perf_counter() - start, _used(process.pid)), line
    finally:
        process.kill()
        process.communicate()


def _used(pid: int) -> float:
    """Processor seconds so far of all threads of a process that runs."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def _ended(process: subprocess.Popen[bytes]) -> float:
    """Wait for its end; its processor seconds, with those of the processes that it waited for."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime
