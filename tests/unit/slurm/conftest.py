"""What several modules of this folder need."""

import pytest
from tests.unit.slurm.sshserver import Node, running


@pytest.fixture
async def node(tmp_path):
    async with running(Node(tmp_path)) as node:
        yield node
