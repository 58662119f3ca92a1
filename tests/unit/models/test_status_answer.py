"""Making all models of answers takes as long as importing pydantic, and a command line answers with one of them."""

import subprocess
import sys


def test_an_answer_is_made_without_those_of_the_other_tools() -> None:
    program = "import sys, slurm_agent_tools.models.status_answer; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.rpartition(".")[2] for name in done.stdout.split() if name.startswith("slurm_agent_tools.models.")}
    assert {"shapes", "status_answer"} <= loaded
    assert not loaded & {"report", "result", "diagnosis_answer", "submission_answer"}
