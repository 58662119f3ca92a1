"""Runs every test: what computes beside what waits for a Slurm, and what measures time alone at the end.

    python scripts/test.py [PYTEST OPTIONS] [PATHS]

With a path it is pytest and nothing else. Each part's output is printed whole, in the order of the parts. The parts
share nothing: each of the two that need a Slurm brings up one of its own.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
NOTHING = 5  # pytest's exit code when no test was selected
# Limits of seconds and ratios: nothing else may run beside them.
ALONE = (
    "tests/unit/test_speed.py",
    "tests/unit/toolbox/logs/test_speed.py",
    "tests/system/test_scale.py",
    "tests/system/test_waiting.py",
)
COMPUTING = ("tests/unit", "tests/replay", "tests/fuzz")
# About half of the time on a Slurm. All other tests, new ones among them, are in the other half.
HALF = tuple(
    f"tests/system/test_{name}.py"
    for name in (
        "fates",
        "failures",
        "guard",
        "floor",
        "limits",
        "approvals",
        "allocations",
        "demo",
        "efficiency",
        "reading_against_slurm",
        "resources",
        "swap",
        "alerts",
        "history",
    )
)


@dataclass(frozen=True, slots=True)
class Part:
    """One pytest process."""

    name: str
    paths: tuple[str, ...]
    ignored: tuple[str, ...] = ()

    def start(self, words: list[str], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
        """Start it; no `output` is ours."""
        paths = [path for path in self.paths if (ROOT / path).exists()]
        options = [f"--ignore={path}" for path in self.ignored]
        return subprocess.Popen(pytest(*words, *options, *paths), cwd=ROOT, stdout=output, stderr=output)


BESIDE = (
    Part("computing", COMPUTING, ALONE),
    Part("one half of the tests on a Slurm", HALF),
    Part("the other half", ("tests",), (*COMPUTING, *HALF, *ALONE)),
)
LAST = Part("what measures time", ALONE)


def pytest(*words: str) -> list[str]:
    """The command line of one pytest; no cache, which several cannot share."""
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]


def main() -> int:
    """Run all parts; 0 when every test passed."""
    words = sys.argv[1:]
    if any((ROOT / word.split("::")[0]).exists() for word in words):
        return subprocess.run(pytest(*words), cwd=ROOT, check=False).returncode
    codes = [*beside(words), alone(words)]
    ran = [code for code in codes if code != NOTHING]
    return max(ran, default=NOTHING)


def beside(words: list[str]) -> list[int]:
    """The parts that may run beside each other; the first prints as it goes."""
    with tempfile.TemporaryDirectory(prefix="sat-tests-") as name:
        logs = [None, *((Path(name) / str(number)).open("w+b") for number in range(1, len(BESIDE)))]
        say(BESIDE[0].name)
        running = [part.start(words, log) for part, log in zip(BESIDE, logs, strict=True)]
        try:
            for part, log, process in zip(BESIDE, logs, running, strict=True):
                process.wait()
                if log is not None:
                    say(part.name)
                    log.seek(0)
                    sys.stdout.buffer.write(log.read())
        except KeyboardInterrupt:  # they take down what they brought up before they end
            for process in running:
                process.send_signal(signal.SIGINT)
            for process in running:
                process.wait()
            raise SystemExit(130) from None
        return [process.returncode for process in running]


def alone(words: list[str]) -> int:
    """What measures time, when nothing else runs."""
    say(LAST.name)
    process = LAST.start(words, None)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise SystemExit(130) from None


def say(name: str) -> None:
    """Which part's output follows."""
    print(f"--- {name}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
