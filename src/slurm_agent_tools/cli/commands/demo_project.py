"""Where the demo plays: a new project folder of the devcluster's user, and Slurm's own word on what happened."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path

import anyio
from mcp import StdioServerParameters

from slurm_agent_tools.cli.commands.demo_campaign import FILE
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError
from slurm_agent_tools.transport import process

# As root this may be the target of a link out of a folder that the cluster's user cannot enter.
_PYTHON = str(Path(sys.prefix).resolve() / "bin" / "python")

_ENDED = ("COMPLETED", "FAILED", "OUT_OF_MEMORY", "CANCELLED", "TIMEOUT", "NODE_FAIL")
_LOOKS = 300  # a tenth of a second between them: on a busy machine the accounting lags by more than ten seconds


@dataclass(frozen=True, slots=True)
class DemoProject:
    """The cluster, and the project folder that was made for this run."""

    cluster: Cluster
    project: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """What the user's commands see: the cluster's variables, a home of its own, and no more."""
        home = str(self.cluster.project.parent)
        names = {"HOME": home, "USER": self.cluster.user, "LOGNAME": self.cluster.user, "LANG": "C.UTF-8"}
        return {"PATH": os.environ["PATH"]} | names | self.cluster.environment()

    def server(self) -> StdioServerParameters:
        """Our MCP server as a client starts it."""
        argv = self.cluster.as_user([_PYTHON, "-m", "slurm_agent_tools", "serve"])
        return StdioServerParameters(command=argv[0], args=argv[1:], env=dict(self.environment), cwd=str(self.project))

    async def tool(self, *words: str) -> str:
        """Our command line, as the user in the project."""
        return await self.command(_PYTHON, "-m", "slurm_agent_tools", *words)

    async def command(self, *argv: str) -> str:
        """The standard output of a command of the user's. DevclusterError when it fails."""
        ended = await self._ended(argv)
        if ended.exit_code != 0:
            words = ended.stderr.decode(errors="replace").strip()
            raise DevclusterError(f"{' '.join(argv[:4])} failed as {self.cluster.user}: {words[-400:]}")
        return ended.stdout.decode(errors="replace").strip()

    async def succeeds(self, *argv: str) -> bool:
        """Whether a command of the user's ends with 0."""
        return (await self._ended(argv)).exit_code == 0

    async def _ended(self, argv: Sequence[str]) -> process.EndedProcess:
        return await process.run(
            self.cluster.as_user(list(argv)), env=self.environment, cwd=str(self.project), timeout=30
        )

    async def jobs(self) -> list[str]:
        """Every job of the user that accounting or the queue knows, by id."""
        stored = await self.command("sacct", "-X", "-n", "-P", "-S", "now-1days", "-o", "JobIDRaw")
        queued = await self.command("squeue", "--me", "-h", "-o", "%A")
        return sorted({*stored.split(), *queued.split()}, key=int)

    async def fate(self, job_id: str) -> tuple[str, str]:
        """State and exit code by sacct, as soon as it knows of the end."""
        _, state, code = (await self.ends([job_id]))[0]
        return state, code

    async def ends(self, job_ids: Sequence[str], runs: int = 1) -> list[list[str]]:
        """Id, state and exit code of the jobs' runs by sacct, as soon as it tells of so many and how each ended.

        It lags behind the controller by seconds. DevclusterError when it still does not tell after a while.
        """
        words = ("-j", ",".join(job_ids), "-o", "JobIDRaw,State,ExitCode")
        for _ in range(_LOOKS):
            text = await self.command("sacct", "-X", "-n", "-P", *words)
            rows = [line.split("|") for line in text.splitlines()]
            if len(rows) >= runs and all(state.startswith(_ENDED) for _, state, _ in rows):
                return rows
            await anyio.sleep(0.1)
        told = f"of {runs} runs of job {', '.join(job_ids)}"
        raise DevclusterError(f"sacct does not tell the end {told}: {text or 'nothing'}")


def write_files(project: Path) -> None:
    """The demo's scripts, programs and campaign, each at its place."""
    for source in (resources.files("slurm_agent_tools") / "assets" / "demo").iterdir():
        if source.is_file():  # an installer may have put a __pycache__ there
            (project / source.name).write_bytes(source.read_bytes())
    (project / FILE).parent.mkdir()
    (project / "campaign.yaml").rename(project / FILE)


async def make(cluster: Cluster) -> DemoProject:
    """A new project folder in the user's home, set up by `init`, with the demo's scripts in it."""
    project = cluster.project.parent / f"demo-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    project.mkdir()
    write_files(project)
    if os.geteuid() == 0:
        for path in (project, *project.rglob("*")):
            shutil.chown(path, cluster.user, cluster.user)
    stage = DemoProject(cluster, project)
    await stage.tool("init", str(project))
    return stage
