"""Rows of Slurm's tables in words, for tests of what cells mean."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from slurm_agent_tools.slurm.commands import columns, squeue

US = columns.SEPARATOR
START = 1_748_851_200
"""When the fake clock starts; what a submission loads is counted, so it is not asked."""


LOOKED = datetime.fromtimestamp(START + 86_400, UTC)
"""When somebody looks at these rows."""


def queued(job_id: str, state: str = "RUNNING", **changes: object) -> bytes:
    """A row of squeue."""
    base = job_id.partition("_")[0]
    cell = {
        "id": job_id, "raw": base, "user": "alice", "partition": "cpu", "state": state, "reason": "None",
        "submitted": START, "start": START if state != "PENDING" else "N/A", "end": "N/A", "limit": "1-00:00:00",
        "elapsed": "0:01", "nodes": "cpu01", "required_nodes": "", "node_count": 1, "cpus": 2, "dependency": "(null)", "comment": "(null)",
        "name": "train", "again": base,
    }  # fmt: skip
    return squeue_row(cell | changes).encode() + b"\n"


def squeue_row(cell: Mapping[str, object], mark: str = "") -> str:
    """Cells as squeue puts them in a line: the head's, then those that users write, behind marked separators."""
    values = [str(value) for value in cell.values()]
    return f"{US}{mark}".join([squeue.INNER.join(values[:5]), squeue.INNER.join(values[5:-3]), *values[-3:]])


def accounted(job_id: str, state: str = "COMPLETED", code: str = "0:0", **changes: object) -> bytes:
    """A row of sacct."""
    from slurm_agent_tools.slurm.commands.sacct import COLUMNS  # noqa: PLC0415 - what a submission loads is counted

    cell: dict[str, object] = dict.fromkeys(COLUMNS, "")
    cell |= {
        "JobID": job_id, "User": "alice", "Partition": "cpu", "State": state, "ExitCode": code, "Submit": START,
        "Start": START, "End": START + 60, "ElapsedRaw": 60, "JobName": "train", "JobIDRaw": job_id.partition("_")[0],
    }  # fmt: skip
    return US.join(str(value) for value in (cell | changes).values()).encode() + b"\n"
