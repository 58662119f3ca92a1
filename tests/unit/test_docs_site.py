"""The site of the documentation: every page is in its navigation, and links hold where pages are moved."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from tests.unit.shipped_scripts import script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    return script("docs_site")


def test_every_page_stands_once_in_the_navigation(site: ModuleType) -> None:
    navigation = json.dumps(tomllib.loads(site.configured())["project"]["nav"])
    named = re.findall(r'"([^"]+\.md)"', navigation)

    assert sorted(named) == sorted(site.staged(page).as_posix() for page in site.pages())


def test_the_map_leads_to_every_page_but_single_decisions() -> None:
    known = (ROOT / "docs/README.md").read_text()
    names = [path.relative_to(ROOT / "docs").as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    wanted = [name for name in names if name != "README.md" and not re.match(r"decisions/(?!README)", name)]

    assert len(wanted) > 50
    assert [name for name in wanted if f"]({name})" not in known] == []


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("README.md", "[a](docs/guides/sweep.md#x)", "[a](guides/sweep.md#x)"),
        ("README.md", "![a](docs/images/demo.svg)", "![a](images/demo.svg)"),
        ("docs/guides/sweep.md", "[a](../../SECURITY.md#b)", "[a](../security.md#b)"),
        ("docs/guides/sweep.md", "[a](../decisions/README.md)", "[a](../decisions/README.md)"),
        ("docs/guides/sweep.md", "[a](../README.md)", "[a](../map.md)"),
        ("SECURITY.md", "[a](policies/default.yaml)", "[a](files/policies/default.yaml)"),
        ("README.md", "see [a](policies/tests)", "see a"),
        ("README.md", '<img src="docs/images/demo.svg">', '<img src="images/demo.svg">'),
        ("README.md", "[a](https://example.org/README.md)", "[a](https://example.org/README.md)"),
        ("README.md", "```\n[a](docs/README.md)\n```\n", "```\n[a](docs/README.md)\n```\n"),
    ],
)
def test_links_lead_to_where_a_page_is_on_the_site(site: ModuleType, page: str, text: str, expected: str) -> None:
    wanted: set[Path] = set()
    assert site.linked(text, ROOT / page, wanted) == expected
    assert len(wanted) == (("](" in expected or "src" in expected) and (expected != text or "decisions" in text))


def test_the_newest_version_comes_first_and_is_the_latest(site: ModuleType) -> None:
    listed = site.versions([{"version": "0.9.0"}, {"version": "0.10.0"}], "0.2.0")

    assert [one["version"] for one in listed] == ["0.10.0", "0.9.0", "0.2.0"]
    assert [one["aliases"] for one in listed] == [["latest"], [], []]


def test_a_version_is_put_beside_those_that_are_there(site: ModuleType, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(site, "WORK", tmp_path / "work")
    into = tmp_path / "all"
    for version in ("0.1.0", "0.2.0", "0.2.0"):
        (tmp_path / "work/site").mkdir(parents=True, exist_ok=True)
        (tmp_path / "work/site/index.html").write_text(version)
        site.publish(into, version)

    assert [path.read_text() for path in sorted(into.glob("*/index.html"))] == ["0.1.0", "0.2.0"]
    assert "url=0.2.0/" in (into / "index.html").read_text()
    assert [one["version"] for one in json.loads((into / "versions.json").read_text())] == ["0.2.0", "0.1.0"]
