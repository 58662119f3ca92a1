"""Puts small faults in by chance, one at a time, and sees whether a unit test notices.

    python scripts/faults.py --seed 1                     20 faults each in policy, slurm and services
    python scripts/faults.py --seed 1 --only 3 17         two of them again
    python scripts/faults.py --seed 1 --tests tests/unit/policy --rooms policy

All of it happens in a copy of the repository in a temporary folder. One run of the unit tests there finds out which
test reaches which drawn statement; each fault then meets those tests alone, until one fails, and after them those of
the folder that mirrors its own. Ends with 1 when fewer than 85 % of the faults that change behaviour were noticed;
those that change nothing are in `equivalent_faults.yaml`, each with its reason.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import fault_sites
import yaml

ROOT = Path(__file__).parents[1]
TOP = "src/slurm_agent_tools"
ROOMS = ("policy", "slurm", "services")
LEFT_OUT = (f"{TOP}/devcluster/fake/",)
"""Parts that are for tests themselves."""
KNOWN = ROOT / "scripts" / "equivalent_faults.yaml"
ENOUGH = 0.85
CAUGHT = {1: "", 2: "while the tests were collected"}
CONFTEST = 4  # pytest's exit code when not even conftest.py can be imported; also that of a wrong command line


@dataclass(frozen=True, slots=True)
class Fault:
    """One drawn fault. `number`: its place in the draw; `text`: its file as it was then; `site`: which of its sites."""

    number: int
    path: str
    text: str
    site: int
    line: int
    kind: str
    function: str
    before: str
    after: str

    def same(self, known: dict[str, str]) -> bool:
        """Whether an entry of the known ones is about it."""
        ours = (self.path, self.function, self.before, self.after)
        return ours == (known["file"], known["function"], known["before"], known["after"])

    def __str__(self) -> str:
        place = f"{self.path.removeprefix(f'{TOP}/')}:{self.line}"
        return f"{self.number:>3} {place} in {self.function or 'the module'}: {self.before}  →  {self.after}"


@dataclass(frozen=True, slots=True)
class Notes:
    """What the run without a fault found: tests that pass with their seconds, and those that reach each fault."""

    seconds: dict[str, float]
    reaching: dict[int, set[str]]


def main() -> int:
    """Draw, run and report."""
    options = _arguments().parse_args()
    faults = drawn(options.rooms, options.each, options.seed)
    if options.only:
        faults = [fault for fault in faults if fault.number in options.only]
    known = yaml.safe_load(KNOWN.read_text(encoding="utf-8")) or []
    print(f"seed {options.seed}: {len(faults)} faults in {', '.join(options.rooms)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        copies = SimpleQueue[Path]()
        first = copied(Path(name))
        notes = unharmed(first, faults, options.tests)
        copies.put(first)
        for number in range(1, options.jobs):
            copies.put(Path(shutil.copytree(first, Path(name) / f"copy{number}", symlinks=True)))
        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(partial(_met, copies, notes, known), faults))
    return report(faults, results, known)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", default="1", help="which faults are drawn")
    parser.add_argument("--each", type=int, default=20, help="how many in each room")
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), help="folders of the package")
    parser.add_argument("--tests", nargs="+", default=["tests/unit"], help="where tests are looked for")
    parser.add_argument("--only", nargs="+", type=int, help="numbers of the draw")
    parser.add_argument("--jobs", type=int, default=2, help="how many faults are tried beside each other")
    return parser


def drawn(rooms: Sequence[str], each: int, seed: str) -> list[Fault]:
    """The faults of a seed, `each` in every room."""
    found: list[tuple[str, int]] = []
    for room in rooms:
        files = sorted((ROOT / TOP / room).rglob("*.py"))
        texts = [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in files]
        kept = [(path, text) for path, text in texts if not path.startswith(LEFT_OUT)]
        found += fault_sites.draw(kept, each, f"{seed} {room}")
    return [_fault(number, path, site) for number, (path, site) in enumerate(found, 1)]


def _fault(number: int, path: str, place: int) -> Fault:
    text = (ROOT / path).read_text(encoding="utf-8")
    site = fault_sites.sites(ast.parse(text))[place]
    line = getattr(site.node, "lineno", site.statement.lineno)
    return Fault(number, path, text, place, line, site.kind, site.function, *site.change)


def copied(folder: Path) -> Path:
    """A copy of what git has here or would take, into `folder`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / "copy" / name, follow_symlinks=False)
    return folder / "copy"


def unharmed(copy: Path, faults: Sequence[Fault], tests: Sequence[str]) -> Notes:
    """Run the tests once without a fault, with a mark before each drawn statement."""
    by_file: dict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        by_file[fault.path].append(fault)
    for path, here in by_file.items():
        put(copy, path, fault_sites.marked(here[0].text, {fault.number: fault.site for fault in here}))
    started = time.monotonic()
    code, told = pytest(copy, tests, {"FAULTS_NOTES": str(copy.parent)}, None)
    if code not in {0, 1}:
        raise SystemExit(f"the tests do not run without a fault:\n{told}")
    for path, here in by_file.items():
        put(copy, path, here[0].text)
    notes = read_notes(copy.parent)
    print(f"{len(notes.seconds)} tests pass without a fault, in {time.monotonic() - started:.0f} s", flush=True)
    return notes


def read_notes(folder: Path) -> Notes:
    """What `fault_marks` wrote down."""
    seconds, failed, reaching = dict[str, float](), set[str](), defaultdict[int, set[str]](set)
    for line in _lines(folder / "ended"):
        outcome, duration, test = line.split(" ", 2)
        seconds[test] = float(duration)
        if outcome != "passed":
            failed.add(test)
    for line in _lines(folder / "reached"):
        number, test = line.split(" ", 1)
        reaching[int(number)].add(test)
    return Notes({test: spent for test, spent in seconds.items() if test not in failed}, dict(reaching))


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def put(copy: Path, path: str, text: str) -> None:
    """Write a module, and forget what was compiled from it: two writings in a second look alike to Python."""
    (copy / path).write_text(text, encoding="utf-8")
    for compiled in (copy / path).parent.glob(f"__pycache__/{Path(path).stem}.*.pyc"):
        compiled.unlink()


def pytest(copy: Path, words: Iterable[str], env: dict[str, str], limit: float | None) -> tuple[int | None, str]:
    """Its exit code, None when it ran on for longer than `limit` seconds, and the end of its output."""
    paths = os.pathsep.join((str(copy / "src"), str(copy / "scripts")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "fault_marks", "--tb=no"]
    command += [f"--basetemp={copy.parent / copy.name}-tmp", *words]
    with subprocess.Popen(
        command,
        cwd=copy,
        env={**os.environ, **env, "PYTHONPATH": paths},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            told, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, ""
    return process.returncode, told.decode(errors="replace")[-4000:]


def _met(copies: SimpleQueue[Path], notes: Notes, known: list[dict[str, str]], fault: Fault) -> str | None:
    copy = copies.get()
    try:
        put(copy, fault.path, fault_sites.faulty(fault.text, fault.site))
        by = noticed(copy, notes, fault)
    finally:
        put(copy, fault.path, fault.text)
        copies.put(copy)
    word = "noticed" if by is not None else "changes nothing" if any(map(fault.same, known)) else "NOT NOTICED"
    print(f"{fault}\n    {word}{f' {by}' if by else ''}", flush=True)
    return by


def noticed(copy: Path, notes: Notes, fault: Fault) -> str | None:
    """How the tests noticed the fault that is in the copy now; None when they did not."""
    tests = chosen(notes, fault)
    if not tests:
        return None
    wanted = copy.parent / f"{copy.name}-tests"
    wanted.write_text("\n".join(tests), encoding="utf-8")
    files = sorted({test.split("::")[0] for test in tests})
    limit = 60 + 5 * sum(notes.seconds[test] for test in tests)
    code, told = pytest(copy, ["-x", *files], {"FAULTS_TESTS": str(wanted)}, limit)
    if code is None:
        return "by what never ended"
    if code in CAUGHT or (code == CONFTEST and "ImportError while loading conftest" in told):
        return CAUGHT.get(code) or _first_failed(told)
    if code != 0:
        raise SystemExit(f"pytest ended with {code} at {fault}:\n{told}")
    return None


def _first_failed(told: str) -> str:
    lines = [line for line in told.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return f"by {lines[0].split(' ', 1)[1].split(' - ')[0]}" if lines else "by a test"


def chosen(notes: Notes, fault: Fault) -> list[str]:
    """The tests that reach a fault, nearest and shortest first; where none does, the folder that mirrors its own."""
    mirror = f"tests/unit/{fault.path.removeprefix(f'{TOP}/').split('/')[0]}/"
    reaching = notes.reaching.get(fault.number, set()) & notes.seconds.keys()
    tests = reaching or {test for test in notes.seconds if test.startswith(mirror)}
    return sorted(tests, key=lambda test: (not test.startswith(mirror), notes.seconds[test], test))


def report(faults: Sequence[Fault], results: Sequence[str | None], known: Sequence[dict[str, str]]) -> int:
    """Print the share; 1 when it is too small, or when a fault that is said to change nothing was noticed."""
    unchanged = [any(map(fault.same, known)) for fault in faults]
    wrong = [fault for fault, by, same in zip(faults, results, unchanged, strict=True) if same and by is not None]
    for fault in wrong:
        print(f"said to change nothing, and noticed: {fault}")
    counted = [by for by, same in zip(results, unchanged, strict=True) if not same]
    caught = sum(by is not None for by in counted)
    share = caught / len(counted) if counted else 1.0
    print(f"{caught} of {len(counted)} faults that change behaviour were noticed: {share:.0%}", end="")
    print(f" ({sum(unchanged)} change nothing; {ENOUGH:.0%} is wanted)")
    return 1 if wrong or share < ENOUGH else 0


if __name__ == "__main__":
    raise SystemExit(main())
