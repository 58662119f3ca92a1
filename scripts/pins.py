"""Take the newest allowed version of every package: into requirements.txt with hashes, into pyproject.toml by number.

What an installation needs of them is requirements-run.txt. requirements-docs.txt is what builds the site of the
documentation, in an environment of its own.

Run by `make pins`. What is allowed stands in pyproject.toml: `dependencies`, `build-system`, groups `dev` and `docs`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Every package that is used here, at one version. Made by `make pins`; do not edit.\n"
RUN_HEADER = "# Those of requirements.txt that the tools need to be installed. Made by `make pins`; do not edit.\n"
DOCS_HEADER = "# What builds the site of the documentation, and nothing else. Made by `make pins`; do not edit.\n"
COMPILE = (
    "pip", "compile", "--universal", "--python-version", "3.11", "--no-config",
    "--generate-hashes", "--no-emit-index-url", "--no-annotate", "--no-header", "--quiet",
)  # fmt: skip
PIN = re.compile(r"^(?P<pin>[a-z0-9-]+==[^ ]+(?: ; [^\\]+?)?) \\$", re.MULTILINE)
LIST = re.compile(r"^(?P<name>(?:build-)?constraint-dependencies) = \[[^\]]*\]", re.MULTILINE)
MANAGED = re.compile(r"^managed = .*\n", re.MULTILINE)
BUILD = ("hatchling", "editables", "packaging", "pathspec", "pluggy", "trove-classifiers")


def pins(requirements: str) -> list[str]:
    """The `name==version ; marker` part of every requirement."""
    return [match["pin"] for match in PIN.finditer(requirements)]


def constrained(pyproject: str, wanted: list[str]) -> str:
    """The project file with `wanted` in its two lists of exact versions."""
    build = [pin for pin in wanted if pin.split("==")[0] in BUILD]
    lists = {"constraint-dependencies": wanted, "build-constraint-dependencies": build}

    def written(match: re.Match[str]) -> str:
        lines = "".join(f'    "{pin}",\n' for pin in lists[match["name"]])
        return f"{match['name']} = [\n{lines}]"

    return LIST.sub(written, pyproject)


def main() -> int:
    """Ask uv for the versions and write both files."""
    uv = Path(sys.prefix) / "bin" / "uv"
    project = ROOT / "pyproject.toml"
    found = compiled(uv, "pyproject.toml", "--group", "dev", "--upgrade")
    (ROOT / "requirements.txt").write_text(HEADER + found, encoding="utf-8")
    project.write_text(constrained(project.read_text(encoding="utf-8"), pins(found)), encoding="utf-8")
    asked = tomllib.loads(project.read_text(encoding="utf-8"))
    builds = "\n".join(asked["build-system"]["requires"])
    needed = compiled(uv, "pyproject.toml", "-", "--constraints", "requirements.txt", stdin=builds)
    (ROOT / "requirements-run.txt").write_text(RUN_HEADER + needed, encoding="utf-8")
    site = compiled(uv, "-", "--upgrade", stdin="\n".join(asked["dependency-groups"]["docs"]))
    (ROOT / "requirements-docs.txt").write_text(DOCS_HEADER + site, encoding="utf-8")
    return 0


def compiled(uv: Path, *more: str, stdin: str = "") -> str:
    """The packages that `more` asks for, at one version each, with hashes."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in questions().items():
            Path(folder, name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [uv, *COMPILE, *more], check=False, cwd=folder, capture_output=True, text=True, input=stdin
        )
    if done.returncode != 0:
        raise SystemExit(f"uv names no versions: {done.stderr.strip()}")
    return done.stdout


def questions() -> dict[str, str]:
    """The files that uv is asked over, by name. It reads no groups of a project that it is told not to manage."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return {
        "pyproject.toml": MANAGED.sub("", project),
        "requirements.txt": (ROOT / "requirements.txt").read_text(encoding="utf-8"),
    }


if __name__ == "__main__":
    sys.exit(main())
