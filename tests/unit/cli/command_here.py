"""A line of a guide, run in this process as the installed command runs it: in its folder, with its environment alone."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_agent_tools.cli.main import main

Run = Callable[[str, Path], "subprocess.CompletedProcess[str]"]


def command_here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """What runs lines of a guide whose project is in this folder, in a fresh state, without a Slurm."""

    def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
        program, *words = shlex.split(line)
        assert program == "slurm-agent-tools"
        env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "SLURM_AGENT_PROJECT_ROOT": str(folder),
            "SLURM_AGENT_STATE_DIR": str(folder / "state"), "SLURM_AGENT_SLURM__BIN_DIR": str(folder / "no-slurm"),
        }  # fmt: skip
        capfd.readouterr()
        with monkeypatch.context() as patch:
            for name in os.environ:
                patch.delenv(name)
            for name, value in env.items():
                patch.setenv(name, value)
            patch.chdir(folder)
            code = main(words)
        said = capfd.readouterr()
        return subprocess.CompletedProcess([program, *words], code, said.out, said.err)

    return run
