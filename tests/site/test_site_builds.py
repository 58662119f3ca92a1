"""The site of the documentation, built as `make docs` builds it. It has an environment of its own, kept in build/docs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, str(ROOT / "scripts/docs_site.py"), "--into", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    [version] = json.loads((folder / "versions.json").read_text())
    return folder / version["version"]


@pytest.mark.proves("site-is-strict")
def test_every_page_is_built_and_can_be_searched(site: Path) -> None:
    found = {item["location"].partition("#")[0] for item in json.loads((site / "search.json").read_text())["items"]}
    for name in ("tutorial/first-experiment/", "guides/sweep/", "security/", "decisions/", "reference/tools/"):
        assert (site / name / "index.html").is_file()
        assert name in found


@pytest.mark.proves("site-is-strict")
def test_every_file_that_a_built_page_leads_to_is_there(site: Path) -> None:
    absent = []
    for page in site.rglob("*.html"):
        for link in re.findall(r"(?:href|src)=\"?([^\"\s>]+)", page.read_text()):
            path = link.partition("#")[0].partition("?")[0]
            if path and not re.match(r"[a-z]+:|//", path) and page.name != "404.html":
                target = page.parent / path
                absent += [f"{page.relative_to(site)}: {link}"] if not target.exists() else []
    assert absent == []


@pytest.mark.proves("site-is-strict")
def test_a_link_that_leads_nowhere_ends_the_build(site: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# One\n\n[two](two.md)\n")
    (tmp_path / "zensical.toml").write_text('[project]\nsite_name = "one"\n')
    program = ROOT / "build/docs/environment/bin/zensical"
    done = subprocess.run([program, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode != 0
    (tmp_path / "docs/two.md").write_text("# Two\n")
    subprocess.run(
        [program, "build", "--strict", "--clean"], cwd=tmp_path, capture_output=True, timeout=100, check=True
    )
