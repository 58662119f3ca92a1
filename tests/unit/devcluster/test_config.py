import re
import socket
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import config_files
from slurm_agent_tools.devcluster.config_files import Choices
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError
from slurm_agent_tools.devcluster.machine_facts import MachineGpu, MachineNode

CLUSTER = Cluster(Path("/srv/try"), 21000, "ada")


@pytest.fixture(autouse=True)
def address(monkeypatch):
    """The tests do not depend on what the name of their machine stands for."""
    stands_for(monkeypatch, "127.0.0.1")


def stands_for(monkeypatch, address: str) -> None:
    monkeypatch.setattr(socket, "gethostbyname", lambda _: address)


def conf(*, cgroup: bool = False, accounting: bool = True, extra: str = "") -> dict[str, str]:
    """The global lines by key; each key once."""
    lines = config_files.slurm_conf(CLUSTER, Choices(cgroup, accounting, extra)).splitlines()
    pairs = [line.split("=", 1) for line in lines if not line.startswith(("NodeName", "PartitionName"))]
    assert len({key.lower() for key, _ in pairs}) == len(pairs)
    return dict(pairs)


def test_everything_stays_on_loopback_and_in_the_folder():
    text = config_files.slurm_conf(CLUSTER, Choices(cgroup=True, accounting=True))

    assert "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny" in text
    assert "(127.0.0.1)" in conf()["SlurmctldHost"]
    assert text.count("NodeAddr=127.0.0.1") == 3
    assert set(re.findall(r"=(/\w+)/", text)) <= {"/srv", "/bin"}
    assert "DbdAddr=127.0.0.1\nCommunicationParameters=NoInAddrAny\n" in config_files.slurmdbd_conf(CLUSTER)


def test_one_configuration_serves_all_where_the_machines_name_stands_for_the_usual_address():
    choices = Choices(cgroup=False, accounting=True)

    assert not config_files.apart()
    assert config_files.slurm_conf(CLUSTER, choices, clients=True) == config_files.slurm_conf(CLUSTER, choices)
    assert "TaskProlog" not in conf()


def test_where_it_stands_for_another_srun_may_hear_answers_and_the_daemons_stay_on_loopback(monkeypatch):
    stands_for(monkeypatch, "127.0.1.1")
    choices = Choices(cgroup=False, accounting=True)
    daemons, clients = (config_files.slurm_conf(CLUSTER, choices, clients=who).splitlines() for who in (False, True))

    assert set(daemons) - set(clients) == {"CommunicationParameters=NoInAddrAny,NoCtldInAddrAny"}
    assert set(clients) - set(daemons) == {"CommunicationParameters=NoCtldInAddrAny"}
    assert "AccountingStorageHost=127.0.1.1" in clients
    assert "TaskProlog=/srv/try/etc/prolog" in clients
    assert "SLURM_CONF=/srv/try/etc/slurm.conf" in config_files.prolog(CLUSTER)


def test_a_name_that_stands_for_an_address_of_a_network_brings_nothing_there(monkeypatch):
    stands_for(monkeypatch, "192.0.2.7")
    text = config_files.slurm_conf(CLUSTER, Choices(cgroup=False, accounting=True), clients=True)

    assert config_files.apart()
    assert "192.0.2.7" not in text + config_files.slurmdbd_conf(CLUSTER)
    assert text.count("NodeAddr=127.0.0.1") == 3


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


def test_without_accounting_nothing_asks_for_slurmdbd():
    assert [key for key in conf(accounting=False) if key.startswith(("Accounting", "Preempt"))] == []


def test_every_gpu_that_a_node_promises_has_a_device():
    nodes = config_files.slurm_conf(CLUSTER, Choices(cgroup=False, accounting=False))
    devices = config_files.gres_conf(CLUSTER, "/dev/null")

    promised = dict(re.findall(r"NodeName=(\S+) .*Gres=gpu:\w+:(\d+)", nodes))
    offered = dict(re.findall(r"NodeName=(\S+) .*File=/dev/null\[0-(\d+)\]", devices))
    assert promised == {name: str(int(last) + 1) for name, last in offered.items()}
    assert len(promised) == 2


@pytest.mark.parametrize("root", [True, False])
def test_the_users_may_use_every_quality_of_service(monkeypatch, root):
    monkeypatch.setattr(config_files, "is_root", lambda: root)
    text = config_files.associations(["ada", "grace"])

    assert text.count("QOS='high,normal,scavenger,short'") == 2
    assert text.count("AdminLevel") == root
    assert text.index("Account - 'lab'") < text.index("Parent - 'lab'") < text.index("User - 'ada'")


def test_another_slurm_brings_its_plugins_and_its_programs_to_the_jobs(tmp_path):
    plugins = tmp_path / "lib/some-machine/slurm-wlm"
    plugins.mkdir(parents=True)
    other = Cluster(Path("/srv/try"), 21000, "ada", tmp_path / "bin")
    lines = config_files.slurm_conf(other, Choices(cgroup=False, accounting=True)).splitlines()

    assert f"PluginDir={plugins}" in lines
    assert "TaskProlog=/srv/try/etc/prolog" in lines
    assert f"PluginDir={plugins}" in config_files.slurmdbd_conf(other).splitlines()
    assert config_files.prolog(other) == f'#!/bin/sh\necho "export PATH={tmp_path}/bin:$PATH"\n'
    assert "PluginDir" not in config_files.slurm_conf(CLUSTER, Choices(cgroup=False, accounting=True))
    assert "PluginDir" not in config_files.slurmdbd_conf(CLUSTER)


def test_another_slurm_without_plugins_is_an_error_that_says_what_to_do(tmp_path):
    other = Cluster(Path("/srv/try"), 21000, "ada", tmp_path / "bin")

    with pytest.raises(DevclusterError, match="no plugins"):
        config_files.slurm_conf(other, Choices(cgroup=False, accounting=True))


# --- a workstation -----------------------------------------------------------------------------------------------

GPUS = tuple(MachineGpu(kind, f"/dev/nvidia{number}", kind) for number, kind in enumerate(("a100", "rtx_4090", "a100")))
NODE = MachineNode(16, 1, 8, 2, 57600, 6400, (14, 15), GPUS)


def desk(machine: MachineNode = NODE, port: int = 16000) -> Cluster:
    return Cluster(Path("/srv/try"), port, "ada", machine=machine)


def lines_of(cluster: Cluster) -> list[str]:
    return config_files.slurm_conf(cluster, Choices(cgroup=True, accounting=True)).splitlines()


def test_a_workstation_claims_what_the_machine_has_and_nothing_is_overridden():
    lines = lines_of(desk())
    (node,) = [line for line in lines if line.startswith("NodeName")]
    words = dict(word.split("=", 1) for word in node.split())
    assert {name: words[name] for name in ("NodeName", "Port", "CPUs", "CpuSpecList", "RealMemory", "Gres")} == {
        "NodeName": "workstation", "Port": "16101", "CPUs": "16", "CpuSpecList": "14,15", "RealMemory": "57600",
        "Gres": "gpu:a100:2,gpu:rtx_4090:1",
    }  # fmt: skip
    assert (words["SocketsPerBoard"], words["CoresPerSocket"], words["ThreadsPerCore"]) == ("1", "8", "2")
    assert not [line for line in lines if "config_overrides" in line]
    assert {"ClusterName=workstation", "DisableRootJobs=YES", "EnforcePartLimits=ALL", "KillWait=30"} <= set(lines)
    assert "AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:rtx_4090" in lines
    assert not [line for line in lines if line.startswith(("AccountingStorageEnforce", "Preempt"))]


def test_a_machine_without_gpus_and_without_anything_kept_says_neither():
    (node,) = [line for line in lines_of(desk(MachineNode(4, 1, 4, 1, 8000))) if line.startswith("NodeName")]
    assert "Gres" not in node
    assert "CpuSpecList" not in node


def test_a_workstation_has_a_partition_for_work_and_one_for_a_short_try():
    parts = [line for line in lines_of(desk()) if line.startswith("PartitionName")]
    assert [line.split()[0] for line in parts] == ["PartitionName=main", "PartitionName=testing"]
    assert ["Default=YES" in line for line in parts] == [True, False]
    assert all(f"DefMemPerCPU={57600 // 14}" in line for line in parts)
    assert "MaxTime=00:30:00" in parts[1]
    assert not [line for line in parts if "OverSubscribe" in line]


@pytest.mark.parametrize(("cores", "gpus", "share"), [(2, 4, 2), (2, 3, 2), (3, 3, None), (4, 3, None), (1, 4, 4)])
def test_jobs_share_cores_where_there_are_fewer_than_gpus(cores, gpus, share):
    listed = tuple(MachineGpu("a100", f"/dev/nvidia{number}", "a") for number in range(gpus))
    text = "\n".join(lines_of(desk(MachineNode(cores, 1, cores, 1, 8000, gpus=listed))))
    assert ("OverSubscribe=FORCE:" in text) == (share is not None)
    assert share is None or text.count(f"OverSubscribe=FORCE:{share}") == 2


def test_its_gpus_are_named_by_their_files_one_line_a_type():
    assert config_files.gres_files(NODE) == (
        "Name=gpu Type=a100 File=/dev/nvidia0,/dev/nvidia2\nName=gpu Type=rtx_4090 File=/dev/nvidia1\n"
    )


def test_two_workstations_on_one_machine_have_different_nodes():
    assert list(desk().nodes) == ["workstation"]
    assert len({*desk(port=15000).nodes, *desk(port=14000).nodes, *desk().nodes}) == 3


@pytest.mark.parametrize("root", [True, False])
def test_the_accounting_of_a_workstation_knows_its_person_and_no_qualities(monkeypatch, root):
    monkeypatch.setattr(config_files, "is_root", lambda: root)
    text = config_files.associations(["ada"], "workstation")
    assert "Cluster - 'workstation'" in text
    assert "User - 'ada':DefaultAccount='workstation'" in text
    assert text.count("AdminLevel") == root
    assert "lab" not in text


def test_on_a_workstation_jobs_are_started_by_the_scheduler_that_writes_it_down_first():
    shared = Choices(cgroup=False, accounting=True)

    assert "bf_interval=5," in conf()["SchedulerParameters"]
    assert "SchedulerParameters=defer,bf_interval=30,sched_interval=2," in config_files.slurm_conf(desk(), shared)
