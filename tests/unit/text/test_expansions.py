from __future__ import annotations

import pytest

from slurm_agent_tools.text import shell_expansions


@pytest.mark.parametrize(
    ("pattern", "words", "printed"),
    [
        ("%s", ["a"], "a"),
        ("%s\\n", ["a", "b"], "a\nb\n"),
        ("%s%s", ["sba", "tch"], "sbatch"),
        ("%04d%%", ["7"], "7%"),
        (r"\x73\x62", [], "sb"),
        ("%s-%s", ["a"], "a-"),
        ("plain", ["unused"], "plain"),
    ],
)
def test_printf_uses_its_format_until_no_word_is_left(pattern: str, words: list[str], printed: str):
    assert shell_expansions.formatted(pattern, words) == printed


def test_a_format_that_would_print_too_much_is_not_made():
    assert shell_expansions.formatted("x" * 10_000, ["a"] * 100) is None
    assert shell_expansions.replaced("a" * 10_000, "a", "b" * 1_000, everywhere=True) is None


@pytest.mark.parametrize(
    ("operator", "value", "word", "made"),
    [
        (",,", "SBATCH", "", "sbatch"),
        ("^^", "cuda", "", "CUDA"),
        ("^", "cuda", "", "Cuda"),
        ("#", "a/b/c", "*/", "b/c"),
        ("##", "a/b/c", "*/", "c"),
        ("%", "x.tar.gz", ".*", "x.tar"),
        ("%%", "x.tar.gz", ".*", "x"),
        ("%", "plain", ".*", "plain"),
        ("@", "plain", "Q", None),
    ],
)
def test_an_expansion_changes_a_constant_as_the_shell_does(operator: str, value: str, word: str, made: str | None):
    assert shell_expansions.changed(operator, value, word) == made


@pytest.mark.parametrize(
    ("offset", "length", "made"),
    [("0", "3", "sba"), ("2", None, "atch"), (" -2", None, "ch"), ("0", "-1", "sbatc"), ("n", None, None)],
)
def test_a_part_of_a_constant_is_cut_out(offset: str, length: str | None, made: str | None):
    assert shell_expansions.sliced("sbatch", offset, length) == made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{CUDA,NVIDIA}_VISIBLE_DEVICES", ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"]),
        ("s{b,}atch", ["sbatch", "satch"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("${a,b}", ["${a,b}"]),
        ("{1..4}", ["{1..4}"]),
    ],
)
def test_braces_spread_out(text: str, words: list[str]):
    assert shell_expansions.braces(text) == words


def test_braces_spread_out_only_so_far():
    assert len(shell_expansions.braces("{a,b}" * 40)) <= 64
