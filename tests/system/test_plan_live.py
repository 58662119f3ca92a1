"""A plan carried out on a real Slurm: its calls in its order through the guard, and what came of it beside the plan.

Whoever follows it here knows nothing but the answer and its resource. The short form has 12 jobs; SOAK=1 has 24.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from mcp import Client
from tests.system.faces import Place, call
from tests.unit.planning.problems import seeded

NUMBER = 24 if os.environ.get("SOAK") else 12

SLACK = 1.15
"""So much longer than planned it may take in all."""

_SCRIPT = """#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --partition=gpu
#SBATCH --gres=gpu:{gpus}
#SBATCH --cpus-per-task=1
#SBATCH --mem=50M
#SBATCH --time=3
#SBATCH --output=logs/slurm/%x-%j.out
sleep {seconds}
"""


@pytest.fixture
def four_gpus(fresh: Place):
    """A project whose partition has four GPUs: the other node of the partition is drained."""
    _, other = [node for node in fresh.cluster.nodes if "gpu" in node]
    _administer(fresh, "update", f"NodeName={other}", "State=DRAIN", "Reason=four GPUs")
    try:
        yield fresh
    finally:
        fresh.slurm("scancel", f"--user={fresh.cluster.user}")
        _administer(fresh, "update", f"NodeName={other}", "State=RESUME")


def _administer(place: Place, *words: str) -> None:
    done = subprocess.run(
        ["scontrol", *words], env=os.environ | place.cluster.environment(), capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def mixed(number: int, scale: int) -> list[dict[str, Any]]:
    """Jobs of 1, 2 and 4 GPUs in no good order; the second waits for the first."""
    chance = seeded(5)
    sizes = chance.choices([1, 2, 4], [0.6, 0.25, 0.15], k=number)
    jobs = [
        {"name": f"j{at}", "gpus": gpus, "seconds": chance.randint(scale, 3 * scale)} for at, gpus in enumerate(sizes)
    ]
    jobs[1]["after"] = ["j0"]
    return jobs


def written(place: Place, jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A script of each, and what plan_jobs is asked."""
    asked = []
    for job in jobs:
        (place.project / f"{job['name']}.sh").write_text(_SCRIPT.format(**job))
        more = {key: job[key] for key in ("after", "deadline") if key in job}
        asked.append({"name": job["name"], "script": f"{job['name']}.sh", "expected": f"{job['seconds']}s", **more})
    place.own()
    return asked


class Agent:
    """Whoever carries out a plan by what the answer and its resource say."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.ids: dict[str, str] = {}

    async def submit(self, **arguments: object) -> str:
        reply = await call(self.client, "submit_job", **arguments)
        assert reply["status"] == "submitted", reply
        return str(reply["job_id"])

    async def ended(self, ids: Sequence[str], until: str = "all") -> None:
        for _ in range(10):
            reply = await call(self.client, "wait_for_job", job_ids=list(ids), until=until, timeout_seconds=60)
            if reply["status"] == "finished":
                return
        raise AssertionError(reply)

    async def follow(self, uri: str, what: str = "submissions") -> None:
        """Every submission of the plan, in its order."""
        (content,) = (await self.client.read_resource(uri)).contents
        for step in json.loads(content.text)[what]:
            if step.get("after"):
                await self.ended([self.ids[name] for name in step["after"]])
            words = {key: step[key] for key in ("script", "array", "time_limit") if key in step}
            if "dependency" in step:
                words["dependency"] = re.sub(r"<([^>]+)>", lambda found: self.ids[found[1]], step["dependency"])
            self.ids[step["job"]] = await self.submit(**words)
        await self.ended(list(self.ids.values()))

    async def in_order(self, jobs: Sequence[Mapping[str, Any]], at_once: int) -> None:
        """Every job in the order given, as soon as the cap lets it in."""
        running: list[str] = []
        for job in jobs:
            while len(running) == at_once:
                await self.ended(running, "any")
                running = [one for one in running if await self.runs(one)]
            words = {"dependency": f"afterok:{self.ids[job['after'][0]]}"} if "after" in job else {}
            self.ids[job["name"]] = await self.submit(script=f"{job['name']}.sh", **words)
            running.append(self.ids[job["name"]])
        await self.ended(list(self.ids.values()))

    async def runs(self, job_id: str) -> bool:
        reply = await call(self.client, "wait_for_job", job_id=job_id, timeout_seconds=0)
        return reply["status"] != "finished"


def measured(place: Place, ids: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Start and end of each job in seconds from the first start, as the accounting has them."""
    fields = "JobID,State,Start,End"
    for _ in range(60):
        lines = place.slurm("sacct", "-n", "-X", "-P", "-o", fields, f"--jobs={','.join(ids.values())}").splitlines()
        rows = {row[0]: row[1:] for row in (line.split("|") for line in lines)}
        if len(rows) == len(ids) and all(row[0] == "COMPLETED" for row in rows.values()):
            break
        time.sleep(0.5)
    else:
        raise AssertionError(lines)
    spans = {
        name: [time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")) for text in rows[job_id][1:]]
        for name, job_id in ids.items()
    }
    first = min(start for start, _ in spans.values())
    return {name: (start - first, end - first) for name, (start, end) in spans.items()}


@pytest.mark.proves("plans-come-true")
async def test_the_calls_of_a_plan_take_as_long_as_planned_meet_the_deadline_and_beat_the_order_given(
    four_gpus: Place, record_testsuite_property: Callable[[str, object], None]
):
    jobs = mixed(NUMBER, 5)
    urgent = jobs[-1]
    urgent["deadline"] = f"{2 * urgent['seconds'] + 20}s"
    asked = written(four_gpus, jobs)
    async with four_gpus.client() as client:
        await call(client, "get_status")
        plan = await call(client, "plan_jobs", jobs=asked, pool={"gpus": 4}, objective="deadlines")
        assert plan["status"] == "planned"
        assert {step["verdict"] for step in plan["submissions"]} == {"allow"}, plan
        agent = Agent(client)
        await agent.follow(plan["uri"])
        real = measured(four_gpus, agent.ids)
        given = Agent(client)
        await given.in_order(jobs, at_once=4)
        naive = measured(four_gpus, given.ids)
    took, usual = (max(end for _, end in spans.values()) for spans in (real, naive))
    seconds = (plan["makespan_seconds"], round(took), round(usual))
    record_testsuite_property(f"{NUMBER} jobs: seconds planned, real, in the given order", seconds)
    assert took <= SLACK * plan["makespan_seconds"]
    assert took < usual
    deadline = float(urgent["deadline"].removesuffix("s"))
    assert real[urgent["name"]][1] <= deadline < naive[urgent["name"]][1]


_SWEEP = _SCRIPT.replace("sleep {seconds}", 'test "$SLURM_ARRAY_TASK_ID" != 1 || exit 3\nsleep {seconds}')


def _tasks(step: dict[str, Any]) -> str:
    """Which tasks, however many at once: that depends on which others run still."""
    return step["array"].partition("%")[0]


@pytest.mark.proves("plans-are-made-again")
async def test_of_an_array_that_was_sent_in_part_the_missing_tasks_are_sent_and_the_failed_one_is_named(fresh: Place):
    (fresh.project / "sweep.sh").write_text(_SWEEP.format(name="sweep", gpus=1, seconds=4))
    fresh.own()
    job = {"name": "sweep", "script": "sweep.sh", "expected": "4s", "count": 6}
    async with fresh.client() as client:
        await call(client, "get_status")
        await call(client, "plan_jobs", jobs=[job], pool={"gpus": 2})
        agent = Agent(client)
        sent = await agent.submit(script="sweep.sh", array="0-3%2")
        begun = await call(client, "plan_jobs", jobs=[job], pool={"gpus": 2})
        assert [_tasks(step) for step in begun["submissions"]] == ["4-5"]
        await agent.ended([sent])
        again = await call(client, "plan_jobs", jobs=[job], pool={"gpus": 2})
        assert [_tasks(step) for step in again["submissions"]] == ["4-5"]
        told = " ".join(again["changes"])
        assert "3 ended" in told
        assert "left to a person: tasks 1 of sweep" in told
        # An array of which a task failed is looked at, and goes on with a reason.
        assert again["submissions"][0]["because"] == ["auto-retry"]
        await call(client, "analyze_log", job_id=sent)
        await agent.ended([await agent.submit(script="sweep.sh", array="4-5", justification="task 1 alone is broken")])
        reply = await call(client, "plan_jobs", jobs=[job], pool={"gpus": 2})
        assert "'1'" in reply["error"]["message"], reply


COUNTER = """
import argparse, hashlib, json, os, signal, sys, time

words = argparse.ArgumentParser()
words.add_argument("--resume")
words.add_argument("--pause", type=float, default=1.0)
words.add_argument("--out", default="result.json")
asked = words.parse_args()
state = json.load(open(asked.resume)) if asked.resume else {"step": 0, "sum": "", "runs": 0}
state["runs"] += 1

def save(*_):
    folder = os.environ["CHECKPOINT_DIR"]
    with open(f"{folder}/draft", "w") as file:
        json.dump(state, file)
    os.replace(f"{folder}/draft", f"{folder}/step-{state['step']}.json")
    sys.exit(0)

signal.signal(signal.SIGUSR1, save)
while state["step"] < 11:
    time.sleep(asked.pause)
    state["sum"] = hashlib.sha256(f"{state['sum']}{state['step']}".encode()).hexdigest()
    state["step"] += 1
json.dump(state, open(asked.out, "w"))
"""


@pytest.mark.proves("slices-are-offered")
async def test_three_slices_of_a_job_that_checkpoints_end_with_the_result_of_one_run(fresh: Place):
    (fresh.project / "count.py").write_text(COUNTER)
    fresh.own()
    # A slice of hours is played in seconds: `timeout` sends what Slurm sends before the time limit.
    command = 'timeout --signal=USR1 6 python3 count.py ${RESUME_FROM:+--resume "$RESUME_FROM"} || test $? = 124'
    async with fresh.client() as client:
        await call(client, "get_status")
        script = await call(
            client, "generate_script", name="train", command=command, gpus=1, memory="1G", time_limit="02:00:00",
            partition="gpu", checkpoint={"dir": "ckpt", "resume_from": "step-*.json"},
        )  # fmt: skip
        assert script["status"] == "written", script
        job = {"name": "train", "script": script["path"], "expected": "7h", "restart": "1min"}
        plan = await call(client, "plan_jobs", jobs=[job], pool={"gpus": 4}, objective="mean_completion")
        assert plan["slices"]["calls"] == 3
        agent = Agent(client)
        await agent.follow(plan["uri"], "slices")
        measured(fresh, agent.ids)
    sliced = json.loads((fresh.project / "result.json").read_text())
    assert sliced["runs"] == 3
    fresh.slurm("env", "CHECKPOINT_DIR=/nowhere", "python3", "count.py", "--pause", "0", "--out", "whole.json")
    whole = json.loads((fresh.project / "whole.json").read_text())
    assert (sliced["sum"], sliced["step"]) == (whole["sum"], whole["step"])


@pytest.mark.proves("plans-refuse-by-name")
async def test_bad_jobs_are_refused_by_name_over_both_faces(place: Place):
    good = {"name": "good", "expected": "1h"}
    bad: dict[str, list[dict[str, Any]]] = {
        "after": [{**good, "after": ["bad"]}, {"name": "bad", "expected": "1h", "after": ["good"]}],
        "gpus": [good, {"name": "bad", "expected": "1h", "resources": {"gpus": 5}}],
        "expected": [good, {"name": "bad", "expected": "-5m"}],
        "count": [good, {"name": "bad", "expected": "1h", "count": 10**6}],
    }
    async with place.client() as client:
        for field, jobs in bad.items():
            reply = await call(client, "plan_jobs", jobs=jobs, pool={"gpus": 4})
            said = [reply["error"]["message"]]
            (place.project / "jobs.json").write_text(json.dumps({"jobs": jobs, "pool": {"gpus": 4}}))
            place.own()
            done = place.run([sys.executable, "-m", "slurm_agent_tools", "plan", "jobs.json", "--json"])
            assert done.returncode == 2
            said.append(json.loads(done.stdout)["error"]["message"])
            assert all("'bad'" in text and field in text for text in said), said
