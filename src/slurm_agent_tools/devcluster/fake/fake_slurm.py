"""The fake Slurm as tests meet it: a Runner, a Transport, and words for what happens on the cluster."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.lowlevel

from slurm_agent_tools.devcluster.fake.answering import Answer, Fault, Faults, Session, silent
from slurm_agent_tools.devcluster.fake.commands.command_table import find_command
from slurm_agent_tools.devcluster.fake.controller import Controller
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.devcluster.fake.fake_files import LocalDisk, MemoryFiles
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition, devcluster, partition_of_all
from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.transport.base import Completed, Files, LoginEnvironment, OnOutput
from slurm_agent_tools.transport.local import LocalFiles

_UIDS = {"root": 0}

_FIRST_UID = 1001

_ROUND_TRIP = 0.01  # seconds of the clock that a command takes


class FakeSlurm:
    """A Slurm in memory: it answers the command lines of the tools with the text that Slurm prints.

    `version`: 22.05, 24.11 or 26.05. Without `nodes` it has those of the devcluster. Time is `clock`'s. `project`:
    a folder of this machine or of `files`; logs are written there.
    """

    def __init__(
        self,
        *,
        version: str = "22.05",
        nodes: Sequence[FakeNode] | None = None,
        partitions: Sequence[FakePartition] | None = None,
        clock: FakeClock | None = None,
        user: str = "alice",
        accounting: bool = True,
        files: MemoryFiles | None = None,
        first_job_id: int = 1,
    ) -> None:
        self.clock = clock or FakeClock()
        self.user, self.faults = user, Faults()
        self.asked: list[tuple[str, ...]] = []
        self.extra: dict[str, str] = {}
        self.memory = files
        usual = devcluster()
        if nodes is not None:
            usual = (list(nodes), [partition_of_all(nodes)])
        major, _, minor = version.partition(".")
        self.controller = Controller(
            self.clock, usual[0], usual[1] if partitions is None else partitions, (int(major), int(minor)),
            disk=files or LocalDisk(), first_job_id=first_job_id,
        )  # fmt: skip
        self.controller.accounting.enabled = accounting
        self._project = "/"
        self._uids = dict(_UIDS)
        self._next: deque[tuple[Ending | None, dict[int, Ending]]] = deque()
        self._spent: deque[float] = deque()
        self._uid(user)

    # --- what jobs do ------------------------------------------------------------------------------------------------

    def next_job(
        self, ending: Ending | None = None, *, tasks: Mapping[int, Ending] | None = None, **facts: Any
    ) -> None:
        """How the next submitted job ends: `next_job(exit_code=3, after=5)`. `tasks`: endings of an array's tasks.

        Called again, it tells of the job after that. What the words mean: Ending.
        """
        made = Ending(**facts) if facts else ending
        self._next.append((made, dict(tasks or {})))

    def on_start(self, ends: Callable[[FakeJob], Ending | None]) -> None:
        """Ask `ends` at the start of each job of which nothing was told; None: its script is read."""
        self.controller.ends = ends

    def submit(
        self, script: str = "#!/bin/bash\nsleep 60\n", *options: str, user: str | None = None, cwd: str | None = None
    ) -> int:
        """Put a job into the queue as somebody, past the tools. AssertionError where sbatch refuses it.

        Without `cwd` it begins in the project of the last `place`, so that its log lies there; else at the root.
        """
        where = cwd or self._project
        if self.memory is not None:
            self.memory.add_folder(where)
        answer = self._command(["sbatch", "--parsable", *options], script.encode(), where, user or self.user)
        if answer.code:
            raise AssertionError(answer.err)
        return int(answer.out)

    def command(self, *argv: str, stdin: bytes = b"", user: str | None = None, admin: bool = False) -> Answer:
        """Run a command as somebody, past the tools and past all faults. `admin`: with an operator's rights."""
        return self._command(argv, stdin, "/", user or self.user, admin=admin)

    def job(self, number: int) -> FakeJob:
        """The record of a job, also of one that the controller has forgotten. KeyError where there was none."""
        known = self.controller.jobs.get(number)
        return known if known is not None else self.controller.accounting.told[number][-1].job

    # --- what goes wrong ---------------------------------------------------------------------------------------------

    def lose_next_reply(self, command: str, times: int | None = 1) -> None:
        """It is carried out, and the answer never arrives: Slurm's own time limit."""
        self.faults.add(Fault(command, times, carried_out=True, answer=silent(command.partition(" ")[0])))

    def lose_next_request(self, command: str, times: int | None = 1) -> None:
        """As `lose_next_reply`, but it was never carried out."""
        self.faults.add(Fault(command, times, answer=silent(command.partition(" ")[0])))

    def hang(self, command: str, times: int | None = 1, *, carried_out: bool = False) -> None:
        """It gives no answer until the caller's time limit ends it; the clock moves on by that."""
        self.faults.add(Fault(command, times, carried_out=carried_out))

    def fail(self, command: str, stderr: str, code: int = 1, *, stdout: str = "", carried_out: bool = False) -> None:
        """It ends with these words the next time."""
        self.faults.add(Fault(command, carried_out=carried_out, answer=Answer(stdout, stderr, code)))

    def lose_connection(self, command: str, times: int | None = 1) -> None:
        """The way to the login node breaks before the command is sent: SlurmUnreachable, as over SSH."""
        self.faults.add(Fault(command, times, error=SlurmUnreachable("the connection is gone")))

    def garble(self, command: str, stdout: str = "Lmod is loading defaults\n", times: int | None = 1) -> None:
        """It prints something else, and ends with 0."""
        self.faults.add(Fault(command, times, answer=Answer(stdout)))

    def before_next(self, command: str, action: Callable[[], None]) -> None:
        """Let something happen on the cluster in the moment in which a command comes."""
        self.faults.add(Fault(command, before=action, carried_out=True))

    def controller_down(self, down: bool = True) -> None:
        """slurmctld is away, or back."""
        self.faults.controller_down = down

    def accounting_down(self, down: bool = True) -> None:
        """slurmdbd is away, or back; what happens meanwhile reaches it when it is back."""
        self.faults.accounting_down = down

    def slow(self, command: str, seconds: float) -> None:
        """Every answer of a command takes so long."""
        self.faults.seconds[command] = seconds

    def limit_rate(self, per_second: int | None) -> None:
        """Slurm's own limit of a user's questions (rl_enable): a command above it waits a second and comes through."""
        self.faults.per_second = per_second

    def accounting_delay(self, seconds: float) -> None:
        """The accounting is told of everything so much later."""
        self.controller.accounting.delay = seconds

    def forget(self, number: int) -> None:
        """The controller drops a job, as it does MinJobAge after its end."""
        for job in self.controller.parts(number):
            del self.controller.jobs[job.number]

    def fail_node(self, name: str, why: str = "Not responding") -> None:
        """A node is down, and its jobs with it."""
        self.controller.fail_node(name, why)

    def preempt(self, number: int) -> None:
        """A job has to make room."""
        self.controller.preempt(self.controller.jobs[number])

    # --- the seam ----------------------------------------------------------------------------------------------------

    @property
    def counts(self) -> Counter[str]:
        """How many commands of each name came through the seam."""
        return Counter(argv[0] for argv in self.asked)

    def place(self, project: str | Path = "/home/alice/project", **environ: str) -> FakeTransport:
        """Where the tools find it. `environ`: what a login there has."""
        self._project = str(project)
        if self.memory is not None:
            self.memory.add_folder(self._project)
        return FakeTransport(self, str(project), environ)

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,  # noqa: ARG002 - nothing in it changes an answer
        cwd: str | None = None,
        timeout: float = 10.0,  # noqa: ASYNC109 - the limit of the command, in the clock's seconds
        max_output: int = 64 * 2**20,
        on_output: OnOutput | None = None,
    ) -> Completed:
        """See Runner. Raises UnknownCommand for a command line that it does not know."""
        self.asked.append(tuple(argv))
        await anyio.lowlevel.checkpoint()
        spent = await self._wait(argv, timeout)
        if spent is None:
            return Completed(tuple(argv), None, b"", b"", timeout)
        fault = self.faults.take(argv)
        if fault is not None and fault.before is not None:
            fault.before()
        if fault is not None and fault.error is not None:
            raise fault.error
        answer = self.faults.standing(argv)
        if answer is None:
            if fault is None or fault.carried_out:
                answer = self._command(argv, stdin, cwd or "/", self.user)
            if fault is not None and fault.before is None:
                answer = fault.answer
        if answer is None:
            self.clock.move(timeout)
            return Completed(tuple(argv), None, b"", b"", timeout)
        out = answer.out.encode("utf-8", "surrogateescape")
        err = answer.err.encode("utf-8", "surrogateescape")
        if on_output is not None:
            on_output(out[:max_output])
        return Completed(tuple(argv), answer.code, out[:max_output], err, spent, truncated=len(out) > max_output)

    async def _wait(self, argv: Sequence[str], timeout: float) -> float | None:  # noqa: ASYNC109
        """Seconds that it takes; None where that is longer than it may."""
        takes = self.faults.seconds.get(argv[0], 0.0)
        if self.faults.per_second is not None and argv[0] not in {"sacct", "date", "df"}:
            while self._spent and self._spent[0] <= self.clock.seconds - 1:
                self._spent.popleft()
            takes += 1.0 if len(self._spent) >= self.faults.per_second else 0.0
            self._spent.append(self.clock.seconds + takes)
        takes += _ROUND_TRIP  # so that what is asked later is told later
        self.clock.move(min(takes, timeout))
        return takes if takes < timeout else None

    def _command(self, argv: Sequence[str], stdin: bytes, cwd: str, user: str, *, admin: bool = False) -> Answer:
        scripts = {}
        for word in argv[1:] if argv[0] == "sbatch" else ():
            if self.memory is None and not word.startswith("-") and Path(cwd, word).is_file():
                scripts[word] = Path(cwd, word).read_bytes()
        session = Session(self.controller, user, self._uid(user), cwd, stdin, scripts, self.extra, admin=admin)
        before = self.controller.next_number
        answer = find_command(argv)(session, argv)
        if argv[0] == "sbatch" and before in self.controller.jobs and not answer.code:
            self._tell_ending(self.controller.jobs[before])
        return answer

    def _tell_ending(self, job: FakeJob) -> None:
        if self._next:
            ending, tasks = self._next.popleft()
            job.ending, job.endings = ending, {task: replace(one) for task, one in tasks.items()}

    def _uid(self, user: str) -> int:
        return self._uids.setdefault(user, _FIRST_UID + len(self._uids) - 1)


class FakeTransport:
    """The seam's Transport over a fake Slurm."""

    def __init__(self, slurm: FakeSlurm, root: str, environ: Mapping[str, str]) -> None:
        self.slurm, self._root, self._environ = slurm, root, dict(environ)
        self._files: Files = slurm.memory or LocalFiles()

    @property
    def key(self) -> str:
        """See Transport."""
        return "fake"

    @property
    def runner(self) -> FakeSlurm:
        """See Transport."""
        return self.slurm

    @property
    def files(self) -> Files:
        """See Transport: those of this machine, or in memory."""
        return self._files

    async def login_environment(self) -> LoginEnvironment:
        """See Transport."""
        return LoginEnvironment(self.slurm.user, self._root, self._environ)

    async def close(self) -> None:
        """See Transport."""
