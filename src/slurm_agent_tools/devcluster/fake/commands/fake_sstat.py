"""sstat: what running steps use."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.devcluster.fake.answering import Answer, Session, UnknownCommand
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob


def run_sstat(session: Session, words: Sequence[str]) -> Answer:
    """sstat of whole jobs."""
    wanted = [int(one) for word in words if word.startswith("--jobs=") for one in word[7:].split(",")]
    form = next((word[9:].split(",") for word in words if word.startswith("--format=")), [])
    if not wanted or not form:
        raise UnknownCommand(words)
    out = err = ""
    for number in wanted:
        parts = session.slurm.parts(number)
        steps = [(job, step) for job in parts if job.state == "RUNNING" for step in job.steps if step.end is None]
        if not parts:
            err += f"sstat: error: couldn't get steps for job {number}\n"
        elif not steps:
            err += f"sstat: error: No steps running for job {number}\n"
        for job, step in steps:
            cells = _use(job, step.step_id, step.memory or 409600)
            out += "|".join(cells[name] for name in form) + "\n"
    return Answer(out, err)


def _use(job: FakeJob, step_id: str, memory: int) -> dict[str, str]:
    usage = f"cpu=00:00:00,energy=0,fs/disk=9894,mem={memory},pages=0,vmem={memory}"
    return {
        "JobID": f"{job.number}.{step_id}", "NTasks": "1", "MaxRSS": str(memory), "AveCPU": "00:00:00",
        "TRESUsageInTot": usage,
    }  # fmt: skip
