"""The words of single remedies: which lines they name, what they keep of them, and how arguments are called."""

from __future__ import annotations

import pytest

from slurm_agent_tools.models.request import Directive, Evidence
from slurm_agent_tools.policy.rules import rule
from slurm_agent_tools.scripts import directive_lines

FILE = "a.sh"


def places(*texts: str) -> list[Evidence]:
    return [Evidence(FILE, number, text) for number, text in enumerate(texts, 2)]


def stated(option: str, line: str, *, number: int = 2, value: str | None = "1", source: str = "script") -> Directive:
    return Directive(option, value, source, Evidence(FILE, number, line))  # type: ignore[arg-type]


# --- steps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["a"], "line 2 (`a`)"),
        (["a", "b", "c"], "line 2, line 3, line 4 (`a`; `b`; `c`)"),
        (["a", "b", "c", "d"], "line 2, line 3, line 4, line 5 (`a` to `d`)"),
    ],
)
def test_a_step_names_its_lines_and_shows_a_few(texts, told):
    assert rule.edit(places(*texts), ["x", "y"]) == f"Replace {told} by:\nx\ny"
    assert rule.edit(places(*texts), []) == f"Delete {told}."


@pytest.mark.parametrize(("length", "shown"), [(120, "x" * 120), (121, "x" * 117 + "...")])
def test_a_long_line_is_shown_in_part(length, shown):
    assert rule.edit(places(f"  {'x' * length}  "), []) == f"Delete line 2 (`{shown}`)."


def test_a_line_of_another_file_is_named_with_it():
    assert rule.edit(places("a"), ["x"], script=FILE) == "Replace line 2 (`a`) by:\nx"
    assert rule.edit(places("a"), ["x"], script="b.sh") == "Replace line 2 of a.sh (`a`), indented like it, by:\nx"


def test_what_no_edit_does_is_said_in_words_with_its_line():
    assert rule.in_words(places("a"), "do b") == "Change line 2 (`a`) yourself: do b."
    assert rule.in_words(places("a"), "do b", script="b.sh") == "Change line 2 of a.sh (`a`) yourself: do b."


def test_signs_that_a_line_cannot_show_are_blanks():
    assert rule.edit(places("a\rb\x07"), []) == "Delete line 2 (`a b `)."


def test_ways_stand_behind_what_leads_to_them_and_those_with_a_reason_can_go():
    offered = rule.ways("one", ("wait", "two"), ("give your reason in the call", "three\nfour"), ("ask", "five"))
    assert offered == "one\nOr wait:\ntwo\nOr give your reason in the call:\nthree\nfour\nOr ask:\nfive"
    assert rule.without_reasons(offered) == "one\nOr wait:\ntwo\nOr ask:\nfive"


# --- options ------------------------------------------------------------------------------------------------------


def test_other_options_of_a_line_are_kept_with_their_comment():
    line = "#SBATCH --mem=2G --gpus=1  # for both"
    assert rule.replace([stated("mem", line)], "#SBATCH --mem=1G") == (
        f"Replace line 2 (`{line}`) by:\n#SBATCH --gpus=1  # for both\n#SBATCH --mem=1G"
    )
    bare = "#SBATCH --mem=2G --gpus=1"
    assert rule.replace([stated("mem", bare)]) == f"Replace line 2 (`{bare}`) by:\n#SBATCH --gpus=1"
    assert rule.replace([stated("mem", bare), stated("gpus", bare)]) == f"Delete line 2 (`{bare}`)."


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("exclusive", None, "--exclusive"),
        ("array", "0-9%2", "--array=0-9%2"),
        ("job-name", "a b", '--job-name="a b"'),
        ("comment", 'ü"', '--comment="ü\\""'),
    ],
)
def test_an_option_stands_on_a_line_as_sbatch_reads_it(name, value, text):
    assert directive_lines.spelled(name, value) == text


@pytest.mark.parametrize(
    ("option", "line", "step"),
    [
        ("time", "#SBATCH --time=01:00:00  # soon", 'Call again with time_limit="01:00:00".'),
        ("array", "#SBATCH --array=0-3%2", 'Call again with array="0-3%2".'),
        ("nodes", "#SBATCH --nodes=1", 'Call again with nodes="1".'),
        ("nodes", "#SBATCH --gpus=1", "Call again without the argument nodes."),
        ("job-name", "", "Call again without the argument job_name."),
    ],
)
def test_an_argument_of_the_call_is_changed_in_the_call(option, line, step):
    given = stated(option, "", source="argument")
    assert rule.replace([given], *([line] if line else [])) == step


def test_what_nobody_stated_is_added_and_what_was_pinned_is_nobodys():
    pinned = stated("gpus", "", source="pinned")
    assert rule.replace([pinned], "#SBATCH --gpus=1") == "Add:\n#SBATCH --gpus=1"
    assert rule.replace([]) == ""


def test_a_reason_is_written_on_the_line_or_given_in_the_call():
    own = rule.with_reason([stated("mem", "#SBATCH --mem=2G")], "#SBATCH --mem=2G")
    assert own.endswith("#SBATCH --mem=2G  # JUSTIFIED: <why this job needs it>")
    call = rule.with_reason([stated("time", "", source="argument")], "#SBATCH --time=1")
    assert call == 'Call again with time_limit="1" and justification="<why this job needs it>".'


def test_steps_that_help_only_together_say_so():
    line = "#SBATCH --time-min=9"
    known = [stated("time", "", source="argument"), stated("time-min", line)]
    edit = f"Replace line 2 (`{line}`) by:\n#SBATCH --time=1"
    assert rule.replace(known, "#SBATCH --time=1") == f'Do both:\nCall again with time_limit="1".\n{edit}'
    given = stated("nodes", "", source="argument")
    assert rule.replace([given, *known], "#SBATCH --time=1").startswith(
        'Do all of this:\nCall again with time_limit="1".\nCall again without the argument nodes.\nReplace line 2'
    )
    assert rule.both("one") == "one"


def test_arguments_of_one_call_are_told_in_one_step():
    assert rule.call_again("a", "1") == 'Call again with a="1".'
    assert rule.call_again("a", "1", ("b", "2")) == 'Call again with a="1" and b="2".'
    assert rule.call_again("a", "1", ("b", "2"), ("c", "3")) == 'Call again with a="1", b="2" and c="3".'
    given = [stated("time", "", source="argument"), stated("nodes", "", source="argument")]
    assert rule.replace(given, "#SBATCH --time=1", "#SBATCH --nodes=2") == (
        'Call again with time_limit="1" and nodes="2".'
    )


def test_a_line_that_is_not_kept_whole_is_changed_by_whoever_has_it():
    line = f"#SBATCH --mem=2G --comment={'x' * 600}"[: directive_lines.MAX_SHOWN]
    assert rule.replace([stated("mem", line)], "#SBATCH --mem=1G") == (
        f"Change line 2 (`{line[:117]}...`) yourself: put `#SBATCH --mem=1G` in place of --mem, and keep the rest."
    )
    assert rule.replace([stated("mem", line), stated("gpus", line)]).endswith(
        "put nothing in place of --mem and --gpus, and keep the rest."
    )


def test_a_line_of_many_options_is_shown_once():
    assert rule.proof([stated("mem", "#SBATCH --mem=2G")] * 200) == (Evidence(FILE, 2, "#SBATCH --mem=2G"),)
