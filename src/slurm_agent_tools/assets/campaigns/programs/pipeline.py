"""Three stages of a small pipeline without any dependency: fetch, preprocess in chunks on several CPUs, train.

Each writes how many rows it did in a second as JSON to --out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path


def chunk(begin: int, count: int) -> float:
    """Work on so many rows."""
    return sum(math.sqrt(row) * math.sin(row) for row in range(begin, begin + count))


def cpus() -> int:
    """The CPUs that Slurm gave."""
    return int(os.environ.get("SLURM_CPUS_PER_TASK", "1"))


def fetch(rows: int, _size: int) -> None:
    """Make the rows, one after the other."""
    chunk(0, rows // 4)


def preprocess(rows: int, size: int) -> None:
    """Work on all rows, so many in one piece; each piece that is handed over costs something."""
    begins = range(0, rows, size)
    with ProcessPoolExecutor(max_workers=cpus()) as workers:
        list(workers.map(chunk, begins, [min(size, rows - begin) for begin in begins]))


def train(rows: int, _size: int) -> None:
    """Go over the rows twice."""
    for _ in range(2):
        chunk(0, rows // 4)


STAGES = {"fetch": fetch, "preprocess": preprocess, "train": train}


def main() -> None:
    """Run one stage, and write how fast it was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=sorted(STAGES))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--chunk-size", type=int, default=10_000)
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    began = time.perf_counter()
    STAGES[given.stage](given.rows, given.chunk_size)
    seconds = time.perf_counter() - began
    told = {"rows_per_second": given.rows / seconds, "seconds": seconds}
    Path(given.out).write_text(json.dumps(told), encoding="utf-8")
    print(f"{given.stage}: {given.rows} rows in {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
