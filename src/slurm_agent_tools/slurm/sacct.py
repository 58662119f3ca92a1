"""sacct: what the accounting says of jobs and their steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.model import Job, Resources, Step
from slurm_agent_tools.slurm import fields
from slurm_agent_tools.slurm.runner import Completed
from slurm_agent_tools.units import (
    JobId,
    parse_elapsed,
    parse_job_id,
    parse_time,
    parse_tres,
    tres_memory,
)

COLUMNS = (
    "JobID", "User", "Partition", "State", "ExitCode", "DerivedExitCode", "Submit", "Eligible", "Start",
    "End", "ElapsedRaw", "Timelimit", "NodeList", "ReqTRES", "AllocTRES", "MaxRSS", "TotalCPU", "TRESUsageInMax",
    "Reason", "Comment", "WorkDir", "JobName", "JobIDRaw",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a job, or a step of it (`step` set)."""

    job: Job
    step: Step | None


def argv(ids: Sequence[int] = (), *, since: str | None = None, user: str | None = None, mark: str = "") -> list[str]:
    """Jobs by id with all their steps, or a user's jobs since a time that sacct understands (now-7days).

    `mark`: hexadecimal, new in every call.
    """
    delimiter = f"{fields.SEPARATOR}{mark}"
    words = ["sacct", "--noheader", "--parsable2", f"--delimiter={delimiter}", f"--format={','.join(COLUMNS)}"]
    if ids:
        words.append("--jobs=" + ",".join(str(number) for number in ids))
    if since is not None:
        words += [f"--starttime={since}", "--endtime=now"]
    if user is not None:
        words.append(f"--user={user}")
    return words


def disabled(done: Completed) -> bool:
    """True on a cluster without accounting."""
    return "accounting storage is disabled" in fields.text(done.stderr).lower()


def parse(done: Completed) -> tuple[Job, ...]:
    """Jobs with their steps, in sacct's order. Raises SlurmUnreachable and SlurmGarbled."""
    fields.check(done)
    if fields.silent(done):  # some versions end with 0 all the same
        raise SlurmUnreachable(f"The accounting does not answer: {fields.message(done)}", hint="Ask again in a minute.")
    rows = fields.table(done, COLUMNS, _row)
    jobs: list[Job] = []
    steps: dict[JobId, list[Step]] = {}
    for row in rows:
        if row.step is None:
            jobs.append(row.job)
        else:
            steps.setdefault(row.job.job_id, []).append(row.step)
    return tuple(replace(job, steps=tuple(steps.get(job.job_id, ()))) for job in jobs)


def _row(cell: dict[str, str]) -> Row:
    number, _, step = cell["JobID"].partition(".")
    job_id = parse_job_id(number)
    code, signal = fields.exit_status(cell["ExitCode"])
    if step:
        return Row(Job(job_id, "", "UNKNOWN", ("sacct",)), _step(step, cell, code, signal))
    return Row(_job(job_id, cell, code, signal), None)


def _job(job_id: JobId, cell: dict[str, str], code: int | None, signal: int | None) -> Job:
    derived_code, derived_signal = fields.exit_status(cell["DerivedExitCode"])
    state = fields.state_word(cell["State"])
    by = cell["State"].partition(" by ")[2]
    running = state in {"RUNNING", "SUSPENDED", "PENDING", "REQUEUED"}
    started = parse_time(cell["Start"])
    return Job(
        job_id=job_id,
        name=cell["JobName"],
        state=state,
        sources=("sacct",),
        raw_state=cell["State"],
        user=cell["User"] or None,
        partition=cell["Partition"] or None,
        reason=None if cell["Reason"] in {"", "None"} else cell["Reason"],
        exit_code=None if running else code,
        signal=None if running else signal,
        derived_exit_code=None if running else derived_code,
        derived_signal=None if running else derived_signal,
        cancelled_by=by or None,
        submitted=parse_time(cell["Submit"]),
        eligible=parse_time(cell["Eligible"]),
        started=started,
        ended=None if running else parse_time(cell["End"]),
        elapsed_seconds=int(cell["ElapsedRaw"]) if cell["ElapsedRaw"] and started is not None else None,
        nodes=None if cell["NodeList"] in {"", "None assigned"} else cell["NodeList"],
        resources=_resources(cell),
        comment=cell["Comment"].strip() or None,
        work_dir=cell["WorkDir"] or None,
        raw_id=int(cell["JobIDRaw"].partition("+")[0]) if cell["JobIDRaw"] else None,
    )


def _resources(cell: dict[str, str]) -> Resources:
    tres = parse_tres(cell["AllocTRES"] or cell["ReqTRES"])
    gpus = int(tres["gres/gpu"]) if "gres/gpu" in tres else None
    memory = tres_memory(tres["mem"]) if "mem" in tres else None
    return Resources(
        partition=cell["Partition"] or None,
        nodes=int(tres["node"]) if "node" in tres else None,
        cpus=int(tres["cpu"]) if "cpu" in tres else None,
        gpus=gpus,
        memory_bytes=memory,
        memory_per_gpu_bytes=memory // gpus if memory is not None and gpus else None,
        time_limit_seconds=fields.time_limit(cell["Timelimit"]),
    )


def _step(step: str, cell: dict[str, str], code: int | None, signal: int | None) -> Step:
    usage = parse_tres(cell["TRESUsageInMax"])
    return Step(
        step_id=step,
        name=cell["JobName"],
        state=fields.state_word(cell["State"]),
        exit_code=code,
        signal=signal,
        max_rss_bytes=tres_memory(cell["MaxRSS"]) if cell["MaxRSS"] not in {"", "0"} else None,
        elapsed_seconds=int(cell["ElapsedRaw"]) if cell["ElapsedRaw"] else None,
        cpu_seconds=parse_elapsed(cell["TotalCPU"]) if cell["TotalCPU"] else None,
        tres_usage_in_max={name: int(value) for name, value in usage.items() if value.isdigit()},
    )
