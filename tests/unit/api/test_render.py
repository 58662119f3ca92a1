"""Answers as text for people: every fact once."""

from __future__ import annotations

from slurm_agent_tools.api import render

RULE = {"id": "auto-retry", "outcome": "justify", "message": "Job 7 failed.", "remedy": "Change it."}
OTHER = {"id": "budget", "outcome": "warn", "message": "Many hours.", "remedy": None}
REASON = "auto-retry (needs a written reason): Job 7 failed.\nChange it."
BODY = {
    "status": "blocked",
    "summary": f"train was not submitted: {REASON}",
    "reason": REASON,
    "decision": {"verdict": "justify", "policy": {"version": "1", "sha256": "a" * 64}, "rules": [RULE, OTHER]},
}


def test_a_refusal_says_its_reason_and_its_remedy_once() -> None:
    text = "\n".join(render.lines(render.pieces(BODY)))

    assert text.count("Job 7 failed.") == 1
    assert text.count("Change it.") == 1
    assert "justify auto-retry" in text
    assert "warn budget: Many hours." in text


def test_a_reason_that_the_summary_does_not_hold_is_shown() -> None:
    text = "\n".join(render.lines(render.pieces(BODY | {"summary": "train was not submitted."})))

    assert "reason: auto-retry" in text
    assert "  justify auto-retry: Job 7 failed." in text


def test_a_priority_that_is_not_offered_says_so() -> None:
    def shown(*qos: str) -> list[str]:
        policy = {"priority": {"low": {"nice": 100}, "high": {"qos": [*qos]}}}
        return render.lines(render.facts(render.readable({"policy": policy})))

    assert "    high: not offered" in shown()
    assert "not offered" not in "\n".join(shown("urgent"))
