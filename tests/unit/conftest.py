"""Unit tests leave nothing in the home folder of whoever runs them, and say the same on a busy machine."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.transport.sshserver import Node, running
from tests.watchdog import SECONDS

from slurm_agent_tools.scripts import reader
from slurm_agent_tools.settings import devcluster_place, workstation_place
from slurm_agent_tools.store import database

_NUMBERS = itertools.count()
_SECONDS, _DURABLE = reader._SECONDS, database._DURABLE


@pytest.fixture(scope="session", autouse=True)
def _shared() -> Iterator[None]:
    """Hundreds of tests read the same scripts: what the shell's parser says of one is asked once, and it gets its time.

    Nor does any wait for the disk. That the disk is asked is seen by the calls. A signal that is not Python's own way
    to take ^C is one that asyncio leaves alone: before and after each test it spelled out the whole task otherwise.
    """

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_KEPT", 3000)
        patch.setattr(reader, "_SECONDS", SECONDS)
        patch.setattr(database, "_DURABLE", "PRAGMA synchronous = OFF")
        patch.setattr(os, "fsync", lambda _: None)
        yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [tmp_path_factory.mktemp("homes")]


@pytest.fixture(autouse=True)
def _home(_homes: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A test gets the home of the one before, where that has left nothing in it."""
    home = _homes[-1]
    if len(_homes) == 1 or os.listdir(home):  # noqa: PTH208 - before each of many thousand tests
        home = _homes[0] / str(next(_NUMBERS))
        home.mkdir()
        _homes.append(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv(workstation_place.VARIABLE, raising=False)
    monkeypatch.setattr(workstation_place, "MACHINES", home / "no-workstation-of-the-machine")
    monkeypatch.delenv(devcluster_place.VARIABLE, raising=False)
    monkeypatch.setattr(devcluster_place, "ROOTS", home / "no-devcluster-of-root")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell's parser gets no more time than in real life."""
    monkeypatch.setattr(reader, "_SECONDS", _SECONDS)


@pytest.fixture
def durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger waits for the disk as in real life."""
    monkeypatch.setattr(database, "_DURABLE", _DURABLE)


@pytest.fixture
async def node(tmp_path):
    async with running(Node(tmp_path)) as node:
        yield node
