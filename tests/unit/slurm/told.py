"""A client over answers that a test may change on the way."""

from __future__ import annotations

from tests.unit.slurm.answers import Prepared, done

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.units import parse_job_id

UNKNOWN = done(b"", b"slurm_load_jobs error: Invalid job id specified", 1)
SILENT = done(b"", b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1)
NO_DATABASE = done(b"", b"sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection", 1)
DISABLED = done(b"", b"Slurm accounting storage is disabled", 1)
NOTHING = done(b"")


class Told:
    """Answers that a test may change on the way."""

    def __init__(self, **answers) -> None:
        self.answers = {"squeue": NOTHING, "sacct": NOTHING, "scontrol": UNKNOWN} | answers
        self.runner = Prepared({name: lambda argv: self.answers[argv[0]] for name in self.answers})
        self.clock = FakeClock()
        self.slurm = SlurmClient(self.runner, self.clock, SlurmSettings(cache_seconds=10), user="alice")

    async def job(self, text="5", **more):
        return (await self.slurm.job(parse_job_id(text), **more)).job
