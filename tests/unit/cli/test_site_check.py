"""What `site check` says of the machine that it runs on: the sockets, the controller's settings, and a ticket's trial."""

from __future__ import annotations

import grp
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.cli.site_of_machine import ACCOUNT, Answer, about, installation, settings, slurm_answers

from slurm_agent_tools.cli.commands import site_check, site_trial
from slurm_agent_tools.cli.commands.site_install import Installation
from slurm_agent_tools.models.submission_ticket import COMMENT_WORD


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    return installation(tmp_path, monkeypatch)


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    return slurm_answers(monkeypatch)


# --- the machine ---------------------------------------------------------------------------------------------------------


def test_an_account_without_login_and_further_groups_is_right(site: Installation) -> None:
    assert about(site, "account").outcome == "ok"


def test_an_exception_that_names_no_users_is_told(site: Installation) -> None:
    item = "- {rule: gpus, reason: a paper of the group, until: 2099-01-01, projects: [/home/ada/*]%s}\n"
    for more, wrong in (("", True), (", users: [ada]", False)):
        site.config.policy.write_text("exceptions:\n" + item % more)
        found = [one for one in site_check.findings(site) if one.about == "exceptions"]
        assert [(one.outcome, one.says[:17]) for one in found] == [("wrong", "1 name no users a")] * wrong


def test_a_site_rule_about_what_no_ticket_binds_is_told(site: Installation) -> None:
    pytest.importorskip("cel_expr_python")
    rule = "site_rules:\n- {id: own, level: deny, message: Too few., remedy: Ask for more., when: '%s'}\n"
    for when, outcomes in (("job.gpus > 2", []), ('"nodelist" in job.options || job.name == "a"', ["note"])):
        site.config.policy.write_text(rule % when)
        found = [one for one in site_check.findings(site) if one.about == "site rules"]
        assert [one.outcome for one in found] == outcomes
        assert all(one.says.startswith("own speaks of job.options, job.name, which") for one in found)


@pytest.mark.parametrize(
    ("principals", "told"),
    [(["ada"], []), (["ada", "grace"], ["ada,grace"]), (["ada,grace"], ["ada,grace"]), (["*@lab"], ["*@lab"])],
)
def test_a_key_for_several_names_is_told(site: Installation, principals: list[str], told: list[str]) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1mVt0e3C4GgT6Zl0iYbZ2bqv0Fh8m1Z3bE2c5xYzAB"
    site.config.policy.write_text(f"allowed_signers: {json.dumps([f'{name} {key}' for name in principals])}\n")
    found = [one for one in site_check.findings(site) if one.about == "signers"]
    assert [(one.outcome, one.says.split()[3]) for one in found] == [("note", name) for name in told]
    assert about(site, "who may approve").says == f"{len(principals)} by signature, 0 by passkey"


def test_a_socket_of_which_nobody_listens_is_wrong_and_one_for_all_is_right(site: Installation) -> None:
    silent = about(site, "socket")
    assert (silent.outcome, "does not answer" in silent.says) == ("wrong", True)
    assert "setpriv" in silent.mend
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(site.config.socket))
        listening.listen()
        site.config.socket.chmod(0o600)
        narrow = about(site, "socket")
        assert (narrow.outcome, "not of every user" in narrow.says) == ("wrong", True)
        site.config.socket.chmod(0o666)
        assert about(site, "socket").outcome == "ok"


def page(site: Installation, group: str | None) -> Installation:
    """The same with a page on its socket, which is this process's."""
    told = {"page_origin": "https://approve.example.org", "page_group": group}
    return Installation(site.config.model_copy(update=told), site.place, site.machine)


def test_a_page_that_every_local_user_reaches_is_told_with_what_to_set(site: Installation) -> None:
    site = page(site, None)
    assert about(site, "page").outcome == "wrong"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(site.config.page_socket))
        listening.listen()
        site.config.page_socket.chmod(0o666)
        found = about(site, "page")
    assert (found.outcome, "every local user" in found.says, "page_group" in found.mend) == ("note", True, True)


def test_a_page_is_for_its_group_alone_and_answers(site: Installation) -> None:
    group = grp.getgrgid(os.getgid()).gr_name
    site = page(site, group)
    path = site.config.page_socket
    assert "does not answer" in about(site, "page").says
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        path.chmod(0o666)
        found = about(site, "page")
        assert (found.outcome, found.mend) == ("wrong", f"chgrp {group} {path}; chmod 0660 {path}")
        path.chmod(0o660)
        found = about(site, "page")
        assert (found.outcome, found.says) == ("ok", f"{path} takes connections of {group}")
    found = about(site, "page")
    assert (found.outcome, "does not answer" in found.says) == ("wrong", True)


# --- the controller ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [None, 1])
def test_a_controller_that_does_not_answer_is_not_known(
    site: Installation, slurm: dict[str, Answer], code: int | None
) -> None:
    if code is not None:
        slurm["scontrol"] = lambda _: (code, "slurm_load_ctl_conf error: Unable to contact slurm controller")
    found = about(site, "controller")
    assert (found.outcome, found.says) == ("not known", "scontrol show config does not answer here")


@pytest.mark.parametrize(
    ("name", "told", "says"),
    [
        ("controller", {"JobSubmitPlugins": "(null)"}, "JobSubmitPlugins="),
        ("controller", {"JobSubmitPlugins": "throttle"}, "JobSubmitPlugins=throttle"),
        ("controller", {"JobSubmitPlugins": "lua,all_partitions"}, "nobody judges"),
        ("SlurmUser", {"SlurmUser": "other(901)"}, "is other, not"),
        ("plugin's folder", {"SLURM_CONF": "/elsewhere/slurm.conf"}, "does not lie beside it"),
        ("PrivateData", {"PrivateData": "accounts,jobs"}, "hides the users' jobs"),
        ("RequeueExit", {"RequeueExit": "100"}, "runs again under its ticket"),
        ("RequeueExitHold", {"RequeueExitHold": "101"}, "runs again under its ticket"),
        ("AllowSpecResourcesUsage", {"AllowSpecResourcesUsage": "Yes"}, "whole nodes"),
        ("MaxMemPerCPU", {"MaxMemPerCPU": "4096"}, "told of those of partitions alone"),
        ("MaxMemPerCPU", {"MaxMemPerCPU": "100", "SLURM_VERSION": "26.05.5"}, "told of those of partitions alone"),
        ("PrologFlags", {"PrologFlags": "Alloc,ForceRequeueOnFail"}, "runs again under its ticket"),
        ("SelectTypeParameters", {"SelectTypeParameters": "CR_SOCKET_MEMORY"}, "whole sockets"),
        (
            "SelectTypeParameters",
            {"SelectTypeParameters": "CR_CORE_MEMORY,ENFORCE_BINDING_GRES"},
            "more CPUs than it shows",
        ),
    ],
)
def test_what_slurm_conf_says_against_the_service_is_wrong(
    site: Installation, slurm: dict[str, Answer], name: str, told: dict[str, str], says: str
) -> None:
    slurm["scontrol"] = settings(**told)
    found = about(site, name)
    assert (found.outcome, says in found.says) == ("wrong", True)
    assert found.mend


@pytest.mark.parametrize(
    ("mode", "says"), [(0o755, ""), (0o1777, ""), (0o777, "is not root's alone"), (0o775, "is not root's alone")]
)
def test_a_folder_that_somebody_else_could_put_another_one_in_the_place_of_is_told(
    site: Installation, slurm: dict[str, Answer], monkeypatch: pytest.MonkeyPatch, mode: int, says: str
) -> None:
    monkeypatch.setattr(Installation, "right", lambda *_: True)
    site.config.tickets.parent.chmod(mode)
    found = about(site, str(site.config.tickets))
    assert found.outcome == ("wrong" if says else "ok")
    assert says in found.says


def test_a_controller_that_is_set_up_is_told_by_one_line(site: Installation, slurm: dict[str, Answer]) -> None:
    slurm["scontrol"] = settings(
        JobSubmitPlugins="throttle,job_submit/lua,", SlurmUser=f"{site.config.slurm_user}(0)", PrivateData="none",
        SLURM_CONF=str(site.config.plugin.parent / "slurm.conf"), RequeueExit="(null)", AllowSpecResourcesUsage="No",
        MaxMemPerCPU="UNLIMITED",
    )  # fmt: skip
    names = [one.about for one in site_check.findings(site)]
    assert names[-3:] == ["controller", "partitions", "a trial ticket"]
    assert about(site, "controller").outcome == "ok"


@pytest.mark.parametrize(("enforced", "wrong"), [("(null)", True), ("limits", True), ("associations,limits", False)])
def test_accounts_that_nobody_enforces_cannot_tell_agents_from_others(
    site: Installation, slurm: dict[str, Answer], enforced: str, wrong: bool
) -> None:
    site = Installation(site.config.model_copy(update={"agent_accounts": ("agents",)}), site.place, site.machine)
    slurm["scontrol"] = settings(AccountingStorageEnforce=enforced)
    assert ("accounts" in [one.about for one in site_check.findings(site)]) == wrong


# --- a ticket's trial ----------------------------------------------------------------------------------------------------


def spending(folder: Path, said: list[Sequence[str]]) -> Answer:
    """A controller with the plugin: it spends a ticket once."""

    def submit(argv: Sequence[str]) -> tuple[int, str]:
        said.append(argv)
        [word] = [word.removeprefix("--comment=") for word in argv if word.startswith("--comment=")]
        nonce = word.removeprefix(COMMENT_WORD)
        if not (folder / nonce).exists():
            return 1, "sbatch: error: the ticket is used already"
        (folder / nonce).rename(folder / "used" / nonce)
        return 0, "sbatch: Job 7 to start at 2026-11-24T00:00:00"

    return submit


def test_a_ticket_is_tried_as_the_account_and_leaves_nothing(site: Installation, slurm: dict[str, Answer]) -> None:
    said: list[Sequence[str]] = []
    slurm["sbatch"] = spending(site.config.tickets, said)

    found = site_trial.trial(site)

    assert (found.outcome, found.says) == ("ok", "the controller spent it, and refused it the second time")
    assert [argv[:3] for argv in said] == [["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}"]] * 2
    assert all("--test-only" in argv for argv in said)
    assert [path for path in site.config.tickets.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("answer", "says"),
    [("sbatch: Job 7 to start at 2026-11-24T00:00:00", "Job 7 to start"), ("", "it let both in"),
     ("one\nsbatch: error: the ticket is for another user\n", "the ticket is for another user")],
)  # fmt: skip
def test_a_controller_that_does_not_spend_it_is_wrong(
    site: Installation, slurm: dict[str, Answer], answer: str, says: str
) -> None:
    slurm["sbatch"] = lambda _: (0, answer)
    found = site_trial.trial(site)
    assert (found.outcome, says in found.says) == ("wrong", True)
    assert found.mend.startswith("scontrol reconfigure")


def test_a_trial_that_cannot_be_made_is_wrong_and_one_by_others_than_root_not_known(
    site: Installation, slurm: dict[str, Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = site_trial.trial(site)
    assert (found.outcome, found.mend) == ("wrong", "slurm-agent-tools site install --yes")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert site_trial.trial(site).outcome == "not known"
