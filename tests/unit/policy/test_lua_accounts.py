"""Accounts and users whom a site exempts, or calls agents: which of both counts, and what a change makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import ask, change, submission
from tests.unit.policy.test_lua_attacks import ALLOWED, SMALL, USER, admitted, plugin, signed
from tests.unit.policy.test_lua_site_rules import plugin as with_rule

from slurm_agent_tools.models.submission_ticket import SubmissionTicket
from slurm_agent_tools.policy.for_others import TicketSource

HUGE: dict[str, object] = {**SMALL, "time_limit": 9999}
RECORD = {"min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 10**6, "time_limit": 9999}


def test_an_agents_user_is_exempt_by_no_account():
    """labmate was an agent's user, and lab was exempt: 60G for three days without a ticket."""
    text = plugin(agent_users=("labmate",), exempt_accounts=("lab",))
    names = ("labmate", "ada", None)
    calls = [submission(USER, **HUGE, account="lab", user_name=name) for name in names]
    calls += [
        change(USER, {**RECORD, "account": "lab", "user_name": name}, time_limit=9999, user_name=name) for name in names
    ]
    forged = {**RECORD, "account": "lab", "user_name": "labmate"}
    assert admitted(text, change(USER, forged, time_limit=9999, user_id=0, user_name="root")) == [False]
    assert admitted(text, *calls) == [False, True, False] * 2
    assert admitted(plugin(exempt_accounts=("lab",)), calls[2]) == [True]


def test_a_job_of_an_exempt_account_stays_in_such_ones():
    """It was sent there at any size, and came into the agents' account by a change."""
    text = plugin(agent_accounts=("agents",), exempt_accounts=("lab", "staff"), exempt_users=("root", "eve"))
    record = {**RECORD, "account": "lab"}
    calls = [change(USER, record, account=name) for name in ("agents", "other", "", "staff", None)]
    calls.append(change(USER, record, account="other", user_name="eve"))
    assert admitted(text, *calls) == [False, False, False, True, True, True]


def test_a_ticket_is_spent_by_a_job_of_an_exempt_account_or_user_too(tmp_path: Path):
    """A person's yes counted three times in such an account, since nobody looked at the ticket."""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / ("ab" * 16)).touch()
    text = plugin(TicketSource.parse(f"files:{tmp_path}"), exempt_accounts=("lab",), exempt_users=("root", "eve"))
    ticket = {**HUGE, "comment": f"ticket={'ab' * 16}"}
    calls = [
        submission(USER, **ticket, account="lab"),
        submission(USER, **ticket, user_name="eve"),
        submission(0, **ticket),
    ]
    assert admitted(text, *calls) == [False, False, True]
    assert "is used already" in ask(text, calls)[0].told[0]
    assert admitted(text, *(one.replace("ticket=", "note=") for one in calls)) == [True] * 3


def test_a_word_that_is_no_ticket_is_the_own_one_of_an_exempt_job(tmp_path: Path):
    """It was refused for a note of a tracker's, and for a sum of 32 digits."""
    source, word = signed(tmp_path)
    (tmp_path / ("cd" * 16)).touch()
    words = ("ticket=JIRA-7 run", "ticket=v1.2", f"ticket={'ab' * 16}", f"ticket={'cd' * 16}", word, f"{word}0")
    calls = [submission(USER, **HUGE, account="lab", comment=one) for one in words]
    files = TicketSource.parse(f"files:{tmp_path}")
    assert admitted(plugin(files, exempt_accounts=("lab",)), *calls) == [True, True, True, False, True, True]
    assert admitted(plugin(source, exempt_accounts=("lab",)), *calls) == [True, True, True, True, False, True]


def test_a_job_of_an_exempt_account_or_user_that_spent_a_ticket_stays_within_it():
    """It could be changed to any size, and be started again: the ledger told of a job that there was not."""
    text = plugin(exempt_accounts=("lab",), exempt_users=("root", "eve"))
    note = {"admin_comment": SubmissionTicket("ab" * 16, ALLOWED, None).admin_comment, "user_id": USER}
    for record, fine in ((RECORD, True), ({**RECORD, **note}, False)):
        calls = [change(USER, {**record, "account": "lab"}, time_limit=99999)]
        calls.append(change(USER, record, time_limit=99999, user_name="eve", user_id=USER))
        calls.append(change(USER, {**record, "account": "lab"}, requeue=1))
        assert admitted(text, *calls) == [fine] * 3
        assert admitted(text, change(0, record, time_limit=99999)) == [True]


def test_a_coordinator_of_an_exempt_account_changes_the_jobs_of_others_within_the_limits():
    """Slurm lets one change them, and two nodes with 150G each came of a job of one CPU."""
    text, record = plugin(exempt_accounts=("lab",)), {**RECORD, "account": "lab"}
    calls = [change(USER, {**record, "user_id": owner}, min_nodes=2, user_name="ada") for owner in (USER, USER + 1)]
    assert admitted(text, *calls) == [True, False]


def test_without_an_account_to_judge_a_job_needs_a_ticket_where_accounts_are_agents():
    """On 24.11 a user took the own default account off, and set the agents' one while Slurm looked: 10 of 993 jobs."""
    text = plugin(agent_accounts=("agents",))
    jobs: list[dict[str, object]] = [{}, {"default_account": ""}, {"default_account": "lab"}, {"account": "lab"}]
    assert admitted(text, *(submission(USER, **SMALL, **job) for job in jobs)) == [False, False, True, True]
    assert admitted(plugin(agent_users=("ada",)), submission(USER, **SMALL)) == [True]


def test_the_end_of_a_job_stays_where_a_rule_of_the_site_speaks_of_its_time():
    """scontrol update EndTime=now+120 made three minutes of twenty, which TimeLimit= could not."""
    ticket = {"admin_comment": SubmissionTicket("ab" * 16, replace(ALLOWED, time_limit=20), None).admin_comment}
    record = {"min_cpus": 1, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024, **ticket}
    for condition, fine in (('job.time_limit < duration("1m")', False), ("job.cpus > 100", True)):
        assert admitted(with_rule(condition), change(USER, record, end_time=1_900_000_000)) == [fine]


@pytest.mark.parametrize("seconds", [1, 3])
def test_of_many_refused_jobs_in_a_second_some_are_logged(seconds: int):
    """Three loops of sbatch with long names made 38 GB of the controller's log in a day."""
    frozen = plugin().replace("os.time()", "NOW")
    assert "NOW" in frozen
    calls = [f"NOW = {second}\n" + "\n".join([submission(USER, **HUGE)] * 60) for second in range(seconds)]
    logged = "LOGGED = 0\nslurm.log_info = function() LOGGED = LOGGED + 1 end"
    text = [
        lua_host.HOST,
        f"NOW = 0\nassert(loadstring({lua_host.literal(frozen)}))()",
        logged,
        *calls,
        "print(LOGGED)",
    ]
    assert lua_host.run("lua5.1", "\n".join(text)).rpartition("\x1d")[2].strip() == str(40 * seconds)
    assert all(one.told for one in ask(frozen, ["NOW = 0", *[submission(USER, **HUGE)] * 60], silent=1))
