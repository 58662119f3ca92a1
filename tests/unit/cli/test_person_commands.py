"""What a person decides or reads at a terminal: a report, trusting a policy, answering a login node."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from slurm_agent_tools.cli import main, terminal
from slurm_agent_tools.policy import policy_files

# --- report ------------------------------------------------------------------------------------------------------


def test_a_finished_job_is_reported_as_one_document(context, slurm, capsys):
    slurm.submit("#!/bin/bash\nsleep 5\nexit 3\n", "--time=5", cwd=context.project)
    slurm.clock.move(60)
    assert main.main(["report", "1", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["report"]["text"].startswith("## JOB SUBMISSION SUMMARY\n- Job ID: 1\n")


def test_a_person_reads_the_report_as_markdown(context, slurm, capsys):
    slurm.submit("#!/bin/bash\nsleep 5\n", "--time=5", cwd=context.project)
    slurm.clock.move(60)
    assert main.main(["report", "1"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "## JOB SUBMISSION SUMMARY"
    assert "- Status: COMPLETED" in shown


def test_a_job_that_goes_on_has_no_report_yet(context, slurm, capsys):
    slurm.submit("#!/bin/bash\nsleep 600\n", "--time=20", cwd=context.project)
    slurm.clock.move(5)
    assert main.main(["report", "1"]) == 4
    assert "report" in capsys.readouterr().out


def test_a_job_that_there_is_not_is_said(context, capsys):
    assert main.main(["report", "77"]) == 2
    assert "77" in capsys.readouterr().err


# --- policy trust ------------------------------------------------------------------------------------------------


@pytest.fixture
def looser(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(policy_files, "SITE", tmp_path / "none.yaml")
    path = tmp_path / "policy.yaml"
    path.write_text("name: looser\nlimits: {max_concurrent_jobs: 77}\n")
    return path


def test_a_person_trusts_a_file_as_it_is_and_takes_it_back(looser, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True, readline=lambda: "trust\n"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main.main(["policy", "trust", str(looser)]) == 0
    shown = capsys.readouterr().out
    assert "limits.max_concurrent_jobs" in shown
    assert "-> 77" in shown
    record = json.loads(policy_files.trust_record().read_text())
    assert record["path"] == str(looser)
    assert policy_files.trust_record().stat().st_mode & 0o777 == 0o600
    assert main.main(["policy", "trust", "--remove"]) == 0
    assert not policy_files.trust_record().exists()
    assert main.main(["policy", "trust", "--remove"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No file was trusted."


def test_any_other_word_trusts_nothing(looser, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True, readline=lambda: "yes\n"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main.main(["policy", "trust", str(looser)]) == 3
    assert not policy_files.trust_record().exists()


def test_trusting_needs_a_terminal_and_a_file(looser, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("trust\n"))
    assert main.main(["policy", "trust", str(looser)]) == 1
    assert "needs a person at a terminal" in capsys.readouterr().err
    assert main.main(["policy", "trust"]) == 2
    assert not policy_files.trust_record().exists()


# --- a login node's question -------------------------------------------------------------------------------------


def asked(*prompts: tuple[str, bool]) -> list[str] | None:
    return anyio.run(terminal.at_terminal, "ada@login", "Look at your \x1b[31mphone", prompts)


def test_a_login_node_is_answered_at_the_terminal_and_hidden_prompts_stay_hidden(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True, readline=lambda: "ada\r\n"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    hidden = []
    monkeypatch.setattr("getpass.getpass", lambda prompt: hidden.append(prompt) or "493817")
    assert asked(("Name: ", True), ("Code: ", False)) == ["ada", "493817"]
    assert hidden == ["Code: "]
    shown = capsys.readouterr().err
    assert shown == "ada@login\nLook at your \\x1b[31mphone\nName: "


def test_a_person_who_goes_away_gives_no_answer(monkeypatch):
    def gone(_: str) -> str:
        raise EOFError

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", gone)
    assert asked(("Code: ", False)) is None


def test_without_a_terminal_nobody_is_asked(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("493817\n"))
    assert asked(("Code: ", True)) is None
