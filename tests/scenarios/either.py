"""The two kinds of Slurm that scenarios run on, and how one scenario is run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from tests.scenarios.bench import Bench, Seen
from tests.scenarios.table import Scenario

from slurm_agent_tools.devcluster import lifecycle, slurm_daemons, workers
from slurm_agent_tools.devcluster.definition import Cluster
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.settings import Settings, SlurmSettings
from slurm_agent_tools.transport.base import Completed, LoginEnvironment, OnOutput
from slurm_agent_tools.transport.local import LocalFiles, LocalRunner, SystemClock

VERSIONS = {"22.05": (22, 5), "24.11": (24, 11), "26.05": (26, 5)}
_AT_ONCE = 16
FIRST_JOB, MIN_JOB_AGE = 5001, 60
_AWAY = ("down", "drain")
CONF = f"FirstJobId={FIRST_JOB}\nMinJobAge={MIN_JOB_AGE}\n"
"""Of the real clusters: ids that are like no other number, and jobs that are forgotten soon."""


class FakeBench(Bench):
    """On a fake Slurm of its own."""

    def __init__(self, version: str, project: Path, *, accounting: bool = True) -> None:
        self.version = VERSIONS[version]
        self.fake = FakeSlurm(version=version, user="researcher", first_job_id=FIRST_JOB, accounting=accounting)
        self.fake.controller.min_job_age = MIN_JOB_AGE
        super().__init__(self.fake.place(project), self.fake.clock, "researcher", project)

    def ends(self, **facts: Any) -> None:
        self.fake.next_job(**facts)

    async def admin(self, *argv: str, fails: bool = False) -> None:
        answer = self.fake.command(*argv, admin=True)
        assert fails or answer.code == 0, (argv, answer.err)

    def node(self, name: str) -> str:
        return name


class AsUser:
    """Runs commands as the cluster's user."""

    def __init__(self, cluster: Cluster, *, slack: int = 3) -> None:
        self._cluster, self._slack = cluster, slack
        self._inner = LocalRunner(Settings(slurm=SlurmSettings(conf=cluster.conf)))
        self._path = {name: value for name, value in cluster.environment().items() if name == "PATH"}

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 10.0,
        max_output: int = 64 * 2**20,
        on_output: OnOutput | None = None,
    ) -> Completed:
        # sbatch opens /dev/stdin anew, which only the owner of a pipe may.
        words = ["sh", "-c", 'cat | "$@"', "sh", *argv] if stdin else list(argv)
        done = await self._inner.run(
            self._cluster.as_user(words), stdin=stdin, env=self._path | dict(env or {}), cwd=cwd, timeout=self._slack * timeout,
            max_output=max_output, on_output=on_output,
        )  # fmt: skip
        return replace(done, argv=tuple(argv))


class RealPlace:
    """The devcluster as a place of this machine."""

    def __init__(self, cluster: Cluster, project: Path, *, slack: int = 3) -> None:
        self.key, self.runner, self.files = str(cluster.conf), AsUser(cluster, slack=slack), LocalFiles()
        self._around = LoginEnvironment(cluster.user, str(project), {})

    async def login_environment(self) -> LoginEnvironment:
        return self._around

    async def close(self) -> None:
        pass


class RealBench(Bench):
    """On the devcluster, beside other scenarios."""

    def __init__(self, cluster: Cluster, version: str, project: Path, *, slack: int = 3) -> None:
        self.version, self.cluster = VERSIONS[version], cluster
        super().__init__(RealPlace(cluster, project, slack=slack), SystemClock(), cluster.user, project)

    def ends(self, **facts: Any) -> None:
        pass

    async def admin(self, *argv: str, fails: bool = False) -> None:
        runner = LocalRunner(Settings(slurm=SlurmSettings(conf=self.cluster.conf, bin_dir=self.cluster.bin_dir)))
        env = {name: value for name, value in self.cluster.environment().items() if name == "PATH"}
        done = await runner.run(list(argv), env=env)
        assert fails or done.exit_code == 0, (argv, done.stderr)

    async def state_of_all(self) -> str:
        states = await workers.node_states(self.cluster)
        daemons = [f"slurmd.{node}" for node, state in states.items() if state.startswith(_AWAY)]
        words = [slurm_daemons.last_words(self.cluster, name) for name in ("slurmctld", *daemons)]
        return "\n".join([await super().state_of_all(), *words])

    def node(self, name: str) -> str:
        return next(one for one in self.cluster.nodes if one.endswith(name))


def _project(folder: Path, scenario: Scenario) -> Path:
    project = folder / scenario.name
    (project / "logs").mkdir(parents=True)
    return project.resolve()


async def on_fake(scenario: Scenario, version: str, folder: Path) -> Seen:
    """What the fake Slurm shows."""
    bench = FakeBench(version, _project(folder, scenario))
    try:
        return await scenario.run(bench)
    finally:
        await bench.close()


async def on_real(scenarios: Sequence[Scenario], version: str, cluster: Cluster) -> dict[str, Seen | str]:
    """What a real Slurm shows, all scenarios beside each other; an error as text.

    A busy machine may take a node away from under a scenario. One that broke is told, and asked once more by itself
    when the cluster is whole again: what it shows then is compared like all others.
    """
    found: dict[str, Seen | str] = {}
    room, locks = anyio.Semaphore(_AT_ONCE), {scenario.alone: anyio.Lock() for scenario in scenarios}
    folder = cluster.project.parent / "scenarios"
    shutil.rmtree(folder, ignore_errors=True)

    async def one(scenario: Scenario) -> None:
        project = _project(folder, scenario)
        own(folder, cluster)
        bench = RealBench(cluster, version, project)
        try:
            found[scenario.name] = await scenario.run(bench)
        except Exception as error:  # noqa: BLE001 - the others go on, and this one is told
            found[scenario.name] = f"{type(error).__name__}: {error}"
        finally:
            await bench.close()

    async def queued(scenario: Scenario) -> None:
        if scenario.alone:
            async with locks[scenario.alone], room:
                await one(scenario)
        else:
            async with room:
                await one(scenario)

    async with anyio.create_task_group() as group:
        for scenario in sorted(scenarios, key=lambda scenario: -scenario.seconds):
            group.start_soon(queued, scenario)
    for scenario in [scenario for scenario in scenarios if isinstance(found[scenario.name], str)]:
        sys.stderr.write(f"{scenario.name} broke, and is asked once more: {found[scenario.name]}\n")
        await _made_whole(cluster)
        shutil.rmtree(folder / scenario.name)
        await one(scenario)
    return found


async def _made_whole(cluster: Cluster) -> None:
    """Every daemon runs, and every node takes jobs."""
    daemons = (await lifecycle.status(cluster.folder)).daemons
    for name in (name for name, pid in daemons.items() if pid is None):
        await lifecycle.start_daemon(cluster, name)
    states = await workers.node_states(cluster)
    away = [node for node, state in states.items() if state.startswith(_AWAY)]
    if away:
        await slurm_daemons.call(cluster, ["scontrol", "update", f"nodename={','.join(away)}", "state=resume"])
    await workers.fit(cluster)


def own(folder: Path, cluster: Cluster) -> None:
    """Give the folders to the cluster's user: tests write as root."""
    if os.geteuid() == 0:
        for path in (folder, *folder.glob("*"), *folder.glob("*/logs")):
            shutil.chown(path, cluster.user, cluster.user)
