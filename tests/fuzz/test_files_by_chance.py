"""Settings, policies, configurations and scripts that others wrote: no crash, no late answer, no memory without end.

A short form reads small texts, the same ones each time, and counts steps. With SOAK set, each of the four readers gets
texts of up to its largest size in a process of its own for SOAK_SECONDS (1200 are the 20 minutes that were promised);
there an answer may take 2 s of the processor and the process 200 MB, and shfmt 600 MB while it runs.
"""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.fuzz.reading_child import READERS, outcome
from tests.fuzz.texts_by_chance import made
from tests.unit.counting import counted

SOAK = bool(os.environ.get("SOAK"))
SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
ROOT = Path(__file__).parents[2]
NUMBER, SMALL, STEPS = 60, 20_000, 4_000_000
LATE, LARGE, PARSER, HANGING = 2.0, 200 * 2**20, 600 * 2**20, 60.0

KINDS = pytest.mark.parametrize("kind", READERS)


@KINDS
def test_small_texts_by_chance_are_read_or_refused_in_a_bounded_number_of_steps(kind, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("SLURM_AGENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    project.mkdir()
    for number in range(NUMBER):
        data = made(kind, number, largest=SMALL)
        told, steps = counted(lambda data=data: outcome(kind, project, data))
        assert told in {"read", "refused"}, number
        assert steps < STEPS, (number, steps)


@pytest.mark.skipif(not SOAK, reason="the short form is above; SOAK=1 SOAK_SECONDS=1200 runs this one")
@KINDS
def test_texts_of_every_size_are_answered_in_time_and_memory(kind):
    argv = [sys.executable, "-m", "tests.fuzz.reading_child", kind]
    told, worst, most = Counter[str](), (0.0, 0), 0
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as child:
        number, end = random.getrandbits(40), time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                number += 1
                answer = asked(child, made(kind, number))
                told[answer["told"]] += 1
                worst, most = max(worst, (answer["seconds"], number)), answer["bytes"]
                assert answer["told"] in {"read", "refused"}, (kind, number, answer)
                assert answer["seconds"] <= LATE, (kind, number, answer)
                assert most <= LARGE, (kind, number, answer)
                assert answer["parser_bytes"] <= PARSER, (kind, number, answer)
        finally:
            child.kill()
    print(f"\n{kind}: {dict(told)}, slowest {worst[0]:.2f} s (number {worst[1]}), at most {most / 2**20:.0f} MB")  # noqa: T201
    assert sum(told.values()) > 0


def asked(child: subprocess.Popen[bytes], data: bytes) -> dict[str, float | str]:
    """What the process answers; it may hang, and then is told of here."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"%d\n" % len(data) + data)
    child.stdin.flush()
    ready, _, _ = select.select([child.stdout], [], [], HANGING)
    assert ready, f"no answer within {HANGING:.0f} s"
    return json.loads(child.stdout.readline())  # type: ignore[no-any-return]
