"""How bad input is told: as a sentence that names the field, the value and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_agent_tools import errors
from slurm_agent_tools.cli.main import Parser
from slurm_agent_tools.errors import AgentToolsError, InputError


@pytest.mark.parametrize(
    ("field", "value", "problem", "said"),
    [
        ("job_id", None, "is required", "job_id is required"),
        ("like", "nosuch.sh", "does not exist", "like: 'nosuch.sh' does not exist"),
        ("priority", "high", "is not offered by this policy", "priority: 'high' is not offered by this policy"),
        ("limit", "x", "input should be a number", "limit: input should be a number (got 'x')"),
        ("arguments", None, "argument --limit: invalid int value: 'x'", "arguments: argument --limit: invalid"),
    ],
)
def test_bad_input_is_told_as_a_sentence(field: str, value: object, problem: str, said: str) -> None:
    assert InputError(field, value, problem).message.startswith(said)


def test_a_long_value_is_cut() -> None:
    assert len(InputError("notes", "x" * 5000, "is too long").message) < 150


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "FIRST, SECOND are required"),
        (["a"], "SECOND is required"),
        (["a", "b", "--number=x"], "arguments: argument --number: invalid int value: 'x'"),
        (["a", "b", "--other"], "arguments: unrecognized arguments: --other"),
    ],
)
def test_a_command_line_that_is_wrong_says_what_is_wrong_and_how_it_is_used(words: list[str], said: str) -> None:
    parser = Parser(prog="tool")
    parser.add_argument("first", metavar="FIRST")
    parser.add_argument("second", metavar="SECOND")
    parser.add_argument("--number", type=int)

    with pytest.raises(InputError) as caught:
        parser.parse_args(words)

    assert caught.value.message == said
    assert caught.value.hint.startswith("usage: tool")


def test_the_page_of_exit_codes_has_every_error() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AgentToolsError)]
    page = (Path(__file__).parents[2] / "docs/reference/exit-codes.md").read_text()

    assert len(kinds) > 15
    assert [kind.code for kind in kinds if f"| `{kind.code}` | {kind.exit_code} |" not in page] == []
