"""Lessons: a line for each failure that was mended, and those that fit a new one."""

from __future__ import annotations

from datetime import date

from slurm_agent_tools.diagnosis.lessons import fitting, lesson, with_lesson

DAY = date(2026, 11, 23)


def test_a_lesson_is_one_line_with_its_day_its_category_what_failed_and_what_mended_it() -> None:
    line = lesson(DAY, "out-of-memory", "training was killed at 1G.", "memory 2G")
    assert line == "- 2026-11-23 out-of-memory: training was killed at 1G. Mended by: memory 2G."


def test_a_lesson_that_a_job_wrote_stays_one_line_without_signs_that_steer_a_terminal() -> None:
    line = lesson(DAY, "unknown", "first\nsecond \x1b[31mred", "x" * 5000)
    assert "\n" not in line
    assert "\x1b" not in line
    assert len(line) < 700


def test_a_new_file_gets_a_heading_and_a_known_lesson_is_not_written_twice() -> None:
    line = lesson(DAY, "out-of-memory", "a", "b")
    text = with_lesson("", line)
    assert text.startswith("# Lessons\n")
    assert text.endswith(f"{line}\n")
    assert with_lesson(text, lesson(date(2026, 12, 1), "out-of-memory", "a", "b")) == text
    longer = with_lesson(text, lesson(DAY, "out-of-memory", "a", "c"))
    assert longer.count("\n- ") == 2


def test_lessons_of_the_same_category_come_back_the_newest_first_and_others_do_not() -> None:
    text = ""
    for day in (1, 2, 3, 4):
        text = with_lesson(text, lesson(date(2026, 1, day), "out-of-memory", f"failure {day}", "more memory"))
    text = with_lesson(text, lesson(DAY, "time-limit", "too slow", "more time"))
    text += "- not a lesson\nfree words of a person\n"
    assert fitting(text, "out-of-memory") == [
        f"2026-01-0{day}: failure {day}. Mended by: more memory." for day in (4, 3, 2)
    ]
    assert fitting(text, "missing-file") == []
