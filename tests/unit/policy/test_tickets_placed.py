"""A ticket is for one number of nodes, with as many tasks on each, whatever --distribution says."""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import replace

import pytest
from tests.effort import tries
from tests.unit.policy import lua_host, random_sizes
from tests.unit.policy.test_lua_counts import FITS, SITES, anywhere, is_for, run
from tests.unit.policy.test_tickets import allowed, asked

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.policy.for_others import Site, TicketSource

SAID = [
    ("--ntasks=4 --nodes=1-2", "nodes"), ("--ntasks=4", "nodes"), ("--gpus=2", "nodes"), ("--nodes=2 --ntasks=4", None),
    ("--gpus=2 --nodes=1-1", None), ("--gpus=2 --nodes=1-2", "nodes"), ("--ntasks-per-node=4", None),
    ("--gpus-per-node=4", None), ("--ntasks-per-node=2 --ntasks=4", "nodes"), ("--nodes=2 --ntasks=3", "ntasks"),
    ("--ntasks-per-node=2 --ntasks=4 --nodes=2", None), ("--ntasks-per-node=2 --ntasks=3 --nodes=2", "ntasks"),
    ("--nodes=2 --gpus=3", None), ("--nodes=2 --nodelist=a,b", None), ("--nodelist=a,b", "nodes"),
    ("--nodes=1 --nodelist=a,b", "nodes"), ("--gpus=8 --gpus-per-node=4", "nodes"),
    ("--gpus-per-node=2 --ntasks=2 --hint=nomultithread", "nodes"), ("--ntasks-per-core=1 --nodes=1", None),
    ("--ntasks-per-core=1 --nodes=2 --ntasks=4", "ntasks-per-core"), ("--mincpus=4 --nodes=2", "mincpus"),
    ("--mincpus=4 --nodes=2 --ntasks=8", None), ("--mincpus=4 --nodes=1", None), ("--mincpus=4 --ntasks-per-node=2", "mincpus"),
    ("--mincpus=4 --ntasks-per-node=2 --cpus-per-task=2", None),
    ("--mincpus=4 --nodes=1 --gpus=1 --ntasks=1", "mincpus"), ("--mincpus=4 --nodes=1 --gpus=1", None),
    ("--mincpus=4 --nodes=1 --gpus-per-node=1 --ntasks=1", None), ("--threads-per-core=2 --nodes=2 --ntasks=4", None),
    ("--nodes=2 --ntasks=4 --gpus=4 --nodelist=a,b", "gpus"), ("--nodes=2 --ntasks=2 --gpus=4 --nodelist=a,b", None),
    ("--nodes=2 --ntasks=4 --gpus-per-node=2 --nodelist=a,b", None),
    ("--gpus-per-node=2 --ntasks=2 --nodes=1 --threads-per-core=1", None),
]  # fmt: skip
"""Options, and the field of which it is told that a ticket needs to know more."""

WRITTEN = """
function WRITTEN(job, most)
  local found = judge_with_ticket(job, read_ceilings(most), PARTS)
  if found[1] == nil then keep_placed(job, PARTS) end
  print(found[1] and found[1].text or string.format("%.0f-%.0f with %.0f", job.min_nodes, job.max_nodes, job.ntasks_per_node))
end
slurm.log_info("""

JOB: dict[str, object] = {
    "min_nodes": 2, "max_nodes": 2, "num_tasks": 4, "min_cpus": 4, "min_mem_per_node": 1024, "pn_min_memory": 1024, "time_limit": 5,
}  # fmt: skip
UNSAID, NUMBER, EACH, MINCPUS = 65534, "one number of nodes", "as many tasks on each", "--mincpus is more"


@pytest.mark.parametrize(("words", "field"), SAID)
def test_a_ticket_is_for_one_number_of_nodes_and_as_many_tasks_on_each(words: str, field: str | None):
    with nullcontext() if field is None else pytest.raises(InputError) as caught:
        allowed("--time=5", "--mem=1G", *words.split())
    assert caught is None or (caught.value.field, caught.value.hint is not None) == (field, True)


@pytest.mark.parametrize(
    ("words", "nodes"), [("--gpus=8 --gpus-per-node=4", "2."), ("--ntasks=4", "1, or"), ("--nodelist=a,b,c", "3.")]
)
def test_where_the_number_is_known_it_is_told(words: str, nodes: str):
    with pytest.raises(InputError) as caught:
        allowed("--time=5", "--mem=1G", *words.split())
    assert f"--nodes={nodes}" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        ({}, "2-2 with 2"),
        ({"min_nodes": 1, "max_nodes": 1}, f"1-1 with {UNSAID}"),
        ({"min_nodes": None, "max_nodes": None, "num_tasks": 1, "min_cpus": 1}, f"1-1 with {UNSAID}"),
        ({"ntasks_per_node": 2}, "2-2 with 2"),
        ({"num_tasks": None, "min_cpus": 2}, "2-2 with 1"),
        ({"min_nodes": None, "max_nodes": None}, NUMBER),
        ({"min_nodes": 1}, NUMBER),
        ({"max_nodes": None}, NUMBER),  # which Slurm may make more, by --distribution=plane
        ({"num_tasks": 3, "min_cpus": 3}, EACH),
        ({"num_tasks": 3, "min_cpus": 3, "ntasks_per_node": 2}, EACH),
        ({"min_nodes": None, "max_nodes": None, "ntasks_per_node": 2}, NUMBER),
        ({"min_nodes": 1, "max_nodes": 1, "req_nodes": "a,b"}, NUMBER),
        ({"ntasks_per_core": 1}, "leave --ntasks-per-socket and --ntasks-per-core out"),
        ({"ntasks_per_socket": 1, "min_nodes": 1, "max_nodes": 1}, f"1-1 with {UNSAID}"),
        ({"cpus_per_task": 2, "min_cpus": 8}, "2-2 with 2"),
        ({"pn_min_cpus": 3}, "--mincpus is more than the CPUs"),
        ({"pn_min_cpus": 2}, "2-2 with 2"),
        ({"req_nodes": "a,b", "tres_per_job": "gres:gpu:4"}, "say --gpus-per-node in place of --gpus"),
        ({"req_nodes": "a,b", "tres_per_node": "gres:gpu:2"}, "2-2 with 2"),
    ],
)
def test_the_plugin_lets_in_one_number_of_nodes_and_writes_the_tasks_of_each(more: dict[str, object], answer: str):
    """By srun -N2 -n2 -c2 --distribution=plane=2 each version gave 64 CPUs that no task had, with a ticket for four."""
    job = {name: value for name, value in {**JOB, **more}.items() if value is not None}
    most = anywhere({"nodes": "8", "ntasks": "64", "gpus": "8", "mem": "1G"}, {}).text
    call = f"WRITTEN(blank({lua_host.literal(job)}), '{most}')"
    told = run(Site(tickets=TicketSource.parse("files:/nonexistent")), WRITTEN, [call], lua_host.LATER)[0]
    assert told == answer or answer in told


@pytest.mark.parametrize(
    ("words", "more", "fine"),
    [
        ("--nodes=2 --ntasks=4 --cpus-per-task=2", {"cpus_per_task": 2, "min_cpus": 8}, False),
        ("--nodes=2 --ntasks=4 --cpus-per-task=2 --exclusive", {"cpus_per_task": 2, "min_cpus": 8, "shared": 0}, True),
        ("--nodes=2 --ntasks=4", {}, True),
        ("--nodes=1 --ntasks=4 --cpus-per-task=2", {"cpus_per_task": 2, "min_cpus": 8, "min_nodes": 1, "max_nodes": 1}, True),
        ("--nodes=2 --ntasks=4 --cpus-per-task=2 --gpus=2", {"cpus_per_task": 2, "min_cpus": 8, "tres_per_job": "gres:gpu:2"}, True),
    ],
)  # fmt: skip
def test_on_22_05_a_ticket_on_several_nodes_is_for_one_cpu_of_each_task(
    words: str, more: dict[str, object], fine: bool
):
    """Without GPUs it has no regard for --ntasks-per-node where tasks have several CPUs (measured)."""
    most, request = anywhere({"nodes": "8", "ntasks": "64", "gpus": "8", "mem": "1G"}, {}), asked(*words.split())
    with nullcontext() if fine else pytest.raises(InputError, match="cpus-per-task"):
        tickets.ceilings(replace(request, time_limit=5, memory_per_node=2**30), uid=1, expires=2, slurm="22.05.8")
    call = f"WRITTEN(blank({lua_host.literal({**JOB, **more})}), '{replace(most, whole_nodes='shared' in more).text}')"
    told = run(Site(tickets=TicketSource.parse("files:/nonexistent")), WRITTEN, [call])[0]
    assert ("one CPU of each task" not in told) is fine


@pytest.mark.parametrize("site", SITES.values(), ids=list(SITES))
def test_guard_and_plugin_agree_on_which_requests_are_placed(site: dict[str, int]):
    chance = random.Random(9)  # noqa: S311 - of tests
    drawn = [random_sizes.options(chance) for _ in range(tries(2000))]
    calls = [
        f"FITS(blank({lua_host.literal({**random_sizes.fields(one), 'time_limit': 5})}), '{anywhere(one, site).text}')"
        for one in drawn
    ]
    told = run(Site(tickets=TicketSource.parse("files:/nonexistent"), **site), FITS, calls, lua_host.LATER)  # type: ignore[arg-type]
    refused = [NUMBER in why or EACH in why or MINCPUS in why for why in told]
    differing = [one for one, out in zip(drawn, refused, strict=True) if is_for(one, site, "24.11.5") == out]
    assert [
        one for one in differing if not {"gpus", "gpus-per-node"} <= one.keys() - {"nodes"}
    ] == []  # sbatch counts them
    assert len(differing) < len(drawn) * 0.01
    assert len(drawn) * 0.3 < sum(refused) < len(drawn) * 0.7
