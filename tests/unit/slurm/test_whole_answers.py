"""Whole records of what Slurm's commands answer, and what they say where a value is left out or cannot be."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import LOOKED, START, US, accounted, queued
from tests.unit.slurm.test_parsers import SHOWN

from slurm_agent_tools.errors import SlurmGarbled, SlurmUnreachable
from slurm_agent_tools.models.job import Job, is_our_comment, run_id_in, token_in
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.slurm import node_list
from slurm_agent_tools.slurm.commands import (
    columns,
    sacct,
    sacct_waits,
    scontrol,
    scontrol_reservations,
    squeue,
)
from slurm_agent_tools.units import UNLIMITED, JobId, parse_job_id

GIB = 2**30
AWAY = b"sacct: error: Connection refused"


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


# --- squeue -------------------------------------------------------------------------------------------------------


def test_a_whole_row_of_the_queue():
    [job] = squeue.parse(
        done(
            queued(
                "5_3", "COMPLETING", raw=8, again=8, reason="Priority", start=START + 5, end=1_600_000_000,
                limit="2:00", elapsed="1:30", nodes="cpu[1-2]", required_nodes="cpu1", node_count="2-3", cpus=6,
                dependency="afterok:4", comment="sat-1", name="n", partition="long", user="bob",
            )
        ), LOOKED)  # fmt: skip
    assert job == Job(
        parse_job_id("5_3"), "n", "COMPLETING", ("squeue",), raw_state="COMPLETING", user="bob", partition="long",
        reason="Priority", submitted=at(START), started=at(START + 5), ended=at(1_600_000_000), elapsed_seconds=90,
        nodes="cpu[1-2]", required_nodes="cpu1", dependency="afterok:4", comment="sat-1", raw_id=8,
        resources=Resources(partition="long", nodes=2, cpus=6, time_limit_seconds=120),
    )  # fmt: skip


def test_what_is_told_of_a_row_that_cannot_be_read_is_short():
    with pytest.raises(SlurmGarbled) as caught:
        squeue.parse(done(b"x" * 5000), LOOKED)
    assert "x" * 300 in caught.value.message
    assert "x" * 301 not in caught.value.message
    [job] = [squeue.parse(done(queued("5", cpus="many") + queued("6")), LOOKED)]
    with pytest.raises(SlurmGarbled, match="many"):
        job.jobs([5])
    assert len(job.jobs([6])) == 1
    assert job.jobs([]) == ()


# --- sacct --------------------------------------------------------------------------------------------------------


def test_a_whole_row_of_the_accounting():
    row = accounted(
        "5", "COMPLETED", "0:0", Comment=" sat-1 ", WorkDir="/p", QOS="normal", AdminComment="seen", NodeList="cpu1",
        ReqTRES="cpu=2,mem=4G,node=1", AllocTRES="cpu=4,mem=8G,node=2,gres/gpu=2", Timelimit="01:00:00",
        Eligible=START + 1, Reason="Priority", DerivedExitCode="3:9",
    )  # fmt: skip
    [job] = sacct.parse(done(row))
    assert job == Job(
        JobId(5), "train", "COMPLETED", ("sacct",), raw_state="COMPLETED", user="alice", partition="cpu", exit_code=0,
        short_code=True, derived_exit_code=3, derived_signal=9, submitted=at(START), eligible=at(START + 1),
        started=at(START), ended=at(START + 60), elapsed_seconds=60, nodes="cpu1", comment="sat-1", work_dir="/p",
        raw_id=5, qos="normal", admin_comment="seen", requested=job.requested, allocated=job.allocated,
        resources=Resources(
            partition="cpu", nodes=2, cpus=4, gpus=2, memory_bytes=8 * GIB, memory_per_gpu_bytes=4 * GIB,
            time_limit_seconds=3600,
        ),
    )  # fmt: skip
    assert (job.requested, job.allocated) == (
        {"cpu": 2, "mem": 4 * GIB, "node": 1},
        {"cpu": 4, "mem": 8 * GIB, "node": 2, "gres/gpu": 2},
    )


@pytest.mark.parametrize("nodes", ["", "None assigned"])
def test_what_the_accounting_does_not_know_of_a_job_is_none(nodes):
    row = accounted("5", "PENDING", Start="Unknown", End="Unknown", NodeList=nodes, ElapsedRaw=0, JobIDRaw="")
    [job] = sacct.parse(done(row))
    assert (job.nodes, job.elapsed_seconds, job.raw_id, job.requested, job.allocated) == (None,) * 5
    assert (job.exit_code, job.signal, job.short_code, job.derived_exit_code, job.ended) == (None,) * 5
    assert job.resources == Resources(partition="cpu")


def test_a_running_job_of_the_accounting_has_no_end_yet():
    [job] = sacct.parse(done(accounted("5", "RUNNING", "1:9", DerivedExitCode="2:3")))
    assert (job.ended, job.exit_code, job.signal, job.derived_exit_code, job.derived_signal) == (None,) * 5
    assert job.elapsed_seconds == 60


def test_an_accounting_that_is_away_is_an_error_though_it_ended_well():
    for parse in (sacct.parse, sacct_waits.parse):
        with pytest.raises(SlurmUnreachable, match="Connection refused") as caught:
            parse(done(b"", AWAY, 0))
        assert "again" in (caught.value.hint or "")


@pytest.mark.parametrize(("rows", "hours"), [(0, 168), (59, 168), (60, 24), (416, 24), (417, None), (100_000, None)])
def test_the_wider_window_is_as_long_as_it_may_be(rows, hours):
    """Two hours hold so many rows; a window of so many hours may hold 5,000."""
    assert sacct_waits.wider(rows) == hours


# --- scontrol show job --------------------------------------------------------------------------------------------


def shown(*changes: tuple[str, str]) -> Job:
    text = SHOWN.format(name="a")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    [job] = scontrol.parse_jobs(done(text.encode()))
    return job


@pytest.mark.parametrize(
    ("line", "nodes", "gpus"),
    [
        ("TresPerJob=gres:gpu:2", 1, 2),
        ("TresPerJob=gres:gpu:a100:2,gres:gpu:v100:1", 3, 3),
        ("TresPerNode=gres:gpu:2", 3, 6),
        ("TresPerNode=gres/gpu=2", 1, 2),
        ("TresPerTask=cpu:2", 3, 0),
    ],
)
def test_gpus_are_those_that_were_asked_for_where_the_accounting_counts_none(line, nodes, gpus):
    job = shown(("TresPerJob=gres:gpu:2", line), (",gres/gpu=2", ""), ("mem=32G,node=1", f"mem=32G,node={nodes}"))
    assert (job.resources.gpus, job.resources.nodes) == (gpus, nodes)


def test_a_whole_record_of_a_held_job():
    assert shown(("Priority=0 Nice=0", "Priority=0 Nice=7")) == Job(
        JobId(7), "a", "PENDING", ("scontrol",), raw_state="PENDING", user="alice", partition="gpu",
        reason="JobHeldUser", exit_code=None, submitted=at(100), nice=7, qos="normal", restarts=0, requeue=False,
        comment="sat-1", work_dir="/p", stdout="/p/a b.out", stderr="/p/a b.err", command="/dev/stdin",
        resources=Resources(
            partition="gpu", nodes=1, cpus=4, gpus=2, memory_bytes=32 * GIB, memory_per_gpu_bytes=16 * GIB,
            memory_per_node_bytes=32 * GIB, time_limit_seconds=1800,
        ),
        raw_id=7,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ([], True),
        ([("JobHeldUser", "JobHeldAdmin")], True),
        ([("JobHeldUser", "Priority")], False),
        ([("JobHeldUser", "None")], False),
        ([("PENDING", "RUNNING")], False),
    ],
)
def test_a_job_is_held_while_it_waits_and_slurm_says_so(changes, held):
    assert shown(*changes).held == held


# --- reservations and names of nodes ------------------------------------------------------------------------------

KEPT = (
    "ReservationName=r StartTime={start} EndTime={end} Nodes={nodes} PartitionName={part} Flags={flags} Comment=Nodes=x"
)


def reserved(**changes: str):
    cells = {"start": "100", "end": "200", "nodes": "cpu[1-2]", "part": "cpu", "flags": "MAINT,DAILY"} | changes
    return scontrol_reservations.parse(done(f"No header\n{KEPT.format(**cells)}\n".encode()))


def test_a_reservation_is_whom_and_when_its_nodes_are_kept_for():
    [one] = reserved()
    assert (one.name, one.start, one.end, one.partition) == ("r", at(100), at(200), "cpu")
    assert (one.nodes, one.flags) == ({"cpu1", "cpu2"}, {"MAINT", "DAILY"})


@pytest.mark.parametrize("nodes", ["", "(null)"])
def test_a_reservation_may_name_no_nodes_no_partition_and_no_flags(nodes):
    [one] = reserved(nodes=nodes, part="(null)", flags="")
    assert (one.nodes, one.partition, one.flags) == (frozenset(), None, frozenset())


@pytest.mark.parametrize("missing", ["start", "end"])
def test_a_reservation_without_one_of_its_times_is_left_out(missing):
    assert reserved(**{missing: "Unknown"}) == ()


@pytest.mark.parametrize("text", ["a[" + "x" * 200 + "]", "a b" + "c" * 200, "a[9-1]" + "c" * 200])
def test_what_is_no_list_of_nodes_is_told_shortly(text):
    with pytest.raises(ValueError, match="not a ") as caught:
        node_list.expand(text)
    assert text[:80] in str(caught.value)
    assert text[:81] not in str(caught.value)
    assert node_list.named(text) == node_list.named(None) == node_list.named("") == frozenset()
    assert node_list.named("a[1-2]") == {"a1", "a2"}


# --- tables and comments ------------------------------------------------------------------------------------------


def test_a_table_that_was_cut_is_an_error_that_says_so():
    cut = replace(done(f"a{US}b{US}c\n".encode()), truncated=True)
    with pytest.raises(SlurmGarbled, match="longer than can be read"):
        columns.table(cut, ("a", "b", "c"), dict)


def test_a_row_is_told_shortly():
    with pytest.raises(SlurmGarbled) as caught:
        columns.table(done(b"y" * 5000), ("a", "b"), dict)
    assert "y" * 300 in caught.value.message
    assert "y" * 301 not in caught.value.message


def test_a_limit_without_an_end_is_known():
    assert columns.time_limit("UNLIMITED") == UNLIMITED


@pytest.mark.parametrize(
    ("comment", "token", "run_id", "ours"),
    [
        ("sat-0123456789abcdef:run 1", "sat-0123456789abcdef", "run 1", True),
        ("(site) sat-0123456789abcdef", "sat-0123456789abcdef", None, True),
        ("hand made:3", "hand made", "3", False),
        ("", "", None, False),
        (None, None, None, False),
    ],
)
def test_a_comment_tells_whose_submission_it_was(comment, token, run_id, ours):
    assert (token_in(comment), run_id_in(comment), is_our_comment(comment)) == (token, run_id, ours)
