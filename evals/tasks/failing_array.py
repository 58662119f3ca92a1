"""An array of which one task fails: that one is mended and run again, and no other."""

from __future__ import annotations

from evals.task import Outcome, Task, need, script

SUM = """import os, pathlib

number = os.environ["SLURM_ARRAY_TASK_ID"]
rows = pathlib.Path(f"data/{number}.csv").read_text().splitlines()
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path(f"out/{number}.txt").write_text(str(sum(int(row) for row in rows)))
"""


def check(seen: Outcome) -> None:
    """Six tasks of which the fourth failed, then that one alone."""
    arrays = sorted({job.array for job in seen.sent}, key=int)
    need(len(arrays) == 2, f"two arrays were to be sent, not {len(arrays)}")
    states = [{job.id.partition("_")[2]: job.state for job in seen.sent if job.array == array} for array in arrays]
    need(
        states[0] == {str(n): "FAILED" if n == 3 else "COMPLETED" for n in range(6)}, f"the first ended as {states[0]}"
    )
    need(states[1] == {"3": "COMPLETED"}, f"the second ended as {states[1]}")
    sums = {n: seen.text(f"out/{n}.txt") for n in range(6)}
    need(sums == {n: str(2 * n) for n in range(6)}, f"the sums are {sums}")
    seen.unchanged(TASK, ["sweep.sh", "sum.py", *(f"data/{n}.csv" for n in range(6) if n != 3)])


TASK = Task(
    prompt="Run sweep.sh as the array 0-5, two tasks at a time. If a task fails, find out why and mend its data "
    "(file N has the number N twice, each on a line). Run again only what failed.",
    files={"sum.py": SUM, "sweep.sh": script("sweep", "python3 sum.py", output="logs/%x-%A_%a.out")}
    | {f"data/{n}.csv": f"{n}\n{n}\n" if n != 3 else "3\nthree\n" for n in range(6)},
    check=check,
)
