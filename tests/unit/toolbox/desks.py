"""A desk over a project in a temporary folder, with a runner of the test's choosing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from slurm_agent_tools.config import Settings
from slurm_agent_tools.ledger.records import Owner
from slurm_agent_tools.ledger.store import Store
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.slurm.local import LocalFiles, SystemClock
from slurm_agent_tools.slurm.runner import Completed, Runner
from slurm_agent_tools.slurm.watcher import Watcher
from slurm_agent_tools.toolbox import Toolbox
from slurm_agent_tools.toolbox.desk import Desk


class NothingReachesSlurm:
    """Any command is a failure of the test."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 10.0,
        max_output: int = 0,
    ) -> Completed:
        raise AssertionError(f"Slurm was asked: {argv}")


def toolbox(folder: Path, runner: Runner) -> Toolbox:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    settings = Settings(project_root=project, state_dir=folder / "state")
    clock = SystemClock()
    slurm = SlurmClient(runner, clock, settings.slurm, user="alice")
    return Toolbox(
        Desk(
            settings=settings,
            policy=load(shipped()),
            slurm=slurm,
            watcher=Watcher(slurm, clock),
            files=LocalFiles(),
            store=Store(settings.state_dir),
            clock=clock,
            owner=Owner("alice", str(project.resolve()), "test"),
        )
    )
