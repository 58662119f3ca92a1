"""What the policy is told of a caller's earlier submissions, and for which of them Slurm is asked how they ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.services import contexts
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.models.arguments import GetStatus, SubmitJob
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.services import submission_facts
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.transport.local import LocalFiles

HEAD = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --mem=1G\n#SBATCH --time=10\n#SBATCH --output=logs/x.out\n"
TEXTS = {"train.sh": f"{HEAD}sleep 5; exit 3\n", "other.sh": f"{HEAD}sleep 5; exit 4\n"}


@pytest.fixture
def box(tmp_path: Path) -> Iterator[contexts.TestedToolbox]:
    made = fake_toolbox(tmp_path, FakeSlurm())
    for name, text in TEXTS.items():
        (Path(made.context.project) / name).write_text(text)
    yield made
    made.context.store.close()


async def both_ended(box: contexts.TestedToolbox) -> dict[str, str]:
    """Script by job id: both were submitted and have ended, and nobody looked."""
    sent = {}
    for name in TEXTS:
        await box.call("get_status", GetStatus())
        reply = await box.call("submit_job", SubmitJob(script=name))
        sent[reply.job_id] = name
    box.context.clock.move(120)
    return sent


async def reading_of(context: ClusterContext, name: str, text: str) -> ScriptReading:
    return await read_script(text.encode(), name, project=context.project, files=LocalFiles())


async def outcomes(
    box: contexts.TestedToolbox, reading: ScriptReading, *, running: bool = False
) -> dict[str, str | None]:
    """How each earlier run ended, by its script's name, as the policy is told before `reading` is submitted."""
    queue = await box.context.slurm.queue(max_age=0)
    active = [job for job in queue if job.active] if running else []
    return {run.script_path: run.outcome for run in await submission_facts.history(box.context, active, reading)}


async def test_only_runs_that_bear_on_the_script_are_looked_up(box):
    await both_ended(box)
    reading = await reading_of(box.context, "train.sh", TEXTS["train.sh"])

    assert await outcomes(box, reading) == {"train.sh": "FAILED", "other.sh": None}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.sh", f"{HEAD}python changed.py\n"),  # the same path
        ("copy.sh", TEXTS["train.sh"]),  # the same bytes
        ("new.sh", f"{HEAD}#SBATCH --job-name=train.sh\npython new.py\n"),  # the name that the other job had
    ],
)
async def test_a_run_bears_on_a_script_by_path_bytes_or_name(box, name, text):
    await both_ended(box)

    told = await outcomes(box, await reading_of(box.context, name, text))

    assert (told["train.sh"], told["other.sh"]) == ("FAILED", None)


@pytest.mark.parametrize("limit", ["gpu_hours_per_day", "cpu_hours_per_day"])
async def test_where_the_hours_of_a_day_count_the_end_of_every_run_is_looked_up(box, limit):
    await both_ended(box)
    loaded = box.context.policy
    limits = loaded.policy.limits.model_copy(update={limit: 100.0})
    box.context = replace(
        box.context, policy=replace(loaded, policy=loaded.policy.model_copy(update={"limits": limits}))
    )
    reading = await reading_of(box.context, "train.sh", TEXTS["train.sh"])

    assert await outcomes(box, reading) == {"train.sh": "FAILED", "other.sh": "FAILED"}


async def test_what_is_told_of_each_run_is_what_was_sent(box):
    sent = await both_ended(box)
    reading = await reading_of(box.context, "train.sh", TEXTS["train.sh"])

    told = await submission_facts.history(box.context, [], reading)

    assert {run.job_id: run.script_path for run in told} == sent
    mine = next(run for run in told if run.script_path == "train.sh")
    assert (mine.script_sha256, mine.failed, mine.analysed, mine.active) == (reading.sha256, True, False, False)


async def test_a_run_that_is_under_way_is_active_and_nothing_is_asked_about_it(box):
    await box.call("get_status", GetStatus())
    reply = await box.call("submit_job", SubmitJob(script="train.sh"))
    queue = await box.context.slurm.queue(max_age=0)
    before = dict(box.context.slurm.calls)
    reading = await reading_of(box.context, "train.sh", TEXTS["train.sh"])

    [run] = await submission_facts.history(box.context, queue, reading)

    assert (run.job_id, run.active, run.outcome) == (reply.job_id, True, None)
    assert dict(box.context.slurm.calls) == before
