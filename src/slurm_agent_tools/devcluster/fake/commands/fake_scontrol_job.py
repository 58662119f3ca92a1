"""scontrol show job --details, in the form of each version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slurm_agent_tools.devcluster.fake.answering import (
    Answer,
    Session,
    UnknownCommand,
    elapsed,
    megabytes,
    named_jobs,
    seconds,
)
from slurm_agent_tools.devcluster.fake.controller import Controller
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob, Share
from slurm_agent_tools.devcluster.fake.hardware import host_list, spans
from slurm_agent_tools.devcluster.fake.placement import size_of
from slurm_agent_tools.devcluster.fake.tres_text import allocated, requested
from slurm_agent_tools.units import format_duration

_NEWEST = (26, 5)


def show_job(session: Session, words: Sequence[str]) -> Answer:
    """One job with its parts, or all."""
    rest = [word for word in words[3:] if word not in {"--details", "-d", "--verbose"}]
    if any(word.startswith("-") for word in rest):
        raise UnknownCommand(words)
    slurm = session.slurm
    if not rest:
        known = slurm.known()
        jobs: Iterable[FakeJob] = known
        if not known:
            return Answer(f"{_count(session, words, 0)}No jobs in the system\n")
    else:
        wanted = named_jobs(slurm, rest[0])
        jobs = list(wanted.jobs) or ([wanted.rest] if wanted.rest is not None and wanted.tasks else [])
        if not jobs:
            if slurm.parts(int(rest[0].partition("_")[0].partition("+")[0])):
                return Answer(f"Job {rest[0]} not found\n", code=1)
            return Answer(err="slurm_load_jobs error: Invalid job id specified\n", code=1)
    shown = _ordered(jobs)
    return Answer(_count(session, words, len(shown)) + "".join(_record(slurm, job) for job in shown))


def _count(session: Session, words: Sequence[str], number: int) -> str:
    """The line that goes before the records where it was asked to tell more."""
    return f"last_update_time={int(session.slurm.now)}, records={number}\n" if "--verbose" in words else ""


def _ordered(jobs: Iterable[FakeJob]) -> list[FakeJob]:
    """The record with the job's own number first, then the newest."""
    found = sorted(jobs, key=lambda job: -job.number)
    return [job for job in found if job.number == job.base] + [job for job in found if job.number != job.base]


def _record(slurm: Controller, job: FakeJob) -> str:
    new = slurm.version >= _NEWEST
    lines = [_first(job), *([f"SLUID=s{job.number:013X}"] if new else [])]
    if job.het is not None:
        lines.append(f"HetJobIdSet={job.het}-{job.het + job.het_size - 1}")
    lines += [*_facts(slurm, job), *_times(slurm, job), *_places(job), *_sizes(slurm, job)]
    lines += _paths(slurm, job)
    end = "\n\n" if new else "\n   \n\n"
    return "\n   ".join(lines) + end


def _first(job: FakeJob) -> str:
    ids = f"JobId={job.number}"
    if job.array is not None:
        tasks = job.task if job.task is not None else job.listed
        ids += f" ArrayJobId={job.array} ArrayTaskId={tasks}"
        if job.request.throttle:
            ids += f" ArrayTaskThrottle={job.request.throttle}"
    if job.het is not None:
        ids += f" HetJobId={job.het} HetJobOffset={job.offset}"
    return f"{ids} JobName={job.request.name}"


def _facts(slurm: Controller, job: FakeJob) -> list[str]:
    failed = f" FailedNode={job.failed_node}" if slurm.modern and job.failed_node and job.state == "NODE_FAIL" else ""
    batch = int(job.offset == 0)
    shown = f"{job.code}:{job.signal}"
    return [
        f"UserId={job.user}({job.uid}) GroupId={job.user}({job.uid}) MCS_label=N/A",
        f"Priority={job.priority} Nice={job.request.nice} Account={job.request.account} QOS={job.request.qos}",
        f"JobState={job.state} Reason={job.reason.replace(' ', '_')}{failed} Dependency={job.dependency_text}",
        f"Requeue={int(job.request.requeue)} Restarts={job.restarts} BatchFlag={batch} Reboot=0 ExitCode={shown}",
        f"DerivedExitCode={job.derived[0]}:{job.derived[1]}",
    ]


def _times(slurm: Controller, job: FakeJob) -> list[str]:
    limit = "UNLIMITED" if job.time_limit < 0 else format_duration(job.time_limit)
    deadline = "N/A" if job.request.deadline is None else str(int(job.submitted + job.request.deadline))
    begin = job.begin if job.begin is not None and job.begin > slurm.now else job.expected
    start = begin if job.state == "PENDING" else job.start
    end = job.end
    if job.active:
        end = None if start is None or job.time_limit < 0 else start + job.time_limit
    eligible = job.eligible if job.eligible is not None or job.held else begin
    lines = [
        f"RunTime={format_duration(int(elapsed(job, slurm.now)))} TimeLimit={limit} TimeMin=N/A",
        f"SubmitTime={int(job.submitted)} EligibleTime={seconds(eligible, 'Unknown')}",
        f"AccrueTime={seconds(job.eligible, 'Unknown')}",
        f"StartTime={seconds(start, 'Unknown')} EndTime={seconds(end, 'Unknown')} Deadline={deadline}",
    ]
    if job.state != "PENDING":
        lines.append(f"PreemptEligibleTime={seconds(job.start, 'None')} PreemptTime={seconds(job.preempted, 'None')}")
    evaluated = int(job.start if job.start is not None else job.submitted)
    lines.append(
        f"SuspendTime={seconds(job.suspended, 'None')} SecsPreSuspend=0 LastSchedEval={evaluated} Scheduler=Main"
    )
    return lines


def _places(job: FakeJob) -> list[str]:
    required = ",".join(job.request.nodelist) or "(null)"
    lines = [
        f"Partition={job.partition} AllocNode:Sid=localhost:4242",
        f"ReqNodeList={required} ExcNodeList=(null)",
        f"NodeList={job.nodes}",
    ]
    if job.shares:
        lines.append(f"BatchHost={job.shares[0].node}")
    return lines


def _sizes(slurm: Controller, job: FakeJob) -> list[str]:
    part = slurm.partitions[job.partition.split(",")[0]]
    size = size_of(job.request, part, slurm.nodes, slurm.modern)
    request = job.request
    nodes, cpus = str(len(job.shares) or size.nodes), sum(share.cpus for share in job.shares) or size.cpus
    if job.state == "PENDING":
        nodes = _pending_nodes(slurm, job, size.nodes, size.tasks)
    tasks = "N/A" if not job.shares and not job.active else str(size.tasks)
    lines = [f"NumNodes={nodes} NumCPUs={cpus} NumTasks={tasks} CPUs/Task={request.cpus_per_task} ReqB:S:C:T=0:0:*:*"]
    if slurm.modern:
        lines += [f"ReqTRES={requested(slurm, job)}", f"AllocTRES={allocated(slurm, job) or '(null)'}"]
    else:
        lines.append(f"TRES={allocated(slurm, job) or requested(slurm, job)}")
    lines.append("Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*")
    lines += _held_where(job)
    lines.append(f"MinCPUsNode={request.cpus_per_task} {_min_memory(slurm, job)} MinTmpDiskNode=0")
    lines.append("Features=(null) DelayBoot=00:00:00")
    lines.append(_sharing(slurm, job))
    return lines


def _pending_nodes(slurm: Controller, job: FakeJob, nodes: int, tasks: int) -> str:
    most = job.request.nodes_max
    if most is not None:
        least = min(tasks, most) if not slurm.modern else nodes
        return f"{least}-{most}" if least != most or most > 1 or slurm.modern else str(most)
    if not slurm.modern:
        return str(nodes)
    if job.array is not None and job.eligible is not None:
        return str(nodes)
    return f"{nodes}-{max(nodes, tasks)}" if slurm.version >= _NEWEST else f"{nodes}-{nodes}"


def _held_where(job: FakeJob) -> list[str]:
    if not job.shares:
        return []
    total = sum(len(share.gpus) for share in job.shares)
    kind = next((share.gpu_type for share in job.shares if share.gpus), "")
    lines = [f"JOB_GRES=gpu:{kind}:{total}" if total else "JOB_GRES=(null)"]
    groups: dict[tuple[int, int, tuple[int, ...]], list[Share]] = {}
    for share in job.shares:
        groups.setdefault((share.cpus, share.memory, share.gpus), []).append(share)
    for (cpus, memory, gpus), shares in groups.items():
        ids = "0" if cpus == 1 else f"0-{cpus - 1}"
        gres = f"gpu:{kind}:{len(gpus)}(IDX:{spans(gpus)})" if gpus and job.active else ""
        lines.append(f"  Nodes={host_list(share.node for share in shares)} CPU_IDs={ids} Mem={memory} GRES={gres}")
    return lines


def _min_memory(slurm: Controller, job: FakeJob) -> str:
    request, part = job.request, slurm.partitions[job.partition.split(",")[0]]
    if request.memory_per_node is not None:
        return f"MinMemoryNode={megabytes(request.memory_per_node) if request.memory_per_node else 0}"
    if request.memory_per_gpu is not None and slurm.modern:
        return f"MinMemoryTRES={megabytes(request.memory_per_gpu)}"
    if request.memory_per_gpu is not None and job.shares:
        return "MinMemoryNode=0"
    per_cpu = request.memory_per_cpu or part.def_mem_per_cpu
    return "MinMemoryNode=0" if per_cpu is None else f"MinMemoryCPU={megabytes(per_cpu)}"


def _sharing(slurm: Controller, job: FakeJob) -> str:
    alone = job.request.exclusive
    if slurm.version >= _NEWEST:
        words = f"OverSubscribe=NO Exclusive={'NODE' if alone else 'NO'} Contiguous=0 Licenses=(null)"
        return f"{words} LicensesAlloc=(null) Network=(null)"
    return f"OverSubscribe={'NO' if alone else 'OK'} Contiguous=0 Licenses=(null) Network=(null)"


def _paths(slurm: Controller, job: FakeJob) -> list[str]:
    new = slurm.version >= _NEWEST
    request = job.request
    args = "" if slurm.modern else "".join(f" {word}" for word in request.args)
    named = "/dev/stdin" in request.line
    lines = [f"Command={'/dev/stdin' + args if named else '(null)'}"]
    if new:
        lines.append(f"SubmitLine={' '.join(request.line)}")
    lines.append(f"WorkDir={job.work_dir}")
    if request.comment is not None:
        lines.append(f"Comment={request.comment}{'' if new else ' '}")
    lines.append(f"StdErr={'' if new and request.error is None else job.stderr}")
    lines += ["StdIn=/dev/null", f"StdOut={job.stdout}"]
    if not slurm.modern:
        lines.append("Power=")
    return [*lines, *_options(slurm, job)]


def _options(slurm: Controller, job: FakeJob) -> list[str]:
    """Sizes per GPU, per node and per task, as they were asked for."""
    request, sign = job.request, "gres/gpu" if slurm.modern else "gres:gpu"
    kind = f":{request.gpu_type}" if request.gpu_type else ""
    lines = []
    if request.cpus_per_gpu:
        lines.append(f"CpusPerTres={sign}:{request.cpus_per_gpu}")
    if request.memory_per_gpu is not None:
        lines.append(f"MemPerTres={sign}:{request.memory_per_gpu}")
    if request.gpus is not None:
        lines.append(f"TresPerJob={sign}{kind}:{request.gpus}")
    if request.gpus_per_node is not None:
        lines.append(f"TresPerNode={sign}{kind}:{request.gpus_per_node}")
    if request.gpus_per_task is not None:
        equals = "=" if slurm.modern else ":"
        lines.append(f"TresPerTask={sign}{kind}{equals}{request.gpus_per_task}")
    elif request.cpus_per_task > 1 and slurm.modern:
        lines.append(f"TresPerTask=cpu={request.cpus_per_task}")
    return lines
