"""The end of a job's output as clients read it: how many files, how much of each, and what is said of the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.api import views
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.services.context import ClusterContext

SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --time=10\n#SBATCH --output=logs/%A_%a.out\nsleep 60\n"


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def context(slurm: FakeSlurm, tmp_path: Path) -> Iterator[ClusterContext]:
    made = fake_toolbox(tmp_path, slurm).context
    (Path(made.project) / "logs").mkdir()
    yield made
    made.store.close()


def ended(slurm: FakeSlurm, context: ClusterContext, *options: str, output: str = "trained\n", tasks: int = 0) -> int:
    """A job, or an array, that failed after it wrote its output."""
    ending = Ending(1.0, exit_code=1, output=output)
    slurm.next_job(ending, tasks=dict.fromkeys(range(tasks), ending))
    number = slurm.submit(SCRIPT, *options, cwd=context.project)
    slurm.clock.move(60)
    return number


@pytest.mark.parametrize(
    ("tasks", "shown", "more"), [(1, 1, None), (4, 4, None), (5, 4, "1 more files"), (7, 4, "3 more files")]
)
async def test_the_first_four_files_are_shown_and_the_others_counted(slurm, context, tasks, shown, more):
    number = ended(slurm, context, f"--array=0-{tasks - 1}", tasks=tasks)

    text = await views.log(context, str(number))

    mark = re.search(r"between the marks (\w+) was written by the job", text)[1]
    assert text.count(f"\n<<< {mark}\n") == text.count(f"\n>>> {mark}") == shown
    assert re.findall(r"\d+ more files", text) == ([more] if more else [])
    assert "No output file" not in text


async def test_of_a_long_file_the_last_lines_are_shown_and_its_whole_size_is_told(slurm, context):
    lines = "".join(f"step {number}\n" for number in range(1000))
    number = ended(slurm, context, "--output=logs/long.out", output=lines)

    text = await views.log(context, str(number))

    assert f"logs/long.out, {len(lines)} bytes, its last {views.LINES} lines:" in text
    assert "\nstep 800\n" in text
    assert "\nstep 799\n" not in text


async def test_a_job_that_did_not_begin_has_a_file_that_is_not_there_yet(slurm, context):
    number = slurm.submit(SCRIPT, "--hold", "--output=logs/later.out", cwd=context.project)

    text = await views.log(context, str(number))

    assert re.search(r"^\S*logs/later\.out: \w+", text, re.MULTILINE)
    assert "<<<" not in text
