"""A dashboard that runs, and what its pages cost beside Slurm's own commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import httpx2
from tests.system.faces import Place
from tests.watchdog import SECONDS

from slurm_agent_tools.server.web.dashboard_app import PAGES
from slurm_agent_tools.server.web.web_page import TICK

OLDER = TICK + 0.1
"""Seconds after which no page may show what an earlier look has seen."""

EVERY = PAGES["now"].every


@contextmanager
def dashboard(place: Place, said: Path | None = None, **settings: str) -> Iterator[str]:
    """The link of a dashboard that runs, as the user's terminal shows it. `said`: a file for all that it tells."""
    argv = place.as_user([sys.executable, "-m", "slurm_agent_tools", "dashboard"])
    more = {f"SLURM_AGENT_{name}": value for name, value in settings.items()}
    with open(said, "w+b") if said else tempfile.TemporaryFile() as errors:  # noqa: PTH123 - both alike
        process = subprocess.Popen(argv, env=place.environment() | more, cwd=place.project, stderr=errors)
        try:
            yield _link(process, errors)
        finally:
            process.terminate()
            process.wait(30)


def _link(process: subprocess.Popen[bytes], errors: IO[bytes]) -> str:
    said, end = b"", time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.1)
        said = os.pread(errors.fileno(), 2**20, 0)
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


def watched(place: Place, pages: int, seconds: float, said: Path) -> Counter[str]:
    """Slurm's commands by their program while so many pages of a dashboard are open, each as a browser asks again."""
    end = time.monotonic() + seconds
    told: Counter[int] = Counter()
    with (
        dashboard(place, said, LOG_LEVEL="debug", HTTP__PER_MINUTE="100000") as link,
        httpx2.Client(base_url=link.partition("/open")[0], timeout=120) as client,
    ):
        root = re.search(r'href="(/v/[0-9a-f]+/)now"', client.get(link).text)[1]

        def look(number: int) -> None:
            time.sleep(EVERY * number / pages)
            while time.monotonic() < end:
                told[client.get(f"{root}live/now").status_code] += 1
                time.sleep(EVERY)

        with ThreadPoolExecutor(pages) as pool:
            list(pool.map(look, range(pages)))
    assert told.keys() == {200}, told
    rows = [json.loads(line) for line in said.read_text().splitlines() if line.startswith("{")]
    return Counter(row["command"] for row in rows if row.get("event") == "slurm command")


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
