"""The ladder on a real Slurm: refused with the smoke run to make, open behind it, closed by one byte and by a pilot."""

from __future__ import annotations

from typing import Any

import pytest
from tests.system.faces import Place, call
from tests.system.test_crashes import Lane

SCRIPT = """#!/bin/bash
#SBATCH --job-name=train --partition=cpu --cpus-per-task=4 --mem=200M --time=1-00:00:00
#SBATCH --output=logs/slurm/%x-%j.out
#SMOKE length: --steps
python3 train.py "$@"
"""
"""96 CPU hours."""
PROGRAM = """import pathlib, sys
steps = int(sys.argv[2])
pathlib.Path('runs').mkdir(exist_ok=True)
sys.exit(3 if steps == 5000 and any(pathlib.Path('runs').iterdir()) else 0)
"""
SMOKE = {"script": "train.sh", "args": ["--steps", "50"], "stage": "smoke", "time_limit": "00:10:00"}
LARGE = {"script": "train.sh", "args": ["--steps", "100000"]}


def laboratory(place: Place) -> None:
    (place.project / "train.sh").write_text(SCRIPT)
    (place.project / "train.py").write_text(PROGRAM)
    place.own()


async def submitted(client: Any, **asked: Any) -> str:
    """The id of a job that was accepted and has ended."""
    there = {"cluster": asked["cluster"]} if "cluster" in asked else {}
    await call(client, "get_status", **there)
    reply = await call(client, "submit_job", **asked)
    assert reply["status"] == "submitted", reply
    for _ in range(3):
        waited = await call(client, "wait_for_job", job_id=reply["job_id"], timeout_seconds=60, **there)
        if waited["status"] == "finished":
            return str(reply["job_id"])
    raise AssertionError(waited)


async def refused(client: Any, **asked: Any) -> dict[str, Any]:
    """What smoke-first says of a request that it refuses."""
    await call(client, "get_status", **({"cluster": asked["cluster"]} if "cluster" in asked else {}))
    reply = await call(client, "submit_job", **asked)
    assert reply["status"] == "blocked", reply
    (told,) = (rule for rule in reply["decision"]["rules"] if rule["id"] == "smoke-first")
    return dict(told)


@pytest.mark.proves("smoke-comes-first", "failed-stage-closes", "one-smoke-at-a-time", "ladder-outlives-a-crash")
async def test_a_large_job_climbs_the_ladder_and_falls_back(fresh: Place):
    laboratory(fresh)
    async with fresh.client() as client:
        told = await refused(client, **LARGE)
        assert told["outcome"] == "justify"
        assert 'Call again with stage="smoke" and ' in told["remedy"]
        tried = await submitted(client, **SMOKE)

    async with fresh.client() as client:  # another process
        await call(client, "get_status")
        assert (await call(client, "submit_job", dry_run=True, **LARGE))["status"] == "dry_run"
        (fresh.project / "train.py").write_text(f"{PROGRAM}#")
        fresh.own()
        changed = await refused(client, **LARGE)
        assert f"since job {tried}, which passed, this changed: train.py" in changed["message"]
        (fresh.project / "train.py").write_text(PROGRAM)
        (fresh.project / "runs/broken").touch()
        fresh.own()
        pilot = await submitted(client, **{**LARGE, "args": ["--steps", "5000"], "stage": "pilot"})

    async with fresh.client() as client:  # and another one
        closed = await refused(client, **LARGE, justification="it surely works at length")
        assert (closed["outcome"], f"job {pilot}, did not pass" in closed["message"]) == ("deny", True)
        ladders = (await call(client, "get_status"))["ladders"]
        assert {stage: one["state"] for stage, one in ladders[0]["stages"].items()} == {
            "pilot": "failed", "smoke": "passed",
        }  # fmt: skip
        await call(client, "analyze_log", job_id=pilot)
        (fresh.project / "runs/broken").unlink()
        again = {**LARGE, "args": ["--steps", "5000"], "stage": "pilot", "justification": "what was broken is mended"}
        await submitted(client, **again)
        assert (await call(client, "submit_job", **LARGE))["status"] == "submitted"


@pytest.mark.proves("ladder-outlives-a-crash", "one-smoke-at-a-time")
@pytest.mark.parametrize("point", ["sbatch:after", "release:after", "delivered:before"])
async def test_a_smoke_run_whose_server_was_killed_is_the_only_one_and_counts_when_it_passed(fresh: Place, point: str):
    laboratory(fresh)
    async with fresh.client() as client:
        await call(client, "get_status")
        await Lane(fresh).die(point, {**SMOKE, "idempotency_key": "k"}, mcp=True)
        other = {**SMOKE, "args": ["--steps", "60"]}
        if point == "sbatch:after":
            assert (await refused(client, **other))["outcome"] == "deny"
            assert (await refused(client, **LARGE))["outcome"] == "deny"
        await submitted(client, **SMOKE, idempotency_key="k")
        assert (await call(client, "submit_job", **LARGE))["status"] == "submitted"
