"""The strongest way to limit memory with which the nodes come up is the one that stays."""

from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import cgroups, folders, slurm_daemons, workers
from slurm_agent_tools.devcluster.cgroups import Way
from slurm_agent_tools.devcluster.config_files import Choices
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, MemoryLimits

CLUSTER = Cluster(Path("/srv/try"), 21000, "ada")
SETTINGS = workers.SlurmSetup(accounting=True, extra="", version=(22, 5))
WAYS = [(Way.V2_BY_SYSTEMD, "systemd gives scopes"), (Way.POLLING, "as a last resort")]


class Daemons:
    """Remembers what is started and stopped, and with which configuration; `refuses` ends slurmd's of that plugin."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.texts: list[str] = []
        self.refuses: set[str] = set()

    def configure(self, _: Cluster, choices: Choices, cgroup_conf: str) -> None:
        assert not self.running, "a daemon must not meet another configuration than the one it began with"
        assert choices.cgroup == ("ConstrainRAMSpace=yes" in cgroup_conf)
        self.texts.append(cgroup_conf)

    async def start(self, _: Cluster, name: str) -> None:
        self.running.add(name)

    async def stop(self, _: Cluster, name: str) -> None:
        self.running.discard(name)

    async def ready(self, _: Cluster, name: str) -> None:
        assert name == "slurmctld"

    async def fit(self, _: Cluster) -> None:
        if any(f"CgroupPlugin={plugin}\n" in self.texts[-1] for plugin in self.refuses):
            words = "-- /srv/try/log/slurmd.n1.out\nslurmd: error: first\n[stamp] fatal: Hybrid mode\nslurmd: exiting"
            raise DevclusterError(f"node n1 did not come up (unknown)\n{words}")


@pytest.fixture
def daemons(monkeypatch):
    made = Daemons()
    monkeypatch.setattr(folders, "configure", made.configure)
    for name in ("start", "stop", "ready"):
        monkeypatch.setattr(slurm_daemons, name, getattr(made, name))
    monkeypatch.setattr(workers, "fit", made.fit)
    monkeypatch.setattr(cgroups, "check", lambda *_: None)
    monkeypatch.setattr(cgroups, "make_ready", lambda *_: None)
    return made


async def test_the_strongest_way_is_kept_when_the_nodes_come_up(daemons):
    said = []
    found = await workers.up(CLUSTER, SETTINGS, WAYS, said.append)

    assert found == MemoryLimits("cgroup/v2", "systemd gives scopes", ("memory",))
    assert len(daemons.texts) == 1
    assert daemons.running == {"slurmctld", *(f"slurmd.{node}" for node in CLUSTER.nodes)}
    assert said == []


async def test_a_slurmd_that_ends_is_followed_by_polling_with_slurmds_own_reason(daemons):
    daemons.refuses = {"cgroup/v2"}
    said = []
    found = await workers.up(CLUSTER, SETTINGS, WAYS, said.append)

    assert found == MemoryLimits("polling", "cgroup/v2 in a scope of systemd does not work here: Hybrid mode")
    assert daemons.texts[-1] == cgroups.conf(Way.POLLING, (22, 5))
    assert len(said) == 1
    assert "Hybrid mode" in said[0]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("slurmd: error: no time\nslurmd: error: cannot find cgroup plugin\nslurmd: error: slurmd ends", "cannot find cgroup plugin"),
        ("slurmd: error: no time\nslurmd: fatal: no scope\nslurmd: info", "no scope"),
        ("node n1 did not come up\nslurmd: quiet", "node n1 did not come up"),
    ],
)  # fmt: skip
def test_the_reason_is_the_complaint_that_explains_most(words, cause):
    assert workers._cause(words) == cause


async def test_a_way_that_limits_nothing_is_not_kept(daemons, monkeypatch):
    def check(way: Way, *_: object) -> None:
        if way is Way.V2_BY_SYSTEMD:
            raise DevclusterError("the jobs of node n1 get no memory controller")

    monkeypatch.setattr(cgroups, "check", check)
    found = await workers.up(CLUSTER, SETTINGS, WAYS, lambda _: None)

    assert found.by == "polling"
    assert "no memory controller" in found.reason


async def test_when_polling_fails_too_the_error_is_slurmds(daemons):
    daemons.refuses = {"cgroup/v1", "cgroup/v2"}

    with pytest.raises(DevclusterError, match="did not come up"):
        await workers.up(CLUSTER, SETTINGS, WAYS, lambda _: None)
