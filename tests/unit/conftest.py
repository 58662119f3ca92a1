"""Unit tests leave nothing in the home folder of whoever runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.transport.sshserver import Node, running


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home: Path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
async def node(tmp_path):
    async with running(Node(tmp_path)) as node:
        yield node
