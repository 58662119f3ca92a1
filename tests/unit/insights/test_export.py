"""A record in the shape that memory servers store: complete, honest, safe to show."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_agent_tools.insights.memory_server import memory
from slurm_agent_tools.models.job import JobRecord, Usage
from slurm_agent_tools.models.job_resources import Resources

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GIB = 2**30
ASKED = Resources(partition="gpu", nodes=1, cpus=4, gpus=2, memory_bytes=32 * GIB, time_limit_seconds=7200)


def record(**more: Any) -> JobRecord:
    made = JobRecord(
        job_id="7", cluster="lab", project="/p", user="alice", name="train", script_path="jobs/train.sh",
        script_sha256="0" * 64, requested=ASKED, submitted=NOW, state="UNKNOWN",
    )  # fmt: skip
    return replace(made, **more)


def test_a_submission_says_what_was_asked_and_nothing_that_is_not_known():
    made = memory(record())

    assert made["content"] == (
        "SLURM JOB 7: train (jobs/train.sh). Status: SUBMITTED."
        " Partition: gpu, GPUs: 2, Memory: 32G, Time limit: 02:00:00."
    )
    assert made["memory_type"] == "slurm_job"
    assert {"slurm", "job", "7", "submitted"} <= set(made["tags"])
    assert None not in made["metadata"].values()
    assert not {"runtime_seconds", "exit_code", "category", "memory_peak_bytes"} & made["metadata"].keys()
    assert json.loads(json.dumps(made)) == made


def test_an_end_says_how_it_went_and_what_was_used():
    usage = Usage(cpu_seconds=180.0, cpu_allocated_seconds=240.0, memory_peak_bytes=3 * GIB)
    made = memory(
        record(
            state="FAILED", partition="gpu2", started=NOW + timedelta(seconds=30), ended=NOW + timedelta(seconds=90),
            exit_code=1, category="gpu-out-of-memory", usage=usage, run_id="r1", result_path="results/a.json",
        )
    )  # fmt: skip

    assert made["content"].endswith(
        "Status: FAILED. Partition: gpu2, GPUs: 2, Memory: 32G, Time limit: 02:00:00."
        " Exit code: 1, Runtime: 60 s, Category: gpu-out-of-memory. Peak memory: 3G."
    )
    told = made["metadata"]
    assert (told["wait_time_seconds"], told["runtime_seconds"]) == (30, 60)
    assert (told["cpu_efficiency"], told["memory_peak_bytes"]) == (0.75, 3 * GIB)
    assert told["completed_at"] == "2026-01-02T03:05:35+00:00"
    assert {"failed", "gpu-out-of-memory", "r1", "gpu2"} <= set(made["tags"])
    assert (told["tags"], told["type"]) == (made["tags"], "slurm_job")


def test_what_users_wrote_is_visible_on_one_line_and_without_secrets():
    made = memory(record(name="a\n\x1b[2Jb", script_path="x --pass" + "word=hunter2!", run_id="r\u202e1"))

    text = json.dumps(made, ensure_ascii=False)
    assert "hunter2" not in text
    assert "\\x1b[2Jb" in made["content"]
    assert "\n" not in made["content"]
    assert "\u202e" not in text


def test_a_job_from_the_accounting_alone_has_no_script():
    made = memory(record(script_path="", state="COMPLETED", requested=Resources()))

    assert made["content"] == "SLURM JOB 7: train. Status: COMPLETED."
    assert "script" not in made["metadata"]
