from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import accounting_database, slurm_daemons
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError

PLAIN = Cluster(Path("/srv/try"), 21000, "ada")
NEWER = Cluster(Path("/srv/try"), 21000, "ada", Path("/opt/26.05/bin"))


@pytest.fixture
def starts(monkeypatch):
    """The starts of slurmdbd; the first `fails` of them end at once."""
    made: list[str] = []
    fails = [1]

    async def start(_: Cluster, name: str) -> None:
        made.append(name)

    async def ready(_: Cluster, name: str) -> None:
        if len(made) <= fails[0]:
            raise DevclusterError(f"{name} ended")

    monkeypatch.setattr(slurm_daemons, "start", start)
    monkeypatch.setattr(slurm_daemons, "ready", ready)
    return made, fails


async def test_a_newer_slurmdbd_that_gives_up_on_a_new_database_is_started_once_more(starts):
    await accounting_database.daemon(NEWER)
    assert starts[0] == ["slurmdbd", "slurmdbd"]


@pytest.mark.parametrize(("cluster", "fails", "count"), [(NEWER, 2, 2), (PLAIN, 1, 1)])
async def test_one_that_gives_up_for_good_is_an_error(starts, cluster, fails, count):
    made, limit = starts
    limit[0] = fails
    with pytest.raises(DevclusterError, match="slurmdbd ended"):
        await accounting_database.daemon(cluster)
    assert len(made) == count
