"""What continuous integration runs: the README's commands in a bare system, then on each kind of machine.

What waits more than it computes runs beside other steps, in rounds. What is quick and likely to fail comes first; the
tests come last, so that their closing lines are the last ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import cgroups
import newcomer
from newcomer import Step

import system
from system import View

DEMO = ("make", "demo")
OUTSIDE = "192.0.2.77"  # an address of documentation (RFC 5737): no machine has it
TAKEN_APART = {"SLURM_AGENT_TEST_TAKE_APART": "yes"}  # tests/bare may remove packages: what they change is thrown away


def rounds(folder: Path) -> Iterator[tuple[Step, ...]]:
    """All steps. Those of a round run beside each other, when all of the round before have ended."""
    yield (Step("the demo as root, on a machine that has never seen it", View(layer="root"), DEMO),)
    user = View(user=system.NEWCOMER, over="root", layer="user")
    yield (
        Step("the demo as an ordinary user, where the packages are there", user, DEMO),
        Step("the files of a release", View(over="root", layer="release"), ("make", "-s", "dist")),
        Step("lint and audit", View(over="root"), ("make", "lint", "audit")),
    )
    installing = newcomer.steps(folder, folder / "layers/release/changes/src/dist")
    elsewhere = View(user=system.NEWCOMER, address=OUTSIDE, over="user")
    yield (
        next(installing),
        *_layouts("v1", "hybrid"),
        Step("the demo where the machine's name stands for another address", View(address=OUTSIDE, over="root"), DEMO),
    )
    yield (next(installing), *_layouts("v2", "tmpfs"), Step("the same as an ordinary user", elsewhere, DEMO))
    apart = (".venv/bin/python", "-m", "pytest", "-p", "no:cacheprovider", "tests/bare")
    yield (
        next(installing),
        *_layouts("none"),
        Step("each package taken away", View(over="root"), apart, TAKEN_APART),
    )
    # Not 127.0.1.1 as above: docs/concepts/devcluster.md says what a running slurmctld does not hear of there.
    yield (Step("all tests", View(over="root", layer="tests", address="127.0.0.1"), ("make", "test")),)


def _layouts(*names: str) -> Iterator[Step]:
    """The demo under each of these layouts of cgroups that this machine can show."""
    for name in names:
        if reason := cgroups.why_not(name):
            say(f"left out: cgroups {name}: {reason}")
        else:
            yield Step(f"the demo with cgroups {name}", View(cgroup=name, over="root"), DEMO)


def run(directly: list[str]) -> int:
    """Make the system, run the rounds until a step fails, remove the system. Where there is none: `directly`."""
    with tempfile.TemporaryDirectory(prefix="slurm-bare-", dir=_large()) as name:
        folder = Path(name)
        say("making a bare system of this distribution")
        _warn_of_changes()
        try:
            system.make(folder)
        except system.CannotBeMadeError as error:
            say(f"no bare system can be made here: {error}")
            say("running directly on this machine instead, which may have packages that another one lacks")
        else:
            return ran(folder, rounds(folder))
    return subprocess.run(directly, cwd=system.ROOT, check=False).returncode


def ran(folder: Path, wanted: Iterable[Sequence[Step]]) -> int:
    """Run rounds until a step fails; its exit code. Steps beside others print when their round has ended."""
    for steps in wanted:
        with ExitStack() as stack:
            alone = len(steps) == 1
            logs = [None if alone else stack.enter_context(tempfile.TemporaryFile()) for _ in steps]
            for step in steps:
                say(step.name if alone else f"begun: {step.name}")
            ended = _ended(folder, steps, logs)
            for step, log, (code, seconds) in zip(steps, logs, ended, strict=True):
                if log is not None:
                    log.seek(0)
                    say(step.name)
                    sys.stdout.buffer.write(log.read())
                say(f"{step.name}: exit code {code} after {seconds:.0f} s")
        if failed := [code for code, _ in ended if code]:
            return failed[0]
    return 0


def _ended(folder: Path, steps: Sequence[Step], logs: Sequence[IO[bytes] | None]) -> list[tuple[int, float]]:
    """Run steps beside each other; the exit code and the seconds of each."""
    begun = time.monotonic()
    running: list[subprocess.Popen[bytes]] = []
    ended: dict[int, float] = {}
    try:
        for step, log in zip(steps, logs, strict=True):
            # Each in a process of its own, which takes with it what it started when this one is killed.
            argv = [
                "setpriv",
                "--pdeathsig",
                "KILL",
                *system.command_line(folder, step.command, step.view, step.variables),
            ]
            running.append(subprocess.Popen(argv, stdout=log, stderr=log))
        while len(ended) < len(running):
            for number, process in enumerate(running):
                if number not in ended and process.poll() is not None:
                    ended[number] = time.monotonic() - begun
            time.sleep(0.2)
    finally:
        for process in running:
            process.terminate()
            process.wait()
    return [(process.returncode, ended[number]) for number, process in enumerate(running)]


def _large() -> str:
    """Where TMPDIR says, else on a disk: /tmp may be in memory."""
    return os.environ.get("TMPDIR", "/var/tmp")  # noqa: S108 - a folder of our own is made in it


def _warn_of_changes() -> None:
    argv = ["git", "status", "--porcelain"]
    changed = subprocess.run(argv, cwd=system.ROOT, check=False, capture_output=True, text=True).stdout
    if changed:
        say(f"{len(changed.splitlines())} files differ from what is committed; what is committed is tried")


def say(line: str) -> None:
    """Which step's output follows."""
    print(f"=== {line}", flush=True)
