from __future__ import annotations

import pytest

from slurm_agent_tools.cli.commands.demo_command import DemoOutput

pytestmark = pytest.mark.proves("demo-checks-itself")


def test_when_all_checks_agree_the_exit_code_is_0(capsys):
    paper = DemoOutput()

    paper.check("state", ("COMPLETED", 0), ("COMPLETED", 0))

    assert paper.end() == 0
    assert capsys.readouterr().out == "   = state: COMPLETED, 0\n\n1 of 1 checks agree with what Slurm says.\n"


def test_when_one_check_differs_both_values_are_shown_and_the_exit_code_is_1(capsys):
    paper = DemoOutput()

    paper.check("state", "COMPLETED", "FAILED")
    paper.check("jobs", 1, 1)

    assert paper.end() == 1
    shown = capsys.readouterr().out
    assert "! state: we say COMPLETED, it is FAILED" in shown
    assert shown.endswith("1 of 2 checks agree with what Slurm says.\n")


def test_what_a_job_wrote_cannot_steer_the_terminal(capsys):
    DemoOutput().say("\033[2Jgone")

    assert "\033" not in capsys.readouterr().out


def test_the_same_news_is_told_once(capsys):
    paper = DemoOutput()

    for seconds in (1, 2):
        paper.news("pending", f"pending after {seconds} s")

    assert capsys.readouterr().out == "   pending after 1 s\n"


def test_steps_are_numbered(capsys):
    paper = DemoOutput()

    paper.step("look")
    paper.step("act")

    assert capsys.readouterr().out.split("\n") == ["", "1. look", "", "2. act", ""]
