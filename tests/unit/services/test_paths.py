"""Every argument that names a path, against every way out of the project."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.services.contexts import NothingReachesSlurm, toolbox
from tests.unit.services.scenes import HEAD, Scene

from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.models import arguments, result
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.services import log_analysis, log_files, log_paths, project_paths
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.units import JobId

SECRET = "root:x:0:0:the secret of somebody"
ASKS = {
    "script": lambda path: ("submit_job", arguments.SubmitJob(script=path, dry_run=True)),
    "config_path": lambda path: ("validate_config", arguments.ValidateConfig(config_path=path)),
    "path": lambda path: ("analyze_log", arguments.AnalyzeLog(path=path, mode="full")),
    "config": lambda path: ("save_result", result.SaveResult(name="n", status="success", config=path)),
    "output_dir": lambda path: ("save_result", result.SaveResult(name="n", status="success", output_dir=path)),
    "baseline": lambda path: ("compare_results", result.CompareResults(baseline=path, target="results/b.json")),
    "target": lambda path: ("compare_results", result.CompareResults(baseline="results/a.json", target=path)),
    "result's baseline": lambda path: ("save_result", result.SaveResult(name="n", status="success", baseline=path)),
}
WAYS_OUT = {
    "upward": "../outside.json",
    "upward from below": "results/../../outside.json",
    "absolute": "{outside}",
    "another user's key": "/root/.ssh/id_rsa",
    "link to a file": "link.json",
    "hard link to another user's file": "hard.json",
    "link to a folder": "linked/outside.json",
    "link to a link": "twice.json",
    "loop": "loop.json",
    "this process": "/proc/self/environ",
    "this process by a link": "environ.json",
    "device": "/dev/zero",
    "device by a link": "zero.json",
    "pipe": "pipe.json",
    "NUL": "results/a\0.json",
    "line end": "results/a\n.json",
    "escape": "results/\x1b[2J.json",
    "much too long": "a/" * 3000 + ".json",
    "long name": "a" * 300 + ".json",
    "not UTF-8": "a\udcff/../../outside.json",
    "sibling with the same beginning": "../project-2/outside.json",
    "folder": "results",
    "empty": " ",
}


@pytest.fixture
def box(tmp_path):
    made = toolbox(tmp_path, NothingReachesSlurm())
    project, outside = tmp_path / "project", tmp_path / "outside.json"
    outside.write_text(SECRET)
    (tmp_path / "project-2").mkdir()
    (tmp_path / "project-2" / "outside.json").write_text(SECRET)
    (project / "results").mkdir()
    (project / "link.json").symlink_to(outside)
    (project / "linked").symlink_to(tmp_path)
    (project / "twice.json").symlink_to("link.json")
    (project / "loop.json").symlink_to("loop.json")
    (project / "environ.json").symlink_to("/proc/self/environ")
    (project / "zero.json").symlink_to("/dev/zero")
    os.mkfifo(project / "pipe.json")
    hard_link(tmp_path / "theirs.json", project / "hard.json")
    return made


def hard_link(file: Path, link: Path) -> None:
    """A second name of another user's file; only root can make one here."""
    file.write_text(SECRET)
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
        os.link(file, link)


@pytest.mark.proves("paths-stay-inside", "bad-input-names-the-field")
@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("argument", ASKS)
async def test_no_argument_leads_out_of_the_project(box, tmp_path, argument, way):
    before = sorted(tmp_path.rglob("*"))
    path = WAYS_OUT[way].format(outside=tmp_path / "outside.json")
    tool, ask = ASKS[argument](path)
    if (argument, way) == ("output_dir", "folder"):  # the one that is a good place to write to
        path, ask = "results", ask.model_copy(update={"dry_run": True})
    try:
        reply = await box.call(tool, ask)
    except AgentToolsError as error:
        told = error.message + error.hint
    else:
        told = reply.model_dump_json()
        assert reply.status in {"blocked", "dry_run", "no_log"} or way == "folder", told
    assert SECRET not in told
    assert "PATH=" not in told
    left = [one for one in tmp_path.rglob("*") if one not in before and "state" not in one.parts]
    assert [one for one in left if not one.is_relative_to(tmp_path / "project")] == []


@pytest.mark.proves("paths-stay-inside")
@pytest.mark.parametrize(
    "named", ["{outside}", "/home/other/.ssh/id_rsa", "/proc/self/environ", "/etc/passwd", "{project}/../outside.json"]
)
async def test_a_job_s_own_record_of_its_output_is_no_way_out_and_is_told(box, tmp_path, named):
    path = named.format(outside=tmp_path / "outside.json", project=tmp_path / "project")
    log = await log_files.read(box.context, path, "stdout")
    assert log.text is None
    assert log.file.note == "lies outside the project and was not read"
    assert log.file.read_bytes == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.proves("paths-stay-inside")
async def test_a_hard_link_to_another_users_file_is_said_to_be_one_and_ones_own_is_read(box, tmp_path):
    with pytest.raises(InputError, match=r"^script: 'hard.json' is a hard link to a file of another user"):
        await box.call("submit_job", arguments.SubmitJob(script="hard.json", dry_run=True))
    log = await log_files.read(box.context, str(tmp_path / "project/hard.json"), "stdout")
    assert (log.text, log.file.note) == (None, "is a hard link to a file of another user; nothing was read")
    assert await box.context.here.files.read(str(tmp_path / "project/hard.json")) is None

    (tmp_path / "mine.out").write_text("loss: 0.5\n")
    os.link(tmp_path / "mine.out", tmp_path / "project/mine.out")
    assert (await log_files.read(box.context, str(tmp_path / "project/mine.out"), "stdout")).text is not None


@pytest.mark.proves("paths-stay-inside")
async def test_a_log_that_is_a_link_out_of_the_project_is_not_read(box, tmp_path):
    (tmp_path / "project" / "a.out").symlink_to(tmp_path / "outside.json")
    log = await log_files.read(box.context, str(tmp_path / "project/a.out"), "stdout")
    assert (log.text, log.file.note) == (None, "lies outside the project and was not read")


@pytest.mark.proves("paths-stay-inside")
async def test_a_folder_that_the_policy_lists_for_logs_is_read_and_no_link_out_of_it(box, tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch/a.out").write_text("loss: 0.5\n")
    (tmp_path / "scratch/b.out").symlink_to(tmp_path / "outside.json")
    listed = box.context.policy.policy.model_copy(update={"log_folders": (str(tmp_path / "scratch"),)})
    context = replace(box.context, policy=replace(box.context.policy, policy=listed))
    log = await log_files.read(context, str(tmp_path / "scratch/a.out"), "stdout")
    assert (log.file.path, log.file.note) == (str(tmp_path / "scratch/a.out"), None)
    assert log.text.lines[0].text == "loss: 0.5"
    out = await log_files.read(context, str(tmp_path / "scratch/b.out"), "stdout")
    assert (out.text, out.file.note) == (None, "lies outside the project and was not read")
    reply = await log_analysis.analyze_log(
        context, arguments.AnalyzeLog(path=str(tmp_path / "scratch/a.out")), Caller()
    )
    assert [file.path for file in reply.files] == [str(tmp_path / "scratch/a.out")]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/../../../x", "%x%%", "\x1b[2J"])
async def test_a_job_s_name_in_the_pattern_of_its_log_is_no_way_out(box, name):
    job = Job(
        job_id=JobId(7), name=name, state="FAILED", sources=("squeue",), stdout=f"{box.context.there.root}/logs/%x.out"
    )
    for path, kind in await log_paths.paths_of(box.context, job):
        assert (await log_files.read(box.context, path, kind)).text is None


async def test_a_project_below_a_link_is_the_project(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    box = toolbox(tmp_path / "link", NothingReachesSlurm())
    (tmp_path / "real" / "project" / "c.json").write_text('{"a": 1}')
    found = await project_paths.resolve(box.context.here, "config_path", str(tmp_path / "link/project/c.json"))
    assert found == str(tmp_path / "real/project/c.json")
    reply = await box.call("validate_config", arguments.ValidateConfig(config_path="c.json"))
    assert reply.config_summary


@pytest.mark.proves("files-are-private")
async def test_results_and_scripts_are_private_to_the_user(box, tmp_path):
    await box.call("save_result", result.SaveResult(name="n", status="success", output_dir="results/new"))
    [saved] = (tmp_path / "project/results/new").iterdir()
    assert (stat.S_IMODE(saved.stat().st_mode), stat.S_IMODE(saved.parent.stat().st_mode)) == (0o600, 0o700)


@pytest.mark.proves("secrets-are-masked")
async def test_a_saved_result_holds_no_secret_and_says_so(box, tmp_path):
    config = {"lr": 0.1, "db": {"password": "hunter2"}, "hub_token": "abcd1234efgh5678"}
    notes = "export AWS_SECRET_ACCESS_KEY=abcdefgh12345678"
    ask = result.SaveResult(name="n", status="success", config=config, notes=notes, metrics={"token_accuracy": 0.9})
    reply = await box.call("save_result", ask)
    written = (tmp_path / "project" / reply.file_path).read_text()
    assert not [secret for secret in ("hunter2", "abcd1234efgh5678", "abcdefgh12345678") if secret in written]
    assert '"token_accuracy": 0.9' in written
    assert "secrets were masked in config.db.password, config.hub_token, notes" in reply.summary


@pytest.mark.parametrize("path", ["results/../../x", "/etc", "link.json"])
async def test_the_error_names_the_field_and_the_mend(box, path):
    with pytest.raises(InputError, match=r"^config_path: .* leaves the project folder") as caught:
        await box.call("validate_config", arguments.ValidateConfig(config_path=path))
    assert caught.value.hint == "Name a file inside the project."


@pytest.mark.proves("paths-stay-inside")
@pytest.mark.parametrize(
    "option", ["--output=logs/authorized_keys", "--error=file.err", "--input=logs/id", "--chdir=logs"]
)
async def test_a_jobs_files_below_a_link_that_leads_out_are_refused_before_anything_is_made(scene: Scene, option: str):
    """A link can come with a repository, and its script looks as if it wrote into the project."""
    theirs = scene.project.parent / ".ssh"
    theirs.mkdir()
    (scene.project / "logs").symlink_to(theirs)
    (scene.project / "file.err").symlink_to(theirs / "config")
    scene.write(
        "a.sh", f"#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --mem=1G\n#SBATCH --time=10\n#SBATCH {option}\ntrue\n"
    )
    reply = await scene.submit("a.sh")

    assert (reply.status, [rule.id for rule in reply.decision.rules if rule.outcome == "deny"]) == ("blocked", ["path"])
    assert f"over a link to {theirs}" in reply.model_dump_json()
    assert (scene.sent(), list(theirs.iterdir())) == ([], [])


@pytest.mark.proves("paths-stay-inside")
async def test_a_link_that_is_put_in_place_of_a_log_folder_after_a_yes_is_refused(scene: Scene):
    scene.write("a.sh", f"{HEAD}true\n")
    (scene.project / "elsewhere").mkdir()
    (scene.project / "logs").symlink_to("elsewhere")
    dry = await scene.submit("a.sh", dry_run=True)
    (scene.project / "logs").unlink()
    (scene.project / "logs").symlink_to("/etc")

    assert (dry.status, (await scene.submit("a.sh")).status) == ("dry_run", "blocked")
