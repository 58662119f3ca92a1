"""Jobs and logs for the tests of the diagnosis."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from slurm_agent_tools.diagnosis.excerpt import LogText, named_job, read_text
from slurm_agent_tools.models.job import Job, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.units import JobId

GIB, MIB = 2**30, 2**20
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ASKED = Resources(
    partition="gpu", nodes=1, cpus=4, memory_bytes=16 * GIB, memory_per_node_bytes=16 * GIB, time_limit_seconds=7200
)
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/home/u/train.py", line 42, in main',
    "    fit(model)",
    '  File "/venv/lib/python3.11/site-packages/torch/nn.py", line 9, in forward',
    "    raise ValueError(shape)",
)


def job(state: str = "FAILED", **facts) -> Job:
    plain = Job(
        JobId(71),
        "train",
        state,
        ("sacct",),
        partition="gpu",
        submitted=NOON,
        started=NOON.replace(minute=5),
        ended=NOON.replace(minute=25),
        elapsed_seconds=1200,
        nodes="gpu01",
        resources=ASKED,
        command="scripts/slurm/train.sh",
    )
    return replace(plain, **facts)


def wrote(*texts: LogText, state: str = "FAILED", **facts) -> Job:
    """The job that a log is of: with the number that the last of Slurm's lines in it names."""
    named = [number for text in texts for line in text.lines if (number := named_job(line.text)) is not None]
    return job(state, **{"job_id": JobId(int(named[-1])) if named else JobId(71)} | facts)


def step(name: str, state: str, **facts) -> Step:
    return Step(name, "batch" if name == "batch" else "python", state, **facts)


def log(*lines: str, kind: str = "stderr", path: str | None = None) -> LogText:
    data = "\n".join(lines).encode()
    return read_text(path or f"logs/slurm/train-71.{'err' if kind == 'stderr' else 'out'}", kind, data, b"", len(data))
