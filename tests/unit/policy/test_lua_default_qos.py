"""A job with a ticket that names no QOS: its user chooses the default one, at any time, and the plugin looks at it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import change
from tests.unit.policy.test_lua_attacks import ALLOWED, FILES, SMALL, USER, admitted

from slurm_agent_tools.models.submission_ticket import Ceilings, SubmissionTicket
from slurm_agent_tools.policy.for_others import Site, job_submit_lua
from slurm_agent_tools.policy.loading import load, shipped

JUDGED = replace(ALLOWED, gpus=0)
JUDGE = """
function JUDGE(fields, ceilings, defaults, account)
  local job = setmetatable({}, {
    __index = function(_, key)
      if key == "default_qos" then return defaults[fields.account or fields.partition or ""] end
      return fields[key]
    end,
    __newindex = function(_, key, value) fields[key] = value ~= "" and value or nil end, -- as Slurm, which takes no nil
  })
  local found = judge_with_ticket(job, read_ceilings(ceilings), PARTS, account)
  print(found[1] and found[1].text or string.format("in %s, QOS %s", fields.partition or "-", fields.qos or "-"))
end
slurm.log_info("""
PARTITIONS = 'PARTS = { gpu = { name = "gpu", flag_default = 1 }, cpu = { name = "cpu", alternate = "gpu" } }'


def plugin(*high: str) -> str:
    loaded = load(shipped())
    raised = loaded.policy.priority.model_copy(
        update={"high": loaded.policy.priority.high.model_copy(update={"qos": high})}
    )
    offers = replace(loaded, policy=loaded.policy.model_copy(update={"priority": raised}))
    return job_submit_lua(offers, Site(tickets=FILES))


def judged(
    defaults: dict[str, str], *, text: str = "", allowed: Ceilings = JUDGED, partition: str | None = None,
    qos: str | None = None, account: str | None = None, default_account: str | None = None,
) -> str:  # fmt: skip
    """Why a job is not let in; else where it runs and the QOS that stands in it."""
    job = {
        **SMALL,
        "num_tasks": 1,
        "min_cpus": 1,
        "partition": partition,
        "qos": qos,
        "default_account": default_account,
    }
    fields = f"blank({lua_host.literal(job)})"
    call = f"JUDGE({fields}, '{allowed.text}', {lua_host.literal(defaults)}, {lua_host.literal(account)})"
    patched = (text or plugin()).replace("\nslurm.log_info(", JUDGE, 1)
    return lua_host.lines(patched, [PARTITIONS, call])[0]


def for_partitions(*names: str) -> Ceilings:
    return replace(JUDGED, partitions=names)


def test_no_qos_that_has_to_be_named_comes_as_the_users_default_one():
    """sacctmgr modify user NAME set DefaultQOS=high is everybody's own, and the service judged a job without one."""
    assert judged({"": "high", "gpu": "High"}) == "the user's default QOS High is for jobs that name it; write --qos"
    assert judged({"gpu": "urgent"}) == "in -, QOS urgent"
    offered = plugin("Urgent", "rush")
    assert "default QOS urgent is for jobs that name it" in judged({"gpu": "urgent"}, text=offered)
    assert "default QOS rush is" in judged({"gpu": "rush"}, text=offered)
    named = replace(JUDGED, qos="urgent")
    assert judged({"gpu": "high"}, text=offered, allowed=named, qos="urgent") == "in -, QOS urgent"


def test_the_qos_that_was_looked_at_stays_the_jobs():
    """A user may set another default before Slurm looks again."""
    assert judged({"gpu": "normal"}) == "in -, QOS normal"
    both = for_partitions("cpu", "gpu")
    assert judged({"gpu": "normal", "cpu": "normal"}, allowed=both, partition="cpu,gpu") == "in cpu,gpu, QOS normal"


def test_the_default_looked_at_is_that_of_the_account_that_was_judged():
    """Each of a user's accounts has one of its own, and which account is the default one changes at any time."""
    defaults = {"agents": "high", "gpu": "normal"}
    assert judged(defaults) == "in -, QOS normal"
    told = judged(defaults, account="agents")
    assert told == "the user's default QOS high is for jobs that name it; write --qos"


def test_where_no_default_is_told_it_is_slurms_own():
    """Without accounting there is none. With it a user's own is taken off and set again while Slurm looks for one."""
    assert judged({}) == "in -, QOS -"
    assert judged({}, allowed=for_partitions("cpu", "gpu"), partition="cpu,gpu") == "in cpu,gpu, QOS -"
    assert judged({}, default_account="lab") == "in -, QOS normal"
    both = for_partitions("cpu", "gpu")
    assert judged({}, allowed=both, partition="cpu,gpu", default_account="lab") == "in cpu,gpu, QOS normal"
    told = judged({"cpu": "low"}, allowed=both, partition="cpu,gpu", default_account="lab")
    assert told == "the user's default QOS is another one in each of these partitions; write --qos"


@pytest.mark.parametrize("partition", ["cpu", "other,gpu", "gpu,other", "other"])
def test_the_default_of_each_partition_is_looked_at(partition: str):
    """Slurm tells that of a list as if there were none for its partitions, and cpu hands its jobs to gpu."""
    defaults = {"cpu": "normal", "gpu": "high", "other": "normal"}
    defaults |= {"other": "high", "gpu": "normal"} if partition == "other" else {}
    told = judged(defaults, allowed=for_partitions("cpu", "gpu", "other"), partition=partition)
    assert "default QOS high is for jobs that name it" in told or "leave it out" in told


def test_partitions_with_defaults_of_their_own_need_a_name():
    both = for_partitions("cpu", "gpu")
    told = judged({"cpu": "normal", "gpu": "low"}, allowed=both, partition="gpu,cpu")
    assert told == "the user's default QOS is another one in each of these partitions; write --qos"


@pytest.mark.parametrize("field", ["qos", "account"])
def test_no_change_makes_either_the_default_one(field: str):
    record = {"min_cpus": 1, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024}
    ticket = {"admin_comment": SubmissionTicket("ab" * 16, JUDGED, None).admin_comment}
    calls = [change(USER, record | more, **{field: ""}) for more in ({}, ticket)]
    assert admitted(plugin(), *calls, change(USER, record | ticket, comment="fine")) == [True, False, True]


def test_a_ticket_is_for_tasks_of_each_node_where_memory_makes_cpus():
    """26.05 made 30 CPUs of 16000M for fifteen tasks, where a CPU may have 1000M."""
    job = {"num_tasks": 2, "min_cpus": 2, "min_mem_per_node": 1024, "pn_min_memory": 1024, "partition": "cpu"}
    job |= {"min_nodes": 1, "max_nodes": 1}
    text = plugin().replace("\nslurm.log_info(", JUDGE, 1)
    parts = PARTITIONS.replace('alternate = "gpu"', "max_mem_per_cpu = 1000")
    for more, fine in (({}, False), ({"ntasks_per_node": 2}, True), ({"num_tasks": 1}, True)):
        allowed = replace(for_partitions("cpu"), cpus=8)
        call = f"JUDGE(blank({lua_host.literal({**SMALL, **job, **more})}), '{allowed.text}', {{}})"
        assert ("write --ntasks-per-node" not in lua_host.lines(text, [parts, call])[0]) is fine
