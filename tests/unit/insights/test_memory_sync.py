"""A memory server is told of jobs beside the calls: once each time, later where it is away, and no call waits."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox
from tests.watchdog import answer, eventually

from slurm_agent_tools.errors import MemoryUnreachable
from slurm_agent_tools.insights import memory_server, memory_sync
from slurm_agent_tools.insights.memory_sync import MemorySync
from slurm_agent_tools.models.arguments import ValidateConfig
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.settings import MemorySettings
from slurm_agent_tools.store.submissions import Submission

SERVER = str(Path(__file__).parents[1] / "services" / "memories.py")
ASKED = Resources(gpus=1, memory_bytes=17179869184, time_limit_seconds=3600, partition="gpu")
NOW = datetime.now(UTC)
pytestmark = pytest.mark.proves("memory-server-is-told")


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Any]:
    made = toolbox(tmp_path, NothingReachesSlurm())
    yield made
    await made.close()


def submitted(box: Any, number: int, **more: Any) -> Submission:
    context = box.context
    created = more.pop("created", NOW + timedelta(milliseconds=number))
    made = Submission(
        token=f"t{number}", idempotency_key=f"k{number}", phase=more.pop("phase", "released"), created=created,
        updated=NOW, script_path="train.sh", script_sha256="0" * 64, request_sha256="1" * 64, job_name="train",
        slots=1, decision_id="d", job_id=number, requested=ASKED, **more,
    )  # fmt: skip
    context.store.add(context.owner, made)
    return made


def settings(kept: Path, *way: str, **more: Any) -> MemorySettings:
    return MemorySettings(command=(sys.executable, SERVER, str(kept), *way), **more)


def told(kept: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []


async def test_a_submission_and_its_end_are_told_once_each(box: Any, tmp_path: Path):
    kept = tmp_path / "kept"
    memory = MemorySync(settings(kept))
    run = submitted(box, 7, run_id="r1")
    submitted(box, 8, phase="refused")
    submitted(box, 9, phase="held")
    submitted(box, 10, created=NOW - timedelta(days=30))

    assert await memory.hand_over(box.context) == 1
    assert await memory.hand_over(box.context) == 0
    box.context.store.update(run, outcome="FAILED", exit_code=1, category="python-exception", started=NOW, ended=NOW)
    assert await memory.hand_over(box.context) == 1
    assert await memory.hand_over(box.context) == 0

    first, last = told(kept)
    assert first["content"].startswith("SLURM JOB 7: train (train.sh). Status: SUBMITTED. Partition: gpu, GPUs: 1,")
    assert last["content"].startswith("SLURM JOB 7: train (train.sh). Status: FAILED.")
    assert {"slurm", "job", "7", "failed", "r1", "python-exception"} <= set(last["tags"])
    assert last["memory_type"] == "slurm_job"
    assert (last["metadata"]["exit_code"], last["metadata"]["type"]) == (1, "slurm_job")
    assert last["metadata"]["tags"] == last["tags"]


async def test_what_the_server_refuses_stays_due_and_does_not_hold_up_the_rest(box: Any, tmp_path: Path):
    submitted(box, 7)
    submitted(box, 8)
    with pytest.raises(MemoryUnreachable, match=r"refused 2 of 2 records: .*the disk is full"):
        await MemorySync(settings(tmp_path / "kept", "refuse")).hand_over(box.context)

    assert await MemorySync(settings(tmp_path / "kept")).hand_over(box.context) == 2


async def test_what_the_server_has_already_is_told(box: Any, tmp_path: Path):
    submitted(box, 7)
    assert await MemorySync(settings(tmp_path / "kept", "double")).hand_over(box.context) == 1
    assert await MemorySync(settings(tmp_path / "kept")).hand_over(box.context) == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("/nowhere/memory",), "does not answer"),
        ((sys.executable, "-c", "print('hello')"), "does not answer"),
        ((sys.executable, SERVER, "/dev/null", "silent"), "within 2 s"),
    ],
)
async def test_a_server_that_is_away_is_said_and_everything_stays_due(
    box: Any, tmp_path: Path, command: tuple[str, ...], said: str
):
    submitted(box, 7)
    with pytest.raises(MemoryUnreachable, match=said):
        await MemorySync(MemorySettings(command=command, timeout=2)).hand_over(box.context)

    assert await MemorySync(settings(tmp_path / "kept")).hand_over(box.context) == 1


async def test_nothing_of_the_project_runs_in_the_server(box: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    submitted(box, 7)
    ran = tmp_path / "ran"
    (tmp_path / "project" / "planted.py").write_text(f"open({str(ran)!r}, 'w')\n")
    monkeypatch.chdir(tmp_path / "project")

    with pytest.raises(MemoryUnreachable):
        await MemorySync(MemorySettings(command=(sys.executable, "-m", "planted"), timeout=5)).hand_over(box.context)
    assert not ran.exists()


async def test_no_call_waits_for_the_server_and_none_fails_with_it(box: Any, tmp_path: Path):
    asked = tmp_path / "asked"
    submitted(box, 7)
    (tmp_path / "project" / "c.yaml").write_text("lr: 0.1\n")
    box.memory = MemorySync(settings(tmp_path / "kept", "silent", str(asked), timeout=300, pause=0))

    async def work() -> None:
        await box.call("validate_config", ValidateConfig(config_path="c.yaml"))
        await eventually(asked.exists)  # it has the job, and will not answer
        for _ in range(3):
            await box.call("validate_config", ValidateConfig(config_path="c.yaml"))

    await answer(partial(box.during, work))
    assert len(box.context.store.untold(box.context.owner, since=NOW - timedelta(days=1), limit=9)) == 1


async def test_a_call_wakes_what_tells_the_server(box: Any, tmp_path: Path):
    kept = tmp_path / "kept"
    submitted(box, 7)
    (tmp_path / "project" / "c.yaml").write_text("lr: 0.1\n")
    box.memory = MemorySync(settings(kept))

    async def work() -> None:
        await box.call("validate_config", ValidateConfig(config_path="c.yaml"))
        await eventually(lambda: told(kept))

    await box.during(work)
    assert len(told(kept)) == 1


async def test_after_a_failure_there_is_a_pause_and_then_another_try(
    box: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept, real, order = tmp_path / "kept", memory_server.connected, []

    @asynccontextmanager
    async def mended(known: MemorySettings) -> AsyncIterator[memory_server.MemoryClient]:
        order.append("try")
        if order == ["try"]:
            raise MemoryUnreachable("away")
        async with real(known) as keeper:
            yield keeper

    async def paused(seconds: float) -> None:
        order.append(seconds)
        memory.note(box.context)  # the next call

    monkeypatch.setattr(memory_server, "connected", mended)
    monkeypatch.setattr(memory_sync, "anyio", SimpleNamespace(**vars(anyio) | {"sleep": paused}))
    submitted(box, 7)
    memory = MemorySync(settings(kept, pause=30))
    async with anyio.create_task_group() as group:
        group.start_soon(memory.run)
        memory.note(box.context)
        await eventually(lambda: told(kept))
        group.cancel_scope.cancel()
    assert order == ["try", 30, "try"]


async def test_a_server_without_a_tool_that_stores_is_named(tmp_path: Path):
    with pytest.raises(MemoryUnreachable, match="none of the tools store_memory, memory_store"):
        async with memory_server.connected(settings(tmp_path / "kept", "bare")):
            pass


def test_without_a_server_nothing_is_loaded_or_begun(box: Any):
    assert box.memory is None
    assert MemorySettings().on is False
