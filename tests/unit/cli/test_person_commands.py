"""What a person decides at a terminal: approving a request, trusting a policy, answering a login node."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from tests.unit.services.contexts import OneDesk
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.cli import main, terminal
from slurm_agent_tools.cli.commands import approve_command, report_command
from slurm_agent_tools.policy import policy_files
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Approval

PLAN = "Submit train.sh\nwith 640G \x1b[2J\n"


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def context(slurm, tmp_path, monkeypatch) -> ClusterContext:
    """What each command opens; both channels count."""
    made = fake_toolbox(tmp_path, slurm).context
    policy = made.policy.policy.model_copy(update={"approval_channels": ("terminal", "signed")})
    made = replace(made, policy=replace(made.policy, policy=policy))
    for command in (approve_command, report_command):
        monkeypatch.setattr(command, "OpenedContexts", lambda _: OneDesk(made))
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    return made


def question(context: ClusterContext, name: str = "a1", **more: object) -> Approval:
    now = datetime.now(UTC)
    made = Approval(name, f"sha-{name}", PLAN, "train\x1b", now, now, now + timedelta(hours=1))
    context.store.approvals.ask(context.owner, made)
    return context.store.approvals.update(made, **more) if more else made


def kept(context: ClusterContext, name: str = "a1") -> Approval:
    """The question as the ledger has it now; the command closed its own."""
    store = Store(context.settings.state_dir)
    found = store.approvals.find(context.owner, name)
    store.close()
    assert found is not None
    return found


def logged(context: ClusterContext) -> list[dict[str, object]]:
    path = context.store.decisions
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def person(monkeypatch) -> Iterator[SimpleNamespace]:
    """Somebody at a terminal: `types` what is typed there, `sees` what was written to it."""
    ours, theirs = pty.openpty()
    name, real = os.ttyname(theirs), os.open
    monkeypatch.setattr(os, "open", lambda path, *more: real(name if path == "/dev/tty" else path, *more))

    def types(line: str) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True, fileno=lambda: theirs))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        os.write(ours, f"{line}\n".encode())

    yield SimpleNamespace(types=types, sees=lambda: os.read(ours, 65536).decode(), name=name)
    for handle in (ours, theirs):
        os.close(handle)


# --- approve -----------------------------------------------------------------------------------------------------


def test_open_questions_are_listed_with_no_hidden_sign(context, capsys):
    question(context)
    question(context, "a2", granted=datetime.now(UTC), channel="signed")
    question(context, "a3", used=datetime.now(UTC))
    assert main.main(["approve"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[:2] for line in shown] == [["a2", "approved (signed)"], ["a1", "open"]]
    assert all(line.endswith("train\\x1b") for line in shown)


def test_without_questions_it_says_so(context, capsys):
    assert main.main(["approve"]) == 0
    assert capsys.readouterr().out == "No question is open in this project.\n"


def test_what_a_signature_has_to_cover_is_shown_to_the_byte(context, capsys):
    question(context)
    assert main.main(["approve", "a1", "--show"]) == 0
    assert capsys.readouterr().out == PLAN


def test_a_yes_at_the_terminal_approves_once_and_is_logged(context, person, capsys):
    question(context)
    person.types("YES")
    assert main.main(["approve", "a1"]) == 0
    found = kept(context)
    assert found.granted is not None
    assert (found.channel, found.granted_by, found.declined) == ("terminal", f"alice at {person.name}", None)
    assert "with 640G \\x1b[2J" in person.sees()  # the plan, and nothing that steers the terminal
    (entry,) = logged(context)
    assert (entry["event"], entry["channel"], entry["plan"], entry["by"]) == ("approved", "terminal", "sha-a1", "alice")
    assert capsys.readouterr().out == "Approved. The next identical submit_job uses it, once.\n"


@pytest.mark.parametrize(("words", "typed"), [([], "y"), ([], "no"), ([], ""), (["--decline"], "yes")])
def test_anything_else_changes_nothing(context, person, words, typed, capsys):
    question(context)
    person.types(typed)
    assert main.main(["approve", "a1", *words]) == 3
    found = kept(context)
    assert (found.granted, found.declined, logged(context)) == (None, None, [])
    assert capsys.readouterr().out == "Nothing was changed.\n"


def test_a_no_is_written_down(context, person):
    question(context)
    person.types("no")
    assert main.main(["approve", "a1", "--decline"]) == 0
    found = kept(context)
    assert (found.granted, found.channel) == (None, "terminal")
    assert found.declined is not None
    assert logged(context)[0]["event"] == "declined"


def test_a_pipe_is_no_person(context, capsys, monkeypatch):
    question(context)
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    assert main.main(["approve", "a1"]) == 1
    assert "needs a person at a terminal" in capsys.readouterr().err
    assert kept(context).granted is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"used": datetime(2026, 1, 1, tzinfo=UTC)}, "was used"),
        ({"declined": datetime(2026, 1, 1, tzinfo=UTC)}, "was declined"),
        ({"expires": datetime(2026, 1, 1, tzinfo=UTC)}, "has expired"),
        (None, "is no question of this user"),
    ],
)
def test_what_is_settled_or_not_there_cannot_be_approved(context, person, changes, said, capsys):
    if changes is not None:
        question(context, **changes)
    person.types("yes")
    assert main.main(["approve", "a1"]) == 2
    assert said in capsys.readouterr().err


def test_a_channel_that_the_policy_does_not_count_is_refused(context, person, capsys, monkeypatch):
    policy = context.policy.policy.model_copy(update={"approval_channels": ("signed",)})
    other = replace(context, policy=replace(context.policy, policy=policy))
    monkeypatch.setattr(approve_command, "OpenedContexts", lambda _: OneDesk(other))
    question(context)
    person.types("yes")
    assert main.main(["approve", "a1"]) == 2
    assert "Channels of this policy: signed." in capsys.readouterr().err


@pytest.fixture
def keys(tmp_path) -> dict[str, Path]:
    """A person's key and a stranger's."""
    found = {name: tmp_path / name for name in ("ada", "stranger")}
    for path in found.values():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return found


@pytest.fixture
def signing(context, keys, monkeypatch) -> ClusterContext:
    signers = (f"ada@lab {(keys['ada'].with_suffix('.pub')).read_text().strip()}",)
    policy = context.policy.policy.model_copy(update={"allowed_signers": signers})
    made = replace(context, policy=replace(context.policy, policy=policy))
    monkeypatch.setattr(approve_command, "OpenedContexts", lambda _: OneDesk(made))
    return made


def test_a_signature_of_somebody_whom_the_policy_lists_approves(signing, keys, capsys):
    question(signing)
    assert main.main(["approve", "a1", "--sign", str(keys["ada"])]) == 0
    found = kept(signing)
    assert (found.channel, found.granted_by) == ("signed", "ada@lab")
    assert found.signature.startswith("-----BEGIN SSH SIGNATURE-----")
    assert "signature of ada@lab" in capsys.readouterr().out
    assert logged(signing)[0]["by"] == "ada@lab"


def test_a_signature_that_was_made_elsewhere_counts_for_exactly_its_plan(signing, keys, tmp_path, capsys):
    question(signing)
    for name, text in (("right", PLAN), ("wrong", PLAN + "x")):
        (tmp_path / name).write_text(text)
        words = ["ssh-keygen", "-q", "-Y", "sign", "-n", "slurm-agent-tools", "-f", str(keys["ada"])]
        subprocess.run([*words, str(tmp_path / name)], check=True, capture_output=True)
    assert main.main(["approve", "a1", "--signature", str(tmp_path / "wrong.sig")]) == 2
    assert "does not fit this plan" in capsys.readouterr().err
    assert kept(signing).granted is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sign", "{stranger}"], "is by nobody whom the policy lists"),
        (["--sign", "{none}"], "could not be used to sign"),
        (["--signature", "{none}"], "cannot be read"),
        (["--signature", "{plain}"], "is not an SSH signature"),
    ],
)
def test_a_signature_that_does_not_count_approves_nothing(signing, keys, tmp_path, words, said, capsys):
    question(signing)
    (tmp_path / "plain").write_text("yes")
    paths = {**keys, "none": tmp_path / "none", "plain": tmp_path / "plain"}
    assert main.main(["approve", "a1", *(word.format(**paths) for word in words)]) == 2
    assert said in capsys.readouterr().err
    assert (kept(signing).granted, logged(signing)) == (None, [])


def test_without_signers_no_signature_counts(context, keys, capsys):
    question(context)
    assert main.main(["approve", "a1", "--sign", str(keys["ada"])]) == 2
    assert "no signature counts" in capsys.readouterr().err


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
