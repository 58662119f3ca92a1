"""A context over a project in a temporary folder, with a runner of the test's choosing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.slurm.answer_cache import KeptBackdrop
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.transport.base import Clock, Completed, LoginEnvironment, Runner
from slurm_agent_tools.transport.local import LocalFiles, SystemClock


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
        on_output: object = None,
    ) -> Completed:
        raise AssertionError(f"Slurm was asked: {argv}")


class Here:
    """A place on this machine with the test's own runner."""

    def __init__(self, runner: Runner, root: Path) -> None:
        self.key, self.runner, self.files = "test", runner, LocalFiles()
        self._around = LoginEnvironment("alice", str(root.resolve()), {})

    async def login_environment(self) -> LoginEnvironment:
        return self._around

    async def close(self) -> None:
        pass


class OneContext:
    """The same context whatever the cluster."""

    def __init__(self, context: ClusterContext) -> None:
        self.context = context

    async def at(self, cluster: str | None) -> ClusterContext:
        return await self.context.current()

    async def home(self) -> ClusterContext:
        return await self.context.current()

    async def close(self) -> None:
        self.context.store.close()


class TestedToolbox(Toolbox):
    """A toolbox whose context tests can look at."""

    def __init__(self, context: ClusterContext) -> None:
        super().__init__(OneContext(context))
        self.context = context


def toolbox(folder: Path, runner: Runner, clock: Clock | None = None) -> TestedToolbox:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    settings = Settings(project_root=project, state_dir=folder / "state")
    clock = clock or SystemClock()
    backdrop = KeptBackdrop(settings.state_dir / "partitions.json")
    slurm = SlurmClient(runner, clock, settings.slurm, user="alice", backdrop=backdrop)
    place = Here(runner, project)
    return TestedToolbox(
        ClusterContext(
            settings=settings,
            policy=load(shipped()),
            slurm=slurm,
            watcher=Watcher(slurm, clock),
            files=LocalFiles(),
            store=Store(settings.state_dir, clock=clock),
            clock=clock,
            owner=Owner("alice", str(project.resolve()), "test"),
            transport=place,
            environment=LoginEnvironment("alice", str(project.resolve()), {}),
        )
    )
