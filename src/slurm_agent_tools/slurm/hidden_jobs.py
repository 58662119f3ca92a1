"""Slurm as a service asks it on behalf of a user, from whom the site may hide the jobs of others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.slurm.client import JobViews, SlurmClient
from slurm_agent_tools.units import JobId


class SlurmForUser(SlurmClient):
    """Asks with the rights of a service, perhaps an operator's: of others' jobs it tells what Slurm tells its user.

    Else a dependency would tell how any job stands that `PrivateData` hides.
    """

    async def jobs(
        self, ids: Sequence[JobId], *, fresh: bool = False, max_age: float | None = None, patient: bool = True
    ) -> JobViews:
        """As its base does; a job of another user that is hidden is one that Slurm does not know."""
        views = await super().jobs(ids, fresh=fresh, max_age=max_age, patient=patient)
        others = [job_id for job_id, view in views.items() if view.job.user != self.user]
        if others and await self._hides_jobs():
            for job_id in others:
                del views[job_id]
        return views

    async def _hides_jobs(self) -> bool:
        """Whether slurm.conf hides the users' jobs from each other; where it cannot be read, it does."""
        try:
            return hides_jobs((await self.configuration())["PrivateData"])
        except (SlurmError, KeyError):
            return True


def hides_jobs(private: str) -> bool:
    """Whether this `PrivateData` of a slurm.conf keeps users from seeing the jobs of others."""
    return not {"jobs", "all"}.isdisjoint(re.split(r"[,\s]+", private.lower()))
