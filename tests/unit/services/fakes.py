"""The tools over a fake Slurm: their ledger and their project are real folders, their time is the fake clock's."""

from __future__ import annotations

from pathlib import Path

from tests.unit.services.contexts import TestedToolbox

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.slurm.answer_cache import KeptBackdrop
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.transport.base import LoginEnvironment
from slurm_agent_tools.transport.local import LocalFiles


def fake_toolbox(folder: Path, slurm: FakeSlurm) -> TestedToolbox:
    """A toolbox of the fake Slurm's user in `folder/project`, under the default policy."""
    project = (folder / "project").resolve()
    project.mkdir(exist_ok=True)
    settings = Settings(project_root=project, state_dir=folder / "state")
    backdrop = KeptBackdrop(settings.state_dir / "partitions.json")
    client = SlurmClient(slurm, slurm.clock, settings.slurm, user=slurm.user, backdrop=backdrop)
    place = slurm.place(project)
    return TestedToolbox(
        ClusterContext(
            settings=settings,
            policy=load(shipped()),
            slurm=client,
            watcher=Watcher(client, slurm.clock),
            files=LocalFiles(),
            store=Store(settings.state_dir, clock=slurm.clock),
            clock=slurm.clock,
            owner=Owner(slurm.user, str(project), place.key),
            transport=place,
            environment=LoginEnvironment(slurm.user, str(project), {}),
        )
    )
