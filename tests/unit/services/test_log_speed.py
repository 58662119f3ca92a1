"""Large logs take little time and memory, measured in processes of their own and beside grep."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import logs
from benchmarks.logs import TRACE
from benchmarks.timing import Spent, environment
from tests.unit.services.contexts import Here, NothingReachesSlurm, OneDesk, toolbox
from tests.unit.services.test_log_files import MIB, chatter, hole

from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.diagnosis.signatures import ere
from slurm_agent_tools.models import arguments
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.transport.local import LocalRunner


@pytest.mark.proves("large-logs-are-quick")
def test_a_log_of_5_gb_is_diagnosed_in_little_memory_and_time(tmp_path):
    path = tmp_path / "big.out"
    path.write_bytes(chatter(9 * MIB))
    hole(path, 5 * 10**9 - 8 * 10**6, TRACE + chatter(8 * 10**6 - len(TRACE) - 1))
    env = environment(tmp_path)
    assert logs.diagnose(path, env) < logs.MEMORY
    tries: list[float] = []
    while not tries or (tries[-1] > logs.SECONDS and len(tries) < 5):  # others use the machine, so not by the clock
        tries.append(logs.tool(path, env).cpu)
    assert tries[-1] <= logs.SECONDS, tries


@pytest.fixture
def box(tmp_path):
    context = toolbox(tmp_path, NothingReachesSlurm()).context
    return Toolbox(OneDesk(replace(context, transport=Here(LocalRunner(context.settings), tmp_path / "project"))))


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "project/a.out"
    yield made
    made.unlink()


@pytest.mark.proves("large-logs-are-quick")
async def test_a_search_of_everything_takes_at_most_three_times_as_long_as_grep(box, path):
    """Without the start of the interpreter, which a short file would not make up for."""
    logs.write(path, 200 * 10**6, 100 * 10**6)
    tries = await beside_grep(box, path, "gpu-out-of-memory", lambda spent: spent.wall)
    assert tries[-1] <= logs.LIMIT, tries


FLOODS = {
    "a line with numbers": "cuda-error",
    "short lines": "host-out-of-memory",
    "several lines in turn": "disk-full",
}


@pytest.mark.proves("large-logs-are-quick")
@pytest.mark.parametrize("kind", FLOODS)
async def test_nor_does_it_take_longer_or_more_memory_where_half_of_the_log_is_one_flood(box, path, kind):
    logs.write_flooded(path, 400 * 10**6, kind)
    tries = await beside_grep(box, path, FLOODS[kind], lambda spent: spent.cpu)  # several processes wait for each other
    assert tries[-1] <= logs.LIMIT, tries
    env = environment(path.parent)
    assert logs.diagnose(path, env, "--mode=full", category=FLOODS[kind]) < logs.MEMORY


async def beside_grep(box: Toolbox, path: Path, category: str, judged: Callable[[Spent], float]) -> list[float]:
    """Ours over grep's time, of as many tries as it takes to come within the limit, four at most."""
    tries: list[float] = []
    while not tries or (tries[-1] > logs.LIMIT and len(tries) < 4):
        counted, found = await timed(count(path)), await timed(answered(box, category))
        tries.append(judged(found) / judged(counted))
    return tries


async def timed(work: Awaitable[None]) -> Spent:
    start, used = time.perf_counter(), sum(os.times()[:4])  # of this process and of those that it waited for
    await work
    return Spent(time.perf_counter() - start, sum(os.times()[:4]) - used)


async def count(path: Path) -> None:
    done = await LocalRunner(Settings()).run(["grep", "-c", "-E", "|".join(ere()), str(path)], timeout=60)
    assert done.stdout.strip().isdigit()


async def answered(box: Toolbox, category: str) -> None:
    reply = await box.call("analyze_log", arguments.AnalyzeLog(path="a.out", mode="full"))
    assert reply.diagnosis.category == category
