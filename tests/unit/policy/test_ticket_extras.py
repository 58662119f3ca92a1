"""What a job takes beside CPUs, memory and time, in the plugin: bound by its ticket, or in none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.policy import lua_host, test_tickets_lua
from tests.unit.policy.lua_host import ask
from tests.unit.policy.test_tickets_lua import KEY, OLD, Kind, large, plugin, refused

from slurm_agent_tools.policy.for_others import TicketSource

kind = test_tickets_lua.kind


def test_what_stands_in_a_ticket_beside_cpus_memory_and_time_is_let_in(kind: Kind):
    taken = {"licenses": "matlab:2", "reservation": "lab", "tres_per_node": "gres/nvme=2", "tres_per_task": "cpu=4",
             "core_spec": 65534, "bitflags": 2**29 + 2**25 + 512, "req_switch": 1, "features": "intel"}  # fmt: skip
    assert ask(kind.plugin, [large(kind.give(), **taken)])[0].told == ()


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
def test_a_change_of_keys_makes_no_spent_ticket_good_again(tmp_path: Path, program: str):
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "old").write_bytes(OLD)
    made = Kind("hmac", tmp_path)
    spent, fresh = (made.give(key=OLD) for _ in range(2))
    before = plugin(TicketSource.parse(f"hmac:{tmp_path}/old"))
    assert ask(before, [large(spent)], program=program)[0].code == 0
    for text in (made.plugin, made.plugin):  # and once more, when it was taken over
        refused(ask(text, [large(spent)], program=program)[0], "used already")
    assert (tmp_path / "key.spent").read_text() == (tmp_path / "old.spent").read_text()
    assert ask(made.plugin, [large(fresh)], program=program)[0].code == 0
    after = plugin(TicketSource.parse(f"hmac:{tmp_path}/key"))
    refused(ask(after, [large(made.give(key=OLD))], program=program)[0], "not signed by this site")


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
        ({"tres_per_job": "gres:gpu:a100:4,gres:gpu:h100:4"}, "gpu:h100 is not in its ticket"),
        ({"burst_buffer": "capacity=1G"}, "--bb is in no ticket"),
        ({"container": "/srv/bundle"}, "--container is in no ticket"),
        ({"container_id": "x"}, "--container-id is in no ticket"),
        ({"core_spec": 0}, "--core-spec is in no ticket"),
        ({"network": "x"}, "--network is in no ticket"),
        ({"clusters": "other"}, "--clusters is in no ticket"),
        ({"bitflags": 256 + 2**25}, "--spread-job is in no ticket"),
    ],
)
def test_what_does_not_stand_in_a_ticket_is_refused(kind: Kind, fields: dict[str, object], part: str):
    word = kind.give()
    first, then = ask(kind.plugin, [large(word, **fields), large(word)])
    refused(first, part)
    assert then.code == 0
