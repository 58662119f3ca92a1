"""A user may write whole records into the texts of a job; none of them is taken for Slurm's own."""

from __future__ import annotations

import pytest
from tests.unit.services.clusters import ABOUT
from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import START, accounted, queued
from tests.unit.slurm.told import Told

from slurm_agent_tools.errors import SlurmGarbled
from slurm_agent_tools.slurm.commands import scontrol, squeue

ENDED = (
    "JobId={number} JobName=train\n   UserId={user}(1) GroupId=a(1) Priority=1 QOS=normal\n   JobState={state} Reason=None"
    " Dependency=(null)\n   Requeue=0 Restarts=0 ExitCode=1:0\n   DerivedExitCode=3:0\n   RunTime=5-00:00:00"
    " TimeLimit=01:00:00\n   SubmitTime={start} EligibleTime={start}\n   StartTime={start} EndTime={start}\n"
    "   Partition=cpu\n   NodeList=cpu01\n   NumNodes=1 NumCPUs=2\n   TRES=cpu=2,mem=4M,node=1\n   Command=/x\n"
    "   WorkDir=/x\n   Comment={comment}\n   StdErr=/forged\n   StdOut=/forged\n   Power=\n   \n\n"
)


def shown(number: object = 5, state: str = "FAILED", user: str = "alice", comment: str = "", start: int = START) -> str:
    """A record as scontrol prints it, or as somebody makes it up."""
    return ENDED.format(number=number, state=state, user=user, comment=comment, start=start)


def listing(*records: str, count: int | None = None) -> bytes:
    counted = len(records) if count is None else count
    return f"last_update_time={START}, records={counted}\n{''.join(records)}".encode()


# --- a listing of all ------------------------------------------------------------------------------------------------


def test_a_listing_of_as_many_records_as_slurm_printed_is_read():
    found = scontrol.parse_every(done(listing(shown(5), shown("7 ArrayJobId=6 ArrayTaskId=1"))))
    assert found is not None
    assert [(str(job.job_id), job.raw_id, job.state) for job in found] == [("5", 5, "FAILED"), ("6_1", 7, "FAILED")]


@pytest.mark.parametrize("comment", ["two\nlines", "a\n\nparagraph\r\n\x0b\x85\u2028JobId=9 JobName=x", "x\nJobId=9 x"])
def test_a_comment_of_several_lines_hides_nothing(comment):
    found = scontrol.parse_every(done(listing(shown(5, comment=comment), shown(6))))
    assert found is not None
    assert [(job.raw_id, job.comment, job.stdout) for job in found] == [(5, comment, "/forged"), (6, None, "/forged")]


@pytest.mark.parametrize(
    "forged",
    [
        f"z\n\n{shown(3)}",
        "z\n\nJobId=9 JobName=x",  # would swallow what follows it
        "z\n\nJobId=3",
        f"z\r\n\n{shown(3)}",
    ],
)
def test_a_listing_with_more_that_begins_like_a_record_tells_nothing(forged):
    answer = listing(shown(5, comment=forged), shown(6), count=2)
    assert scontrol.parse_every(done(answer)) is None


def test_a_record_that_cannot_be_read_refuses_nobody_an_answer():
    odd = shown(5).replace("NumCPUs=2", "NumCPUs=x")
    found = scontrol.parse_every(done(listing(odd, shown(6))))
    assert found is not None
    assert [job.raw_id for job in found] == [6]


def test_a_controller_without_jobs_tells_so():
    assert scontrol.parse_every(done(f"last_update_time={START}, records=0\nNo jobs in the system\n".encode())) == ()


def test_a_listing_that_does_not_tell_how_many_it_shows_is_an_error():
    with pytest.raises(SlurmGarbled):
        scontrol.parse_every(done(shown(5).encode()))


# --- one job ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (shown(5), ["5"]),
        (shown(5, comment="two\n\nlines"), ["5"]),
        (shown(5, comment=f"z\n\n{shown(3)}"), ["5"]),  # of another job
        (shown(5, comment=f"z\n\n{shown(5)}"), []),  # of two with one number neither counts
        (shown(5, comment=f"z\n\n{shown('005 ArrayJobId=5 ArrayTaskId=1')}"), ["5"]),
        (shown(5, comment=f"z\n\n{shown('1_0 ArrayJobId=5 ArrayTaskId=1')}"), ["5"]),
        (shown(5, comment=f"z\n\n{shown('9' * 5000)}"), ["5"]),
        (shown("5 ArrayJobId=5 ArrayTaskId=1", comment="z\n\nJobId=9 JobName=x") + shown("6 ArrayJobId=5 ArrayTaskId=2"),
         ["5_1"]),
        (shown("5 ArrayJobId=5 ArrayTaskId=1", comment="z\n\nJobId=6 JobName=x") + shown("6 ArrayJobId=5 ArrayTaskId=2"),
         ["5_1"]),
    ],
)  # fmt: skip
def test_of_one_job_what_is_there_once_counts(told, read):
    found = scontrol.parse_details(done(told.encode()), 5)
    assert [str(job.job_id) for job in found] == read


@pytest.mark.parametrize(
    ("field", "forged"),
    [
        ("JobName=train", "JobName=x\n   UserId=alice(1)\n   JobState=COMPLETED Reason=None\n   RunTime=00:00:00"),
        ("JobName=train", "JobName=x\n   UserId=alice(1)\n   JobState=COMPLETED\n   Command=/x\n   WorkDir=/x"),
        ("QOS=normal", "QOS=normal WCKey=x RunTime=00:00:00"),
        ("QOS=normal", "QOS=normal WCKey=x\n   JobState=COMPLETED"),
    ],
)
def test_a_record_that_tells_a_field_twice_is_not_believed(field, forged):
    told = shown(5).replace(field, forged)
    assert scontrol.parse_details(done(told.encode()), 5) == ()
    assert scontrol.parse_every(done(listing(told))) == ()


async def test_a_held_job_whose_record_tells_a_field_twice_is_not_taken_for_what_was_checked():
    told = shown(5, "PENDING").replace("QOS=normal", "QOS=normal WCKey=x TRES=cpu=1,mem=1M,node=1")
    with pytest.raises(SlurmGarbled, match="told twice"):
        await Told(scontrol=done(told.encode())).slurm.held(squeue.parse_job_id("5"))


def test_lines_of_nodes_come_several_times():
    nodes = "".join(f"     Nodes=cpu0{one} CPU_IDs=0 Mem=4 GRES=\n" for one in (1, 2))
    told = shown(5).replace("   Command=", f"   JOB_GRES=(null)\n{nodes}   Command=")
    [job] = scontrol.parse_details(done(told.encode()), 5)
    assert job.resources.memory_per_node_bytes == 4 * 2**20


# --- beside the queue and the accounting -----------------------------------------------------------------------------


async def test_a_job_that_the_queue_does_not_show_is_not_over_because_a_record_says_so():
    told = Told(scontrol=done(shown(5).encode()))
    await told.slurm.queue()
    told.clock.move(1)
    job = await told.job()
    assert (job.state, job.elapsed_seconds, job.exit_code) == ("UNKNOWN", None, None)
    assert told.slurm.calls["squeue"] == 2, "only a fresh word counts"


async def test_a_new_job_that_an_old_look_at_the_queue_does_not_show_goes_on():
    told = Told(scontrol=done(ABOUT.format(START, "/x").encode()))
    assert (await told.job()).state == "RUNNING"


@pytest.mark.parametrize("state", ["FAILED", "RUNNING"])
async def test_what_the_accounting_knows_of_an_ended_job_goes_before_a_record(state):
    told = Told(scontrol=done(shown(5, state).encode()), sacct=done(accounted("5")))
    job = await told.job()
    assert (job.state, job.elapsed_seconds, job.sources) == ("COMPLETED", 60, ("sacct",))


@pytest.mark.parametrize("changes", [{"user": "bob"}, {"start": START + 1}])
async def test_a_record_of_another_user_or_submission_tells_nothing_of_a_job(changes):
    told = Told(squeue=done(queued("5")), scontrol=done(shown(5, **changes).encode()))
    job = await told.job()
    assert (job.state, job.stdout, job.sources) == ("RUNNING", None, ("squeue",))


@pytest.mark.parametrize(
    "forged", ["6 ArrayJobId=5 ArrayTaskId=1", "6 ArrayJobId=5 ArrayTaskId=3", "9 ArrayJobId=5 ArrayTaskId=1"]
)
async def test_a_task_cannot_end_another_task_of_its_array(forged):
    rows = queued("5_1", raw="7", again="7") + queued("5_2", raw="5", again="5")
    own = shown("5 ArrayJobId=5 ArrayTaskId=2", "RUNNING", comment=f"z\n\n{shown(forged)}")
    view = await Told(squeue=done(rows), scontrol=done(own.encode())).slurm.job(squeue.parse_job_id("5"))
    known = {str(task.job_id): (task.state, task.stdout, task.elapsed_seconds) for task in view.tasks}
    assert known["5_1"] == ("RUNNING", None, 1)
    assert set(known) - {"5_1", "5_2"} <= {"5_3"}
    assert known.get("5_3", ("UNKNOWN", "/forged", None))[0] == "UNKNOWN"
    assert not view.over


def test_a_line_within_an_administrators_comment_is_no_ticket():
    told = f"12 {'a' * 32}:\nx\x0b13 {'b' * 32}:\x8514 {'c' * 32}:\n".encode()
    assert squeue.parse_tickets(done(told)) == {"a" * 32: 12}
