"""Reading workloads: SWF, plain and packed, as it should be and as it should not; and the accounting's records."""

import gzip
from datetime import UTC, datetime, timedelta

import pytest

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.planning import workload
from slurm_agent_tools.units import JobId

HEAD = "; MaxNodes: 4\n; MaxProcs: 8\n;\n"
LINE = "1 0 5 60 2 -1 -1 4 120 1000 1 7 7 3 -1 -1 -1 -1\n"
SINCE = datetime(2026, 11, 1, tzinfo=UTC)


def row(number=1, submit=0, run=60, size=4, limit=120, status=1, after=-1):
    return f"{number} {submit} -1 {run} -1 -1 -1 {size} {limit} -1 {status} 7 7 -1 -1 -1 {after} -1\n"


def test_a_line_becomes_a_job_with_what_was_asked_for_and_the_machine_has_its_processors():
    found = workload.read_swf((HEAD + LINE).encode())
    assert found.processors == 8
    assert found.jobs == (
        workload.TracedJob(1, 0, 60, 4, 120, "7", wait=5, memory=1000 * 1024 * 4, after=None, name="executable 3"),
    )


def test_a_packed_trace_reads_as_a_plain_one_and_a_torn_one_is_refused():
    plain = (HEAD + LINE).encode()
    packed = gzip.compress(plain)
    assert workload.read_swf(packed) == workload.read_swf(plain)
    for torn in (packed[:-9], packed[:12] + b"\xff" * 20):
        with pytest.raises(InputError, match="no whole gzip file"):
            workload.read_swf(torn)


def test_a_small_file_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(workload, "MOST_BYTES", 100_000)
    with pytest.raises(InputError, match="unpacked"):
        workload.read_swf(gzip.compress(b"; \n" * 100_000))
    with pytest.raises(InputError, match="larger than"):
        workload.read_swf(b";" * 100_001)


def test_jobs_are_in_the_order_of_their_submission():
    found = workload.read_swf((row(2, 50) + row(1, 60) + row(3, 0)).encode())
    assert [job.number for job in found.jobs] == [3, 2, 1]
    assert found.span == 60
    assert found.processors is None


def test_what_is_left_out_is_counted_with_its_reason():
    text = row(1) + row(2, run=-1) + row(3, limit=-1) + row(4, size=-1) + row(5, status=3) + row(6, limit=0)
    found = workload.read_swf(text.encode())
    assert [job.number for job in found.jobs] == [1]
    assert found.left_out == {
        workload.NO_RUN_TIME: 1, workload.NO_LIMIT: 2, workload.NO_PROCESSORS: 1, workload.PARTIAL: 1,
    }  # fmt: skip
    without = workload.read_swf(text.encode(), limits=False)
    assert [job.limit for job in without.jobs] == [120, None, None]


def test_nobody_waits_for_a_job_that_was_left_out_or_came_later():
    text = row(1, run=-1) + row(2, 90) + row(3, 5, after=1) + row(4, 10, after=2) + row(5, 100, after=3)
    assert [(job.number, job.after) for job in workload.read_swf(text.encode()).jobs] == [
        (3, None), (4, None), (2, None), (5, 3),
    ]  # fmt: skip


def test_only_the_first_lines_are_read_where_that_is_wanted():
    assert len(workload.read_swf((HEAD + row(1) + row(2)).encode(), lines=4).jobs) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (row(submit="soon"), ("line 2", "submit time", "'soon'", "is no number")),
        (row(run="nan"), ("line 2", "run time", "'nan'")),
        (row(run="1e300"), ("line 2", "run time", "'1e300'")),
        (row(run=-5), ("line 2", "run time", "'-5'")),
        (row(size=10**9), ("line 2", "requested processors", "1000000000")),
        (row(limit="1_000"), ("line 2", "requested time", "1_000")),
        (row(submit=-1), ("line 2", "submit time", "must be known")),
        (row(9), ("line 2", "job number", "twice")),
        (row(8, after=8), ("line 2", "preceding job", "is no job before this one")),
        ("1 2 3\n", ("line 2", "has 3 columns, not 18")),
        ("x" * 5000, ("line 2", "longer than")),
    ],
)
def test_a_bad_line_is_named_with_its_column_and_value(line, said):
    with pytest.raises(InputError) as told:
        workload.read_swf((row(9) + line).encode(), name="my.swf")
    for part in ("my.swf", *said):
        assert part in told.value.message
    assert told.value.hint


def test_more_jobs_than_are_read_are_refused_by_the_one_that_is_too_many(monkeypatch):
    monkeypatch.setattr(workload, "MOST_JOBS", 2)
    with pytest.raises(InputError, match="job number: 3 is beyond the 2 jobs"):
        workload.read_swf((row(1) + row(2) + row(3)).encode())
    records = [record(number) for number in (1, 2, 3)]
    with pytest.raises(InputError, match="beyond the 2 jobs"):
        workload.from_accounting(records)


def record(number=1, *, submitted=0, eligible=None, started=10, elapsed=60, state="COMPLETED", **more):
    asked = {"cpus": 4, "gpus": None, "nodes": 1, "time_limit_seconds": 600, "memory_bytes": 2**30, **more}
    at = [None if since is None else SINCE + timedelta(seconds=since) for since in (submitted, eligible, started)]
    return Job(
        JobId(number), "train", state, ("sacct",), user="ann", submitted=at[0], eligible=at[1], started=at[2],
        elapsed_seconds=elapsed, resources=Resources(**asked), raw_id=number,
    )  # fmt: skip


def test_a_record_of_the_accounting_becomes_a_job_that_waited_from_when_it_could_start():
    found = workload.from_accounting([record(2, submitted=100, eligible=150, started=200), record(1)], processors=16)
    assert found.processors == 16
    assert [job.number for job in found.jobs] == [1, 2]
    later = found.jobs[1]
    assert (later.submit, later.wait, later.run, later.processors, later.limit) == (150, 50, 60, 4, 600)
    assert (later.user, later.name, later.memory) == ("ann", "train", 2**30)


def test_records_that_say_too_little_are_counted_and_no_job_is_made_up():
    records = [
        record(1, started=None, elapsed=None, state="CANCELLED"), record(2, state="RUNNING"), record(3, cpus=None),
        record(4, elapsed=None), record(5, time_limit_seconds=-1),
    ]  # fmt: skip
    found = workload.from_accounting(records)
    assert [(job.number, job.limit) for job in found.jobs] == [(5, None)]
    assert found.left_out == {
        workload.NEVER_STARTED: 1, workload.NOT_OVER: 1, workload.NO_PROCESSORS: 1, workload.NO_RUN_TIME: 1,
    }  # fmt: skip
    assert workload.from_accounting([]).jobs == ()


def test_gpus_or_nodes_can_be_what_is_counted():
    records = [record(1, gpus=2), record(2)]
    by_gpu = workload.from_accounting(records, unit="gpus")
    assert [job.processors for job in by_gpu.jobs] == [2]
    assert by_gpu.left_out == {workload.NO_GPU: 1}
    assert [job.processors for job in workload.from_accounting(records, unit="nodes").jobs] == [1, 1]


def test_two_runs_of_one_number_stay_two_jobs():
    found = workload.from_accounting([record(1), record(1, submitted=500, started=600)])
    assert len({job.number for job in found.jobs}) == 2
