"""The record of a failed job and its line among the failure modes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.result import SaveResult
from slurm_agent_tools.services import failures, results
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.units import JobId

ENDED = datetime(2026, 3, 1, 12, tzinfo=UTC)
RECORD = "documents/issues/2026-03-01_71_missing-module.md"


def failed(project: Path, number: int = 71, log: str = "ModuleNotFoundError: No module named 'foo'\n") -> JobView:
    path = project / f"slurm-{number}.out"
    path.write_text(log)
    job = Job(
        job_id=JobId(number), name="train", state="FAILED", sources=("sacct",), exit_code=1, signal=0, ended=ENDED,
        started=ENDED, submitted=ENDED, work_dir=str(project), stdout=str(path), stderr=str(path),
    )  # fmt: skip
    return JobView(job, ())


@pytest.fixture
async def context(tmp_path: Path):
    made = toolbox(tmp_path, NothingReachesSlurm())
    yield made.context
    await made.close()


PAGE = "documents/failure-modes.md"


def read(context, path: str) -> str:
    return Path(context.project, path).read_text()


def page_of(context, text: str) -> None:
    path = Path(context.project, PAGE)
    path.parent.mkdir()
    path.write_text(text)


def gone(context) -> None:
    Path(context.project, PAGE).unlink()


async def keep(context, number: int = 71, **how: str) -> str | None:
    return await failures.keep(context, Caller(), failed(Path(context.project), number, **how))


@pytest.mark.proves("failure-record")
async def test_a_failure_is_recorded_once_and_listed_once(context):
    paths = [await keep(context), await keep(context), await keep(context, log="Segmentation fault\n")]

    assert paths == [RECORD] * 3
    assert read(context, PAGE).count("issues/2026-03-01_71_missing-module.md") == 1
    assert "No module named 'foo'" in read(context, RECORD)


async def test_what_people_wrote_on_the_page_stays(context):
    page_of(context, "# Ours\n\n- load the module first")  # no line end

    await keep(context)

    lines = read(context, PAGE).splitlines()
    assert lines[:3] == ["# Ours", "", "- load the module first"]
    assert lines[3].startswith("- 2026-03-01 · **missing-module** · job 71 · ")


async def test_a_record_names_those_of_its_category_before_it(context):
    await keep(context)
    second = await keep(context, 72)

    assert "- [2026-03-01_71_missing-module.md](2026-03-01_71_missing-module.md)" in read(context, second)


async def test_a_line_that_a_crash_left_out_is_added_by_the_next_call(context):
    await keep(context)
    gone(context)

    assert await keep(context) == RECORD
    assert "job 71" in read(context, PAGE)


async def test_a_page_that_is_no_file_is_an_error_and_nothing_is_written_through_it(context):
    page_of(context, "")
    gone(context)
    os.mkfifo(f"{context.project}/{PAGE}")

    with pytest.raises(StorageError, match="not a regular file"):
        await keep(context)


async def test_a_page_with_a_second_name_outside_of_the_project_is_not_added_to(context, tmp_path):
    page_of(context, "")
    gone(context)
    (tmp_path / "profile").write_text("mine\n")
    os.link(tmp_path / "profile", f"{context.project}/{PAGE}")

    with pytest.raises(StorageError, match="hard link"):
        await keep(context)
    assert (tmp_path / "profile").read_text() == "mine\n"


async def test_each_file_is_in_the_decision_log(context):
    await keep(context)

    lines = read(context, context.store.decisions).splitlines()
    written = [json.loads(line)["path"] for line in lines]
    assert written == [RECORD, PAGE]


async def test_a_job_that_ended_well_leaves_no_record_of_a_failure(context):
    fine = failed(Path(context.project), log="done\n")
    fine = JobView(replace(fine.job, state="COMPLETED", exit_code=0), ())

    assert await failures.keep(context, Caller(), fine) is None


MARKED = " compare_results marks the result with that."


@pytest.mark.parametrize(
    ("status", "state", "says"),
    [
        ("success", "FAILED", f" But Slurm says of job 71: FAILED (exit code 1).{MARKED}"),
        ("failed", "FAILED", ""),
        ("failed", "COMPLETED", " But Slurm says of job 71: COMPLETED (exit code 1)."),
        ("success", "COMPLETED", ""),
        ("cancelled", "FAILED", ""),
        ("success", "RUNNING", " But job 71 has not ended: Slurm says RUNNING."),
    ],
)
def test_a_result_that_slurm_tells_otherwise_is_saved_with_slurms_word_beside_it(tmp_path, status, state, says):
    view = JobView(replace(failed(tmp_path).job, state=state), ())

    assert results.baseline_of(SaveResult(name="x", status=status), view) == says
