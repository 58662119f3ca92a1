"""A campaign's file with very many faults is judged in steps that grow with its length, and not with its square."""

from __future__ import annotations

import sys

from slurm_agent_tools.campaigns.file_reader import problems_of


def calls(keys: int) -> int:
    """Functions called, and generators gone on with, to find what is wrong with a file of so many unknown names."""
    text = "".join(f"k{number}: {number}\n" for number in range(keys)).encode()
    problems_of(text, "campaigns/x.yaml")  # what is compiled once
    counted = 0

    def count(_frame: object, event: str, _of: object) -> None:
        nonlocal counted
        counted += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        assert len(problems_of(text, "campaigns/x.yaml")) > keys
    finally:
        sys.setprofile(before)
    return counted


def test_a_file_of_unknown_names_keeps_nobody_busy():
    assert calls(800) < 6 * calls(200)
