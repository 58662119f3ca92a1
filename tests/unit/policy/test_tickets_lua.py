"""The plugin with tickets in a Lua: every way in which a ticket is not good, and what is kept over a restart.

That Slurm's own controller does the same is tests/system/test_tickets.py.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import Answer, ask, change, submission

from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.models.submission_ticket import (
    LARGEST_SIGNED_SCRIPT,
    Ceilings,
    SubmissionTicket,
    comment_word,
    parse_admin_comment,
    signed,
)  # fmt: skip
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.policy.for_others import Site, TicketSource, job_submit_lua
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.store.ticket_folder import USED, TicketFolder
from slurm_agent_tools.transport import lua_check

USER = 1001
SCRIPT = "#!/bin/bash\nsrun python train.py\n"
KEY, OLD = b"k" * 64, b"o" * 64

LARGE: dict[str, object] = {
    "tres_per_job": "gres:gpu:a100:8", "min_nodes": 2, "max_nodes": 2, "num_tasks": 2, "cpus_per_task": 4, "min_cpus": 8,
    "min_mem_per_node": 65536, "pn_min_memory": 65536, "time_limit": 3000, "partition": "gpu", "script": SCRIPT,
    "array_inx": "0-9%2", "environment": {},
}  # fmt: skip
"""A job beyond the free limits in all that a ticket bounds."""

CEILINGS = Ceilings(
    uid=USER, expires=0, time_limit=3000, memory_per_node=65536, memory_per_gpu=65536, gpus=8, cpus=8, nodes=2,
    array_tasks=10, array_at_once=2, partitions=("gpu", "big"), licenses="matlab:2", reservation="lab",
    gres=("gpu:a100", "nvme:2"),
)  # fmt: skip


@dataclass
class Kind:
    """One way in which a site gives tickets."""

    name: str
    folder: Path

    @property
    def source(self) -> TicketSource:
        signed_by = f"hmac:{self.folder}/key,{self.folder}/old"
        return TicketSource.parse(f"files:{self.folder}" if self.name == "files" else signed_by)

    @property
    def plugin(self) -> str:
        return plugin(self.source)

    def give(self, allowed: Ceilings = CEILINGS, script: str | None = SCRIPT, *, key: bytes = KEY) -> str:
        """A ticket for a minute, where the ceilings say nothing else; returns its word in a comment."""
        allowed = allowed if allowed.expires else replace(allowed, expires=int(time.time()) + 60)
        data = None if script is None else script.encode()
        ticket = tickets.new_ticket(allowed, data)
        if self.name == "files":
            TicketFolder(self.folder).add(ticket, data)
        return comment_word(ticket.nonce if self.name == "files" else signed(ticket, key))


def plugin(source: TicketSource | None, **site: object) -> str:
    return job_submit_lua(load(shipped()), Site(tickets=source, **site))


@pytest.fixture(params=["files", "hmac"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    (tmp_path / USED).mkdir()
    (tmp_path / "key").write_bytes(KEY + b"\n")
    (tmp_path / "old").write_bytes(OLD)
    return Kind(request.param, tmp_path)


def large(word: str, **other: object) -> str:
    return submission(USER, **{**LARGE, "comment": f"sat-1 {word}".strip(), **other})


def refused(answer: Answer, part: str) -> None:
    assert answer.code != 0
    assert any(part in line for line in answer.told), answer.told
    assert answer.admin_comment == ""
    assert "ask through slurm-agent-tools connect" in answer.told[-1]


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
def test_a_ticket_lets_one_job_in_and_its_ceilings_stay_with_the_job(kind: Kind, program: str):
    word = kind.give()
    without, first, again = ask(kind.plugin, [large(""), large(word), large(word)], program=program)
    refused(without, "more than 16G")
    nonce = first.admin_comment.split(":", 1)[0]
    assert (first.code, first.told, first.comment) == (0, (), f"sat-{nonce[:16]} sat-1")
    assert nonce in word
    kept = parse_admin_comment(first.admin_comment)
    assert kept is not None
    assert replace(kept[1], expires=0) == CEILINGS
    refused(again, "used already")


def test_what_was_spent_stays_spent_in_a_controller_that_starts_again(kind: Kind):
    word = kind.give()
    assert ask(kind.plugin, [large(word)])[0].code == 0
    for program in lua_host.PROGRAMS:
        refused(ask(kind.plugin, [large(word)], program=program)[0], "used already")


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"tres_per_job": "gres:gpu:a100:9"}, "9 GPUs are more than the 8 of its ticket"),
        ({"min_nodes": 3, "max_nodes": 3, "num_tasks": 3, "cpus_per_task": 2}, "3 nodes are more than the 2"),
        ({"cpus_per_task": 5}, "10 CPUs are more than the 8"),
        ({"min_mem_per_node": 65537}, "65537 MB of memory on a node"),
        ({"min_mem_per_node": 0}, "an open number of MB"),
        ({"min_mem_per_node": None, "pn_min_memory": None}, "an open number of MB"),
        ({"time_limit": 3001}, "3001 minutes are more than the 3000"),
        ({"time_limit": 4294967295}, "an open number of minutes"),
        ({"time_limit": 4294967294}, "an open number of minutes"),
        ({"array_inx": "0-10%2"}, "11 tasks of the array"),
        ({"array_inx": "0-9%3"}, "3 tasks at once"),
        ({"array_inx": "0-9"}, "10 tasks at once"),
        ({"partition": "gpu,cpu"}, "partition cpu is not in its ticket"),
        ({"partition": None}, "name the partition"),
        ({"qos": "high"}, "qos high is not in its ticket"),
        ({"account": "other"}, "account other is not in its ticket"),
        ({"shared": 0}, "leave --exclusive out"),
        ({"het_job_offset": 1}, "heterogeneous"),
        ({"script": SCRIPT + "#"}, "for another script"),
        ({"script": None}, "for another script"),
        ({"environment": {"BASH_ENV": "x"}}, "BASH_ENV runs other code"),
        ({"environment": {"SHELLOPTS": "xtrace", "PS4": "$(x)"}}, "SHELLOPTS runs other code"),
        ({"environment": {"SLURM_GET_USER_ENV": "1"}}, "SLURM_GET_USER_ENV runs other code"),
        ({"environment": {"LD_PRELOAD": "x"}}, "LD_PRELOAD runs other code"),
        ({"req_nodes": "gpu[01-03]"}, "3 nodes are more than the 2"),
        ({"req_nodes": "a,b,c"}, "3 nodes are more than the 2"),
        ({"tres_per_node": "gres:shard:4"}, "parts of GPUs (shard)"),
        ({"gres": "gres:mps:50"}, "parts of GPUs (mps)"),
    ],
)  # fmt: skip
def test_beyond_its_ceilings_a_ticket_is_refused_and_not_spent(kind: Kind, fields: dict[str, object], part: str):
    word = kind.give()
    beyond, within = ask(kind.plugin, [large(word, **fields), large(word)])
    refused(beyond, part)
    assert within.code == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"tres_per_job": "gres:gpu:a100:4"}, {"time_limit": 5}, {"array_inx": None}, {"array_inx": "1-4%1"},
        {"partition": "big"}, {"partition": "big,gpu"}, {"cpus_per_task": 1, "min_cpus": 2}, {"shared": 1},
        {"min_nodes": 1, "max_nodes": 1, "num_tasks": 1, "min_cpus": 4},
    ],
)  # fmt: skip
def test_a_job_may_take_less_than_its_ticket(kind: Kind, fields: dict[str, object]):
    known = 'PARTS = { big = { name = "big" }, gpu = { name = "gpu" } }'
    (answer,) = ask(kind.plugin, [known, large(kind.give(), **fields)], silent=1)
    assert (answer.code, answer.told) == (0, ())


def test_a_ticket_of_somebody_else_or_too_late_is_refused(kind: Kind):
    foreign = kind.give(replace(CEILINGS, uid=1002))
    late = kind.give(replace(CEILINGS, expires=int(time.time()) - 1))
    mine = kind.give()
    for word, other, part in (
        (foreign, {}, "another user's"),
        (late, {}, "the time of the ticket is over"),
        (mine, {"user_id": 1002}, "another user's"),
        (f"{mine} {mine}", {}, "ticket"),
        ("ticket=", {}, "ticket"),
        ("ticket=../../etc/passwd", {}, "ticket"),
        (f"ticket={'0' * 32}", {}, "ticket"),
    ):
        refused(ask(kind.plugin, [large(word, **other)])[0], part)


def test_a_false_ticket_is_refused_even_where_none_is_needed(kind: Kind):
    small = {"time_limit": 5, "min_mem_per_node": 1024, "pn_min_memory": 1024}
    plain, false = ask(kind.plugin, [submission(USER, **small), submission(USER, comment="ticket=ab", **small)])
    assert plain.code == 0
    refused(false, "ticket")


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
def test_an_altered_ticket_is_refused_wherever_it_is_altered(tmp_path: Path, program: str):
    kind = Kind("hmac", tmp_path)
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "old").write_bytes(OLD)
    word, chance = kind.give(), random.Random(2104)  # noqa: S311 - of tests
    altered = []
    for _ in range(60):
        place = chance.randrange(len("ticket="), len(word))
        letter = chance.choice([sign for sign in "0123456789abcdef-.,=:%" if sign != word[place]])
        altered.append(word[:place] + letter + word[place + 1 :])
    altered += [word[:-1], word + "0", word.replace("gpus=8", "gpus=80"), word.replace("uid=1001", "uid=1002")]
    for answer in ask(kind.plugin, [large(one) for one in altered], program=program):
        refused(answer, "not signed by this site")
    assert ask(kind.plugin, [large(word)], program=program)[0].code == 0


def test_two_keys_count_and_a_third_does_not(tmp_path: Path):
    kind = Kind("hmac", tmp_path)
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "old").write_bytes(OLD)
    words = [kind.give(key=key) for key in (KEY, OLD, b"x" * 64)]
    assert [answer.code == 0 for answer in ask(kind.plugin, [large(word) for word in words])] == [True, True, False]


def test_spent_numbers_are_dropped_by_the_first_job_an_hour_behind_their_time(tmp_path: Path):
    """Not at load, since a second controller may wait; not at once, as a clock that goes back made one good twice."""
    kind = Kind("hmac", tmp_path)
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "old").write_bytes(OLD)
    fresh = f"{'ab' * 16} {int(time.time()) - 3000}\n"
    before = f"{'cd' * 16} 1000\n{fresh}"
    (tmp_path / "key.spent").write_text(before)
    ask(kind.plugin, [])
    assert (tmp_path / "key.spent").read_text() == before
    word = kind.give()
    (answer,) = ask(kind.plugin, [large(word)])
    nonce = answer.admin_comment.split(":", 1)[0]
    kept = (tmp_path / "key.spent").read_text().splitlines(keepends=True)
    assert (kept[0], kept[1].split()[0], len(kept)) == (fresh, nonce, 2)


def test_a_controller_that_runs_for_long_keeps_no_spent_number_beyond_its_time(tmp_path: Path):
    kind = Kind("hmac", tmp_path)
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "old").write_bytes(OLD)
    words = [kind.give() for _ in range(5)]
    over = f"{'cd' * 16} 1000\n"
    text = kind.plugin.replace("left = 4096", "left = 2")
    path = lua_host.literal(str(tmp_path / "key.spent"))
    lines = [f"do local file = io.open({path}, 'a') file:write({lua_host.literal(over)}) file:close() end"]
    answers = ask(text, [*map(large, words[:1]), *lines, *map(large, words[1:]), *map(large, words)], silent=1)
    assert [answer.code == 0 for answer in answers] == [True] * 5 + [False] * 5
    kept = (tmp_path / "key.spent").read_text()
    assert over not in kept
    assert kept.count("\n") == 5


def test_a_script_too_long_to_be_hashed_in_lua_is_refused_and_told_so(tmp_path: Path):
    kind = Kind("hmac", tmp_path)
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "old").write_bytes(OLD)
    long = "#" * (LARGEST_SIGNED_SCRIPT + 1)
    answer = ask(kind.plugin, [large(kind.give(script=long), script=long)])[0]
    refused(answer, f"at most {LARGEST_SIGNED_SCRIPT} bytes")
    assert ask(kind.plugin, [large(kind.give(script=long[1:]), script=long[1:])])[0].code == 0


def test_names_come_out_as_they_went_in(kind: Kind):
    names = ("a,b:c", "ä=.%20", "-")
    taken = kind.give(replace(CEILINGS, licenses=names[0]), SCRIPT)
    assert ask(kind.plugin, [large(taken, licenses=names[0])])[0].code == 0
    word = kind.give(replace(CEILINGS, partitions=("gpu",), qos=names[2], account=names[1]), SCRIPT)
    assert ask(kind.plugin, [large(word, qos="a", account=names[1])])[0].code != 0
    assert ask(kind.plugin, [large(word, qos=names[2], account=names[1])])[0].code == 0


def test_srun_and_salloc_take_a_ticket_that_was_given_without_a_script(kind: Kind):
    word = kind.give(script=None)
    batch, step = ask(kind.plugin, [large(word), large(word, script=None, environment=None)])
    refused(batch, "for another script")
    assert step.code == 0


def test_agents_need_a_ticket_at_any_size(kind: Kind):
    small = {"time_limit": 5, "min_mem_per_node": 1024, "pn_min_memory": 1024}
    text = plugin(kind.source, agent_users=("user1003",), agent_accounts=("agents",))
    answers = ask(
        text,
        [
            submission(USER, **small, default_account="lab"), submission(1003, **small),
            submission(USER, **small, account="agents"), submission(USER, **small, default_account="agents"),
            submission(USER, **small, default_account="agents", account="lab"),
        ],
    )  # fmt: skip
    assert [answer.code == 0 for answer in answers] == [True, False, False, False, True]
    for answer in (answers[1], answers[2], answers[3]):
        refused(answer, "need a ticket")


RECORD = {
    "admin_comment": SubmissionTicket("ab" * 16, replace(CEILINGS, expires=5, qos="high"), None).admin_comment,
    "min_mem_per_node": 32768, "min_nodes": 2, "max_nodes": 2, "min_cpus": 4, "tres_per_job": "gres:gpu:a100:8",
}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "good"),
    [
        ({"time_limit": 3000}, True), ({"time_limit": 3001}, False), ({"time_limit": 4294967295}, False),
        ({"min_mem_per_node": 16384}, True), ({"min_mem_per_node": 65536}, True),
        ({"min_mem_per_node": 65537}, False), ({"min_mem_per_node": 0}, False), ({"min_mem_per_cpu": 65536}, False),
        ({"tres_per_job": "gres:gpu:2", "min_mem_per_node": 16384}, False), ({"tres_per_job": "gres:gpu:9"}, False),
        ({"min_nodes": 2, "max_nodes": 2}, False), ({"min_cpus": 4, "max_cpus": 8}, False),
        ({"partition": "big", "min_cpus": 8}, False), ({"tres_per_job": "", "min_cpus": 8}, False),
        ({"min_cpus": 8}, False), ({"min_cpus": 9}, False), ({"max_cpus": 9}, False), ({"max_nodes": 3}, False),
        ({"partition": "big"}, True), ({"partition": "cpu"}, False), ({"qos": "high"}, True), ({"qos": "top"}, False),
        ({"account": "other"}, False), ({"requeue": 1}, False), ({"requeue": 0}, True), ({"shared": 0}, False),
        ({"array_inx": "%2"}, True), ({"array_inx": "%3"}, False), ({"array_inx": "%0"}, False),
        ({"num_tasks": 9}, False), ({"comment": "x"}, True), ({}, True), ({"req_nodes": "gpu[01-02]"}, True),
        ({"req_nodes": "gpu[01-03]"}, False), ({"req_nodes": "gpu[1,2],cpu7"}, False), ({"gres": "shard:2"}, False),
        ({"licenses": "matlab:2"}, True), ({"licenses": ""}, True), ({"licenses": "matlab:3"}, False),
        ({"licenses": "ansys"}, False), ({"reservation": "lab"}, True), ({"reservation": "other"}, False),
        ({"tres_per_node": "gres:nvme:2"}, False), ({"tres_per_node": "gres/nvme=2"}, False), ({"gres": "nvme:4"}, False),
        ({"tres_per_job": "gres:gpu:h100:2", "min_mem_per_node": 16384}, False), ({"tres_per_task": "cpu:2"}, False),
        ({"burst_buffer": "x"}, False), ({"core_spec": 0}, False), ({"core_spec": 65534}, True), ({"container": "/x"}, False),
    ],
)  # fmt: skip
def test_the_owner_can_change_a_job_within_the_ceilings_in_its_admin_comment(fields: dict[str, object], good: bool):
    text = plugin(TicketSource.parse("files:/nonexistent"))
    calls = ['PARTS = {big = {name = "big", max_share = 1}}', change(USER, RECORD, **fields)]
    assert (ask(text, calls, silent=1)[0].code == 0) is good


def test_a_job_without_a_ticket_is_changed_within_the_free_limits():
    text = plugin(TicketSource.parse("files:/nonexistent"), agent_accounts=("agents",))
    record = {"min_mem_per_node": 1024, "min_nodes": 1, "max_nodes": 1, "admin_comment": "looked at by ops"}
    calls = [{"time_limit": 1440}, {"time_limit": 1441}, {"min_mem_per_node": 16385}, {"account": "agents"}]
    answers = ask(text, [change(USER, record, **fields) for fields in calls])
    assert [answer.code == 0 for answer in answers] == [True, False, False, False]


@pytest.mark.parametrize("source", [None, TicketSource.parse("files:/nonexistent")])
def test_nodes_that_are_named_count_where_fewer_are_asked_for(source: TicketSource | None):
    job = {
        "tres_per_node": "gres:gpu:2", "min_mem_per_node": 1024, "pn_min_memory": 1024, "time_limit": 5
    }  # fmt: skip
    lists = ["gpu01", "gpu[1-2]", "gpu[1-5]", "gpu[1,3-4],cpu1,cpu2", "gpu[01-03]x,a,b"]
    answers = ask(plugin(source), [submission(USER, **job, req_nodes=text) for text in lists])
    assert [answer.code == 0 for answer in answers] == [True, True, False, False, False]
    for answer in answers[2:]:
        assert "10 GPUs" in answer.told[0]
    more = ask(plugin(source), [submission(USER, **job, req_nodes="gpu01", min_nodes=1, max_nodes=9)])[0]
    assert "18 GPUs" in more.told[0]


def test_an_error_refuses(kind: Kind):
    text = kind.plugin.replace("local function admit", "local admit\nlocal function gone")
    answer = ask(text, [large(kind.give())])[0]
    assert answer.code != 0
    assert "the limits could not be checked, tell an administrator" in answer.told[0]
    broken = {**RECORD, "admin_comment": f"{'ab' * 16}:uid=1"}
    assert ask(kind.plugin, [change(USER, broken, time_limit=1)])[0].code != 0


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
async def test_an_exported_file_is_loaded_in_a_lua_before_a_controller_gets_it(kind: Kind, program: str):
    file = kind.folder / "job_submit.lua"
    for text in (kind.plugin, plugin(None)):
        file.write_text(text)
        said = await lua_check.check(file, lua=program)
        assert said
        assert said.startswith("loaded by Lua 5.")
    assert not (kind.folder / "key.spent").exists()
    for wrong in ("local x =", kind.plugin.replace("slurm_job_modify", "slurm_job_change"), "return 1"):
        file.write_text(wrong)
        with pytest.raises(AgentToolsError, match="does not work in"):
            await lua_check.check(file, lua=program)


async def test_a_key_that_cannot_be_read_is_told_by_the_check(tmp_path: Path):
    (tmp_path / "job_submit.lua").write_text(plugin(TicketSource.parse(f"hmac:{tmp_path}/none")))
    with pytest.raises(AgentToolsError, match="none"):
        await lua_check.check(tmp_path / "job_submit.lua", lua="lua5.1")
    (tmp_path / "none").write_bytes(b"short")
    with pytest.raises(AgentToolsError, match="shorter than 32 bytes"):
        await lua_check.check(tmp_path / "job_submit.lua", lua="lua5.1")


@pytest.mark.parametrize(
    "text", ["files", "files:", "files:tickets", "files:/a,/b", "hmac:", "hmac:/a,/b,/c", "hmac:key", "munge:/a", 'files:/a"\n']
)  # fmt: skip
def test_a_source_of_tickets_that_cannot_be_is_refused(text: str):
    with pytest.raises(InputError, match="tokens"):
        TicketSource.parse(text)


def test_agents_can_be_named_only_where_tickets_are_given():
    with pytest.raises(InputError, match="agent_users"):
        plugin(None, agent_accounts=("agents",))
    with pytest.raises(InputError, match="tokens"):
        TicketSource.parse("files:/a", "/b")
    assert 'spent = { "/b" }' in plugin(TicketSource.parse("hmac:/a", "/b"))
