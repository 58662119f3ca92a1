"""The command `plan`, and docs/guides/planning.md: every command in it is run, in its order, in one fresh project."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.unit.cli.command_here import Run, command_here

from slurm_agent_tools.cli.main import main

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "planning.md").read_text()
LINES = [line for block in re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL) for line in block.splitlines()]
FILES = re.findall(r"```yaml\n# (\S+)\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    return command_here(monkeypatch, capfd)


@pytest.mark.proves("plans-are-short")
def test_every_command_of_the_guide_is_done_in_its_order(tmp_path: Path, run: Run) -> None:
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    said = []
    for line in LINES:
        done = run(line, tmp_path)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        said.append(done.stdout)
    assert "0-49%4" in said[0]
    assert "prepare" in said[1]
    picture = ET.parse(tmp_path / "plan.svg").getroot()  # noqa: S314 - made by this test
    assert picture.tag.endswith("svg")
    page = (tmp_path / "plan.html").read_text()
    assert "<svg " in page
    assert "<script" not in page
    assert "afterok:&lt;prepare&gt;" in page
    assert "missed" not in json.loads(said[3])
    assert "cost:" in said[4]
    assert "bound:" in said[5]


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    return tmp_path


@pytest.mark.proves("plans-refuse-by-name")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "FILE or --count"),
        (["a.yaml", "--count", "2"], "FILE or --count"),
        (["missing.yaml"], "missing.yaml"),
        (["--count", "1000000", "--expected", "1h", "--pool", "gpus=4"], "'job': count"),
        (["--count", "2", "--expected", "1h", "--need", "gpus=8", "--pool", "gpus=4"], "'job': gpus"),
        (["--count", "2", "--expected", "0", "--pool", "gpus=4"], "'job': expected: '0' is no length of time"),
        (["--count", "2", "--expected=-1h", "--pool", "gpus=4"], "'job': expected: '-1h' is no length of time"),
        (["--count", "2", "--pool", "gpus=4"], "'job': expected"),
        (["--count", "2", "--expected", "1h", "--pool", "gpus"], "pool"),
        (["--count", "2", "--expected", "1h", "--pool", "gpus=-1"], "gpus"),
        (["--count", "2", "--expected", "1h", "--pack"], "pool"),
    ],
)
def test_what_cannot_be_planned_is_said_with_the_field_and_the_mend(project, capsys, words, said):
    assert main(["plan", *words, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert said in error["message"]
    assert error["hint"]


@pytest.mark.proves("plans-refuse-by-name")
def test_a_file_of_too_many_jobs_is_refused_as_the_file_that_it_is(project, capsys):
    jobs = [{"name": f"j{number}", "expected": "1h"} for number in range(60_000)]
    for number, problem in ((60_000, "values"), (10_002, "10002 entries")):
        (project / "jobs.json").write_text(json.dumps(jobs[:number]))
        assert main(["plan", "jobs.json", "--pool", "gpus=4", "--json"]) == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert problem in error["message"]
        assert "config_path" not in error["message"]
        assert number == 60_000 or "'j10000'" in error["hint"]


def test_a_list_is_a_file_of_jobs_and_a_text_is_none(project, capsys):
    (project / "list.json").write_text(json.dumps([{"name": "a", "expected": "1h", "resources": {"gpus": 1}}]))
    (project / "text.yaml").write_text("words")
    assert main(["plan", "list.json", "--pool", "gpus=1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan_seconds"] == 3600
    assert main(["plan", "text.yaml", "--pool", "gpus=1", "--json"]) == 2


def test_a_length_that_yaml_reads_in_base_60_is_refused_and_one_in_quotes_is_read(project, capsys):
    (project / "bare.yaml").write_text("jobs:\n  - {name: a, expected: 1:30:00}\n")
    assert main(["plan", "bare.yaml", "--pool", "gpus=1", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert "jobs[0].expected: '1:30:00'" in error["message"]
    assert error["hint"] == 'Put it in quotes: "1:30:00".'
    (project / "quoted.yaml").write_text('jobs:\n  - {name: a, expected: "1:30:00"}\n')
    assert main(["plan", "quoted.yaml", "--pool", "gpus=1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan_seconds"] == 5400


def test_a_time_without_quotes_is_a_deadline(project, capsys):
    (project / "a.yaml").write_text("jobs: [{name: a, expected: 2h, deadline: 2999-01-01T08:00:00+01:00}]")
    (project / "a.toml").write_text('[[jobs]]\nname = "a"\nexpected = "2h"\ndeadline = 2999-01-01T08:00:00+01:00\n')
    for name in ("a.yaml", "a.toml"):
        assert main(["plan", name, "--pool", "gpus=1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["status"] == "planned"
    (project / "b.yaml").write_text("jobs: [{name: a, expected: 2h, deadline: 2999-01-01}]")
    assert main(["plan", "b.yaml", "--pool", "gpus=1", "--json"]) == 2
    assert "'2999-01-01' names no time zone" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_picture_is_never_written_over_a_file(project, capsys):
    (project / "old.svg").write_text("mine")
    words = ["plan", "--count", "2", "--expected", "1h", "--pool", "gpus=1", "--svg"]
    assert main([*words, "old.svg"]) == 2
    assert (project / "old.svg").read_text() == "mine"
    assert main([*words, "missing/new.svg"]) == 1
    assert main([*words, "new.svg"]) == 0
    assert (project / "new.svg").read_text().startswith("<svg ")


def test_a_deadline_that_no_order_meets_ends_with_1(project, capsys):
    (project / "a.json").write_text('[{"name": "a", "expected": "2h", "deadline": "1h", "resources": {"gpus": 1}}]')
    assert main(["plan", "a.json", "--pool", "gpus=1", "--json"]) == 1


def test_shares_are_packed_and_the_bound_is_beside_the_nodes(project, capsys):
    words = ["--count", "16", "--expected", "1h", "--need", "share=0.25,cpus=4", "--pool", "gpus=2,cpus=64"]
    assert main(["plan", *words, "--pack", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["bound"], found["gap"]) == (2, 2, 0)


def test_the_tool_takes_jobs_and_pools_as_json_text_or_as_a_file(project, capsys):
    (project / "jobs.json").write_text('[{"name": "a", "expected": "2h", "count": 8, "resources": {"gpus": 1}}]')
    one = ["plan_jobs", "--jobs", "jobs.json", "--pool", '{"gpus": 4}', "--json"]
    two = [
        "plan-jobs",
        "--jobs",
        (project / "jobs.json").read_text(),
        "--pool",
        '[{"gpus": 2}, {"name": "b", "gpus": 2}]',
        "--json",
    ]
    for words in (one, two):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["makespan_seconds"] == 4 * 3600
    assert main(["plan_jobs", "--jobs", "missing.json", "--json"]) == 2


def test_a_toolset_that_is_switched_off_has_no_plan(project, capsys, monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_TOOLSETS", '["core"]')
    assert main(["plan", "--count", "2", "--expected", "1h", "--pool", "gpus=1", "--json"]) == 2
    assert "switched off" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_plan_that_cannot_be_kept_is_printed_all_the_same(project, capsys):
    (project / "state").mkdir()
    (project / "state" / "plans").write_text("in the way")
    assert main(["plan", "--count", "2", "--expected", "1h", "--pool", "gpus=1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["makespan_seconds"] == 7200
    assert any("resources are missing" in text for text in found["assumptions"])
