"""What a submission meets on each version: recorded answers to the same words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.replay.record import ARGS, GONE, LOST, OPTIONS, REFUSED, SCRIPT
from tests.replay.replaying import RECORDINGS, Answer, client, load

from slurm_agent_tools.errors import SlurmRefused
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.units import JobId

AT = {"cwd": "/", "env": {}}
PATHS = sorted(RECORDINGS.glob("*/changes.json"))
VERSIONS = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.parent.name)
OLD = "22.05"


def recorded(path: Path) -> tuple[list[Answer], SlurmClient]:
    answers = load(path)
    return answers, client(answers)


def held_id(answers: list[Answer]) -> JobId:
    return JobId(int(next(answer.argv[-1] for answer in answers if answer.argv[:3] == ("scontrol", "show", "job"))))


@pytest.mark.proves("versions-are-tried")
def test_each_version_that_is_tried_has_its_recording():
    assert [path.parent.name for path in PATHS] == [OLD, "24.11", "26.05"]


@VERSIONS
async def test_sbatch_shows_every_option_and_when_the_job_would_start(path):
    trial = await recorded(path)[1].test_only(OPTIONS, SCRIPT, ARGS, **AT)
    assert trial.accepted
    assert trial.start is not None
    assert trial.shown is not None
    [shown] = trial.shown
    wanted = {"partition": "gpu", "gpus": "2", "mem": "4G", "time": "00:10:00", "job-name": "kept", "comment": "token"}
    assert wanted.items() <= shown.items()
    assert shown["error"].endswith("/e-%j.txt")
    assert set(shown) - set(wanted) == {"error", "no-requeue", "test-only", "verbose"}


@VERSIONS
async def test_an_option_that_later_versions_do_not_have_is_refused_there_and_no_option_is_shown(path):
    trial = await recorded(path)[1].test_only([*OPTIONS, GONE], SCRIPT, ARGS, **AT)
    if path.parent.name == OLD:
        assert trial.accepted
        assert trial.shown is not None
        assert trial.shown[0]["power"] == "LEVEL"
    else:
        assert (trial.accepted, trial.shown) == (False, ())
        assert "unrecognized option '--power=level'" in trial.message


@VERSIONS
async def test_a_refusal_is_told_with_slurms_own_words(path):
    slurm = recorded(path)[1]
    trial = await slurm.test_only([*OPTIONS, REFUSED], SCRIPT, ARGS, **AT)
    assert not trial.accepted
    assert "invalid partition specified: none" in trial.message
    assert "defined options" not in trial.message
    with pytest.raises(SlurmRefused, match="invalid partition specified: none"):
        await slurm.submit([*OPTIONS, REFUSED, "--hold"], SCRIPT, ARGS, **AT)


@VERSIONS
async def test_a_dependency_on_a_job_that_never_was_is_taken_by_22_05_and_refused_by_later_versions(path):
    slurm = recorded(path)[1]
    trial = await slurm.test_only([*OPTIONS, LOST], SCRIPT, ARGS, **AT)
    words = [*OPTIONS, LOST, "--hold"]
    if path.parent.name == OLD:
        assert trial.accepted
        assert (await slurm.submit(words, SCRIPT, ARGS, **AT)).job_id > 0
    else:
        assert not trial.accepted
        with pytest.raises(SlurmRefused, match="Job dependency problem"):
            await slurm.submit(words, SCRIPT, ARGS, **AT)


@VERSIONS
async def test_a_held_job_tells_what_slurm_made_of_the_request(path):
    answers, slurm = recorded(path)
    made = await slurm.submit([*OPTIONS, "--hold"], SCRIPT, ARGS, **AT)
    assert made.job_id == held_id(answers).base
    granted = await slurm.held(held_id(answers))
    assert (granted.name, granted.held, granted.requeue, granted.comment) == ("kept", True, False, "token")
    assert granted.stdout is not None
    assert granted.stdout.endswith(f"/slurm-{made.job_id}.out")
    assert granted.stderr is not None
    assert granted.stderr.endswith(f"/e-{made.job_id}.txt")
    found = granted.resources
    assert (found.partition, found.nodes, found.cpus, found.gpus) == ("gpu", 1, 1, 2)
    assert (found.memory_bytes, found.memory_per_gpu_bytes) == (4 * 2**30, 2 * 2**30)
    assert found.time_limit_seconds == 600
    assert await slurm.batch_script(held_id(answers)) == SCRIPT


@VERSIONS
async def test_an_unknown_job_is_refused_by_release_and_passed_over_by_scancel(path):
    answers, slurm = recorded(path)
    await slurm.release(held_id(answers))
    await slurm.cancel(held_id(answers))
    await slurm.cancel(JobId(999999))
    with pytest.raises(SlurmRefused, match="Invalid job id specified"):
        await slurm.release(JobId(999999))


def altered(path: Path, old: str, new: str) -> SlurmClient:
    """A client for the recording with another text in it."""
    answers = load(path)
    assert any(old in answer.stdout for answer in answers)
    return client(answers, lambda answer: replace(answer, stdout=answer.stdout.replace(old, new)))


NEWEST = RECORDINGS / "26.05"


async def test_a_name_that_ends_like_the_line_behind_it_stays_whole():
    path = NEWEST / "changes.json"
    name = "kept\n   SLUID=s1"
    granted = await altered(path, " JobName=kept", f" JobName={name}").held(held_id(load(path)))
    assert granted.name == name


async def test_a_line_that_submitted_is_no_part_of_the_command():
    path = NEWEST / "changes.json"
    [job] = await recorded(path)[1].details(held_id(load(path)).base, max_age=0)
    assert job.command == "/dev/stdin"


async def test_standard_error_goes_where_standard_output_goes_when_none_is_shown():
    path = NEWEST / "changes.json"
    [line] = [row for row in held_text(path).splitlines() if "StdErr=" in row]
    granted = await altered(path, line, "   StdErr=").held(held_id(load(path)))
    assert granted.stderr == granted.stdout is not None


def held_text(path: Path) -> str:
    return next(answer.stdout for answer in load(path) if answer.argv[:3] == ("scontrol", "show", "job"))


@pytest.mark.parametrize(
    ("version", "old", "new"),
    [(OLD, " OverSubscribe=NO", " OverSubscribe=EXCLUSIVE"), ("26.05", " Exclusive=NO", " Exclusive=NODE")],
)
async def test_a_partition_of_whole_nodes_is_known_by_the_word_of_each_version(version, old, new):
    path = RECORDINGS / version / "accounting" / "cluster.json"
    assert not any(part.exclusive for part in (await client(load(path)).partitions()).values())
    assert all(part.exclusive for part in (await altered(path, old, new).partitions()).values())
