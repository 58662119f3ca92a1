"""What `site check` says of the cluster: partitions, nodes, and the accounts of its users."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.cli.site_of_machine import ACCOUNT, Answer, about, installation, settings, slurm_answers

from slurm_agent_tools.cli.commands import site_check
from slurm_agent_tools.cli.commands.site_install import Installation
from slurm_agent_tools.cli.commands.site_trial import SiteFinding


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    return installation(tmp_path, monkeypatch)


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    return slurm_answers(monkeypatch)


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
        ([(4, 2), (4, 1)], True, {"threads_per_core": 2}, "threads", "several of a core, and cpu, secret with"),
        ([(4, 2), (4, 2)], True, {"threads_per_core": 2}, "threads", "several of a core, and cpu, secret with"),
        ([(4, 1), (4, 1)], True, {}, None, ""),
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


def accounting(coordinators: str = "", accounts: str = "", qos: str = "normal|normal") -> Answer:
    """`sacctmgr`: the account agents with its user ada, who has this QOS."""

    def answer(argv: Sequence[str]) -> tuple[int, str]:
        if "withcoord" in argv:
            return 0, f"agents|{coordinators}\nlab|grace\nroot|joan\n"
        assert "cluster=devcluster" in argv
        return 0, f"root|||||normal\nagents|||root||normal\nlab|||root||normal\nagents||ada||{qos}\n{accounts}"

    return answer


def of_accounts(site: Installation, slurm: dict[str, Answer], sacctmgr: Answer, enforced: str) -> list[SiteFinding]:
    told = {"AccountingStorageType": "accounting_storage/slurmdbd", "ClusterName": "devcluster"}
    slurm["scontrol"], slurm["sacctmgr"] = settings(AccountingStorageEnforce=enforced, **told), sacctmgr
    named = {"coordinators", "accounts below", "associations", "default QOS"}
    own = site.config.model_copy(update={"agent_accounts": ("Agents",)})
    return [one for one in site_check.findings(Installation(own, site.place, site.machine)) if one.about in named]


@pytest.mark.parametrize(
    ("sacctmgr", "expected"),
    [
        (accounting(), []),
        (accounting("ada,alan"),
         [("coordinators", "wrong", f"{name}, of agents", f"delete coordinator account=agents names={name}")
          for name in ("ada", "alan")]),
        (accounting("joan"), [("coordinators", "wrong", "joan, of agents", "delete coordinator account=root names=joan")]),
        (accounting(accounts="deep|||below||\nbelow|||agents||\n"),
         [("accounts below", "wrong", "below, deep: below", 'agent_accounts = ["Agents", "below", "deep"] in')]),
        (accounting(qos="special|special"), []),
        (accounting(qos="|high,normal"), []),
        (accounting(qos="|special"), [("default QOS", "note", "ada have none, nor", "modify user ada set DefaultQOS=")]),
        (lambda _: (1, ""), [("associations", "not known", "does not answer", "")]),
        (lambda _: (0, "one row\n"), [("associations", "not known", "does not answer", "")]),
    ],
)  # fmt: skip
def test_accounts_in_which_no_ticket_is_asked_for_or_none_is_good_are_told(
    site: Installation, slurm: dict[str, Answer], sacctmgr: Answer, expected: list[tuple[str, str, str, str]]
) -> None:
    found = of_accounts(site, slurm, sacctmgr, "associations,limits,qos")
    assert [(one.about, one.outcome) for one in found] == [(name, outcome) for name, outcome, _, _ in expected]
    assert all(says in one.says and mend in one.mend for one, (*_, says, mend) in zip(found, expected, strict=True))


def test_a_default_qos_is_asked_for_where_qos_count(site: Installation, slurm: dict[str, Answer]) -> None:
    assert of_accounts(site, slurm, accounting(qos="|special"), "associations,limits") == []
    assert [one.about for one in of_accounts(site, slurm, accounting(qos="|special"), "associations,qos")] == [
        "default QOS"
    ]
