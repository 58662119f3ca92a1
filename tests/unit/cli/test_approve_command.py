"""The command approve: a person reads exactly what would run, and says yes or no at a terminal or by signature."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import anyio
import pytest
from tests.unit.cli.person import Person
from tests.unit.services.contexts import OneContext

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import approve_command
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.services import submit
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Approval

SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --mem=100G\n#SBATCH --time=10\nsleep 60 # \x1b[2J\n"


def question(context: ClusterContext, name: str = "a1", script: str = SCRIPT, **more: object) -> Approval:
    """A question as a submission that needs a person leaves it."""
    Path(context.project, "train.sh").write_text(script)
    context.store.mark_read(context.owner, "status", context.clock.now())
    with mock.patch("secrets.token_hex", return_value=name):
        asked = SubmitJob(script="train.sh", args=[name])
        answer = anyio.run(submit.submit_job, context, asked, Caller())
    assert answer.approval_id == name, answer
    made = context.store.approvals.find(context.owner, name)
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
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in lines if line["tool"] == "approve"]


@pytest.fixture
def person(monkeypatch) -> Iterator[Person]:
    made, real = Person(monkeypatch), os.open
    monkeypatch.setattr(
        os, "open", lambda path, *more, **names: real(made.name if path == "/dev/tty" else path, *more, **names)
    )
    yield made
    made.leaves()


# --- approve -----------------------------------------------------------------------------------------------------


def test_open_questions_are_listed_with_no_hidden_sign(context, capsys):
    question(context)
    question(context, "a2", granted=context.clock.now(), channel="signed")
    question(context, "a3", used=context.clock.now(), job_name="train\x1b")
    assert main.main(["approve"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert sorted(line.split("  ")[:2] for line in shown) == [["a1", "open"], ["a2", "approved (signed)"]]
    assert all(line.endswith(("train.sh", "train\\x1b")) for line in shown)


def test_without_questions_it_says_so(context, capsys):
    assert main.main(["approve"]) == 0
    assert capsys.readouterr().out == "No question is open in this project.\n"


def test_what_a_signature_has_to_cover_is_shown_to_the_byte(context, capsys):
    plan = question(context).plan
    assert main.main(["approve", "a1", "--show"]) == 0
    assert capsys.readouterr().out == plan


def test_a_yes_at_the_terminal_approves_once_and_is_logged(context, person, capsys):
    question(context)
    person.types("YES")
    assert main.main(["approve", "a1"]) == 0
    found = kept(context)
    assert found.granted is not None
    assert (found.channel, found.granted_by, found.declined) == ("terminal", f"typed as alice at {person.name}", None)
    seen = person.sees()
    assert "    5 | sleep 60 # \\x1b[2J" in seen  # the plan, and nothing that steers the terminal
    assert "A yes here is one person's convenience: every program of this user, a job too, can give it" in seen
    (entry,) = logged(context)
    assert "one person's convenience: every program of this user" in entry["worth"]
    told = (entry["event"], entry["channel"], entry["plan"], entry["by"])
    assert told == ("approved", "terminal", found.plan_sha256, "alice")
    assert capsys.readouterr().out == "Approved. The next identical submit_job uses it, once.\n"


@pytest.mark.parametrize(("words", "typed"), [([], "y"), ([], "yy"), ([], "n"), ([], "no"), ([], ""), (["--decline"], "yes"), (["--decline"], "y"), (["--decline"], "")])  # fmt: skip
def test_anything_else_changes_nothing(context, person, words, typed, capsys):
    question(context)
    person.types(typed)
    assert main.main(["approve", "a1", *words]) == 3
    found = kept(context)
    assert (found.granted, found.declined, logged(context)) == (None, None, [])
    told = f": only the word {'no' if words else 'yes'} counts" if typed else ""
    assert capsys.readouterr().out == f"Nothing was changed{told}.\n"


@pytest.mark.parametrize("typed", ["yes", "Yes"])
def test_the_question_says_which_word_counts_and_what_enter_does(context, person, typed):
    question(context)
    person.types(typed)
    assert main.main(["approve", "a1"]) == 0
    assert kept(context).granted is not None
    assert "Type yes to approve exactly this, once; Enter alone changes nothing: " in person.sees()


@pytest.mark.parametrize("typed", ["no"])
def test_a_no_is_written_down(context, person, typed):
    question(context)
    person.types(typed)
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
        ({"expires": datetime(2020, 1, 1, tzinfo=UTC)}, "has expired"),
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
    monkeypatch.setattr(approve_command, "OpenedContexts", lambda _: OneContext(other))
    question(context)
    person.types("yes")
    assert main.main(["approve", "a1"]) == 2
    assert "Channels of this policy: signed." in capsys.readouterr().err


# --- what is read is what would run ----------------------------------------------------------------------------------


WAYS = [[], ["--show"], ["--sign", "key"], ["--signature", "file"]]


@pytest.mark.parametrize("words", WAYS)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.write_text(SCRIPT.replace("60", "61")), "the script differs from line 5 on"),
        (lambda path: path.write_text(SCRIPT + "\nrm -rf x\n"), "sha256 was"),
        (lambda path: path.unlink(), "train.sh"),
    ],
)
def test_a_question_about_a_script_that_is_another_by_now_is_not_shown(context, person, words, change, said, capsys):
    question(context)
    change(Path(context.project, "train.sh"))
    person.types("yes")
    assert main.main(["approve", "a1", *words]) == 2
    shown = capsys.readouterr()
    assert ("is not what would run now" in shown.err, said in shown.err, shown.out) == (True, True, "")
    assert kept(context).granted is None


@pytest.mark.parametrize(
    "change",
    [
        lambda item: {"plan": item.plan.replace("sleep 60", "sleep 1 ")},
        lambda item: {"plan": item.plan.replace("memory 100G", "memory 1G").replace('["a1"]', '["b"]')},
        lambda item: {"plan": item.plan.replace(f"id: {item.id}", "id: a9")},
        lambda _: {"plan_sha256": "0" * 64},
        lambda item: {"expires": item.expires + timedelta(days=400)},
        lambda _: {"request": None},
        lambda item: {"request": item.request.replace("a1", "a9")},
    ],
)
def test_a_question_that_a_job_exchanged_in_the_ledger_is_not_shown(context, person, change, capsys):
    item = question(context)
    context.store.approvals.update(item, **change(item))
    person.types("yes")
    assert main.main(["approve", "a1"]) == 2
    assert "is not what would run now" in capsys.readouterr().err
    assert kept(context).granted is None


def exchanging(context, monkeypatch, change) -> None:
    """Do something while the person reads."""
    answer = approve_command._answer
    monkeypatch.setattr(approve_command, "_answer", lambda *words: (change(), answer(*words))[1])


def test_a_yes_to_a_script_that_changes_while_it_is_read_is_void(context, person, monkeypatch, capsys):
    question(context)
    script = Path(context.project, "train.sh")
    exchanging(context, monkeypatch, lambda: script.write_text(SCRIPT + "rm -rf x\n"))
    person.types("yes")
    assert main.main(["approve", "a1"]) == 2
    assert "the script differs from line 6 on" in capsys.readouterr().err
    assert kept(context).granted is None


def test_a_yes_to_a_question_that_is_exchanged_while_it_is_read_is_void(context, person, monkeypatch, capsys):
    item = question(context)
    other = item.plan.replace("memory 100G", "memory 900G")
    exchanging(context, monkeypatch, lambda: context.store.approvals.update(item, plan=other))
    person.types("yes")
    assert main.main(["approve", "a1"]) == 2
    assert "was exchanged while it was read" in capsys.readouterr().err
    assert kept(context).granted is None


def test_a_long_script_is_shown_whole_page_by_page_and_by_no_other_program(context, person, monkeypatch, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    pager.chmod(0o755)
    for name in ("PAGER", "LESSOPEN", "MANPAGER"):
        monkeypatch.setenv(name, str(pager))
    question(context, script=SCRIPT + "".join(f"echo {number}\n" for number in range(200)))
    person.types("\n" * 4 + "yes")
    assert main.main(["approve", "a1"]) == 0
    seen = person.sees().replace("\r", "")
    assert all(f"{number + 6:>5} | echo {number}\n" in seen for number in range(200))
    assert seen.count("--- page ") == 4
    assert seen.index("--- page 4 of 5") < seen.index("echo 199") < seen.index("Type yes to approve")
    assert not (tmp_path / "asked").exists()


def test_who_stops_before_the_last_page_said_nothing(context, person):
    question(context, script=SCRIPT + "echo x\n" * 200)
    person.types("yes\nyes\nyes\nyes\nyes")
    assert main.main(["approve", "a1"]) == 3
    assert kept(context).granted is None


def test_what_was_typed_or_pasted_before_it_was_asked_answers_nothing(context, person):
    question(context)
    person.types_ahead("yes")
    person.types("no")
    assert main.main(["approve", "a1"]) == 3
    assert kept(context).granted is None


def test_a_no_needs_no_plan_that_still_holds(context, person):
    question(context)
    Path(context.project, "train.sh").unlink()
    person.types("no")
    assert main.main(["approve", "a1", "--decline"]) == 0
    assert kept(context).declined is not None


# --- by signature -----------------------------------------------------------------------------------------------------


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
    monkeypatch.setattr(approve_command, "OpenedContexts", lambda _: OneContext(made))
    return made


def test_a_signature_of_somebody_whom_the_policy_lists_approves(signing, keys, person, capsys):
    question(signing)
    person.types("sign")
    assert main.main(["approve", "a1", "--sign", str(keys["ada"])]) == 0
    found = kept(signing)
    assert (found.channel, found.granted_by) == ("signed", "ada@lab")
    assert found.signature.startswith("-----BEGIN SSH SIGNATURE-----")
    assert "signature of ada@lab" in capsys.readouterr().out
    assert logged(signing)[0]["by"] == "ada@lab"
    assert "    5 | sleep 60 # \\x1b[2J" in person.sees()


def test_where_nobody_can_read_it_nothing_is_signed(signing, keys, capsys, monkeypatch):
    question(signing)
    monkeypatch.setattr(sys, "stdin", io.StringIO("sign\n"))
    assert main.main(["approve", "a1", "--sign", str(keys["ada"])]) == 1
    assert "needs a person at a terminal" in capsys.readouterr().err


def test_who_reads_it_and_types_something_else_signs_nothing(signing, keys, person):
    question(signing)
    person.types("yes")
    assert main.main(["approve", "a1", "--sign", str(keys["ada"])]) == 3
    assert (kept(signing).granted, logged(signing)) == (None, [])


def test_a_signature_that_was_made_elsewhere_counts_for_exactly_its_plan(signing, keys, tmp_path, capsys):
    plan = question(signing).plan
    for name, text in (("right", plan), ("wrong", plan + "x")):
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
def test_a_signature_that_does_not_count_approves_nothing(signing, keys, person, tmp_path, words, said, capsys):
    question(signing)
    person.types("sign")
    (tmp_path / "plain").write_text("yes")
    paths = {**keys, "none": tmp_path / "none", "plain": tmp_path / "plain"}
    assert main.main(["approve", "a1", *(word.format(**paths) for word in words)]) == 2
    assert said in capsys.readouterr().err
    assert (kept(signing).granted, logged(signing)) == (None, [])


def test_without_signers_no_signature_counts(context, keys, person, capsys):
    question(context)
    person.types("sign")
    assert main.main(["approve", "a1", "--sign", str(keys["ada"])]) == 2
    assert "no signature counts" in capsys.readouterr().err
