"""On a real controller: one ticket is one run, and what a job takes beside CPUs, memory and time is in it or nowhere.

The cluster is this module's own: it has licences, and it sends jobs back to the queue by what they end with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.system.site_service import wait
from tests.system.ticket_site import VERSION, Site, asked_by_root, manage, private, sbatch

pytestmark = pytest.mark.proves("tickets-hold")

CONF = "Licenses=matlab:10,ansys:5\nGresTypes=gpu,nvme\nRequeueExit=42\nRequeueExitHold=43\nJobRequeue=1\n"
SMALL = ("--partition=cpu", "--nodes=1", "--time=5", "--mem=100M")
GPU = ("--partition=gpu", "--nodes=1", "--gpus=a100:1", "--mem=1G", "--time=5")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with private(CONF) as made:
        for user in (made.place.cluster.user, "root"):
            words = (
                "starttime=now+1day",
                "duration=60",
                "nodecnt=1",
                "partitionname=cpu",
                "flags=overlap",
                f"users={user}",
            )
            argv = ("scontrol", "create", "reservation", f"reservationname=of-{user}", *words)
            wait(lambda argv=argv: asked_by_root(made, *argv).returncode == 0, "a reservation")  # once nodes are up
        yield made


def given(site: Site, words: tuple[str, ...], script: bytes = b"#!/bin/bash\nsleep 60\n") -> str:
    """A job let in with a ticket for just that, held."""
    job_id, said = sbatch(site, *words, f"--comment={site.give(site.ceilings(words), script)}", script=script)
    assert job_id, said
    return job_id


def field(site: Site, job_id: str, name: str) -> str:
    found = re.search(rf"(?:^|\s){name}=(\S*)", site.place.slurm("scontrol", "show", "job", job_id))
    assert found, name
    return found[1]


# --- Less than the ticket says ----------------------------------------------------------------------------------------


def test_memory_for_gpus_is_not_had_without_them(site: Site):
    words = ("--partition=gpu", "--nodes=1", "--gpus=1", "--mem=17G", "--time=5", "--hold")
    word = site.give(site.ceilings(words))
    job_id, said = sbatch(site, *words, "--gpus=0", f"--comment={word}")
    assert job_id is None
    assert "without the GPUs of its ticket" in said
    job_id, said = sbatch(site, *words, f"--comment={word}")
    assert job_id, said
    for off in ("TresPerJob=", "Gres=", "TresPerNode="):
        site.place.run(["scontrol", "update", f"JobId={job_id}", off])
        assert "gpu:1" in field(site, job_id, "TresPerJob"), off


def test_a_job_gets_no_default_account_or_qos_in_place_of_its_tickets(site: Site):
    words = (*SMALL, "--hold", "--qos=normal", "--account=lab")
    word = site.give(site.ceilings(words, account="lab"))
    for less in (words[:-1], (*words[:-2], words[-1])):
        job_id, said = sbatch(site, *less, f"--comment={word}")
        assert job_id is None, less
        assert "of its ticket" in said
    job_id, said = sbatch(site, *words, f"--comment={word}")
    assert job_id, said
    for off in ("Account=", "QOS=", "Partition="):
        done = site.place.run(["scontrol", "update", f"JobId={job_id}", off])
        assert done.returncode != 0, off


def test_a_default_qos_that_its_user_set_is_no_way_to_one_that_has_to_be_named(site: Site):
    words = (*SMALL, "--hold")
    job_id, said = sbatch(site, *words, f"--comment={site.give(site.ceilings(words))}")
    assert job_id, said
    set_default_qos(site, "high")
    try:
        for change in ("QOS=", "Account="):
            assert site.place.run(["scontrol", "update", f"JobId={job_id}", change]).returncode != 0, change
        assert field(site, job_id, "QOS") == "normal"  # which it was given, and keeps
        word = site.give(site.ceilings(words))
        for partition in ("--partition=cpu", "--partition=cpu,gpu"):
            other, said = sbatch(site, *words, partition, f"--comment={word}")
            assert other is None
            assert "default QOS high is for jobs that name it" in said or "is not in its ticket" in said, said
        named = (*words, "--qos=normal")
        other, said = sbatch(site, *named, f"--comment={site.give(site.ceilings(named))}")
        assert other, said
        assert field(site, other, "QOS") == "normal"
    finally:
        set_default_qos(site, "normal")
    other, said = sbatch(site, *words, f"--comment={word}")
    assert other, said


def set_default_qos(site: Site, name: str) -> None:
    """By the user, who needs nobody for it, and until the controller knows it."""
    whose = ("user", site.place.cluster.user, "where", "account=lab")
    done = site.place.run(["sacctmgr", "-i", "modify", *whose, "set", f"DefaultQOS={name}"])
    assert done.returncode == 0, done.stdout + done.stderr

    def is_known() -> bool:
        job_id, _ = sbatch(site, *SMALL)
        assert job_id
        shown = field(site, job_id, "QOS")
        site.place.slurm("scancel", job_id)
        return shown == name

    wait(is_known, "the default QOS")


def test_a_job_has_no_cpus_for_its_memory_that_are_not_in_its_ticket(site: Site):
    """Slurm makes four CPUs of 400M where one may have no more than 100M."""
    limited = ("PartitionName=split", "Nodes=ALL", "MaxMemPerCPU=100", "State=UP")
    assert asked_by_root(site, "scontrol", "create", *limited).returncode == 0
    words = ("--partition=split", "--nodes=1", "--ntasks=1", "--time=5", "--mem=400M")
    few = site.ceilings(words)
    job_id, said = sbatch(site, *words, f"--comment={site.give(few)}")
    assert job_id is None
    assert "4 CPUs are more than the 1 of its ticket" in said
    job_id, said = sbatch(site, *words, f"--comment={site.give(replace(few, cpus=4))}")
    assert job_id, said
    site.place.slurm("scontrol", "release", job_id)
    wait(lambda: field(site, job_id, "JobState") == "RUNNING", "the job")
    assert field(site, job_id, "NumCPUs") == "4"
    site.place.slurm("scancel", job_id)
    job_id, said = sbatch(site, *words[:4], "--gpus=1", "--mem-per-gpu=100M")
    assert job_id is None
    assert "write --mem=SIZE" in said


# --- Beside CPUs, memory and time -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        "--licenses=matlab:2", "--reservation=of-researcher", "--gres=nvme:1", "--container=/srv/bundle",
        "--bb=capacity=1G", "--network=x", "--spread-job",
    ],
)  # fmt: skip
def test_a_ticket_that_does_not_say_so_brings_nothing_beside(site: Site, more: str):
    word = site.give(site.ceilings(SMALL))
    job_id, said = sbatch(site, *SMALL, more, f"--comment={word}")
    assert job_id is None
    assert re.search("in its ticket|is in no ticket|more nodes than it shows", said), said
    assert sbatch(site, *SMALL, f"--comment={word}")[0]


@pytest.mark.parametrize("words", [SMALL, GPU, ("--gpus=1", "--partition=gpu", "--mem-per-gpu=1G", "--time=5")])
def test_no_job_is_spread_without_a_ticket_either(site: Site, words: tuple[str, ...]):
    """Slurm may take more nodes for it than the plugin counts; one version's controller ends over the last of these."""
    job_id, said = sbatch(site, *words, "--spread-job")
    assert job_id is None
    assert "--spread-job takes more nodes than it shows" in said, said
    assert sbatch(site, *words)[0]


@pytest.mark.parametrize(
    ("judged", "other"),
    [("--licenses=matlab:2", "--licenses=matlab:3"), ("--gres=nvme:1", "--gres=nvme:2"),
     ("--reservation=of-researcher", "--reservation=of-root"), ("--gpus=a100:1", "--gpus=h100:1")],
)  # fmt: skip
def test_what_a_ticket_says_is_let_in_to_the_letter(site: Site, judged: str, other: str):
    words = (*(GPU if "gpus" in judged else SMALL), judged)
    word = site.give(site.ceilings(words))
    job_id, said = sbatch(site, *words, other, f"--comment={word}")
    assert job_id is None
    assert "is not in its ticket" in said
    job_id, said = sbatch(site, *words, f"--comment={word}")
    assert job_id, said


def test_no_change_by_the_owner_adds_what_the_ticket_does_not_say(site: Site):
    plain = given(site, SMALL)
    more = given(site, (*SMALL, "--licenses=matlab:2", "--gres=nvme:1"))
    gpu = given(site, GPU)
    for job_id, change, good in (
        (plain, "Licenses=matlab:1", False), (plain, "ReservationName=of-researcher", False), (plain, "Gres=nvme:1", False),
        (plain, "TresPerNode=gres:nvme:1", False), (plain, "TresPerTask=gres:nvme:1", False), (plain, "CoreSpec=0", False),
        (plain, "BurstBuffer=x", False), (plain, "Switches=1@5", True), (more, "Licenses=matlab:3", False),
        (more, "Licenses=matlab:2,ansys", False), (more, "Gres=nvme:2", False), (more, "Licenses=matlab:2", True),
        (more, "Licenses=", True), (gpu, "TresPerJob=gres:gpu:h100:1", False),
    ):  # fmt: skip
        done = site.place.run(["scontrol", "update", f"JobId={job_id}", change])
        assert (done.returncode == 0) is good, (change, done.stderr)
    assert field(site, plain, "Licenses") == "(null)"
    assert field(site, more, "Licenses") in {"", "(null)"}


# --- One ticket is one run --------------------------------------------------------------------------------------------


def test_neither_owner_nor_administrator_sends_a_job_with_a_ticket_back_to_the_queue(site: Site):
    job_id = given(site, (*SMALL, "--requeue"))
    site.place.slurm("scontrol", "release", job_id)
    wait(lambda: field(site, job_id, "JobState") == "RUNNING", "the job")
    for words in (("requeue",), ("requeuehold",), ("requeuehold", "State=SpecialExit")):
        argv = ["scontrol", *words, job_id]
        for done in (site.place.run(argv), asked_by_root(site, *argv)):
            assert b"presently disabled" in done.stdout + done.stderr, words
    site.place.slurm("scancel", job_id)
    wait(lambda: field(site, job_id, "JobState") == "CANCELLED", "its end")
    assert site.place.run(["scontrol", "requeue", job_id]).returncode != 0
    assert field(site, job_id, "Restarts") == "0"


def test_a_job_with_a_ticket_that_is_preempted_or_loses_its_node_does_not_come_back(site: Site):
    manage(site, "sacctmgr", "-i", "add", "qos", "lowest", "Priority=1", "PreemptMode=requeue")
    manage(site, "sacctmgr", "-i", "modify", "qos", "high", "set", "Preempt+=lowest")
    manage(site, "sacctmgr", "-i", "modify", "user", site.place.cluster.user, "set", "qos+=lowest,high")
    node = site.place.slurm("sinfo", "--noheader", "--Node", "--partition=cpu", "--format=%N").split()[-1]
    whole = (*SMALL, f"--nodelist={node}", "--ntasks=1", "--cpus-per-task=64")
    low = given(site, (*whole, "--qos=lowest", "--requeue"))
    site.place.slurm("scontrol", "release", low)
    wait(lambda: field(site, low, "JobState") == "RUNNING", "the job")
    high = given(site, (*whole, "--qos=high"))
    site.place.slurm("scontrol", "release", high)
    wait(lambda: field(site, low, "JobState") == "PREEMPTED", "the job to be preempted")
    wait(lambda: field(site, high, "JobState") == "RUNNING", "the other one")
    manage(site, "scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=tried")
    try:
        wait(lambda: field(site, high, "JobState") == "NODE_FAIL", "the job to lose its node")
    finally:
        asked_by_root(site, "scontrol", "update", f"NodeName={node}", "State=RESUME")  # it may be back by itself
    for job_id in (low, high):
        assert (field(site, job_id, "Restarts"), field(site, job_id, "Requeue")) == ("0", "0")


@pytest.mark.parametrize(("code", "state"), [(42, "PENDING"), (43, "SPECIAL_EXIT")])
def test_what_slurm_conf_sends_back_by_its_exit_code_comes_back_under_its_ticket(site: Site, code: int, state: str):
    """In 22.05, which asks nobody and looks at no Requeue=0: so `site check` calls it wrong. Later versions look."""
    job_id = given(site, SMALL, f"#!/bin/bash\nexit {code}\n".encode())
    site.place.slurm("scontrol", "release", job_id)
    expected = ("1", state) if VERSION is None else ("0", "FAILED")
    wait(lambda: (field(site, job_id, "Restarts"), field(site, job_id, "JobState")) == expected, "the end of the job")
    assert field(site, job_id, "Requeue") == "0"
    site.place.run(["scancel", job_id])
