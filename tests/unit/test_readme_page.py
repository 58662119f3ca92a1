"""The README as a newcomer meets it: short, with pictures that are there and buttons that install what `init` writes."""

from __future__ import annotations

import base64
import itertools
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qs, urlparse
from xml.etree import ElementTree as ET

import pytest
from tests.unit.shipped_scripts import script

from slurm_agent_tools.api.catalogue import TOOLS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
ASSETS = ROOT / "src/slurm_agent_tools/assets/init"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    return script("moving_picture")


def test_it_is_read_in_two_minutes() -> None:
    assert len(README.splitlines()) < 200
    assert len(re.sub(r"\(\S+\)", "", README).split()) < 900


@pytest.mark.parametrize(
    ("host", "own"), [("insiders.vscode.dev", "vscode-mcp.json"), ("cursor.com", "clients/cursor.json")]
)
def test_a_button_installs_what_init_writes(host: str, own: str) -> None:
    [link] = [link for link in re.findall(r"\]\((https://\S+?)\)", README) if urlparse(link).hostname == host]
    asked = parse_qs(urlparse(link).query)
    text = asked["config"][0]
    given = json.loads(text if text.startswith("{") else base64.b64decode(text, validate=True))

    [servers] = json.loads((ASSETS / own).read_text()).values()
    assert servers == {asked["name"][0]: given}


def test_the_table_tells_how_many_tools_there_are() -> None:
    [row] = [line for line in README.splitlines() if line.startswith("| tools for agents over MCP")]
    assert row.split("|")[-2].strip() == str(len(TOOLS))


def test_the_moving_picture_is_of_the_demo_that_its_page_shows() -> None:
    drawn = ET.parse(ROOT / "docs/images/demo.svg").getroot()  # noqa: S314 - our own file
    lines = ["".join(text.itertext()) for text in drawn.iter(f"{SVG}text")]
    page = (ROOT / "docs/tutorial/demo.md").read_text()

    assert "![A terminal in which `make demo` runs" in README
    assert drawn.get("aria-label")
    assert "25 of 25 checks agree with what Slurm says." in lines
    assert [line for line in lines[1:] if line not in page] == []


def test_a_line_comes_when_it_came_and_pauses_are_shortened(pictures: ModuleType) -> None:
    lines = [
        pictures.Line(at, text)
        for at, text in ((0.0, "one"), (30.0, "   | left out"), (30.1, "two"), (31.1, "x" * 200))
    ]
    given = pictures.shown(lines, re.compile(r"   \|"))

    assert [line.text[:3] for line in given] == ["one", "two", "xxx"]
    assert [round(after.at - before.at, 2) for before, after in itertools.pairwise(given)] == [0.22, 1.0]
    assert len(given[-1].text) == pictures.COLUMNS


def test_the_picture_is_one_file_that_needs_nothing_and_stands_still_for_who_asks(pictures: ModuleType) -> None:
    text = pictures.draw(
        [pictures.Line(0.5, "1. First"), pictures.Line(1.0, "   > call <b>&")], "title", "what is on it"
    )
    drawn = ET.fromstring(text)  # noqa: S314 - made here

    assert ["".join(line.itertext()) for line in drawn.iter(f"{SVG}text")] == ["title", "1. First", "   > call <b>&"]
    assert "prefers-reduced-motion" in text
    assert not re.search(r"<script|href|url\(|@import", text)
    assert "80.00%" not in text  # 0.5 and 1 of 5 seconds
    assert "10.00%" in text
    assert "20.00%" in text


def test_what_is_recorded_is_what_was_printed(pictures: ModuleType) -> None:
    code, lines = pictures.record([sys.executable, "-c", "print('one'); print('two'); raise SystemExit(3)"], {})

    assert (code, [line.text for line in lines]) == (3, ["one", "two"])
    assert lines[0].at <= lines[1].at
