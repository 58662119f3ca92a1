"""The expressions that texts of users meet: none reads a text again for each of its letters."""

import pkgutil

import pytest
from tests.unit.text.repetitions import expressions, leads, shared

import slurm_agent_tools

_ROOMS = ("backends", "insights", "models", "policy", "programs", "scripts", "services", "text", "units")

_SHORT = {
    "slurm_agent_tools.programs.program": "each name in quotes is read for the one call before it",
    "slurm_agent_tools.scripts.configs.experiment_config": "what stands between keys is no part of one: it is read twice",
    "slurm_agent_tools.scripts.reading_state": "the first two lines of 2000 bytes",
    "slurm_agent_tools.policy.rules.rule": "a sentence of our own",
    "slurm_agent_tools.text.shell_expansions": "1000 letters of a word",
    "slurm_agent_tools.insights.experiment_results": "the name of a file",
}
"""Modules with one expression that may, and why its text is short."""


def modules():
    found = pkgutil.walk_packages(slurm_agent_tools.__path__, "slurm_agent_tools.")
    return [one.name for one in found if one.name.split(".")[1] in _ROOMS]


@pytest.mark.parametrize("name", modules())
def test_no_text_of_a_user_is_read_again_for_each_of_its_letters(name):
    doubtful = [(line, text) for line, _, text in expressions(name) if shared(text)]
    assert len(doubtful) <= (name in _SHORT), doubtful


@pytest.mark.parametrize("name", modules())
def test_nothing_is_looked_for_that_begins_with_a_repetition(name):
    asked = {"re.search", "re.sub", "re.split", "re.findall", "re.finditer"}
    assert [text for _, function, text in expressions(name) if function in asked and leads(text)] == []


def test_a_repetition_in_front_is_seen():
    assert [leads(one) for one in (r"(\d+)_x", r"\s*b|a", r"^\s*b", r"(?<!\d)\d+_", r"a\d+_", r"\d+")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "whole"),
    [(r"\$[({]shell\s+((?:[^(){}]|\([^()]*\))*)[)}]", False), (r"a\s*\(?\s*b", False), (r"\d[\w.-]*[a-z][\w.-]*", True),
     (r"(a+)+b", False), (r"executor\S*=\S*slurm", False), (r"\s*(?:[\w, ]+=\s*)?!", False), (r"date\s.*[+=][^%]*x", False)],
)  # fmt: skip
def test_what_can_share_a_text_out_in_many_ways_is_seen(expression, whole):
    assert shared(expression, whole=whole)


@pytest.mark.parametrize(
    "expression", [r"a\s*+\(?\s*+b", r"(?:\w+\.)*c", r"(?>(?:a|b)*)b+c", r"\w+\s+\w+x", r"\S{1,80}\S{1,80}x"]
)
def test_what_can_share_it_out_in_one_way_is_none(expression):
    assert not shared(expression)
