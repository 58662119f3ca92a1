"""sacct: what the accounting says of jobs and their steps."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.errors import AccountingUnreachable
from slurm_agent_tools.models.job import Job, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.slurm.log_patterns import expand
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import JobId, parse_elapsed, parse_job_id, parse_time, parse_tres, tres_memory

COLUMNS = (
    "JobID", "User", "Partition", "State", "ExitCode", "DerivedExitCode", "Submit", "Eligible", "Start",
    "End", "ElapsedRaw", "Timelimit", "NodeList", "ReqTRES", "AllocTRES", "NTasks", "MaxRSS", "TotalCPU",
    "TRESUsageInTot", "TRESUsageInMax", "TRESUsageInMin", "TRESUsageInAve", "QOS", "Reason", "Comment", "AdminComment",
    "WorkDir", "JobName", "JobIDRaw",
)  # fmt: skip

OF_WEEKS = (
    "JobID", "User", "Account", "Partition", "State", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Timelimit",
    "NodeList", "ReqTRES", "AllocTRES", "NTasks", "MaxRSS", "TRESUsageInTot", "TRESUsageInMin", "QOS", "Reason",
    "Reservation", "JobName", "JobIDRaw",
)  # fmt: skip
"""Fewer columns, for a question about all users' jobs of weeks with what their steps used."""

_NONE = dict.fromkeys(COLUMNS, "")

LATER = ("StdOut", "StdErr")  # from 24.05 on

_DATABASE = "Problem talking to the database"

_CONFIGURATION = "Could not establish a configuration source"  # that one is asked of the controller

_HINT = "Have an administrator look at slurmdbd (`sacctmgr show cluster` asks it), then call again."

_BYTES = frozenset({"mem", "vmem", "gres/gpumem"})


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a job, or a step of it (`step` set)."""

    job: Job
    step: Step | None


def argv(
    ids: Sequence[int] = (),
    *,
    since: str | None = None,
    user: str | None = None,
    everyone: bool = False,
    name: str | None = None,
    more: Sequence[str] = (),
    mark: str = "",
    every_run: bool = False,
) -> list[str]:
    """Jobs by id with all their steps, or a user's jobs since a time that sacct understands (now-7days).

    `everyone`: all users' jobs that this user may see, without their steps. `name`: only jobs of this name; it holds no
    comma.
    `more`: those of LATER that this version has. `mark`: hexadecimal, new in every call. `every_run`: of a job that was
    requeued each run in a row of its own, the last one last; else the last alone.
    """
    delimiter, wanted = f"{columns.SEPARATOR}{mark}", (*COLUMNS[:-1], *more, COLUMNS[-1])
    words = ["sacct", "--noheader", "--parsable2", f"--delimiter={delimiter}", f"--format={','.join(wanted)}"]
    if ids:
        words.append("--jobs=" + ",".join(str(number) for number in ids))
    if since is not None:
        words += [f"--starttime={since}", "--endtime=now"]
    if user is not None:
        words.append(f"--user={user}")
    if everyone:
        words += ["--allusers", "--allocations"]
    if name is not None:
        words.append(f"--name={name}")
    return [*words, "--duplicates"] if every_run else words


def weeks_argv(hours: int, mark: str = "") -> list[str]:
    """All users' jobs of the last hours that this user may see, with their steps; `mark` as above."""
    delimiter = f"{columns.SEPARATOR}{mark}"
    words = ["sacct", "--noheader", "--parsable2", f"--delimiter={delimiter}", f"--format={','.join(OF_WEEKS)}"]
    return [*words, f"--starttime=now-{hours}hours", "--endtime=now", "--allusers"]


def columns_argv() -> list[str]:
    """The names of the columns that this version has. It needs slurmdbd as well (22.05, measured)."""
    return ["sacct", "--helpformat"]


def parse_columns(done: Completed) -> tuple[str, ...]:
    """Those of LATER that are there. Raises AccountingUnreachable and SlurmGarbled."""
    check(done)
    known = set(columns.text(done.stdout).split())
    return tuple(name for name in LATER if name in known)


def disabled(done: Completed) -> bool:
    """True on a cluster without accounting."""
    return "accounting storage is disabled" in columns.text(done.stderr).lower()


def check(done: Completed) -> None:
    """Raise AccountingUnreachable where slurmdbd is silent, and what `columns.check` does for all else."""
    if done.timed_out:
        raise AccountingUnreachable(f"slurmdbd did not answer sacct within {done.seconds:.0f} s.", hint=_HINT)
    said = columns.message(done)
    if (columns.silent(done) or _DATABASE in said) and _CONFIGURATION not in said:  # some end with 0 all the same
        raise AccountingUnreachable(f"slurmdbd does not answer: {said}", hint=_HINT)
    columns.check(done)


def parse(done: Completed) -> tuple[Job, ...]:
    """Jobs with their steps, in sacct's order. Raises AccountingUnreachable and SlurmGarbled."""
    check(done)
    rows = columns.table(done, _asked(done), lambda cell: _row(_NONE | cell))
    jobs: list[Job] = []
    steps: dict[JobId, list[Step]] = {}
    for row in rows:
        if row.step is None:
            jobs.append(row.job)
        else:
            steps.setdefault(row.job.job_id, []).append(row.step)
    return tuple(replace(job, steps=tuple(steps.get(job.job_id, ()))) for job in jobs)


def _asked(done: Completed) -> Sequence[str]:
    """The columns that the command was asked for."""
    option = "--format="
    return next((word.removeprefix(option).split(",") for word in done.argv if word.startswith(option)), COLUMNS)


def _row(cell: dict[str, str]) -> Row:
    number, _, step = cell["JobID"].partition(".")
    job_id = parse_job_id(number)
    code, signal = columns.exit_status(cell["ExitCode"])
    if step:
        return Row(Job(job_id, "", "UNKNOWN", ("sacct",)), _step(step, cell, code, signal))
    return Row(_written(_of_weeks(_job(job_id, cell, code, signal), cell), cell), None)


def _of_weeks(job: Job, cell: dict[str, str]) -> Job:
    """With what only a question about weeks asks for."""
    if "Reservation" not in cell:
        return job
    waited_for = None if cell["Reason"] in {"", "None"} else cell["Reason"]
    return replace(job, account=cell["Account"] or None, reservation=cell["Reservation"] or None, waited_for=waited_for)


def _written(job: Job, cell: dict[str, str]) -> Job:
    """With the paths of its output; 26.05 tells the name alone where none was asked for."""
    paths = {name: expand(posixpath.join(cell["WorkDir"], cell[name]), job) for name in LATER if cell.get(name)}
    return replace(job, stdout=paths.get("StdOut"), stderr=paths.get("StdErr")) if paths else job


def _job(job_id: JobId, cell: dict[str, str], code: int | None, signal: int | None) -> Job:
    derived_code, derived_signal = columns.exit_status(cell["DerivedExitCode"])
    state = columns.state_word(cell["State"])
    by = cell["State"].partition(" by ")[2]
    running = state in {"RUNNING", "SUSPENDED", "PENDING", "REQUEUED"}
    nodes = None if cell["NodeList"] in {"", "None assigned"} else cell["NodeList"]
    unstarted = columns.never_ran(state, nodes, int(cell["ElapsedRaw"] or 0))
    started = None if unstarted else parse_time(cell["Start"])
    return Job(
        job_id=job_id,
        name=cell["JobName"],
        state=state,
        sources=("sacct",),
        raw_state=cell["State"],
        user=cell["User"] or None,
        partition=cell["Partition"] or None,
        reason=columns.reason(cell["Reason"], state, started=started is not None),
        exit_code=None if running else code,
        signal=None if running else signal,
        short_code=None if running or code is None else True,
        derived_exit_code=None if running else derived_code,
        derived_signal=None if running else derived_signal,
        cancelled_by=by or None,
        submitted=parse_time(cell["Submit"]),
        eligible=parse_time(cell["Eligible"]),
        started=started,
        ended=None if running else parse_time(cell["End"]),
        elapsed_seconds=int(cell["ElapsedRaw"]) if cell["ElapsedRaw"] and started is not None else None,
        nodes=nodes,
        resources=_resources(cell),
        comment=cell["Comment"].strip() or None,
        work_dir=cell["WorkDir"] or None,
        raw_id=int(cell["JobIDRaw"].partition("+")[0]) if cell["JobIDRaw"] else None,
        qos=cell["QOS"] or None,
        admin_comment=cell["AdminComment"] or None,
        requested=_amounts(cell["ReqTRES"]) or None,
        allocated=_amounts(cell["AllocTRES"]) or None,
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
        time_limit_seconds=columns.time_limit(cell["Timelimit"]),
    )


def _step(step: str, cell: dict[str, str], code: int | None, signal: int | None) -> Step:
    used = _usage(cell["TRESUsageInTot"])
    return Step(
        step_id=step,
        name=cell["JobName"],
        state=columns.state_word(cell["State"]),
        exit_code=code,
        signal=signal,
        max_rss_bytes=tres_memory(cell["MaxRSS"]) if cell["MaxRSS"] not in {"", "0"} else None,
        elapsed_seconds=int(cell["ElapsedRaw"]) if cell["ElapsedRaw"] else None,
        cpu_seconds=_cpu(cell["TotalCPU"], measured=bool(used)),
        tres_usage_in_max=_usage(cell["TRESUsageInMax"]),
        tres_usage_in_tot=used,
        tres_usage_in_min=_usage(cell["TRESUsageInMin"]),
        tres_usage_in_ave=_usage(cell["TRESUsageInAve"]),
        allocated=_amounts(cell["AllocTRES"]),
        tasks=int(cell["NTasks"]) if cell["NTasks"] else None,
        started=parse_time(cell["Start"]),
        cancelled_by=cell["State"].partition(" by ")[2] or None,
    )


def _cpu(text: str, *, measured: bool) -> float | None:
    """CPU time of all tasks, seconds. sacct says 0 as well of a step that runs, or of which no word ever came."""
    return (parse_elapsed(text) if text else None) if measured else None


def _amounts(text: str) -> dict[str, int]:
    """What was asked or given, `cpu=4,mem=16G,gres/gpu:a100=2`: counts, memory in bytes. Sizes of other kinds no."""
    found: dict[str, int] = {}
    for name, value in parse_tres(text).items():
        if name == "mem":
            found[name] = tres_memory(value)
        elif value.isdecimal():
            found[name] = int(value)
    return found


def _usage(text: str) -> dict[str, int]:
    """What was used, `cpu=00:00:03,mem=125792K,gres/gpuutil=87`: seconds, bytes, numbers."""
    found: dict[str, int] = {}
    for name, value in parse_tres(text).items():
        if name in _BYTES:
            found[name] = int(value) if value.isdecimal() else tres_memory(value)
        elif name == "cpu":
            found[name] = round(parse_elapsed(value) or 0)
        elif value.isdecimal():
            found[name] = int(value)
    return found
