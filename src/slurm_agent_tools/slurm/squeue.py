"""squeue: every job in one call, with columns that are asked for by name."""

from __future__ import annotations

from datetime import UTC, datetime

from slurm_agent_tools.model import Job, Resources
from slurm_agent_tools.slurm import fields
from slurm_agent_tools.slurm.runner import Completed
from slurm_agent_tools.units import parse_elapsed, parse_job_id, parse_time

# squeue(1), -o: %i job id, %A raw id, %u user, %P partition, %T state, %r reason, %V submitted, %e end, %S start,
# %l limit, %M elapsed, %N nodes, %D node count, %C CPUs, %E dependency, %k comment, %j name. A name may hold a
# newline, so an id comes behind it.
_CODES = {
    "id": "%i", "raw": "%A", "user": "%u", "partition": "%P", "state": "%T", "reason": "%r", "submitted": "%V",
    "start": "%S", "end": "%e", "limit": "%l", "elapsed": "%M", "nodes": "%N", "node_count": "%D", "cpus": "%C",
    "dependency": "%E", "comment": "%k", "name": "%j", "again": "%A",
}  # fmt: skip
COLUMNS = tuple(_CODES)


def argv(mark: str = "") -> list[str]:
    """All users' jobs, those that ended lately included. `mark`: hexadecimal, new in every call."""
    columns = f"{fields.SEPARATOR}{mark}".join(_CODES.values())
    return ["squeue", "--noheader", "--states=all", f"--format={columns}"]


def parse(done: Completed) -> tuple[Job, ...]:
    """One record a row. Raises SlurmUnreachable and SlurmGarbled."""
    fields.check(done)
    return fields.table(done, COLUMNS, _job)


def _job(cell: dict[str, str]) -> Job:
    state = fields.state_word(cell["state"])
    started = parse_time(cell["start"])
    pending = state == "PENDING"
    elapsed = None if pending or cell["elapsed"] in {"INVALID", "N/A"} else parse_elapsed(cell["elapsed"])
    return Job(
        job_id=parse_job_id(cell["id"]),
        name=cell["name"],
        state=state,
        sources=("squeue",),
        raw_state=cell["state"],
        user=cell["user"],
        partition=cell["partition"],
        reason=None if cell["reason"] == "None" else cell["reason"],
        submitted=parse_time(cell["submitted"]),
        started=None if pending else started,
        ended=_past(parse_time(cell["end"])) if state not in _GOING else None,
        elapsed_seconds=None if elapsed is None else round(elapsed),
        nodes=cell["nodes"] or None,
        resources=Resources(
            partition=cell["partition"],
            nodes=int(cell["node_count"].split("-")[0]),
            cpus=int(cell["cpus"]),
            time_limit_seconds=fields.time_limit(cell["limit"]),
        ),
        dependency=None if cell["dependency"] in {"", "(null)"} else cell["dependency"],
        comment=None if cell["comment"] in {"", "(null)"} else cell["comment"].strip(),
        raw_id=int(cell["raw"]),
    )


_GOING = {"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED"}


def _past(moment: datetime | None) -> datetime | None:
    return moment if moment is not None and moment <= datetime.now(UTC) else None
