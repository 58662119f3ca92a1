import pytest
from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import LOOKED, queued

from slurm_agent_tools.errors import SlurmGarbled
from slurm_agent_tools.slurm.commands import columns, squeue

ROWS = [
    queued("3"), queued("4", "PENDING", user="bob"), queued("5", "COMPLETED", comment="sat-5"),
    queued("7_1"), queued("7_[2-9%2]", "PENDING"), queued("8+0", raw=8, again=8), queued("8+1", raw=9, again=9),
    queued("9", "PENDING", dependency="afterok:3(unfulfilled)"), queued("10", "CANCELLED by 1001"),
]  # fmt: skip


@pytest.fixture
def queue():
    return squeue.parse(done(b"".join(ROWS)), LOOKED)


def ids(jobs):
    return [str(job.job_id) for job in jobs]


def test_the_queue_is_a_sequence_of_jobs(queue):
    assert len(queue) == len(ROWS)
    assert ids(queue) == ["3", "4", "5", "7_1", "7_[2-9%2]", "8+0", "8+1", "9", "10"]
    assert (str(queue[1].job_id), ids(queue[-2:])) == ("4", ["9", "10"])


def test_a_record_is_made_once(queue):
    assert queue[0] is next(iter(queue)) is queue.of("alice")[0]


def test_each_users_rows_are_apart(queue):
    assert ids(queue.of("bob")) == ["4"]
    assert len(queue.of("alice")) == len(ROWS) - 1
    assert len(queue.of("carol")) == 0


def test_states_are_counted_without_records(queue):
    assert queue.states() == {"RUNNING": 4, "PENDING": 3, "COMPLETED": 1, "CANCELLED": 1}
    assert queue.of("bob").states() == {"PENDING": 1}
    assert queue._columns.made == {}


def test_what_goes_on_is_apart_from_what_is_over(queue):
    assert ids(queue.going(on=False)) == ["5", "10"]
    assert len(queue.going()) == len(ROWS) - 2


def test_a_job_is_found_with_all_its_parts(queue):
    assert ids(queue.jobs([7, 3, 99, 8])) == ["7_1", "7_[2-9%2]", "3", "8+0", "8+1"]
    assert ids(queue.of("bob").jobs([3, 4])) == ["4"]


def test_a_job_is_found_by_its_comment(queue):
    found = queue.commented("sat-5")
    assert found is not None
    assert str(found.job_id) == "5"
    assert queue.commented("sat") is None


def test_single_jobs_are_told_from_arrays_components_and_those_that_wait_for_others(queue):
    single, rest = queue.singles
    assert single == {3, 4, 5, 10}
    assert ids(rest) == ["7_1", "7_[2-9%2]", "8+0", "8+1", "9"]
    assert queue.bases == {3, 4, 5, 7, 8, 9, 10}


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_rows_are_read_while_they_are_printed_however_they_are_cut(size):
    answer = done(b"".join([*ROWS, queued("11", name="two\nlines é", comment="x" * 300)]))
    reader = squeue.QueueReader(columns.SEPARATOR)
    for at in range(0, len(answer.stdout), size):
        reader.feed(answer.stdout[at : at + size])
    assert list(reader.queue(answer, LOOKED)) == list(squeue.parse(answer, LOOKED))
    half = squeue.QueueReader(columns.SEPARATOR)
    half.feed(answer.stdout[:size])
    assert list(half.queue(answer, LOOKED)) == list(squeue.parse(answer, LOOKED))


def test_what_is_no_row_is_not_gathered_for_ever():
    reader = squeue.QueueReader(columns.SEPARATOR)
    for _ in range(2**21 // 2**16 + 1):
        reader.feed(b"x" * 2**16)
    assert len(reader._rest) <= 2**20 + 2**16 + 1
    with pytest.raises(SlurmGarbled, match="xxx"):
        reader.queue(done(b"x" * 2**21), LOOKED)


@pytest.mark.proves("garbage-is-an-error")
@pytest.mark.parametrize(
    "changes",
    [
        {"raw": "x"}, {"raw": "6"}, {"again": "6"}, {"id": "6;x"}, {"id": ""}, {"state": "running?"},
        {"user": f"bob{squeue.INNER}"}, {"nodes": f"a{squeue.INNER}b"}, {"dependency": squeue.INNER},
    ],
)  # fmt: skip
def test_a_row_that_does_not_fit_is_an_error_whoever_owns_it(changes):
    with pytest.raises(SlurmGarbled, match="cannot be read"):
        squeue.parse(done(ROWS[0] + queued("4", **({"user": "bob"} | changes)) + ROWS[2]), LOOKED)


@pytest.mark.proves("garbage-is-an-error")
def test_a_cell_that_cannot_be_read_is_an_error_for_whoever_looks_at_the_job():
    queue = squeue.parse(done(ROWS[0] + queued("4", cpus="many")), LOOKED)
    assert ids(queue.jobs([3])) == ["3"]
    with pytest.raises(SlurmGarbled, match="many"):
        queue.jobs([4])


def test_the_newest_jobs_are_those_with_the_highest_numbers(queue):
    assert queue.newest(3) == [8, 9, 10]
    assert queue.of("bob").newest(3) == [4]
    assert queue.newest(0) == []


def test_tickets_of_jobs_are_told_by_what_the_controller_wrote_and_by_nothing_else():
    ours, other = "ab" * 16, "0f" * 16
    cells = f"{ours}:   ", "", "(null)", "looked at by ops", ours, f"{other.upper()}:", f"x{other}:", f"{ours}:"
    rows = "".join(f"{number:<20}{cell}\n" for number, cell in zip((7, 1, 2, 3, 4, 5, 6, 7), cells, strict=True))
    assert squeue.parse_tickets(done(rows.encode())) == {ours: 7}
    assert squeue.parse_tickets(done()) == {}
    with pytest.raises(SlurmGarbled):
        squeue.parse_tickets(done(code=1))
    assert squeue.tickets_argv("alice")[-2:] == ["--user=alice", "--Format=ArrayJobID:20,admin_comment:33"]
