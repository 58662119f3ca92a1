"""One job as any scheduler is asked for it, and the parts that several formats share. Pure.

What a job runs is written for bash. Where it names a variable of Slurm, a line before it gives that variable the value
which the other scheduler has for it; a variable for which there is none is an error, never an empty text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.units import ArraySpec, indices

TASK_ID = "SLURM_ARRAY_TASK_ID"

GRACE_SECONDS = 60
"""Between the signal that a program gets at its time limit and the one that it cannot catch."""

_VARIABLE = re.compile(r"\bSLURM_[A-Z0-9_]+")

_COMMAND = re.compile(
    r"(?:^|[;&|({]|\b(?:then|do|else|exec)\s)\s*(srun|scontrol|squeue|sacct|sstat|sinfo)\s", re.MULTILINE
)
"""A command of Slurm where a command may stand."""


@dataclass(frozen=True, slots=True)
class JobToExport:
    """What one job asks for and runs. Memory in bytes and counts per node, time in seconds, for each task of an array.

    `suffix` makes names unique, `body` is bash, `queue` what Slurm calls a partition, `max_hourly_cost` the most that
    one machine may cost, `infra` the cloud or its region.
    """

    name: str
    suffix: str
    body: str
    nodes: int
    tasks_per_node: int
    cpus_per_node: int
    gpus_per_node: int
    memory_per_node: int
    time_limit: int
    gpu_kind: str | None = None
    array: ArraySpec | None = None
    queue: str | None = None
    image: str | None = None
    infra: str | None = None
    max_hourly_cost: float | None = None
    mail_user: str | None = None

    @property
    def hourly_price(self) -> float | None:
        """What all of its machines cost at most in an hour, where they are rented; None where none is."""
        return None if self.max_hourly_cost is None else self.max_hourly_cost * self.nodes

    @property
    def tasks(self) -> tuple[int, ...]:
        """The numbers of an array's tasks in their order; of a job that is none, nothing."""
        return () if self.array is None else tuple(sorted(indices(self.array.text.partition("%")[0].strip("[]"))))


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """How one scheduler is asked: the file's ending, its text, the command for a person, and what a person must know.

    `takes` are the arguments that only some formats know. `write` raises InputError for what it cannot express.
    """

    suffix: str
    takes: frozenset[str]
    write: Callable[[JobToExport], str]
    command: Callable[[JobToExport, str], Sequence[str]]
    notes: Callable[[JobToExport], Sequence[str]]


def even(numbers: Sequence[int]) -> tuple[int, int, int] | None:
    """First, last and step of numbers that lie evenly; None where they do not."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    spread = range(numbers[0], numbers[-1] + 1, step)
    return (numbers[0], numbers[-1], step) if list(numbers) == list(spread) else None


def variables(job: JobToExport, own: Mapping[str, str], scheduler: str) -> list[str]:
    """Lines that set the variables of Slurm which the body names; `own` are values in bash that the scheduler knows.

    Raises InputError for a variable that has no value there, and for a command of Slurm's.
    """
    command = _COMMAND.search(job.body)
    if command is not None:
        hint = "Name the program itself; launcher says what starts its processes."
        raise InputError("command", command[1], f"is a command of Slurm, and {scheduler} has none such", hint=hint)
    values = {**_constant(job), **own}
    named = {*_VARIABLE.findall(job.body), *([TASK_ID] if job.array is not None else [])}
    missing = sorted(named - values.keys())
    if missing:
        hint = f"Let the command do without it. Known here: {', '.join(sorted(values))}."
        raise InputError("command", missing[0], f"is a variable of Slurm that {scheduler} has no value for", hint=hint)
    return [f"export {name}={values[name]}" for name in sorted(named)]


def of_slurm(script: str) -> str | None:
    """A command or a variable of Slurm's that a script names, and that is not there where another scheduler runs it.

    The number of an array's task is there.
    """
    lines = "\n".join(line for line in script.split("\n") if not line.lstrip().startswith("#"))
    command = _COMMAND.search(lines)
    found = sorted(set(_VARIABLE.findall(lines)) - {TASK_ID})
    return command[1] if command is not None else found[0] if found else None


def _constant(job: JobToExport) -> dict[str, str]:
    """What follows from the request itself, whatever runs it."""
    numbers = {
        "CPUS_PER_TASK": job.cpus_per_node // job.tasks_per_node,
        "CPUS_ON_NODE": job.cpus_per_node,
        "NTASKS": job.nodes * job.tasks_per_node,
        "NTASKS_PER_NODE": job.tasks_per_node,
        "NNODES": job.nodes,
        "JOB_NUM_NODES": job.nodes,
        "GPUS": job.nodes * job.gpus_per_node,
        "GPUS_ON_NODE": job.gpus_per_node,
        "GPUS_PER_NODE": job.gpus_per_node,
        "MEM_PER_NODE": job.memory_per_node // 2**20,
    }
    tasks = job.tasks
    if tasks:
        numbers |= {"ARRAY_TASK_COUNT": len(tasks), "ARRAY_TASK_MIN": tasks[0], "ARRAY_TASK_MAX": tasks[-1]}
    return {f"SLURM_{name}": str(number) for name, number in numbers.items()} | {
        "SLURM_JOB_NAME": shlex.quote(job.name)
    }


def task_lines(job: JobToExport, place: str) -> tuple[list[str], str]:
    """Lines in bash before, and the expression of a task's number from its place, counted from 0, in `place`."""
    first, *_ = tasks = job.tasks
    spread = even(tasks)
    if spread is None:
        return [f"tasks=({' '.join(map(str, tasks))})"], f'"${{tasks[{place}]}}"'
    if spread[2] == 1:
        return [], f'"$(({first} + {place}))"' if first else f'"${place}"'
    return [], f'"$(({first} + {spread[2]} * {place}))"'


def within_limit(job: JobToExport, before: Sequence[str]) -> str:
    """The job under `timeout`, for what has no time limit of its own; tasks of an array one after the other.

    `before` are lines in front of the body. A task that fails stops no other, and all of it fails then.
    """
    inner = "\n".join(["", *before, job.body, ""])
    run = f"timeout --kill-after={GRACE_SECONDS} {job.time_limit} bash -euo pipefail -c {shlex.quote(inner)}"
    if job.array is None:
        return run
    spread = even(job.tasks)
    listed = " ".join(map(str, job.tasks)) if spread is None else f"$(seq {spread[0]} {spread[2]} {spread[1]})"
    return "\n".join(
        [
            "failed=0",
            f"for {TASK_ID} in {listed}; do",
            f"export {TASK_ID}",
            f"{run} || failed=1",
            "done",
            'exit "$failed"',
        ]
    )
