"""What continuous integration runs: the README's commands in a bare system, then on each kind of machine.

What waits more than it computes runs beside other steps. What is quick and likely to fail comes first; the tests come
last, so that their closing lines are the last ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import cgroups
import newcomer
from newcomer import Step

import system
from system import View

DEMO = ("make", "demo")
OUTSIDE = "192.0.2.77"  # an address of documentation (RFC 5737): no machine has it
_PRINTING = threading.RLock()  # what one step printed stays together
TAKEN_APART = {"SLURM_AGENT_TEST_TAKE_APART": "yes"}  # tests/bare may remove packages: what they change is thrown away


def stages(folder: Path) -> Iterator[Sequence[Iterable[Step]]]:
    """All steps. A stage begins when the one before has ended; its rows run beside each other, each step by step."""
    yield ((Step("the demo as root, on a machine that has never seen it", View(layer="root"), DEMO),),)
    yield ((Step("the files of a release", View(over="root", layer="release"), ("make", "-s", "dist")),),)
    user = View(user=system.NEWCOMER, over="root", layer="user")
    elsewhere = View(user=system.NEWCOMER, address=OUTSIDE, over="user")
    apart = (".venv/bin/python", "-m", "pytest", "-p", "no:cacheprovider", "tests/bare")
    yield (
        (
            Step("lint and audit", View(over="root"), ("make", "lint", "audit")),
            Step("each package taken away", View(over="root"), apart, TAKEN_APART),
        ),
        (
            Step("the demo as an ordinary user, where the packages are there", user, DEMO),
            Step("the same where the machine's name is elsewhere", elsewhere, DEMO),
        ),
        newcomer.steps(folder, folder / "layers/release/changes/src/dist"),
        _layouts("v1", "v2", "none"),
        (
            *_layouts("hybrid", "tmpfs"),
            Step("the demo where the machine's name is elsewhere", View(address=OUTSIDE, over="root"), DEMO),
        ),
    )
    # Not 127.0.1.1 as above: docs/concepts/devcluster.md says what a running slurmctld does not hear of there.
    yield ((Step("all tests", View(over="root", layer="tests", address="127.0.0.1"), ("make", "test")),),)


def _layouts(*names: str) -> Iterator[Step]:
    """The demo under each of these layouts of cgroups that this machine can show."""
    for name in names:
        if reason := cgroups.why_not(name):
            say(f"left out: cgroups {name}: {reason}")
        else:
            yield Step(f"the demo with cgroups {name}", View(cgroup=name, over="root"), DEMO)


def run(directly: list[str]) -> int:
    """Make the system, run the stages until a step fails, remove the system. Where there is none: `directly`."""
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
            return ran(folder, stages(folder))
    return subprocess.run(directly, cwd=system.ROOT, check=False).returncode


def ran(folder: Path, wanted: Iterable[Sequence[Iterable[Step]]]) -> int:
    """Run stages until a step fails; its exit code. A step that runs beside others is printed when it has ended."""
    for rows in wanted:
        failed: list[int] = []
        with ThreadPoolExecutor(len(rows)) as pool:
            for ended in [pool.submit(_run_row, folder, row, failed, alone=len(rows) == 1) for row in rows]:
                ended.result()
        if failed:
            return failed[0]
    return 0


def _run_row(folder: Path, row: Iterable[Step], failed: list[int], *, alone: bool) -> None:
    """Run steps one after the other, none more once one has failed, of this row or of another one."""
    for step in row:
        if failed:
            return
        say(step.name if alone else f"begun: {step.name}")
        begun = time.monotonic()
        with tempfile.TemporaryFile() as log:
            code = _ended(folder, step, None if alone else log)
            log.seek(0)
            with _PRINTING:
                if not alone:
                    say(step.name)
                    sys.stdout.buffer.write(log.read())
                say(f"{step.name}: exit code {code} after {time.monotonic() - begun:.0f} s")
        if code:
            failed.append(code)


def _ended(folder: Path, step: Step, log: IO[bytes] | None) -> int:
    """Run a step in a process that takes with it what it started when this one is killed; its exit code."""
    inside = system.command_line(folder, step.command, step.view, step.variables)
    argv = ["setpriv", "--pdeathsig", "KILL", *inside]
    return subprocess.run(argv, check=False, stdout=log, stderr=log).returncode


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
    with _PRINTING:
        print(f"=== {line}", flush=True)
