"""Slurm's own commands, answered in memory: who may do what, and what is not known is said."""

from __future__ import annotations

import pytest

from slurm_agent_tools.devcluster.fake.answering import UnknownCommand
from slurm_agent_tools.devcluster.fake.fake_files import MemoryFiles
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition

LONG = "#!/bin/bash\nsleep 600\n"
DENIED, OVER = "Access/permission denied", "Job has already finished"


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm(files=MemoryFiles())


def running(slurm: FakeSlurm, *options: str) -> int:
    number = slurm.submit(LONG, "--time=20", *options)
    slurm.clock.move(2)
    assert slurm.job(number).state == "RUNNING"
    return number


def test_a_job_without_a_folder_of_its_own_begins_at_the_root(slurm):
    number = running(slurm)
    assert (slurm.job(number).work_dir, slurm.job(number).stdout) == ("/", f"/slurm-{number}.out")


def test_a_job_past_the_tools_begins_in_the_project_that_they_have(slurm):
    slurm.place("/home/alice/project")
    number = running(slurm)
    assert slurm.job(number).stdout == f"/home/alice/project/slurm-{number}.out"


def test_a_job_with_a_time_begins_then_though_nothing_else_happens(slurm):
    number = slurm.submit(LONG, "--begin=now+60")
    slurm.clock.move(59)
    assert (slurm.job(number).state, slurm.job(number).reason) == ("PENDING", "BeginTime")
    slurm.clock.move(2)
    assert slurm.job(number).state == "RUNNING"


# --- who may change what -----------------------------------------------------------------------------------------


def test_jobs_of_somebody_else_are_left_alone(slurm):
    number = running(slurm)
    for argv in (["scancel", str(number)], ["scontrol", "requeue", str(number)], ["scontrol", "hold", str(number)]):
        answer = slurm.command(*argv, user="bob")
        assert (answer.code, DENIED in answer.err) == (1, True)
    answer = slurm.command("scontrol", "update", f"jobid={number}", "nice=5", user="bob")
    assert answer.err == f"{DENIED} for job {number}\n"
    assert slurm.job(number).state == "RUNNING"


def test_all_jobs_of_one_user_are_cancelled_at_once(slurm):
    mine, theirs = slurm.submit(LONG), slurm.submit(LONG, user="bob")
    assert slurm.command("scancel", "--user=alice").code == 0
    assert (slurm.job(mine).state, slurm.job(theirs).state) == ("CANCELLED", "PENDING")


def test_what_an_operator_holds_only_an_operator_releases(slurm):
    number = slurm.submit(LONG, "--begin=now+10")
    slurm.command("scontrol", "hold", str(number), user="root", admin=True)
    assert slurm.job(number).reason == "JobHeldAdmin"
    slurm.clock.move(15)
    assert DENIED in slurm.command("scontrol", "release", str(number)).err
    assert slurm.command("scontrol", "release", str(number), admin=True).code == 0
    slurm.clock.move(2)
    assert slurm.job(number).state == "RUNNING"


def test_only_an_operator_suspends_and_the_time_stands_still_for_the_job(slurm):
    number = running(slurm)
    assert DENIED in slurm.command("scontrol", "suspend", str(number)).err
    assert slurm.command("scontrol", "suspend", str(number), admin=True).code == 0
    again = slurm.command("scontrol", "suspend", str(number), admin=True)
    assert "not supported" in again.err
    assert DENIED in slurm.command("scontrol", "resume", str(number)).err
    assert slurm.job(number).state == "SUSPENDED"
    assert slurm.command("scontrol", "resume", str(number), admin=True).code == 0
    assert slurm.job(number).state == "RUNNING"


def test_a_job_that_is_over_is_neither_held_nor_released_nor_changed(slurm):
    number = slurm.submit("#!/bin/bash\ntrue\n")
    slurm.clock.move(5)
    for verb in ("hold", "release"):
        answer = slurm.command("scontrol", verb, str(number))
        assert (answer.code, OVER in answer.err) == (1, True)
    assert slurm.command("scontrol", "update", f"jobid={number}", "nice=5").err == f"{OVER} for job {number}\n"


def test_only_what_runs_and_may_be_requeued_begins_again(slurm):
    waiting = slurm.submit(LONG, "--begin=now+3600")
    assert "pending" in slurm.command("scontrol", "requeue", str(waiting)).err
    number = running(slurm, "--no-requeue")
    assert "disabled" in slurm.command("scontrol", "requeue", str(number)).err
    assert slurm.command("scontrol", "requeuehold", str(number)).code == 0
    assert (slurm.job(number).state, slurm.job(number).reason) == ("PENDING", "job requeued in held state")
    assert "Invalid job id" in slurm.command("scontrol", "requeue", "77").err


def test_a_user_makes_a_running_job_shorter_and_never_longer(slurm):
    number = running(slurm)
    assert DENIED in slurm.command("scontrol", "update", f"jobid={number}", "timelimit=30").err
    assert slurm.command("scontrol", "update", f"jobid={number}", "timelimit=5").code == 0
    assert slurm.job(number).time_limit == 300
    assert slurm.command("scontrol", "update", f"jobid={number}", "timelimit=30", admin=True).code == 0
    assert slurm.job(number).time_limit == 1800
    assert "no longer pending" in slurm.command("scontrol", "update", f"jobid={number}", "partition=gpu").err


def test_a_waiting_job_takes_every_change(slurm):
    number = slurm.submit(LONG, "--hold", "--mem-per-cpu=100M", "--requeue")
    changes = ["numnodes=2", "numcpus=4", "minmemorynode=2G", "partition=gpu", "name=new", "comment=why", "nice=7",
               "requeue=0"]  # fmt: skip
    assert slurm.command("scontrol", "update", f"jobid={number}", *changes).code == 0
    job = slurm.job(number)
    request = job.request
    assert (request.nodes_min, request.nodes_max, request.tasks) == (2, 2, 4)
    assert (request.memory_per_node, request.memory_per_cpu) == (2048, None)
    assert (job.partition, request.name, request.comment, request.nice) == ("gpu", "new", "why", 7)
    assert (request.requeue, job.priority) == (False, 0)


def test_the_limit_of_an_array_may_be_raised_while_it_runs(slurm):
    number = slurm.submit(LONG, "--array=0-3%1")
    slurm.clock.move(2)
    states = lambda: [job.state for job in slurm.controller.parts(number)].count("RUNNING")  # noqa: E731
    assert states() == 1
    slurm.command("scontrol", "update", f"jobid={number}", "arraytaskthrottle=3")
    slurm.clock.move(2)
    assert states() == 3


def test_a_waiting_task_is_held_by_itself_and_gets_a_record_of_its_own(slurm):
    number = slurm.submit(LONG, "--array=0-2", "--begin=now+60")
    assert slurm.command("scontrol", "hold", f"{number}_1").code == 0
    slurm.clock.move(65)
    rows = slurm.command("squeue", "-h", "-t", "all", "-j", str(number), "-o", "%i|%T|%r").out.splitlines()
    assert sorted(rows) == [f"{number}_0|RUNNING|None", f"{number}_1|PENDING|JobHeldUser", f"{number}_2|RUNNING|None"]


def test_a_drained_node_takes_no_job_until_it_is_resumed(slurm):
    assert DENIED in slurm.command("scontrol", "update", "nodename=spec01", "state=drain").err
    words = ("scontrol", "update", "nodename=spec01")
    slurm.command(*words, "state=drain", "reason=disk", admin=True)
    (shown,) = [
        row
        for row in slurm.command("scontrol", "show", "nodes", "--details", "--oneliner").out.splitlines()
        if row.startswith("NodeName=spec01 ")
    ]
    assert " State=IDLE+DRAIN " in shown
    assert " Reason=disk [root@" in shown
    number = slurm.submit(LONG, "--partition=special")
    slurm.clock.move(2)
    assert slurm.job(number).reason.startswith("Nodes required for job are DOWN, DRAINED")
    slurm.command(*words, "state=resume", admin=True)
    slurm.clock.move(2)
    assert slurm.job(number).state == "RUNNING"
    slurm.command(*words, "state=down", admin=True)
    assert slurm.job(number).state in {"NODE_FAIL", "PENDING"}


def test_a_job_that_cannot_end_before_its_deadline_is_over(slurm):
    slurm.submit(LONG, "--exclusive", "--nodelist=cpu01", "--time=30")
    slurm.clock.move(2)
    number = slurm.submit(LONG, "--nodelist=cpu01", "--time=5", "--deadline=now+10minutes")
    slurm.clock.move(200)
    assert slurm.job(number).state == "PENDING"
    slurm.clock.move(200)
    assert (slurm.job(number).state, slurm.job(number).reason) == ("DEADLINE", "DeadLine")


def test_a_strong_job_takes_the_place_of_a_weak_one(slurm):
    weak = slurm.submit(LONG, "--partition=special", "--exclusive", "--qos=scavenger", "--no-requeue")
    slurm.clock.move(2)
    strong = slurm.submit(LONG, "--partition=special", "--exclusive", "--qos=high")
    slurm.clock.move(5)
    assert (slurm.job(weak).state, slurm.job(strong).state) == ("PREEMPTED", "RUNNING")


def test_a_preempted_job_that_may_begin_again_does(slurm):
    number = running(slurm, "--requeue")
    slurm.preempt(number)
    assert (slurm.job(number).state, slurm.job(number).restarts) == ("PENDING", 1)
    slurm.clock.move(130)
    assert slurm.job(number).state == "RUNNING"


# --- nodes and partitions of the test's own ----------------------------------------------------------------------


def test_without_default_memory_a_job_gets_the_whole_node():
    slurm = FakeSlurm(
        nodes=[FakeNode("n1", cpus=4, memory=8000)],
        partitions=[FakePartition("main", ("n1",), default=True, def_mem_per_cpu=None)], files=MemoryFiles(),
    )  # fmt: skip
    first, second = slurm.submit(LONG), slurm.submit(LONG)
    slurm.clock.move(2)
    assert [slurm.job(one).state for one in (first, second)] == ["RUNNING", "PENDING"]
    assert slurm.job(first).shares[0].memory == 8000
    slurm.command("scancel", str(first))
    slurm.clock.move(2)
    assert slurm.job(second).state == "RUNNING"


def test_a_cluster_without_a_default_partition_wants_one_named():
    slurm = FakeSlurm(nodes=[FakeNode("n1")], partitions=[FakePartition("main", ("n1",))], files=MemoryFiles())
    assert "No partition specified" in slurm.command("sbatch", stdin=LONG.encode()).err
    assert slurm.submit(LONG, "--partition=main") == 1


def test_a_partition_that_is_down_lets_nothing_begin():
    parts = [FakePartition("main", ("n1",), default=True, up=False)]
    slurm = FakeSlurm(nodes=[FakeNode("n1")], partitions=parts, files=MemoryFiles())
    number = slurm.submit(LONG)
    slurm.clock.move(2)
    assert (slurm.job(number).state, slurm.job(number).reason) == ("PENDING", "PartitionDown")
    assert "State=DOWN" in slurm.command("scontrol", "show", "partition", "--oneliner").out


# --- what is not known -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "sreport cluster",
        "squeue --json",
        "squeue --noheader",
        "squeue -o %Z",
        "sinfo --Node",
        "sstat 1",
        "sacct --json",
        "sacct -S yesterday",
        "sacct -o Nonsense -j 1",
        "scontrol",
        "scontrol show topology",
        "scontrol show partition",
        "scontrol show reservation",
        "scontrol show job --json",
        "scontrol write batch_script 1",
        "scontrol update jobid=1 gres=gpu:1",
        "scontrol update nodename=cpu01 state=future",
        "scancel --state=PENDING",
        "date",
    ],
)
def test_a_command_line_that_is_not_known_is_an_error_and_no_empty_answer(slurm, line: str):
    slurm.submit(LONG)
    words = line.split()
    with pytest.raises(UnknownCommand, match=words[0]):
        slurm.command(*words, admin=True)


@pytest.mark.parametrize(
    ("options", "script", "said"),
    [
        ((), "echo\n", "does not look like a batch script"),
        ((), " \n", "Batch script is empty"),
        (("--nonsense",), LONG, "unrecognized option '--nonsense'"),
        (("--ntasks=0",), LONG, 'Invalid numeric value "0"'),
        (("--gres=gpu:2.5",), LONG, "Invalid generic resource"),
        (("--gpus=many",), LONG, "Invalid --gpus specification"),
        (("--array=0-99999",), LONG, "Invalid job array specification"),
        (("--begin=teatime",), LONG, "Invalid --begin specification"),
        (("--partition=none",), LONG, "Invalid partition name specified"),
        (("--nice=-5",), LONG, "Invalid --nice value"),
        (("--account=none",), LONG, "Invalid account"),
        (("--qos=none",), LONG, "Invalid qos"),
        (("--nodelist=none",), LONG, "Invalid node name"),
        (("--constraint=none",), LONG, "Invalid feature"),
        (("--licenses=matlab",), LONG, "Invalid license"),
        (("--dependency=after:x",), LONG, "dependency problem"),
        (("--dependency=afterok:1,singleton?after:1",), LONG, "dependency problem"),
        (("--nodes=3",), LONG, None),  # more than the partition ever gives: it waits
    ],
)
def test_what_sbatch_refuses_leaves_no_job(slurm, options, script: str, said: str | None):
    answer = slurm.command("sbatch", "--parsable", *options, stdin=script.encode())
    if said is None:
        assert answer.code == 0
        slurm.clock.move(2)
        assert slurm.job(int(answer.out)).reason == "PartitionNodeLimit"
        return
    assert said in answer.err
    assert answer.code != 0
    assert slurm.controller.known() == []


def test_a_script_by_name_is_read_from_the_disk(tmp_path):
    slurm = FakeSlurm()
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH --job-name=named\necho $1 there\n")
    argv = ("sbatch", "--parsable", f"--chdir={tmp_path}", str(tmp_path / "job.sh"), "hello")
    number = int(slurm.command(*argv).out)
    slurm.clock.move(2)
    assert slurm.job(number).request.name == "named"
    assert (tmp_path / f"slurm-{number}.out").exists()
    assert "Unable to open file" in slurm.command("sbatch", str(tmp_path / "none.sh")).err
