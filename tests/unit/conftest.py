"""Unit tests leave nothing in the home folder of whoever runs them, and say the same on a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.transport.sshserver import Node, running
from tests.watchdog import SECONDS

from slurm_agent_tools.scripts import reader
from slurm_agent_tools.settings import workstation_place


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home: Path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv(workstation_place.VARIABLE, raising=False)
    monkeypatch.setattr(workstation_place, "MACHINES", home / "no-workstation-of-the-machine")


@pytest.fixture
def impatient() -> bool:
    """Whether the shell's parser gets no more time than in real life."""
    return False


@pytest.fixture(autouse=True)
def _patience(impatient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not impatient:
        monkeypatch.setattr(reader, "_SECONDS", SECONDS)


@pytest.fixture
async def node(tmp_path):
    async with running(Node(tmp_path)) as node:
        yield node
