"""One answer of each tool, and arguments that it takes: what a toolbox that only records answers with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.unit.planning import problems

from slurm_agent_tools.models import (
    backend_answer,
    campaign_answer,
    diagnosis_answer,
    fleet_answer,
    report,
    result,
    shapes,
    status_answer,
    submission_answer,
    sync_answer,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
JOB = shapes.JobShown(job_id="7", name='a|b "c"', state="RUNNING")
ANSWERS: dict[str, shapes.Reply] = {
    "get_status": status_answer.StatusReply(
        status="ok", summary="Idle.", as_of=NOW, cluster=status_answer.ClusterSection(name="c", version="22.05", reachable=True)
    ),
    "validate_config": submission_answer.ValidateReply(status="valid", summary="Valid.", as_of=NOW),
    "generate_script": submission_answer.GenerateReply(status="written", summary="Written.", as_of=NOW, path="s.sh"),
    "submit_job": submission_answer.SubmitReply(
        status="blocked", summary="Refused.", as_of=NOW, blocker="policy", reason="too much memory",
        human_action_required=False,
    ),
    "wait_for_job": report.WaitReply(status="running", summary="Running.", as_of=NOW, job=JOB),
    "analyze_log": diagnosis_answer.AnalyzeReply(status="no_log", summary="No log.", as_of=NOW),
    "save_result": result.SaveReply(status="dry_run", summary="Would save.", as_of=NOW), "compare_results": result.CompareReply(
        status="ok", summary="Same.", as_of=NOW, metrics={},
        baseline=shapes.ResultBrief(file_path="a", experiment_name="a", status="success", timestamp="t"),
        target=shapes.ResultBrief(file_path="b", experiment_name="b", status="success", timestamp="t"),
    ),
    "cancel_job": submission_answer.CancelReply(status="cancelled", summary="Cancelled.", as_of=NOW, job=JOB), "sync_files": sync_answer.SyncReply(status="done", summary="Sent.", as_of=NOW, direction="push", sent=2, bytes=7),
    "choose_backend": backend_answer.ChooseReply(
        status="chosen", summary="It goes to lab/gpu.", as_of=NOW, question=3, backend="lab", partition="gpu", stage="production",
        next=backend_answer.NextCall(tool="submit_job", arguments={"script": "job.sh", "partition": "gpu"}),
    ),
    "get_campaign": campaign_answer.CampaignReply(status="planned", summary="It has not begun.", as_of=NOW),
    "advance_campaign": campaign_answer.CampaignReply(
        status="running", summary="Round 1.", as_of=NOW, round=1, submitted=["7"], next_poll_seconds=30,
        best=[campaign_answer.BestShown(stage="training", settings={"lr": 0.1}, value=0.5)],
    ),
    "plan_jobs": problems.ANSWER,
    "get_fleet": fleet_answer.FleetReply(
        status="ok", summary="4 GPUs are free.", as_of=NOW,
        not_measured=[fleet_answer.NotMeasured(what="use of GPUs", why="nobody measures it")],
    ),
}  # fmt: skip
ARGUMENTS: dict[str, dict[str, Any]] = {
    "get_status": {"sections": ["jobs"]},
    "validate_config": {"config_path": "c.yaml"},
    "generate_script": {"name": "n", "command": "true", "checkpoint": {"dir": "ckpt"}},
    "submit_job": {"script": "job.sh", "args": ["--lr", "0.1"]},
    "wait_for_job": {"job_id": "7"},
    "analyze_log": {"job_id": "7"},
    "save_result": {"name": "n", "status": "success", "metrics": {"loss": 0.1}},
    "compare_results": {"baseline": "a", "target": "b"},
    "cancel_job": {"job_id": "7", "reason": "diverged"},
    "sync_files": {"direction": "push"},
    "choose_backend": {"script": "job.sh", "jobs": 60, "urgency": "urgent"},
    "get_campaign": {"name": "rates", "view": "table"},
    "advance_campaign": {"name": "rates", "timeout_seconds": 0},
    "plan_jobs": {"jobs": [{"name": "sweep", "count": 4, "expected": "2h"}], "pool": [{"gpus": 4}]},
    "get_fleet": {"sections": ["inventory", "free"], "match": {"gpus": 2, "gpu_memory": "40G"}},
}
