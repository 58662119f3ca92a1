"""Predictions on real workloads, in order of time: how often they are within twice, and how often intervals hold.

TRACES names the folder of the traces. They are not ours to ship: without it the rows are missing, and that is said.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from benchmarks.table import Row

from slurm_agent_tools.planning.calibration import ComparedEstimate, calibration
from slurm_agent_tools.planning.forecast import available, forecasts_in_order
from slurm_agent_tools.planning.predict_run import estimates_in_order
from slurm_agent_tools.planning.predict_wait import WaitQuestion, waits_in_order
from slurm_agent_tools.planning.workload import TracedJob, read_swf

KTH, ATLAS, GRAHAM = "KTH-SP2-1996.swf.gz", "LLNL-Atlas-2006.swf.gz", "graham-2021-slurm.csv.gz"

_PROMISED, _OFF = 80.0, 3.0
"""Percent of the intervals that shall hold, and how far from that they may be."""

_DAYS = 30
"""The last days of Graham, of which the waits are scored."""


def rows() -> list[Row]:
    """All rows whose traces are there."""
    folder = os.environ.get("TRACES")
    found: list[Row] = []
    for needed, make in _PARTS:
        if folder is None or not (Path(folder) / needed).is_file():
            print(f"prediction: {needed} is missing: TRACES names the folder of the traces", file=sys.stderr)
        else:
            found += make(Path(folder) / needed)
    return found


def _runs(name: str, jobs: Sequence[TracedJob], promised: float) -> Iterator[Row]:
    """The second half of the jobs, each asked about at its submission."""
    known = [job for job in jobs if job.run > 0 and job.limit is not None]
    begin = time.process_time()
    answers = list(estimates_in_order(known))
    spent = (time.process_time() - begin) / len(known)
    compared = [said.compared(job.run) for job, said in answers[len(answers) // 2 :]]
    yield from _shares(f"{name}, run time", compared, promised)
    yield Row("the same, one estimate, CPU", spent * 1e6, "us")


def _shares(what: str, compared: Sequence[ComparedEstimate], promised: float) -> Iterator[Row]:
    """Told as what is missed, because a limit is the most that a figure may be."""
    count = len(compared)
    judged = calibration(compared, last=count)
    yield Row(f"{what}: of {count}, not within twice [%]", 100 - judged.within_twice / count * 100, "", limit=promised)
    held = judged.held / count * 100  # an estimate without an interval counts as one that did not hold
    yield Row("the same, intervals that held [%]", held, "")
    yield Row("the same, off 80 [%]", abs(held - _PROMISED), "", limit=_OFF)


def _kth(path: Path) -> Iterator[Row]:
    return _runs("KTH", read_swf(path.read_bytes()).jobs, 33.0)


def _atlas(path: Path) -> Iterator[Row]:
    return _runs("Atlas", read_swf(path.read_bytes()).jobs, 40.0)


def _graham(path: Path) -> Iterator[Row]:
    """Accounts stand for users, whom the trace does not name."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file))
    yield from _runs("Graham", sorted(map(_job, listed), key=lambda job: (job.submit, job.number)), 49.0)
    yield from _waits(listed)


def _job(row: dict[str, str]) -> TracedJob:
    return TracedJob(
        int(row["job_unique_id"]), _seconds(row["submit_time"]), float(row["elapsed_time"] or 0), int(row["req_cpus"]),
        float(row["time_limit_sec"]), row["account_id"], wait=float(row["submit_wait_sec"]),
    )  # fmt: skip


def _waits(listed: Sequence[dict[str, str]]) -> Iterator[Row]:
    """What is left to wait of the jobs that are pending at noon, by the account's own jobs and waits that had ended."""
    looks: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for row in sorted(listed, key=lambda one: (one["poll_time"], one["submit_time"], int(one["job_unique_id"]))):
        looks[row["poll_time"]].append(row)
    asked = [question for at in sorted(looks) for question in _questions(looks[at])]
    since = _seconds(sorted(looks)[-_DAYS])
    compared = [said.compared(waited) for job, waited, said in waits_in_order(asked) if job.asked >= since]
    yield from _shares("Graham, wait", compared, 57.0)
    if available():
        forecasts = [said.compared(waited) for job, waited, said in forecasts_in_order(asked) if job.asked >= since]
        yield from _shares("Graham, wait, extra forecast", forecasts, 46.0)
    else:
        print("prediction: the extra forecast is not installed: pip install 'lightgbm>=4.6,<5'", file=sys.stderr)


def _questions(look: Sequence[dict[str, str]]) -> Iterator[tuple[WaitQuestion, float]]:
    """All jobs of one look at the queue, with how many of their own account stand before them."""
    ahead: defaultdict[object, int] = defaultdict(int)
    whole = Counter(row["account_id"] for row in look)
    bursts = Counter(map(_alike, look))
    for row in look:
        account, alike, at = row["account_id"], _alike(row), _seconds(row["poll_time"])
        question = WaitQuestion(
            at, account, row["partition"], int(row["req_cpus"]), float(row["time_limit_sec"]),
            waited=at - _seconds(row["submit_time"]), own_ahead=ahead[account], alike_ahead=ahead[alike],
            own_waiting=whole[account], alike_waiting=bursts[alike], memory=float(row["req_mem_total"] or 0),
            queue={name: float(row[name]) for name in row if _of_queue(name) and row[name]},
        )  # fmt: skip
        yield question, float(row["poll_wait_sec"])
        ahead[account] += 1
        ahead[alike] += 1


def _alike(row: dict[str, str]) -> tuple[str, ...]:
    """What a job asks for."""
    return tuple(row[name] for name in ("account_id", "partition", "req_cpus", "req_mem_total", "time_limit_sec"))


def _of_queue(name: str) -> bool:
    """Figures of the queue at the look; `priority` and `alloc_nodes` of the trace are known only later."""
    return name.startswith(("q_", "r_")) or name in {"poll_priority", "level_fs_poll", "req_gpus"}


def _seconds(text: str) -> float:
    """Since the trace's beginning of counting; its times have no zone."""
    return (datetime.fromisoformat(text) - datetime(2021, 1, 1)).total_seconds()  # noqa: DTZ001 - as the trace has them


_PARTS: tuple[tuple[str, Callable[[Path], Iterator[Row]]], ...] = ((KTH, _kth), (ATLAS, _atlas), (GRAHAM, _graham))
