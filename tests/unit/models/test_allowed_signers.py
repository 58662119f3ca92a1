"""Patterns of principals in lines of allowed signers: what they mean, and that none of them takes long."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.counting import counted

from slurm_agent_tools.models.allowed_signers import AllowedSigner, matches

pytestmark = pytest.mark.proves("signatures-are-verified-here")

STEPS = 500_000


@given(st.text("ab", max_size=8), st.text("ab?*", max_size=8))
def test_a_star_is_any_text_and_a_question_mark_one_character(name: str, pattern: str):
    meant = re.fullmatch(pattern.replace("?", ".").replace("*", ".*"), name) is not None
    assert matches(name, [pattern]) == meant
    assert matches(name, ["*", f"!{pattern}"]) != meant


@pytest.mark.parametrize("sign", "[].(|\\+^$")
def test_other_signs_stand_for_themselves(sign: str):
    assert matches(f"a{sign}a", [f"a{sign}*"])
    assert not matches("aaa", [f"a{sign}*"])
    assert not matches("aba", [f"a{sign}a"])


@pytest.mark.parametrize("pattern", ["*a" * 25 + "c", "?*" * 40 + "c", "*" * 1000 + "c", "*a*a*a*a*a*a*a*c"])
def test_a_pattern_of_many_stars_is_no_way_to_keep_the_check_busy(pattern: str):
    found, steps = counted(lambda: matches("a" * 2000 + "b", [pattern]))
    assert not found
    assert steps < STEPS


@pytest.mark.parametrize(
    ("who", "fine"),
    [
        ("ada@example.org", True), ("the head@example.org", False), ("a\n\x1b[31m@example.org", False),
        ("\u202e@example.org", False), ("a" * 100 + "@example.org", False),
    ],
)  # fmt: skip
def test_a_yes_is_told_to_be_a_names_alone(who: str, fine: bool):
    """Who carries a signature says by whom it is, where a pattern fits several: it stood in the log with line breaks."""
    signer = AllowedSigner(("*@example.org",), b"key")
    assert (signer.refuses(who, "any", datetime(2026, 1, 1, tzinfo=UTC)) is None) is fine
