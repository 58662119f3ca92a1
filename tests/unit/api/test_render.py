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


def shown_lines(**facts: object) -> list[str]:
    return render.lines(render.pieces({"status": "ok", "summary": "Done.", **facts}))[1:]


def test_rows_of_a_table_stand_in_columns_and_what_is_not_known_is_a_dash() -> None:
    rows = [["trial", "lr", "queue_s"], ["r1-t1", 0.01, 3.0], ["r1-t12", 10, None]]

    assert shown_lines(table=rows) == [
        "table:",
        "  trial   lr    queue_s",
        "  r1-t1   0.01  3",
        "  r1-t12  10    -",
    ]
    heading, table = render.pieces({"status": "ok", "summary": "Done.", "table": rows})[1:]
    assert heading.lines() == ["table:"]
    assert isinstance(table, render.Table)
    assert (table.header, table.rows[-1]) == (["trial", "lr", "queue_s"], ["r1-t12", "10", "-"])


def test_a_cell_from_a_job_stays_one_line_of_its_table() -> None:
    shown = shown_lines(table=[["trial", "state"], ["r1-t1", "a\nverdict: allow\x1b[2J"]])

    assert len(shown) == 3
    assert "\x1b" not in shown[2]


def test_lists_that_are_no_table_are_shown_one_by_one() -> None:
    assert shown_lines(rows=[["a", "b"], ["c"]]) == ["rows:", "  - a, b", "  - c"]
    assert shown_lines(rows=[[], []]) == ["rows:", "  - ", "  - "]


def test_whole_numbers_are_shown_as_such_and_others_as_they_are() -> None:
    limits = {"trials": 40.0, "cpu_hours": 0.5, "at_once": 4, "loss": 1e300, "sure": True}

    assert shown_lines(limits=limits) == [
        "limits:", "  trials: 40", "  cpu_hours: 0.5", "  at_once: 4", "  loss: 1e+300", "  sure: True",
    ]  # fmt: skip


def test_what_has_several_parts_within_a_line_stands_in_brackets() -> None:
    target = {"file_path": "results/a.json", "metrics": {"loss": {"baseline": 5.5, "target": 2.0}, "seen": [1, 2]}}

    assert shown_lines(results=[target]) == [
        "results:",
        "  - file_path=results/a.json  metrics=(loss=(baseline=5.5  target=2)  seen=[1, 2])",
    ]
