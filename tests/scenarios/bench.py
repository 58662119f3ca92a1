"""What a scenario works with: the product's client and tools, and Slurm's own commands, over either Slurm.

Observations hold no absolute ids, times or paths: `Bench.plain` takes them out.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.unit.services.contexts import TestedToolbox

from slurm_agent_tools.errors import SlurmError, UnknownJob
from slurm_agent_tools.models.arguments import GetStatus, ToolArguments
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.settings import Settings, SlurmSettings
from slurm_agent_tools.slurm import merge
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.transport.base import Clock, Completed, Files, LoginEnvironment, Runner, Transport
from slurm_agent_tools.transport.local import LocalFiles
from slurm_agent_tools.units import JobId

OVER = frozenset({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "DEADLINE"})
Seen = dict[str, Any]


class Losing:
    """A runner that loses the answer to the next command that begins so, after it was carried out."""

    def __init__(self, inner: Runner) -> None:
        self.inner, self.lost = inner, list[tuple[str, ...]]()

    async def run(self, argv: Sequence[str], **more: Any) -> Completed:
        done = await self.inner.run(argv, **more)
        for start in self.lost:
            if tuple(argv[: len(start)]) == start:
                self.lost.remove(start)
                words = b"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n"
                return Completed(tuple(argv), 1, b"", words, done.seconds)
        return done


class Through:
    """A place whose commands go through `Losing`."""

    def __init__(self, inner: Transport, runner: Losing) -> None:
        self.key, self.runner, self.files = inner.key, runner, LocalFiles()
        self.login_environment, self.close = inner.login_environment, inner.close


class Bench(ABC):
    """One scenario's way to one Slurm. `project` is a folder of its own that the jobs may write to."""

    version: tuple[int, int]

    def __init__(self, place: Transport, clock: Clock, user: str, project: Path) -> None:
        self.runner = Losing(place.runner)
        self.place, self.clock, self.user, self.project = Through(place, self.runner), clock, user, project
        self.files: Files = LocalFiles()
        self.client = SlurmClient(self.runner, clock, SlurmSettings(), user=user)
        self._names: dict[int, str] = {}
        self._box: TestedToolbox | None = None

    # --- what differs --------------------------------------------------------------------------------------------------

    @abstractmethod
    def ends(self, **facts: Any) -> None:
        """How the next job ends where that cannot be read in its script; nothing on a real Slurm."""

    @abstractmethod
    async def admin(self, *argv: str, fails: bool = False) -> None:
        """A command of an operator; `fails`: where it does, that is well, too."""

    @abstractmethod
    def node(self, name: str) -> str:
        """The cluster's name of cpu01, gpu02 or spec01."""

    # --- Slurm's own commands ------------------------------------------------------------------------------------------

    async def slurm(self, *argv: str, stdin: bytes = b"") -> Completed:
        """A command as the user, in the project."""
        return await self.runner.run(list(argv), stdin=stdin, cwd=str(self.project))

    async def changed(self, *argv: str) -> str:
        """Exit code and words of a command that changes something."""
        done = await self.slurm(*argv)
        return self.plain(f"{done.exit_code} {done.stdout.decode()}{done.stderr.decode()}".strip())

    async def sbatch(self, *options: str, script: str = "sleep 1", args: Sequence[str] = ()) -> Completed:
        """sbatch as the tools call it, the body of the script on standard input."""
        words = ["sbatch", "--parsable", *options, "/dev/stdin", *args]
        return await self.slurm(*words, stdin=f"#!/bin/bash\n{script}\n".encode())

    async def submit(self, *options: str, script: str = "sleep 1", args: Sequence[str] = ()) -> int:
        """A job that has to be taken; its number."""
        stated = () if any(word.startswith(("--time", "-t")) for word in options) else ("--time=5",)
        done = await self.sbatch(*stated, *options, script=script, args=args)
        assert done.exit_code == 0, (options, done.stderr)
        number = int(done.stdout.decode().split(";")[0])
        self.named(number)
        return number

    async def refused(self, *options: str, script: str = "sleep 1") -> str:
        """What sbatch says to a request that it refuses; an accepted one is an answer too."""
        done = await self.sbatch(*options, script=script)
        if done.exit_code == 0:
            number = int(done.stdout)
            await self.slurm("scancel", str(number))
            return "accepted"
        return self.plain(f"{done.exit_code} {done.stderr.decode().strip()}")

    # --- waiting -------------------------------------------------------------------------------------------------------

    async def until(self, look: Callable[[], Awaitable[bool]], what: str, seconds: float = 100) -> None:
        """Look again and again."""
        end = self.clock.now().timestamp() + seconds
        while not await look():
            if self.clock.now().timestamp() >= end:
                raise AssertionError(f"never: {what}\n{await self.state_of_all()}")
            await self.clock.sleep(0.4)

    async def state_of_all(self) -> str:
        """All nodes and jobs as Slurm shows them, for whoever asks why something never came."""
        nodes = await self.slurm("sinfo", "-N", "-h", "-o", "%N %P %T %C %E")
        jobs = await self.slurm("squeue", "-h", "-t", "all", "-o", "%i %P %T %r %N %Q %C %b %S")
        return f"{nodes.stdout.decode()}{jobs.stdout.decode()}"

    async def rows(self, number: int, form: str = "%i|%T|%r") -> list[list[str]]:
        """Rows of squeue of one job."""
        done = await self.slurm("squeue", "-h", "-t", "all", "-j", str(number), "-o", form)
        return [row.split("|") for row in done.stdout.decode().splitlines()]

    async def becomes(self, number: int, *states: str, reason: str | None = None) -> None:
        """Wait until every part of a job is in one of these states, with this reason."""

        async def there() -> bool:
            rows = await self.rows(number)
            return bool(rows) and all(row[1] in states and reason in {None, row[2]} for row in rows)

        await self.until(there, f"{number} {states} {reason}")

    async def over(self, *numbers: int) -> None:
        """Wait until these jobs have ended and the accounting tells so."""
        for number in numbers:
            await self.becomes(number, *OVER)

        async def accounted() -> bool:
            done = await self.slurm(
                "sacct", "-n", "-P", "-j", ",".join(map(str, numbers)), "-o", "JobID,State,End,ReqTRES,NodeList"
            )
            rows = [row.split("|") for row in done.stdout.decode().splitlines()]
            shown = {row[0] for number in numbers for row in await self.rows(number)}
            whole = all(
                row[1].split()[0] in OVER and row[2] != "Unknown" and row[3] for row in rows if "." not in row[0]
            )
            return whole and {row[0] for row in rows} >= shown

        await self.until(accounted, f"the accounting of {numbers}")

    # --- observations --------------------------------------------------------------------------------------------------

    def named(self, number: int) -> str:
        """A letter for a job, in the order of their mention."""
        return self._names.setdefault(number, f"<{chr(ord('A') + len(self._names))}>")

    def plain(self, text: str) -> str:
        """A text without ids, paths, node prefixes and times."""
        text = text.replace(str(self.project), "<project>")
        text = re.sub(r"\b[a-z]{2,4}(?=(?:cpu|gpu|spec)(?:\d\d|\[))", "", text)
        text = re.sub(r"\b(cpu|gpu)0\d\b", r"\1#", text)  # which of them it is depends on the other scenarios
        text = re.sub(r"\b1[67]\d{8}\b", "<time>", text)
        for number, name in sorted(self._names.items(), reverse=True):
            text = re.sub(rf"(?<![\d<.]){number}(?!\d|\.\d)", name, text)
        return text

    async def seen(self, number: int, *more: str) -> Seen:
        """The truth about a job as the client tells it."""
        try:
            view = await self.client.job(JobId(number), fresh=True)
        except UnknownJob:
            return {"unknown": True}
        return self.view(view, *more)

    def view(self, view: JobView, *more: str) -> Seen:
        """A view in plain words."""
        found = self.facts(view.job, *more)
        if view.tasks:
            found["tasks"] = [self.facts(task, *more) for task in view.tasks]
        return found

    def facts(self, job: Job, *more: str) -> Seen:
        """What is looked at of each record; `more`: other fields of it."""
        found: Seen = {
            "id": self.plain(str(job.job_id)), "state": job.state, "reason": self._plain_value(job.reason), "exit_code": job.exit_code,
            "signal": job.signal, "cause": merge.cause(job), "started": job.started is not None,
            "ended": job.ended is not None,
        }  # fmt: skip
        if found["cause"]:
            found["cause"] = re.sub(r"by \d+", "by <uid>", found["cause"])
        for name in more:
            value = getattr(job, name)
            found[name] = resources(value) if isinstance(value, Resources) else self._plain_value(value)
        return found

    def _plain_value(self, value: object) -> object:
        if isinstance(value, str):
            return self.plain(value)
        return dict(sorted(value.items())) if isinstance(value, Mapping) else value

    async def accounted(self, number: int, *, patient: bool = True) -> list[Seen]:
        """What the accounting alone tells, steps too. Why a job waits it tells of some earlier moment: left out."""
        jobs = await self.client.accounting.jobs([number], 0)
        for _ in range(20 if patient and not jobs else 0):  # a held job may be absent for some seconds
            await self.clock.sleep(0.5)
            jobs = jobs or await self.client.accounting.jobs([number], 0)
        return [
            {"id": self.plain(str(job.job_id)), "state": job.state, "exit": [job.exit_code, job.signal],
             "reason": job.reason if job.nodes else None, "nodes": self.plain(job.nodes or ""), "requested": self._plain_value(job.requested),
             "steps": [[step.step_id, step.state, step.exit_code, step.signal] for step in job.steps]}
            for job in jobs
        ]  # fmt: skip

    async def granted(self, number: int) -> Seen:
        """What the controller made of a request that it holds."""
        made = await self.client.held(JobId(number))
        return {
            "resources": resources(made.resources), "name": made.name, "held": made.held, "requeue": made.requeue,
            "qos": made.qos, "nice": made.nice, "comment": made.comment, "stdout": self.plain(made.stdout or ""),
            "stderr": self.plain(made.stderr or ""),
        }  # fmt: skip

    async def answer(self, work: Awaitable[object]) -> str:
        """The kind of error that a client's call ends with, or `done`."""
        try:
            await work
        except (SlurmError, UnknownJob) as error:
            return f"{type(error).__name__}: {self.plain(error.message)}"
        return "done"

    # --- the tools ---------------------------------------------------------------------------------------------------

    def write(self, name: str, text: str) -> None:
        """A file of the project."""
        (self.project / name).write_text(text)

    def read(self, name: str) -> str:
        """A log of the project."""
        return self.plain((self.project / name).read_text())

    @property
    def box(self) -> TestedToolbox:
        """The nine tools over this Slurm, under the default policy without its limit of jobs at once."""
        if self._box is None:
            self._box = self._made_box()
        return self._box

    def _made_box(self) -> TestedToolbox:
        settings = Settings(
            slurm=self.client.settings,
            project_root=self.project,
            state_dir=self.project.parent / f"{self.project.name}-state",
        )
        loaded = load(shipped())
        limits = loaded.policy.limits.model_copy(update={"max_concurrent_jobs": 1000})
        loaded = type(loaded)(**{
            **{name: getattr(loaded, name) for name in loaded.__dataclass_fields__},
            "policy": loaded.policy.model_copy(update={"limits": limits}),
        })  # fmt: skip
        return TestedToolbox(
            ClusterContext(
                settings=settings, policy=loaded, slurm=self.client, watcher=Watcher(self.client, self.clock),
                files=LocalFiles(), store=Store(settings.state_dir, clock=self.clock), clock=self.clock,
                owner=Owner(self.user, str(self.project), self.place.key), transport=self.place,
                environment=LoginEnvironment(self.user, str(self.project), {}),
            )
        )  # fmt: skip

    async def tool(self, name: str, ask: ToolArguments) -> Any:
        """One call of a tool; the status is looked at first, as the policy wants."""
        if name == "submit_job":
            await self.box.call("get_status", GetStatus())
        return await self.box.call(name, ask)

    async def close(self) -> None:
        """End all that is left of the scenario's jobs."""
        if self._names:
            await self.slurm("scancel", *map(str, self._names))
        if self._box is not None:
            self._box.context.store.close()


def resources(made: Resources) -> Seen:
    """The numbers that are stated."""
    names = Resources.__dataclass_fields__
    return {name: getattr(made, name) for name in names if getattr(made, name) is not None}
