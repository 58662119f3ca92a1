"""What earlier runs of the same script say of a diagnosis: one that ran out of memory before, with less."""

from __future__ import annotations

from slurm_agent_tools.history.records import JobRecord
from slurm_agent_tools.ledger.records import Submission
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import AnalyzeReply
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.units import human_memory

_KIND = "host-out-of-memory"
_RUNS = 50


async def told(desk: Desk, run: Submission | None, job: Job, reply: AnalyzeReply) -> AnalyzeReply:
    """The same answer, with what the ledger knows of earlier ends of this kind."""
    if run is None or reply.diagnosis is None or reply.diagnosis.category != _KIND:
        return reply
    records = await desk.db(desk.store.history, desk.owner, script_path=run.script_path, limit=_RUNS)
    text = again(records, job)
    if text is None:
        return reply
    found = reply.diagnosis.model_copy(update={"suggestions": [text, *reply.diagnosis.suggestions]})
    return reply.model_copy(update={"diagnosis": found, "summary": f"{reply.summary} {text}"})


def again(records: list[JobRecord], job: Job) -> str | None:
    """A sentence on earlier runs that ran out of less memory; None where there is none. `records`: newest first."""
    has = job.resources.memory_bytes
    if has is None:
        return None
    less = [
        (record.job_id, record.requested.memory_bytes)
        for record in records
        if record.job_id != str(job.job_id.base)
        and (record.state == "OUT_OF_MEMORY" or record.category == _KIND)
        and (record.requested.memory_bytes or has) < has
    ]
    if not less:
        return None
    named = ", ".join(f"job {job_id} with {human_memory(size or 0)}" for job_id, size in reversed(less[:3]))
    return (
        f"This script ran out of memory before ({named}), and {human_memory(has)} was not enough either:"
        f" rather ask for twice as much, {human_memory(2 * has)}, or find out what it needs."
    )
