"""The project is on a laptop, the cluster behind SSH: files there, a job, its output back."""

from __future__ import annotations

from evals.task import Outcome, Task, need, script


def check(seen: Outcome) -> None:
    """It ran there, on the files of here, and its log is here."""
    job = seen.only()
    need("from the laptop" in seen.text(f"logs/fit-{job.id}.out"), "its output did not come back")
    seen.unchanged(TASK, TASK.files)


TASK = Task(
    prompt="Run fit.sh on the cluster with the files as they are here, and bring its log back.",
    files={
        "slurm-agent.toml": "",
        "fit.py": "import pathlib\n\nprint(pathlib.Path('data.txt').read_text())\n",
        "data.txt": "from the laptop\n",
        "fit.sh": script("fit", "mkdir -p logs", "python3 fit.py"),
    },
    check=check,
    elsewhere=True,
)
