"""The tools that are marked read-only, on the real cluster: what they leave as it was, and what they remember."""

from __future__ import annotations

import re

import pytest
from tests.system.campaign_files import RATES_FILE, TRAIN, laboratory
from tests.system.faces import Place

from slurm_agent_tools.api.catalogue import TOOLS

JOB = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --output=logs/slurm/%x-%j.out\nsleep 120\n"
PASSING = re.compile(r"RunTime=\S+|LastSchedEval=\S+")  # a job's own clock goes on

# docs/decisions/read-only-marks.md
REMEMBERED = re.compile(r"\.state/(?:.*/)?(?:(?:ledger\.|seen-)[^/]*|plans/[^/]*\.json)")


def left(place: Place, job: str) -> tuple[str, dict[str, bytes]]:
    """The job as Slurm shows it, and every file of the project and of our state but the ledger and what else was seen."""
    home = place.project.parent
    files = [path for folder in (place.project, home / ".state") for path in folder.rglob("*") if path.is_file()]
    kept = {name: path.read_bytes() for path in files if not REMEMBERED.fullmatch(name := str(path.relative_to(home)))}
    return PASSING.sub("", place.slurm("scontrol", "show", "job", job)), kept


@pytest.mark.proves("reading-only-remembers")
def test_what_only_reads_changes_no_job_no_file_and_no_decision(fresh: Place):
    (fresh.project / "train.sh").write_text(JOB)
    laboratory(fresh, "rates", RATES_FILE, {"train.py": TRAIN})
    fresh.cli("get_status", "--no-cache")
    _, sent = fresh.cli("submit_job", "--script=train.sh")
    job = str(sent["job_id"])
    fresh.cli("wait_for_job", job, "--timeout-seconds=10")
    paths = [fresh.cli("save_result", "--name=r", "--status=success")[1]["file_path"] for _ in range(2)]
    words = {
        "get_status": ["--no-cache"],
        "wait_for_job": [job, "--timeout-seconds=1"],
        "analyze_log": [f"--job-id={job}"],
        "validate_config": ["train.sh"],
        "compare_results": paths,
        "choose_backend": ["train.sh", "--expected=2h"],
        "get_campaign": ["rates", "--view=plan"],
        "plan_jobs": ['--jobs=[{"name": "a", "script": "train.sh", "expected": "2h", "count": 4}]'],
        "get_fleet": ['--match={"gpus": 1}'],
    }
    before = left(fresh, job)
    said = {tool: fresh.cli(tool, *more) for tool, more in words.items()}

    assert set(words) == {tool.name for tool in TOOLS if tool.read_only}
    assert "error" not in {key for _, reply in said.values() for key in reply}, said
    assert "JobState=RUNNING" in before[0]
    assert left(fresh, job) == before
    fresh.slurm("scancel", job)


@pytest.mark.proves("reading-only-remembers")
def test_that_somebody_looked_is_remembered_for_whoever_submits_next(fresh: Place):
    (fresh.project / "train.sh").write_text(JOB)
    fresh.own()
    _, refused = fresh.cli("submit_job", "--script=train.sh")
    assert "status-first" in {rule["id"] for rule in refused["decision"]["rules"] if rule["outcome"] == "deny"}
    fresh.cli("get_status", "--no-cache")
    _, sent = fresh.cli("submit_job", "--script=train.sh")
    assert sent["status"] == "submitted", sent
    fresh.slurm("scancel", str(sent["job_id"]))
