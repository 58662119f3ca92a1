"""`make uninstall` takes away what `make install` put there, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPLETION = (
    "bash-completion/completions/slurm-agent-tools", "zsh/site-functions/_slurm-agent-tools",
    "fish/vendor_completions.d/slurm-agent-tools.fish",
)  # fmt: skip
PUT = (
    "share/slurm-agent-tools/pyvenv.cfg", "share/slurm-agent-tools/bin/slurm-agent-tools",
    "share/man/man1/slurm-agent-tools.1", "share/man/man1/slurm-agent-tools-submit_job.1",
    *(f"share/{name}" for name in COMPLETION),
)  # fmt: skip


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A user's folder with what `make install` puts there; tests/system/test_wheel.py has the real one."""
    made = tmp_path / "own folder"
    for name in (*PUT, "bin/other"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).touch()
    (made / "bin/slurm-agent-tools").symlink_to(made / "share/slurm-agent-tools/bin/slurm-agent-tools")
    return made


def uninstalled(prefix: Path) -> subprocess.CompletedProcess[str]:
    words = ["make", "--silent", "uninstall", f"PREFIX={prefix}"]
    return subprocess.run(
        words, cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )


def left(prefix: Path) -> set[str]:
    return {str(path.relative_to(prefix)) for path in prefix.rglob("*")}


def test_make_uninstall_removes_what_make_install_put_there_and_folders_left_empty(prefix: Path) -> None:
    done = uninstalled(prefix)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Removed from {prefix}: ")
    assert left(prefix) == {"bin", "bin/other", "share"}


def test_make_uninstall_leaves_what_is_of_others(prefix: Path) -> None:
    others = {"share/man/man1/slurm.1", "share/man/man1/slurm-agent.1", "share/fish/config.fish"}
    for name in others:
        (prefix / name).touch()
    (prefix / "bin/slurm-agent-tools").unlink()
    (prefix / "bin/slurm-agent-tools").symlink_to("/somewhere/else/slurm-agent-tools")
    assert uninstalled(prefix).returncode == 0
    kept = {"share/man", "share/man/man1", "share/fish", "bin/slurm-agent-tools"}
    assert left(prefix) == {"bin", "bin/other", "share"} | others | kept


@pytest.mark.parametrize("missing", ["pyvenv.cfg", "bin/slurm-agent-tools"])
def test_make_uninstall_removes_nothing_where_make_install_put_nothing(prefix: Path, missing: str) -> None:
    (prefix / "share/slurm-agent-tools" / missing).unlink()
    before = left(prefix)
    done = uninstalled(prefix)
    assert done.returncode != 0
    assert "Nothing was removed" in done.stderr
    assert left(prefix) == before


def test_make_uninstall_removes_nothing_of_a_folder_elsewhere(prefix: Path) -> None:
    own = prefix / "share/slurm-agent-tools"
    own.rename(prefix / "elsewhere")
    own.symlink_to(prefix / "elsewhere")
    assert uninstalled(prefix).returncode != 0
    assert (prefix / "elsewhere/pyvenv.cfg").exists()


def test_make_help_names_the_way_back() -> None:
    done = subprocess.run(["make", "--silent", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "make uninstall " in done.stdout
