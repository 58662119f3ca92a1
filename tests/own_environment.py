"""An environment of its own for tests of large packages that nothing else here needs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

UV = Path(sys.executable).parent / "uv"


def _uv(*words: str | Path) -> None:
    done = subprocess.run([UV, *words], capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def interpreter(home: Path, requirements: Sequence[Path]) -> Path:
    """The interpreter in `home` that has these; installed on first use, and again when the requirements change."""
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in requirements) + sys.version.encode()).hexdigest()
    stamp = home / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(home, ignore_errors=True)
        _uv("venv", "--quiet", "--no-config", "--python", "/usr/bin/python3", home)
        for path in requirements:
            _uv("pip", "install", "--quiet", "--no-config", "--python", home / "bin/python", "-r", path)
        stamp.write_text(wanted)
    return home / "bin" / "python"
