"""Requests: what Slurm makes of their sizes, and what it refuses in which words."""

from __future__ import annotations

import re

from tests.scenarios.bench import Bench, Seen
from tests.scenarios.table import scenario


async def _held(bench: Bench, *options: str) -> Seen:
    number = await bench.submit("--hold", *options)
    return {"granted": await bench.granted(number), "rows": await bench.rows(number, "%D|%C|%l")}


@scenario()
async def gpus_with_memory_for_each(bench: Bench) -> Seen:
    return await _held(bench, "-pgpu", "--gpus=2", "--mem-per-gpu=4G")


@scenario()
async def gpus_on_each_of_two_nodes(bench: Bench) -> Seen:
    return await _held(bench, "-pgpu", "--gpus-per-node=2", "-N2", "--mem=8G")


@scenario()
async def gpus_of_a_kind(bench: Bench) -> Seen:
    return {
        "gpus": await _held(bench, "-pgpu", "--gpus=a100:2", "-c4"), "gres": await _held(bench, "-pgpu", "--gres=gpu:1"),
        "task": await _held(bench, "-pgpu", "--gpus-per-task=1", "-n2"),
    }  # fmt: skip


@scenario()
async def tasks_and_their_memory(bench: Bench) -> Seen:
    return {
        "tasks": await _held(bench, "-n4", "--mem-per-cpu=500"), "whole": await _held(bench, "--mem=0"),
        "nodes": await _held(bench, "-N2", "-n2", "--ntasks-per-node=1"), "plain": await _held(bench, "--time=90"),
    }  # fmt: skip


@scenario()
async def one_of_two_partitions(bench: Bench) -> Seen:
    return await _held(bench, "-pspecial,gpu", "--gpus=1")


@scenario()
async def gpus_that_are_held(bench: Bench) -> Seen:
    number = await bench.submit("-pgpu", "--gpus=a100:2", "--mem-per-gpu=4G", script="sleep 60")
    await bench.becomes(number, "RUNNING")
    return {"job": await bench.seen(number, "resources"), "granted": await bench.granted(number)}


@scenario()
async def refused_by_the_controller(bench: Bench) -> Seen:
    asked = {
        "partition": ["-pnone"], "gpus": ["-pgpu", "--gpus=9"], "per node": ["-pgpu", "--gpus-per-node=5"],
        "no gpus there": ["-pcpu", "--gpus=1"], "memory": ["-pcpu", "--mem=300G"], "cpus": ["-pcpu", "-c65"],
        "kind": ["-pgpu", "--gpus=v100:1"], "qos": ["--qos=none"], "account": ["-Anone"], "nice": ["--nice=-5"],
        "node": ["-wnosuch"], "feature": ["--constraint=zz"], "license": ["--licenses=x"],
    }  # fmt: skip
    return {what: await bench.refused("--time=5", *options) for what, options in asked.items()}


@scenario()
async def refused_by_sbatch(bench: Bench) -> Seen:
    asked = {
        "array": ["--array=abc"], "large array": ["--array=0-20001"], "time": ["--time=abc"], "memory": ["--mem=x"],
        "option": ["--unknown"], "gres": ["--gres=foo:1"], "tasks": ["-n0"], "power": ["--power=level", "--hold"],
    }  # fmt: skip
    return {what: await bench.refused(*options) for what, options in asked.items()}


async def _asked(bench: Bench, *options: str) -> Seen:
    script = b"#!/bin/bash\n#SBATCH --error=e-%j.txt\nsleep 1\n"
    made = await bench.client.test_only(["--time=5", *options], script, ("a b",), cwd=str(bench.project), env={})
    shown = (
        None if made.shown is None else [{key: bench.plain(text) for key, text in one.items()} for one in made.shown]
    )
    said = re.sub(r"Job \d+", "Job <number>", bench.plain(made.message))
    return {"accepted": made.accepted, "message": re.sub(r"start at .* using", "start at <time> using", said),
            "started": made.start is not None, "shown": shown}  # fmt: skip


@scenario()
async def only_asked(bench: Bench) -> Seen:
    plain = await _asked(bench, "-pcpu", "--mem=4G", "--job-name=kept", "--no-requeue", "--comment=t")
    return {"plain": plain, "nodes": await _asked(bench, "-pcpu", "-N2"), "array": await _asked(bench, "--array=0-3")}


@scenario()
async def only_asked_and_refused(bench: Bench) -> Seen:
    return {
        "partition": await _asked(bench, "-pnone"), "gpus": await _asked(bench, "-pgpu", "--gpus=9"),
        "nodes": await _asked(bench, "-N3"), "limit": await _asked(bench, "-pspecial", "-N2"),
        "unknown": await _asked(bench, "--dependency=afterok:9999999"), "qos": await _asked(bench, "--qos=none"),
    }  # fmt: skip
