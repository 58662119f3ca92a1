"""When answers come while Slurm is silent: to the second, in an event loop in which no real time passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.services.contexts import OneContext, toolbox
from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import queued
from tests.unit.virtual_time import VirtualClock, in_no_time, passed

from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.models.arguments import AnalyzeLog, CancelJob, GetStatus, ToolArguments, WaitForJob
from slurm_agent_tools.models.result import SaveResult
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.transport.base import Completed

PROMISED = 15.0
LATE = 2.0
REFUSED = done(b"", b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1)


class Silent:
    """Commands that take all the time that they may: the controller is stopped. Some questions may be answered."""

    def __init__(self, *answered: str, until: float = 0) -> None:
        self.answered, self.until, self.limits = answered, until, list[float]()

    async def run(self, argv: Sequence[str], *, timeout: float = 10.0, **_: Any) -> Completed:
        self.limits.append(timeout)
        if " ".join(argv[:3]).startswith(self.answered) or passed() < self.until:
            return known(argv)
        await anyio.sleep(timeout)
        return done(code=None, argv=argv)


def known(argv: Sequence[str]) -> Completed:
    """What a controller that knows job 5 says."""
    if argv[0] == "scontrol":
        return done(b"", b"slurm_load_jobs error: Invalid job id specified", 1, argv)
    return done(queued("5") if argv[0] == "squeue" else b"", argv=argv[:1])


class Gone(Silent):
    """Commands that end at once without having reached the controller."""

    async def run(self, argv: Sequence[str], *, timeout: float = 10.0, **_: Any) -> Completed:
        self.limits.append(timeout)
        return replace(REFUSED, argv=tuple(argv))


def box(folder: Path, runner: Silent) -> Toolbox:
    """A toolbox over a Slurm that is away, with a clock that follows the loop."""
    context, clock = toolbox(folder, runner).context, VirtualClock()
    slurm = SlurmClient(runner, clock, context.settings.slurm, user="alice")
    return Toolbox(OneContext(replace(context, clock=clock, slurm=slurm, watcher=Watcher(slurm, clock))))


READING = [
    ("get_status", GetStatus()),
    ("get_status", GetStatus(refresh=True, detailed=True)),
    ("wait_for_job", WaitForJob(job_id="5", timeout_seconds=5)),
    ("analyze_log", AnalyzeLog(job_id="5")),
    ("analyze_log", AnalyzeLog(recent_errors=3)),
    ("cancel_job", CancelJob(job_id="5", reason="no longer needed")),
    ("save_result", SaveResult(name="x", status="success", job_id="5")),
]


@pytest.mark.proves("reading-tools-answer-in-time", "unknown-is-said-by-slurm")
@pytest.mark.parametrize("away", [Silent, Gone])
@pytest.mark.parametrize(("tool", "ask"), READING)
@in_no_time
async def test_with_a_slurm_that_is_away_every_tool_answers_in_15_seconds_and_says_so(
    tmp_path: Path, away: type[Silent], tool: str, ask: ToolArguments
):
    runner = away()
    assert await told(box(tmp_path, runner), tool, ask)
    assert passed() <= (PROMISED if away is Silent else 1)
    assert runner.limits


async def told(tools: Toolbox, tool: str, ask: ToolArguments) -> str:
    """The answer, or what the error hints at."""
    try:
        return (await tools.call(tool, ask)).model_dump_json()
    except SlurmUnreachable as error:
        return error.hint or ""


@pytest.mark.proves("wait-is-bounded")
@pytest.mark.parametrize("seconds", [0, 5, 13, 45, 600])
@in_no_time
async def test_a_wait_for_a_job_of_a_silent_slurm_ends_when_both_promises_are_kept(tmp_path: Path, seconds: float):
    with pytest.raises(SlurmUnreachable):
        await box(tmp_path, Silent()).call("wait_for_job", WaitForJob(job_id="5", timeout_seconds=seconds))
    assert passed() <= max(PROMISED, seconds + LATE)


@pytest.mark.proves("wait-is-bounded", "reading-tools-answer-in-time")
@pytest.mark.parametrize("seconds", [9, 45, 600])
@in_no_time
async def test_a_slurm_that_goes_silent_while_a_job_is_waited_for_is_an_error_in_time(tmp_path: Path, seconds: float):
    with pytest.raises(SlurmUnreachable):
        await box(tmp_path, Silent(until=1)).call("wait_for_job", WaitForJob(job_id="5", timeout_seconds=seconds))
    assert passed() <= seconds + LATE


@pytest.mark.proves("wait-is-bounded")
@pytest.mark.parametrize("seconds", [0, 1, 9, 45, 600])
@in_no_time
async def test_a_wait_that_outlives_the_call_returns_in_time_whatever_is_asked_beside_it(
    tmp_path: Path, seconds: float
):
    """The queue answers; what an answer tells beside the job's state is given up in time."""
    runner = Silent("squeue", "scontrol show job")
    reply = await box(tmp_path, runner).call("wait_for_job", WaitForJob(job_id="5", timeout_seconds=seconds))
    assert reply.status == "running"
    assert seconds - 0.5 <= passed() <= seconds + LATE
