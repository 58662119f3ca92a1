"""Runs the tests in several processes beside each other.

    python scripts/test.py [PYTEST OPTIONS] [PATHS]   every test: what computes beside what waits for a Slurm
    python scripts/test.py --check [PYTEST OPTIONS]   lint, and every test that needs no Slurm, with less by chance

With a path it is pytest and nothing else. Each part's output is printed whole, in the order of the parts. The parts
share nothing: each that needs a Slurm brings up one of its own. No test measures time, so none needs the machine alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
NOTHING = 5  # pytest's exit code when no test was selected
COMPUTING = ("tests/unit", "tests/replay", "tests/fuzz")


def on_slurm(*names: str) -> tuple[str, ...]:
    """Files of tests that need a Slurm."""
    return tuple(f"tests/system/test_{name}.py" for name in names)


# About a sixth of the time on a Slurm each, which they wait for more than they compute. All other tests, new ones
# among them, are in the last sixth.
JOBS = on_slurm("fates", "guard", "reading_against_slurm", "history", "scale", "failures")
# What brings clusters up comes before what stops the daemons of the one that this sixth shares.
DAEMONS = (
    "tests/conformance",
    *on_slurm("cgroups", "devcluster", "outages", "scenarios", "alerts", "resources", "swap", "efficiency"),
)
PLACES = on_slurm(
    "workstation", "sync", "choose_backend", "smoke_first", "laptop", "ssh", "pbs_on_slurm", "allocations", "approvals",
    "answers", "before", "limits", "waiting", "started_programs", "log_names",
)  # fmt: skip
MANY_JOBS = on_slurm(
    "campaigns", "campaign_kills", "campaign_laws", "campaign_laptop", "campaign_searches", "campaign_batches",
    "campaign_feed", "guide_campaigns", "plan_live", "simulate", "findings", "fleet",
    "missing_sources",  # at the end: it stops daemons, and a cluster that is slow besides answers otherwise
)  # fmt: skip
A_SITE = (
    "tests/bare", "tests/install", "tests/site",
    *on_slurm(
        "boundary", "connect", "evals", "first_job", "floor", "pages", "site", "tickets", "trust", "demo", "drift",
        "prometheus", "watch",
    ),
)  # fmt: skip
ELSEWHERE = ("tests/launchers", "tests/skypilot", "tests/optuna", "tests/extras")  # `make test-launchers` and its kin
SHORT = {"SOAK_SECONDS": "4", "SHORT_TESTS": "1"}  # of fuzzing, and of what is made by chance


@dataclass(frozen=True, slots=True)
class Part:
    """One pytest, shared out among so many processes, or another command."""

    name: str
    paths: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    processes: int = 1
    command: tuple[str, ...] = ()

    def start(self, words: list[str], env: Mapping[str, str], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
        """Start it; no `output` is ours."""
        paths = [path for path in self.paths if (ROOT / path).exists()]
        options = [f"--ignore={path}" for path in self.ignored]
        if self.processes > 1:
            options += ["-p", "tests.sharing", f"--processes={self.processes}"]
        argv = list(self.command) or pytest(*words, *options, *paths)
        return subprocess.Popen(argv, cwd=ROOT, env=dict(env), stdout=output, stderr=output)


COMPUTED = Part("what needs no Slurm", COMPUTING, processes=min(8, max(2, os.cpu_count() or 2)))
CHECK = (COMPUTED, Part("lint", command=("make", "--no-print-directory", "lint")))
EVERYTHING = (
    COMPUTED,
    Part("one sixth of the tests on a Slurm", JOBS),
    Part("the second sixth", DAEMONS),
    Part("the third sixth", PLACES),
    Part("the fourth sixth", MANY_JOBS),
    Part("the fifth sixth", A_SITE),
    Part("the last sixth", ("tests",), (*COMPUTING, *JOBS, *DAEMONS, *PLACES, *MANY_JOBS, *A_SITE, *ELSEWHERE)),
)


def pytest(*words: str) -> list[str]:
    """The command line of one pytest; no cache, which several cannot share."""
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]


def main() -> int:
    """Run all parts; 0 when every test passed."""
    words, env = sys.argv[1:], compiled()
    if words[:1] == ["--check"]:
        return ran(CHECK, words[1:], {**env, **SHORT})
    if any((ROOT / word.split("::")[0]).exists() for word in words):
        return subprocess.run(pytest(*words), cwd=ROOT, env=env, check=False).returncode
    return ran(EVERYTHING, words, env)


def compiled() -> dict[str, str]:
    """Compile our modules, and give an environment in which what was compiled is kept.

    Without it each program that a test starts compiles up to 400 modules again, and each pytest all tests.
    """
    subprocess.run([sys.executable, "-m", "compileall", "-q", "src"], cwd=ROOT, check=False)
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def ran(parts: Sequence[Part], words: list[str], env: Mapping[str, str]) -> int:
    """Run parts beside each other; the first prints as it goes. The worst of their exit codes."""
    with tempfile.TemporaryDirectory(prefix="sat-tests-") as name:
        logs = [None, *((Path(name) / str(number)).open("w+b") for number in range(1, len(parts)))]
        say(parts[0].name)
        running = [part.start(words, env, log) for part, log in zip(parts, logs, strict=True)]
        try:
            for part, log, process in zip(parts, logs, running, strict=True):
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
    codes = [process.returncode for process in running if process.returncode != NOTHING]
    return max(map(abs, codes), default=NOTHING)


def say(name: str) -> None:
    """Which part's output follows."""
    print(f"--- {name}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
