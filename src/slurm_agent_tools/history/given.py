"""What a part of a job was given: amounts, and amounts times the time it had them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slurm_agent_tools.model import Job

GPUS = "gres/gpu"


def ran(job: Job, tasks: Sequence[Job]) -> list[Job]:
    """The array tasks or components that started, or the job itself where it has none."""
    return [part for part in (tasks or (job,)) if part.started is not None and part.elapsed_seconds is not None]


def amount(part: Job, name: str) -> int | None:
    """How much of one kind; from the controller where the accounting tells nothing. No GPU is 0."""
    if part.allocated is not None:
        return part.allocated.get(name, 0 if name == GPUS else None)
    known = part.resources
    return {"cpu": known.cpus, "mem": known.memory_bytes, "node": known.nodes, GPUS: known.gpus}[name]


def seconds(part: Job, name: str) -> float | None:
    """So much of one kind times the seconds that it ran; suspended time is no time (sacct(1), Elapsed)."""
    had = amount(part, name)
    return None if had is None or part.elapsed_seconds is None else float(had * part.elapsed_seconds)


def gpu_kinds(part: Job) -> dict[str | None, int]:
    """GPUs by type; None for those whose type Slurm does not tell."""
    head = f"{GPUS}:"
    found: dict[str | None, int] = {
        name.removeprefix(head): count for name, count in (part.allocated or {}).items() if name.startswith(head)
    }
    rest = (amount(part, GPUS) or 0) - sum(found.values())
    return found | {None: rest} if rest > 0 else found


def total(values: Iterable[float | None]) -> float | None:
    """The sum; None where one is not known or there is none."""
    known = list(values)
    return None if not known or None in known else float(sum(value for value in known if value is not None))
