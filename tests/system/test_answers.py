"""What brief answers take in bytes on a real Slurm."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.everyday import FAULTY, shown
from mcp import Client
from tests.system.faces import Place

JOB = "#!/bin/sh\n#SBATCH --partition=cpu\n#SBATCH --mem=50M\n#SBATCH --time=5\n#SBATCH --output=%x-%A.out\n"
FIVE = {"memory-per-gpu", "gpus", "cuda-visible-devices", "auto-retry", "direct-submission"}


async def asked(client: Client, tool: str, **arguments: Any) -> tuple[dict[str, Any], int]:
    """The brief answer, and the bytes of its longer form."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content or {}, max(shown(result))


@pytest.mark.proves("answers-are-brief")
async def test_answers_about_real_jobs_keep_to_their_bytes(fresh: Place):
    (fresh.project / "slow.sh").write_text(f"{JOB}sleep 25\n")
    (fresh.project / "sweep.sh").write_text(f"{JOB}[ $((SLURM_ARRAY_TASK_ID % 7)) != 3 ] || exit 3\n")
    (fresh.project / "faulty.sh").write_text(FAULTY)
    fresh.own()
    async with fresh.client() as client:
        status, size = await asked(client, "get_status")
        assert (status["slurm"]["slots_left"] > 0, size < 3_000) == (True, True)

        refused, size = await asked(client, "submit_job", script="faulty.sh")
        assert {rule["id"] for rule in refused["decision"]["rules"]} >= FIVE
        assert size < 3_000, refused

        job = (await asked(client, "submit_job", script="slow.sh"))[0]["job_id"]
        going, size = await asked(client, "wait_for_job", job_id=job, timeout_seconds=8)
        assert (going["status"], size < 500) == ("running", True), going
        again, size = await asked(client, "wait_for_job", job_id=job, timeout_seconds=1)
        assert (again["job"], size < 300) == ({"job_id": job, "state": "RUNNING"}, True), again
        ended, size = await asked(client, "wait_for_job", job_id=job, timeout_seconds=60)
        assert (ended["status"], "report" in ended, size < 2_000) == ("finished", True, True), ended
        again, size = await asked(client, "wait_for_job", job_id=job)
        assert ("report" in again, size < 300) == (False, True), again

        saved, size = await asked(
            client, "save_result", name="slow", status="success", job_id=job, metrics={"loss": 0.1}
        )
        assert (saved["status"], size < 1_200) == ("saved", True), saved

        array = (await asked(client, "submit_job", script="sweep.sh", array="0-39%4"))[0]["job_id"]
        failed, size = await asked(client, "wait_for_job", job_id=array, timeout_seconds=240)
        assert (failed["status"], failed["tasks_by_state"]) == ("finished", {"COMPLETED": 34, "FAILED": 6})
        assert ([task["exit_code"] for task in failed["tasks"]], size < 2_500) == ([3] * 6, True), failed
