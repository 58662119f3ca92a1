"""What the client changes in Slurm: submitting, releasing, cancelling; and looking at what Slurm holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from slurm_agent_tools.errors import UnknownJob
from slurm_agent_tools.slurm import sbatch, scontrol, squeue
from slurm_agent_tools.slurm.asking import Asker
from slurm_agent_tools.slurm.sbatch import Submitted, TestOnly
from slurm_agent_tools.slurm.scontrol import Granted
from slurm_agent_tools.units import JobId


class Changes:
    """The half of the client that submits and ends jobs."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def test_only(
        self, options: Sequence[str], script: bytes, args: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> TestOnly:
        """Slurm's opinion of a request, without a job. Raises SlurmUnreachable."""
        argv = sbatch.trial_argv(options, args)
        return sbatch.parse_trial(await self._asker.run(argv, stdin=script, cwd=cwd, env=env))

    async def submit(
        self, options: Sequence[str], script: bytes, args: Sequence[str], *, cwd: str, env: Mapping[str, str]
    ) -> Submitted:
        """Send a job. SlurmUnreachable: surely not sent; SlurmUncertain: maybe; SlurmRefused: Slurm said no."""
        argv = sbatch.argv(options, args)
        return sbatch.parse(await self._asker.change(argv, stdin=script, cwd=cwd, env=env))

    async def held(self, job_id: JobId) -> Granted:
        """What Slurm made of a job. Raises SlurmUnreachable, and UnknownJob when it has forgotten it."""
        done = await self._asker.run(scontrol.job_argv(job_id))
        if scontrol.unknown(done):
            raise UnknownJob("job_id", str(job_id), "Slurm knows no such job any more")
        return scontrol.granted(scontrol.parse_jobs(done))

    async def batch_script(self, job_id: JobId) -> bytes:
        """The bytes of the script that Slurm holds. Raises SlurmError."""
        done = await self._asker.run(scontrol.script_argv(job_id))
        if done.exit_code != 0:
            scontrol.check_change(done)
        return done.stdout

    async def expected_start(self, job_id: JobId) -> datetime | None:
        """When Slurm expects a pending job to start; None where it has not thought about it yet. Raises SlurmError."""
        return squeue.parse_start(await self._asker.run(squeue.start_argv(job_id)))

    async def release(self, job_id: JobId) -> None:
        """Let a held job run. Raises SlurmUncertain and SlurmRefused."""
        scontrol.check_change(await self._asker.change(scontrol.release_argv(job_id)))

    async def cancel(self, job_id: JobId) -> None:
        """Ask for its end; whether it came has to be looked at. Raises SlurmUncertain and SlurmRefused."""
        scontrol.check_change(await self._asker.change(sbatch.cancel_argv(job_id)))
