"""Build the site of the documentation, strictly: `make docs`.

    python scripts/docs_site.py [--into FOLDER]   one version beside the others that FOLDER has (default: build/site)

The pages are those of docs/, with README.md as the first. Links to other files of the repository lead to copies.
What builds the site has an environment of its own, build/docs/environment, which nothing else here uses.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "docs"
REQUIREMENTS = ROOT / "requirements-docs.txt"
MOVED = {
    "README.md": "index.md",
    "docs/README.md": "map.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
}
LINK = re.compile(r"(?P<before>\]\(|\b(?:src|href|srcset)=\")(?P<target>[^)\s\"#]+)(?P<after>[^)\"]*[)\"])")
TO_FOLDER = re.compile(r"(?<!!)\[(?P<label>[^\]]+)\]\((?P<target>[^)\s#]+)\)")
FENCE = re.compile(r"(^[ ]*```.*?^[ ]*```[ ]*$)", re.MULTILINE | re.DOTALL)


def staged(path: Path) -> Path:
    """Where a file of the repository stands among the pages."""
    name = path.relative_to(ROOT).as_posix()
    if name in MOVED:
        return Path(MOVED[name])
    return Path(name).relative_to("docs") if name.startswith("docs/") else Path("files") / name


def linked(text: str, page: Path, wanted: set[Path]) -> str:
    """The text of a page with links that hold among the pages; files that they lead to are added to `wanted`."""

    def written(found: re.Match[str]) -> str:
        target = (page.parent / found["target"]).resolve()
        if re.match(r"[a-z]+:", found["target"]) or not target.is_file() or not target.is_relative_to(ROOT):
            return found[0]
        wanted.add(target)
        return f"{found['before']}{os.path.relpath(staged(target), staged(page).parent)}{found['after']}"

    def plain(found: re.Match[str]) -> str:
        """The site has files, not the folders of the repository."""
        return found["label"] if (page.parent / found["target"]).is_dir() else found[0]

    parts = FENCE.split(text)  # every second part is a block of code
    return "".join(
        part if number % 2 else LINK.sub(written, TO_FOLDER.sub(plain, part)) for number, part in enumerate(parts)
    )


def pages() -> list[Path]:
    """The pages of the repository."""
    return [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in MOVED if not name.startswith("docs/"))]


def stage(folder: Path) -> None:
    """Put every page, and every file that one leads to, into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    waiting, known = pages(), set[Path]()
    while waiting:
        path = waiting.pop()
        place = folder / staged(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        wanted: set[Path] = set()
        if path.suffix == ".md":
            place.write_text(linked(path.read_text(encoding="utf-8"), path, wanted), encoding="utf-8")
        else:
            shutil.copyfile(path, place)
        known.add(path)
        waiting += sorted(wanted - known - set(waiting))


def decisions() -> str:
    """The navigation's list of decisions, by the titles of their pages."""
    found = sorted((ROOT / "docs/decisions").glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
    titles = {path: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for path in found}
    lines = [f"{{ {json.dumps(title)} = {json.dumps(staged(path).as_posix())} }}" for path, title in titles.items()]
    return f"[{', '.join(lines)}]"


def configured() -> str:
    """The configuration of the build."""
    return (ROOT / "zensical.toml").read_text(encoding="utf-8").replace('"DECISIONS"', decisions())


def interpreter() -> Path:
    """Python of the environment that has what builds the site; made when the requirements change."""
    home = WORK / "environment"
    python, stamp = home / "bin" / "python", home / "requirements"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        venv.create(home, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "-qq", "--require-hashes", "-r", REQUIREMENTS]
        subprocess.run(install, check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def versions(known: list[dict[str, object]], version: str) -> list[dict[str, object]]:
    """The list that the site's selector reads, newest first; the newest is also called `latest`."""
    names = {str(one["version"]) for one in known} | {version}
    ordered = sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    return [{"version": name, "title": name, "aliases": ["latest"] if name == ordered[0] else []} for name in ordered]


def publish(into: Path, version: str) -> None:
    """Put what was built beside the other versions of a site, whose first page leads to the newest."""
    shutil.rmtree(into / version, ignore_errors=True)
    shutil.copytree(WORK / "site", into / version)
    path = into / "versions.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    listed = versions(known, version)
    path.write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    first = (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={listed[0]["version"]}/">\n'
    )
    (into / "index.html").write_text(first, encoding="utf-8")


def main(words: list[str], environment: Mapping[str, str] = os.environ) -> int:
    """Build; the exit code of what builds, which is not 0 for a link that leads nowhere."""
    parser = argparse.ArgumentParser(description="Build the site of the documentation.")
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "site", help="the folder with all versions")
    into = parser.parse_args(words).into.resolve()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    python = interpreter()
    stage(WORK / "pages")
    (WORK / "zensical.toml").write_text(configured(), encoding="utf-8")
    build = [python.parent / "zensical", "build", "--strict", "--clean", "-f", WORK / "zensical.toml"]
    done = subprocess.run(build, cwd=WORK, env={**environment, "NO_COLOR": "1"}, check=False)
    if done.returncode == 0:
        publish(into, version)
        print(f"{into / version}/index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
