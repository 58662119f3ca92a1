"""Our reading of random requests beside what a real Slurm makes of them. SOAK_SECONDS or SOAK=1 ask for more."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st
from tests.system.faces import Place
from tests.system.spelling import Asked, requests, sized

from slurm_agent_tools.models.geometry import geometry, has_idle_tasks, layout
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import Evidence, JobRequest
from slurm_agent_tools.models.sbatch_options import listed_nodes
from slurm_agent_tools.policy import sbatch_crosscheck
from slurm_agent_tools.scripts.directive_lines import read_directives, words_to_directives
from slurm_agent_tools.scripts.effective_request import effective, resolve
from slurm_agent_tools.settings import Settings, SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.slurm.commands import sbatch, scontrol
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.transport.local import LocalRunner, SystemClock
from slurm_agent_tools.units import JobId

SOAK = float(os.environ.get("SOAK_SECONDS") or 600 * int(os.environ.get("SOAK") or 0))
# What the guard refuses though sbatch reads it: other versions read it differently, or it wraps around, or the
# controller is the one to refuse it.
STRICTER = re.compile(
    r"a lone `:`|different versions|depending on Slurm's version|is ambiguous|out of range|an empty word|has no value on its line"
    r"|--(gres|gpus|gpus-per-\w+|array|nodes|extra-node-info|time|time-min|nodelist): "
)
many = settings(
    max_examples=round(700 + SOAK * 15), deadline=None, database=None, derandomize=not SOAK,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


class Slurm:
    """sbatch and its like as the cluster's user, quickly: a request costs one command."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.user = pwd.getpwnam(place.cluster.user)
        self.env = place.environment() | {"LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "%s"}

    def run(self, argv: Sequence[str], stdin: bytes = b"", **env: str) -> Completed:
        into, out_of = os.pipe()
        if os.geteuid() == 0:  # /dev/stdin is opened anew, by its owner only
            os.fchown(into, self.user.pw_uid, self.user.pw_gid)
        os.write(out_of, stdin)
        os.close(out_of)
        done = subprocess.run(
            self.place.cluster.as_user(argv), stdin=into, capture_output=True, cwd=self.place.project,
            env=self.env | env, check=False, timeout=60,
        )  # fmt: skip
        os.close(into)
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr, 0.0)

    def trial(self, script: bytes, words: Sequence[str], **env: str) -> sbatch.TestOnly:
        return sbatch.parse_trial(self.run(sbatch.argv(words, (), trial=True), script, **env))


@pytest.fixture(scope="module")
def slurm(place: Place) -> Slurm:
    return Slurm(place)


def our_reading(asked: Asked) -> JobRequest:
    """The request with every problem in it, as the guard reads script and command line."""
    header = read_directives(asked.script, "job.sh")
    problems = list(header.problems)
    try:
        given_words = words_to_directives(asked.words, "argument")
    except ValueError as error:
        given_words = ()
        problems.append(Evidence("command line", 0, str(error)))
    request = effective([*header.directives, *given_words])
    return replace(request, problems=(*problems, *request.problems), components=header.components)


def stricter(request: JobRequest) -> bool:
    return all(STRICTER.search(problem.text) for problem in request.problems)


@many
@given(requests())
def test_sbatch_reads_every_option_as_the_guard_does_and_both_refuse_the_same(slurm, asked):
    request, trial = our_reading(asked), slurm.trial(asked.script, asked.words)
    told = (asked, trial, request.problems)
    gave_up = trial.shown == () and not trial.accepted
    event("refused by sbatch" if gave_up else "read by sbatch")
    event("refused by the guard" if request.problems else "read by the guard")
    if gave_up:
        assert request.problems or gone(slurm, trial), told
    elif request.problems:
        assert stricter(request), told
    else:
        told_apart = sbatch_crosscheck.differences(request, trial.shown)
        # Later versions read `--gres=gres:gpu` as a resource of the name gres, and refuse it.
        assert told_apart == [] or (slurm.place.cluster.release is not None and not trial.accepted), told


def gone(slurm: Slurm, trial: sbatch.TestOnly) -> bool:
    """Whether a later version gave up on what 22.05 takes: its refusal is the answer then."""
    words = ("unrecognized option '--po", "is ambiguous", "mutually exclusive")
    return slurm.place.cluster.release is not None and any(word in trial.message for word in words)


# --- what is pending, and what is allocated ----------------------------------------------------------------------

SCRIPT = b"#!/bin/bash\nscontrol show job -d $SLURM_JOB_ID\n"  # only while it runs are its GPUs shown node by node
# The estimate of a pending job leaves out what these add (measured).
UNTRUE = frozenset({"cpus-per-gpu", "mincpus", "exclusive", "overcommit", "gpus-per-socket", "extra-node-info"})
MADE = {
    "plain": ("Nodes={gpus}",),  # no default memory: whole nodes
    "whole": ("Nodes={gpus}", "OverSubscribe=EXCLUSIVE"),
    "bygpu": ("Nodes={gpus}", "JobDefaults=DefMemPerGPU=1000"),
    "split": ("Nodes={gpus}", "MaxMemPerCPU=1000"),
    "fed": ("Nodes={gpus}", "JobDefaults=DefCpuPerGPU=4"),
    "mixed": ("Nodes=ALL",),  # nodes of three sizes
}
ALL = ("gpu", *MADE)
SHARED = ("gpu", "bygpu", "split")  # where a job without GPUs and memory does not need a whole node


def administer(place: Place, *argv: str) -> None:
    subprocess.run(argv, env=place.environment(), check=True, capture_output=True)


@pytest.fixture(scope="module")
def partitions(slurm: Slurm) -> Iterator[dict[str, Partition]]:
    """Those of the cluster, and for this module some with other defaults."""
    place = slurm.place
    gpus = ",".join(name for name in place.cluster.nodes if "gpu" in name)
    for name, words in MADE.items():
        administer(place, "scontrol", "create", f"PartitionName={name}", words[0].format(gpus=gpus))
        for word in words[1:]:
            administer(place, "scontrol", "update", f"PartitionName={name}", word)
    runner = LocalRunner(Settings(slurm=SlurmSettings(conf=place.cluster.conf, bin_dir=place.programs)))
    yield anyio.run(SlurmClient(runner, SystemClock(), SlurmSettings(), user="root").partitions)
    slurm.run(["scancel", f"--user={place.cluster.user}"])
    wait(lambda: not queued(slurm), 30)
    for name in MADE:
        administer(place, "scontrol", "delete", f"PartitionName={name}")


def wait(reached: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        time.sleep(0.3)
    return reached()


def queued(slurm: Slurm) -> set[str]:
    argv = ["squeue", "-h", "-o", "%i", "-t", "pending,running,completing", f"--user={slurm.place.cluster.user}"]
    return set(slurm.run(argv).stdout.decode().split())


def submit(slurm: Slurm, words: Sequence[str], script: bytes = SCRIPT) -> str | None:
    """The job's id; None where Slurm refuses it."""
    done = slurm.run(["sbatch", "--parsable", "--no-requeue", *words], script)
    return done.stdout.decode().strip() if done.exit_code == 0 else None


def resolved(words: Sequence[str], partitions: dict[str, Partition]) -> tuple[JobRequest, Resources]:
    request = effective(words_to_directives(words, "argument"))
    return request, resolve(request, partitions)


@settings(many, max_examples=round(250 + SOAK * 2))
@given(sized(), st.sampled_from(["", "", "", "0-3", "0-9%4", "1,3-9:2%2", "5"]))
def test_a_held_job_shows_the_memory_gpus_nodes_and_tasks_that_were_computed(slurm, partitions, words, array):
    words = ("-pgpu", *words, *([f"--array={array}"] if array else []))
    request, ours = resolved(words, partitions)
    assume(not request.problems)
    job = submit(slurm, ["--hold", *words])
    assume(job is not None)
    shown = scontrol.parse_jobs(slurm.run(scontrol.job_argv(JobId(int(job)))))[0].resources
    slurm.run(["scancel", job])
    told = (words, shown, ours)
    assert (shown.array_tasks, shown.array_concurrency) == (ours.array_tasks, ours.array_concurrency), told
    if by_tasks(request) and slurm.place.cluster.release is None:
        return  # 22.05 shows these nodes, and what they add, once the job has them
    assert shown.nodes == ours.nodes, told
    if not request.find("exclusive", "gpus-per-socket") and not (request.ntasks_per_gpu and request.gpus is None):
        assert shown.gpus == geometry(request, partitions["gpu"]).gpus, told
    if request.find("mem", "mem-per-cpu") and not request.find(*UNTRUE) and not understated(request):
        event("memory compared")
        assert shown.memory_bytes == ours.memory_bytes, told


def by_tasks(request: JobRequest) -> bool:
    """Whether nodes follow from tasks and tasks by node."""
    tasks, on_node = request.ntasks, request.ntasks_per_node
    return request.nodes is None and tasks is not None and on_node is not None and tasks > on_node


def understated(request: JobRequest) -> bool:
    """CPUs that are shown once the job has them (measured).

    They are those of nodes that follow from GPUs by node, and of tasks that may be on a node beyond -n.
    """
    derived = request.gpus is not None and request.gpus_per_node is not None
    idle = has_idle_tasks(request, geometry(request, None).nodes)
    return (derived or idle) and request.memory_per_cpu is not None


# With every GPU free, and with so few that jobs of several GPUs have to be spread.
@pytest.mark.parametrize("free", [(4, 4), (1, 1)], ids=["free", "scattered"])
def test_what_is_allocated_is_never_more_than_the_worst_placement(slurm, partitions, free):
    jobs: dict[str, tuple[str, ...]] = {}
    blockers = block(slurm, free)

    @settings(many, max_examples=round(170 + SOAK / 3))
    @example(("--gpus=2", "--mem-per-gpu=100M"), "gpu")  # first in the queue: some are spread whatever is drawn
    @example(("-N2", "--gpus-per-node=1", "--mem=100M"), "gpu")
    @example(("--gpus=1", "-n6", "--cpus-per-gpu=4", "--mem-per-gpu=100M"), "gpu")
    @example(("-N2", "-n2", "--ntasks-per-node=4", "--mem-per-cpu=100M"), "gpu")
    @example(("-N2-4", "--gpus=2", "--gpus-per-task=2", "--mem=100M"), "gpu")
    @example(("--gpus-per-task=1", "-n3", "--ntasks-per-node=2", "-c4", "--mem-per-cpu=100M"), "bygpu")
    @given(sized(whole=not blockers), st.sampled_from(ALL if not blockers else SHARED))
    def send(words, partition):
        words = (f"-p{partition}", *words)
        request, _ = resolved(words, partitions)
        if not request.problems and words not in jobs.values() and fits(request, partitions[partition], free):
            if slurm.place.cluster.release is not None and (any(layout(request)) or request.find("spread-job")):
                return  # later versions may give these more GPUs than were asked; the default policy refuses them
            job = submit(slurm, ["-t1", "-oalloc-%j", *words])
            if job is not None:
                jobs[job] = words

    send()
    enough = 30 if slurm.place.cluster.release is None else 15  # the longer wait for scattered GPUs there
    wait(lambda: queued(slurm) <= blockers, 75 + SOAK / 10)
    wait(lambda: sum(1 for job in jobs if placement(slurm, job)) >= enough, 200)  # a busy machine starts fewer
    slurm.run(["scancel", f"--user={slurm.place.cluster.user}"])
    wait(lambda: not queued(slurm), 30)
    placed = {words: found for job, words in jobs.items() if (found := placement(slurm, job))}
    assert len(placed) >= enough, (len(placed), len(jobs))
    assert free == (4, 4) or any(sum(1 for _, gpus in found if gpus) > 1 for found in placed.values())
    problems = [(words, found) for words, nodes in placed.items() if (found := excess(words, nodes, partitions))]
    assert not problems, "\n".join(map(str, problems))


def fits(request: JobRequest, partition: Partition, free: Sequence[int]) -> bool:
    """Whether there are ever so many GPUs: a job that waits for more holds up all others."""
    shape = geometry(request, partition)
    return shape.gpus <= sum(free) and max(shape.fewest_gpus, request.gpus_per_node or 0) <= max(free)


def block(slurm: Slurm, free: Sequence[int]) -> set[str]:
    """Jobs that leave so many GPUs of each GPU node."""
    names = [name for name in slurm.place.cluster.nodes if "gpu" in name]
    pairs = [(name, 4 - left) for name, left in zip(names, free, strict=True) if left < 4]
    argvs = [["-pgpu", f"-w{name}", f"--gpus={taken}", "--mem=100M", "-o/dev/null", "-t9"] for name, taken in pairs]
    return {job for argv in argvs if (job := submit(slurm, argv, b"#!/bin/sh\nsleep 500\n"))}


def placement(slurm: Slurm, job: str) -> list[tuple[int, int]]:
    """Bytes and GPUs of each node, as the running job wrote them; empty where it never ran."""
    path = slurm.place.project / f"alloc-{job}"
    rows = re.findall(r"Nodes=(\S+) CPU_IDs=\S+ Mem=(\d+) GRES=(\S*)", path.read_text()) if path.exists() else []
    found = []
    for names, megabytes, gres in rows:
        gpus = sum(int(number) for number in re.findall(r"gpu:(?:[^:(]+:)?(\d+)\(", gres))
        found += [(int(megabytes) * 2**20, gpus)] * listed_nodes(names)
    return found


def excess(words: Sequence[str], nodes: list[tuple[int, int]], partitions: dict[str, Partition]) -> list[object]:
    """In what an allocation is more than was computed."""
    request, ours = resolved(words, partitions)
    shares = [-(-memory // gpus) for memory, gpus in nodes if gpus]
    numbers = (
        ("nodes", len(nodes), geometry(request, partitions[words[0][2:]]).most_nodes),
        ("gpus", sum(gpus for _, gpus in nodes), ours.gpus),
        ("node", max(memory for memory, _ in nodes), ours.memory_per_node_bytes),
        ("gpu", max(shares, default=0), ours.memory_per_gpu_bytes or 0),
    )
    return [(name, got, bound, nodes) for name, got, bound in numbers if bound is None or got > bound]


# --- the second opinion in production ------------------------------------------------------------------------------

VARIABLES = {
    "SBATCH_GRES": "gpu:2", "SBATCH_TIMELIMIT": "7", "SBATCH_MEM_PER_NODE": "9G", "SBATCH_EXCLUSIVE": "user",
    "SBATCH_ARRAY_INX": "0-9", "SBATCH_REQUEUE": "", "SBATCH_QOS": "high", "SLURM_HINT": "nomultithread",
}  # fmt: skip


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_that_reaches_sbatch_is_seen_as_a_difference(slurm, name):
    words = ("-pcpu", "-n1")
    request = effective(words_to_directives(words, "argument"))
    assert sbatch_crosscheck.differences(request, slurm.trial(SCRIPT, words).shown) == []
    [told] = sbatch_crosscheck.differences(request, slurm.trial(SCRIPT, words, **{name: VARIABLES[name]}).shown)
    assert "the guard does not see it" in told


def test_the_command_line_beats_a_variable_but_for_another_option_of_the_same_kind(slurm):
    words = ("-pcpu", "-n1", "--time=9", "--mem=1G", "--gpus=0", "--no-requeue")
    request = effective(words_to_directives(words, "argument"))
    both = VARIABLES | {"SBATCH_NO_REQUEUE": "", "SBATCH_MEM_PER_CPU": "2G"}
    told = sbatch_crosscheck.differences(request, slurm.trial(SCRIPT, words, **both).shown)
    assert sorted(text.split(":")[0] for text in told) == [
        "--array",
        "--exclusive",
        "--gres",
        "--hint",
        "--qos",
        "--requeue",
    ]


def submitted(place: Place, name: str, **extra: str) -> tuple[int, dict[str, Any]]:
    (place.project / name).write_text("#!/bin/bash\n#SBATCH -p cpu -t 1 --mem=1G\n#SBATCH -o %j.out\ntrue\n")
    place.own()
    place.cli("get_status", "--no-cache")
    place.extra.update(extra)
    return place.cli("submit_job", f"--script={name}")


def test_variables_for_sbatch_in_the_callers_environment_change_nothing(place):
    code, reply = submitted(place.another(), "variables.sh", **VARIABLES)
    assert (code, reply["status"]) == (0, "submitted"), reply
    assert (reply["granted"]["gpus"], reply["granted"]["time_limit_seconds"]) == (0, 60)


def test_nothing_is_sent_where_the_sites_sbatch_adds_an_option(place):
    made = place.another()
    folder = made.project.parent / "bin"
    folder.mkdir()
    (folder / "sbatch").write_text(f'#!/bin/sh\nexec {shutil.which("sbatch")} --comment=site --gres=gpu:0 "$@"\n')
    (folder / "sbatch").chmod(0o755)
    code, reply = submitted(made, "site.sh", PATH=f"{folder}:{made.environment()['PATH']}")
    assert (code, reply["status"], reply["blocker"]) == (3, "blocked", "policy"), reply
    [rule] = [rule for rule in reply["decision"]["rules"] if rule["id"] == "directives"]
    assert (rule["outcome"], reply["decision"]["verdict"]) == ("deny", "deny")
    assert "--gres: sbatch reads 'gres:gpu:0', the guard does not see it" in reply["reason"]
    log = (made.project.parent / ".state/slurm-agent-tools/decisions.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in log] == ["decided", "disagreed"]
    assert json.loads(log[-1])["verdict"] == "deny"
    assert "site.sh" not in made.slurm("squeue", "-h", "-t", "all", "-o", "%j", f"--user={made.cluster.user}").split()
