"""What the client makes of Slurm's own recorded answers about jobs whose fate is known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.replay.replaying import RECORDINGS, Answer, ReplayRunner, client, load

from slurm_agent_tools.errors import SlurmUnreachable, UnknownJob
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.slurm import merge
from slurm_agent_tools.units import JobId, parse_job_id

BY_MEMORY = "more memory than it asked for"


@dataclass(frozen=True)
class Truth:
    """How a recorded job was made to end, or where it stood. `live` is what only the controller knows."""

    state: str
    exit_code: int | None = None
    signal: int | None = None
    cause: str | None = None
    reason: str | None = None
    restarts: int = 0
    tasks: dict[str, str] = field(default_factory=dict)
    name: str | None = None
    live: dict[str, object] = field(default_factory=dict)


TRUTHS = {
    "completed": Truth("COMPLETED", 0),
    "exit-7": Truth("FAILED", 7, cause="exit code 7"),
    "exit-200": Truth("FAILED", 72, cause="200", live={"exit_code": 200}),  # 7 bits in the accounting
    "signal": Truth("FAILED", 0, 11, cause="signal 11"),
    "cancelled": Truth("CANCELLED", 0, cause="cancelled by 1001", live={"signal": 15}),
    "cancelled-pending": Truth("CANCELLED", 0, cause="cancelled by 1001"),
    "timeout": Truth("TIMEOUT", 0, cause="time limit", live={"signal": 15, "reason": "TimeLimit"}),
    "memory": Truth("OUT_OF_MEMORY", 0, 125, cause=BY_MEMORY),
    "memory-in-step": Truth("FAILED", 1, cause=f"in step 0 for using {BY_MEMORY}"),
    "failed-step": Truth("COMPLETED", 0, cause="A step of it failed"),
    "array": Truth(
        "FAILED", 5, cause="exit code 5", tasks={"0": "COMPLETED", "1": "COMPLETED", "2": "FAILED", "3": "COMPLETED"}
    ),
    "het": Truth("COMPLETED", 0, tasks={"0": "COMPLETED", "1": "COMPLETED"}),
    "odd-name": Truth("COMPLETED", 0, name='a|b "c"'),
    "odd-lines": Truth("COMPLETED", 0, name="x JobState=RUNNING\n   JobState=RUNNING"),
    "preempted": Truth("PREEMPTED", 0, cause="make room", live={"signal": 15}),
    "node-failure": Truth("NODE_FAIL", 0, cause="node", live={"reason": "NodeDown"}),
    "deadline": Truth("DEADLINE", 1, cause="deadline", live={"reason": "DeadLine"}),
    "gpus": Truth("COMPLETED", 0),
    "pending-array": Truth("PENDING", reason="BeginTime", tasks={"[0-49%2]": "PENDING"}),
    "requeued": Truth("RUNNING", restarts=1),
    "never": Truth("PENDING", reason="DependencyNeverSatisfied"),
    "held": Truth("PENDING", reason="JobHeldUser"),
    "suspended": Truth("SUSPENDED"),
    "running": Truth("RUNNING"),
}
# What later versions tell otherwise of the same jobs.
LATER = TRUTHS | {
    "node-failure": Truth("NODE_FAIL", 1, cause="node", live={"reason": "NodeDown"}),
}
NEWEST = LATER | {
    "exit-200": Truth("FAILED", 200, cause="200"),
}
TOLD = {"22.05": TRUTHS, "24.11": LATER, "26.05": NEWEST}
PLAIN = TRUTHS | {"cancelled": Truth("CANCELLED", 0, 15, cause="It was cancelled.")}
ACTIVE = {"PENDING", "RUNNING", "SUSPENDED"}
OVER = {name: known for name, known in TRUTHS.items() if known.state not in ACTIVE}
VERSIONS = sorted(path for path in RECORDINGS.iterdir() if path.is_dir())
ACCOUNTED = [
    (path / "accounting" / f"{name}.json", known) for path in VERSIONS for name, known in TOLD[path.name].items()
]
ALONE = [
    (path, PLAIN[path.stem])
    for version in VERSIONS
    for path in sorted((version / "no-accounting").glob("*.json"))
    if path.stem != "cluster"
]


def title(value: object) -> str | None:
    return f"{value.parent.parent.name}-{value.stem}" if isinstance(value, Path) else ""


def job_id(answers: list[Answer]) -> JobId:
    return parse_job_id(next(answer.argv[-1] for answer in answers if answer.argv[0] == "scontrol"))


def forgotten(answer: Answer) -> Answer:
    """The answer once the controller has dropped every job."""
    if answer.argv[0] == "squeue":
        return replace(answer, stdout="")
    if answer.argv[:3] == ("scontrol", "show", "job"):
        return replace(answer, stdout="", stderr="slurm_load_jobs error: Invalid job id specified\n", exit_code=1)
    return answer


def silent(answer: Answer) -> Answer:
    """The answer while the controller is down."""
    if answer.argv[0] == "sacct":
        return answer
    said = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    return replace(answer, stdout="", stderr=said, exit_code=1)


def parts(view: JobView) -> dict[str, str]:
    return {str(task.job_id).replace("+", "_").split("_")[1]: task.state for task in view.tasks}


def told(view: JobView) -> tuple[object, ...]:
    return (view.job.state, view.job.exit_code, view.job.signal, parts(view))


def caused(view: JobView, known: Truth) -> bool:
    cause = merge.cause(view.job)
    return cause is None if known.cause is None else known.cause in (cause or "")


@pytest.mark.parametrize(("path", "known"), [*ACCOUNTED, *ALONE], ids=title)
async def test_the_recorded_truth_is_told(path, known):
    answers = load(path)
    view = await client(answers).job(job_id(answers))
    live = {"exit_code": known.exit_code, "signal": known.signal, "reason": known.reason} | known.live
    assert told(view) == (known.state, live["exit_code"], live["signal"], known.tasks)
    assert view.job.restarts == known.restarts
    assert view.job.name == (known.name or path.stem)
    assert caused(view, known), merge.cause(view.job)
    if known.reason is not None or "reason" in known.live:
        assert view.job.reason == live["reason"]
    assert (view.job.ended is None) == (known.state in ACTIVE)
    assert view.job.user == "researcher"


@pytest.mark.parametrize(("path", "known"), [pair for pair in ACCOUNTED if pair[0].stem in OVER], ids=title)
@pytest.mark.parametrize("change", [forgotten, silent])
async def test_the_accounting_alone_tells_how_a_job_ended(path, known, change):
    answers = load(path)
    view = await client(answers, change).job(job_id(answers))
    assert told(view) == (known.state, known.exit_code, known.signal, known.tasks)
    assert caused(view, known), merge.cause(view.job)
    assert view.job.sources == ("sacct",)
    # Slurm's accounting keeps a double quote as a backtick.
    assert view.job.name == (known.name or path.stem).replace('"', "`")


@pytest.mark.parametrize(("path", "known"), [pair for pair in ACCOUNTED if pair[1].state in ACTIVE], ids=title)
async def test_the_accounting_alone_calls_no_job_active_and_none_over(path, known):
    answers = load(path)
    view = await client(answers, forgotten).job(job_id(answers))
    assert view.job.state == "UNKNOWN"
    assert (view.job.exit_code, view.job.ended, merge.cause(view.job)) == (None, None, None)
    with pytest.raises(SlurmUnreachable):
        await client(answers, silent).job(job_id(answers))


@pytest.mark.parametrize(("path", "known"), ALONE, ids=title)
async def test_without_accounting_a_forgotten_job_is_unknown_and_a_silent_controller_an_error(path, known):
    answers = load(path)
    with pytest.raises(UnknownJob):
        await client(answers, forgotten).job(job_id(answers))
    with pytest.raises(SlurmUnreachable):
        await client(answers, silent).job(job_id(answers))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
async def test_one_task_of_an_array_is_told_alone(version):
    answers = load(version / "accounting" / "array.json")
    whole = job_id(answers)
    for change in (forgotten, silent):
        view = await client(answers, change).job(JobId(whole.base, task=2))
        assert (view.job.state, view.job.exit_code, view.tasks) == ("FAILED", 5, ())


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
async def test_gpus_and_memory_of_a_job_are_what_was_asked(version):
    answers = load(version / "accounting" / "gpus.json")
    for change in (lambda answer: answer, forgotten):
        resources = (await client(answers, change).job(job_id(answers))).job.resources
        assert (resources.gpus, resources.cpus, resources.nodes) == (2, 1, 1)
        assert resources.memory_bytes == 2000 * 2**20
        assert resources.time_limit_seconds == 300


@pytest.mark.parametrize("accounting", [True, False])
@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
async def test_the_cluster_is_told(version, accounting):
    slurm = client(load(version / ("accounting" if accounting else "no-accounting") / "cluster.json"))
    info = await slurm.info()
    assert (info.name, info.accounting) == ("devcluster", accounting)
    assert info.version.startswith(version.name)
    found = await slurm.partitions()
    assert {name: (part.total_gpus, part.gpus_per_node, part.default) for name, part in found.items()} == {
        "gpu": (8, 4, False),
        "cpu": (0, 0, True),
        "special": (8, 8, False),
    }
    assert (found["cpu"].max_time_seconds, found["cpu"].default_time_seconds) == (7 * 86400, 1800)
    told = {node.name: node for node in await slurm.nodes()}
    prefix = next(name for name in told if name.endswith("cpu01")).removesuffix("cpu01")
    nodes = {name.removeprefix(prefix): node for name, node in told.items()}
    assert sorted(nodes) == ["cpu01", "cpu02", "gpu01", "gpu02", "spec01"]
    assert (nodes["spec01"].gpu_types, nodes["spec01"].memory_bytes) == (("h100",), 1_000_000 * 2**20)
    assert {name: (node.cpus, node.gpus, node.gpus_used) for name, node in nodes.items()} == {
        "cpu01": (64, 0, 0), "cpu02": (64, 0, 0), "gpu01": (32, 4, 0), "gpu02": (32, 4, 0), "spec01": (96, 8, 0),
    }  # fmt: skip
    queue = await slurm.queue()
    busy = {job.nodes for job in queue if job.state == "RUNNING"}
    assert bool(busy) is accounting
    assert {node.name: node.state for node in nodes.values()} == {
        node.name: "mix" if node.name in busy else "idle" for node in nodes.values()
    }
    assert list(slurm.mine(queue)) == list(queue)
    with pytest.raises(UnknownJob):
        await slurm.job(JobId(999999))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
async def test_recent_jobs_are_those_that_ended(version):
    answers = load(version / "accounting" / "cluster.json")
    slurm = client(answers)
    recent = await slurm.accounting.recent(slurm._clock.now() - timedelta(hours=1))
    # Asked since a time, sacct leaves out jobs that never became eligible.
    # The job that missed its deadline was held on later versions, because they refuse one that cannot keep it.
    never = {"cancelled-pending"} | (set() if version.name == "22.05" else {"deadline"})
    expected = {known.name or name: known.state for name, known in OVER.items() if name not in never}
    tasks = [job for job in recent if job.name == "array"]
    assert sorted(str(job.job_id.task) for job in tasks if job.state == "COMPLETED") == ["0", "1", "3"]
    found = {job.name.replace("`", '"'): job.state for job in recent if job not in tasks or job.state == "FAILED"}
    assert {name: found.get(name) for name in expected} == expected
    assert not ACTIVE & set(found.values())


async def test_what_was_not_recorded_is_not_answered():
    with pytest.raises(AssertionError, match="not recorded"):
        await ReplayRunner([]).run(["squeue"])
