"""Text made to keep us busy: the longest that a script, a pattern, a log or a line takes.

That the work is bounded is held by the unit tests, which count it; here is what it comes to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from benchmarks.check_script import check
from benchmarks.table import Row
from tests.unit.diagnosis.hostile import ANCHORED, LOG, MODULES, UNITS, hostile_log, lines, others, patterns
from tests.unit.diagnosis.records import job, log
from tests.unit.slow import SLOW

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.signatures import signatures
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.text.sanitize import ROWS, mask

TRIES = 3
FAULTY = b"#!/bin/bash\n" + b"export CUDA_VISIBLE_DEVICES=0\nsbatch 'a\nb'\n" * 2000
REPEATED = "MemoryError\n" * 20_000
MASKED = ("a", "-eyJ", "://", "-----BEGIN PRIVATE KEY-----", "A: b\n", "token=", "SG.aaaaaaaaaaaaaaaaaaaa.", "curl -u ")


def taken(work: Callable[[], object]) -> float:
    """Processor seconds: the least of a few tries."""
    found = []
    for _ in range(TRIES):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def slowest_pattern() -> tuple[float, str]:
    """Processor seconds of the slowest search in the line that was made for it, and the pattern."""
    searches: list[tuple[str, Callable[[str], object], Iterable[str]]] = [
        (pattern.pattern, pattern.search, lines(pattern, signature.samples))
        for signature in signatures()
        for pattern in patterns(signature)
    ]
    for module in MODULES:
        for name, pattern in others(module).items():
            searches.append((name, pattern.match if name in ANCHORED else pattern.search, lines(pattern)))
    return max((_slowest(search, texts), name) for name, search, texts in searches)


def _slowest(search: Callable[[str], object], texts: Iterable[str]) -> float:
    most = 0.0
    for text in texts:
        start = time.thread_time()
        search(text)
        if time.thread_time() - start > most:  # others use the machine too: only what is slow again counts
            most = max(most, taken(lambda text=text: search(text)))  # type: ignore[misc]
    return most


def rows() -> list[Row]:
    loaded = load(shipped())
    answers = {name: min(check(data, loaded)[0] for _ in range(TRIES)) for name, data in SLOW.items()}
    script = max(answers, key=lambda name: answers[name])
    pattern, where = slowest_pattern()
    logs = max(taken(lambda unit=unit: diagnose(job(exit_code=1), (), [log(*hostile_log(unit))])) for unit in UNITS)  # type: ignore[misc]
    words = " ".join(word for row in ROWS for word in row.words)
    masking = max(taken(lambda unit=unit: mask(words + unit * (2**20 // len(unit)))) for unit in MASKED)  # type: ignore[misc]
    return [
        Row(f"slowest of {len(SLOW)} scripts made to be slow ({script}), clock", answers[script], "s", limit=2.5),
        Row("an answer about 6,000 faulty lines, clock", check(FAULTY, loaded)[0], "s", limit=4.0),
        Row(f"slowest pattern in a line made for it ({where[:30]}), processor", pattern * 1e3, "ms", limit=50),
        Row(f"diagnosis of {LOG // 1024} KB of lines made to be slow, processor", logs, "s", limit=2.0),
        Row("diagnosis of 20,000 times one error, processor", taken(_repeated), "s", limit=2.0),
        Row("masking a hostile line of 1 MB, processor", masking, "s", limit=2.0),
    ]


def _repeated() -> None:
    diagnose(None, (), [log(REPEATED)])
