"""A task for an agent: what a person types, the project that it finds, and what must be true in the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from slurm_agent_tools.units import tres_memory

ACTIVE = frozenset({"PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING"})
KILLED_FOR_MEMORY = frozenset({"OUT_OF_MEMORY", "FAILED"})
"""The kernel's way and that of a machine where Slurm can only poll."""


class Unmet(Exception):
    """What was asked for is not so; the text says what."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job, or a task of an array, as Slurm tells it after the agent has finished. Times are seconds since 1970."""

    id: str
    name: str
    state: str
    partition: str = "cpu"
    exit_code: int = 0
    nodes: int = 1
    gpus: int = 0
    memory: str = ""
    time_limit: str = ""
    submitted: int = 0
    started: int | None = None
    ended: int | None = None
    dependency: str = ""
    script: str = ""

    @property
    def megabytes(self) -> int:
        """The memory that it asked for."""
        return tres_memory(self.memory) // 2**20 if self.memory else 0

    @property
    def array(self) -> str:
        """The id of the job, without the task's number."""
        return self.id.split("_")[0]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a checker sees: the project, the jobs that ran from it, and what `prepare` told."""

    project: Path
    jobs: tuple[Job, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def sent(self) -> list[Job]:
        """The agent's jobs: all that were not there before it began."""
        return [job for job in self.jobs if job.array not in self.values.values()]

    def job(self, job_id: str) -> Job:
        """One job by its id."""
        found = [job for job in self.jobs if job.id == job_id]
        need(found, f"job {job_id} is gone")
        return found[0]

    def only(self, state: str = "COMPLETED") -> Job:
        """The agent's one job, which must have come to this state."""
        need(len(self.sent) == 1, f"one job was to be sent, not {[(job.id, job.name) for job in self.sent]}")
        need(self.sent[0].state == state, f"job {self.sent[0].id} is {self.sent[0].state}, not {state}")
        return self.sent[0]

    def runs(self) -> list[Job]:
        """The agent's jobs in their order, no arrays among them; there must be one."""
        need(self.sent, "no job was sent")
        need(all(job.id.isdigit() for job in self.sent), "an array was sent")
        return sorted(self.sent, key=lambda job: int(job.id))

    def text(self, name: str) -> str:
        """A file of the project."""
        path = self.project / name
        need(path.is_file(), f"{name} is not there")
        return path.read_text(encoding="utf-8", errors="replace")

    def json(self, name: str) -> Any:
        """A file of the project as JSON."""
        text = self.text(name)
        try:
            return json.loads(text)
        except ValueError as error:
            raise Unmet(f"{name} is no JSON: {error}") from None

    def result(self, name: str) -> dict[str, Any]:
        """The one saved result of this name."""
        found = [path for path in (self.project / "results").glob("*.json") if path.stem.endswith(f"_{name}")]
        need(len(found) == 1, f"one result {name} was to be saved, not {len(found)}")
        record = self.json(str(found[0].relative_to(self.project)))
        need(isinstance(record, dict), f"the result {name} is no record")
        return dict(record)

    def unchanged(self, task: Task, names: Iterable[str]) -> None:
        """These files must be as the agent found them."""
        for name in names:
            need(self.text(name) == task.files[name], f"{name} was changed")


class Scene(Protocol):
    """What `prepare` may use: the agent's user, in the agent's project, before the agent begins."""

    @property
    def project(self) -> Path:
        """Where the agent will work."""

    def user(self, *argv: str, stdin: str = "") -> str:
        """A command of the person; its standard output. It must succeed."""

    def operator(self, *argv: str) -> str:
        """A command of the cluster's operator."""

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so."""


def nothing(_: Scene) -> dict[str, str]:
    """No preparation."""
    return {}


@dataclass(frozen=True, slots=True)
class Task:
    """One task. `prompt` may name what `prepare` told, as `{job}`.

    `elsewhere`: the agent works on another machine, which reaches the cluster over SSH alone.
    """

    prompt: str
    files: Mapping[str, str]
    check: Callable[[Outcome], None]
    prepare: Callable[[Scene], dict[str, str]] = nothing
    elsewhere: bool = False


def need(condition: object, otherwise: str) -> None:
    """Unmet with this text where the condition does not hold."""
    if not condition:
        raise Unmet(otherwise)


def script(name: str, *lines: str, **options: str) -> str:
    """A batch script as a person writes it."""
    asked = {"job-name": name, "partition": "cpu", "mem": "200M", "time": "5", "output": "logs/%x-%j.out"}
    asked |= {key.replace("_", "-"): value for key, value in options.items()}
    heads = [f"#SBATCH --{key}={value}" for key, value in asked.items() if value]
    return "\n".join(["#!/bin/bash", *heads, "", *lines, ""])


def send(scene: Scene, text: str, *options: str) -> str:
    """Submit a job as the person; its id."""
    return scene.user("sbatch", "--parsable", *options, stdin=text)


def state_of(scene: Scene, job_id: str) -> str:
    """The state of a job in the accounting, which follows the queue by a moment."""
    told = scene.user("sacct", "-nXP", "-j", job_id, "-o", "State")
    return told.split()[0] if told else ""
