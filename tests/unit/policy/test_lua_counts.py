"""Requests made by chance, counted by the guard and by the controller's plugin: neither lets in what the other refuses."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from tests.effort import tries
from tests.unit.policy import lua_host, random_sizes
from tests.unit.policy.random_sizes import Options

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.models.submission_ticket import Ceilings
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.policy.for_others import Site, TicketSource, job_submit_lua
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.scripts.directive_lines import words_to_directives
from slurm_agent_tools.scripts.effective_request import effective

_COUNT = """
function COUNT(job)
  local get = reader_of(job)
  local shape = shape_of(get)
  local fewest, gpus = gpu_bounds(shape)
  local memory = of_gpus(get("mem_per_tres"))
  if get("min_mem_per_node") then
    local node, gpu = by_node(get("min_mem_per_node"), shape, fewest)
    memory = gpu or node
  elseif get("min_mem_per_cpu") then
    local node, gpu = by_cpu(get("min_mem_per_cpu"), shape, fewest)
    memory = gpu or node
  end
  print(gpus, shape.cpus, shape.most_nodes, math.ceil(memory))
end
slurm.log_info("""

FITS = """
function FITS(job, ceilings)
  local found = judge_with_ticket(job, read_ceilings(ceilings), {})
  print(found[1] and found[1].text or "")
end
slurm.log_info("""

# Found by other chances than those of the tests here.
FOUND: tuple[Options, ...] = (
    {"nodes": "1", "mincpus": "5", "gpus-per-task": "3", "cpus-per-gpu": "1", "mem-per-cpu": "17G"},
)

Count = tuple[int, int, int, int]
"""GPUs, CPUs, nodes and MB, of each GPU where there is one and else on a node: the most that Slurm may give."""

SITES: dict[str, dict[str, int]] = {
    "nothing known": {},
    "threads and sizes": {"threads_per_core": 2, "most_gpus_per_node": 4, "default_cpus_per_gpu": 3},
}


def run(site: Site, more: str, calls: Sequence[str], before: str = "") -> list[str]:
    """The lines of a plugin that tells of its own functions by `more`."""
    text = f"{before} " + job_submit_lua(load(shipped()), site).replace("\nslurm.log_info(", more, 1)
    return lua_host.lines(text, calls)


def by_plugin(asked: Sequence[Options], site: Site) -> list[Count]:
    calls = [f"COUNT(blank({lua_host.literal(random_sizes.fields(one))}))" for one in asked]
    rows = [[int(word) for word in line.split()] for line in run(site, _COUNT, calls)]
    return [(gpus, cpus, nodes, memory) for gpus, cpus, nodes, memory in rows]


def asked_by(one: Options) -> JobRequest:
    words = [f"--{name}={value}" for name, value in one.items()]
    request = effective(words_to_directives([*words, "--time=5"], "argument"))
    assert not request.problems, request.problems
    return request


def allowed(one: Options, site: dict[str, int], slurm: str = "") -> Ceilings:
    return tickets.ceilings(asked_by(one), uid=1001, expires=2_000_000_000, slurm=slurm, **site)


def anywhere(one: Options, site: dict[str, int]) -> Ceilings:
    """The most that it takes, also where Slurm chooses how many nodes there are, for which there is no ticket."""
    return tickets.worst_placement(asked_by(one), tickets.node_of_site(**site), uid=1001, expires=2_000_000_000)


def is_for(one: Options, site: dict[str, int], slurm: str) -> bool:
    """Whether a ticket can be for it with that version."""
    try:
        allowed(one, site, slurm)
    except InputError:
        return False
    return True


def by_guard(one: Options, site: dict[str, int]) -> Count:
    made = anywhere(one, site)
    memory = made.memory_per_gpu if made.gpus else made.memory_per_node
    return made.gpus, made.cpus, made.nodes, memory if memory is not None else math.inf  # type: ignore[return-value]


@pytest.mark.parametrize("site", SITES.values(), ids=list(SITES))
def test_guard_and_plugin_count_the_same_of_a_request(site: dict[str, int]):
    chance = random.Random(7)  # noqa: S311 - of tests
    asked = [*FOUND, *(random_sizes.options(chance) for _ in range(tries(4000)))]
    for one, counted in zip(asked, by_plugin(asked, Site(**site)), strict=True):  # type: ignore[arg-type]
        assert by_guard(one, site) == counted, one


@pytest.mark.parametrize("slurm", ["22.05.8", "24.11.5"])
@pytest.mark.parametrize("site", SITES.values(), ids=list(SITES))
def test_a_ticket_for_a_request_lets_it_in(site: dict[str, int], slurm: str):
    chance = random.Random(8)  # noqa: S311 - of tests
    drawn = [*FOUND, *(random_sizes.options(chance) for _ in range(tries(2000)))]
    asked = [one for one in drawn if is_for(one, site, slurm)]
    assert len(asked) > len(drawn) * (0.35 if slurm == "22.05.8" else 0.4)
    jobs = [{**random_sizes.fields(one), "time_limit": 5} for one in asked]
    calls = [
        f"FITS(blank({lua_host.literal(job)}), '{allowed(one, site).text}')"
        for one, job in zip(asked, jobs, strict=True)
    ]
    source = TicketSource.parse("files:/nonexistent")
    later = "" if slurm == "22.05.8" else lua_host.LATER
    refused = run(Site(tickets=source, **site), FITS, calls, later)  # type: ignore[arg-type]
    assert [(one, why) for one, why in zip(asked, refused, strict=True) if why] == []


def test_cpus_that_a_partition_gives_for_the_gpus_of_a_task_have_their_memory():
    """26.05 gave 3000M on each node for -N2 --gpus-per-task=2 --mem-per-cpu=500 with DefCpuPerGPU=3, and 500M were counted."""
    one = {"nodes": "2", "gpus-per-task": "2", "mem-per-cpu": "1G"}
    site = {"default_cpus_per_gpu": 3}
    assert by_guard(one, site) == by_plugin([one], Site(**site))[0] == (4, 12, 2, 3072)  # type: ignore[arg-type]
    assert by_guard(one, {}) == by_plugin([one], Site())[0] == (4, 2, 2, 512)


def test_gpus_of_nodes_that_later_versions_take_for_more_tasks_than_there_are_gpus_for_are_counted():
    """What 26.05 tells of --gpus=1 --ntasks-per-gpu=3 -n9, of which it gave a GPU on each of three nodes."""
    told = {
        "num_tasks": 3,
        "min_cpus": 9,
        "ntasks_per_tres": 3,
        "tres_per_job": "gres/gpu:1",
        "mem_per_tres": "gres/gpu:9",
    }
    calls = [f"COUNT(blank({lua_host.literal(told | more)}))" for more in ({}, {"min_cpus": 3}, {"max_nodes": 1})]
    assert [line.split()[0] for line in run(Site(), _COUNT, calls)] == ["3", "1", "1"]
    guard = [anywhere({"gpus": "1", "ntasks-per-gpu": "3", "ntasks": tasks, "mem-per-gpu": "1G"}, {}) for tasks in "93"]
    assert [one.gpus for one in guard] == [3, 1]


def test_the_fewest_nodes_that_later_versions_write_for_tasks_by_node_are_no_range():
    """Of -n8 --ntasks-per-node=4 sbatch of 24.11 and 26.05 writes `min_nodes` and no `max_nodes` (measured)."""
    asked = {"num_tasks": 8, "min_cpus": 8, "ntasks_per_node": 4, "min_mem_per_cpu": 1024}
    written = ({}, {"min_nodes": 2}, {"min_nodes": 2, "max_nodes": 2}, {"min_nodes": 2, "max_nodes": 8})
    calls = [f"COUNT(blank({lua_host.literal(asked | more)}))" for more in written]
    rows = [line.split() for line in run(Site(), _COUNT, calls)]
    assert [(nodes, cpus) for _, cpus, nodes, _ in rows] == [("2", "8"), ("2", "8"), ("2", "8"), ("8", "32")]
