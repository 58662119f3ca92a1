"""One real private Slurm for all system tests; it is taken down and deleted whatever happens.

SLURM_AGENT_TEST_SLURM=24.11 or 26.05 takes that version in place of the distribution's.
"""

from __future__ import annotations

import gc
import itertools
import os
import tempfile
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import settings
from tests.system.faces import Place

from slurm_agent_tools.devcluster import lifecycle, login_node, packages
from slurm_agent_tools.devcluster.definition import Cluster
from slurm_agent_tools.devcluster.login_node import LoginNode

SLURM = os.environ.get("SLURM_AGENT_TEST_SLURM") or None

settings.register_profile("without a clock", deadline=None)  # else an example that takes 0.2 s on a busy machine fails
settings.load_profile("without a clock")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is made while tests are collected stays to the end: the collector of garbage need not look at it again.

    It looked at all of some hundred thousand objects every few seconds, which took an eighth of the processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        # With the login node's packages: tests start it later, on this cluster.
        anyio.run(partial(packages.ensure_packages, accounting=True, ssh=True, yes=True, say=print))
        yield anyio.run(partial(lifecycle.up, folder, slurm=SLURM, yes=True))
    finally:
        anyio.run(partial(lifecycle.down, folder, wipe=True))
        if folder.is_dir():  # nothing was recorded in it
            folder.rmdir()


@pytest.fixture(scope="session")
def login(cluster: Cluster) -> LoginNode:
    """The cluster's login node."""
    return anyio.run(login_node.up, cluster)


_COUNT = itertools.count(1)


def make_place(cluster: Cluster) -> Place:
    """A new project folder of the cluster's user, with a state folder of its own."""
    home = cluster.project.parent / f"place-{next(_COUNT)}"
    project = home / "project"
    project.mkdir(parents=True)
    made = Place(cluster, project, another=lambda: make_place(cluster))
    made.own()
    return made


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Place:
    return make_place(cluster)
