"""A real memory server in an environment of its own: it needs another version of the MCP SDK than we do."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WANTED, HOME = HERE / "requirements.txt", HERE / ".venv"
UV = Path(sys.executable).parent / "uv"
# Without a model it takes its own stand-in for one, which it calls fit for tests only.
TESTED = {"MCP_MEMORY_ALLOW_HASH_EMBEDDINGS": "1", "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec", "HF_HUB_OFFLINE": "1"}


def _run(*words: str | Path) -> None:
    done = subprocess.run([UV, *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def memory_program() -> Path:
    """Its command; installed on first use, and again when the requirements change."""
    assert hasattr(sqlite3.Connection, "enable_load_extension"), "this Python's sqlite3 loads no extensions"
    wanted = hashlib.sha256(WANTED.read_bytes() + sys.version.encode()).hexdigest()
    stamp = HOME / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        _run("venv", "--quiet", "--no-config", "--clear", "--python", sys.executable, HOME)
        python = HOME / "bin" / "python"
        _run("pip", "install", "--quiet", "--no-config", "--require-hashes", "--python", python, "-r", WANTED)
        stamp.write_text(wanted)
    return HOME / "bin" / "memory-server"


@pytest.fixture
def memory_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Its settings in our own environment: an empty memory for each test. `memory.env` has to name them."""
    chosen = TESTED | {"MCP_MEMORY_BASE_DIR": str(tmp_path / "memory"), "HOME": str(tmp_path)}
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    return chosen | {"PATH": os.environ["PATH"]}
