"""Large logs are read once, in little memory: counted in bytes, by processes of their own. `make bench` has the times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import logs
from benchmarks.logs import TRACE
from benchmarks.timing import environment
from tests.effort import some
from tests.unit.services.test_log_files import MIB, chatter, hole

ITSELF = 16 * MIB  # what a process reads to start, and its children
SIZE = 120 * 10**6  # more than the memory that it may take, and too much to be read twice
ENDS = 2 * logs.END


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "a.out"
    yield made
    made.unlink()  # pytest keeps folders of earlier runs


@pytest.mark.proves("large-logs-are-quick")
def test_a_log_of_5_gb_is_diagnosed_from_a_hundredth_of_it_in_little_memory(path: Path):
    path.write_bytes(chatter(9 * MIB))
    hole(path, 5 * 10**9 - 8 * 10**6, TRACE + chatter(8 * 10**6 - len(TRACE) - 1))

    taken = logs.diagnose(path, environment(path.parent))

    assert taken.memory < logs.MEMORY
    assert taken.read < ITSELF + 3 * ENDS


@pytest.mark.proves("large-logs-are-quick")
def test_a_search_of_everything_reads_a_log_once(path: Path):
    logs.write(path, SIZE, SIZE // 2)

    taken = logs.diagnose(path, environment(path.parent), "--mode=full")

    assert taken.memory < logs.MEMORY
    assert taken.read < SIZE + ITSELF + ENDS


@pytest.mark.proves("large-logs-are-quick")
@pytest.mark.parametrize("kind", some(list(logs.JUDGED)))
def test_nor_does_it_read_more_or_take_more_memory_where_half_of_the_log_is_one_flood(path: Path, kind: str):
    logs.write_flooded(path, SIZE, kind)

    taken = logs.diagnose(path, environment(path.parent), "--mode=full", category=logs.JUDGED[kind])

    assert taken.memory < logs.MEMORY
    assert taken.read < SIZE + ITSELF + ENDS
