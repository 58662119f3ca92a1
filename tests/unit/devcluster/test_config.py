import re
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import config
from slurm_agent_tools.devcluster.config import Choices
from slurm_agent_tools.devcluster.place import Cluster

CLUSTER = Cluster(Path("/srv/try"), 21000, "ada")


def conf(*, cgroup: bool = False, accounting: bool = True, extra: str = "") -> dict[str, str]:
    """The global lines by key; each key once."""
    lines = config.slurm_conf(CLUSTER, Choices(cgroup, accounting, extra)).splitlines()
    pairs = [line.split("=", 1) for line in lines if not line.startswith(("NodeName", "PartitionName"))]
    assert len({key.lower() for key, _ in pairs}) == len(pairs)
    return dict(pairs)


def test_everything_stays_on_loopback_and_in_the_folder():
    text = config.slurm_conf(CLUSTER, Choices(cgroup=True, accounting=True))

    assert "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny" in text
    assert "(127.0.0.1)" in conf()["SlurmctldHost"]
    assert text.count("NodeAddr=127.0.0.1") == 3
    assert set(re.findall(r"=(/\w+)/", text)) <= {"/srv", "/bin"}
    assert "DbdAddr=127.0.0.1" in config.slurmdbd_conf(CLUSTER)


def test_clients_of_the_accounting_find_the_clusters_own_munge():
    assert conf()["AuthInfo"] == conf()["AccountingStoragePass"] == "socket=/srv/try/run/munge/munge.sock"


def test_a_given_line_takes_the_place_of_the_default_one():
    given = conf(extra="minjobage=5\nEnforcePartLimits=ALL")

    assert given["minjobage"] == "5"
    assert "MinJobAge" not in given
    assert given["EnforcePartLimits"] == "ALL"


def test_jobs_stay_known_for_five_minutes_unless_told_otherwise():
    assert conf()["MinJobAge"] == "300"


def test_memory_is_limited_by_cgroups_or_by_polling():
    assert conf(cgroup=True)["ProctrackType"] == "proctrack/cgroup"
    assert "OverMemoryKill" in conf(cgroup=False)["JobAcctGatherParams"]
    assert "ConstrainRAMSpace=yes" in config.cgroup_conf()


def test_without_accounting_nothing_asks_for_slurmdbd():
    assert [key for key in conf(accounting=False) if key.startswith(("Accounting", "Preempt"))] == []


def test_every_gpu_that_a_node_promises_has_a_device():
    nodes = config.slurm_conf(CLUSTER, Choices(cgroup=False, accounting=False))
    devices = config.gres_conf(CLUSTER, "/dev/null")

    promised = dict(re.findall(r"NodeName=(\S+) .*Gres=gpu:\w+:(\d+)", nodes))
    offered = dict(re.findall(r"NodeName=(\S+) .*File=/dev/null\[0-(\d+)\]", devices))
    assert promised == {name: str(int(last) + 1) for name, last in offered.items()}
    assert len(promised) == 2


@pytest.mark.parametrize("root", [True, False])
def test_the_users_may_use_every_quality_of_service(monkeypatch, root):
    monkeypatch.setattr(config, "is_root", lambda: root)
    text = config.associations(["ada", "grace"])

    assert text.count("QOS='high,normal,scavenger,short'") == 2
    assert text.count("AdminLevel") == root
    assert text.index("Account - 'lab'") < text.index("Parent - 'lab'") < text.index("User - 'ada'")
