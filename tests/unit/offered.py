"""A server over a project of the test's own, with a Slurm that knows what the test says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mcp import Client
from tests.unit.services.contexts import NothingReachesSlurm, toolbox

from slurm_agent_tools.errors import UnknownJob
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.units import JobId

NOW = datetime.now(UTC)
ASKED = Resources(gpus=1, memory_bytes=17179869184, time_limit_seconds=3600, partition="gpu")


class Rows(list[Job]):
    @property
    def bases(self) -> frozenset[int]:
        return frozenset(job.job_id.base for job in self)


@dataclass
class Slurm:
    """Knows these jobs; `away` is raised by all that is asked."""

    known: dict[int, Job] = field(default_factory=dict)
    away: Exception | None = None
    accounting: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(absent=False, missing=None))

    def _or_away(self) -> None:
        if self.away is not None:
            raise self.away

    async def job(self, job_id: JobId, **_: Any) -> JobView:
        self._or_away()
        if job_id.base not in self.known:
            raise UnknownJob("job_id", str(job_id), "Slurm knows no such job", hint="See get_status.")
        return JobView(self.known[job_id.base])

    async def jobs(self, ids: Any, **_: Any) -> dict[JobId, JobView]:
        self._or_away()
        return {job_id: JobView(self.known[job_id.base]) for job_id in ids if job_id.base in self.known}

    async def queue(self, **_: Any) -> Rows:
        self._or_away()
        return Rows(self.known.values())

    def mine(self, rows: Rows) -> Rows:
        return Rows(job for job in rows if job.user == "alice")

    async def ran(self, *_: Any) -> list[Job]:
        self._or_away()
        return []

    async def partitions(self, **_: Any) -> dict[str, Partition]:
        self._or_away()
        return {
            name: Partition(
                name, "UP", default=name == "main", nodes=1, max_time_seconds=None, default_time_seconds=None
            )
            for name in ("bigmem", "gpu", "main", "pipe|\nname")
        }


def job(number: int, **more: Any) -> Job:
    return Job(
        JobId(number), more.pop("name", "train"), more.pop("state", "RUNNING"), ("squeue",), user="alice", **more
    )


@dataclass
class Scene:
    box: Any
    slurm: Slurm
    project: Path

    def submitted(self, number: int, *, name: str = "train", **more: Any) -> None:
        context = self.box.context
        context.store.add(
            context.owner,
            Submission(
                token=f"t{number}", idempotency_key=f"k{number}", phase="released", created=NOW + timedelta(seconds=number),
                updated=NOW, script_path=f"{name}.sh", script_sha256="0" * 64, request_sha256="1" * 64, job_name=name,
                slots=1, decision_id="d", job_id=number, requested=ASKED, **more,
            ),
        )  # fmt: skip

    def write(self, path: str, text: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    @asynccontextmanager
    async def client(self, era: str = "auto") -> AsyncIterator[Client]:
        server = build_server(self.box, Settings())
        async with Client(server, mode=era, raise_exceptions=False) as client:
            yield client


@asynccontextmanager
async def scenes(folder: Path) -> AsyncIterator[Scene]:
    box, slurm = toolbox(folder, NothingReachesSlurm()), Slurm()
    box.context = replace(box.context, slurm=slurm)
    box.registry.context = box.context
    yield Scene(box, slurm, Path(box.context.project))
    await box.close()
