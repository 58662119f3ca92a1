"""A dashboard that runs, and what its pages cost beside Slurm's own commands."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from tests.system.faces import Place
from tests.watchdog import SECONDS

OLDER = 3.0
"""Seconds after which no page may show what an earlier look has seen."""


@contextmanager
def dashboard(place: Place) -> Iterator[str]:
    """The link of a dashboard that runs, as the user's terminal shows it."""
    argv = place.as_user([sys.executable, "-m", "slurm_agent_tools", "dashboard"])
    process = subprocess.Popen(argv, env=place.environment(), cwd=place.project, stderr=subprocess.PIPE)
    try:
        yield _link(process)
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()


def _link(process: subprocess.Popen[bytes]) -> str:
    said, end = b"", time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        if select.select([process.stderr], [], [], 0.2)[0]:
            said += os.read(process.stderr.fileno(), 65536)
        if found := re.search(rb"http://\S+/open/\S+\n", said):
            return found[0].decode().strip()
    raise AssertionError(said)


@dataclass
class Pages:
    """Seconds of each page and of bare squeue and sinfo before it, in turn; bytes; megabytes of the process at most."""

    ours: dict[str, list[float]] = field(default_factory=dict)
    bare: list[float] = field(default_factory=list)
    size: int = 0
    memory: float = 0.0

    def ratio(self, page: str) -> float:
        """The least of a page over the least of bare."""
        return min(self.ours[page]) / min(self.bare)


def measured(place: Place, pages: Sequence[str], rounds: int) -> Pages:
    """How long each page takes when nothing of it is kept. The first round only warms up."""
    found = Pages({page: [] for page in pages})
    with dashboard(place) as link, httpx2.Client(base_url=link.partition("/open")[0], timeout=120) as client:
        root = re.search(r'href="(/v/[0-9a-f]+/)now"', client.get(link).text)[1]
        for number in range(rounds + 1):
            for page in pages:
                time.sleep(OLDER)
                begun = time.perf_counter()
                for command in ("squeue", "sinfo"):
                    assert place.run([command]).returncode == 0
                middle = time.perf_counter()
                answer = client.get(root + page)
                took = time.perf_counter() - middle
                assert answer.status_code == 200, answer.text
                found.size = max(found.size, len(answer.content))
                if number:
                    found.ours[page].append(took)
                    found.bare.append(middle - begun)
        found.memory = _peak()
    return found


def _peak() -> float:
    """Megabytes that the dashboards of this process held at most, what they share with others included."""
    return max(memory for words, memory in children() if b"dashboard" in words)


def children() -> Iterator[tuple[list[bytes], float]]:
    """The command line of each process that this one started, and the megabytes that it held at most."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words, status = (entry / "cmdline").read_bytes().split(b"\0"), (entry / "status").read_text()
            except OSError:
                continue
            told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            if int(told["PPid"]) == os.getpid() and "VmHWM" in told:
                yield words, int(told["VmHWM"].split()[0]) / 1000
