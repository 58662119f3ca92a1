"""A command is to run on two nodes at once: the script is written by the tools."""

from __future__ import annotations

from evals.task import Outcome, Task, need

WHERE = """import os, pathlib

pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path(f"out/{os.environ['SLURM_PROCID']}.txt").write_text(os.environ["SLURMD_NODENAME"])
"""


def check(seen: Outcome) -> None:
    """One job on two nodes of four GPUs in all, with a process on each."""
    job = seen.only()
    need((job.nodes, job.gpus, job.partition) == (2, 4, "gpu"), f"{job.nodes} nodes, {job.gpus} GPUs, {job.partition}")
    need("where.py" in job.script, "it ran something else")
    ranks = sorted((seen.project / "out").glob("*.txt"))
    need(len(ranks) == 4, f"four processes were to run, not {len(ranks)}")
    need(len({path.read_text() for path in ranks}) == 2, "the processes were on one node")


TASK = Task(
    prompt="Write a script `where` that runs `python3 where.py` on two nodes of the partition gpu with two GPUs "
    "each, one process per GPU started by srun, for at most 10 minutes, and run it.",
    files={"where.py": WHERE},
    check=check,
)
