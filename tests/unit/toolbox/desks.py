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
from slurm_agent_tools.slurm.runner import Completed, Runner, Surroundings
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


class Here:
    """A place on this machine with the test's own runner."""

    def __init__(self, runner: Runner, root: Path) -> None:
        self.key, self.runner, self.files = "test", runner, LocalFiles()
        self._around = Surroundings("alice", str(root.resolve()), {})

    async def surroundings(self) -> Surroundings:
        return self._around

    async def close(self) -> None:
        pass


class OneDesk:
    """The same desk whatever the cluster."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def at(self, cluster: str | None) -> Desk:
        return await self.desk.current()

    async def close(self) -> None:
        self.desk.store.close()


class TestedToolbox(Toolbox):
    """A toolbox whose desk tests can look at."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(OneDesk(desk))
        self.desk = desk


def toolbox(folder: Path, runner: Runner) -> TestedToolbox:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    settings = Settings(project_root=project, state_dir=folder / "state")
    clock = SystemClock()
    slurm = SlurmClient(runner, clock, settings.slurm, user="alice")
    place = Here(runner, project)
    return TestedToolbox(
        Desk(
            settings=settings,
            policy=load(shipped()),
            slurm=slurm,
            watcher=Watcher(slurm, clock),
            files=LocalFiles(),
            store=Store(settings.state_dir),
            clock=clock,
            owner=Owner("alice", str(project.resolve()), "test"),
            place=place,
            around=Surroundings("alice", str(project.resolve()), {}),
        )
    )
