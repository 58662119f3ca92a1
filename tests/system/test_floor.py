"""The exported floor on a real controller: put in place as the guide for administrators says, then gone around.

The cluster is this module's own, so that the others' controller stays without a plugin.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.system.faces import Place

from slurm_agent_tools.devcluster import lifecycle
from slurm_agent_tools.devcluster.definition import Cluster

pytestmark = pytest.mark.proves("floor-holds")

SCRIPT = b"#!/bin/bash\nsleep 60\n"


@pytest.fixture(scope="module")
def floored() -> Iterator[Place]:
    """A project on a cluster whose controller has loaded the exported plugin."""
    folder = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        cluster = anyio.run(partial(lifecycle.up, folder, yes=True))
        place = Place(cluster, cluster.project)
        install(place)
        yield place
    finally:
        anyio.run(partial(lifecycle.down, folder, wipe=True))


def install(place: Place) -> None:
    """The steps of docs/guides/administrators.md, as the cluster's administrator."""
    folder = place.cluster.conf.parent
    (folder / "job_submit.lua").write_text(export(place, "job-submit-lua", "--exempt-user", "labmate"))
    for conf in (folder / "slurm.conf", folder / "daemons.conf"):
        if conf.exists():
            conf.write_text(conf.read_text() + "JobSubmitPlugins=lua\n")
    manage(place.cluster, ["scontrol", "reconfigure"])
    for _ in range(600):
        if "slurm-agent-tools floor: policy default" in log(place):
            return
        time.sleep(0.1)
    raise AssertionError(log(place)[-2000:])


def export(place: Place, *words: str) -> str:
    done = place.run([sys.executable, "-m", "slurm_agent_tools", "policy", "export", *words])
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def manage(cluster: Cluster, argv: list[str]) -> None:
    done = as_administrator(cluster, argv)
    assert done.returncode == 0, (argv, done.stderr)


def as_administrator(cluster: Cluster, argv: list[str]) -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": os.environ["PATH"], **cluster.environment()}
    return subprocess.run(argv, capture_output=True, env=env, cwd="/", timeout=60, check=False)


def log(place: Place) -> str:
    return (place.cluster.folder / "log/slurmctld.log").read_text(errors="replace")


def sbatch(place: Place, *words: str, script: bytes = SCRIPT) -> tuple[str | None, str]:
    """A bare sbatch, held: the job's id or None, and what Slurm said."""
    done = place.run(["sbatch", "-H", "-o/dev/null", *words], stdin=script)
    found = re.search(rb"Submitted batch job (\d+)", done.stdout)
    return (found[1].decode() if found else None), done.stderr.decode()


def accepted(place: Place, *words: str) -> str:
    job_id, said = sbatch(place, *words)
    assert job_id, (words, said)
    return job_id


NINE = ("-pgpu", "-t5", "--mem-per-gpu=1G")
CPU = ("-pcpu", "-t5")
GPU = ("-pgpu", "-t5")


@pytest.mark.parametrize(
    ("words", "rule", "parts"),
    [
        (("-pcpu", "-t5"), "memory-per-gpu", ["no memory is stated", "--mem=16G"]),
        ((*CPU, "--mem=0"), "memory-per-gpu", ["all memory of a node", "--mem=16G"]),
        ((*CPU, "--mem-per-cpu=0"), "memory-per-gpu", ["all memory of a node", "--mem=16G"]),
        ((*CPU, "--mem=18014398509481984G"), "memory-per-gpu", ["all memory of a node", "--mem=16G"]),
        ((*CPU, "--mem=25G"), "memory-per-gpu", ["25G on a node is more than 24G", "--mem=16G"]),
        ((*CPU, "-n7", "--mem-per-cpu=4G"), "memory-per-gpu", ["28G on a node is more than 24G"]),
        ((*CPU, "--mincpus=8", "--mem-per-cpu=4G"), "memory-per-gpu", ["32G on a node"]),
        ((*GPU, "--gpus=1"), "memory-per-gpu", ["no memory is stated", "--mem-per-gpu=16G"]),
        ((*GPU, "--gpus=1", "--mem-per-gpu=25G"), "memory-per-gpu", ["25G per GPU is more than 24G"]),
        ((*GPU, "--gpus=2", "--mem=32G"), "memory-per-gpu", ["32G per GPU", "--nodes=1", "--mem-per-gpu=16G"]),
        ((*GPU, "--gpus=4", "--mem=64G", "-N2"), "memory-per-gpu", ["64G per GPU", "24G"]),
        ((*GPU, "--gres=gpu:2", "--mem=49G", "-N1"), "memory-per-gpu", ["25088M per GPU", "24G"]),
        ((*GPU, "--gpus=1", "--cpus-per-gpu=8", "--mem-per-cpu=4G"), "memory-per-gpu", ["32G per GPU"]),
        ((*GPU, "--gpus=1", "-B2:8:1", "--mem-per-cpu=4G"), "memory-per-gpu", ["64G per GPU"]),
        ((*GPU, "--gpus=2", "-n4", "--mem=16G"), "memory-per-gpu", ["32G per GPU", "--nodes=1"]),
        ((*GPU, "-n4", "--gpus-per-socket=1", "--sockets-per-node=2", "--mem-per-cpu=8G"), "memory-per-gpu", ["32G per GPU"]),
        ((*NINE, "--gpus=9"), "gpus", ["9 GPUs are more than 8", "--gpus=4"]),
        ((*NINE, "--gpus=a100:5,h100:4"), "gpus", ["9 GPUs", "--gpus=4"]),
        ((*NINE, "-N3", "--gpus-per-node=a100:3"), "gpus", ["9 GPUs", "--gpus=4"]),
        ((*NINE, "-N3", "--gres=gpu:3"), "gpus", ["9 GPUs", "--gpus=4"]),
        ((*NINE, "-n9", "--gpus-per-task=1"), "gpus", ["9 GPUs", "--gpus=4"]),
        ((*NINE, "-N2", "--gpus-per-socket=3", "--sockets-per-node=2"), "gpus", ["12 GPUs", "--gpus=4"]),
        ((*NINE, "-n18", "--ntasks-per-gpu=2"), "gpus", ["9 GPUs", "--gpus=4"]),
        ((*NINE, "-n9", "--gres=gpu:1"), "gpus", ["9 GPUs on all the nodes", "--nodes=1"]),
        ((*NINE, "-N2-9", "--gres=gpu:1"), "gpus", ["9 GPUs on all the nodes", "--nodes=1"]),
        (("-pcpu", "--mem=1G"), "time-limit", ["no time limit is stated", "--time=1-00:00:00"]),
        (("-pcpu", "--mem=1G", "-t3-00:01"), "time-limit", ["more than 3-00:00:00", "--time=1-00:00:00"]),
        (("-pcpu", "--mem=1G", "-t0"), "time-limit", ["more than 3-00:00:00", "--time=1-00:00:00"]),
        ((*CPU, "--mem=1G", "--exclusive"), "directives", ["leave --exclusive out"]),
        ((*CPU, "--mem=1G", "--exclusive=user"), "directives", ["leave --exclusive out"]),
        ((*CPU, "--mem=1G", "--array=0-9"), "concurrent-jobs", ["more than 4 tasks", "%4"]),
        ((*CPU, "--mem=1G", "--array=0-8:2%0"), "concurrent-jobs", ["more than 4 tasks", "%4"]),
        ((*CPU, "--mem=1G", "--array=1,3,7-9%5"), "concurrent-jobs", ["more than 4 tasks", "%4"]),
        ((*CPU, "--mem=1G", ":", *CPU, "--mem=1G"), "directives", ["heterogeneous", "one plain job"]),
    ],
)  # fmt: skip
def test_a_bare_sbatch_beyond_a_limit_is_refused_with_limit_and_remedy(floored, words, rule, parts):
    job_id, said = sbatch(floored, *words)
    assert job_id is None
    assert re.search(rf"^sbatch: error: (\d+: )?{rule}: ", said, re.MULTILINE), said
    for part in parts:
        assert part in said


@pytest.mark.parametrize(
    "words",
    [
        (*GPU, "-N1", "--gpus=4", "--mem=64G"),
        (*GPU, "-N1", "--gres=gpu:a100:4", "--mem=96G"),
        (*GPU, "-N2", "--gpus-per-node=2", "--mem=32G"),
        (*GPU, "--gpus=8", "--mem-per-gpu=24G"),
        (*GPU, "-n4", "--gpus-per-task=1", "--mem-per-cpu=16G"),
        (*GPU, "-n2", "--gpus=1", "--ntasks-per-gpu=2", "--mem-per-gpu=8G"),
        (*GPU, "--gres=gpu:1", "--mem=16G"),
        (*GPU, "--gpus=1", "--cpus-per-gpu=8", "--mem-per-cpu=2G"),
        (*GPU, "-N1", "-n8", "--gres=gpu:2", "--mem=32G"),
        (*GPU, "-n8", "--gpus-per-node=1", "--mem=16G"),
        (*GPU, "-N1", "-n2", "--gpus-per-node=4", "--cpus-per-gpu=8", "--mincpus=8", "--mem=32G"),
        (*CPU, "--mem=24G"),
        (*CPU, "-n8", "--ntasks-per-node=4", "--mem-per-cpu=4G"),
        (*CPU, "--mem=1G", "--array=0-999%4"),
        (*CPU, "--mem=1G", "--array=1-4"),
        ("-pcpu", "--mem=1G", "-t3-00:00:00"),
    ],
)  # fmt: skip
def test_an_honest_sbatch_passes(floored, words):
    assert accepted(floored, *words)


def test_a_job_gets_no_requeue_even_where_it_asks_for_one(floored):
    job_id = accepted(floored, *CPU, "--mem=1G", "--requeue")
    assert "Requeue=0" in floored.slurm("scontrol", "show", "job", job_id)


def test_srun_and_salloc_meet_the_same_floor(floored):
    for argv in (["srun", "-pcpu", "-n1", "true"], ["salloc", "-pcpu", "-t5", "--mem=50G", "true"]):
        done = floored.run(argv)
        assert done.returncode != 0
        assert b"error: memory-per-gpu: " in done.stderr


SIZE, TIME = b"Job violates accounting/QOS policy", b"Requested time limit is invalid"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("MinMemoryNode=60000", SIZE),
        ("MinMemoryNode=0", SIZE),
        ("MinMemoryCPU=60000", SIZE),
        ("TimeLimit=4-0", TIME),
        ("TimeLimit=UNLIMITED", TIME),
        ("Requeue=1", SIZE),
        ("TresPerJob=gres:gpu:9", SIZE),
        ("NumNodes=2", SIZE),
        ("NumTasks=9", SIZE),
        ("OverSubscribe=NO", SIZE),
    ],
)  # fmt: skip
def test_the_owner_cannot_change_a_job_past_a_limit(floored, change, said):
    job_id = accepted(floored, "-pgpu", "-t60", "-N1", "--gpus=2", "--mem=32G")
    before = floored.slurm("scontrol", "-o", "show", "job", job_id)
    done = floored.run(["scontrol", "update", f"JobId={job_id}", change])
    assert done.returncode != 0
    assert said in done.stderr
    assert floored.slurm("scontrol", "-o", "show", "job", job_id) == before


@pytest.mark.parametrize("throttle", [0, 9])
def test_opening_an_arrays_throttle_is_refused_aloud(floored, throttle):
    # Slurm 22.05 has set the throttle before it asks its plugin; what holds is the QOS, in the last test.
    job_id = accepted(floored, *CPU, "--mem=1G", "--array=0-9%2")
    done = floored.run(["scontrol", "update", f"JobId={job_id}", f"ArrayTaskThrottle={throttle}"])
    assert done.returncode != 0
    assert SIZE in done.stdout + done.stderr


def test_the_owner_may_change_a_job_within_the_limits(floored):
    job_id = accepted(floored, "-pgpu", "-t60", "-N1", "--gpus=2", "--mem=32G")
    for change in ("MinMemoryNode=16000", "TimeLimit=30", "Requeue=0", "Comment=x", "TresPerJob=gres:gpu:1"):
        floored.slurm("scontrol", "update", f"JobId={job_id}", change)
    array = accepted(floored, *CPU, "--mem=1G", "--array=0-9%2")
    floored.slurm("scontrol", "update", f"JobId={array}", "ArrayTaskThrottle=4")


def test_root_and_exempt_users_pass(floored):
    argv = ["sbatch", "-H", "-pcpu", "--mem=100G", "-o/dev/null", "--wrap=true"]
    manage(floored.cluster, floored.cluster.as_user(argv, "labmate"))
    manage(floored.cluster, argv)


@pytest.mark.parametrize(
    "words",
    [
        "--partition=gpu --gpus=2 --mem=32G",
        "--partition=cpu --nodes=2 --ntasks=3 --ntasks-per-node=2 --mem-per-cpu=1G",  # made memory of each node
    ],
)
def test_a_job_of_the_guard_passes_and_is_released(floored, words):
    lines = [f"#SBATCH {word}" for word in (*words.split(), "--output=train.out")]
    (floored.project / "train.sh").write_text("\n".join(["#!/bin/bash", *lines, "sleep 60\n"]))
    floored.own()
    clear(floored)
    floored.cli("get_status", "--no-cache")
    code, reply = floored.cli("submit_job", "--script=train.sh")
    assert (code, reply["status"]) == (0, "submitted"), reply
    floored.slurm("scancel", reply["job_id"])


@contextmanager
def replaced(place: Place, text: str) -> Iterator[None]:
    """Another plugin in the place of the exported one. The controller reads the file again when its time changed."""
    file = place.cluster.conf.parent / "job_submit.lua"
    sound, when = file.read_text(), file.stat().st_mtime
    try:
        file.write_text(text)
        os.utime(file, (when + 5, when + 5))
        yield
    finally:
        file.write_text(sound)
        os.utime(file, (when + 10, when + 10))


def test_a_floor_that_fails_refuses(floored):
    sound = (floored.cluster.conf.parent / "job_submit.lua").read_text()
    job_id = accepted(floored, *CPU, "--mem=1G")
    with replaced(floored, sound.replace("local LIMIT = {", "local LIMIT = nil\nlocal GONE = {")):
        refused, said = sbatch(floored, *CPU, "--mem=1G")
        assert refused is None
        assert "floor: the limits could not be checked, tell an administrator" in said
        assert floored.run(["scontrol", "update", f"JobId={job_id}", "TimeLimit=2"]).returncode != 0
    assert accepted(floored, *CPU, "--mem=1G")


def test_hours_of_a_stricter_policy_count_every_task_of_an_array(floored):
    folder = floored.project / "policies"
    folder.mkdir()
    (folder / "hours.yaml").write_text("limits: {gpu_hours_per_job: 8, cpu_hours_per_job: 16}\n")
    floored.own()
    with replaced(floored, export(floored, "job-submit-lua")):
        for words, part in (
            (("-pgpu", "--gpus=4", "--mem-per-gpu=1G", "-t130"), "8.7 GPU hours are more than 8"),
            (("-pgpu", "--gpus=1", "--mem-per-gpu=1G", "-t60", "--array=1-9%4"), "9.0 GPU hours are more than 8"),
            (("-pcpu", "-n4", "-c2", "--mem=1G", "-t130"), "17.3 CPU hours are more than 16"),
        ):
            job_id, said = sbatch(floored, *words)
            assert job_id is None
            assert f"budget: {part}" in said
        assert accepted(floored, "-pgpu", "--gpus=4", "--mem-per-gpu=1G", "-t120")
    (folder / "hours.yaml").unlink()


def test_the_jobs_of_an_exempt_account_pass(floored):
    with replaced(floored, export(floored, "job-submit-lua", "--exempt-account", "lab")):
        assert accepted(floored, "-pcpu", "--mem=100G")
    with replaced(floored, export(floored, "job-submit-lua", "--exempt-account", "guest")):
        job_id, said = sbatch(floored, "-pcpu", "--mem=100G", "--account=guest")
        assert job_id is None, "the user is not in that account"
        assert "Invalid account" in said
        assert sbatch(floored, "-pcpu", "--mem=100G")[0] is None


def clear(place: Place) -> None:
    place.slurm("scancel", f"--user={place.cluster.user}")
    assert eventually(place, lambda lines: not lines) == []


def eventually(place: Place, wanted: Callable[[list[str]], bool]) -> list[str]:
    """State and reason of each job of the user, as soon as they are as wanted, or after a minute as they are."""
    lines: list[str] = []
    for _ in range(600):
        lines = sorted(place.slurm("squeue", "-h", "-r", "-o", "%t %r", f"--user={place.cluster.user}").splitlines())
        if wanted(lines):
            break
        time.sleep(0.1)
    return lines


@pytest.fixture(scope="module")
def limited(floored: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The same cluster, with the exported limits on its QOS too."""
    lines = tmp_path_factory.mktemp("qos") / "limits.sh"
    lines.write_text(export(floored, "qos"))
    manage(floored.cluster, ["sh", str(lines)])
    return floored


def test_the_fifth_job_of_a_user_waits(limited):
    clear(limited)
    jobs = [accepted(limited, *CPU, "--mem=100M") for _ in range(5)]
    limited.slurm("scontrol", "release", ",".join(jobs))
    wanted = ["PD QOSMaxJobsPerUserLimit", *["R None"] * 4]
    assert eventually(limited, lambda lines: lines == wanted) == wanted


def test_an_array_with_an_opened_throttle_still_runs_four_at_once(limited):
    clear(limited)
    array = accepted(limited, *CPU, "--mem=100M", "--array=0-9%2")
    limited.run(["scontrol", "update", f"JobId={array}", "ArrayTaskThrottle=9"])
    limited.slurm("scontrol", "release", array)
    wanted = [*["PD QOSMaxJobsPerUserLimit"] * 6, *["R None"] * 4]
    assert eventually(limited, lambda lines: lines == wanted) == wanted
    clear(limited)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("-pgpu", "--gpus=9", "-t5", "--mem=1G"), b"QOSMaxGRESPerJob"),
        (("-pcpu", "-t4-0", "--mem=1G"), b"QOSMaxWallDurationPerJobLimit"),
    ],
)
def test_a_qos_refuses_the_single_job_that_is_too_large_even_past_the_plugin(limited, words, reason):
    argv = ["sbatch", "-H", "-o/dev/null", "--wrap=true", *words]
    done = as_administrator(limited.cluster, limited.cluster.as_user(argv, "labmate"))
    assert done.returncode != 0
    assert reason in done.stderr
