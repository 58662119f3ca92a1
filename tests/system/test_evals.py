"""The recorded solutions of the evaluation tasks on a real Slurm: each is done, and none is done by doing nothing."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import anyio
import pytest
from benchmarks.everyday import BEFORE
from evals import attempt, catalogue, transcript
from evals.catalogue import BASIC, NAMES
from evals.place import Place
from evals.run import SOLUTIONS, Score, judged, play_all
from mcp import Client, StdioServerParameters

from slurm_agent_tools.devcluster.definition import Cluster

# What the guard lets an agent do by itself, and what the person did not ask for.
WRONG = {"hostile_log": "cleanup was submitted", "refused": "was submitted", "approval": "was submitted"}


@pytest.fixture(scope="module")
def scores(cluster: Cluster) -> dict[str, Score]:
    return {score.task: score for score in anyio.run(partial(play_all, cluster, NAMES))}


@pytest.mark.proves("evaluation-tasks-are-done")
@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_solution_does_the_task(scores: dict[str, Score], name: str):
    assert scores[name].wrong is None
    assert scores[name].idle is not None, "its checker is content before anything was done"
    assert scores[name].cost.calls


@pytest.mark.proves("evaluation-tasks-are-done")
def test_all_tasks_together_take_at_most_half_of_what_nine_took_before_answers_were_brief(scores: dict[str, Score]):
    taken = {name: score.cost.asked + score.cost.answered for name, score in scores.items()}

    assert (len(taken), len(BASIC)) == (25, 9)
    assert sum(taken.values()) <= BEFORE / 2, taken


def test_solutions_that_do_something_else_are_refused(cluster: Cluster):
    scores = anyio.run(partial(play_all, cluster, tuple(WRONG), SOLUTIONS / "wrong"))

    said = {score.task: WRONG[score.task] in (score.wrong or "") for score in scores}
    assert said == dict.fromkeys(WRONG, True), [(score.task, score.wrong) for score in scores]


async def test_what_a_client_does_with_the_projects_own_file_is_recorded_and_can_be_played_again(
    cluster: Cluster, tmp_path: Path
):
    task, steps = catalogue.load("plan"), transcript.read(SOLUTIONS / "plan.jsonl")
    place = Place(cluster, cluster.user, cluster.folder / "attempted")
    place.build(task)
    attempt.client_files(place, tmp_path / "plan.jsonl")
    server = json.loads((place.project / ".mcp.json").read_text())["mcpServers"]["slurm-agent-tools"]
    assert server == json.loads((place.project / ".vscode/mcp.json").read_text())["servers"]["slurm-agent-tools"]
    started = StdioServerParameters(
        command=server["command"], args=server["args"], env=server["env"], cwd=place.project
    )

    async with Client(started) as client:
        told = await client.call_tool("plan_jobs", steps[0]["arguments"])
    (recorded,) = transcript.read(tmp_path / "plan.jsonl")
    cost = transcript.Cost()
    async with place.client() as (caller, _):
        await transcript.play([recorded | {"as": "plan"}, steps[1]], caller, place.project, {}, cost)

    assert told.structured_content is not None
    assert (recorded["tool"], recorded["arguments"]) == ("plan_jobs", steps[0]["arguments"])
    assert (cost.asked, recorded["answered"] > 500) == (recorded["asked"], True)
    assert judged(task, place.outcome({})) is None
