"""`watch` on the real cluster: a job that sleeps on its GPUs becomes one message at a target that listens here."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from tests.system.faces import Place
from tests.system.test_prometheus import GPU_JOB, QUICK, listening

LOOKS = 40


@pytest.mark.proves("told-once")
def test_a_job_that_sleeps_on_its_gpus_is_one_message(fresh: Place):
    job = fresh.slurm("sbatch", "--parsable", "--chdir", str(fresh.project), *GPU_JOB)
    with listening() as (port, heard):
        address = f"json://never-shown@127.0.0.1:{port}/hush"
        place = replace(
            fresh,
            extra={**QUICK, "SLURM_AGENT_NOTIFY": '{"env": ["ALERTS_TO"], "least": "high"}', "ALERTS_TO": address},
        )
        said: list[subprocess.CompletedProcess[bytes]] = []

        def look() -> list[str]:
            said.append(place.run([sys.executable, "-m", "slurm_agent_tools", "watch", "--once"]))
            return [one["message"] for one in heard if "do nothing" in one["message"]]

        told: list[str] = next((found for _ in range(LOOKS) if (found := look())), [])
        assert len(told) == 1, (said[-1], heard)
        assert f"Job {job} holds 2 GPUs" in told[0]
        for _ in range(2):
            assert look() == told
            assert said[-1].returncode == 0, said[-1]
    fresh.slurm("scancel", job)
    every = b"".join(one.stdout + one.stderr for one in said)
    assert b"ALERTS_TO (json): took" in every
    assert b"never-shown" not in every
    assert b"hush" not in every
