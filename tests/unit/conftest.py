"""Unit tests leave nothing in the home folder of whoever runs them, and say the same on a busy machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.transport.sshserver import Node, running
from tests.watchdog import SECONDS

from slurm_agent_tools.scripts import reader
from slurm_agent_tools.settings import workstation_place

_NUMBERS = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def _parsed() -> Iterator[None]:
    """Hundreds of tests read the same scripts: what the shell's parser says of one is asked once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_KEPT", 3000)
        yield


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def _home(_homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = _homes / str(next(_NUMBERS))
    home.mkdir()
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
