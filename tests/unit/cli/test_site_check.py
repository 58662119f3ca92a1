"""What `site check` says of the machine that it runs on: the sockets, the controller's settings, and a ticket's trial."""

from __future__ import annotations

import grp
import os
import pwd
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from slurm_agent_tools.cli.commands import site_check, site_trial
from slurm_agent_tools.cli.commands.site_install import Installation
from slurm_agent_tools.cli.commands.site_trial import SiteFinding
from slurm_agent_tools.models.submission_ticket import COMMENT_WORD
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.server.site.site_layout import TargetSystem
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.process import EndedProcess

ACCOUNT = "nobody"

Answer = Callable[[Sequence[str]], tuple[int, str]]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A service of this machine, of which the folders of tickets alone are there."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("tickets/used", "run"):
        (tmp_path / name).mkdir(parents=True)
    config = SiteConfig.model_validate({
        "account": ACCOUNT, "slurm_user": pwd.getpwuid(os.getuid()).pw_name, "socket": tmp_path / "run/site.sock",
        "state": tmp_path / "state", "policy": tmp_path / "policy.yaml", "tickets": tmp_path / "tickets",
        "plugin": tmp_path / "slurm/job_submit.lua", "units": tmp_path / "units", "bin_dir": tmp_path / "bin",
    })  # fmt: skip
    return Installation(config, tmp_path / "site.toml", TargetSystem())


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    """What Slurm's commands answer, by their names; the others cannot be started."""
    answers: dict[str, Answer] = {}

    def answered(argv: Sequence[str], **_: object) -> EndedProcess:
        name = next((Path(word).name for word in argv if Path(word).name in {"scontrol", "sbatch"}), "")
        if name not in answers:
            raise FileNotFoundError(2, "No such file or directory", name)
        code, text = answers[name](argv)
        return EndedProcess(code, text.encode(), b"", 0.0, truncated=False)

    monkeypatch.setattr(process, "answered", answered)
    return answers


def about(site: Installation, name: str) -> SiteFinding:
    [found] = [one for one in site_check.findings(site) if one.about == name]
    return found


def settings(**told: str) -> Answer:
    """`scontrol show config` with these settings."""
    rows = "".join(f"{name:<24}= {value}\n" for name, value in told.items())
    return lambda _: (0, f"Configuration data as of 2026-11-24T00:00:00\n{rows}")


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


PARTITION = (
    "PartitionName={} AllowGroups=ALL Default=NO DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP "
    "OverSubscribe={} TotalCPUs=64 TotalNodes=2 JobDefaults={} TRES=cpu=64,gres/gpu=8\n"
)


NODE = (
    "NodeName=n{} Arch=x86_64 CoresPerSocket=16 CPUAlloc=0 CPUTot=32 CPULoad=0.00 Gres=gpu:a100:{} GresUsed=gpu:a100:0 "
    "RealMemory=256000 AllocMem=0 FreeMem=1000 Sockets=2 Boards=1 State=IDLE ThreadsPerCore={} Partitions=cpu \n"
)


def partitions(
    theirs: Sequence[str], alone: str = "NO", defaults: str = "(null)", nodes: Sequence[tuple[int, int]] = ((4, 1),)
) -> Answer:
    """`scontrol show partition`: root sees cpu and secret, the account `theirs`; `nodes`: GPUs and threads of a core."""

    def answer(argv: Sequence[str]) -> tuple[int, str]:
        if "nodes" in argv:
            return 0, "".join(NODE.format(number, *sizes) for number, sizes in enumerate(nodes))
        if "partition" not in argv:
            return settings(JobDefaults="(null)")(argv)
        names = theirs if argv[0] == "setpriv" else ("cpu", "secret")
        return 0, "".join(PARTITION.format(name, alone, defaults) for name in names)

    return answer


def test_a_partition_that_the_account_does_not_see_is_told_with_what_to_do(
    site: Installation, slurm: dict[str, Answer]
) -> None:
    slurm["scontrol"] = partitions(["cpu"])
    found = about(site, "partitions")
    assert (found.outcome, "does not see secret" in found.says) == ("wrong", True)
    assert found.mend == f"sacctmgr add user {ACCOUNT} account=root adminlevel=operator"
    slurm["scontrol"] = partitions(["cpu", "secret"])
    assert about(site, "partitions").says == f"{ACCOUNT} sees all 2"


def test_partitions_that_nobody_tells_are_not_known(
    site: Installation, slurm: dict[str, Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm["scontrol"] = settings(JobSubmitPlugins="lua")
    assert about(site, "partitions").outcome == "not known"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert about(site, "partitions").says == "only root sees all of them"


@pytest.mark.parametrize(
    ("asked", "said", "outcome", "says"),
    [
        ({"defaults": "DefCpuPerGPU=8"}, {}, "wrong", "8 in cpu, secret, of which the plugin counts 0"),
        ({"defaults": "DefCpuPerGPU=8"}, {"default_cpus_per_gpu": 8}, None, ""),
        ({"alone": "EXCLUSIVE"}, {}, "wrong", "the plugin counts those that it asks for"),
        ({"alone": "EXCLUSIVE"}, {"most_gpus_per_node": 4}, "note", "a job there without GPUs gets all"),
        ({}, {}, None, ""),
    ],
)
def test_what_a_partition_gives_beside_what_is_asked_is_told(
    site: Installation,
    slurm: dict[str, Answer],
    asked: dict[str, str],
    said: dict[str, int],
    outcome: str | None,
    says: str,
) -> None:
    site = Installation(site.config.model_copy(update=said), site.place, site.machine)
    slurm["scontrol"] = partitions(["cpu", "secret"], **asked)
    found = [one for one in site_check.findings(site) if one.about in {"DefCpuPerGPU", "whole nodes"}]
    assert [one.outcome for one in found] == ([outcome] if outcome else [])
    assert all(says in one.says and one.mend for one in found)


@pytest.mark.parametrize(
    ("nodes", "split", "said", "about_", "says"),
    [
        ([(4, 1), (0, 1)], False, {}, None, ""),
        ([(4, 2)], False, {}, "threads", "2 of a core, of which the plugin counts 1"),
        ([(4, 2), (4, 1)], False, {"threads_per_core": 2}, None, ""),
        ([(4, 2), (4, 1)], True, {"threads_per_core": 2}, "threads", "differ from node to node, and cpu, secret with"),
        ([(4, 2), (4, 2)], True, {"threads_per_core": 2}, None, ""),
        ([(4, 1), (8, 1)], False, {"most_gpus_per_node": 4}, "GPUs", "8 on a node, of which the plugin counts 4"),
        ([(4, 1), (8, 1)], False, {"most_gpus_per_node": 8}, None, ""),
    ],
)
def test_nodes_that_have_more_than_the_plugin_counts_are_told(
    site: Installation, slurm: dict[str, Answer], monkeypatch: pytest.MonkeyPatch, nodes: list[tuple[int, int]], split: bool,
    said: dict[str, int], about_: str | None, says: str,
) -> None:  # fmt: skip
    site = Installation(site.config.model_copy(update=said), site.place, site.machine)
    if split:
        monkeypatch.setitem(globals(), "PARTITION", PARTITION.replace("\n", " MaxMemPerCPU=1000\n"))
    slurm["scontrol"] = partitions(["cpu", "secret"], nodes=nodes)
    found = [one for one in site_check.findings(site) if one.about in {"threads", "GPUs", "nodes"}]
    assert [one.about for one in found] == ([about_] if about_ else [])
    assert all(one.outcome == "wrong" and says in one.says and one.mend for one in found)


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
