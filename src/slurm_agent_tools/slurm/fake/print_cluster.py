"""What tells of the cluster: sinfo, sdiag, sstat, and scontrol's show of partitions, nodes, configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from slurm_agent_tools.slurm.fake.answering import Answer, Session, UnknownCommand, megabytes
from slurm_agent_tools.slurm.fake.controller import Controller
from slurm_agent_tools.slurm.fake.fake_job import FakeJob
from slurm_agent_tools.slurm.fake.hardware import FakeNode, FakePartition, host_list, spans
from slurm_agent_tools.units import format_duration

_FULL = {(22, 5): "22.05.8", (24, 11): "24.11.5", (26, 5): "26.05.4"}


def full_version(slurm: Controller) -> str:
    """22.05 as 22.05.8."""
    return _FULL.get(slurm.version, "{}.{:02d}.1".format(*slurm.version))


def run_sinfo(session: Session, words: Sequence[str]) -> Answer:
    """sinfo --version, or --Node with columns of fixed width."""
    slurm = session.slurm
    if list(words[1:]) == ["--version"]:
        return Answer(f"slurm-wlm {full_version(slurm)}\n")
    if list(words[1:3]) != ["--noheader", "--Node"] or not words[3].startswith("--Format=") or len(words) > 4:
        raise UnknownCommand(words)
    columns = [item.split(":") for item in words[3].removeprefix("--Format=").split(",")]
    rows = ""
    for name in sorted(slurm.nodes):
        for part in slurm.partitions.values():
            if name in part.nodes:
                cells = _node_cells(slurm, slurm.nodes[name], part)
                rows += "".join(f"{cells[key][: int(width)]:<{width}}" for key, width in columns) + "\n"
    return Answer(rows)


def _node_cells(slurm: Controller, node: FakeNode, part: FakePartition) -> dict[str, str]:
    used = node.cpus_used if node.down is None else 0
    away = node.cpus - used if not node.usable else 0
    none = "(null)" if slurm.version >= (26, 5) else "gpu:0"
    index = spans(node.gpus_used) or "N/A"
    return {
        "NodeList": node.name,
        "PartitionName": part.name,
        "StateCompact": node.state,
        "CPUsState": f"{used}/{node.cpus - used - away}/{away}/{node.cpus}",
        "Threads": "1",
        "Memory": str(node.memory),
        "FreeMem": str(node.memory - node.memory_used),
        "Gres": f"gpu:{node.gpu_type}:{node.gpus}" if node.gpus else "(null)",
        "GresUsed": f"gpu:{node.gpu_type}:{len(node.gpus_used)}(IDX:{index})" if node.gpus else none,
        "Reason": node.down or node.drained or "none",
    }


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


def show_config(session: Session, _: Sequence[str]) -> Answer:
    """scontrol show config: the lines that the tools read."""
    slurm, named = session.slurm, session.extra
    kind = "accounting_storage/slurmdbd" if slurm.accounting.enabled else "(null)"
    pairs = {
        "AccountingStorageType": kind, "ClusterName": named.get("cluster", "fake"), "DefMemPerNode": "UNLIMITED",
        "JobDefaults": "(null)", "MaxArraySize": "20001", "MaxMemPerNode": "UNLIMITED",
        "MinJobAge": f"{slurm.min_job_age:.0f} sec", "SLURM_VERSION": full_version(slurm),
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


def run_sdiag(session: Session, _: Sequence[str]) -> Answer:
    """sdiag: the figures that the tools read."""
    threads, queue = session.extra.get("threads", "3"), session.extra.get("agent_queue", "0")
    cycle = session.extra.get("mean_cycle", "99")
    return Answer(
        f"Server thread count:  {threads}\nAgent queue size:     {queue}\nAgent count:          0\n\n"
        f"Main schedule statistics (microseconds):\n\tLast cycle:   132\n\tMean cycle:   {cycle}\n\n"
        "Backfilling stats\n\tMean cycle: 289\n"
    )


def run_sstat(session: Session, words: Sequence[str]) -> Answer:
    """sstat of whole jobs."""
    wanted = [int(one) for word in words if word.startswith("--jobs=") for one in word[7:].split(",")]
    form = next((word[9:].split(",") for word in words if word.startswith("--format=")), [])
    if not wanted or not form:
        raise UnknownCommand(words)
    out = err = ""
    for number in wanted:
        parts = session.slurm.parts(number)
        steps = [(job, step) for job in parts if job.state == "RUNNING" for step in job.steps if step.end is None]
        if not parts:
            err += f"sstat: error: couldn't get steps for job {number}\n"
        elif not steps:
            err += f"sstat: error: No steps running for job {number}\n"
        for job, step in steps:
            cells = _use(job, step.step_id, step.memory or 409600)
            out += "|".join(cells[name] for name in form) + "\n"
    return Answer(out, err)


def _use(job: FakeJob, step_id: str, memory: int) -> dict[str, str]:
    usage = f"cpu=00:00:00,energy=0,fs/disk=9894,mem={memory},pages=0,vmem={memory}"
    return {
        "JobID": f"{job.number}.{step_id}", "NTasks": "1", "MaxRSS": str(memory), "AveCPU": "00:00:00",
        "TRESUsageInTot": usage,
    }  # fmt: skip


Show = Callable[[Session, Sequence[str]], Answer]

SHOWS: Mapping[str, Show] = {
    "partition": show_partitions, "config": show_config, "reservation": show_reservations,
}  # fmt: skip
