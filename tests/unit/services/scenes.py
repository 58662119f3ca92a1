"""A project with one script, a fake Slurm, and the tools between them: what tests of whole ways begin with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.models.arguments import AnalyzeLog, CancelJob, GetStatus, SubmitJob, WaitForJob
from slurm_agent_tools.services.context import ClusterContext

HEAD = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --mem=1G\n#SBATCH --time=10\n#SBATCH --output=logs/x.out\n"
MISSING = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"
NEEDS_A_PERSON = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --mem=100G\n#SBATCH --time=10\nsleep 60\n"


class Scene:
    """The tools of one user over a fake Slurm. `slurm` is the cluster as a test changes it."""

    def __init__(self, folder: Path, slurm: FakeSlurm | None = None) -> None:
        self.slurm = slurm or FakeSlurm()
        self.box = fake_toolbox(folder, self.slurm)
        self.project = Path(self.context.project)
        self.write("train.sh", f"{HEAD}sleep 60\n")

    @property
    def context(self) -> ClusterContext:
        return self.box.context

    def write(self, name: str, text: str) -> None:
        (self.project / name).parent.mkdir(parents=True, exist_ok=True)
        (self.project / name).write_text(text)

    def policy(self, **changes: Any) -> None:
        """Other values of the policy's fields."""
        loaded = self.context.policy
        made = replace(loaded, policy=loaded.policy.model_copy(update=changes))
        self.box.context = self.box.registry.context = replace(self.context, policy=made)

    def limits(self, **changes: Any) -> None:
        """Other limits."""
        self.policy(limits=self.context.policy.policy.limits.model_copy(update=changes))

    async def submit(self, script: str = "train.sh", *, consult: Any = None, look: bool = True, **more: Any) -> Any:
        """submit_job, after the look at the cluster that the policy wants."""
        if look:
            await self.status()
        return await self.box.call("submit_job", SubmitJob(script=script, **more), consult=consult)

    async def status(self, sections: Sequence[Any] | None = None, **more: Any) -> Any:
        return await self.box.call("get_status", GetStatus(sections=sections and list(sections), **more))

    async def wait(self, job_id: str | int, seconds: float = 0, progress: Any = None) -> Any:
        ask = WaitForJob(job_id=str(job_id), timeout_seconds=seconds)
        return await self.box.call("wait_for_job", ask, progress=progress)

    async def cancel(self, job_id: str | int, reason: str = "not needed") -> Any:
        return await self.box.call("cancel_job", CancelJob(job_id=str(job_id), reason=reason))

    async def analyse(self, **ask: Any) -> Any:
        return await self.box.call("analyze_log", AnalyzeLog(**ask))

    def sent(self) -> list[tuple[str, ...]]:
        """The command lines that put a job into the queue."""
        return [argv for argv in self.slurm.asked if argv[0] == "sbatch" and "--test-only" not in argv]

    def numbers(self) -> list[int]:
        """All jobs that Slurm ever took."""
        return sorted(self.slurm.controller.jobs)

    def stands(self, number: str | int) -> tuple[str, str]:
        """State and reason of a job, as Slurm has them once its scheduler came round."""
        self.slurm.clock.move(3)
        job = self.slurm.job(int(number))
        return job.state, job.reason

    def phase(self, key: str) -> tuple[str, int | None] | None:
        """Where the ledger says that a submission is, and which job it became."""
        found = self.context.store.by_key(self.context.owner, key)
        return None if found is None else (found.phase, found.job_id)

    def lines(self, *events: str) -> list[dict[str, Any]]:
        """Lines of the decision log, of these events."""
        path = self.context.store.decisions
        told = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in told if not events or line["event"] in events]

    def logged(self) -> list[str]:
        """The events of the decision log in their order."""
        return [line["event"] for line in self.lines()]


async def sent(scene: Scene, *, seconds: float = 5, **more: Any) -> str:
    """A submitted job's id; `seconds` later."""
    reply = await scene.submit(**more)
    assert reply.status == "submitted", reply.summary
    scene.slurm.clock.move(seconds)
    return reply.job_id


async def failed(scene: Scene, **more: Any) -> str:
    """A job that failed for a missing module."""
    scene.slurm.next_job(exit_code=1, after=10, output="loss: 0.5\n", errors=MISSING)
    return await sent(scene, seconds=60, **more)
