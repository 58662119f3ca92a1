"""One job on a cluster of the test's own words, for what a wait and a status tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from tests.unit.services.contexts import toolbox
from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import queued

from slurm_agent_tools.models.arguments import WaitForJob
from slurm_agent_tools.models.report import WaitReply
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.transport.base import Completed

NOW = 1_770_000_000
CONFIG = b"ClusterName             = test\nSLURM_VERSION           = 22.05.8\n"
STEP = b"5.batch|1|1048576|00:00:00|cpu=00:00:10,mem=3145728\n"
ABOUT = (
    "JobId=5 JobName=train\n   UserId=alice(1) GroupId=a(1) Priority=1 QOS=normal\n   JobState=RUNNING Reason=None"
    " Dependency=(null)\n   Requeue=0 Restarts=0 ExitCode=0:0\n   RunTime=00:10:00 TimeLimit=01:00:00\n   SubmitTime={0}"
    " EligibleTime={0}\n   StartTime={0} EndTime=Unknown\n   Partition=cpu\n   NodeList=cpu01\n   NumNodes=1 NumCPUs=2"
    " TRES=cpu=2,mem=4M,node=1\n   Command=/x\n   WorkDir=/x\n   StdErr={1}\n   StdOut={1}\n"
)


class Still:
    """A clock that stands still; pauses take their time."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(NOW, UTC)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class Cluster:
    """One running job and what each command says of it; a command may take its time."""

    def __init__(self, folder: Path, **changes: object) -> None:
        self.folder, self.begun = folder, NOW - 600
        row = {"submitted": self.begun, "start": self.begun, "limit": "1:00:00", "elapsed": "10:00"}
        self.answers: dict[str, bytes] = {"squeue": queued("5", **(row | changes)), "sstat": STEP}
        self.slow: Mapping[str, float] = {}
        self.asked: list[str] = []
        self.box = toolbox(folder, self, Still())
        self.log = self.box.context.environment.root + "/out.txt"

    def write(self, text: str) -> None:
        Path(self.log).write_text(text)

    async def run(self, argv: Sequence[str], **more: Any) -> Completed:
        name = " ".join(argv[:3]) if argv[0] == "scontrol" else argv[0]
        self.asked.append(name)
        await anyio.sleep(self.slow.get(name, 0))
        about = ABOUT.format(self.begun, self.log).encode()
        known = {
            "scontrol show job": about, "scontrol show config": CONFIG,
            "scontrol show reservation": b"No reservations in the system\n", "sacct": b"",
        }  # fmt: skip
        text = (known | self.answers).get(name, b"")
        bare = (argv[0],)  # without the mark that separates columns
        return done(text, argv=bare) if text != b"!" else done(b"", b"Unable to contact slurm controller", 1, bare)

    async def wait(self, seconds: float = 0) -> WaitReply:
        reply = await self.box.call("wait_for_job", WaitForJob(job_id="5", timeout_seconds=seconds))
        assert isinstance(reply, WaitReply)
        return reply


def submitted(at: datetime, **changes: Any) -> Submission:
    return Submission(
        token="t", idempotency_key="k", phase="released", created=at, updated=at, script_path="a.sh", script_sha256="s",
        request_sha256="r", job_name="train", slots=1, decision_id="d", job_id=5, **changes,
    )  # fmt: skip
