"""The command line's `get_status`, less the Slurm commands that it runs, beside using pydantic and anyio once.

The Slurm commands are stand-ins that answer at once with an idle cluster of four nodes. What they take themselves, run
at once with the same arguments, is measured in the same round and taken off.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.table import Row
from benchmarks.timing import Spent, at_once, environment, in_turn, python, whole

LIMIT = 1.6
USED = """
import anyio, pydantic
class Answer(pydantic.BaseModel):
    status: str
async def main(): return Answer(status="ok")
anyio.run(main)
"""
_PARTITION = (
    "PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A"
    " DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED"
    " MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-4] PriorityJobFactor=1 PriorityTier=1"
    " RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=OFF State=UP TotalCPUs=64 TotalNodes=4"
    " SelectTypeParameters=NONE JobDefaults=(null) DefMemPerCPU=1000 MaxMemPerNode=UNLIMITED\n"
)
_CONFIG = """Configuration data as of 2026-01-01T00:00:00
AccountingStorageType   = (null)
ClusterName             = idle
DefMemPerNode           = UNLIMITED
EnforcePartLimits       = NO
SLURM_VERSION           = 22.05.8
"""
_NODE = (
    "NodeName={} Arch=x86_64 CoresPerSocket=16  CPUAlloc=0 CPUEfctv=16 CPUTot=16 CPULoad=0.10"
    " AvailableFeatures=(null) ActiveFeatures=(null) Gres=gpu:a100:4 GresDrain=N/A GresUsed=gpu:a100:0(IDX:N/A)"
    " NodeAddr={} NodeHostName={} Version=22.05.8 OS=Linux 6.1.0 #1 SMP  RealMemory=64000 AllocMem=0 FreeMem=60000"
    " Sockets=1 Boards=1 State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main "
    " BootTime=2026-01-01T00:00:00 SlurmdStartTime=2026-01-01T00:00:00 CfgTRES=cpu=16,mem=64000M AllocTRES=\n"
)
_STATUS = python("-m", "slurm_agent_tools", "get_status", "--json")
_SHELL = {
    "squeue": "#!/bin/sh\nexec true\n",
    "scontrol": '#!/bin/sh\nexec cat "${0%/*}/$2"\n',
}


def _stand_ins(folder: Path) -> Path:
    """A folder of commands that answer at once."""
    folder.mkdir()
    for name, text in _SHELL.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "nodes").write_text("".join(_NODE.format(name, name, name) for name in ("n1", "n2", "n3", "n4")))
    (folder / "partition").write_text(_PARTITION)
    (folder / "config").write_text(_CONFIG)
    return folder


def _commands(folder: Path, env: dict[str, str], bin_dir: Path) -> list[list[str]]:
    """What get_status runs, found by running it once with commands that note how they were called."""
    notes = folder / "asked"
    for name, text in _SHELL.items():
        (bin_dir / name).write_text(text.replace("\n", f'\necho "${{0##*/}} $1 $2" >> "{notes}"\n', 1))
    subprocess.run(_STATUS, env=env, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for name, text in _SHELL.items():
        (bin_dir / name).write_text(text)
    return [[str(bin_dir / line.split()[0]), *line.split()[1:]] for line in notes.read_text().splitlines()]


@contextmanager
def idle_cluster() -> Iterator[tuple[Path, dict[str, str], Path]]:
    """A project folder, the environment in which get_status answers there, and the folder of the commands."""
    with tempfile.TemporaryDirectory(prefix="sat-bench-") as name:
        folder = Path(name)
        bin_dir = _stand_ins(folder / "bin")
        yield folder, environment(folder, SLURM_AGENT_SLURM__BIN_DIR=str(bin_dir)), bin_dir


def measure(runs: int) -> tuple[Spent, Spent]:
    """get_status less its commands, and both libraries imported and used for the least thing."""
    with idle_cluster() as (folder, env, bin_dir):
        commands = _commands(folder, env, bin_dir)
        makers = (
            partial(whole, _STATUS, env, folder),
            partial(at_once, commands, env, folder),
            partial(whole, python("-c", USED), env, folder),
        )
        status, alone, used = in_turn(makers, runs)
    return Spent(status.wall - alone.wall, status.cpu - alone.cpu), used


def rows() -> list[Row]:
    """In processor time, which a busy machine disturbs less, and on the clock, which is only told."""
    ours, used = measure(runs=12)
    what, beside = "CLI `get_status` less its Slurm commands", "both used once: a model, a coroutine"
    return [
        Row(f"{what}, processor", ours.cpu * 1e3, "ms", beside, used.cpu * 1e3, LIMIT),
        Row(f"{what}, clock", ours.wall * 1e3, "ms", beside, used.wall * 1e3),
    ]
