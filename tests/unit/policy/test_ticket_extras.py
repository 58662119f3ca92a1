"""What a job takes beside CPUs, memory and time, in the plugin: bound by its ticket, or in none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.policy import lua_host, test_tickets_lua
from tests.unit.policy.lua_host import ask, change, submission
from tests.unit.policy.test_tickets_lua import CEILINGS, KEY, OLD, USER, Kind, large, plugin, refused

from slurm_agent_tools.models.submission_ticket import SubmissionTicket
from slurm_agent_tools.policy.for_others import TicketSource

kind = test_tickets_lua.kind

FREE: dict[str, object] = {"time_limit": 5, "min_mem_per_node": 1024, "pn_min_memory": 1024, "environment": {}}
"""A job that needs no ticket."""

FLOORS = [plugin(None), plugin(TicketSource.parse("files:/nonexistent"))]


def test_what_stands_in_a_ticket_beside_cpus_memory_and_time_is_let_in(kind: Kind):
    taken = {"licenses": "matlab:2", "reservation": "lab", "tres_per_node": "gres/nvme=2", "tres_per_task": "cpu=4",
             "core_spec": 65534, "bitflags": 2**28 + 2**25 + 512, "req_switch": 1, "features": "intel"}  # fmt: skip
    assert ask(kind.plugin, [large(kind.give(), **taken)])[0].told == ()


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
def test_a_change_of_keys_makes_no_spent_ticket_good_again(tmp_path: Path, program: str):
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "old").write_bytes(OLD)
    made = Kind("hmac", tmp_path)
    spent, fresh = (made.give(key=OLD) for _ in range(2))
    before = plugin(TicketSource.parse(f"hmac:{tmp_path}/old"))
    assert ask(before, [large(spent)], program=program)[0].code == 0
    refused(ask(made.plugin, [large(spent)], program=program)[0], "used already")
    assert ask(made.plugin, [large(fresh)], program=program)[0].code == 0
    for word in (spent, fresh):  # and where the change is taken back
        refused(ask(before, [large(word)], program=program)[0], "used already")
    after = plugin(TicketSource.parse(f"hmac:{tmp_path}/key"))
    refused(ask(after, [large(made.give(key=OLD))], program=program)[0], "not signed by this site")


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
def test_a_second_controller_that_takes_over_knows_what_the_first_spent(kind: Kind, program: str):
    """It loads the file when it begins to wait, and that may be weeks before."""
    spent, fresh = kind.give(), kind.give()
    standby = f"STANDBY = slurm_job_submit assert((loadstring or load)({lua_host.literal(kind.plugin)}))()"
    over = "PRIMARY = slurm_job_submit slurm_job_submit = STANDBY"
    back = "slurm_job_submit = PRIMARY"
    calls = [standby, large(spent), over, large(spent), large(fresh), back, large(fresh), large(spent)]
    first, *second = ask(kind.plugin, calls, program=program, silent=3)
    assert [first.code, second[1].code] == [0, 0]
    for one in (second[0], second[2], second[3]):
        refused(one, "used already")


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
def test_what_was_spent_stays_spent_though_its_file_is_gone(tmp_path: Path, program: str):
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "old").write_bytes(OLD)
    made = Kind("hmac", tmp_path)
    spent = made.give()
    gone = f"assert(os.remove({lua_host.literal(str(tmp_path / 'key.spent'))}))"
    first, again = ask(made.plugin, [large(spent), gone, large(spent)], program=program, silent=1)
    assert first.code == 0
    refused(again, "used already")


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"licenses": "matlab:3"}, "licenses matlab:3 is not in its ticket"),
        ({"reservation": "other"}, "reservation other is not in its ticket"),
        ({"tres_per_node": "gres:nvme:3"}, "nvme:3 is not in its ticket"),
        ({"tres_per_node": "gres:nvme"}, "nvme is not in its ticket"),
        ({"tres_per_task": "license/matlab:1"}, "license/matlab:1 is not in its ticket"),
        ({"tres_per_task": "cpu=5"}, "cpu:5 is not in its ticket"),
        ({"tres_per_job": "gres:gpu:h100:8"}, "gpu:h100 is not in its ticket"),
        ({"tres_per_job": "gres:gpu:8"}, "name the type of GPUs of its ticket"),
        ({"tres_per_job": "gres:gpu:a100:4,gres:gpu:h100:4"}, "gpu:h100 is not in its ticket"),
        ({"burst_buffer": "capacity=1G"}, "--bb is in no ticket"),
        ({"container": "/srv/bundle"}, "--container is in no ticket"),
        ({"container_id": "x"}, "--container-id is in no ticket"),
        ({"core_spec": 0}, "--core-spec takes whole nodes"),
        ({"network": "x"}, "--network is in no ticket"),
        ({"clusters": "other"}, "--clusters is in no ticket"),
        ({"bitflags": 256 + 2**25}, "--spread-job takes more nodes than it shows"),
        ({"features": "a100*2"}, "--constraint with a number of nodes takes more than it shows"),
        ({"prefer": "[a100*2&h100*1]"}, "--prefer with a number of nodes takes more than it shows"),
    ],
)
def test_what_does_not_stand_in_a_ticket_is_refused(kind: Kind, fields: dict[str, object], part: str):
    word = kind.give()
    first, then = ask(kind.plugin, [large(word, **fields), large(word)])
    refused(first, part)
    assert then.code == 0


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
@pytest.mark.parametrize("text", FLOORS, ids=["floor", "tickets"])
@pytest.mark.parametrize(
    ("fields", "option"),
    [({"bitflags": 256 + 2**25}, "--spread-job"), ({"bitflags": 256, "tres_per_job": "gres:gpu:1"}, "--spread-job"),
     ({"core_spec": 0}, "--core-spec"), ({"thread_spec": 2}, "--thread-spec")],
)  # fmt: skip
def test_a_bare_job_within_the_limits_takes_no_more_nodes_than_it_shows(
    text: str, program: str, fields: dict[str, object], option: str
):
    """What the plugin cannot count is refused at submission and at a change, with a ticket and without."""
    record = {"min_mem_per_node": 1024, "min_nodes": 1, "max_nodes": 1}
    calls = [submission(USER, **FREE, **fields), change(USER, record, **fields)]
    first, then = ask(text, calls, program=program)
    assert option in first.told[0]
    assert (first.code != 0, then.code != 0) == (True, True)


@pytest.mark.parametrize("text", FLOORS, ids=["floor", "tickets"])
def test_other_flags_of_a_bare_job_are_let_in(text: str):
    """Slurm sets some of them by itself."""
    taken = [{}, {"bitflags": 2**25 + 512 + 1 + 2}, {"core_spec": 65534}, {"bitflags": 2**40 + 2**14}]
    assert [one.code for one in ask(text, [submission(USER, **FREE, **fields) for fields in taken])] == [0] * 4


@pytest.mark.parametrize("text", FLOORS, ids=["floor", "tickets"])
def test_a_slurm_that_does_not_tell_its_flags_lets_nothing_in_unseen(text: str):
    calls = [submission(USER, **FREE, bitflags="?")]
    assert "this Slurm does not tell bitflags" in ask(text, calls)[0].told[0]


# --- What a job does not ask for ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["partition", "qos", "account"])
def test_a_job_names_what_its_ticket_names_and_gets_no_default_instead(kind: Kind, field: str):
    named = {"partition": "gpu", "qos": "scavenger", "account": "agents"}
    word = kind.give(replace(CEILINGS, partitions=("gpu",), qos="scavenger", account="agents"))
    for nothing in (None, ""):
        answer = ask(kind.plugin, [large(word, **{**named, field: nothing})])[0]
        refused(answer, f"{field}: name the {field} of its ticket")
    assert ask(kind.plugin, [large(word, **named)])[0].told == ()


MEMORY = {"tres_per_job": "gres:gpu:a100:8", "min_mem_per_node": None, "pn_min_memory": None}


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"tres_per_job": None}, "65536 MB of memory on a node without the GPUs of its ticket are more than the 16384"),
        ({"tres_per_job": "gres:gpu:0"}, "65536 MB of memory on a node without the GPUs"),
        ({"tres_per_job": None, "min_mem_per_node": 16385}, "16385 MB of memory on a node without the GPUs"),
        (
            {"tres_per_job": None, "min_mem_per_node": None, "min_mem_per_cpu": 4097},
            "16388 MB of memory on a node without",
        ),
        ({**MEMORY, "mem_per_tres": "gres:gpu:16385"}, "131080 MB of memory on all nodes are more than the 131072"),
    ],
)
def test_memory_that_was_allowed_for_gpus_is_had_with_these_alone(kind: Kind, fields: dict[str, object], part: str):
    word, plugin = kind.give(), lua_host.LATER + kind.plugin  # 22.05 lets it in for one CPU of each task alone
    refused(ask(plugin, [large(word, **fields)])[0], part)
    assert ask(plugin, [large(word, **MEMORY, mem_per_tres="gres:gpu:16384")])[0].told == ()
    assert ask(plugin, [large(kind.give(), tres_per_job=None, min_mem_per_node=16384)])[0].told == ()


@pytest.mark.parametrize(
    ("fields", "good"),
    [
        ({"tres_per_job": ""}, False), ({"gres": ""}, False), ({"tres_per_node": ""}, False),
        ({"tres_per_job": "gres:gpu:0"}, False), ({"tres_per_job": "gres:gpu:a100:4"}, True),
        ({"qos": ""}, False), ({"account": ""}, False), ({"partition": ""}, False), ({"time_limit": 5}, True),
    ],
)  # fmt: skip
def test_no_change_takes_off_what_a_ticket_names(fields: dict[str, object], good: bool):
    allowed = replace(CEILINGS, expires=5, qos="scavenger", account="agents")
    record = {
        "admin_comment": SubmissionTicket("ab" * 16, allowed, None).admin_comment, "tres_per_job": "gres:gpu:a100:8",
        "min_mem_per_node": 32768, "min_nodes": 1, "max_nodes": 1,
    }  # fmt: skip
    text = plugin(TicketSource.parse("files:/nonexistent"))
    assert (ask(text, [change(USER, record, **fields)])[0].code == 0) is good
