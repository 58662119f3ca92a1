"""What a job waits for before Slurm plans its start: the jobs that its dependency names."""

from __future__ import annotations

import re

from slurm_agent_tools.errors import SlurmError, UnknownJob
from slurm_agent_tools.policy import slots
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.units import JobId

_ONE = re.compile(r"(afterok|afterany|afternotok|after|aftercorr):(\d+)")
_ENDS = {
    "afterok": "ends well",
    "afterany": "ends",
    "afternotok": "fails",
    "after": "has begun",
    "aftercorr": "ends well, task by task",
}


async def others(desk: Desk, dependency: str | None) -> str | None:
    """A sentence on what it waits for; None where nothing keeps it. `sbatch --test-only` tells nothing of this."""
    if not dependency or not await _going(desk, dependency):
        return None
    one = _ONE.fullmatch(dependency)
    if one is None:
        return f"It starts once its dependency {dependency} holds."
    return f"It starts after job {one[2]} {_ENDS[one[1]]}."


async def _going(desk: Desk, dependency: str) -> bool:
    """Whether a job that it names is not over, or cannot be asked for. A singleton names none, but waits."""
    if "singleton" in dependency:
        return True
    for base in sorted(slots.named(dependency)):
        try:
            view = await desk.slurm.job(JobId(base))
        except UnknownJob:
            continue
        except SlurmError:
            return True
        begun = re.fullmatch(rf"after:{base}", dependency) is not None and view.job.started is not None
        if not view.over and not begun:
            return True
    return False
