"""Measures which lines the tests without a Slurm run; fails where a room or a module has too few of them.

    python scripts/covered.py [PYTEST OPTIONS]   the tables, and 1 where a limit is not held

The limits stand in pyproject.toml: `[tool.covered]` has those of rooms and of any module, in percent, and
`[tool.covered.without]` the modules that no test of this kind can run, each with its reason. One of those that would
hold the limit is an error too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).parents[1]
HALF = ("tests/unit/services", "tests/unit/server", "tests/unit/transport", "tests/replay")
PARTS = (HALF, ("tests/unit", *(f"--ignore={path}" for path in HALF)))
PACKAGE = "slurm_agent_tools/"


@dataclass(frozen=True, slots=True)
class Lines:
    """How many lines of code there are, and how many of them were run."""

    run: int
    all: int

    @property
    def percent(self) -> float:
        """Of an empty module all."""
        return 100 * self.run / self.all if self.all else 100.0

    def __add__(self, other: Lines) -> Lines:
        return Lines(self.run + other.run, self.all + other.all)


@dataclass(frozen=True, slots=True)
class Limits:
    """What has to be covered, in percent. `without`: reasons by module."""

    rooms: Mapping[str, float]
    module: float
    without: Mapping[str, str]


def limits(pyproject: str) -> Limits:
    """What the project file asks for."""
    table = tomllib.loads(pyproject)["tool"]["covered"]
    return Limits(table["rooms"], table["module"], table["without"])


def by_room(modules: Mapping[str, Lines]) -> dict[str, Lines]:
    """The rooms' sums; a file beside the rooms is one of its own."""
    rooms: dict[str, Lines] = {}
    for name, lines in modules.items():
        room = name.removeprefix(PACKAGE).partition("/")[0]
        rooms[room] = rooms.get(room, Lines(0, 0)) + lines
    return rooms


def complaints(modules: Mapping[str, Lines], wanted: Limits) -> Iterator[str]:
    """A sentence for every limit that is not held, and for every exception that is not needed."""
    rooms = by_room(modules)
    for room, percent in wanted.rooms.items():
        if room not in rooms:
            yield f"{room} was not measured"
        elif rooms[room].percent < percent:
            yield f"{room} has {rooms[room].percent:.1f} %, wanted are {percent} %"
    for name, lines in modules.items():
        enough = lines.percent >= wanted.module
        if not enough and name not in wanted.without:
            yield f"{name} has {lines.percent:.1f} %, wanted are {wanted.module} %"
        elif enough and name in wanted.without:
            yield f"{name} has {lines.percent:.1f} % and needs no exception"
    yield from (f"{name} is an exception and not there" for name in wanted.without if name not in modules)


def measured(words: list[str], folder: Path) -> tuple[int, dict[str, Lines]]:
    """Run the tests in two processes; the worst of their exit codes, and the lines of each module."""
    env = {**os.environ, "COVERAGE_FILE": str(folder / "data")}
    argv = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-p", "no:cacheprovider", *words]
    running = [subprocess.Popen([*argv, *part], cwd=ROOT, env=env) for part in PARTS]
    try:
        code = max(abs(process.wait()) for process in running)
    finally:
        for process in running:
            process.kill()
            process.wait()
    return code, read(folder)


def read(folder: Path) -> dict[str, Lines]:
    """The lines of each module, by its path below `src`, from the data in a folder."""
    coverage = Coverage(data_file=str(folder / "data"), config_file=str(ROOT / "pyproject.toml"))
    coverage.combine([str(folder)])
    found = {}
    for path in sorted(coverage.get_data().measured_files()):
        _, lines, _, missing, _ = coverage.analysis2(path)
        at = max(path.rfind("/" + PACKAGE), path.rfind("/tools/agent_tools/"))
        found[path[at + 1 :]] = Lines(len(lines) - len(missing), len(lines))
    return found


def main() -> int:
    """Measure, print both tables, and tell what is missing."""
    wanted = limits((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="sat-covered-") as name:
        code, modules = measured(sys.argv[1:] or ["-q"], Path(name))
    for table in (modules, by_room(modules)):
        print(*(f"{lines.percent:6.1f} %  {lines.run:5} of {lines.all:5}  {name}" for name, lines in table.items()),
              "", sep="\n")  # fmt: skip
    found = list(complaints(modules, wanted))
    print(*(f"coverage: {line}" for line in found or ["every limit holds"]), sep="\n")
    return code or bool(found)


if __name__ == "__main__":
    sys.exit(main())
