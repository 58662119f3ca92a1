"""Failures that are real, on the real cluster, and what analyze_log says of them over MCP."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest
from tests.system.faces import Place, call
from tests.system.failures import FAILURES, PROGRAMS, SMALL, Failure, has_state

pytestmark = pytest.mark.proves("real-failures-are-diagnosed")

SURE = 0.5
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED")


def furnish(place: Place, after: ExitStack) -> None:
    """What the jobs find in the project: programs, a binary without its library, a folder without room."""
    for folder in ("programs", "logs/slurm", SMALL):
        (place.project / folder).mkdir(parents=True, exist_ok=True)
    for name, text in PROGRAMS.items():
        (place.project / f"programs/{name}.py").write_text(dedent(text).lstrip())
    (place.project / "notes.txt").write_text("b\na\n")
    binary = place.project / "solver"
    binary.write_bytes(Path("/usr/bin/env").read_bytes().replace(b"libc.so.6\0", b"libm.so.9\0"))
    place.own()
    binary.chmod(0o755)
    fill(place.project / SMALL, after)
    place.own()


def fill(folder: Path, after: ExitStack) -> None:
    """A file system of 256 KB; who may not mount one takes the device that is always full."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)]
    if os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        after.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)
    else:
        (folder / "checkpoint.bin").symlink_to("/dev/full")


def submit(place: Place, failure: Failure, ids: dict[str, str]) -> str:
    script = place.project / f"{failure.name}.sh"
    script.write_text(f"#!/bin/bash\n{failure.body}\n")
    script.chmod(0o644)
    options = ["--parsable", "-pcpu", "--mem=200", "--time=5", f"--job-name={failure.name}"]
    options += ["--output=logs/slurm/%x-%j.out", "--error=logs/slurm/%x-%j.err", *failure.options]
    if failure.after:
        options.append(f"--dependency=afterok:{ids[failure.after]}")
    return place.slurm("sbatch", *options, str(script))


@pytest.fixture(scope="module")
def told(place: Place) -> Iterator[dict[str, dict[str, Any]]]:
    """What is said of each job: all are there at once, and the slowest is asked for last."""
    ids: dict[str, str] = {}
    with ExitStack() as after:
        furnish(place, after)
        for failure in FAILURES:
            ids[failure.name] = submit(place, failure, ids)
            if failure.then:
                failure.then(place, ids[failure.name], after)
        slow = {FAILURES[0].name: ids[FAILURES[0].name]}
        replies = asked(place, {name: ids[name] for name in ids if name not in slow}) | asked(place, slow)
        yield replies
        place.slurm("scancel", f"--user={place.cluster.user}")


def asked(place: Place, ids: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Ask when each is as it will stay."""
    settle(place, {ids[failure.name] for failure in FAILURES if failure.ends and failure.name in ids})
    for failure in FAILURES:
        if not failure.ends and failure.name in ids:
            has_state(place, ids[failure.name], "PENDING")

    async def ask() -> dict[str, dict[str, Any]]:
        async with place.client() as client:
            return {name: await call(client, "analyze_log", job_id=job_id) for name, job_id in ids.items()}

    return anyio.run(ask)


def settle(place: Place, waiting: set[str]) -> None:
    for _ in range(240):
        rows = [row.split() for row in place.slurm("squeue", "-h", "-t", "all", "-o", "%i %T").splitlines()]
        if not waiting & {job_id for job_id, state in rows if state not in ENDED}:
            break
        time.sleep(0.5)
    else:
        raise AssertionError("the jobs did not end")
    time.sleep(2)  # accounting follows within a second


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_a_job_that_truly_failed_is_diagnosed_right(told, failure):
    diagnosis = told[failure.name]["diagnosis"]
    assert diagnosis["category"] == failure.category, diagnosis
    assert (diagnosis["confidence"] > SURE) == (failure.category != "unknown"), diagnosis
    assert failure.category != "none" or diagnosis["escalation"] == "none", diagnosis
    assert diagnosis["retry"] is False
    assert diagnosis["evidence"], "a diagnosis without evidence"
    assert any(failure.shows in line["text"] for line in diagnosis["evidence"]), diagnosis["evidence"]


def test_at_least_eighteen_categories_truly_failed():
    assert len({failure.category for failure in FAILURES} - {"none", "unknown"}) >= 18


def test_the_exception_of_one_rank_is_found_where_the_user_wrote_it(told):
    """Not the ranks that Slurm ended because of it."""
    diagnosis = told["one-rank"]["diagnosis"]
    assert "programs/ranks.py" in diagnosis["explanation"], diagnosis
    assert "right" in diagnosis["explanation"], diagnosis
