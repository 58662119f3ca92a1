"""What submit_job's answer means for a campaign, and the reasons that it gives the guard."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from slurm_agent_tools.campaigns.batch import Batch
from slurm_agent_tools.campaigns.outcomes import outcome, written_reason
from slurm_agent_tools.campaigns.ports import (
    BatchHasToWait,
    BatchIsRefused,
    BatchIsSent,
    BatchIsUnconfirmed,
    SendOutcome,
)
from slurm_agent_tools.models.campaign import TrialId
from slurm_agent_tools.models.decision import DecisionShown, PolicyUsed, RuleDecision
from slurm_agent_tools.models.submission_answer import SubmitReply

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = Batch("c/r1/b1", (TrialId(1, 1),), "a.sh", "", arguments={"args": ["round=1", "trial=1", "lr=0.1"]})


def blocked(*rules: RuleDecision, **facts: object) -> SubmitReply:
    decision = DecisionShown(id="1", verdict="deny", policy=PolicyUsed("1", "0", ()), rules=list(rules))
    return SubmitReply(
        status="blocked", summary="", as_of=NOW, decision=decision, **({"blocker": "policy", "reason": "no"} | facts)
    )


def rule(name: str, level: str, remedy: str = "Change it.") -> RuleDecision:
    return RuleDecision(id=name, outcome=level, message=f"{name} says no.", remedy=remedy)  # type: ignore[arg-type]


FULL = replace(rule("concurrent-jobs", "deny", "Replace line 11 with:\n#SBATCH --array=1-6%3\nOr wait."), limit=4)
WAIT = rule("concurrent-jobs", "deny", 'wait_for_job with job_id="7" until it has ended, then submit again.')


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        (SubmitReply(status="submitted", summary="", as_of=NOW, job_id="7"), BatchIsSent(7)),
        (SubmitReply(status="unconfirmed", summary="", as_of=NOW, reason="lost"), BatchIsUnconfirmed("lost")),
        (blocked(WAIT), BatchHasToWait(30, "concurrent-jobs says no.")),
        (blocked(WAIT, rule("gpus", "deny")), BatchIsRefused("no", person=False, rules=("concurrent-jobs", "gpus"))),
        (blocked(reason="it would be one of 5 concurrent jobs"), BatchHasToWait(30, "it would be one of 5 concurrent jobs")),
        (blocked(rule("gpus", "approve")), BatchIsRefused("no", person=True, rules=("gpus",))),
        (blocked(blocker="approval", human_action_required=True), BatchIsRefused("no", person=True)),
    ],
)  # fmt: skip
def test_an_answer_is_sent_to_be_waited_for_refused_or_not_known(reply: SubmitReply, wanted: SendOutcome):
    assert outcome(reply) == wanted


def test_an_array_that_fits_below_the_cap_waits_for_other_jobs_and_one_that_never_fits_is_refused():
    assert outcome(blocked(FULL), 4) == BatchHasToWait(30, "concurrent-jobs says no.")
    assert outcome(blocked(FULL), 5) == BatchIsRefused("no", person=False, rules=("concurrent-jobs",))


def test_a_reason_is_given_for_what_the_campaign_itself_holds_and_for_nothing_else():
    ladder, failed = rule("smoke-first", "justify"), rule("auto-retry", "justify")
    assert "job 5, passed" in (written_reason("c", BATCH, blocked(ladder), "5") or "")
    assert "lr=0.1" in (written_reason("c", BATCH, blocked(failed), None) or "")
    assert "job 5, passed" in (written_reason("c", BATCH, blocked(FULL, ladder), "5") or "")
    assert written_reason("c", BATCH, blocked(FULL), "5") is None
    assert written_reason("c", BATCH, blocked(ladder), None) is None
    assert written_reason("c", BATCH, blocked(ladder, rule("gpus", "justify")), "5") is None
    assert written_reason("c", BATCH, blocked(rule("auto-retry", "approve")), "5") is None
    assert written_reason("c", BATCH, SubmitReply(status="submitted", summary="", as_of=NOW), "5") is None
