"""What no command of Slurm's sends, and a user's own program can: the plugin refuses it, or judges the job that Slurm makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.policy.lua_host import ask, change, submission
from tests.unit.policy.test_lua_attacks import ALLOWED, FILES, SMALL, USER, admitted, plugin

from slurm_agent_tools.models.submission_ticket import SubmissionTicket
from slurm_agent_tools.policy.for_others import TicketSource

BY_COMMANDS = (0, 1, 9, 14, 15, 19, 21, 22, 24, 25, 26, 27, 28, 38, 39, 40, 41, 43, 44, 48, 49)
"""Flags that options of sbatch, srun, salloc, scrontab and scontrol set, and that messages always have (slurm.h)."""

WIDE = replace(ALLOWED, gpus=8, nodes=4, cpus=64, gres=("gpu:a100", "gpu:h100"))
TICKET = {"admin_comment": SubmissionTicket("ab" * 16, WIDE, None).admin_comment}


@pytest.mark.parametrize("source", [FILES, None], ids=["tickets", "none"])
def test_a_flag_that_slurm_keeps_for_itself_is_refused(source: TicketSource | None):
    """With flag 23 a job with --mem-per-gpu=1G came with the default memory of each CPU: 62.5G for one GPU."""
    calls = [submission(USER, **SMALL, bitflags=2**place) for place in range(53)]
    told = ask(plugin(source), calls)
    assert [place for place, one in enumerate(told) if one.code == 0] == list(BY_COMMANDS)
    assert "no command of Slurm's sends flag 23 of a job" in told[23].told[0]


@pytest.mark.parametrize("mark", [{}, TICKET], ids=["none", "ticket"])
def test_neither_does_a_change_send_such_a_flag(mark: dict[str, str]):
    record = {"min_cpus": 2, "min_nodes": 1, "max_nodes": 1, "min_mem_per_node": 1024, **mark}
    calls = [change(USER, record, bitflags=2**place) for place in (21, 49, 23, 31, 34)]
    assert admitted(plugin(), *calls) == [True, True, False, False, False]


@pytest.mark.parametrize("mark", [{}, TICKET], ids=["none", "ticket"])
def test_a_change_to_gpus_of_another_type_is_refused(mark: dict[str, str]):
    """Slurm adds them to those that the job asks for: two of one type and four of another."""
    record = {
        "min_cpus": 2,
        "min_nodes": 1,
        "max_nodes": 2,
        "tres_per_job": "gres:gpu:a100:4",
        "min_mem_per_node": 1024,
    }
    words = ["gres:gpu:a100:3", "gres:gpu:h100:2", "gres:gpu:2", "gres:gpu:a100:1,gres:gpu:h100:1"]
    assert admitted(plugin(), *(change(USER, record | mark, tres_per_job=word) for word in words)) == [
        True, False, False, False,
    ]  # fmt: skip
    both = record | mark | {"tres_per_job": "gres:gpu:a100:2,gres:gpu:h100:2"}
    assert admitted(plugin(), change(USER, both, tres_per_job="gres:gpu:a100:2")) == [False]


@pytest.mark.parametrize("mark", [{}, TICKET], ids=["none", "ticket"])
@pytest.mark.parametrize("beside", [{"min_mem_per_cpu": 2000}, {"min_mem_per_node": 0}])
def test_a_job_with_memory_of_each_gpu_is_changed_without_a_look_at_what_slurm_writes_beside_it(
    mark: dict[str, str], beside: dict[str, int]
):
    """That is the partition's default, or 0 once the job was looked at: each change of such a job was refused for it."""
    record = {"min_cpus": 32, "min_nodes": 1, "max_nodes": 1, "tres_per_job": "gres:gpu:4", **beside, **mark}
    record |= {"mem_per_tres": "gres:gpu:8192"}
    fine = [{"time_limit": 5}, {"features": "ib"}, {"comment": "x"}, {"tres_per_job": "gres:gpu:3"}]
    refused = [{"min_mem_per_node": 512}, {"min_mem_per_cpu": 512}, {"mem_per_tres": "gres:gpu:1024"}]
    calls = [change(USER, record, **words) for words in (*fine, *refused)]
    assert admitted(plugin(), *calls) == [True] * len(fine) + [False] * len(refused)
