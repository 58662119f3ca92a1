"""A process that submits one script through the toolbox, and tells at its end which of our modules it loaded.

With the word `look` behind the folder it looks at the cluster as get_status does, and what that keeps is there for the
next process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
from tests.unit.services.accepting import Accepting
from tests.unit.services.contexts import TestedToolbox, toolbox

from slurm_agent_tools.models.arguments import GetStatus, SubmitJob

SCRIPT = "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --partition=cpu\n#SBATCH --mem=200M\n#SBATCH --time=00:05:00\nsleep 5\n"


async def submit(tools: TestedToolbox) -> None:
    """Submit it; fails where it is not accepted."""
    reply = await tools.call("submit_job", SubmitJob(script="job.sh"))
    assert reply.status == "submitted", reply


async def look(tools: TestedToolbox) -> None:
    """Look at the cluster; fails where it is not there."""
    reply = await tools.call("get_status", GetStatus())
    assert reply.status == "ok", reply


if __name__ == "__main__":
    opened = toolbox(Path(sys.argv[1]), Accepting())
    context = opened.context
    Path(context.project, "job.sh").write_text(SCRIPT)
    anyio.run(look if sys.argv[2:] == ["look"] else submit, opened)
    context.store.close()
    sys.stdout.write(json.dumps(sorted(name for name in sys.modules if name.startswith("slurm_agent_tools"))))
