"""Running Slurm's commands, counted by kind, the controller's answers timed; and those that change something."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from slurm_agent_tools.errors import UnknownJob
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.commands import sbatch, scontrol
from slurm_agent_tools.slurm.commands.sbatch import Submitted, TestOnly
from slurm_agent_tools.transport.base import Completed, Runner
from slurm_agent_tools.units import JobId

if TYPE_CHECKING:
    from slurm_agent_tools.slurm.commands.sdiag import ControllerStatistics

_TIMED = frozenset({"squeue", "sinfo", "scontrol", "sdiag"})

_RELEASED_AGAIN = 3
"""How often a release is asked for again while slurmdbd numbers the job: slurmctld waits 5 seconds each time."""


class CommandRunner:
    """Asks one cluster. `calls` counts the commands by kind, `answers` are the controller's last ones."""

    def __init__(self, runner: Runner, settings: SlurmSettings) -> None:
        self.settings = settings
        self.calls: Counter[str] = Counter()
        self.answers: deque[ControllerAnswer] = deque(maxlen=KEPT)
        self._runner = runner

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output: int = 64 * 2**20,
        patience: float = 1.0,
    ) -> Completed:
        """A command that changes nothing. `patience`: the share of the usual time limit that it may take."""
        self.calls[_kind(argv)] += 1
        limit = self.settings.read_timeout * patience
        done = await self._runner.run(argv, stdin=stdin, cwd=cwd, env=env, timeout=limit, max_output=max_output)
        if argv[0] in _TIMED:
            self.answers.append(ControllerAnswer(done.seconds, len(done.stdout), not done.timed_out))
        return done

    async def change(
        self, argv: Sequence[str], *, stdin: bytes = b"", cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Completed:
        """A command that changes something: it gets more time."""
        self.calls[_kind(argv)] += 1
        return await self._runner.run(argv, stdin=stdin, cwd=cwd, env=env, timeout=self.settings.submit_timeout)


def _kind(argv: Sequence[str]) -> str:
    if argv[:2] == ["sacct", "--helpformat"]:
        return " ".join(argv)
    return " ".join(argv[:3]) if argv[0] == "scontrol" and argv[1] == "show" else argv[0]


# --- What the client changes in Slurm: submitting, releasing, cancelling; and looking at what Slurm holds -------------


class JobActions:
    """The half of the client that submits and ends jobs. `changed` hears that the queue is no longer what it was."""

    def __init__(self, asker: CommandRunner, changed: Callable[[], None]) -> None:
        self._asker, self._changed = asker, changed

    async def test_only(
        self, options: Sequence[str], script: bytes, args: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> TestOnly:
        """Slurm's opinion of a request, without a job. Raises SlurmUnreachable."""
        argv = sbatch.argv(options, args, trial=True)
        return sbatch.parse_trial(await self._asker.run(argv, stdin=script, cwd=cwd, env=env))

    async def submit(
        self, options: Sequence[str], script: bytes, args: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> Submitted:
        """Send a job. SlurmUnreachable: surely not sent; SlurmUncertain: maybe; SlurmRefused: Slurm said no."""
        argv = sbatch.argv(options, args)
        return sbatch.parse(await self._asker.change(argv, stdin=script, cwd=cwd, env=env))

    async def held(self, job_id: JobId) -> Job:
        """What Slurm made of a job that it holds, an array as a whole.

        Raises SlurmUnreachable, and UnknownJob when Slurm has forgotten it.
        """
        done = await self._asker.run(scontrol.job_argv(job_id))
        if scontrol.unknown(done):
            raise UnknownJob("job_id", str(job_id), "Slurm knows no such job any more")
        return scontrol.parse_jobs(done)[0]

    async def batch_script(self, job_id: JobId) -> bytes:
        """The bytes of the script that Slurm holds. Raises SlurmError."""
        done = await self._asker.run(scontrol.script_argv(job_id))
        if done.exit_code != 0:
            scontrol.check_change(done)
        return done.stdout

    async def release(self, job_id: JobId) -> None:
        """Let a held job run. Raises SlurmUncertain and SlurmRefused."""
        try:
            done = await self._asker.change(scontrol.release_argv(job_id))
            for _ in range(_RELEASED_AGAIN):
                if not scontrol.awaits_accounting(done):
                    break
                done = await self._asker.change(scontrol.release_argv(job_id))
            scontrol.check_change(done)
        finally:
            self._changed()

    async def cancel(self, job_id: JobId) -> None:
        """Ask for its end; whether it came has to be looked at. Raises SlurmUncertain and SlurmRefused."""
        try:
            scontrol.check_change(await self._asker.change(sbatch.cancel_argv(job_id)))
        finally:
            self._changed()


KEPT = 6
"""Answers that count."""

MOST = 6
"""The largest factor: looks that are due every 10 seconds come once a minute."""

_BASE, _RATE = 1.0, 2e6

_SMALL = 100_000

_ENOUGH = 2


@dataclass(frozen=True, slots=True)
class ControllerAnswer:
    """One answer of the controller: seconds, bytes, and whether it came at all."""

    seconds: float
    size: int
    came: bool = True

    @property
    def ratio(self) -> float:
        """Its time over the time that an answer of its size may take: a second, and one for every two megabytes."""
        return self.seconds / (_BASE + self.size / _RATE)

    @property
    def slow(self) -> bool:
        """True for an answer that took longer than it may, or never came."""
        return self.ratio > 1 or not self.came


@dataclass(frozen=True, slots=True)
class LoadVerdict:
    """What the answers show. `factor` multiplies pauses and ages; `seconds` is what a slow answer took."""

    kind: Literal["calm", "loaded", "limited"]
    factor: int
    seconds: float = 0.0


CALM = LoadVerdict("calm", 1)


def judge_load(answers: Sequence[ControllerAnswer], diagnosis: ControllerStatistics | None) -> LoadVerdict:
    """Calm, loaded, or limited: a controller that is not busy but lets small answers wait for seconds.

    That is what a caller sees of rl_enable (slurm.conf(5)): its commands wait, none fails (measured on 24.11).
    """
    slow = [answer for answer in answers[-KEPT:] if answer.slow]
    busy = diagnosis is not None and diagnosis.busy
    if len(slow) < _ENOUGH and not (slow and busy):
        return CALM
    ratio = median(answer.ratio for answer in slow)
    factor = min(MOST, max(2, math.ceil(ratio)))
    small = [answer for answer in slow if answer.came and answer.size < _SMALL]
    limited = not busy and len(small) >= _ENOUGH
    return LoadVerdict("limited" if limited else "loaded", factor, round(median(answer.seconds for answer in slow), 1))
