"""How much room there is where a project's jobs write."""

from __future__ import annotations

import re

from slurm_agent_tools.errors import SlurmError, StorageError
from slurm_agent_tools.replies import DiskSection
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.units import human_memory

_NUMBERS = re.compile(r"\s(?P<total>\d+)\s+(?P<used>\d+)\s+(?P<free>\d+)\s+(?:\d+%|-)\s")  # POSIX `df -P -k`
_BLOCK = 1024


async def room(desk: Desk) -> DiskSection:
    """Bytes in all and free where the jobs run. Raises StorageError."""
    root = desk.there.root
    try:
        done = await desk.place.runner.run(["df", "-P", "-k", "--", root])
    except SlurmError as error:
        raise StorageError(f"the free space of {root} cannot be read: {error.message}", hint=error.hint) from error
    rows = done.stdout.decode("utf-8", "replace").splitlines()
    found = _NUMBERS.search(rows[-1]) if len(rows) > 1 else None
    if done.exit_code != 0 or found is None:
        raise StorageError(f"the free space of {root} cannot be read from df", hint="Run `df -P -k` there.")
    free = int(found["free"]) * _BLOCK
    return DiskSection(path=root, total_bytes=int(found["total"]) * _BLOCK, free_bytes=free, free=human_memory(free))
