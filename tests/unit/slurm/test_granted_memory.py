"""How much memory a job holds or asks for, as scontrol shows it of one that waits and of one that runs."""

from __future__ import annotations

import pytest
from tests.unit.slurm.answers import done

from slurm_agent_tools.slurm.commands import scontrol

RECORD = (
    "JobId=7 JobName=n\n   UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A\n"
    "   JobState={state} Reason=None Dependency=(null)\n   Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0\n"
    "   RunTime=00:00:00 TimeLimit=00:05:00\n   SubmitTime=1800000000 EligibleTime=1800000000\n"
    "   StartTime=Unknown EndTime=Unknown\n   Partition=cpu NodeList=\n   NumNodes={nodes} NumCPUs={cpus}\n"
    "   TRES=cpu=1,{tres}node={nodes}\n   {options}\n   Command=(null)\n   WorkDir=/home/alice\n"
)
MIB, GIB = 2**20, 2**30


def memory(options: str, *, state: str = "PENDING", tres: str = "", nodes: int = 1, cpus: int = 1) -> int | None:
    text = RECORD.format(state=state, options=options, tres=tres, nodes=nodes, cpus=cpus)
    [job] = scontrol.parse_jobs(done(text.encode()))
    return job.resources.memory_bytes


@pytest.mark.parametrize(
    ("options", "facts", "wanted"),
    [
        ("MinMemoryNode=4G", {}, 4 * GIB),
        ("MinMemoryNode=4G", {"nodes": 3}, 12 * GIB),
        ("MinMemoryCPU=512M", {"cpus": 4}, 2 * GIB),
        ("MinMemoryNode=4G", {"tres": "mem=1G,"}, 4 * GIB),  # the TRES do not follow a change, the options do
        ("MinMemoryCPU=512M", {"cpus": 4, "tres": "mem=6G,"}, 6 * GIB),
        ("MinMemoryNode=0", {"tres": "mem=1G,"}, GIB),
        ("MemPerTres=gres:gpu:2048", {"tres": "gres/gpu=2,"}, 4 * GIB),
        ("MinMemoryCPU=512M MemPerTres=gres:gpu:100", {"cpus": 8, "tres": "gres/gpu=3,"}, 300 * MIB),
        ("MinMemoryNode=0", {}, None),
    ],
)
def test_a_waiting_job_asks_for_what_its_options_say(options, facts, wanted):
    assert memory(options, **facts) == wanted


@pytest.mark.parametrize(("tres", "wanted"), [("mem=2G,", 2 * GIB), ("", None)])
def test_a_running_job_holds_what_its_tres_say_whatever_it_asked_for(tres, wanted):
    assert memory("MinMemoryNode=4G", state="RUNNING", tres=tres) == wanted
