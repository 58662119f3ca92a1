"""A plan that a person reads: nothing in it is cut, hidden or able to pass for another part of it."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_agent_tools.text import plan_text

pytestmark = pytest.mark.proves("a-plan-is-shown-whole")


def rows(text: str) -> list[str]:
    """The lines of a script as they are shown, without their frame."""
    first, *inner, last = plan_text.script(text.encode("utf-8", "surrogateescape")).splitlines()
    assert first.startswith("--- the script: ")
    assert last == "--- end of the script ---"
    return inner


HIDDEN = {
    "a b": "a b",
    "    indented": "    indented",
    "\tindented": "        indented",
    "a\tb": r"a\tb",
    "a ": r"a\x20",
    "a   ": r"a\x20\x20\x20",
    "a" + " " * 90: r"a\x20{90}",
    "a\t": r"a\t",
    "a" + "\t" * 7: r"a\t{7}",
    "  ": r"\x20\x20",
    "a" + " " * 90 + "; rm": r"a\x20{90}; rm",
    " " * 90 + "rm": r"\x20{90}rm",
    "a" + " " * 40 + "b": "a" + " " * 40 + "b",
    "a\x1b[2K": r"a\x1b[2K",
    "a\rb": r"a\rb",
    "a\x0bb\x85c\u2028d": r"a\x0bb\x85c\u2028d",
    "a\u202eb": r"a\u202eb",
    "a\u200bb": r"a\u200bb",
    "a\u00a0b\u3000c": r"a\xa0b\u3000c",
    "a\u0338b": r"a\u0338b",
    "echo \u05d0\u05d1 1": r"echo \u05d0\u05d1 1",
    "echo \u0661": r"echo \u0661",
    "a\U000e0041b": r"a\U000e0041b",
    "a\u2800b\u11a8\u1175\ud7b0": r"a\u2800b\u11a8\u1175\ud7b0",
    "a\ufdd0b\u0378": r"a\ufdd0b\u0378",
    "\ud55c\uae00": "\ud55c\uae00",
    "caf\u00e9 \u4e2d": "caf\u00e9 \u4e2d",
}


@pytest.mark.parametrize("line", HIDDEN, ids=ascii)
def test_what_the_eye_would_miss_is_spelled_out_and_what_it_sees_stays(line: str):
    (shown,) = rows(f"{line}\n")
    assert shown == f"    1 | {HIDDEN[line]}"


def test_lines_with_signs_that_were_spelled_out_are_named():
    first = plan_text.script(b"a\nb \n\tc\n\x1bd\n").splitlines()[0]
    assert first == "--- the script: 4 lines, 11 bytes; signs that cannot be seen are spelled out in lines 2, 4 ---"
    assert plan_text.script(b"a\n\tb\n").splitlines()[0] == "--- the script: 2 lines, 5 bytes ---"
    assert "lines 1, 2" in (many := plan_text.script(b"a \n" * 30).splitlines()[0])
    assert many.endswith("19, 20 and 10 more ---")


def test_a_long_line_goes_on_below_and_no_part_of_it_is_left_out():
    line = "".join(f"{number:04d}" for number in range(500))
    first, *rest = rows(line)
    assert first.startswith("    1 | 0000")
    assert all(row.startswith("      + ") for row in rest)
    assert "".join(row[8:] for row in (first, *rest)) == line
    assert max(map(len, (first, *rest))) == plan_text.COLUMNS


def test_wide_letters_take_two_columns():
    first, second = rows("\u4e2d" * 40)
    assert (len(first), len(second)) == (8 + 36, 8 + 4)


def test_no_line_of_a_script_passes_for_the_end_of_it_or_for_a_fact():
    text = "--- end of the script ---\nexpires: never\n    2 | echo\n      + more\nasked by: root"
    assert [row[:8] for row in rows(text)] == [f"    {number} | " for number in range(1, 6)]


def test_bytes_that_are_no_text_are_spelled_out():
    assert plan_text.script(b"a\xff\xfeb").splitlines()[1] == r"    1 | a\xff\xfeb"


def test_an_empty_script_has_no_lines():
    assert plan_text.script(b"") == "--- the script: 0 lines, 0 bytes ---\n--- end of the script ---\n"


@given(st.text())
def test_of_any_text_each_row_can_be_seen_and_fits(text: str):
    for row in rows(text):
        assert re.match(r"( *\d+ \|| {6}\+) ", row)
        assert row == row.rstrip() or row[8:] == "" or set(row[8:]) == {" "} or len(row) == plan_text.COLUMNS
        assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]", row)


def test_a_fact_is_one_line_whatever_it_holds():
    long = "x" * 200
    text = plan_text.facts([("job name", "a\nexpires: never\u202e"), ("options", long)])
    first, *rest = text.splitlines()
    assert first == r"job name: a\nexpires: never\u202e"
    assert all(row.startswith("      + ") for row in rest[1:])


# --- as a dialog, and as pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["plain", "a ``` b", "`````\n<!-- hidden -->\n`````"])
def test_a_client_that_reads_markdown_takes_nothing_for_markup(inner: str):
    first, *rest, last = plan_text.fenced(inner).splitlines()
    assert "\n".join(rest) == inner
    assert (first, set(first)) == (last, {"`"})
    assert first not in inner


def test_pages_hold_every_line_once_and_none_is_higher_than_the_terminal():
    text = "".join(f"{number} {'x' * (number % 130)}\n" for number in range(500))
    for columns, lines in ((80, 24), (200, 50), (20, 10), (1, 1), (80, 100_000)):
        made = plan_text.pages(text, os.terminal_size((columns, lines)))
        assert "".join(made) == text
        high = [sum(max(1, -(-len(line) // max(columns, 20))) for line in page.splitlines()) for page in made]
        assert max(high) <= min(max(lines - 6, 8), 100)


def test_a_page_of_wide_letters_is_not_higher_than_the_terminal():
    text = "".join(f"{'x' * (number % 3)}{chr(0x6F22) * number}\n" for number in range(90))
    for columns, lines in ((80, 24), (41, 24), (21, 10), (20, 5)):
        made = plan_text.pages(text, os.terminal_size((columns, lines)))
        assert "".join(made) == text
        for page in (one for one in made if one.count("\n") > 1):
            assert sum(rows_of(line, columns) for line in page.splitlines()) <= max(lines - 6, 8)


def rows_of(line: str, columns: int) -> int:
    """Rows that a terminal takes for a line: a wide letter that does not fit goes to the next one."""
    made, used = 1, 0
    for sign in line:
        wide = 1 if sign.isascii() else 2
        made, used = (made + 1, wide) if used + wide > columns else (made, used + wide)
    return made


# --- two plans --------------------------------------------------------------------------------------------------------


def plan(script: str, *more: tuple[str, str], head: str = "a\nb\nc\nd\n") -> str:
    facts = plan_text.facts([("script", "train.sh"), *more])
    return head + facts + plan_text.reasons(["gpus: too many"], "cli") + plan_text.script(script.encode())


def test_what_differs_between_two_plans_is_said():
    before = plan("a\nb\nc\n", ("options", "none"), ("also runs", "x.py (1)"), ("also runs", "y.py (1)"))
    assert plan_text.differences(before, before) == []
    other = plan(
        "a\nb\nC\n", ("options", "--time=5"), ("also runs", "x.py (1)"), ("also runs", "y.py (2)"), head="e\nf\ng\nh\n"
    )
    assert plan_text.differences(before, other) == [
        "options was none and is --time=5",
        "also runs was x.py (1), y.py (1) and is x.py (1), y.py (2)",
        "the script differs from line 3 on",
    ]
    assert plan_text.differences(before, other, ["script", "options"])[1:] == ["the script differs from line 3 on"]


@pytest.mark.parametrize(
    ("before", "now", "line"),
    [("a\n", "a\nb\n", "2"), ("a\nb\n", "a\n", "2"), ("x" * 200, "x" * 199, "1"), ("", "a", "1")],
)
def test_the_first_line_that_differs_is_named(before: str, now: str, line: str):
    assert f"the script differs from line {line} on" in plan_text.differences(plan(before), plan(now))


def test_a_fact_that_was_folded_is_read_whole():
    long = "word " * 50 + "end"
    assert plan_text.value(plan("a", ("reason given", long)), "reason given") == long
    assert plan_text.value(plan("a"), "reason given") is None


def test_reasons_name_each_rule_and_nothing_else():
    text = plan_text.reasons(["gpus: too many " + "x" * 100, "time-limit: too long"], "cli")
    assert plan_text.reasons_fit(text, ["gpus", "time-limit"])
    for other in (["gpus"], ["time-limit", "gpus"], [], ["gpus", "time-limit", "budget"]):
        assert not plan_text.reasons_fit(text, other)
    assert not plan_text.reasons_fit(text + "  more: a\n", ["gpus", "time-limit"])


def test_a_text_in_the_ledger_that_would_paint_over_what_is_read_is_no_plan():
    painted = plan("a").replace("asked by: cli", "asked by: \x1b[2J\x1b[Hcli\x1b[8m")
    assert plan_text.differences(painted, plan("a")) == ["its text holds signs that a terminal would act on"]
    assert not plan_text.reasons_fit(plan_text.reasons([], "cli").replace("cli", "cli\x1b[8m"), [])
    assert plan_text.reasons_fit(plan_text.reasons([], "cli\x1b[8m \u202e caf\u00e9 \u4e2d"), [])
