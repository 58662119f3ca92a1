"""What continuous integration runs: the README's commands in a bare system, then on each kind of machine.

What is quick and likely to fail comes first; the tests come last, so that their closing lines are the last ones.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import cgroups
import newcomer
from newcomer import Step

import system
from system import View

DEMO = ("make", "demo")
OUTSIDE = "192.0.2.77"  # an address of documentation (RFC 5737): no machine has it
TAKEN_APART = {"SLURM_AGENT_TEST_TAKE_APART": "yes"}  # tests/bare may remove packages: what they change is thrown away


def steps(folder: Path) -> Iterator[Step]:
    """All of them, in their order; each is asked for when the one before has ended."""
    yield Step("the demo as root, on a machine that has never seen it", View(layer="root"), DEMO)
    user = View(user=system.NEWCOMER, over="root", layer="user")
    yield Step("the demo as an ordinary user, where the packages are there", user, DEMO)
    for layout in cgroups.LAYOUTS:
        if reason := cgroups.why_not(layout):
            say(f"left out: cgroups {layout}: {reason}")
        else:
            yield Step(f"the demo with cgroups {layout}", View(cgroup=layout, over="root"), DEMO)
    yield Step("the demo where the machine's name stands for another address", View(address=OUTSIDE, over="root"), DEMO)
    elsewhere = View(user=system.NEWCOMER, address=OUTSIDE, over="user")
    yield Step("the same as an ordinary user", elsewhere, DEMO)
    yield Step("the files of a release", View(over="root", layer="release"), ("make", "-s", "dist"))
    yield from newcomer.steps(folder, folder / "layers/release/changes/src/dist")
    apart = (".venv/bin/python", "-m", "pytest", "-p", "no:cacheprovider", "tests/bare")
    yield Step("each package taken away", View(over="root"), apart, TAKEN_APART)
    # Not 127.0.1.1 as above: docs/concepts/devcluster.md says what a running slurmctld does not hear of there.
    tests = View(over="root", layer="tests", address="127.0.0.1")
    yield Step("lint, audit and all tests", tests, ("make", "lint", "audit", "test"))


def run(directly: list[str]) -> int:
    """Make the system, run every step until one fails, remove the system. Where there is none: `directly`."""
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
            return ran(folder, steps(folder))
    return subprocess.run(directly, cwd=system.ROOT, check=False).returncode


def ran(folder: Path, wanted: Iterable[Step]) -> int:
    """Run steps until one fails; its exit code."""
    for step in wanted:
        begun = time.monotonic()
        say(step.name)
        code = system.enter(folder, list(step.command), step.view, step.variables)
        say(f"{step.name}: exit code {code} after {time.monotonic() - begun:.0f} s")
        if code != 0:
            return code
    return 0


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
