"""Where an agent works in a task: a project of a user of the devcluster, its server, and what Slurm tells after."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evals.task import ACTIVE, Job, Outcome, Task
from evals.transcript import Answer, Caller, size
from mcp import Client, StdioServerParameters

from slurm_agent_tools.devcluster import definition, login_node
from slurm_agent_tools.devcluster.definition import Cluster

SERVER = (sys.executable, "-m", "slurm_agent_tools", "serve")
QUICK = {"SLURM_AGENT_SLURM__POLL_SCALE": "0.1", "SLURM_AGENT_SLURM__CACHE_SECONDS": "1"}
"""Jobs of seconds are looked at ten times as often as those of people."""

_COLUMNS = ("JobID", "JobName", "State", "Partition", "ExitCode", "NNodes", "ReqTRES", "ReqMem", "Timelimit", "Submit",
            "Start", "End", "WorkDir")  # fmt: skip
_BETWEEN = "\x1f"
_WAIT = 300.0


@dataclass(frozen=True, slots=True)
class Place:
    """One task's project of one user, under a home of its own: nothing is remembered from another task."""

    cluster: Cluster
    account: str
    home: Path
    server: Sequence[str] = SERVER
    elsewhere: bool = False

    @property
    def project(self) -> Path:
        """Where the agent and its server work."""
        return self.home / ("laptop" if self.elsewhere else "project")

    def build(self, task: Task) -> None:
        """Write the project's files and give everything to the user. The home must not be there yet."""
        self.home.mkdir(parents=True)
        (self.home / "project/logs").mkdir(parents=True)
        self.project.mkdir(exist_ok=True)
        for name, text in task.files.items():
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text, encoding="utf-8")
        if self.elsewhere:
            self._settings()
        for folder, _, names in os.walk(self.home):
            for path in (Path(folder), *(Path(folder) / name for name in names)):
                self.give(path)
        if self.elsewhere:
            for words in (["init", "-q"], ["add", "."]):
                self.user("git", *words)

    def give(self, path: Path) -> None:
        """Make the user own what this process wrote as root."""
        if definition.is_root():
            entry = pwd.getpwnam(self.account)
            os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)

    def _settings(self) -> None:
        node = login_node.login_node(self.cluster)
        file = self.home / ".config/slurm-agent-tools/settings.toml"
        file.parent.mkdir(parents=True)
        file.write_text(
            f'[projects."{self.project}".clusters.lab]\nhost = "{node.host}"\nremote_root = "{self.home}/project"\n'
            f'ssh_config = "{node.config}"\n',
            encoding="utf-8",
        )

    def environment(self) -> dict[str, str]:
        """The variables of the user's session."""
        plain = {"PATH": os.environ["PATH"], "HOME": str(self.home), "USER": self.account, "LOGNAME": self.account}
        return plain | {"XDG_STATE_HOME": f"{self.home}/.state"} | QUICK | self.cluster.environment()

    def session(self) -> dict[str, str]:
        """The variables of the agent's session: on another machine nothing tells of Slurm."""
        if not self.elsewhere:
            return self.environment()
        known = self.environment() | {"PATH": str(self._programs())}
        return {name: value for name, value in known.items() if not name.startswith("SLURM_CONF")}

    def _programs(self) -> Path:
        """A folder with the few programs that the other machine has."""
        folder = self.home / "programs"
        folder.mkdir(exist_ok=True)
        for name in ("ssh", "git", "rsync"):
            (folder / name).write_text(f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')
            (folder / name).chmod(0o755)
        return folder

    def user(self, *argv: str, stdin: str = "") -> str:
        """A command of the user in the project."""
        return self._run(definition.run_as(self.account, argv), stdin)

    def operator(self, *argv: str) -> str:
        """A command of the user that Slurm runs as, who may change every job."""
        return self._run(argv, "")

    def _run(self, argv: Sequence[str], stdin: str) -> str:
        done = subprocess.run(
            argv, input=stdin.encode(), capture_output=True, cwd=self.project, env=self.environment(), timeout=90,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{argv}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "replace").strip()

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so; RuntimeError when it never is."""
        end = time.monotonic() + _WAIT
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"it never was so: {what}")
            time.sleep(0.2)

    def clear(self) -> None:
        """End every job of the user."""
        self.user("scancel", f"--user={self.account}")
        ids = ("squeue", "-h", "-t", "pending,running,completing", f"--user={self.account}", "-o", "%i")
        self.until(lambda: not self.user(*ids), "no job in the queue")

    def outcome(self, values: dict[str, str]) -> Outcome:
        """What Slurm tells of the jobs that ran from here, once queue and accounting agree on them."""
        told: list[Job] = []

        def agreed() -> bool:
            queue, accounted = self._queue(), self._accounting()
            known = {job.array for job in accounted}
            # The accounting does not show what cannot begin yet.
            waiting = [job for job in queue if job.dependency and job.array not in known]
            told[:] = [*accounted, *waiting]
            going = {job.id for job in queue if job.state in ACTIVE}
            begun = {job.id for job in queue if job.state != "PENDING"}  # of an array each task
            return (
                begun <= {job.id for job in told}
                and {job.array for job in queue} <= {job.array for job in told}
                and all((job.state in ACTIVE) == (job.id in going) for job in told)
            )

        self.until(agreed, "queue and accounting tell the same")
        return Outcome(self.project, tuple(replace(job, script=self._script(job)) for job in told), values)

    def _queue(self) -> list[Job]:
        """The jobs from here that the controller knows, ended ones too."""
        shown = _BETWEEN.join(("%i", "%j", "%T", "%P", "%m", "%l", "%E", "%Z"))
        rows = self.user("squeue", "-h", "-t", "all", f"--user={self.account}", "-o", shown).splitlines()
        jobs = []
        for *about, dependency, folder in (row.split(_BETWEEN) for row in rows):
            job_id, name, state, partition, memory, time_limit = about
            if Path(folder).is_relative_to(self.home):
                job = Job(job_id, name, state, partition, memory=memory, time_limit=time_limit)
                jobs.append(replace(job, dependency="" if dependency == "(null)" else dependency))
        return jobs

    def _accounting(self) -> list[Job]:
        words = (
            "-nXP",
            f"--delimiter={_BETWEEN}",
            "-S",
            "now-1days",
            f"--user={self.account}",
            "-o",
            ",".join(_COLUMNS),
        )
        table = self._timed("sacct", *words)
        rows = [dict(zip(_COLUMNS, row.split(_BETWEEN), strict=True)) for row in table.splitlines()]
        return [_job(row) for row in rows if Path(row["WorkDir"]).is_relative_to(self.home)]

    def _timed(self, *argv: str) -> str:
        return self.user("env", "SLURM_TIME_FORMAT=%s", *argv)

    def _script(self, job: Job) -> str:
        try:
            return self.user("scontrol", "write", "batch_script", job.array, "-")
        except RuntimeError:  # the controller forgets a job some minutes after its end
            return ""

    @asynccontextmanager
    async def client(self) -> AsyncIterator[tuple[Caller, int]]:
        """An MCP client of the server in the project, and the bytes of the tools that it lists."""
        argv = definition.run_as(self.account, self.server)
        program = shutil.which(argv[0]) or argv[0]
        parameters = StdioServerParameters(
            command=program, args=argv[1:], env=self.session(), cwd=str(self.project)
        )  # fmt: skip
        async with Client(parameters) as client:
            listed = (await client.list_tools()).model_dump(mode="json", by_alias=True, exclude_none=True)

            async def tool(name: str, arguments: dict[str, Any]) -> Answer:
                result = await client.call_tool(name, arguments)
                text = "".join(getattr(part, "text", "") for part in result.content)
                return Answer(result.structured_content, max(size(result.structured_content), len(text.encode())))

            async def resource(uri: str) -> Answer:
                contents = (await client.read_resource(uri)).contents
                texts = [getattr(part, "text", "") for part in contents]
                return Answer([_parsed(text) for text in texts], sum(len(text.encode()) for text in texts))

            yield Caller(tool, resource), size(listed["tools"])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _job(row: dict[str, str]) -> Job:
    tres = dict(part.split("=", 1) for part in row["ReqTRES"].split(",") if "=" in part)
    return Job(
        id=row["JobID"], name=row["JobName"], state=row["State"].split()[0], partition=row["Partition"],
        exit_code=int(row["ExitCode"].split(":")[0]), nodes=int(row["NNodes"] or 0), gpus=int(tres.get("gres/gpu", 0)),
        memory=tres.get("mem", row["ReqMem"]), time_limit=row["Timelimit"], submitted=_seconds(row["Submit"]) or 0,
        started=_seconds(row["Start"]), ended=_seconds(row["End"]),
    )  # fmt: skip


def _seconds(text: str) -> int | None:
    return int(text) if text.isdigit() else None
