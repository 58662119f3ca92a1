"""What a rule judges in each of its examples: the text as it is really read, on an idle cluster of three partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio

from slurm_agent_tools.backends.stages import Ladder, StageRun, StageState
from slurm_agent_tools.models.arguments import Stage
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.policy.evaluate import EvaluationContext, prepare
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.policy.plan import LiveFacts, PastRun, PlannedRequest
from slurm_agent_tools.policy.rules.rule import Example
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.units import JobId

GIB = 2**30

HOUR = 3600

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)

PROJECT = "/home/ada/project"

FILE = "scripts/train.sh"

GPU = Partition(
    "gpu", "UP", default=True, nodes=2, max_time_seconds=4 * 24 * HOUR, default_time_seconds=None,
    total_gpus=8, gpus_per_node=4, cpus_per_node=32, memory_per_node=256 * GIB,
)  # fmt: skip

CPU = Partition(
    "cpu", "UP", default=False, nodes=2, max_time_seconds=24 * HOUR, default_time_seconds=None,
    cpus_per_node=32, memory_per_node=64 * GIB,
)  # fmt: skip

OLD = replace(CPU, name="old", state="DOWN")

PARTITIONS = {one.name: one for one in (GPU, CPU, OLD)}

_NOTHING: Mapping[str, Any] = {"numbers": Resources(), "pinned": ()}


class NoFiles:
    """A project that holds nothing but the script."""

    async def stat(self, path: str) -> None:
        """Nothing is there."""

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> None:
        """Nothing is there."""

    async def real_path(self, path: str) -> str:
        """No link leads anywhere."""
        return path


def text_of(example: Example) -> str | None:
    """The batch script of the example, with its first line; None where it has none."""
    if example.script is None:
        return None
    first = [] if example.script[0].startswith("#!") else ["#!/bin/bash"]
    return "\n".join([*first, *example.script, ""])


def plan_of(example: Example, loaded: LoadedPolicy) -> PlannedRequest:
    """What the rule judges under this policy. Raises ConfigError when shfmt cannot be run."""
    return anyio.run(read_example, example, loaded)


async def read_example(example: Example, loaded: LoadedPolicy) -> PlannedRequest:
    """The same, where an event loop runs already."""
    text, call = text_of(example), dict(example.call)
    reading = None
    if text is not None:
        reading = await read_script(text.encode(), FILE, project=PROJECT, files=NoFiles())  # type: ignore[arg-type]
    if call.get("path") is not None:
        call["path"] = f"{PROJECT}/{call['path']}"
    sha256 = "" if reading is None else reading.sha256
    more: Mapping[str, Any] = call if example.counted else {**call, **_NOTHING}
    live = None if example.facts is None else _facts(example.facts, sha256)
    policy = replace(loaded, policy=example.under(loaded.policy))
    return prepare(reading, EvaluationContext(policy, PROJECT, live=live, **more))[0]


def _facts(told: Mapping[str, Any], sha256: str) -> LiveFacts:
    """An idle cluster that was looked at a minute ago, but for what is told.

    `looked`: how long ago, None: never; `partitions`: by name; `active`: jobs by number; `history`: past runs, of this
    script where they state no other.
    """
    facts: dict[str, Any] = {"now": NOW, "active_jobs": 0, "partitions": PARTITIONS, **told}
    looked = facts.pop("looked", timedelta(minutes=1))
    facts["status_read"] = None if looked is None else NOW - looked
    facts["partitions"] = {name: PARTITIONS[name] for name in facts["partitions"]}
    facts["active"] = _running(facts.get("active", ()))
    facts["history"] = tuple(_past(sha256, **run) for run in facts.get("history", ()))
    facts["ladder"] = _ladder(**facts["ladder"]) if "ladder" in facts else None
    return LiveFacts(**facts)


def _ladder(runs: Sequence[tuple[Stage, StageState]] = (), **told: Any) -> Ladder:
    """Stages of this very configuration, newest first, each with what came of it."""
    tried = [
        StageRun(str(60 - index), stage, "c" * 64, NOW - timedelta(hours=1 + index), state, "it ended FAILED")
        for index, (stage, state) in enumerate(runs)
    ]
    return Ladder("c" * 64, {}, tuple(tried), **told)


def _running(numbers: Iterable[int]) -> tuple[Job, ...]:
    return tuple(Job(JobId(number), "train", "RUNNING", ("squeue",)) for number in numbers)


def _past(sha256: str, **told: Any) -> PastRun:
    """An earlier run of the example's script, or of another file."""
    stated: dict[str, Any] = {
        "script_path": FILE,
        "script_sha256": "0" * 64 if "script_path" in told else sha256,
        "job_name": "train",
        "request_sha256": "1" * 64,
        "submitted": NOW - timedelta(hours=2),
    }
    return PastRun(**{**stated, **told})
