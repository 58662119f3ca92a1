"""Large logs take little time and memory, measured in processes of their own and beside grep."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import logs
from benchmarks.logs import TRACE
from benchmarks.timing import environment
from tests.unit.toolbox.desks import Here, NothingReachesSlurm, OneDesk, toolbox
from tests.unit.toolbox.test_logfiles import MIB, chatter, hole

from slurm_agent_tools import catalogue
from slurm_agent_tools.config import Settings
from slurm_agent_tools.diagnosis.signatures import ere
from slurm_agent_tools.slurm.local import LocalRunner
from slurm_agent_tools.toolbox import Toolbox


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


@pytest.mark.proves("large-logs-are-quick")
async def test_a_search_of_everything_takes_at_most_three_times_as_long_as_grep(tmp_path):
    """Without the start of the interpreter, which a short file would not make up for."""
    desk = toolbox(tmp_path, NothingReachesSlurm()).desk
    box = Toolbox(OneDesk(replace(desk, place=Here(LocalRunner(desk.settings), tmp_path / "project"))))
    path = tmp_path / "project/a.out"
    logs.write(path, 200 * 10**6, 100 * 10**6)
    tries: list[float] = []
    while not tries or (tries[-1] > logs.LIMIT and len(tries) < 4):
        counted, found = await timed(count(path)), await timed(answered(box))
        tries.append(found / counted)
    assert tries[-1] <= logs.LIMIT, tries


async def timed(work: Awaitable[None]) -> float:
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


async def count(path: Path) -> None:
    done = await LocalRunner(Settings()).run(["grep", "-c", "-E", "|".join(ere()), str(path)], timeout=60)
    assert done.stdout.strip().isdigit()


async def answered(box: Toolbox) -> None:
    reply = await box.call("analyze_log", catalogue.AnalyzeLog(path="a.out", mode="full"))
    assert reply.diagnosis.category == "gpu-out-of-memory"
