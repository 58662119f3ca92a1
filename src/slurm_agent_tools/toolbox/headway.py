"""How far a running job came, from the beginning and the end of what it wrote so far."""

from __future__ import annotations

from datetime import datetime

from slurm_agent_tools.diagnosis.excerpt import LogText, Piece, assemble
from slurm_agent_tools.diagnosis.progress import progress
from slurm_agent_tools.diagnosis.wide import narrow
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.model import Job
from slurm_agent_tools.toolbox import paths
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.toolbox.logs.files import declared
from slurm_agent_tools.toolbox.logs.paths import Kind, paths_of

_HEAD, _TAIL = 2**16, 2**18


async def share(desk: Desk, job: Job, now: datetime) -> float | None:
    """The share of its work that is done, 0..1; None where its output does not tell. Raises StorageError."""
    texts = []
    for path, kind in await paths_of(desk, job):
        text = await _ends(desk, path, kind)
        texts += [] if text is None else [text]
    found = progress(texts)
    if found is None or found.done is not None or found.left is None or job.started is None:
        return None if found is None else found.done
    passed = (now - job.started).total_seconds()
    return passed / (passed + found.left) if passed > 0 else None


async def _ends(desk: Desk, path: str, kind: Kind) -> LogText | None:
    """Both ends of one file of the project or of a folder for logs; None for what may or can not be read."""
    try:
        shelf = await declared(desk, path) or desk.there
        real = await paths.resolve(shelf, "path", path)
        stat = await shelf.files.stat(real)
        if stat is None or stat.kind != "file":
            return None
        spans = [(0, _HEAD), (stat.size - _TAIL, _TAIL)] if stat.size > _HEAD + _TAIL else [(0, stat.size)]
        read = [(start, await shelf.files.read(real, offset=start, size=size)) for start, size in spans]
    except (InputError, StorageError):
        return None
    pieces = [Piece(start, start + len(data), data) for start, data in read if data]
    return assemble(path, kind, narrow(pieces), stat.size) if pieces else None
