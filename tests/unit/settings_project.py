"""A project in which nothing is set, neither in its file nor in the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_agent_tools.settings.setting_sources import FILE_NAME


def empty_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, in which the test works from now on, with an empty file of settings and a subfolder."""
    for name in [name for name in os.environ if name.startswith("SLURM_AGENT_")]:
        monkeypatch.delenv(name)
    (folder / "sub").mkdir()
    (folder / FILE_NAME).write_text("")
    monkeypatch.chdir(folder)
    return folder


def write(project: Path, text: str) -> None:
    """The text of the project's file of settings."""
    (project / FILE_NAME).write_text(text)
