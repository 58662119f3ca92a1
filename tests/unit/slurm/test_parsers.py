from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import LOOKED, squeue_row

from slurm_agent_tools.errors import SlurmGarbled, SlurmRefused, SlurmUncertain, SlurmUnreachable
from slurm_agent_tools.slurm.commands import columns, sacct, sbatch, scontrol, squeue

US = columns.SEPARATOR


def row(*, mark: str = "", **changes: str) -> bytes:
    cell = {
        "id": "7", "raw": "7", "user": "alice", "partition": "cpu", "state": "RUNNING", "reason": "None",
        "submitted": "100", "start": "160", "end": "N/A", "limit": "30:00", "elapsed": "1:05", "nodes": "cpu01",
        "required_nodes": "", "node_count": "1", "cpus": "2", "dependency": "(null)", "comment": "(null)", "name": "train", "again": "7",
    }  # fmt: skip
    return squeue_row(cell | changes, mark).encode("utf-8", "surrogateescape") + b"\n"


def test_a_row_becomes_a_job():
    [job] = squeue.parse(done(row()), LOOKED)
    assert (str(job.job_id), job.name, job.state, job.elapsed_seconds) == ("7", "train", "RUNNING", 65)
    assert job.submitted == datetime.fromtimestamp(100, UTC)
    assert job.resources.time_limit_seconds == 1800
    assert (job.reason, job.dependency, job.comment, job.ended, job.required_nodes) == (None,) * 5


def test_the_nodes_of_nodelist_are_told():
    [job] = squeue.parse(done(row(required_nodes="cpu[01-02]")), LOOKED)
    assert job.required_nodes == "cpu[01-02]"


@pytest.mark.parametrize("name", ["a|b", 'x "y"', "two\nlines", "\n", "7\n7", "JobState=RUNNING", "é", " "])
def test_a_name_may_hold_anything_but_the_separator(name):
    jobs = squeue.parse(done(row(name=name) + row(id="8", raw="8", again="8")), LOOKED)
    assert [(str(job.job_id), job.name) for job in jobs] == [("7", name), ("8", "train")]


MARK = "00ff00ff00ff00ff"


@pytest.mark.parametrize("name", [f"a{US}b", US, f"x{US}7\n{row(id='8').decode()}", f"{US}ff\n9{US}"])
def test_a_name_that_holds_separators_breaks_and_forges_no_row(name):
    answer = row(name="?", mark=MARK).replace(b"?", name.encode()) + row(id="8", raw="8", again="8", mark=MARK)
    jobs = squeue.parse(done(answer, argv=squeue.argv(MARK)), LOOKED)
    assert [(str(job.job_id), job.name) for job in jobs] == [("7", name), ("8", "train")]


@pytest.mark.parametrize("argv", [squeue.argv, sacct.argv])
def test_the_separator_is_the_one_that_was_asked_for(argv):
    assert columns.separator(argv(mark=MARK)) == US + MARK
    assert columns.separator(argv()) == US


def test_bytes_that_are_not_utf8_stay_visible():
    [job] = squeue.parse(done(row(name="caf\udcff")), LOOKED)
    assert job.name == "caf\\xff"


@pytest.mark.parametrize(
    "answer",
    [
        b"lorem ipsum\n",
        b"<html>502</html>",
        row()[:-20],
        row().replace(b"7", b"x", 1),
        row(name=f"a{US}b"),
        b"\xff\xfe\x00\x1f",
        row(submitted="yesterday"),
        row(id="1;id"),
    ],
)
def test_an_answer_that_does_not_fit_is_an_error_and_never_skipped(answer):
    with pytest.raises(SlurmGarbled, match="cannot be read"):
        tuple(squeue.parse(done(answer), LOOKED))


def test_an_empty_queue_is_empty():
    assert tuple(squeue.parse(done(b""), LOOKED)) == ()


def test_an_answer_that_was_cut_is_an_error():
    with pytest.raises(SlurmGarbled, match="longer"):
        squeue.parse(replace(done(row()), truncated=True), LOOKED)


@pytest.mark.parametrize(
    ("code", "stderr", "error"),
    [
        (None, b"", SlurmUnreachable),
        (1, b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)", SlurmUnreachable),
        (1, b"slurm_load_jobs error: Socket timed out on send/recv operation", SlurmUnreachable),
        (1, b"Connection refused", SlurmUnreachable),
        (1, b"", SlurmGarbled),
        (2, b"squeue: unrecognized option", SlurmGarbled),
    ],
)
def test_a_command_that_fails_is_never_an_empty_queue(code, stderr, error):
    with pytest.raises(error) as caught:
        squeue.parse(done(b"", stderr, code), LOOKED)
    assert caught.value.hint


# --- sbatch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stdout", "stderr"),
    [(b"12\n", b""), (b"12;cluster\n", b""), (b"12\n", b"sbatch: warning: can't honor --ntasks-per-node")],
)
def test_a_job_id_counts_whatever_else_is_said(stdout, stderr):
    assert sbatch.parse(done(stdout, stderr)).job_id == 12


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "error"),
    [
        (1, b"", b"sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", SlurmUnreachable),
        (1, b"", b"sbatch: error: Batch job submission failed: Unable to contact slurm controller (receive failure)", SlurmUncertain),
        (1, b"", b"sbatch: error: Batch job submission failed: Unable to contact slurm controller (send failure)", SlurmUncertain),
        (1, b"", b"sbatch: error: Batch job submission failed: Unable to contact slurm controller (shutdown failure)", SlurmUncertain),
        (1, b"", b"sbatch: error: Batch job submission failed: Message receive failure", SlurmUncertain),
        (1, b"", b"sbatch: error: Batch job submission failed: Unexpected message received", SlurmUncertain),
        (1, b"", b"sbatch: error: Batch job submission failed: Connection reset by peer", SlurmUncertain),
        (1, b"", b"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", SlurmUncertain),
        (1, b"", b"sbatch: error: Zero Bytes were transmitted or received", SlurmUncertain),
        (None, b"", b"", SlurmUncertain),
        (-9, b"", b"", SlurmUncertain),
        (-15, b"", b"sbatch: warning: something", SlurmUncertain),
        (1, b"", b"", SlurmUncertain),
        (0, b"Welcome to the cluster\n", b"", SlurmUncertain),
        (1, b"", b"sbatch: error: invalid partition specified: nowhere", SlurmRefused),
        (1, b"", b"sbatch: error: Batch job submission failed: Job violates accounting/QOS policy", SlurmRefused),
    ],
)  # fmt: skip
def test_what_became_of_a_submission_is_told_apart(code, stdout, stderr, error):
    with pytest.raises(error):
        sbatch.parse(done(stdout, stderr, code, ("sbatch",)))


def test_arguments_follow_the_script_in_one_vector():
    assert sbatch.argv(["--hold"], ["--x", "a b"]) == ["sbatch", "--parsable", "--hold", "/dev/stdin", "--x", "a b"]


def shown(*options: str, mark: str = "sbatch: end of defined options") -> str:
    rule = f"sbatch: {'-' * 20} {'-' * 20}"
    return "\n".join(["sbatch: defined options", rule, *options, rule, mark, ""])


STARTS = "sbatch: Job 5 to start at 2026-05-04T12:00:00 using 1 processors on nodes cpu01 in partition cpu\n"
MEMORY = "sbatch: mem                 : 16G"


def test_a_trial_tells_when_it_would_start_and_what_sbatch_read():
    said = (
        "sbatch: Number of tasks implicitly set to 2.\n" + shown(MEMORY, "sbatch: kill-on-invalid-dep : yes") + STARTS
    )
    trial = sbatch.parse_trial(done(b"", said.encode()))
    assert trial.accepted
    assert trial.start is not None
    assert trial.shown == ({"mem": "16G", "kill-on-invalid-dep": "yes"},)


def test_a_refused_trial_tells_slurms_words_and_not_the_options():
    said = (
        shown("sbatch: job-name            : Unable to contact slurm, to start at 99")
        + "allocation failure: Invalid qos"
    )
    trial = sbatch.parse_trial(done(b"", said.encode(), 1))
    assert (trial.accepted, trial.start, trial.message) == (False, None, "allocation failure: Invalid qos")


def test_an_sbatch_that_gave_up_shows_no_options():
    assert sbatch.parse_trial(done(b"", b"sbatch: unrecognized option '--nope'", 255)).shown == ()


@pytest.mark.parametrize(
    "said",
    [
        shown(MEMORY, "sbatch: job-name            : x", "sbatch: mem                 : 1M"),
        shown(MEMORY, "sbatch: job-name            : x", "and more"),
        shown(MEMORY, "sbatch: mem-bind : none"),
        shown("sbatch: mem                   : 16G"),
        shown(MEMORY, mark="sbatch: more"),
        shown(MEMORY).removesuffix("sbatch: end of defined options\n"),
        shown(MEMORY).replace(f"{'-' * 20} {'-' * 20}", "---", 1),
        shown(MEMORY) + "sbatch: defined options\n",
    ],
    ids=["twice", "line break", "not padded", "padded too far", "no end", "cut", "no rule", "second not whole"],
)
def test_options_that_cannot_be_told_apart_are_not_read(said):
    assert sbatch.parse_trial(done(b"", (said + STARTS).encode())).shown is None


def test_each_component_shows_its_options():
    said = shown(MEMORY) + "sbatch: select/cons_tres: common_init: select/cons_tres loaded\n" + shown() + STARTS
    assert sbatch.parse_trial(done(b"", said.encode())).shown == ({"mem": "16G"}, {})


# --- scontrol ----------------------------------------------------------------------------------------------------

SHOWN = (
    "JobId=7 JobName={name}\n   UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A\n   Priority=0 Nice=0 Account=lab"
    " QOS=normal\n   JobState=PENDING Reason=JobHeldUser Dependency=(null)\n   Requeue=0 Restarts=0 BatchFlag=1 Reboot=0"
    " ExitCode=0:0\n   DerivedExitCode=0:0\n   RunTime=00:00:00 TimeLimit=00:30:00 TimeMin=N/A\n   SubmitTime=100"
    " EligibleTime=Unknown\n   StartTime=Unknown EndTime=Unknown Deadline=N/A\n   Partition=gpu AllocNode:Sid=h:1\n"
    "   NodeList=\n   NumNodes=1 NumCPUs=4 NumTasks=1 CPUs/Task=1\n   TRES=cpu=4,mem=32G,node=1,billing=4,gres/gpu=2\n"
    "   Command=/dev/stdin\n   WorkDir=/p\n   Comment=sat-1 \n   StdErr=/p/a b.err\n   StdIn=/dev/null\n   StdOut=/p/a b.out\n"
    "   Power=\n   TresPerJob=gres:gpu:2\n"
)


@pytest.mark.parametrize(
    "name",
    ["train", "x JobState=COMPLETED", "x\n   JobState=COMPLETED", "a\n\nJobId=9 JobName=z"],
)
def test_a_name_cannot_forge_what_scontrol_says(name):
    [job] = scontrol.parse_jobs(done(SHOWN.format(name=name).encode()))
    assert (str(job.job_id), job.name, job.state, job.user) == ("7", name, "PENDING", "alice")
    assert job.comment == "sat-1"


def test_an_argument_cannot_forge_what_scontrol_says():
    forged = "/dev/stdin x\n   UserId=root(0)\n   JobState=COMPLETED Reason=None\n   TRES=cpu=1,mem=1M,node=1"
    [job] = scontrol.parse_jobs(done(SHOWN.format(name="a").replace("/dev/stdin", forged).encode()))
    assert (job.name, job.user, job.state, job.resources.memory_bytes) == ("a", "alice", "PENDING", 32 * 2**30)


def test_an_argument_cannot_forge_paths_and_comments():
    forged = "/dev/stdin Comment=x WorkDir=/x\n   WorkDir=/x\n   Comment=sat-9\n   StdErr=/x\n   StdOut=/x\n   TresPerJob=gres:gpu:9"
    [job] = scontrol.parse_jobs(done(SHOWN.format(name="a").replace("/dev/stdin", forged).encode()))
    assert (job.work_dir, job.comment, job.stdout, job.stderr) == ("/p", "sat-1", "/p/a b.out", "/p/a b.err")
    assert job.command == forged


def test_the_limit_of_an_array_is_read():
    shown = SHOWN.format(name="a").replace("JobId=7", "JobId=7 ArrayJobId=7 ArrayTaskId=1-59:2%4 ArrayTaskThrottle=4")
    [job] = scontrol.parse_jobs(done(shown.encode()))
    assert (str(job.job_id), job.resources.array_tasks, job.resources.array_concurrency) == ("7_[1-59:2%4]", 30, 4)


def test_the_record_of_an_array_whose_waiting_tasks_were_cancelled_is_the_arrays_own():
    shown = SHOWN.format(name="a").replace("JobId=7", "JobId=7 ArrayJobId=7 ArrayTaskId=4294967294 ArrayTaskThrottle=2")
    [job] = scontrol.parse_jobs(done(shown.replace("PENDING", "CANCELLED").encode()))
    assert (str(job.job_id), job.state, job.resources.array_tasks) == ("7", "CANCELLED", None)


def test_what_slurm_made_of_a_held_job_is_read():
    [granted] = scontrol.parse_jobs(done(SHOWN.format(name="a").encode()))
    assert granted.held
    assert granted.requeue is False
    assert granted.stdout == "/p/a b.out"
    assert (granted.resources.gpus, granted.resources.memory_per_gpu_bytes) == (2, 16 * 2**30)


@pytest.mark.parametrize("answer", [b"garbage", b"JobId=7", b"JobId=7 JobName=x\n   UserId=a(1) JobState=RUNNING\n"])
def test_a_job_that_cannot_be_read_is_an_error(answer):
    with pytest.raises(SlurmGarbled):
        scontrol.parse_jobs(done(answer))


@pytest.mark.parametrize(
    ("stderr", "known"), [(b"slurm_load_jobs error: Invalid job id specified", False), (b"", True)]
)
def test_only_slurm_says_that_a_job_is_unknown(stderr, known):
    assert scontrol.unknown(done(b"", stderr, 1)) is not known
