"""The plugin against words, names and jobs that Slurm understands otherwise than they look."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import ask, change, submission

from slurm_agent_tools.models import submission_ticket
from slurm_agent_tools.models.submission_ticket import Ceilings, SubmissionTicket
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.policy.for_others import Site, TicketSource, job_submit_lua
from slurm_agent_tools.policy.loading import load, shipped

USER = 1001
SCRIPT = "#!/bin/bash\ntrue\n"
SMALL: dict[str, object] = {"time_limit": 5, "min_mem_per_node": 1024, "pn_min_memory": 1024, "environment": {}}
ALLOWED = Ceilings(USER, 0, time_limit=2000, memory_per_node=2**20, memory_per_gpu=2**20, gpus=2, cpus=8, nodes=2)
FILES = TicketSource.parse("files:/nonexistent")
EIGHT = pow(125, -1, 2**61)
"""Times 1000, as Slurm reads `kb`, this is 8 in 64 bits."""


def plugin(source: TicketSource | None = FILES, **site: object) -> str:
    return job_submit_lua(load(shipped()), Site(tickets=source, **site))  # type: ignore[arg-type]


def signed(folder: Path) -> tuple[TicketSource, str]:
    """A source of signed tickets, and a ticket without its script's."""
    (folder / "key").write_bytes(b"k" * 64)
    ticket = tickets.new_ticket(replace(ALLOWED, expires=int(time.time()) + 60), SCRIPT.encode())
    return TicketSource.parse(f"hmac:{folder}/key"), submission_ticket.comment_word(
        submission_ticket.signed(ticket, b"k" * 64)
    )


def admitted(text: str, *calls: str, program: str = "lua5.1") -> list[bool]:
    return [answer.code == 0 for answer in ask(text, calls, program=program)]


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
@pytest.mark.parametrize(
    "field", ["tres_per_job", "tres_per_node", "tres_per_task", "gres", "mem_per_tres", "cpus_per_tres"]
)
def test_a_word_that_slurm_may_count_otherwise_is_refused(program: str, field: str):
    assert EIGHT * 1000 % 2**64 == 8
    words = ["gres:gpu:+8", "gres:gpu: 8", "gres:gpu:\t8", "gres:gpu:-18446744073709551608", "xgres:gpu:8", "gresgpu:8",
             f"gres:gpu:{EIGHT}kb", "gres:gpu:8kib", "gres:gpu:8p", "gres:gpu:a100:+8", "gres:gpu:1,xgres:gpu:8",
             "gres:gpu:1 gres:gpu:8", "gres:gpu:", "gres:gpu:a100:1,gres:gpu:a100:1", "gres:gpu:1,gres/gpu=1",
             "gres:gpu:a100:1,gres:gpu:1", "gres:gpu:1,gres:gpu:a100:1", "gres:gpu:a100,gres:gpu:a100:1"]  # fmt: skip
    for text in (plugin(), plugin(None)):
        record = {"min_mem_per_node": 1024, "min_nodes": 1, "max_nodes": 1}
        assert not any(admitted(text, *(submission(USER, **SMALL, **{field: word}) for word in words), program=program))
        assert not any(admitted(text, *(change(USER, record, **{field: word}) for word in words), program=program))


def test_words_in_which_slurm_itself_writes_gpus_are_counted():
    words = ["gres:gpu:1", "gres:gpu", "gres:gpu:a100:1", "gres:gpu:1g.5gb:1", "gres:gpu:2080ti",
             "gres:gpu:a100:1,gres:gpu:h100:1"]  # fmt: skip
    others = ["gres:tmp_disk:1", "gres:none", "gres:tmp:1,gres:gpu:1,gres:tmp:1"]
    calls = [submission(USER, **SMALL, tres_per_job=word) for word in words]
    assert all(admitted(plugin(), *calls, *(submission(USER, **SMALL, tres_per_node=word) for word in others)))
    later = [submission(USER, **SMALL, tres_per_job=word) for word in ("gres/gpu=1", "gres/gpu:a100=1")]
    assert all(admitted(f"{lua_host.LATER}{plugin()}", *later))
    many = ["gres:gpu:9", "gres/gpu=9", "gres:gpu:a100:9", "gres/gpu:a100=9", "gres:gpu:1g.5gb:9", "gres:gpu:1k"]
    assert not any(admitted(plugin(), *(submission(USER, **SMALL, tres_per_job=word) for word in many)))


def test_cpus_of_a_job_are_not_changed_by_which_gpus_may_come():
    record = {"min_cpus": 2, "min_nodes": 1, "tres_per_task": "gres:gpu:1", "mem_per_tres": "gres:gpu:1024"}
    ticket = SubmissionTicket("ab" * 16, replace(ALLOWED, cpus=64, gpus=4), None)
    for more in ({}, {"admin_comment": ticket.admin_comment}):
        fields = [{"min_cpus": 4}, {"min_cpus": 8}, {"pn_min_cpus": 8}]
        calls = [change(USER, {**record, **more}, **one) for one in fields]
        assert admitted(plugin(), *calls) == [False, False, False]


PER_CPU: dict[str, object] = {"time_limit": 5, "min_mem_per_cpu": 1024, "pn_min_memory": 1024, "environment": {}}


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
def test_each_node_gets_the_cpus_of_all_tasks_that_may_be_on_it(program: str):
    few = {"num_tasks": 2, "min_cpus": 2, "min_nodes": 2, "max_nodes": 2}
    text = plugin(None)
    assert admitted(text, submission(USER, **PER_CPU, **few), program=program) == [True]
    assert admitted(text, submission(USER, **PER_CPU, **few, ntasks_per_node=60), program=program) == [False]
    gpus = PER_CPU | {"min_mem_per_cpu": 8192, "pn_min_memory": 8192}
    for one in ({"tres_per_node": "gres:gpu:1"}, {"tres_per_task": "gres:gpu:1"}):
        assert admitted(text, submission(USER, **gpus, **few, **one, ntasks_per_node=16), program=program) == [False]
    even = {"num_tasks": 4, "min_cpus": 4, "min_nodes": 2, "max_nodes": 2, "ntasks_per_node": 2}
    assert admitted(text, submission(USER, **gpus, **even, tres_per_task="gres:gpu:1"), program=program) == [True]


def test_cpus_of_tasks_beyond_those_of_the_gpus_bring_more_gpus():
    asked = {"time_limit": 5, "environment": {}, "mem_per_tres": "gres:gpu:1024"}
    asked |= {"tres_per_job": "gres:gpu:3", "cpus_per_tres": "gres:gpu:1"}
    assert admitted(plugin(), submission(USER, **asked, num_tasks=3, min_cpus=3)) == [True]
    assert admitted(plugin(), submission(USER, **asked, num_tasks=16, min_cpus=16)) == [False]
    assert admitted(plugin(), submission(USER, **asked, num_tasks=16, min_cpus=16, min_nodes=1, max_nodes=1)) == [True]


def test_cpus_that_no_task_accounts_for_may_all_be_on_one_node():
    loose = {"num_tasks": 2, "min_nodes": 2, "max_nodes": 2, "min_cpus": 64}
    assert admitted(plugin(None), submission(USER, **PER_CPU, **loose)) == [False]
    assert admitted(plugin(None), submission(USER, **PER_CPU, num_tasks=2, min_nodes=2, max_nodes=2, min_cpus=2)) == [
        True
    ]


def test_gpus_of_each_node_are_counted_on_all_nodes_that_a_job_may_have():
    two = SMALL | {"min_mem_per_node": 2048, "pn_min_memory": 2048, "tres_per_node": "gres:gpu:3"}
    assert admitted(plugin(), submission(USER, **two)) == [True]
    assert admitted(plugin(), submission(USER, **two, max_nodes=2, min_cpus=2)) == [False]
    record = {"min_mem_per_node": 8192, "min_nodes": 1, "max_nodes": 1, "min_cpus": 1}
    of_node, of_task = record | {"tres_per_node": "gres:gpu:4"}, record | {"tres_per_task": "gres:gpu:4"}
    idle = {
        "num_tasks": 3,
        "min_cpus": 3,
        "min_nodes": 2,
        "max_nodes": 2,
        "tres_per_task": "gres:gpu:1",
        "time_limit": 5,
    }
    memory = {"mem_per_tres": "gres:gpu:1024", "environment": {}}
    assert admitted(plugin(), submission(USER, **idle, **memory)) == [True]
    assert admitted(plugin(), submission(USER, **idle, **memory, ntasks_per_node=3)) == [False]
    more = [change(USER, of_node, min_nodes=1, max_nodes=2), change(USER, of_task, min_nodes=2, max_nodes=2)]
    assert admitted(plugin(), *more) == [False, False]


def test_the_cpus_of_a_job_are_not_made_fewer():
    record = {"min_mem_per_node": 2048, "min_nodes": 1, "max_nodes": 1, "min_cpus": 64}
    fewer = [{"min_cpus": 1}, {"min_cpus": 1, "min_mem_per_cpu": 2048, "max_nodes": 2}]
    assert admitted(plugin(None), *(change(USER, record, **one) for one in fewer)) == [False, False]
    assert admitted(plugin(), *(change(USER, record, **one) for one in fewer)) == [False, False]


def test_the_gpus_of_a_job_are_not_taken_off_while_its_memory_stays():
    record = {"min_mem_per_node": 16384, "min_nodes": 1, "max_nodes": 1, "tres_per_job": "gres:gpu:1"}
    calls = [
        change(USER, record, **{field: ""}) for field in ("tres_per_job", "tres_per_task", "cpus_per_tres", "gres")
    ]
    assert admitted(plugin(None), *calls, change(USER, record, time_limit=5)) == [False] * 4 + [True]
    assert admitted(plugin(), *calls, change(USER, record, tres_per_job="gres:gpu:0")) == [False] * 5


def test_a_text_that_is_longer_than_slurm_takes_is_refused_unread_and_in_one_line():
    many = ",".join(["gpu:a100:1"] * 20_000)
    (said,) = ask(plugin(None), [submission(USER, **SMALL, gres=many)])
    assert (said.code == 0, len(said.told)) == (False, 1)
    (said,) = ask(plugin(None), [submission(USER, **SMALL, gres=",".join(["gpu:a100:1"] * 90))])
    assert said.code != 0
    assert len([line for line in said.told if "plainly" in line]) == 1
    (said,) = ask(plugin(None), [submission(USER, **SMALL, comment="a" * 2000)])
    assert said.told == ("directives: comment is longer than 1024 letters",)


def test_memory_that_is_stated_twice_is_refused():
    twice = {**SMALL, "tres_per_job": "gres:gpu:1", "mem_per_tres": "gres:gpu:1024"}
    once = {**twice, "min_mem_per_node": None, "pn_min_memory": None}
    assert admitted(plugin(), submission(USER, **twice), submission(USER, **once)) == [False, True]


def test_every_way_to_name_nodes_counts_all_of_them():
    job = {**SMALL, "tres_per_node": "gres:gpu:1"}
    counted = {"n[1-3]x[1-3]": 9, "n[0-1][0-4]": 10, "a b c d e f g": 7, "a,b\nc,d,e,f": 6, "n[1,2 3,4,5-6]": 6}
    for nodes, count in counted.items():
        (answer,) = ask(plugin(), [submission(USER, **job, req_nodes=nodes)])
        assert f"{count} GPUs" in answer.told[0], nodes
    for lists, good in ((("ALL", "n[1-", "n[x]", "n]"), False), (("n1", "n[1]", "n[01]x[2]"), True)):
        calls = [submission(USER, **job, req_nodes=nodes) for nodes in lists]
        assert set(admitted(plugin(), *calls)) == {good}


def test_no_pattern_begins_anew_at_each_bracket_of_a_list():
    """With %b a list of 131,000 brackets kept every other submission waiting for seconds."""
    assert "%b" not in plugin()


def test_an_account_of_agents_is_theirs_in_any_letters_and_an_empty_one_is_the_default():
    text = plugin(agent_accounts=("agents",), exempt_accounts=("staff",))
    jobs = [{"account": "Agents"}, {"account": "AGENTS"}, {"account": "", "default_account": "agents"}]
    assert not any(admitted(text, *(submission(USER, **SMALL, **job) for job in jobs)))
    record = {"min_mem_per_node": 1024}
    assert admitted(text, *(change(USER, record, account=name) for name in ("AGENTS", "lab"))) == [False, True]
    huge = {**SMALL, "time_limit": 9999}
    assert admitted(text, submission(USER, **huge, account="", default_account="staff")) == [True]


def test_a_user_whose_name_the_controller_does_not_know_passes_for_nobody():
    text = plugin(agent_users=("user1003",))
    assert admitted(text, submission(USER, **SMALL), submission(1003, **SMALL, user_name=None)) == [True, False]


def test_a_ticket_is_for_no_job_of_scrontab(tmp_path: Path):
    source, word = signed(tmp_path)
    jobs = [{"cron_job": True}, {"cron_job": False}]
    calls = [submission(USER, **SMALL, script=SCRIPT, comment=word, **job) for job in jobs]
    assert admitted(plugin(source), *calls) == [False, True]


def test_the_mark_of_a_ticket_stays_in_the_comment_whatever_is_written_there(tmp_path: Path):
    source, word = signed(tmp_path)
    other = "sat-" + "0" * 16
    (answer,) = ask(plugin(source), [submission(USER, **SMALL, script=SCRIPT, comment=f"{other} {word}")])
    mark = "sat-" + answer.admin_comment[:16]
    assert answer.comment == f"{mark} {other}"
    record = {"min_mem_per_node": 1024, "admin_comment": answer.admin_comment}
    written = {"": mark, "mine": f"{mark} mine", f"{mark}a": f"{mark} {mark}a", f"{mark}:a": f"{mark}:a", mark: mark}
    answers = ask(plugin(source), [change(USER, record, comment=text) for text in written])
    assert [one.comment for one in answers] == list(written.values())
    (free,) = ask(plugin(source), [change(USER, {"min_mem_per_node": 1024}, comment=other)])
    assert (free.code, free.comment) == (0, other)


def test_what_a_user_wrote_stays_one_line_in_the_log_and_on_the_screen():
    word = "gpu\n[2026-01-01] slurm-agent-tools floor: uid 1002 spent ticket"
    record = {"admin_comment": SubmissionTicket("ab" * 16, ALLOWED, None).admin_comment}
    text = plugin().replace("slurm.log_info(", "slurm.log_user(")
    (answer,) = ask(text, [change(USER, record, partition=word)])
    assert any("?[2026" in line for line in answer.told)
    assert not any("\n" in line for line in answer.told)


def test_a_slurm_that_has_no_number_for_its_errors_refuses():
    host = plugin().replace("local function stated", "slurm.ESLURM_ACCOUNTING_POLICY = nil\nlocal function stated", 1)
    assert admitted(host, submission(USER, **{**SMALL, "shared": 0}), submission(USER, **SMALL)) == [False, True]


def test_half_a_line_of_a_full_disk_hides_no_spent_ticket(tmp_path: Path):
    source, word = signed(tmp_path)
    job = submission(USER, **SMALL, script=SCRIPT, comment=word)
    assert admitted(plugin(source), job) == [True]
    spent = tmp_path / "key.spent"
    spent.write_text(f"{'cd' * 16} 17" + spent.read_text())
    assert admitted(plugin(source), job) == [False]


def test_spent_tickets_that_cannot_be_read_let_nothing_in(tmp_path: Path):
    source, word = signed(tmp_path)
    job = submission(USER, **SMALL, script=SCRIPT, comment=word)
    path = lua_host.literal(str(tmp_path / "key.spent"))
    full = ("local open = io.open io.open = function(name, mode) if name == " + path + " and mode == 'rb' then"
            " return nil, 'Too many open files', 24 end return open(name, mode) end")  # fmt: skip
    text = plugin(source).replace("lines >= 4096", "lines >= 1")
    answers = ask(text, [full, job, job, job], silent=1)
    assert sum(answer.code == 0 for answer in answers) <= 1
    with pytest.raises(AssertionError, match="Too many open files"):
        ask(f"{full}\n{plugin(source)}", [])


def test_a_ticket_for_a_list_of_qos_is_good_for_it_and_for_each_of_them(tmp_path: Path):
    (tmp_path / "key").write_bytes(b"k" * 64)
    source = TicketSource.parse(f"hmac:{tmp_path}/key")
    listed = replace(ALLOWED, expires=int(time.time()) + 60, qos="high,night")
    for qos, good in (("high,night", True), ("night", True), ("night,other", False), (None, False)):
        word = submission_ticket.comment_word(
            submission_ticket.signed(tickets.new_ticket(listed, SCRIPT.encode()), b"k" * 64)
        )
        assert admitted(plugin(source), submission(USER, **SMALL, script=SCRIPT, comment=word, qos=qos)) == [good], qos


WHOLE = {"whole": {"name": "whole", "max_share": 0, "total_cpus": 64, "total_nodes": 2, "flag_default": 0},
         "gpu": {"name": "gpu", "max_share": 1, "total_cpus": 64, "total_nodes": 2, "flag_default": 1}}  # fmt: skip


def on_whole(text: str, *calls: str, **default: int) -> list[bool]:
    parts = {name: {**part, **(default if name == "whole" else {})} for name, part in WHOLE.items()}
    return [one.code == 0 for one in ask(text, [f"PARTS = {lua_host.literal(parts)}", *calls], silent=1)]


def test_a_partition_of_whole_nodes_gives_all_their_gpus_and_the_memory_of_all_their_cpus():
    text = plugin(None, most_gpus_per_node=4)
    gpu = SMALL | {"tres_per_job": "gres:gpu:1", "partition": "whole"}
    three = {"min_nodes": 3, "max_nodes": 3, "num_tasks": 3, "tres_per_job": "gres:gpu:3"}
    calls = [submission(USER, **job) for job in (
        gpu, gpu | three, gpu | three | {"partition": "gpu"}, gpu | three | {"partition": "gpu,whole"},
        PER_CPU | {"partition": "whole"}, PER_CPU | {"partition": "gpu"}, PER_CPU,
    )]  # fmt: skip
    assert on_whole(text, *calls) == [True, False, True, False, False, True, True]
    assert on_whole(text, submission(USER, **PER_CPU), flag_default=1) == [False]
    assert on_whole(plugin(None), submission(USER, **(gpu | three))) == [True]  # how many a node has is not known
    ticketed = plugin(most_gpus_per_node=4)
    assert on_whole(ticketed, submission(USER, **gpu), submission(USER, **(gpu | three))) == [True, False]


def test_a_job_that_gets_the_gpus_of_a_whole_node_is_told_to_go_elsewhere_and_not_to_ask_for_fewer():
    parts = f"PARTS = {lua_host.literal(WHOLE)}"
    gpu = SMALL | {"tres_per_job": "gres:gpu:1", "partition": "whole"}
    (found,) = ask(plugin(None, most_gpus_per_node=16), [parts, submission(USER, **gpu)], silent=1)
    told = "".join(found.told)
    assert "gpus: 16 GPUs of a whole node, which this partition gives, are more than" in told
    assert "name a partition that shares its nodes" in told
    assert "write --gpus" not in told


def test_no_change_brings_a_job_to_whole_nodes_that_it_could_not_have_asked_for():
    record = {"partition": "gpu", "min_nodes": 3, "max_nodes": 3, "min_cpus": 3, "tres_per_job": "gres:gpu:3",
              "min_mem_per_cpu": 1024}  # fmt: skip
    moved = change(USER, record, partition="whole")
    of_node = change(USER, {**record, "min_mem_per_cpu": None, "min_mem_per_node": 1024, "min_nodes": 1, "max_nodes": 1},
                     partition="whole")  # fmt: skip
    there = change(USER, {**record, "partition": "whole"}, min_mem_per_cpu=10)
    text = plugin(None, most_gpus_per_node=4)
    assert on_whole(text, moved, of_node, there, change(USER, record, partition="gpu")) == [False, True, False, True]


def test_cpus_that_come_with_a_gpu_bring_their_memory_where_the_site_says_how_many():
    job = PER_CPU | {"min_mem_per_cpu": 8192, "pn_min_memory": 8192, "tres_per_job": "gres:gpu:1", "num_tasks": 1}
    jobs = [job, job | {"cpus_per_task": 1}, job | {"cpus_per_tres": "gres:gpu:2"}]
    calls = [submission(USER, **one) for one in jobs]
    assert admitted(plugin(None), *calls) == [True, True, True]
    assert admitted(plugin(None, default_cpus_per_gpu=8), *calls) == [False, True, True]


def test_gpus_for_each_socket_are_refused_without_a_ticket():
    (said,) = ask(plugin(None), [submission(USER, **SMALL, tres_per_socket="gres:gpu:1", sockets_per_node=1)])
    assert said.code != 0
    assert "GPUs for each socket may be more than they show; write --gpus=4" in said.told[0]


def test_tasks_by_node_get_the_gpus_of_all_that_may_be_on_the_last_node():
    job = SMALL | {"tres_per_task": "gres:gpu:1", "ntasks_per_node": 4, "min_mem_per_node": 2048, "pn_min_memory": 2048}
    assert admitted(plugin(), submission(USER, **job, num_tasks=4), submission(USER, **job, num_tasks=5)) == [
        True,
        False,
    ]


@pytest.mark.parametrize("source", [FILES, None], ids=["tickets", "none"])
@pytest.mark.parametrize(
    "fields",
    [
        {"tres_per_node": "gres:gpu:1", "req_nodes": "feature{a100}"},
        {"tres_per_job": "gres:gpu:h100:2", "tres_per_node": "gres:gpu:a100:2"},
        {"tres_per_task": "gres:gpu:h100:1", "gres": "gres:gpu:a100:1", "num_tasks": 1},
        {"tres_per_node": "gres:gpu:1,gres:nvme:4", "mem_per_tres": "gres:gpu:1024,gres:nvme:100000"},
        {"tres_per_node": "gres:nvme:4", "cpus_per_tres": "gres:nvme:32"},
        {"bitflags": 2**62 + 16}, {"bitflags": 2**62},
        {"tres_per_node": "gres:gpu:a100:1", "mem_per_tres": "gres:gpu:h100:1024"},
        {"tres_per_node": "gres:gpu:a100:1", "cpus_per_tres": "gres/gpu:h100:1"},
        {"cpus_per_task": 0}, {"min_nodes": 0}, {"ntasks_per_socket": 0}, {"ntasks_per_node": 0},
        {"partition": "a," * 600}, {"features": "a&" * 600}, {"licenses": "a," * 600}, {"dependency": "afterany" * 600},
    ],
    ids=str,
)  # fmt: skip
def test_what_slurm_counts_or_reads_otherwise_than_it_looks_is_refused(
    source: TicketSource | None, fields: dict[str, object]
):
    plain = {name: value for name, value in fields.items() if name in {"tres_per_node", "tres_per_job"}}
    calls = [submission(USER, **{**SMALL, **one}) for one in (fields, dict(list(plain.items())[:1]))]
    refused, fine = ask(plugin(source), calls)
    assert (refused.code == 0, fine.code == 0) == (False, True)
    assert len(refused.told) <= 3


def test_cpus_beside_no_tasks_may_all_be_on_one_node():
    gpus = {"pn_min_memory": 15000, "min_mem_per_cpu": 15000, "tres_per_job": "gres:gpu:4"}
    calls = [submission(USER, time_limit=5, environment={}, **gpus, min_cpus=cpus) for cpus in (1, 16)]
    assert admitted(plugin(), *calls) == [True, False]


def test_what_is_hidden_of_another_users_job_is_not_told_by_a_change():
    """22.05 asks the plugin before it looks whose job it is: a limit was found by trying sizes."""
    others = {"min_mem_per_node": 1024, "user_id": 1002}
    calls = [change(USER, others, min_mem_per_node=size) for size in (512, 2**30)]
    fine, beyond = ask(plugin(), calls)
    assert (fine.code, beyond.code, beyond.told) == (0, 2010, ())
    own = ask(plugin(), [change(USER, {"min_mem_per_node": 1024}, min_mem_per_node=2**30)])[0]
    later = ask(lua_host.LATER + plugin(), calls)[1]
    assert own.code == later.code not in {0, 2010}
