"""Where a rule of the site's own speaks of a number, a job with a ticket has neither more nor less of it."""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import replace

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import change
from tests.unit.policy.test_lua_attacks import ALLOWED, FILES, SMALL, USER, admitted
from tests.unit.policy.test_lua_counts import FITS
from tests.unit.policy.test_policy_edges import site

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.submission_ticket import Ceilings, SubmissionTicket
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.policy.for_others import Site, job_submit_lua
from slurm_agent_tools.policy.site_rules import held_exactly
from slurm_agent_tools.scripts.directive_lines import words_to_directives
from slurm_agent_tools.scripts.effective_request import effective

pytest.importorskip("cel_expr_python")

JUDGED = replace(ALLOWED, time_limit=60, array_tasks=4, array_at_once=2)
ASKED: dict[str, object] = {
    **SMALL, "time_limit": 60, "tres_per_job": "gres:gpu:2", "num_tasks": 2, "min_nodes": 2, "max_nodes": 2,
    "min_cpus": 2, "array_inx": "0-3%2",
}  # fmt: skip


def plugin(condition: str) -> str:
    return job_submit_lua(site(condition), Site(tickets=FILES))


def told(text: str, allowed: Ceilings = JUDGED, **fields: object) -> str:
    """The first reason against such a job with its ticket; empty where it is let in."""
    call = f"FITS(blank({lua_host.literal({**ASKED, **fields})}), '{allowed.text}')"
    return lua_host.lines(text.replace("\nslurm.log_info(", FITS, 1), [call])[0]


LESS: list[tuple[str, dict[str, object], str]] = [
    ("job.gpus == 0", {"tres_per_job": None}, "0 GPUs are fewer"),
    ('job.time_limit < duration("1m")', {"time_limit": 5}, "5 minutes are fewer"),
    ('job.time_limit < duration("1m")', {"time_min": 5}, "5 minutes are fewer"),
    ("job.nodes == 1", {"min_nodes": 1, "max_nodes": 1}, "1 nodes are fewer"),
    ("job.array_tasks < 4", {"array_inx": "0-1%2"}, "2 tasks of the array are fewer"),
    ("job.array_concurrency < 2", {"array_inx": "0-3%1"}, "1 tasks at once are fewer"),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "fewer", "reason"), LESS)
def test_of_what_a_site_rule_speaks_a_job_has_as_much_as_was_judged(
    condition: str, fewer: dict[str, object], reason: str
):
    """A ticket for GPUs was spent for none in a partition for jobs with GPUs."""
    strict, loose = plugin(condition), plugin('job.partition == "gpu"')
    assert told(strict) == told(loose) == told(loose, **fewer) == ""
    assert told(strict, **fewer) == f"{reason} than its ticket says, and a rule of the site speaks of them"


@pytest.mark.parametrize(
    ("condition", "open_ended", "part"),
    [
        ("job.gpus == 1", {"tres_per_task": "gres:gpu:1"}, "leave --gpus out beside those of each task"),
        ("job.array_tasks < 4", {"array_inx": "0,0,0,0%2"}, "name each task of the array once"),
        ("job.array_concurrency < 2", {"array_inx": "[2-3,0-1]%2"}, "name each task of the array once"),
    ],
)
def test_what_slurm_may_make_less_is_told(condition: str, open_ended: dict[str, object], part: str):
    """GPUs of fewer tasks came with --overcommit, and one task of an array in place of four."""
    assert part in told(plugin(condition), **open_ended)
    assert told(plugin("job.cpus > 100"), **open_ended) == ""
    assert told(plugin(condition), array_inx="[0-2,3]%2") == ""


def test_a_request_of_which_slurm_may_make_less_is_told_where_its_ticket_would_be_made():
    shorter = effective(words_to_directives(["--mem=1G", "--time=5", "--time-min=1"], "argument"))
    tickets.ceilings(shorter, uid=1, expires=2, exact=("nodes",))
    with pytest.raises(InputError, match="time-min"):
        tickets.ceilings(shorter, uid=1, expires=2, exact=("time",))


@pytest.mark.parametrize(
    ("words", "exact", "why"),
    [
        ("--array=5,1-3", ("tasks",), "names tasks in another order or twice"),
        ("--array=0,0,0,0%2", ("once",), "names tasks in another order or twice"),
        ("--array=0-6:2,7,9%2", ("tasks", "once"), None),
        ("--array=5,1-3", ("gpus",), None),
        ("--gpus=4 --gpus-per-task=1 --ntasks=4", ("gpus",), "stands beside --gpus"),
        ("--gpus=4 --gpus-per-task=1 --ntasks=4", ("tasks",), None),
    ],
)
def test_what_the_plugin_refuses_for_a_rules_sake_is_told_before(words: str, exact: tuple[str, ...], why: str | None):
    request = effective(words_to_directives([*words.split(), "--nodes=1", "--mem=1G", "--time=5"], "argument"))
    with nullcontext() if why is None else pytest.raises(InputError, match=why):
        tickets.ceilings(request, uid=1, expires=2, exact=exact)


def test_guard_and_plugin_agree_on_which_arrays_name_each_task_once_the_least_first():
    chance = random.Random(3)  # noqa: S311 - arrays to try
    arrays = [",".join(_some_tasks(chance) for _ in range(chance.randint(1, 4))) + "%2" for _ in range(400)]
    text, allowed = plugin("job.array_tasks < 4"), replace(JUDGED, array_tasks=1000)
    calls = [f"FITS(blank({lua_host.literal({**ASKED, 'array_inx': one})}), '{allowed.text}')" for one in arrays]
    found = lua_host.lines(text.replace("\nslurm.log_info(", FITS, 1), calls)
    plugins = ["once, the least first" in reason for reason in found]
    guards = [_refused_for_its_order(one) for one in arrays]
    assert plugins == guards
    assert 100 < sum(guards) < 300


def _some_tasks(chance: random.Random) -> str:
    first = chance.randint(0, 30)
    return chance.choice([f"{first}", f"{first}-{first + chance.randint(0, 9)}", f"{first}-{first + 9}:3"])


def _refused_for_its_order(array: str) -> bool:
    words = ["--nodes=1", "--mem=1G", "--time=5", f"--array={array}"]
    try:
        tickets.ceilings(effective(words_to_directives(words, "argument")), uid=1, expires=2, exact=("tasks",))
    except InputError as error:
        return error.field == "array"
    return False


def test_a_qos_is_named_where_a_rule_of_the_site_speaks_of_it():
    """Every user may set their own default QOS, at any time, and a job without --qos comes into that."""
    plain = effective(words_to_directives(["--mem=1G", "--time=5"], "argument"))
    named = effective(words_to_directives(["--mem=1G", "--time=5", "--qos=low"], "argument"))
    exact = held_exactly(site('job.qos == "high"').expressions)
    assert exact == ["qos"]
    tickets.ceilings(plain, uid=1, expires=2)
    with pytest.raises(InputError, match="qos is not named"):
        tickets.ceilings(plain, uid=1, expires=2, exact=exact)
    allowed = tickets.ceilings(named, uid=1, expires=2, exact=exact)
    default = {"array_inx": None, "tres_per_job": None, "num_tasks": 1, "min_cpus": 1, "time_limit": 5}
    asked = {**default, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024}
    strict = plugin('job.qos == "high"')
    assert told(strict, allowed, **asked, qos="low") == ""
    assert told(strict, allowed, **asked) == "name the qos of its ticket"


def test_a_ticket_for_whole_nodes_is_good_for_whole_nodes_alone():
    """A rule was asked about all GPUs of a node, and the job had one of them, beside others."""
    text, whole = plugin("job.gpus < 4"), replace(JUDGED, whole_nodes=True)
    assert told(text, whole, shared=0) == ""
    for shared in (None, 1, 2, 3, 4):  # --oversubscribe; users, accounts and topologies for themselves
        assert told(text, whole, shared=shared) == "its ticket is for whole nodes; write --exclusive"


def test_without_such_a_limit_a_job_with_one_has_less():
    open_ended = replace(JUDGED, time_limit=None)
    reason = "60 minutes are fewer than its ticket says, and a rule of the site speaks of them"
    assert told(plugin('job.time_limit > duration("1h")'), open_ended) == reason
    assert told(plugin('job.time_limit > duration("1h")'), open_ended, time_limit=None) == ""


def test_neither_does_a_change_make_it_less():
    ticket = SubmissionTicket("ab" * 16, JUDGED, None).admin_comment
    record = {
        "min_cpus": 2, "min_nodes": 2, "max_nodes": 2, "tres_per_job": "gres:gpu:2", "min_mem_per_node": 1024,
        "time_limit": 60, "admin_comment": ticket,
    }  # fmt: skip
    changes: list[dict[str, object]] = [{"tres_per_job": "gres:gpu:1"}, {"time_limit": 5}, {"array_inx": "%1"}]
    calls = [change(USER, record, **one) for one in changes]
    assert admitted(plugin("job.cpus > 100"), *calls) == [True, True, True]
    assert admitted(plugin("job.gpus == 1"), *calls) == [False, True, True]
    assert admitted(plugin('job.time_limit < duration("1m")'), *calls) == [True, False, True]
    assert admitted(plugin("job.array_concurrency == 1"), *calls) == [True, True, False]


@pytest.mark.parametrize("condition", ["job.nodes == 1", "job.gpus == 1"])
def test_a_job_gives_no_nodes_back_where_a_rule_of_the_site_speaks_of_them(condition: str):
    record = {
        "min_cpus": 2, "min_nodes": 2, "max_nodes": 2, "tres_per_job": "gres:gpu:2", "min_mem_per_node": 1024,
        "admin_comment": SubmissionTicket("ab" * 16, JUDGED, None).admin_comment,
    }  # fmt: skip
    calls = [change(USER, record, req_nodes=nodes) for nodes in ("a", "", "a,b")]
    assert admitted(plugin("job.cpus > 100"), *calls) == [True, True, True]
    assert admitted(plugin(condition), *calls) == [False, False, True]


@pytest.mark.parametrize(("state", "fine"), [(0, True), (0x200, True), (1, False), (2, False), (0x4001, False)])
def test_what_a_job_that_has_begun_takes_stays_as_it_is(state: int, fine: bool):
    """A change to the node that it had, or to less memory, began a new row of the accounting: hours before it were lost."""
    record = {
        "min_nodes": 2, "max_nodes": 2, "min_mem_per_node": 1024, "job_state": state,
        "admin_comment": SubmissionTicket("ab" * 16, JUDGED, None).admin_comment,
    }  # fmt: skip
    changes: list[dict[str, object]] = [{"req_nodes": "a,b"}, {"min_mem_per_node": 1000}, {"comment": "fine"}]
    calls = [change(USER, record, **one) for one in changes]
    assert admitted(plugin("job.cpus > 100"), *calls) == [fine, fine, True]
