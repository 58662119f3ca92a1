import pytest

from slurm_agent_tools.diagnosis import failure_record

RECORD = "2026-03-01_71_time-limit.md"


def test_a_line_names_the_day_the_job_the_category_and_its_record():
    line = failure_record.entry(RECORD, "It ran out of time. Proposed: 50 % more.", "#SBATCH --time=03:00:00")

    assert line == (
        "- 2026-03-01 · **time-limit** · job 71 · It ran out of time. Next: `#SBATCH --time=03:00:00`."
        f" [Record](issues/{RECORD})\n"
    )
    assert failure_record.listed(failure_record.HEAD + line, RECORD)
    assert not failure_record.listed(failure_record.HEAD + line, "2026-03-01_7_time-limit.md")


def test_text_of_a_job_stays_on_its_line_and_in_its_span():
    line = failure_record.entry(RECORD, "a `b`\n# Head\x1b[0m", "x`\n- y")

    assert line.count("\n") == 1
    assert line.count("`") == 2


def test_text_of_a_job_makes_no_link_and_no_html_and_lists_no_other_record():
    other = "2026-03-01_72_time-limit.md"
    line = failure_record.entry(RECORD, f"![x](http://h/x.png) <b>x</b> [Record](issues/{other})", None)

    assert line.count("](") == 1
    assert "<" not in line
    assert not failure_record.listed(line, other)


def test_a_name_that_is_no_record_is_an_error():
    with pytest.raises(ValueError, match=r"notes\.md"):
        failure_record.entry("notes.md", "x", None)


def test_a_job_has_one_record_whatever_its_category_says_later():
    names = ["2026-03-01_7_unknown.md", "2026-03-01_71_unknown.md", "2026-03-02_71_time-limit.md", "notes.md"]

    assert failure_record.of_same_job(names, RECORD) == "2026-03-01_71_unknown.md"
    assert failure_record.of_same_job(names, "2026-03-02_7_unknown.md") is None
    assert failure_record.of_same_job(["2026-03-01_71_4_unknown.md"], RECORD) is None


def test_the_same_category_before_is_told_newest_first():
    names = [f"2026-01-{day:02}_{day}_time-limit.md" for day in range(1, 15)]

    assert (
        failure_record.same([*names, RECORD, "x.md", "2026-02-01_9_unknown.md"], RECORD)
        == sorted(names, reverse=True)[:10]
    )
