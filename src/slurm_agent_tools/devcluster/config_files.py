"""The texts of slurm.conf, gres.conf and slurmdbd.conf; that of cgroup.conf is in `cgroups`."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from slurm_agent_tools.devcluster import packages
from slurm_agent_tools.devcluster.definition import Cluster, is_root, letters, me
from slurm_agent_tools.devcluster.hostname import loopback, stands_for
from slurm_agent_tools.devcluster.machine_facts import MachineNode


@dataclass(frozen=True, slots=True)
class Choices:
    """What differs between clusters: memory limits by control groups or polled, accounting, and the lines to add."""

    cgroup: bool
    accounting: bool
    extra: str = ""


def owner() -> str:
    """The user of slurmctld and slurmdbd."""
    return "slurm" if is_root() else me()


def apart() -> bool:
    """Whether clients need a slurm.conf of their own.

    Debian's name of a machine stands for 127.0.1.1. An srun that listens on that address alone, as the daemons do,
    never hears the answers: they go to 127.0.0.1, where its questions came from. The same holds for a name that stands
    for an address of a network.
    """
    return stands_for() != "127.0.0.1"


def slurm_conf(cluster: Cluster, choices: Choices, *, clients: bool = False) -> str:
    """The whole slurm.conf; a line of `choices.extra` takes the place of the default line with the same key."""
    parts = [_site(cluster), _claims(cluster), _listening(clients=clients), _programs(cluster), _times(cluster)]
    parts += [_scheduling(cluster), _memory(cgroup=choices.cgroup)]
    if choices.accounting:
        parts += [_accounting(cluster), _shared(cluster)]
    given = {_key(line) for line in choices.extra.splitlines()} - {""}
    lines = [line for part in parts for line in part.splitlines() if _key(line) not in given]
    return "\n".join([*lines, *_nodes(cluster), *_partitions(cluster), *choices.extra.splitlines()]) + "\n"


def _key(line: str) -> str:
    found = re.match(r"\s*(\w+)\s*=", line)
    return found[1].lower() if found else ""


def _site(cluster: Cluster) -> str:
    folder, base = cluster.folder, cluster.base_port
    host = socket.gethostname().split(".")[0]
    return f"""\
ClusterName={cluster.name}
SlurmctldHost={host}({loopback()})
SlurmUser={owner()}
SlurmdUser={me()}
SlurmctldPort={base + 1}
SlurmdPort={base + 100}
SrunPortRange={base + 500}-{base + 999}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/run/munge/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/state/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
MpiDefault=none
RebootProgram=/bin/false
ReturnToService=2
GresTypes=gpu
"""


def _claims(cluster: Cluster) -> str:
    if cluster.machine is None:
        return "SlurmdParameters=config_overrides\nSlurmctldParameters=idle_on_node_suspend\n"
    # What root's jobs touch no wall holds: they could leave their control group.
    return "DisableRootJobs=YES\nEnforcePartLimits=ALL\n"


def _listening(*, clients: bool) -> str:
    # Daemons listen on the loopback address only.
    words = "NoCtldInAddrAny" if clients and apart() else "NoInAddrAny,NoCtldInAddrAny"
    return f"CommunicationParameters={words}\n"


def _programs(cluster: Cluster) -> str:
    task = f"TaskProlog={cluster.folder}/etc/prolog\n" if prolog(cluster) else ""
    return task + _plugins(cluster)


def _plugins(cluster: Cluster) -> str:
    return "" if cluster.bin_dir is None else f"PluginDir={packages.plugins(cluster.bin_dir)}\n"


def prolog(cluster: Cluster) -> str:
    """The script that each task's environment passes; empty where nothing is to be mended.

    slurmd hands its own SLURM_CONF to jobs: their commands need the clients' one, and the programs of this Slurm.
    """
    lines = [f"echo export SLURM_CONF={cluster.conf}"] if apart() else []
    if cluster.bin_dir is not None:
        lines.append(f'echo "export PATH={cluster.bin_dir}:$PATH"')
    return "\n".join(["#!/bin/sh", *lines, ""]) if lines else ""


def _times(cluster: Cluster) -> str:
    return f"""\
SlurmctldTimeout=60
SlurmdTimeout=20
InactiveLimit=0
KillWait={5 if cluster.machine is None else 30}
MinJobAge=300
MessageTimeout=20
TCPTimeout=5
BatchStartTimeout=10
UnkillableStepTimeout=120
"""


def _scheduling(cluster: Cluster) -> str:
    # Quick rounds of the scheduler: a person or a test waits for each of these jobs. What the backfill scheduler starts
    # is written to disk with the next change only, so on a workstation the main one, which writes, comes first.
    backfill = f"bf_interval={5 if cluster.machine is None else 30}"
    return f"""\
MaxJobCount=200000
MaxArraySize=20001
SchedulerType=sched/backfill
SchedulerParameters=defer,{backfill},sched_interval=2,sched_min_interval=100000,batch_sched_delay=0,max_rpc_cnt=150
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityDecayHalfLife=1-0
PriorityCalcPeriod=1
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightJobSize=100
PriorityWeightPartition=1000
PriorityWeightQOS=5000
"""


def _memory(*, cgroup: bool) -> str:
    if cgroup:
        return """\
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
JobAcctGatherFrequency=task=2
"""
    return """\
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill,UsePss
"""


def _accounting(cluster: Cluster) -> str:
    # AuthInfo does not reach clients of slurmdbd: they take their munge socket from AccountingStoragePass.
    return f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={loopback()}
AccountingStoragePort={cluster.base_port + 2}
AccountingStoragePass=socket={cluster.folder}/run/munge/munge.sock
AccountingStoreFlags=job_comment,job_script,job_env
"""


def _shared(cluster: Cluster) -> str:
    """Who may submit, and what is counted. A workstation is for whoever works at it."""
    if cluster.machine is not None:
        return (
            f"AccountingStorageTRES={','.join(['gres/gpu', *(f'gres/gpu:{kind}' for kind in cluster.machine.types)])}\n"
        )
    return """\
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100
PreemptType=preempt/qos
PreemptMode=REQUEUE
"""


def _nodes(cluster: Cluster) -> list[str]:
    prefix, port = letters(cluster.base_port), cluster.base_port + 101
    place = f"NodeHostname={socket.gethostname().split('.')[0]} NodeAddr={loopback()} Boards=1 State=UNKNOWN"
    if cluster.machine is not None:
        return [f"NodeName={node} Port={at} {_real(cluster.machine)} {place}" for node, at in cluster.nodes.items()]
    common = f"{place} SocketsPerBoard=2 ThreadsPerCore=1"
    plain = f"Feature=avx512 {common}"
    a100, h100 = f"Gres=gpu:a100:4 Feature=a100,ib {common}", f"Gres=gpu:h100:8 Feature=h100,nvlink {common}"
    return [
        f"NodeName={prefix}gpu[01-02] Port=[{port}-{port + 1}] CPUs=32 CoresPerSocket=16 RealMemory=256000 {a100}",
        f"NodeName={prefix}cpu[01-02] Port=[{port + 2}-{port + 3}] CPUs=64 CoresPerSocket=32 RealMemory=192000 {plain}",
        f"NodeName={prefix}spec01 Port={port + 4} CPUs=96 CoresPerSocket=48 RealMemory=1000000 {h100}",
    ]


def _real(machine: MachineNode) -> str:
    """What the machine has, in the words of slurm.conf: `slurmd -C`'s, less what jobs do not get."""
    words = [
        f"CPUs={machine.cpus}", f"SocketsPerBoard={machine.sockets}", f"CoresPerSocket={machine.cores_per_socket}",
        f"ThreadsPerCore={machine.threads_per_core}", f"RealMemory={machine.memory}",
    ]  # fmt: skip
    if machine.reserved:
        words.append(f"CpuSpecList={','.join(map(str, machine.reserved))}")
    if machine.gpus:
        words.append(f"Gres={','.join(f'gpu:{kind}:{count}' for kind, count in machine.types.items())}")
    return " ".join(words)


def _work(machine: MachineNode) -> list[str]:
    """A partition for work, and one that is asked first for a short try."""
    common = f"Nodes=ALL DefMemPerCPU={max(1, machine.memory // machine.usable)} State=UP"
    # A GPU is not left idle for the lack of a core: where there are more GPUs than cores, jobs share cores.
    share = -(-len(machine.gpus) // machine.cores)
    shared = f" OverSubscribe=FORCE:{share}" if share > 1 else ""
    return [
        f"PartitionName=main Default=YES MaxTime=30-00:00:00 DefaultTime=01:00:00 {common}{shared}",
        f"PartitionName=testing PriorityTier=10 MaxTime=00:30:00 DefaultTime=00:10:00 {common}{shared}",
    ]


def _partitions(cluster: Cluster) -> list[str]:
    if cluster.machine is not None:
        return _work(cluster.machine)
    prefix = letters(cluster.base_port)
    limits = {
        f"gpu Nodes={prefix}gpu[01-02]": "MaxTime=2-00:00:00 DefaultTime=01:00:00 DefMemPerCPU=2000",
        f"cpu Nodes={prefix}cpu[01-02] Default=YES": "MaxTime=7-00:00:00 DefaultTime=00:30:00 DefMemPerCPU=1000",
        f"special Nodes={prefix}spec01 PriorityTier=10 MaxNodes=1": (
            "MaxTime=04:00:00 DefaultTime=00:10:00 DefMemPerCPU=4000"
        ),
    }
    return [f"PartitionName={who} {what} State=UP" for who, what in limits.items()]


def gres_files(machine: MachineNode) -> str:
    """The machine's GPUs by their device files, one line a type."""
    files = {kind: ",".join(gpu.file for gpu in machine.gpus if gpu.type == kind) for kind in machine.types}
    return "".join(f"Name=gpu Type={kind} File={listed}\n" for kind, listed in files.items())


def gres_conf(cluster: Cluster, device: str) -> str:
    """Fake GPUs. File= is a must: with Count= alone slurmd reports none and the node is drained."""
    prefix = letters(cluster.base_port)
    return (
        f"NodeName={prefix}gpu[01-02] Name=gpu Type=a100 File={device}[0-3]\n"
        f"NodeName={prefix}spec01 Name=gpu Type=h100 File={device}[0-7]\n"
    )


def slurmdbd_conf(cluster: Cluster) -> str:
    """The accounting daemon; its database is reached over a socket named in its environment, so without a password."""
    return f"""\
AuthType=auth/munge
AuthInfo=socket={cluster.folder}/run/munge/munge.sock
DbdHost=localhost
DbdAddr={loopback()}
CommunicationParameters=NoInAddrAny
DbdPort={cluster.base_port + 2}
SlurmUser={owner()}
DebugLevel=info
LogFile={cluster.folder}/log/slurmdbd.log
PidFile={cluster.folder}/state/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={owner()}
StorageLoc=slurm_acct_db
{_plugins(cluster)}"""


def associations(users: list[str], name: str = "devcluster") -> str:
    """The file that `sacctmgr load` reads. One load is one commit, and each commit costs half a second."""
    head = [f"Cluster - '{name}':Fairshare=1:QOS='normal'", "Parent - 'root'"]
    if is_root():
        head.append("User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1")
    if name != "devcluster":
        account = f"Account - '{name}':Description='{name}':Organization='{name}':Fairshare=1"
        listed = [f"User - '{user}':DefaultAccount='{name}':Fairshare=1" for user in users]
        return "\n".join([*head, account, f"Parent - '{name}'", *listed]) + "\n"
    accounts = [
        f"Account - '{name}':Description='{name}':Organization='{name}':Fairshare=1" for name in ("lab", "guest")
    ]
    rights = "DefaultAccount='lab':DefaultQOS='normal':Fairshare=1:QOS='high,normal,scavenger,short'"
    return "\n".join([*head, *accounts, "Parent - 'lab'", *(f"User - '{user}':{rights}" for user in users)]) + "\n"
