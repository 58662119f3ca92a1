"""get_fleet on the real cluster: its figures are those of sinfo, squeue and scontrol; the guide's commands are done."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.system.faces import Place
from tests.system.test_alerts import administer

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "fleet.md").read_text()
LINES = [
    line.removeprefix("slurm-agent-tools fleet").split()
    for block in re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL)
    for line in block.splitlines()
]
SLEEP = "--wrap=sleep 120"


@pytest.fixture
def busy(fresh: Place):
    """Jobs that hold GPUs, CPUs and memory, and one that waits."""
    gpu = ["--partition=gpu", "--time=5", "--chdir", str(fresh.project), "--output=/dev/null"]
    sent = [
        ["--gres=gpu:3", "--cpus-per-task=4", "--mem=4G", *gpu],
        ["--gres=gpu:4", "--cpus-per-task=2", "--mem=2G", *gpu],
        ["--gres=gpu:4", "--mem=1G", *gpu],
        [
            "--partition=cpu",
            "--cpus-per-task=8",
            "--mem=3G",
            "--time=5",
            "--chdir",
            str(fresh.project),
            "--output=/dev/null",
        ],
    ]
    jobs = [fresh.slurm("sbatch", "--parsable", *words, SLEEP) for words in sent]
    until(lambda: len(fresh.slurm("squeue", "-h", "-t", "running", "-o", "%A").split()) >= 3)
    yield fresh, jobs
    fresh.slurm("scancel", *jobs)


@pytest.mark.proves("the-fleet-is-one-look", "idle-is-measured")
def test_the_figures_are_those_of_slurm_at_that_moment(busy):
    place, jobs = busy
    _, told = place.cli("get_fleet", "--detail=full")
    inventory, free = told["inventory"], told["free"]
    there = dict(row.split("|") for row in place.slurm("sinfo", "-h", "-N", "-o", "%N|%t").splitlines())
    cpus = [int(part) for part in place.slurm("sinfo", "-h", "-o", "%C").split("/")]
    gpus = [
        int(number)
        for line in place.slurm("scontrol", "show", "nodes", "--details", "--oneliner").splitlines()
        for number in re.findall(r"GresUsed=gpu:\w+:(\d+)", line)
    ]
    rows = [row.split("|") for row in place.slurm("squeue", "-h", "-a", "-o", "%P|%T").splitlines()]

    assert inventory["nodes"] == len(there)
    assert sum(inventory["states"].values()) == len(there)
    assert inventory["cpus"] == cpus[3]
    assert (free["cpus_used"], free["cpus"]) == (cpus[0], cpus[1])
    assert (free["gpus_used"], free["gpus"]) == (sum(gpus), inventory["gpus"] - sum(gpus))
    assert {one["partition"]: (one["pending"], one["running"]) for one in told["waits"]["queue"]} == {
        name: tuple(sum(row == [name, state] for row in rows) for state in ("PENDING", "RUNNING"))
        for name in {row[0] for row in rows}
    }
    assert {one["job_id"] for one in told["waits"]["jobs"]} <= {*jobs}
    assert all(one["why"] for one in told["waits"]["jobs"])
    assert any("no Prometheus is set" in one["why"] for one in told["not_measured"]), told["not_measured"]
    assert told["idle"] == []  # nobody knows of ten minutes yet


def test_gpus_are_called_idle_once_their_job_slept_for_long_enough(busy):
    place = replace(busy[0], extra={"SLURM_AGENT_FLEET__IDLE_MINUTES": "0.05"})
    for _ in range(30):
        _, told = place.cli("get_fleet", "--sections=idle", "--detail=full")
        if told["idle"]:
            break
    assert {one["kind"] for one in told["idle"]} == {"held-empty"}, json.dumps(told)
    assert {one["source"] for one in told["idle"]} <= {"cpu_time", "gpuutil"}


NVIDIA_SMI = """#!/bin/sh
# Answers in the form of --query-gpu=uuid,utilization.gpu --format=csv,noheader,nounits: the GPUs of the step, idle.
echo "$SLURM_JOB_ID" >> {log}
for gpu in $(seq 1 "$(echo "$SLURM_STEP_GPUS" | tr ',' ' ' | wc -w)"); do
    echo "GPU-5a9ee3b4-3b2b-6a2d-5ef3-7f2d1c0e000$gpu, 0"
done
"""


def test_nvidia_smi_is_asked_in_a_step_of_the_own_job_where_a_person_lets_it(busy):
    place, jobs = busy
    folder = place.project.parent / "programs"  # nothing is started from inside of a project
    folder.mkdir(exist_ok=True)
    (folder / "nvidia-smi").write_text(NVIDIA_SMI.format(log=place.project / "asked.txt"))
    (folder / "nvidia-smi").chmod(0o755)
    place.own()
    let = {"SLURM_AGENT_FLEET__GPU_STEPS": "true", "PATH": f"{folder}:{place.environment()['PATH']}"}
    _, told = replace(place, extra=let).cli("get_fleet", "--sections=idle", "--detail=full")
    assert (place.project / "asked.txt").exists(), told["not_measured"]
    asked = set((place.project / "asked.txt").read_text().split())
    holding = set(place.slurm("squeue", "-h", "-t", "running", "-p", "gpu", "-o", "%A").split())
    assert asked == holding <= {*jobs}
    assert not any("GPU use of jobs" in one["what"] for one in told["not_measured"]), told
    _, blind = place.cli("get_fleet", "--sections=idle", "--detail=full")
    assert any("fleet.gpu_steps" in one["why"] for one in blind["not_measured"])


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_every_command_of_the_guide_is_done(fresh: Place, words: list[str]):
    done = fresh.run([sys.executable, "-m", "slurm_agent_tools", "fleet", *words])
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout


def until(reached: Callable[[], bool]) -> None:
    for _ in range(150):
        if reached():
            return
        time.sleep(0.2)
    raise AssertionError


def test_each_run_of_a_requeued_job_is_paid_for(fresh: Place):
    words = ["--requeue", "--partition=cpu", "--time=5", "--cpus-per-task=32", "--mem=1G", "--output=/dev/null"]
    job = fresh.slurm("sbatch", "--parsable", *words, "--chdir", str(fresh.project), "--wrap=sleep 60")
    until(lambda: fresh.slurm("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING")
    until(lambda: int(fresh.slurm("squeue", "-h", "-j", job, "-O", "TimeUsed").strip().split(":")[-1]) >= 4)
    fresh.slurm("scontrol", "requeue", job)
    runs = ("sacct", "-X", "-n", "-P", "-j", job, "-o", "CPUTimeRAW")
    until(lambda: len(fresh.slurm(*runs, "--duplicates").split()) == 2)
    fresh.slurm("scancel", job)
    every = sum(map(int, fresh.slurm(*runs, "--duplicates").split()))
    assert every >= 4 * 32 > sum(map(int, fresh.slurm(*runs).split()))  # the last run alone has next to nothing
    _, told = fresh.cli("get_fleet", "--sections=cost", "--detail=full")
    # Of the cluster's user, whose other tests' jobs are paid for as well; without the first run 0.03 are missing.
    everything = fresh.slurm("sacct", "-X", "-n", "-P", "--duplicates", "-S", "now-7days", "-o", "CPUTimeRAW").split()
    assert abs(told["cost"]["week"]["cpu_hours"] - sum(map(int, everything)) / 3600) <= 0.01


def test_never_starting_starved_and_overspent_jobs_are_made_and_found(fresh: Place, request: pytest.FixtureRequest):
    """`greedy` holds eight GPUs, `starved` waits for some, `stuck` waits for a job that has failed."""
    request.addfinalizer(lambda: fresh.slurm("scancel", f"--user={fresh.cluster.user}"))
    own = ["--parsable", "--time=5", "--chdir", str(fresh.project), "--output=/dev/null", "--mem=100M"]
    gpu = [*own, "--partition=gpu", "--gres=gpu:4"]
    failed = fresh.slurm("sbatch", *own, "--partition=cpu", "--wrap=exit 3")
    until(lambda: fresh.slurm("sacct", "-nXP", "-j", failed, "-o", "state") == "FAILED")
    stuck = fresh.slurm(
        "sbatch", *own, "--partition=cpu", f"--dependency=afterok:{failed}", "--kill-on-invalid-dep=no", "--wrap=true"
    )
    for _ in range(2):
        fresh.slurm("sbatch", *gpu, "--job-name=greedy", SLEEP)
    until(lambda: fresh.slurm("squeue", "-h", "-t", "running", "-n", "greedy", "-o", "%A").count("\n") == 1)
    starved = fresh.slurm("sbatch", *gpu, "--job-name=starved", SLEEP)
    quotas = {"tag:greedy": 0.00001, "tag:starved": 0.9}
    place = replace(fresh, extra={"SLURM_AGENT_FLEET__QUOTAS": json.dumps(quotas)})
    told = {}

    def found() -> bool:
        _, answer = place.cli("get_fleet", "--sections=waits,shares,alerts,cost", "--detail=full")
        told.clear()
        told.update(answer)
        starving = any(one["starved"] for one in answer["shares"]["quotas"])
        return starving and "budget-used" in [one["code"] for one in answer["alerts"]]

    until(found)
    waits = {one["job_id"]: one for one in told["waits"]["jobs"]}
    assert (waits[stuck]["never"], waits[starved]["never"]) == (True, False), waits
    shares = {one["quota"]: one for one in told["shares"]["quotas"]}
    assert (shares["tag:starved"]["starved"], shares["tag:starved"]["used"]) == (True, 0)
    assert shares["tag:greedy"]["left"] == 0 < shares["tag:greedy"]["used"]
    assert "Used up for today: tag:greedy." in told["summary"]
    spent = next(one["message"] for one in told["alerts"] if one["code"] == "budget-used")
    assert ("tag:greedy" in spent, "tag:starved" in spent) == (True, False), spent
    assert ("share-starved", None) in [(one["code"], one["job_id"]) for one in told["alerts"]], told["alerts"]
    assert stuck in [one["job_id"] for one in told["alerts"]], told["alerts"]
    assert told["cost"]["today"]["gpu_hours"] >= shares["tag:greedy"]["used"]


def test_a_match_compares_features_time_limits_and_who_may_use_a_partition(
    fresh: Place, request: pytest.FixtureRequest
):
    """What it says of nodes and partitions is what Slurm says of the same job."""

    def matched(*need: str) -> dict[str, Any]:
        words = ["fleet", "--json", "--full", "--match", ",".join(need)]
        done = fresh.run([sys.executable, "-m", "slurm_agent_tools", *words])
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def taken() -> bool:
        job = fresh.slurm(
            "sbatch", "--parsable", "-pgpu", "--gres=gpu:1", "--time=1", "--output=/dev/null", "--wrap=true"
        )
        until(lambda: "account_not_permitted" in said(job) or "COMPLETED" in said(job))
        return "COMPLETED" in said(job)

    def said(job: str) -> str:
        return fresh.slurm("scontrol", "show", "job", job)

    request.addfinalizer(lambda: fresh.slurm("scancel", f"--user={fresh.cluster.user}"))
    request.addfinalizer(lambda: administer(fresh, "scontrol", "update", "PartitionName=gpu", "AllowAccounts=ALL"))
    listed = dict(line.split("|") for line in fresh.slurm("sinfo", "-h", "-N", "-p", "gpu", "-o", "%N|%f").splitlines())
    names = sorted({name for features in listed.values() for name in features.split(",")})
    assert names
    for name in [*names, "nowhere"]:
        (fits,) = [
            one["nodes"] for one in matched("gpus=1", f"constraint={name}")["match"]["tiers"] if one["fits"]
        ] or [0]
        assert fits == sum(name in features.split(",") for features in listed.values()), name
    (longest,) = set(fresh.slurm("sinfo", "-h", "-p", "gpu", "-o", "%l").split())
    for limit, fits in ((longest, True), ("400-0", False)):
        assert {one["fits"] for one in matched("gpus=1", f"time_limit={limit}")["match"]["tiers"]} == {fits, False}, (
            limit
        )

    mine = fresh.slurm("sacctmgr", "-nP", "show", "associations", f"user={fresh.cluster.user}", "format=account")
    for account, fits in ((mine.split()[0], True), ("nobodys", False)):
        administer(fresh, "scontrol", "update", "PartitionName=gpu", f"AllowAccounts={account}")
        told = matched("gpus=1")
        offered = any("gpu" in one.get("partitions", []) for one in told["match"]["tiers"])
        unknown = [one for one in told["not_measured"] if "may use partition" in one["what"]]
        assert offered == fits or unknown, told
        assert taken() == fits
        assert not (fits and unknown), told
