"""Is this tree ready to be released, and under which tag? `make release` checks and prints; it changes nothing.

    python scripts/release.py [--tag vX.Y.Z]    with a tag: that it is the one of this version, as a workflow asks

Checked: one version in every file that names it, a part of CHANGELOG.md for it with a date, a tag that is new, a tree
without changes, the branch main.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
HEADING = re.compile(r"^## (\S+?),? (?:of )?(.*)$", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def versions(root: Path) -> dict[str, str]:
    """The version by the file that names it."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    server = json.loads((root / "server.json").read_text(encoding="utf-8"))
    package = (root / "src/slurm_agent_tools/__init__.py").read_text(encoding="utf-8")
    named = re.search(r'^__version__ = "([^"]+)"', package, re.MULTILINE)
    found = {"pyproject.toml": project["version"], "server.json": server["version"]}
    found |= {f"server.json, package {one['identifier']}": one["version"] for one in server["packages"]}
    return found | ({"src/slurm_agent_tools/__init__.py": named[1]} if named else {})


def faults_of_files(root: Path) -> Iterator[str]:
    """What in the files keeps them from being released."""
    found = versions(root)
    version = found["pyproject.toml"]
    if not VERSION.fullmatch(version):
        yield f"pyproject.toml: {version} is no version of the form 1.2.3, 1.2.3a1, 1.2.3b1 or 1.2.3rc1"
    yield from (f"{name}: {one}, pyproject.toml says {version}" for name, one in found.items() if one != version)
    told = dict(HEADING.findall((root / "CHANGELOG.md").read_text(encoding="utf-8")))
    if version not in told:
        yield f"CHANGELOG.md: has no part `## {version}, YYYY-MM-DD`"
    elif not DATE.fullmatch(told[version]):
        yield f"CHANGELOG.md: the part of {version} says {told[version]!r} where its date should stand, as 2026-01-31"


def faults_of_git(root: Path, version: str, tag: str | None) -> Iterator[str]:
    """What in the repository does."""
    if git(root, "status", "--porcelain"):
        yield "the tree has changes that are not committed: commit or stash them"
    if tag is not None:
        if tag != f"v{version}":
            yield f"the tag {tag} is not that of this version: v{version}"
        return
    if f"v{version}" in git(root, "tag", "--list").split():
        yield f"the tag v{version} is there already: raise the version"
    if (branch := git(root, "branch", "--show-current")) != "main":
        yield f"the branch is {branch or 'none'}: a release is made of main"


def git(root: Path, *words: str) -> str:
    """What git prints."""
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    """Print every fault, or the commands that come next."""
    parser = argparse.ArgumentParser(description="Check whether this tree is ready to be released")
    parser.add_argument("--tag", help="the tag that is being released")
    tag = parser.parse_args().tag
    version = versions(ROOT)["pyproject.toml"]
    faults = [*faults_of_files(ROOT), *faults_of_git(ROOT, version, tag)]
    for fault in faults:
        print(f"release: {fault}", file=sys.stderr)
    if not faults:
        print(
            f"release: {version} is ready" + ("" if tag else f": git tag -s v{version} && git push origin v{version}")
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
