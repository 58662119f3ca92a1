"""scontrol: one job in full, partitions, the configuration, release, and the script that Slurm holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from slurm_agent_tools.errors import SlurmRefused, SlurmUncertain
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import (
    NO_TASK,
    JobId,
    parse_array,
    parse_elapsed,
    parse_job_id,
    parse_time,
    parse_time_limit,
    parse_tres,
    tres_memory,
)

_UNKNOWN = ("Invalid job id specified", "Invalid job array task", "Job/step already completed")


def job_argv(job_id: JobId) -> list[str]:
    """All records of one job: tasks and components come as several."""
    return ["scontrol", "show", "job", "--details", str(job_id)]


def all_jobs_argv() -> list[str]:
    """All records of all jobs that the controller holds, and before them how many they are."""
    return ["scontrol", "show", "job", "--details", "--verbose"]


def unknown(done: Completed) -> bool:
    """True when the controller says that it has no such job."""
    said = columns.text(done.stderr) + columns.text(done.stdout)
    return done.exit_code != 0 and any(sign in said for sign in _UNKNOWN)


# A name may hold anything. One that holds the line that ends names is cut there: the columns of squeue tell the name
# in full, and the guard compares names, so nothing rests on it. Arguments stand behind Command= and may hold anything
# too: what is before them is read from the front, what is behind them line by line, where the last one counts.
# 26.05 puts a line with an id of its own behind the name and the line that submitted behind the arguments.
_RECORD = re.compile(r"(?:^|\n\n)JobId=(?=\d)", re.ASCII)

_OWNER = "\n   UserId="
_FIELD = re.compile(r"(?:^|[ \n]) *([A-Z][A-Za-z:/]*)=")
_COMMAND, _SUBMITTED, _FOLDER = "\n   Command=", "\n   SubmitLine=", "\n   WorkDir="
_OWN_ID = re.compile(r"\n   SLUID=\w+\Z")
_LINE = re.compile(r"\n   ([A-Z][A-Za-z:/]*)=")

_BEGIN = re.compile(r"(?:^|\n\n)JobId=(\d+)", re.ASCII)

_NUMBER = re.compile(r"JobId=[1-9]\d{0,9} ", re.ASCII)  # 1_0 and 01 are numbers to Python, not to Slurm

_COUNTED = re.compile(r"last_update_time=\S*, records=(\d+)\n", re.ASCII)
_NODE_BY_NODE = frozenset({"Nodes", "Mem", "GRES"})


def parse_details(done: Completed, base: int) -> tuple[Job, ...]:
    """Those records of one job that no text in them can have made up. Raises SlurmUnreachable and SlurmGarbled.

    A user may write whole records, with blank lines and all, into a comment. Of two with one number neither counts.
    """
    columns.check(done)
    text = columns.text(done.stdout)
    times = Counter(_BEGIN.findall(text))
    try:
        found = [_job(block) for block in _records(text) if _plain(block)]
    except (ValueError, KeyError) as error:
        raise columns.garbled(done, str(error)) from error
    return tuple(job for job in found if base in {job.job_id.base, job.raw_id} and times[str(job.raw_id)] == 1)


def parse_every(done: Completed) -> tuple[Job, ...] | None:
    """All jobs' records, but for those that cannot be read. Raises SlurmUnreachable and SlurmGarbled.

    None where more begins like a record than Slurm printed: then nobody can tell which are its own.
    """
    if unknown(done):
        return ()
    columns.check(done)
    text = columns.text(done.stdout)
    counted = _COUNTED.match(text)
    if done.truncated or counted is None:
        raise columns.garbled(done, text[:300])
    text = text[counted.end() :]
    begins = [match.start() for match in _BEGIN.finditer(text)]
    if len(begins) != int(counted[1]):
        return None
    found = []
    for start, end in pairwise([*begins, len(text)]):
        block = text[start:end].lstrip("\n")
        with suppress(ValueError, KeyError):  # what others write into a record of theirs refuses nobody an answer
            found += [_job(block)] if _plain(block) else []
    return tuple(found)


def _plain(block: str) -> bool:
    """Whether its number is written as Slurm does, and nothing before the command twice: the other may be a user's."""
    facts = block.partition(_OWNER)[2].partition(_COMMAND)[0]
    names = [name for name in _FIELD.findall(facts) if name not in _NODE_BY_NODE]
    return block.count(_OWNER) == 1 and len(names) == len(set(names)) and _NUMBER.match(block) is not None


def parse_jobs(done: Completed) -> tuple[Job, ...]:
    """One record each. Raises SlurmUnreachable and SlurmGarbled."""
    columns.check(done)
    try:
        return tuple(_job(block) for block in _records(columns.text(done.stdout)))
    except (ValueError, KeyError) as error:
        raise columns.garbled(done, str(error)) from error


def _records(text: str) -> list[str]:
    """One text a job; a blank line in a job's name ends none, because the line with its owner is still to come."""
    records: list[str] = []
    for piece in _RECORD.split(text):
        if records and _OWNER not in records[-1]:
            records[-1] += f"\n\nJobId={piece}"
        elif piece.strip():
            records.append(f"JobId={piece}")
    return records


def _job(block: str) -> Job:
    cell = _cells(block)
    state = columns.state_word(cell["JobState"])
    code, signal = columns.exit_status(cell.get("ExitCode", ""))
    derived = columns.exit_status(cell.get("DerivedExitCode", ""))
    going = state in {"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING"}
    pending = state == "PENDING"
    elapsed = None if pending else round(parse_elapsed(cell["RunTime"].replace("INVALID", "")) or 0)
    nodes = columns.stated(cell.get("NodeList", ""))
    begun = not pending and not columns.never_ran(state, nodes, elapsed)
    started = parse_time(cell["StartTime"]) if begun else None
    return Job(
        job_id=_id(cell),
        name=cell["JobName"],
        state=state,
        sources=("scontrol",),
        raw_state=cell["JobState"],
        user=cell["UserId"].partition("(")[0],
        partition=cell["Partition"],
        reason=columns.reason(cell["Reason"], state, started=started is not None),
        exit_code=None if going else code,
        signal=None if going else signal,
        short_code=None if going or code is None else False,
        derived_exit_code=None if going else derived[0],
        derived_signal=None if going else derived[1],
        submitted=parse_time(cell["SubmitTime"]),
        eligible=parse_time(cell["EligibleTime"]),
        started=started,
        expected_start=parse_time(cell["StartTime"]) if pending else None,
        ended=None if going else parse_time(cell["EndTime"]),
        elapsed_seconds=elapsed,
        nodes=nodes,
        required_nodes=columns.stated(cell.get("ReqNodeList", "")),
        resources=_resources(cell),
        restarts=int(cell["Restarts"]),
        requeue=cell["Requeue"] == "1",
        dependency=columns.stated(cell["Dependency"]),
        comment=cell.get("Comment", "").strip() or None,
        work_dir=cell["WorkDir"],
        stdout=cell.get("StdOut"),
        stderr=cell.get("StdErr") or cell.get("StdOut"),  # 26.05 shows none where both go to one file
        command=cell.get("Command"),
        raw_id=int(cell["JobId"]),
        qos=cell.get("QOS"),
        nice=int(cell["Nice"]) if "Nice" in cell else None,
    )


def _cells(block: str) -> dict[str, str]:
    start = block.index(" JobName=") + len(" JobName=")
    end = block.index(_OWNER)
    cells, tail = {"JobName": _OWN_ID.sub("", block[start:end])}, block[end:]
    for key in ("JobId", "ArrayJobId", "ArrayTaskId", "ArrayTaskThrottle", "HetJobId", "HetJobOffset"):
        match = re.search(rf"(?:^| ){key}=(\S+)", block[:start])
        if match is not None:
            cells[key] = match[1]
    facts, _, rest = tail.partition(_COMMAND)
    command, sign, paths = rest.rpartition(_FOLDER)
    pairs = [(key, value) for key, value in _pairs(facts, _FIELD) if key not in _NODE_BY_NODE]
    if len(dict(pairs)) < len(pairs):  # one of them stands in what a user wrote, such as a key for accounting
        raise ValueError("a field is told twice")
    cells |= {key: value for key, value in pairs if key not in cells}
    command = command.partition(_SUBMITTED)[0].strip()
    return cells | {"": facts, "Command": command} | dict(_pairs(sign + paths, _LINE))


def _pairs(text: str, mark: re.Pattern[str]) -> list[tuple[str, str]]:
    marks = list(mark.finditer(text))
    ends = [following.start() for following in marks[1:]] + [len(text)]
    return [(found[1], text[found.end() : end].strip()) for found, end in zip(marks, ends, strict=True)]


def _id(cell: dict[str, str]) -> JobId:
    if "ArrayJobId" in cell:
        base, tasks = cell["ArrayJobId"], cell["ArrayTaskId"]
        if tasks == NO_TASK:  # the own record of an array whose waiting tasks were cancelled (measured)
            return JobId(int(base))
        return parse_job_id(f"{base}_{tasks}" if tasks.isdigit() else f"{base}_[{tasks}]")
    if "HetJobId" in cell:
        return parse_job_id(f"{cell['HetJobId']}+{cell['HetJobOffset']}")
    return parse_job_id(cell["JobId"])


def _resources(cell: dict[str, str]) -> Resources:
    # What it holds, else what it asks for: one field on 22.05, two on later versions.
    counted = [cell.get(name, "(null)") for name in ("TRES", "AllocTRES", "ReqTRES")]
    tres = parse_tres(next((text for text in counted if text != "(null)"), ""))
    nodes = int(cell["NumNodes"].split("-")[0]) if cell.get("NumNodes") else None
    if cell["JobState"] == "PENDING" and "node" in tres:
        nodes = int(tres["node"])  # NumNodes of a pending job is an estimate, by its CPUs (measured)
    cpus = int(cell["NumCPUs"].split("-")[0])
    gpus = int(tres["gres/gpu"]) if "gres/gpu" in tres else _gres(cell, nodes or 1)
    placed = [(int(size) * 2**20, sum(map(int, _PLACED.findall(gres)))) for size, gres in _ALLOCATED.findall(cell[""])]
    memory = _memory_of(cell, tres, nodes or 1, cpus, gpus)
    tasks = cell.get("ArrayTaskId", "").replace(NO_TASK, "")
    array_tasks = None
    if tasks:
        array_tasks = 1 if tasks.isdigit() else parse_array(tasks).count
    throttle = int(cell["ArrayTaskThrottle"]) if cell.get("ArrayTaskThrottle", "").isdigit() else None
    return Resources(
        partition=cell["Partition"],
        nodes=nodes,
        cpus=cpus,
        gpus=gpus,
        memory_bytes=memory,
        memory_per_gpu_bytes=_per_gpu(memory, gpus, placed) if memory is not None and gpus else None,
        memory_per_node_bytes=max((size for size, _ in placed), default=memory // nodes if memory and nodes else None),
        time_limit_seconds=columns.time_limit(cell["TimeLimit"]),
        array_tasks=array_tasks,
        array_concurrency=None if array_tasks is None else min(array_tasks, throttle or array_tasks),
    )


# What a started job holds on a node, or on each of several alike:
# `Nodes=a[1-2] CPU_IDs=0 Mem=4096 GRES=gpu:x:2(IDX:0-1)`.
_ALLOCATED = re.compile(r"\n     Nodes=\S+ CPU_IDs=\S+ Mem=(\d+) GRES=(\S*)")

_PLACED = re.compile(r"gpu(?::[^:(,]+)?:(\d+)\(")


def _memory_of(cell: dict[str, str], tres: dict[str, str], nodes: int, cpus: int, gpus: int) -> int | None:
    """Total memory. A pending job's TRES do not follow a change of its nodes or CPUs, its options do (measured)."""
    sizes = [tres_memory(tres["mem"])] if "mem" in tres else []
    if cell["JobState"] == "PENDING":
        per_gpu = re.search(r"gpu:(\d+)", cell.get("MemPerTres", ""))
        if per_gpu is not None:  # goes before the partition's default per CPU, which is shown all the same
            sizes.append(int(per_gpu[1]) * 2**20 * gpus)
        else:
            sizes.append(tres_memory(cell.get("MinMemoryNode", "0")) * nodes)
            sizes.append(tres_memory(cell.get("MinMemoryCPU", "0")) * cpus)
    return max(sizes) if any(sizes) else None


def _per_gpu(memory: int, gpus: int, placed: list[tuple[int, int]]) -> int:
    """The largest share of a GPU over the nodes; an average while the job is not placed."""
    return max([memory // gpus, *(size // here for size, here in placed if here)])


_GPU = re.compile(r"gres[:/]gpu(?::[^:,=]+)?[:=](\d+)")


def _gres(cell: dict[str, str], nodes: int) -> int:
    """GPUs of a job on a cluster whose accounting does not count them."""
    for key, times in (("TresPerJob", 1), ("TresPerNode", nodes)):
        counts = _GPU.findall(cell.get(key, ""))
        if counts:
            return sum(map(int, counts)) * times
    return 0


# --- partitions and configuration ------------------------------------------------------------------------------


def partitions_argv() -> list[str]:
    """Every partition, one a line."""
    return ["scontrol", "show", "partition", "--oneliner"]


def parse_partitions(done: Completed) -> tuple[Partition, ...]:
    """Partitions without what their nodes have. Raises SlurmUnreachable and SlurmGarbled."""
    columns.check(done)
    try:
        return tuple(_partition(line) for line in columns.text(done.stdout).split("\n") if line.strip())
    except (ValueError, KeyError) as error:
        raise columns.garbled(done, str(error)) from error


_LIMITS = ("AllowGroups", "AllowAccounts", "DenyAccounts", "AllowQos", "DenyQos", "RootOnly")

_NOBODY_LEFT_OUT = frozenset({"ALL", "NO", "N/A", "(null)", ""})


def _partition(line: str) -> Partition:
    cell = dict(re.findall(r"(\w+)=(\S*)", line))
    tres = parse_tres("" if cell.get("TRES", "(null)") == "(null)" else cell["TRES"])
    return Partition(
        name=cell["PartitionName"],
        state=cell["State"],
        default=cell["Default"] == "YES",
        nodes=int(cell["TotalNodes"]),
        max_time_seconds=_time(cell["MaxTime"]),
        default_time_seconds=_time(cell["DefaultTime"]),
        max_nodes=None if cell["MaxNodes"] == "UNLIMITED" else int(cell["MaxNodes"]),
        def_mem_per_cpu=_memory(cell.get("DefMemPerCPU")),
        def_mem_per_node=_memory(cell.get("DefMemPerNode")),
        def_mem_per_gpu=_memory(_job_default(cell.get("JobDefaults", ""), "DefMemPerGPU")),
        def_cpu_per_gpu=int(_job_default(cell.get("JobDefaults", ""), "DefCpuPerGPU") or 0) or None,
        max_mem_per_node=_memory(cell.get("MaxMemPerNode")),
        max_mem_per_cpu=_memory(cell.get("MaxMemPerCPU")),
        exclusive=cell.get("OverSubscribe") == "EXCLUSIVE" or cell.get("Exclusive") == "NODE",  # until, and since 26.05
        total_cpus=int(cell["TotalCPUs"]),
        total_gpus=int(tres.get("gres/gpu", "0")),
        tier=int(cell.get("PriorityTier", "1")),
        preempt_mode=cell.get("PreemptMode", "OFF"),
        limited_to=tuple([f"{name}={cell[name]}" for name in _LIMITS if cell.get(name, "ALL") not in _NOBODY_LEFT_OUT]),
    )


def with_defaults(part: Partition, config: Mapping[str, str]) -> Partition:
    """The cluster's own defaults, and limits of memory, where the partition states none (slurm.conf(5))."""
    cluster = config.get("JobDefaults", "")
    per_cpu, per_node = _memory(config.get("DefMemPerCPU")), _memory(config.get("DefMemPerNode"))
    if part.def_mem_per_cpu or part.def_mem_per_node:
        per_cpu, per_node = part.def_mem_per_cpu, part.def_mem_per_node
    most_cpu, most_node = _memory(config.get("MaxMemPerCPU")), _memory(config.get("MaxMemPerNode"))
    if part.max_mem_per_cpu or part.max_mem_per_node:
        most_cpu, most_node = part.max_mem_per_cpu, part.max_mem_per_node
    return replace(
        part, def_mem_per_cpu=per_cpu, def_mem_per_node=per_node, max_mem_per_cpu=most_cpu, max_mem_per_node=most_node,
        def_mem_per_gpu=part.def_mem_per_gpu or _memory(_job_default(cluster, "DefMemPerGPU")),
        def_cpu_per_gpu=part.def_cpu_per_gpu or int(_job_default(cluster, "DefCpuPerGPU") or 0) or None,
    )  # fmt: skip


def _job_default(text: str, name: str) -> str | None:
    """One of a list of job defaults."""
    return dict(re.findall(r"(\w+)=(\d+)", text)).get(name)


def _time(text: str) -> int | None:
    return None if text in {"UNLIMITED", "NONE"} else parse_time_limit(text)


def _memory(text: str | None) -> int | None:
    return None if text is None or not text.isdigit() else int(text) * 2**20


def config_argv() -> list[str]:
    """The configuration: cluster name, version, kind of accounting."""
    return ["scontrol", "show", "config"]


def parse_config(done: Completed) -> dict[str, str]:
    """Key -> value. Raises SlurmUnreachable and SlurmGarbled."""
    columns.check(done)
    values = dict(re.findall(r"^(\w+)\s*= (.*)$", columns.text(done.stdout), re.MULTILINE))
    if "ClusterName" not in values:
        raise columns.garbled(done, "no ClusterName")
    return values


# --- changes -----------------------------------------------------------------------------------------------------


def script_argv(job_id: JobId) -> list[str]:
    """The batch script that Slurm holds, on standard output."""
    return ["scontrol", "write", "batch_script", str(job_id), "-"]


def awaits_accounting(done: Completed) -> bool:
    """Whether slurmctld refuses a change until slurmdbd has numbered the job.

    Slurm 22.05 does so while that request is on its way, after it has waited for 5 seconds (measured); 24.11 does not.
    """
    return done.exit_code != 0 and "DB index is being set" in columns.message(done)


def check_change(done: Completed) -> None:
    """Raise SlurmUncertain where it may have been carried out or will be possible soon, SlurmRefused for a no."""
    if awaits_accounting(done):
        raise SlurmUncertain(f"slurmdbd is slow, and until it answers slurmctld refuses {' '.join(done.argv[:2])}")
    if done.exit_code is None or done.exit_code < 0 or (done.exit_code != 0 and columns.silent(done)):
        raise SlurmUncertain(f"{' '.join(done.argv[:2])} got no answer: {columns.message(done) or 'time limit'}")
    if done.exit_code != 0:
        raise SlurmRefused(f"Slurm refused {' '.join(done.argv[:2])}: {columns.message(done)}")
