"""A configuration against the project's own schema, which anybody may have written: bounded in time and memory."""

from __future__ import annotations

import json
import os
import sys

from slurm_agent_tools import configs, process
from slurm_agent_tools.configs import apart
from slurm_agent_tools.replies import Complaint

_LARGEST = 2**20
_NEEDED = ("HOME", "PYTHONHOME", "PYTHONPATH", "SYSTEMROOT")  # by which Python finds its modules, and begins on Windows
_SIMPLER = "Simplify its patterns and its nested forms."


async def against(data: bytes, suffix: str, schema: bytes) -> list[Complaint]:
    """What the schema says against the configuration. Raises configs.Unusable."""
    argv = [sys.executable, "-P", "-m", apart.__name__, suffix, str(len(data))]
    env = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    seconds = apart.SECONDS  # nothing in the working folder, which may be the project, is a module: -P
    done = await process.run(argv, stdin=data + schema, env=env, cwd=os.sep, timeout=seconds, max_output=_LARGEST)
    if done.exit_code is None:
        raise configs.Unusable(f"takes longer than {apart.SECONDS} s to check against", _SIMPLER)
    if done.exit_code != 0 or done.truncated:
        raise configs.Unusable("cannot be checked against: the check of it broke off", _SIMPLER)
    told = json.loads(done.stdout)
    if "problem" in told:
        raise configs.Unusable(told["problem"], told["hint"])
    return [Complaint(**complaint) for complaint in told["complaints"]]
