"""A cluster of one node that takes every job: each command answers from what was sent before, and is counted."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import squeue_row

from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.transport.base import Completed

CONFIG = b"ClusterName             = test\nSLURM_VERSION           = 22.05.8\nAccountingStorageType   = slurmdbd\n"
PARTITION = (
    b"PartitionName=cpu AllowGroups=ALL Default=YES DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=1-00:00:00"
    b" OverSubscribe=NO State=UP TotalCPUs=8 TotalNodes=1 DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n"
)
BARE = {"no-requeue": "no-requeue", "parsable": "set", "verbose": "1"}
"""What sbatch shows of options that were given without a value."""
NODE = (
    b"NodeName=cpu01 CPUAlloc=0 CPUEfctv=8 CPUTot=8 Gres=(null) GresUsed=(null) RealMemory=16000 AllocMem=0"
    b" FreeMem=15000 State=IDLE ThreadsPerCore=1 Partitions=cpu\n"
)
RULE = f"sbatch: {'-' * 20} {'-' * 20}"


@dataclass
class Sent:
    """A job as sbatch was asked for it."""

    number: int
    options: dict[str, str]
    script: bytes
    at: int
    state: str = "PENDING"
    reason: str = "JobHeldUser"


class Accepting:
    """Takes jobs held, lets them go, and starts none. `asked` holds every argument vector in its order."""

    def __init__(self) -> None:
        self.jobs: list[Sent] = []
        self.asked: list[tuple[str, ...]] = []
        self.stdin: list[bytes] = []

    @property
    def commands(self) -> list[str]:
        """What was asked, in brief."""
        return [" ".join(word for word in argv[:3] if not word.startswith("-")) for argv in self.asked]

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", cwd: str | None = None, **_: Any) -> Completed:
        self.asked.append(tuple(argv))
        self.stdin.append(stdin)
        answer = getattr(self, f"_{argv[0]}")
        told = answer(list(argv), stdin, cwd)
        return told if isinstance(told, Completed) else done(told, argv=argv)

    def _squeue(self, argv: list[str], *_: Any) -> bytes:
        if "--start" in argv:
            return b"N/A\n"
        mark = argv[-1].partition(columns.SEPARATOR)[2].partition("%")[0]
        return b"".join(self._row(job, mark) for job in self.jobs)

    def _row(self, job: Sent, mark: str) -> bytes:
        cell = {
            "id": job.number, "raw": job.number, "user": "alice", "partition": "cpu", "state": job.state,
            "reason": job.reason, "submitted": job.at, "start": "N/A", "end": "N/A", "limit": job.options["time"],
            "elapsed": "0:00", "nodes": "", "required_nodes": "", "node_count": 1, "cpus": 1, "dependency": "(null)",
            "comment": job.options["comment"], "name": job.options["job-name"], "again": job.number,
        }  # fmt: skip
        return squeue_row(cell, mark).encode() + b"\n"

    def _sacct(self, argv: list[str], *_: Any) -> bytes:
        return b"JobID               State" if "--helpformat" in argv else b""

    def _sbatch(self, argv: list[str], stdin: bytes, cwd: str) -> Completed:
        asked = dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", stdin.decode(), re.MULTILINE))
        for word in argv[1 : argv.index("/dev/stdin")]:
            name, _, value = word.removeprefix("--").partition("=")
            asked[name] = value or BARE.get(name, "set")
        if "--test-only" in argv:
            asked |= {"output": f"{cwd}/{asked['output']}"} if "output" in asked else {}
            shown = "".join(f"sbatch: {name:<20}: {value}\n" for name, value in sorted(asked.items()))
            text = f"sbatch: defined options\n{RULE}\n{shown}{RULE}\nsbatch: end of defined options\n"
            return done(
                b"", text.encode() + f"sbatch: Job 1 to start at {int(time.time())} using\n".encode(), argv=argv
            )
        self.jobs.append(Sent(len(self.jobs) + 1, asked, stdin, int(time.time())))
        return done(f"{len(self.jobs)}\n".encode(), argv=argv)

    def _scontrol(self, argv: list[str], *_: Any) -> bytes:
        what = " ".join(argv[1:3])
        if what == "show config":
            return CONFIG
        if what == "show partition":
            return PARTITION
        if what == "show nodes":
            return NODE
        if what == "write batch_script":
            return self.jobs[int(argv[3]) - 1].script
        if argv[1] == "release":
            job = self.jobs[int(argv[2]) - 1]
            job.reason = "Priority"
            return b""
        return self._about(self.jobs[int(argv[-1]) - 1]).encode()

    def _about(self, job: Sent) -> str:
        asked = job.options
        return (
            f"JobId={job.number} JobName={asked['job-name']}\n   UserId=alice(1) GroupId=a(1) Priority=0 QOS=normal\n"
            f"   JobState={job.state} Reason={job.reason} Dependency=(null)\n   Requeue=0 Restarts=0 ExitCode=0:0\n"
            f"   RunTime=00:00:00 TimeLimit={asked['time']}\n   SubmitTime={job.at} EligibleTime=Unknown\n"
            f"   StartTime=Unknown EndTime=Unknown\n   Partition=cpu\n   NodeList=(null)\n   NumNodes=1 NumCPUs=1"
            f" TRES=cpu=1,mem={asked['mem']},node=1\n   Command=/x\n   WorkDir=/x\n   Comment={asked['comment']}\n"
            f"   StdErr=/x/slurm-{job.number}.out\n   StdOut=/x/slurm-{job.number}.out\n"
        )
