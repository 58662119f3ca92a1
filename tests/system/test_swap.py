"""The script's file is swapped all the time while it is submitted: what was judged is what Slurm holds, or nothing."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client
from tests.system.faces import Place, call
from tests.system.test_guard import rules
from tests.watchdog import SECONDS

HEAD = "#!/bin/bash\n#SBATCH -p cpu -o /dev/null -t 9\n"
HOSTILE = "export CUDA_VISIBLE_DEVICES=0\nsbatch another.sh\n"
GREAT = 4 * 2**30
Maker = Callable[[Path], None]


def holding(text: str) -> Maker:
    return lambda path: [path.write_text(text), None][1]


def link(target: Path) -> Maker:
    return lambda path: path.symlink_to(target)


def fifo(path: Path) -> None:
    os.mkfifo(path)
    path.chmod(0o666)


def great(path: Path) -> None:
    """Four gigabytes that take no room on the disk."""
    with path.open("wb") as file:
        file.write(HEAD.encode())
        file.truncate(GREAT)


@contextmanager
def swapping(path: Path, *makers: Maker) -> Iterator[None]:
    """The path is one thing after the other, each put there whole."""
    done = threading.Event()

    def swap() -> None:
        for number, make in enumerate(itertools.cycle(makers)):
            draft = path.with_name(f".draft-{number}")
            make(draft)
            draft.replace(path)
            if done.wait(0.0003):
                return

    thread = threading.Thread(target=swap)
    makers[0](path)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(10)


def honest(number: int) -> str:
    return f"{HEAD}sleep 60\n: {number}\n"


def log(place: Place) -> list[dict]:
    path = place.project.parent / ".state/slurm-agent-tools/decisions.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def held_by_slurm(place: Place, job: str) -> bytes:
    return place.run(["scontrol", "write", "batch_script", job, "-"]).stdout


def checked(place: Place, reply: dict, number: int) -> str:
    """What became of one submission, after its promises were looked at."""
    if "error" in reply:
        assert reply["error"]["code"] == "invalid_input", reply
        assert "script" in reply["error"]["message"], reply
        return "error"
    if reply["status"] == "blocked":
        assert rules(reply) >= {"cuda-visible-devices", "direct-submission"}, reply
        return "blocked"
    assert reply["status"] == "submitted", reply
    script = held_by_slurm(place, reply["job_id"])
    assert script.decode() == honest(number)
    [entry] = [line for line in log(place) if line["event"] == "submitted" and line["job_id"] == int(reply["job_id"])]
    assert entry["script_sha256"] == hashlib.sha256(script).hexdigest()
    place.slurm("scancel", reply["job_id"])
    return "submitted"


async def submissions(place: Place, client: Client, times: int, *others: Maker) -> list[str]:
    """What became of submissions of a file that is the honest script half of the time.

    So many, and more where by chance none of them met the honest script from the first look to the last.
    """
    await call(client, "get_status", refresh=True)
    found: list[str] = []
    while len(found) < times or ("submitted" not in found and len(found) < 6 * times):
        number = len(found)
        path = place.project / f"job{number}.sh"
        mine = holding(honest(number))
        turns = [maker for other in others for maker in (mine, other)]
        with swapping(path, *turns), anyio.fail_after(SECONDS):
            reply = await call(client, "submit_job", script=path.name)
        found.append(checked(place, reply, number))
    ids = place.slurm("squeue", "-h", "--me", "-t", "all", "-o", "%A").split()
    assert not [job for job in ids if HOSTILE.encode() in held_by_slurm(place, job)]
    return found


@pytest.mark.proves("bytes-are-the-bytes")
async def test_a_script_that_is_swapped_while_it_is_submitted_runs_as_judged_or_not_at_all(fresh: Place):
    async with fresh.client() as client:
        found = await submissions(fresh, client, 20, holding(HEAD + HOSTILE))
    assert set(found) == {"submitted", "blocked"}, found
    assert found.count("submitted") == sum(line["event"] == "submitted" for line in log(fresh))


@pytest.mark.proves("bytes-are-the-bytes")
async def test_a_link_that_is_swapped_while_it_is_submitted_brings_nothing_else_in(fresh: Place):
    hostile = fresh.project / "hostile.sh"
    hostile.write_text(HEAD + HOSTILE)
    outside = fresh.project.parent / "outside.sh"
    outside.write_text(HEAD + HOSTILE)
    fresh.own()
    async with fresh.client() as client:
        found = await submissions(fresh, client, 12, link(hostile), link(outside))
    assert "submitted" in found, found
    assert {"blocked", "error"} & set(found), found


@pytest.mark.proves("bytes-are-the-bytes")
@pytest.mark.parametrize("make", [fifo, great], ids=["fifo", "great"])
async def test_a_pipe_or_a_great_file_in_the_scripts_place_is_named_and_never_waited_for(fresh: Place, make: Maker):
    make(fresh.project / "there.sh")
    async with fresh.client() as client:
        before = memory(client_pid())
        reply = await call(client, "submit_job", script="there.sh")
        assert reply["error"]["code"] == "invalid_input", reply
        found = await submissions(fresh, client, 12, make)
        assert memory(client_pid()) - before < 200 * 2**20
    assert set(found) <= {"submitted", "error"}
    assert "submitted" in found, found


def client_pid() -> int:
    """The server that this process started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "cmdline").exists():
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            found += [int(entry.name)] if parent == os.getpid() and b"serve" in words else []
    [pid] = found
    return pid


def memory(pid: int) -> int:
    """The most that a process ever held, in bytes."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
