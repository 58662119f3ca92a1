"""analyze_log on large logs: the two ends of 5 GB, and `mode full` of 1 GB beside grep with the same signatures.

The second half of another 1 GB is one flood of lines that match.

Each run of ours is a process of its own, as `python -m tools.agent_tools.analyze_log` starts one.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.table import Row
from benchmarks.timing import Spent, environment, in_turn, python, whole

from slurm_agent_tools.diagnosis.signatures import ere

SECONDS, MEMORY, LIMIT = 1.0, 100 * 10**6, 3.0
END = 8 * 10**6  # bytes from an end within which evidence is found at once
TRACE = b"""Traceback (most recent call last):
  File "/home/alice/train.py", line 88, in <module>
    main()
  File "/home/alice/train.py", line 20, in main
    y = model(x)
RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB
"""
_MIXED = (
    "Connection refused",
    "Killed",
    "NCCL WARN no such device",
    "No space left on device",
    "loss nan",
    "Segmentation fault",
    "Permission denied",
    "MPI_ABORT was invoked",
)
FLOODS: Mapping[str, Callable[[int], str]] = {  # text of the nth time
    "one line": lambda _: "RuntimeError: CUDA error: an illegal memory access was encountered\n",
    "a line with numbers": lambda n: (
        f"[rank{n % 8}]: RuntimeError: CUDA error: device-side assert at batch {n * 7919}\n"
    ),
    "warnings": lambda n: f"2026-03-01 12:00:00 WARNING step {n}: loss is NaN, skipping\n",
    "tracebacks": lambda n: TRACE.decode().replace("20.00", str(n)),
    "short lines": lambda _: "Killed\n",
    "several lines in turn": lambda n: f"{_MIXED[n % len(_MIXED)]} {n}\n",
    "long lines": lambda _: "tensor " + "0.123 nan error " * 500 + "\n",
    "lines with NULs": lambda n: f"\0error: CUDA error {n}\n",
    "bars drawn over": lambda n: f"\r{n % 100:3d}%|{'#' * (n % 20)}| {n}/1000 [00:01<00:10, loss=nan error]",
}
JUDGED = {  # floods that are measured, by what the log is diagnosed as
    "a line with numbers": "cuda-error",
    "short lines": "host-out-of-memory",
    "several lines in turn": "disk-full",
}
_GREPPED = "`grep -c -E`, the same signatures"
# grep that writes to /dev/null stops at the first match, even with -c.
_COUNT = 'grep -c -E -e "$1" -- "$2" | cat'
_TOLD = """
import sys
from pathlib import Path
from slurm_agent_tools.cli.main import tool_main
code = tool_main("analyze_log", sys.argv[1:])
told = [Path("/proc/self/" + name).read_text() for name in ("status", "io")]
sys.stderr.write(" ".join(text.partition(word)[2].split()[0] for text, word in zip(told, ("VmHWM:", "rchar:"))))
sys.exit(code)
"""


def chatter(size: int) -> bytes:
    """Lines of a program that is well, at most so many bytes."""
    lines = _lines()
    return (lines * (size // len(lines) + 1))[:size].rpartition(b"\n")[0] + b"\n"


@cache
def _lines() -> bytes:
    return "".join(
        f"2026-03-01 12:{n // 60 % 60:02d}:{n % 60:02d} INFO step {n} loss={1 / (n + 1):.4f} lr=1e-4 report\n"
        for n in range(50_000)
    ).encode()


def write(path: Path, size: int, place: int) -> None:
    """A log of about so many bytes with a traceback at a place; real text all along."""
    block = chatter(16 * 2**20)
    with path.open("wb") as file:
        while file.tell() < place - len(block):
            file.write(block)
        file.write(chatter(max(0, place - file.tell())) + TRACE)
        while file.tell() < size - len(block):
            file.write(block)
        file.write(chatter(max(0, size - file.tell())))


def write_flooded(path: Path, size: int, kind: str) -> None:
    """The same with the traceback in the middle of the first half; the second half is a flood of that kind."""
    write(path, size // 2, size // 4)
    count = 8 * 2**20 // len(FLOODS[kind](0))
    flood = "".join(FLOODS[kind](n) for n in range(count)).encode()
    with path.open("ab") as file:
        while file.tell() < size:
            file.write(flood)


class Taken(NamedTuple):
    """Bytes: the most memory that a process had, and what it read itself, its own modules included."""

    memory: int
    read: int


def diagnose(path: Path, env: Mapping[str, str], *words: str, category: str = "gpu-out-of-memory") -> Taken:
    """Run analyze_log on a log that is to be diagnosed so; what its process took."""
    argv = python("-c", _TOLD, "--path", path.name, *words)
    done = subprocess.run(argv, env=dict(env), cwd=path.parent, capture_output=True, check=True)
    found = json.loads(done.stdout)["diagnosis"]["category"]
    if found != category:
        raise RuntimeError(f"{path.name} was diagnosed as {found}")
    memory, read = (int(word) for word in done.stderr.split()[-2:])
    return Taken(memory * 1024, read)


def tool(path: Path, env: Mapping[str, str], *words: str) -> Spent:
    """analyze_log on a log, in a process of its own."""
    return whole(python("-m", "tools.agent_tools.analyze_log", "--path", path.name, *words), env, path.parent)


def beside_grep(path: Path, env: Mapping[str, str], runs: int) -> tuple[Spent, Spent]:
    """`mode full` and `grep -c -E` with the same signatures joined, in turn."""
    argv = ["sh", "-c", _COUNT, "sh", "|".join(ere()), path.name]
    grep = partial(whole, argv, env, path.parent)
    ours, other = in_turn([partial(tool, path, env, "--mode=full"), grep], runs)
    return ours, other


def rows() -> list[Row]:
    """Seconds and memory of 5 GB with the evidence near either end, and 1 GB beside grep."""
    found = []
    with tempfile.TemporaryDirectory(prefix="sat-bench-") as name:
        folder, path = Path(name), Path(name) / "job.out"
        env = environment(folder)
        for what, place in (("first", END), ("last", 5 * 10**9 - END)):
            write(path, 5 * 10**9, place)
            memory = diagnose(path, env).memory
            (spent,) = in_turn([partial(tool, path, env)], runs=5)
            found += [
                Row(f"log of 5 GB, evidence in the {what} 8 MB, clock", spent.wall, "s", limit=SECONDS),
                Row(f"log of 5 GB, evidence in the {what} 8 MB, memory", memory / 1e6, "MB", limit=MEMORY / 1e6),
            ]
        write(path, 10**9, 5 * 10**8)
        diagnose(path, env, "--mode=full")
        ours, grep = beside_grep(path, env, runs=3)
        found.append(_beside("mode full of 1 GB", ours, grep))
        for kind, category in JUDGED.items():
            found += _flooded(path, env, kind, category)
    return found


def _flooded(path: Path, env: Mapping[str, str], kind: str, category: str) -> list[Row]:
    """Judged in processor time: several processes wait for each other."""
    write_flooded(path, 10**9, kind)
    what = f"mode full of 1 GB, half of it {kind}"
    memory = diagnose(path, env, "--mode=full", category=category).memory
    ours, grep = beside_grep(path, env, runs=3)
    return [
        Row(f"{what}, processor", ours.cpu, "s", _GREPPED, grep.cpu, LIMIT),
        Row(f"{what}, memory", memory / 1e6, "MB", limit=MEMORY / 1e6),
    ]


def _beside(what: str, ours: Spent, grep: Spent) -> Row:
    return Row(f"{what}, clock", ours.wall, "s", _GREPPED, grep.wall, LIMIT)
