"""What the ledger remembers of a job's end: what analyze_log found, and with what words cancel_job ended it."""

from __future__ import annotations

import pwd
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.diagnosis.records import job
from tests.unit.services.clusters import NOW, Cluster, submitted

from slurm_agent_tools.insights import job_outcome
from slurm_agent_tools.models.arguments import AnalyzeLog
from slurm_agent_tools.models.diagnosis_answer import AnalyzeReply, Diagnosis
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.units import JobId

FOUND = Diagnosis(category="missing-module", confidence=0.8, escalation="critical", explanation="No module named x.")


def failing(folder: Path, **changes: object) -> Cluster:
    cluster = Cluster(folder, state="FAILED", end=NOW - 5, **changes)
    context = cluster.box.context
    context.store.add(context.owner, submitted(datetime.fromtimestamp(cluster.begun, UTC)))
    return cluster


async def analysed(cluster: Cluster) -> AnalyzeReply:
    reply = await cluster.box.call("analyze_log", AnalyzeLog(job_id="5"))
    assert isinstance(reply, AnalyzeReply)
    return reply


async def test_after_analyze_log_the_report_and_the_summary_tell_what_it_found(tmp_path: Path):
    cluster = failing(tmp_path)
    cluster.write("Traceback (most recent call last):\nModuleNotFoundError: No module named 'torchx'\n")
    before = await cluster.wait()
    assert before.report is not None
    assert "not known yet: the log was not read" in before.report.text
    assert before.summary.endswith('analyze_log with job_id="5" says why.')
    assert before.summary.count("exit") <= 1

    found = await analysed(cluster)
    after = await cluster.wait()
    assert found.diagnosis is not None
    assert after.report is not None
    assert "- Error type: missing-module (from analyze_log)" in after.report.text
    assert f"- Explanation: {found.diagnosis.explanation}" in after.report.text
    assert "analyze_log" not in after.summary


async def test_analyze_log_and_wait_for_job_show_the_same_job(tmp_path: Path):
    cluster = failing(tmp_path)
    told = (await analysed(cluster)).job
    shown = (await cluster.wait()).job
    assert told is not None
    assert (told.managed, told.cause) == (shown.managed, shown.cause) == (True, shown.cause)


def test_a_diagnosis_is_of_the_very_job_and_of_its_last_end():
    over = job("FAILED")
    assert over.ended is not None
    run = submitted(over.ended, diagnosis=job_outcome.found_cause(over, FOUND), analysed=over.ended)
    assert job_outcome.remembered(run, over) == FOUND
    assert job_outcome.remembered(run, job("FAILED", job_id=JobId(71, task=2))) is None
    assert job_outcome.remembered(run, job("FAILED", ended=over.ended + timedelta(seconds=1))) is None
    assert job_outcome.remembered(submitted(over.ended), over) is None
    assert job_outcome.remembered(None, over) is None


def test_no_secret_of_a_log_is_kept():
    leaky = FOUND.model_copy(update={"explanation": "KeyError: password=hunter2hunter2"})
    assert "hunter2" not in job_outcome.found_cause(job("FAILED"), leaky).explanation


# --- cancelled ---------------------------------------------------------------------------------------------------


def cancelled(**facts: Any) -> Job:
    return job("CANCELLED", **facts)


@pytest.fixture
def context(tmp_path: Path) -> ClusterContext:
    return Cluster(tmp_path).box.context


def test_a_job_that_cancel_job_ended_is_told_of_with_its_words(context: ClusterContext):
    run = submitted(datetime.fromtimestamp(NOW, UTC), cancellation={str(JobId(71)): "wrong data set."})
    who = context.owner.user
    assert job_outcome.cause(context, run, cancelled()) == f"It was cancelled by {who} with cancel_job: wrong data set."
    told = job_outcome.cause(context, run, cancelled(cancelled_by="1001", job_id=JobId(71, task=3)))
    assert told == f"It was cancelled by {who} (1001) with cancel_job: wrong data set."


def test_the_words_for_one_task_are_not_those_of_another(context: ClusterContext):
    run = submitted(datetime.fromtimestamp(NOW, UTC), cancellation={str(JobId(71, task=3)): "it hangs"})
    assert job_outcome.reason(run, cancelled(job_id=JobId(71, task=3))) == "it hangs"
    assert job_outcome.cause(context, run, cancelled(job_id=JobId(71, task=4))) == "It was cancelled."
    assert job_outcome.reason(run, job("COMPLETED", job_id=JobId(71, task=3))) is None


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (None, "."),
        ("bob", " by bob."),
        ("4294967290", " by user 4294967290."),
        ("0", f" by {pwd.getpwuid(0).pw_name} (0)."),
    ],
)
def test_who_cancelled_a_job_is_told_by_name_where_it_is_known(context: ClusterContext, told: str | None, wanted: str):
    assert job_outcome.cause(context, None, cancelled(cancelled_by=told)) == f"It was cancelled{wanted}"


def test_a_diagnosis_of_a_cancellation_asks_nobody_where_the_reason_is_known(context: ClusterContext):
    asked = Diagnosis(
        category="cancelled", confidence=0.9, escalation="none", suggestions=["ask who"],
        explanation="The job was cancelled by user 1001. The log also shows a warning",
    )  # fmt: skip
    over = cancelled(cancelled_by="1001")
    run = submitted(datetime.fromtimestamp(NOW, UTC), cancellation={str(JobId(71)): "wrong data set"})
    told = job_outcome.explained(context, run, over, asked)
    assert told.explanation.endswith("with cancel_job: wrong data set. The log also shows a warning")
    assert told.suggestions == []
    assert job_outcome.explained(context, None, over, asked) is asked
    assert job_outcome.explained(context, run, over, FOUND) is FOUND
