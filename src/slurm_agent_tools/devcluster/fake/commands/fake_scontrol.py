"""scontrol: what it shows of the cluster, a job's script, and the way to the jobs and to what changes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from slurm_agent_tools.devcluster.fake.answering import (
    Answer,
    Command,
    Session,
    UnknownCommand,
    full_version,
    megabytes,
)
from slurm_agent_tools.devcluster.fake.commands.fake_scontrol_change import CHANGES, run_change, run_update
from slurm_agent_tools.devcluster.fake.commands.fake_scontrol_job import show_job
from slurm_agent_tools.devcluster.fake.controller import Controller
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition, host_list, spans
from slurm_agent_tools.units import format_duration


def show_partitions(session: Session, words: Sequence[str]) -> Answer:
    """scontrol show partition --oneliner."""
    if list(words[3:]) != ["--oneliner"]:
        raise UnknownCommand(words)
    return Answer("".join(f"{_partition(session.slurm, part)}\n" for part in session.slurm.partitions.values()))


def _partition(slurm: Controller, part: FakePartition) -> str:
    nodes = [slurm.nodes[name] for name in part.nodes]
    cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
    tres = f"cpu={cpus},mem={megabytes(sum(node.memory for node in nodes))},node={len(nodes)},billing={cpus}"
    kinds = sorted({node.gpu_type for node in nodes if node.gpus})
    if gpus:
        tres += f",gres/gpu={gpus}"
        tres += "".join(
            f",gres/gpu:{kind}={sum(node.gpus for node in nodes if node.gpu_type == kind)}" for kind in kinds
        )
    new = slurm.version >= (26, 5)
    alone = f"Exclusive={'NODE' if part.exclusive else 'NO'}" if new else "ExclusiveUser=NO"
    share = "EXCLUSIVE" if part.exclusive and not new else "NO"
    sockets = " MaxCPUsPerSocket=UNLIMITED" if slurm.modern else ""
    memory = "DefMemPerNode=UNLIMITED" if part.def_mem_per_cpu is None else f"DefMemPerCPU={part.def_mem_per_cpu}"
    defaults = "(null)" if part.def_mem_per_gpu is None else f"DefMemPerGPU={part.def_mem_per_gpu}"
    return (
        f"PartitionName={part.name} AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL "
        f"Default={'YES' if part.default else 'NO'} QoS=N/A DefaultTime={_time(part.default_time, 'NONE')} "
        f"DisableRootJobs=NO {alone} GraceTime=0 Hidden=NO MaxNodes={part.max_nodes or 'UNLIMITED'} "
        f"MaxTime={_time(part.max_time, 'UNLIMITED')} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED{sockets} "
        f"Nodes={host_list(part.nodes)} PriorityJobFactor=1 PriorityTier={part.tier} RootOnly=NO ReqResv=NO "
        f"OverSubscribe={share} OverTimeLimit=NONE PreemptMode=REQUEUE State={'UP' if part.up else 'DOWN'} "
        f"TotalCPUs={cpus} TotalNodes={len(nodes)} SelectTypeParameters=NONE JobDefaults={defaults} {memory} "
        f"MaxMemPerNode=UNLIMITED TRES={tres}"
    )


def _time(value: int | None, none: str) -> str:
    return none if value is None else format_duration(value)


_WORDS = {"mix": "MIXED", "alloc": "ALLOCATED", "drng": "MIXED+DRAIN", "drain": "IDLE+DRAIN"}


def show_nodes(session: Session, words: Sequence[str]) -> Answer:
    """scontrol show nodes --details --oneliner."""
    if list(words[3:]) != ["--details", "--oneliner"]:
        raise UnknownCommand(words)
    return Answer(
        "".join(f"{_node(session.slurm, session.slurm.nodes[name])}\n" for name in sorted(session.slurm.nodes))
    )


def _node(slurm: Controller, node: FakeNode) -> str:
    gpus, index = f"gpu:{node.gpu_type}:".replace("::", ":"), spans(node.gpus_used) or "N/A"
    used = "" if slurm.modern else "GresUsed=gpu:0 "  # later versions leave it out where there are none
    if node.gpus:
        used = f"GresUsed={gpus}{len(node.gpus_used)}(IDX:{index}) "
    partitions = ",".join(part.name for part in slurm.partitions.values() if node.name in part.nodes)
    why = node.down or node.drained
    reason = f" Reason={why} [root@{int(node.since)}]" if why else ""
    return (
        f"NodeName={node.name} Arch=x86_64 CoresPerSocket={node.cpus}  CPUAlloc={node.cpus_used} "
        f"CPUEfctv={node.cpus} CPUTot={node.cpus} CPULoad=0.10 AvailableFeatures={','.join(node.features) or '(null)'} "
        f"Gres={gpus + str(node.gpus) if node.gpus else '(null)'} GresDrain=N/A {used}NodeAddr={node.name} "
        f"OS=Linux 6.1.0 #1 SMP  RealMemory={node.memory} AllocMem={node.memory_used} "
        f"FreeMem={node.memory - node.memory_used} State={_WORDS.get(node.state, node.state.upper())} ThreadsPerCore=1 "
        f"Partitions={partitions}  CfgTRES=cpu={node.cpus} AllocTRES={reason}"
    )


def show_config(session: Session, _: Sequence[str]) -> Answer:
    """scontrol show config: the lines that the tools read."""
    slurm, named = session.slurm, session.extra
    kind = "accounting_storage/slurmdbd" if slurm.accounting.enabled else "(null)"
    pairs = {
        "AccountingStorageType": kind, "ClusterName": named.get("cluster", "fake"), "DefMemPerNode": "UNLIMITED",
        "JobDefaults": "(null)", "MaxArraySize": "20001", "MaxMemPerNode": "UNLIMITED",
        "MinJobAge": f"{slurm.min_job_age:.0f} sec", "PreemptType": "preempt/none",
        "PrivateData": named.get("private", "none"),
        "SLURM_VERSION": full_version(slurm),
    }  # fmt: skip
    head = f"Configuration data as of {int(slurm.now)}\n"
    return Answer(head + "".join(f"{key:<23} = {value}\n" for key, value in pairs.items()) + "\n")


def show_reservations(session: Session, words: Sequence[str]) -> Answer:
    """scontrol show reservation --oneliner."""
    if list(words[3:]) != ["--oneliner"]:
        raise UnknownCommand(words)
    return Answer(session.extra.get("reservations", "") or "No reservations in the system\n")


def write_script(session: Session, words: Sequence[str]) -> Answer:
    """scontrol write batch_script ID -."""
    if list(words[2:3]) != ["batch_script"] or words[-1] != "-":
        raise UnknownCommand(words)
    parts = session.slurm.parts(int(re.split(r"[_+]", words[3])[0]))
    if not parts:
        return Answer(err="job script retrieval failed: Invalid job id specified\n", code=int(session.slurm.modern))
    return Answer(parts[0].request.script.decode("utf-8", "surrogateescape"))


def run_ping(_: Session, _words: Sequence[str]) -> Answer:
    """scontrol ping."""
    return Answer("Slurmctld(primary) at fake is UP\n")


def run_scontrol(session: Session, words: Sequence[str]) -> Answer:
    """scontrol show, write, ping, update and the changes of a job."""
    verb = words[1] if len(words) > 1 else ""
    if verb == "show" and len(words) > 2:
        if words[2] in {"job", "jobs"}:
            return show_job(session, words)
        if words[2] in _SHOWS:
            return _SHOWS[words[2]](session, words)
    if verb in CHANGES and len(words) > 2:
        return run_change(session, words)
    if verb in _VERBS:
        return _VERBS[verb](session, words)
    raise UnknownCommand(words)


_SHOWS: Mapping[str, Command] = {
    "partition": show_partitions, "nodes": show_nodes, "config": show_config, "reservation": show_reservations,
}  # fmt: skip

_VERBS: Mapping[str, Command] = {"update": run_update, "write": write_script, "ping": run_ping}
