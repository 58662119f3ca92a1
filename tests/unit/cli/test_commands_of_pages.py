"""Every command of every page is one that there is, with options that there are. The pages of tests/system are run besides."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from slurm_agent_tools.api import serialize
from slurm_agent_tools.api.catalogue import TOOLS
from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import tool_command
from slurm_agent_tools.errors import InputError

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"^```\w*[^\n]*\n(.*?)^```$|((?:^ {4}[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^\s*(?:\$ |sudo |uv run )*slurm-agent-tools (?P<words>.+)$", re.MULTILINE)
KNOWN = {tool.name: tool for tool in TOOLS}


def commands(text: str) -> list[str]:
    """What is typed in the blocks of code, without the remark behind it, output into a file and answers."""
    blocks = ["".join(part or "" for part in block) for block in CODE.findall(text)]
    lines = [found["words"] for block in blocks for found in TYPED.finditer(block)]
    cut = [re.split(r" {2,}| #| [>|] ", line)[0].strip() for line in lines]
    return [line for line in cut if line and not re.fullmatch(r"[\d.]+", line)]


EVERY = sorted({(page.relative_to(ROOT).as_posix(), line) for page in PAGES for line in commands(page.read_text())})


def understood(line: str) -> None:
    """Read the words as the command line reads them. InputError where it would refuse them."""
    name, *words = shlex.split(line)
    if name in KNOWN:
        serialize.parse(KNOWN[name], tool_command.read(KNOWN[name], words))
    elif name not in {"--help", "--version"}:
        parser = main.command_parser(name)
        parser.parse_intermixed_args(words) if "history" in name else parser.parse_args(words)


@pytest.mark.proves("pages-are-run")
@pytest.mark.parametrize(("page", "line"), EVERY, ids=[f"{page}: {line[:60]}" for page, line in EVERY])
def test_a_command_of_a_page_is_one_that_there_is(page: str, line: str) -> None:
    understood(line)


def test_the_page_of_the_command_line_has_every_command_with_what_it_is_for() -> None:
    page = (ROOT / "docs/reference/command-line.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", page, re.MULTILINE)

    assert rows == list(main.summaries().items())
    assert {name for name, _ in rows} == set(main.COMMANDS)


def test_most_pages_take_part() -> None:
    assert len(EVERY) > 120
    assert len({page for page, _ in EVERY}) > 25


@pytest.mark.parametrize("line", ["plan --no-such-option", "get_status --nothing 3", "fleet --match"])
def test_a_command_that_is_none_is_noticed(line: str) -> None:
    with pytest.raises(InputError):
        understood(line)
