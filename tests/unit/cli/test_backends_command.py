"""`backends list|show|new|check`, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_agent_tools.backends import page_templates, pages
from slurm_agent_tools.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(pages, "SITE", tmp_path / "etc")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(folder))
    return folder


@pytest.mark.parametrize("template", page_templates.TEMPLATES)
def test_a_page_is_begun_from_a_template_and_is_right_and_listed(project: Path, template: str, capsys: Capture) -> None:
    assert main.main(["backends", "new", "mine", "--from", template]) == 0
    assert (project / "backends" / "mine.yaml").read_text() == page_templates.template(template)
    assert main.main(["backends", "check"]) == 0
    capsys.readouterr()
    assert main.main(["backends", "list", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["backends"]
    assert (found["name"], found["kind"]) == ("mine", pages.read_page(project / "backends" / "mine.yaml", project).kind)
    assert main.main(["backends", "show", "mine"]) == 0
    shown = capsys.readouterr().out
    assert all(queue["name"] in shown and queue["purpose"] in shown for queue in found["partitions"])


def test_a_page_for_all_projects_lies_in_the_users_folder(project: Path, tmp_path: Path) -> None:
    assert main.main(["backends", "new", "lab", "--from", "slurm", "--user"]) == 0
    assert (tmp_path / "home" / ".config" / "slurm-agent-tools" / "backends" / "lab.yaml").is_file()
    assert not (project / "backends").exists()


def test_a_page_that_is_there_is_never_overwritten(project: Path, capsys: Capture) -> None:
    path = project / "backends" / "lab.yaml"
    path.parent.mkdir()
    path.write_text("mine")
    assert main.main(["backends", "new", "lab", "--from", "slurm"]) == 2
    assert "has a page already" in capsys.readouterr().err
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    "words", [["../x", "--from", "slurm"], ["Lab", "--from", "slurm"], ["lab", "--from", "lsf"], ["lab"]]
)
def test_names_and_templates_that_there_are_not_write_nothing(project: Path, words: list[str]) -> None:
    assert main.main(["backends", "new", *words]) == 2
    assert list(project.rglob("*.yaml")) == []


def test_check_tells_all_that_is_wrong_with_its_line_and_ends_with_2(project: Path, capsys: Capture) -> None:
    main.main(["backends", "new", "lab", "--from", "slurm"])
    path = project / "backends" / "lab.yaml"
    path.write_text(path.read_text().replace('"24h"', "24").replace("purpose: long", "purpose: fun"))
    capsys.readouterr()
    assert main.main(["backends", "check", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)["pages"][str(path)]
    assert [one["message"].split(":")[0] for one in told] == ["partitions[1].time_limit", "partitions[2].purpose"]
    assert "in line 19" in told[0]["hint"]
    assert main.main(["backends", "check", str(path)]) == 2
    assert "partitions[2].purpose" in capsys.readouterr().out


def test_without_a_page_list_says_how_to_begin_one(project: Path, capsys: Capture) -> None:
    assert main.main(["backends", "list"]) == 0
    assert "backends new NAME --from TEMPLATE" in capsys.readouterr().out


def test_show_of_a_name_that_has_no_page_says_what_lists_them(project: Path, capsys: Capture) -> None:
    assert main.main(["backends", "show", "lab"]) == 2
    assert "backends list" in capsys.readouterr().err


def test_what_does_not_count_is_shown_with_what_hides_it(project: Path, capsys: Capture) -> None:
    main.main(["backends", "new", "lab", "--from", "slurm"])
    main.main(["backends", "new", "lab", "--from", "cloud", "--user"])
    capsys.readouterr()
    main.main(["backends", "list"])
    shown = capsys.readouterr().out
    assert "lab: skypilot" in shown
    assert f"not counted: {project / 'backends' / 'lab.yaml'}" in shown


@pytest.mark.parametrize(
    ("words", "code", "status"), [(["--budget", "1"], 3, "ask_person"), (["--budget", "9"], 0, "chosen")]
)
def test_a_question_for_a_person_ends_with_3(
    project: Path, words: list[str], code: int, status: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("SLURM_AGENT_SLURM__BIN_DIR", str(project / "none"))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(project.parent / "state"))
    main.main(["backends", "new", "rented", "--from", "cloud"])
    capsys.readouterr()
    ask = ["choose_backend", "--resources", "gpus=1", "--expected", "2h", "--json"]
    assert main.main([*ask, *words]) == code
    assert json.loads(capsys.readouterr().out)["status"] == status


def test_where_no_backend_fits_the_exit_code_is_1(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("SLURM_AGENT_SLURM__BIN_DIR", str(project / "none"))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(project.parent / "state"))
    assert main.main(["choose_backend", "--resources", "gpus=1", "--expected", "2h", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "none_fits"
    assert "workstation up --yes" in found["alternatives"][0]["why_not"]


def test_check_and_list_say_what_of_a_page_was_never_filled_in(project: Path, capsys: Capture) -> None:
    main.main(["backends", "new", "lab", "--from", "slurm"])
    capsys.readouterr()
    assert main.main(["backends", "check"]) == 0
    assert "figures are examples" in capsys.readouterr().out
    path = project / "backends" / "lab.yaml"
    path.write_text(path.read_text().replace("5000.0", "400.0").replace("login.example.org", "login.lab"))
    left = "still has examples of the template in partitions gputest, partitions gpu, partitions gpulong: fill them in"
    assert main.main(["backends", "check"]) == 0
    assert capsys.readouterr().out == f"{path}: right, but it {left}\n"
    assert main.main(["backends", "list"]) == 0
    assert f"  it {left}\n" in capsys.readouterr().out
    assert main.main(["backends", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["backends"][0]["unfilled"] == left
    path.write_text(path.read_text().replace("30m", "20m").replace("24h", "12h").replace("7d", "5d"))
    assert main.main(["backends", "check"]) == 0
    assert capsys.readouterr().out == f"{path}: right\n"
    assert main.main(["backends", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"pages": {str(path): []}, "unfilled": {}}


def test_without_a_page_check_says_how_to_begin_one(project: Path, capsys: Capture) -> None:
    assert main.main(["backends", "check"]) == 0
    assert "backends new NAME --from TEMPLATE" in capsys.readouterr().out
