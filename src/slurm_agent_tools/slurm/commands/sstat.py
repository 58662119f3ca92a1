"""sstat: what the steps of running jobs use now. Slurm tells it to a job's owner and to administrators only."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.models.job import StepUse
from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import JobId, parse_elapsed, parse_tres, tres_memory

# sstat(1). MaxRSS is the most that one task needed so far; TRESUsageInTot adds up what the tasks have now.
COLUMNS = ("JobID", "NTasks", "MaxRSS", "AveCPU", "TRESUsageInTot")

_GONE = ("couldn't get steps for job", "no steps running for job", "Invalid job id specified")


def argv(ids: Sequence[JobId]) -> list[str]:
    """Every step, also batch and extern, of these jobs. Of an array sstat takes the whole only, by its number."""
    wanted = ",".join(dict.fromkeys(str(job_id.base) for job_id in ids))
    return [
        "sstat", "--noheader", "--parsable2", "--noconvert", "--allsteps", f"--format={','.join(COLUMNS)}",
        f"--jobs={wanted}",
    ]  # fmt: skip


def parse(done: Completed) -> tuple[StepUse, ...]:
    """One record a step; none for jobs without steps. Raises SlurmUnreachable and SlurmGarbled."""
    if done.exit_code != 0 and any(sign in columns.text(done.stderr) for sign in _GONE):
        return ()
    columns.check(done)
    found = []
    for line in columns.text(done.stdout).splitlines():
        try:
            found.append(_use(dict(zip(COLUMNS, line.split("|"), strict=True))))
        except ValueError as error:
            raise columns.garbled(done, f"{line} ({error})") from error
    return tuple(found)


def _use(cell: dict[str, str]) -> StepUse:
    """`12.batch` or `12.0`; an array task stands under its own number. Components of a het job read `12+1.0`."""
    job, _, step = cell["JobID"].partition(".")
    base, _, component = job.partition("+")
    total = parse_tres(cell["TRESUsageInTot"])
    tasks = int(cell["NTasks"]) if cell["NTasks"] else None
    average = parse_elapsed(cell["AveCPU"])
    cpu = parse_elapsed(total["cpu"]) if "cpu" in total else None
    if cpu is None and average is not None and tasks is not None:
        cpu = average * tasks
    return StepUse(
        raw_id=int(base) + int(component or 0),
        step_id=step,
        tasks=tasks,
        memory_bytes=_size(total.get("mem", "")),
        task_peak_bytes=_size(cell["MaxRSS"]),
        cpu_seconds=cpu,
        gpu_percent=float(busy) if (busy := total.get("gres/gpuutil", "")).isdecimal() else None,
    )


def _size(text: str) -> int | None:
    """Bytes; 0 is what a step shows before its first sample."""
    size = int(text) if text.isdecimal() else tres_memory(text) if text else 0
    return size or None
