"""A job fails for a module that lies elsewhere in the project: the script is mended, and only the script."""

from __future__ import annotations

from evals.task import Outcome, Task, need, script


def check(seen: Outcome) -> None:
    """It failed, and then completed, with no more than one try between."""
    *failed, last = (job.state for job in seen.runs())
    need(set(failed) == {"FAILED"} and len(failed) < 3, f"the first ones ended as {failed}")
    need(last == "COMPLETED", f"the last one is {last}")
    need(seen.text("model.txt") == "42", "the model is another one")
    seen.unchanged(TASK, ["fit.py", "lib/features.py"])


TASK = Task(
    prompt="Run fit.sh. If it fails, find out why, mend fit.sh (not the Python files), and run it again.",
    files={
        "fit.py": "import pathlib\nimport features\n\npathlib.Path('model.txt').write_text(str(features.SIZE))\n",
        "lib/features.py": "SIZE = 42\n",
        "fit.sh": script("fit", "python3 fit.py"),
    },
    check=check,
)
