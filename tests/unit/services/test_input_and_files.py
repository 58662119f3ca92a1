"""Arguments and files that cannot be, each named with its field, its value and a mend; what is saved and found again."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.services.scenes import HEAD, Scene, failed, sent
from tests.unit.services.test_facts_of_the_moment import ledger

from slurm_agent_tools.api import search_history, views
from slurm_agent_tools.api.search_history import HistoryQuestion
from slurm_agent_tools.errors import InputError, StorageError, UnknownJob
from slurm_agent_tools.models.arguments import ValidateConfig
from slurm_agent_tools.models.job import Usage
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.result import CompareResults, SaveResult
from slurm_agent_tools.services import project_paths, results
from slurm_agent_tools.services.context import ProjectFiles
from slurm_agent_tools.transport.local import LocalFiles

GIB = 2**30


@pytest.mark.parametrize(
    ("ask", "field", "value"),
    [
        ({"job_name": "x" * 201}, "job_name", "x" * 201),
        ({"job_name": "a\nb"}, "job_name", "a\nb"),
        ({"time_limit": "soon"}, "time_limit", "soon"),
        ({"array": "9-1"}, "array", "9-1"),
        ({"args": ["a", "b\0"]}, "args[1]", "b\0"),
        ({"run_id": "a b"}, "run_id", "a b"),
        ({"run_id": "x" * 101}, "run_id", "x" * 101),
        ({"idempotency_key": "k" * 201}, "idempotency_key", "k" * 201),
        ({"partition": "a\x07"}, "partition", "a\x07"),
        ({"priority": "high"}, "priority", "high"),
        ({"time_budget": "0"}, "time_budget", "0"),
        ({"script": "none.sh"}, "script", "none.sh"),
    ],
)
async def test_an_argument_that_cannot_be_is_an_error_with_its_field_and_value(scene: Scene, ask, field, value):
    with pytest.raises(InputError) as caught:
        await scene.submit(**ask)
    assert (caught.value.field, caught.value.value) == (field, value)
    assert scene.sent() == []


async def test_arguments_at_their_limits_are_taken(scene: Scene):
    reply = await scene.submit(
        job_name="x" * 200, run_id="r" * 100, idempotency_key="k" * 200, time_limit="20", args=[""]
    )
    assert (reply.status, reply.run_id, reply.idempotency_key) == ("submitted", "r" * 100, "k" * 200)
    (argv,) = scene.sent()
    assert {f"--job-name={'x' * 200}", "--time=20"} <= set(argv)
    assert argv.count(f"--job-name={'x' * 200}") == 1


@pytest.mark.parametrize(("priority", "same"), [(None, True), ("normal", True), ("low", False)])
async def test_a_priority_makes_another_request_only_where_it_changes_something(scene: Scene, priority, same):
    first = await scene.submit(dry_run=True)
    second = await scene.submit(dry_run=True, priority=priority)
    assert first.status == second.status == "dry_run"
    hashes = [line["request_sha256"] for line in scene.lines("decided")]
    assert (hashes[0] == hashes[1]) == same


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> ProjectFiles:
    return ProjectFiles(LocalFiles(), str(tmp_path.resolve()))


def written(files: ProjectFiles, name: str, data: bytes) -> None:
    Path(files.root, name).write_bytes(data)


@pytest.mark.parametrize(("size", "fits"), [(100, True), (101, False)])
async def test_a_file_may_be_as_large_as_the_limit(files: ProjectFiles, size: int, fits: bool):
    written(files, "a", b"x" * size)
    if fits:
        assert await project_paths.read_file(files, "f", "a", limit=100) == (f"{files.root}/a", b"x" * size)
        return
    with pytest.raises(InputError) as caught:
        await project_paths.read_file(files, "f", "a", limit=100)
    assert (caught.value.field, caught.value.value) == ("f", "a")
    assert "larger than 100 bytes" in caught.value.message


@pytest.mark.parametrize(
    ("text", "words"), [(b" \n", "is empty"), (b"#!/bin/sh\n\0", "binary"), (b"echo\n", "does not start with #!")]
)
async def test_what_is_no_script_is_an_error_with_its_mend(files: ProjectFiles, text: bytes, words: str):
    written(files, "a.sh", text)
    with pytest.raises(InputError, match=words) as caught:
        await project_paths.read_script(files, "script", "a.sh", limit=100)
    assert (caught.value.field, caught.value.value) == ("script", "a.sh")
    assert caught.value.hint


async def test_what_is_no_regular_file_is_an_error_that_says_what_it_is(files: ProjectFiles, tmp_path: Path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path, words in (("folder", "is a directory"), ("pipe", "is not a regular file"), ("none", "does not exist")):
        with pytest.raises(InputError, match=words) as caught:
            await project_paths.regular(files, "path", path)
        assert (caught.value.field, caught.value.value) == ("path", path)
        assert caught.value.hint
    assert await project_paths.resolve(files, "path", ".") == files.root


@pytest.mark.parametrize("length", [500, 501])
def test_a_text_may_be_as_long_as_its_limit(length: int):
    if length == 500:
        assert project_paths.check_text("reason", "x" * 500, limit=500) == "x" * 500
        return
    with pytest.raises(InputError) as caught:
        project_paths.check_text("reason", "x" * length, limit=500)
    assert (caught.value.field, caught.value.value) == ("reason", "x" * length)


@pytest.mark.parametrize("sign", ["\x1f", "\x7f", "\n", "\0"])
def test_a_control_character_is_an_error_that_names_it(sign: str):
    with pytest.raises(InputError, match="control character") as caught:
        project_paths.check_text("reason", f"a{sign}b", limit=10)
    assert repr(sign) in caught.value.message
    assert project_paths.check_text("reason", "a b~\x80", limit=10) == "a b~\x80"


# --- configurations -------------------------------------------------------------------------------------------------


async def check(scene: Scene, path: str, **more: object):
    return await scene.box.call("validate_config", ValidateConfig(config_path=path, **more))


async def test_a_script_is_judged_and_a_configuration_checked(scene: Scene):
    scene.write("bad.sh", f"{HEAD}sbatch next.sh\n")
    script = await check(scene, "bad.sh")
    assert (script.status, script.config_summary) == ("invalid", {"kind": "batch script", "files": {}})
    assert [(one.path, one.line) for one in script.errors] == [("direct-submission", 6)]
    assert script.summary == "bad.sh is not valid: 1 error, 0 warnings."
    fine = await check(scene, "train.sh")
    assert (fine.status, fine.summary, fine.decision.verdict) == (
        "valid",
        "train.sh is valid: 0 errors, 0 warnings.",
        "allow",
    )


@pytest.mark.parametrize(("strict", "status"), [(False, "valid"), (True, "invalid")])
async def test_warnings_count_where_that_is_asked_for(scene: Scene, strict: bool, status: str):
    scene.write("c.yaml", "learning_rat: 0.1\n")
    reply = await check(scene, "c.yaml", strict=strict)
    assert (reply.status, reply.errors, [one.path for one in reply.warnings]) == (status, [], ["learning_rat"])
    assert reply.summary == f"c.yaml is {'not ' if strict else ''}valid: 0 errors, 1 warning."


async def test_the_projects_own_schema_is_checked_first_and_named(scene: Scene):
    schema = {"type": "object", "properties": {"lr": {"type": "number"}}, "required": ["lr"]}
    (scene.project / "configs").mkdir()
    from slurm_agent_tools.scripts.configs.checks.schema_check import FILE  # noqa: PLC0415 - where it lies

    scene.write(FILE, json.dumps(schema))
    scene.write("c.yaml", "lr: fast\n")
    wrong = await check(scene, "c.yaml")
    assert (wrong.status, wrong.config_summary["schema"]) == ("invalid", FILE)
    assert any("lr" in one.path for one in wrong.errors)
    assert (await check(scene, FILE)).config_summary == {"kind": "JSON Schema"}


# --- results --------------------------------------------------------------------------------------------------------


async def save(scene: Scene, name: str = "run", **more: object):
    return await scene.box.call("save_result", SaveResult(**{"name": name, "status": "success", **more}))


async def test_a_result_never_lies_over_another(scene: Scene):
    first, second = [await save(scene) for _ in range(2)]
    assert second.file_path == first.file_path.replace(".json", "-2.json")
    assert (scene.project / first.file_path).stat().st_mode & 0o777 == 0o600
    assert first.summary.startswith(f"run (success) is saved in {first.file_path}.")
    assert "earlier result" not in first.summary
    assert f"An earlier result of that name stays in {first.file_path}: give compare_results" in second.summary


async def test_a_result_is_saved_also_where_its_folder_cannot_be_listed(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    async def unreadable(_: str) -> list[str]:
        raise StorageError("results cannot be listed")

    monkeypatch.setattr(scene.context.files, "list", unreadable)
    assert (await save(scene)).status == "saved"


async def test_a_dry_run_says_what_would_be_and_writes_nothing(scene: Scene):
    reply = await save(scene, dry_run=True)
    assert (reply.status, reply.file_path) == ("dry_run", None)
    assert reply.summary.startswith("run would be saved; nothing was written.")
    assert not (scene.project / "results").exists()
    blocked = await save(scene, dry_run=True, output_dir="elsewhere")
    assert (blocked.status, blocked.blocker, blocked.human_action_required) == ("blocked", "policy", False)


async def test_a_failed_result_of_a_job_leaves_a_record_that_it_names(scene: Scene):
    number = await failed(scene)
    reply = await save(scene, status="failed", job_id=number)
    assert reply.failure_record is not None
    assert f"Failure record: {reply.failure_record}." in reply.summary
    good = await save(scene, status="cancelled", job_id=number)
    assert (good.failure_record, "But Slurm says" in good.summary) == (None, False)
    assert "But Slurm says of job" in (await save(scene, job_id=number)).summary


@pytest.mark.parametrize("argument", ["baseline", "target"])
async def test_a_result_that_is_not_there_is_an_error_of_its_field(scene: Scene, argument: str):
    await save(scene)
    ask = {"baseline": "run", "target": "run"} | {argument: "nothing"}
    with pytest.raises(InputError) as caught:
        await scene.box.call("compare_results", CompareResults(**ask))
    assert (caught.value.field, caught.value.value) == (argument, "nothing")
    assert caught.value.hint == "Name a file or an experiment: run."


async def test_results_are_compared_and_the_newest_are_told(scene: Scene):
    await save(scene, "one", metrics={"loss": 2.0})
    scene.slurm.clock.move(5)
    await save(scene, "two", metrics={"loss": 1.0})
    reply = await scene.box.call("compare_results", CompareResults(baseline="one", target="two"))
    assert reply.summary == "1 metric compared: two against one."
    assert (reply.baseline.experiment_name, reply.target.experiment_name) == ("one", "two")
    assert (reply.metrics["loss"].baseline, reply.metrics["loss"].target) == (2.0, 1.0)
    told = await results.brief(scene.context)
    assert [one.experiment_name for one in told] == ["two", "one"]
    assert [one.experiment_name for one in await results.brief(scene.context, limit=1)] == ["two"]


async def test_of_the_trials_of_a_campaign_the_newest_result_is_told_with_their_number(scene: Scene):
    for name in ("lone-r1-t1", "mine", "rates-r1-t1", "rates-r1-t2", "rates-r2-t10", "yours-r1"):
        await save(scene, name)
        scene.slurm.clock.move(1)
    told = [(one.experiment_name, one.trials) for one in await results.brief(scene.context, limit=4)]
    assert told == [("yours-r1", None), ("rates-r2-t10", 3), ("mine", None), ("lone-r1-t1", None)]


# --- the memory -----------------------------------------------------------------------------------------------------


async def test_jobs_of_the_last_days_are_found_newest_first_and_counted(scene: Scene):
    for number, days in ((7, 1), (8, 2), (9, 40)):
        ledger(scene, number, ago=timedelta(days=days), outcome="COMPLETED", failed=False)
    found = await search_history.search_history(scene.context, HistoryQuestion())
    assert [job.job_id for job in found.jobs] == ["7", "8"]
    assert found.summary == "2 jobs of the last 30 days."
    one = await search_history.search_history(scene.context, HistoryQuestion(limit=1))
    assert (one.summary, len(one.jobs)) == ("2 jobs of the last 30 days, 1 shown.", 1)
    long = await search_history.search_history(scene.context, HistoryQuestion(days=50, query="train"))
    assert long.summary == "3 jobs of the last 50 days."
    none = await search_history.search_history(scene.context, HistoryQuestion(query="nothing"))
    assert (none.summary, none.jobs, none.data_only) == ("No job of the last 30 days fits.", [], [])
    assert found.data_only == ["jobs"]


async def test_jobs_like_a_script_are_told_with_their_likeness_and_advice(scene: Scene):
    used = Usage(elapsed_seconds=60, memory_peak_bytes=GIB // 4, memory_allocated_bytes=GIB)
    asked = Resources(partition="cpu", nodes=1, cpus=1, memory_bytes=GIB, time_limit_seconds=600)
    for number in range(7, 13):
        ledger(
            scene, number, job_name="train.sh", script_path="train.sh", outcome="COMPLETED", failed=False, usage=used,
            requested=asked, run_seconds=60,
        )  # fmt: skip
    found = await search_history.search_history(scene.context, HistoryQuestion(like="train.sh", limit=3))
    assert len(found.jobs) == 3
    assert all(job.likeness is not None and job.likeness > 0.5 for job in found.jobs)
    assert found.advice is not None
    assert found.advice.summary in found.summary
    assert found.jobs[0].usage is not None
    assert found.jobs[0].usage.elapsed_seconds == 60
    memory = await search_history.search_history(scene.context, HistoryQuestion(like="train.sh", limit=1, memory=True))
    assert (memory.jobs[0].likeness, memory.jobs[0].memory is not None) == (found.jobs[0].likeness, True)


async def test_of_a_job_that_nobody_knows_the_error_is_slurms(scene: Scene):
    with pytest.raises(UnknownJob):
        await views.job(scene.context, "999")
    ledger(scene, 998, outcome="COMPLETED")
    told = await views.job(scene.context, "998")
    assert (told.job, told.remembered.job_id) == (None, "998")
    assert told.summary == "Slurm has forgotten job 998; it was last seen as COMPLETED."


async def test_tags_are_asked_for_all_or_any_and_not_mixed(scene: Scene):
    with pytest.raises(InputError) as caught:
        await views.history(scene.context, "a,b|c")
    assert (caught.value.field, caught.value.value) == ("tag", "a,b|c")
    ledger(scene, 7, outcome="FAILED", failed=True)
    ledger(scene, 8, outcome="COMPLETED", failed=False)
    assert [job.job_id for job in (await views.history(scene.context, "failed| 8")).jobs] == ["8", "7"]
    assert [job.job_id for job in (await views.history(scene.context, "failed, 8")).jobs] == []


# --- completion -----------------------------------------------------------------------------------------------------


async def test_scripts_are_found_eight_folders_deep_and_generated_ones_last(scene: Scene):
    deep = "/".join("abcdefgh")
    for path in (f"{deep}/x.sh", f"{deep}/i/y.sh", "scripts/slurm/generated/a.sh", "zz.sh", ".hidden/h.sh"):
        scene.write(path, "#!/bin/sh\n")
    found = await views.scripts(scene.context)
    assert found == [f"{deep}/x.sh", "train.sh", "zz.sh", "scripts/slurm/generated/a.sh"]


async def test_the_job_of_a_report_is_asked_about_afresh(scene: Scene):
    number = await sent(scene)
    await scene.wait(number)
    before = scene.slurm.counts["squeue"]
    from slurm_agent_tools.services import completion_report  # noqa: PLC0415 - what it asks is counted

    await completion_report.of_job(scene.context, number)
    assert scene.slurm.counts["squeue"] == before + 1


@pytest.mark.parametrize("repository", [True, False])
async def test_a_result_whose_changes_are_not_known_says_so(scene: Scene, repository: bool):
    if repository:  # no objects and no index: git can say nothing
        scene.write(".git/HEAD", "0123456789abcdef0123456789abcdef01234567\n")
    reply = await scene.box.call("save_result", SaveResult(name="a", status="success"))

    assert (reply.result.environment.git.commit is not None, reply.result.environment.git.dirty) == (repository, None)
    assert ("differ from the commit is not known" in reply.summary) == repository
