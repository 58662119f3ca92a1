"""An exported job_submit.lua in a Lua of this machine, before Slurm's controller gets it.

A file that does not load keeps slurmctld from starting, so whoever puts one in place asks here first.
"""

from __future__ import annotations

import os
import shutil
from importlib import resources
from pathlib import Path

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.transport import process

PROGRAMS = ("lua5.1", "lua5.3", "lua5.4", "lua5.2", "luajit", "lua")
"""In the order in which they are looked for: Debian's Slurm holds Lua 5.1."""

_SECONDS = 30.0


async def check(path: Path, *, lua: str | None = None) -> str | None:
    """Load the file and ask it about a few jobs; returns by what it was loaded, None where no Lua is at hand.

    Key files that it names are read with the rights of this process. Raises AgentToolsError with what is wrong.
    """
    program = lua or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        return None
    with resources.as_file(resources.files("slurm_agent_tools") / "assets" / "lua_check.lua") as checker:
        done = await process.run(
            [program, str(checker), str(path)], env={"PATH": os.defpath}, timeout=_SECONDS, max_output=2**16
        )
    if done.exit_code != 0:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0] or "it did not end in time"
        hint = "Put it in no controller's place: slurmctld does not start with it."
        raise AgentToolsError(f"{path} does not work in {program}: {said}", hint=hint)
    return done.stdout.decode(errors="replace").strip()
