"""What Slurm gives or does beyond what a job seems to ask for: more time, memory without a limit, texts without an end."""

from __future__ import annotations

import pytest
from tests.unit.policy import lua_host
from tests.unit.policy.lua_host import ask, change, lines, literal, submission
from tests.unit.policy.test_lua_attacks import FILES, SMALL, USER, admitted, plugin
from tests.unit.policy.test_lua_own_programs import TICKET, WIDE
from tests.unit.policy.test_lua_together import TWO_AT_LEAST

RECORD = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024}
SPREAD = {
    "tres_per_job": "gres:gpu:2",
    "mem_per_tres": "gres:gpu:1024",
    "min_mem_per_node": None,
    "pn_min_memory": None,
}


def told(**fields: object) -> str:
    """The first reason against a small job with these fields; empty where it is let in."""
    answer = ask(plugin(), [submission(USER, **{**SMALL, **fields})])[0]
    return answer.told[0] if answer.told else ""


def kept(**fields: object) -> dict[str, str]:
    """What a job that is let in has in these fields once the plugin has written into it."""
    call = f"JOB = blank({literal(fields)}) slurm_job_submit(JOB, PARTS, {USER})"
    names = ("num_tasks", "min_mem_per_node", "max_nodes")
    printed = lines(
        plugin(),
        [
            f"PARTS = {literal(TWO_AT_LEAST)}",
            call,
            *(f"print(string.format('%s', JOB.{name} or ''))" for name in names),
        ],
    )
    return dict(zip(names, (one.split(".")[0] for one in printed), strict=True))


@pytest.mark.parametrize(("least", "fine"), [(60, True), (1440, True), (1441, False), (43_200, False)])
def test_a_least_time_above_the_time_limit_counts_as_one(least: int, fine: bool):
    """Under a QOS with PartitionTimeLimit backfill gave `--time=5 --time-min=30-00` thirty days."""
    assert (told(time_min=least) == "") is fine
    assert admitted(plugin(), change(USER, RECORD, time_min=least)) == [fine]
    of_ticket = [change(USER, RECORD | TICKET, time_min=WIDE.time_limit + more) for more in (0, 1)]
    assert admitted(plugin(FILES), *of_ticket) == [True, False]


def test_memory_of_each_gpu_is_a_limit_only_on_nodes_with_one():
    """22.05 gave -O -N2 --gpus=2 --ntasks-per-gpu=2 two GPUs on one node, and 0 MB, no limit, on the other."""
    reason = "memory-per-gpu: memory of each GPU bounds nothing on a node without one; ask with --gpus-per-node"
    two = {**SPREAD, "min_nodes": 2, "max_nodes": 2}
    assert told(**two, ntasks_per_tres=2, num_tasks=4) == reason
    assert told(**two | {"tres_per_job": "gres:gpu:1"}) == reason
    assert told(**two) == told(**SPREAD) == ""
    of_cpus = {**two, "num_tasks": 2, "min_cpus": 2, "cpus_per_tres": "gres:gpu:2"}
    assert told(**of_cpus) == reason  # -O -N2 --gpus=2 --cpus-per-gpu=2: the same
    assert ask(f"{lua_host.LATER}{plugin()}", [submission(USER, **{**SMALL, **of_cpus})])[0].code == 0
    assert told(**two | {"tres_per_job": None, "tres_per_node": "gres:gpu:1"}) == ""


@pytest.mark.parametrize("field", ["name", "wckey", "network", "mail_user", "std_out", "work_dir", "container"])
def test_texts_are_no_longer_than_slurm_takes_them(field: str):
    most = 4096 if field in {"std_out", "work_dir", "container"} else 1024
    assert told(**{field: "x" * (most + 1)}) == f"directives: {field} is longer than {most} letters"
    assert told(**{field: "x" * most}) == ""
    assert admitted(plugin(), change(USER, RECORD, **{field: "x" * (most + 1)})) == [False]


def test_once_a_megabyte_was_too_long_in_a_second_nothing_more_is_read():
    """Slurm asks for each task of an array: of 50 MB each took 0.12 seconds, in which it answers nobody else."""
    frozen = plugin().replace("os.time()", "1")
    small = submission(USER, **SMALL)
    calls = [
        submission(USER, **SMALL, name="x" * (2**20 + 1)),
        small,
        small,
        submission(USER, **SMALL, name="x" * 2000),
    ]
    assert [one.code == 0 for one in ask(frozen, calls[1:])] == [True, True, False]
    assert [one.told[:1] for one in ask(frozen, calls)][1:] == [
        ("directives: texts before it in this second were too long; wait a second",)
    ] * 3


def test_arguments_of_a_script_have_a_bound():
    reason = "directives: the arguments of the script are longer than 20480 letters; write them into a file"
    assert told(argc=2, argv={0: "job.sh", 1: "x" * 20_475}) == reason
    assert told(argc=20_481, argv={0: "job.sh"}) == reason
    assert told(argc=2, argv={0: "job.sh", 1: "x" * 20_474}) == ""


def test_long_lists_of_nodes_are_refused_unread_once_there_were_many_in_a_second():
    """A change of an array is asked about for each of its tasks: of 1,000, others waited for 40 seconds."""
    long = ",".join("a" * 30_000)
    calls = [
        change(USER, RECORD, exc_nodes=long),
        change(USER, RECORD, exc_nodes="a"),
        change(1002, RECORD, exc_nodes="a"),
    ]
    frozen = plugin().replace("os.time()", "1")
    first, second, other = ask(frozen, calls)
    assert (first.code == 0, second.code == 0, other.code == 0) == (False, False, True)
    assert told(exc_nodes="[1]" * 201) == "directives: exc_nodes has more than 200 brackets"
    assert told(exc_nodes=",".join(f"a{row}[1-9]" for row in range(200))) == ""
    counted = "local function count_nodes(text)"
    assert counted in frozen
    unread = frozen.replace(counted, counted + " if #text > 40000 then error('read') end", 1)
    assert [one.code for one in ask(unread, calls[:1] * 3)] == [first.code] * 3


def test_what_scrontab_sends_is_refused_by_its_name():
    reason = "directives: what scrontab sends runs again and again by itself; submit one job with sbatch"
    assert told(cron_job=True, het_job_offset=0) == told(cron_job=True) == reason


def test_memory_of_cpus_is_asked_for_each_node_where_no_number_of_tasks_is_told():
    """With --distribution=plane 22.05 puts all CPUs on one of the nodes, and gives the others no limit of memory."""
    even = {**SMALL, "min_nodes": 2, "max_nodes": 2, "cpus_per_task": 8, "min_cpus": 16, "min_mem_per_node": None}
    written = kept(**even, min_mem_per_cpu=2048)
    assert (written["num_tasks"], written["min_mem_per_node"]) == ("2", "16384")


@pytest.mark.parametrize(
    ("fields", "tasks"),
    [
        ({"min_nodes": 2, "max_nodes": 2, "tres_per_node": "gres:gpu:2"}, "2"),
        ({"min_nodes": 2, "max_nodes": 2, "tres_per_node": "gres:gpu:1", "ntasks_per_node": 2}, "4"),
        ({"min_nodes": 2, "max_nodes": 2, "num_tasks": 3}, "3"),
        ({"min_nodes": 2, "max_nodes": 4}, "4294967294"),
        ({"partition": "two"}, "2"),
        ({"partition": "two", "num_tasks": 1, "min_nodes": 1, "tres_per_node": "gres:gpu:1"}, "2"),
        ({"partition": "two", "num_tasks": 3, "min_nodes": 1}, "3"),
        ({"partition": "two", "num_tasks": 1, "min_nodes": 1, "max_nodes": 4}, "2"),
        ({"req_nodes": "a[1-3]", "num_tasks": 1}, "3"),
        ({"req_nodes": "a[1-3]", "num_tasks": 1, "min_nodes": 1, "max_nodes": 1}, "1"),
        ({"min_nodes": 2, "tres_per_node": "gres:gpu:1", "cpus_per_tres": "gres:gpu:1"}, "2"),
        ({"req_nodes": "a,b", "min_nodes": 2, "tres_per_job": "gres:gpu:4"}, "2"),
        ({}, "4294967294"),
    ],
)
def test_a_job_on_several_nodes_has_a_number_of_tasks(fields: dict[str, object], tasks: str):
    """With --distribution=plane all versions put both tasks, and all GPUs, on one node: the other had 32G without a GPU."""
    assert kept(**{**SMALL, **fields})["num_tasks"] == tasks


def test_fewer_tasks_than_nodes_are_what_no_command_sends():
    reason = "directives: there are fewer tasks than nodes; no command of Slurm's sends that"
    assert told(num_tasks=1, min_nodes=2, max_nodes=2) == reason
    assert told(num_tasks=2, min_nodes=2, max_nodes=2) == ""


@pytest.mark.parametrize(
    ("nodes", "fine"),
    [
        ("a1,a2", True), ("a[1-3,5],b1", True), ("a[01-03],a1", True), ("a[1-2]x[1-2]", True), ("a1, a2", True),
        ("a1,a1", False), ("a[1-3],a2", False), ("a[1-2]x[1-2],a2x1", False), ("a[1,1]", False), ("a[08-10],a09", False),
    ],
)  # fmt: skip
def test_a_list_names_no_node_twice(nodes: str, fine: bool):
    """With --distribution=arbitrary 26.05 gave 40 times the memory of each CPU for a node that was named 40 times."""
    reason = "directives: the list names a node twice; name each node once"
    assert (told(req_nodes=nodes) == "", told(req_nodes=nodes) == reason) == (fine, not fine)
    four = RECORD | {"min_nodes": 4, "max_nodes": 8}
    assert admitted(plugin(), change(USER, four, req_nodes=nodes)) == [fine]


def test_long_names_of_nodes_are_not_told_apart():
    """5000 names of 60,000 letters took more than 15 seconds, and 600 MB of the controller's log."""
    for field in ("req_nodes", "exc_nodes"):
        reason = f"directives: {field} has a name longer than 64 letters"
        assert told(**{field: f"{'a' * 60_000}[1-5000]"}) == reason
        assert told(**{field: f"a,{'a' * 65}[1-2]"}) == reason
        assert told(**{field: f"a[1-2]{'b' * 64}[1-2]"}) == reason
        assert told(**{field: f"{'a' * 63}[1-2]"}) == told(**{field: f"{'a' * 40},{'b' * 40}"}) == ""
        assert told(**{field: f"a[1-5000]{'[1]' * 63}"}) == told(**{field: f"a[1,{'1' * 65}]"}) == reason
        assert told(**{field: f"a{'[1-2]' * 6}"}) == f"directives: {field} has a name with more than 5 brackets"
        assert told(**{field: f"a{'[1-2]' * 5}"}) == told(**{field: "a[1-5000]"}) == ""
        assert told(**{field: "a[1-5000][1]"}) == f"directives: {field} names more than 5000 nodes"  # as many copies
        assert admitted(plugin(), change(USER, RECORD, **{field: f"{'a' * 65}[1]"})) == [False]


@pytest.mark.parametrize("program", lua_host.PROGRAMS)
@pytest.mark.parametrize("number", [2**53, 2**63 - 1, "9" * 40, "0" * 16])
def test_numbers_of_nodes_that_lua_cannot_count_are_refused(number: object, program: str):
    """A loop to 2^53 never ends in Lua 5.1, and nobody was answered any more."""
    lists = [f"a[{number}]", f"a[{number}-{number}]", f"a[1-2]b[{number}]", f"a[1-{number}]"]
    for nodes in lists:
        calls = [submission(USER, **SMALL, req_nodes=nodes), change(USER, RECORD, req_nodes=nodes)]
        assert admitted(plugin(), *calls, program=program) == [False, False]


@pytest.mark.parametrize(
    ("fields", "fine"),
    [
        ({"cpus_per_task": 4}, False),
        ({"cpus_per_tres": "gres:gpu:1", "tres_per_task": "gres:gpu:2"}, False),
        ({"cpus_per_tres": "gres:gpu:1"}, True),
        ({}, True),
        ({"tres_per_task": None, "tres_per_node": "gres:gpu:1", "cpus_per_task": 4}, True),
    ],
)
def test_gpus_of_tasks_with_several_cpus_are_for_later_versions(fields: dict[str, object], fine: bool):
    """22.05 with --overcommit and plane: memory, no GPU, and its slurmctld ended when a step was started in the job."""
    asked = {
        **SMALL,
        "tres_per_task": "gres:gpu:1",
        "num_tasks": 1,
        "min_nodes": 1,
        "max_nodes": 1,
        "min_cpus": fields.get("cpus_per_task", 1),
        **fields,
    }
    later = f"{lua_host.LATER}{plugin()}"
    answers = [ask(text, [submission(USER, **asked)])[0] for text in (plugin(), later)]
    reason = "gpus: this Slurm may give no GPUs for each task where it has several CPUs; write --gpus-per-node=N"
    assert [answers[0].told[:1] == (reason,), answers[0].code == 0, answers[1].code == 0] == [not fine, fine, True]


def test_of_many_refused_changes_in_a_second_the_others_are_not_read():
    """One change of an array with 20,000 tasks took eight seconds, and seven megabytes of the controller's log."""
    beyond, fine = change(USER, RECORD, time_limit=10**6), change(USER, RECORD, comment="fine")
    frozen = plugin().replace("os.time()", "1")
    counted = "answer_change = function(job, record, parts, uid)"
    assert counted in frozen
    read = frozen.replace(counted, counted + " io.write('read')")
    assert admitted(frozen, *[beyond] * 19, fine, beyond, fine) == [False] * 19 + [True, False, False]
    printed = lua_host.run(
        "lua5.1", "\n".join([lua_host.HOST, f"assert(loadstring({literal(read)}))()", *[beyond] * 40])
    )
    assert printed.count("read") == 20
    others = change(1002, RECORD, comment="fine")
    assert admitted(frozen, *[beyond] * 20, others) == [False] * 20 + [True]


def test_changes_that_cannot_be_read_are_refused_and_counted_like_others():
    """One change of 4,999 tasks kept everybody waiting for two minutes: its list ended in what is no list."""
    frozen = plugin().replace("os.time()", "1")
    wrong, fine = change(USER, RECORD, exc_nodes="a,b]"), change(USER, RECORD, comment="fine")
    assert admitted(frozen, *[wrong] * 19, fine, wrong, fine) == [False] * 19 + [True, False, False]
    long = change(USER, RECORD, exc_nodes=",".join(f"n{number}" for number in range(4900)) + ",a]")
    counted = frozen.replace("local function count_nodes(text)", "local function count_nodes(text) io.write('counted')")
    assert counted != frozen
    printed = lua_host.run(
        "lua5.1", "\n".join([lua_host.HOST, f"assert(loadstring({literal(counted)}))()", *[long] * 19])
    )
    assert printed.count("counted") == 5
