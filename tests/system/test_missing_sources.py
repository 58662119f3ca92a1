"""A real Slurm whose slurmdbd or slurmctld is stopped, or that never had a slurmdbd: each tool answers as the page says."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.conftest import SLURM
from tests.scenarios.either import CONF, RealBench, own
from tests.scenarios.missing_sources import SOURCES, Answers, Missing
from tests.unit.services.test_missing_sources import answers

from slurm_agent_tools.devcluster import lifecycle
from slurm_agent_tools.devcluster.definition import Cluster
from slurm_agent_tools.models.arguments import GetStatus

VERSION = SLURM or "22.05"
Change = Callable[[Cluster], Awaitable[None]]


async def _signal(cluster: Cluster, name: str, number: int) -> None:
    await lifecycle.signal_daemon(cluster, name, number)


def _stop(name: str) -> Change:
    return lambda cluster: lifecycle.stop_daemon(cluster, name)


def _start(name: str) -> Change:
    return lambda cluster: lifecycle.start_daemon(cluster, name)


OUTAGES: dict[str, tuple[Change, Change]] = {
    "down": (_stop("slurmdbd"), _start("slurmdbd")),
    "slow": (
        lambda cluster: _signal(cluster, "slurmdbd", signal.SIGSTOP),
        lambda cluster: _signal(cluster, "slurmdbd", signal.SIGCONT),
    ),
    "controller": (_stop("slurmctld"), _start("slurmctld")),
}


async def _breathe(cluster: Cluster) -> None:
    """Let a slurmdbd that is stopped answer what waits for it."""
    begin, end = OUTAGES["slow"]
    await end(cluster)
    await anyio.sleep(2)
    await begin(cluster)


async def on_real(folder: Path, sources: Sequence[str], *, accounting: bool) -> dict[str, Answers]:
    """The answers of each outage; the jobs of all of them are prepared beside each other."""
    cluster = await lifecycle.up(folder, slurm=SLURM, yes=True, accounting=accounting, extra_conf=CONF)
    place = cluster.project.parent / "sources"
    missing: dict[str, Missing] = {}
    for source in sources:
        (place / source / "logs").mkdir(parents=True)
        missing[source] = Missing(RealBench(cluster, VERSION, (place / source).resolve(), slack=1), source)
        if source == "slow":
            missing[source].relieve = partial(_breathe, cluster)
    own(place, cluster)
    async with anyio.create_task_group() as group:
        for one in missing.values():
            group.start_soon(one.prepare)
    found: dict[str, Answers] = {}
    for source in sources:
        await missing[source].just_now()
        begin, end = OUTAGES.get("down" if source == "back" else source, (None, None))
        if begin is not None and end is not None:
            await begin(cluster)
        try:
            if source == "back" and end is not None:
                await missing[source].bench.box.call("get_status", GetStatus(sections=["errors"]))
                await end(cluster)
            found[source] = await missing[source].ask()
        finally:
            if source in OUTAGES and end is not None:
                await end(cluster)
            await missing[source].bench.close()
    return found


CLUSTERS = (("all", "down", "slow", "back"), ("controller",), ("never",))
"""The outages of each: of more on one the failed jobs are more than an answer lists."""


async def on_all(folders: Iterable[Path]) -> dict[str, Answers]:
    """The answers on clusters beside each other, the last of which never had an accounting."""
    found: dict[str, Answers] = {}

    async def one(folder: Path, sources: Sequence[str]) -> None:
        found.update(await on_real(folder, sources, accounting="never" not in sources))

    async with anyio.create_task_group() as group:
        for folder, sources in zip(folders, CLUSTERS, strict=True):
            group.start_soon(one, folder, sources)
    return found


@pytest.fixture(scope="module")
def real() -> Iterator[dict[str, Answers]]:
    folders = [Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp")) for _ in CLUSTERS]
    for folder in folders:
        folder.chmod(0o755)
    try:
        yield anyio.run(on_all, folders)
    finally:
        for folder in folders:
            anyio.run(partial(lifecycle.down, folder, wipe=True))
            shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.proves("missing-sources-are-named")
@pytest.mark.parametrize("source", SOURCES)
def test_each_tool_answers_as_over_the_fake_slurm(real: dict[str, Answers], source: str, tmp_path: Path):
    assert real[source] == anyio.run(answers, source, tmp_path)
