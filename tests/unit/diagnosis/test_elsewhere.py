"""Logs as other clusters write them, kept apart from those that the signatures were made with.

The files in `elsewhere/` hold excerpts: the category expected (a list where several are right), Slurm's facts (`job`;
null for a log alone) and the two outputs. A line `@name` stands for a block of noise.yaml, `␍` for a carriage return.
With `pytest -s` the misses are printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.excerpt import LogText, named_job, read_text
from slurm_agent_tools.diagnosis.signatures import by_id
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import Job, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.units import parse_job_id, parse_memory

HERE = Path(__file__).parent / "elsewhere"
SURE = 0.5
STARTED = datetime(2025, 3, 4, 22, 15, tzinfo=UTC)


@dataclass(frozen=True)
class Excerpt:
    """One job of another cluster."""

    name: str
    expected: tuple[str, ...]
    job: Job | None
    tasks: tuple[Job, ...]
    logs: tuple[LogText, ...]


@dataclass(frozen=True)
class Miss:
    """An excerpt that got another category."""

    name: str
    expected: tuple[str, ...]
    diagnosis: Diagnosis

    @property
    def sure(self) -> bool:
        """Wrong, and said as if it were known."""
        return self.diagnosis.confidence > SURE and self.diagnosis.category != "unknown"

    def __str__(self) -> str:
        first = self.diagnosis.evidence[0].text if self.diagnosis.evidence else "-"
        mark = "WRONG" if self.sure else "missed"
        wanted = "|".join(self.expected)
        said = f"{self.diagnosis.category} ({self.diagnosis.confidence})"
        return f"{mark} {self.name}: expected {wanted}, said {said}, first evidence: {first[:150]}"


@cache
def excerpts() -> tuple[Excerpt, ...]:
    noise = yaml.safe_load((HERE / "noise.yaml").read_text())
    files = [path for path in sorted(HERE.glob("*.yaml")) if path.name != "noise.yaml"]
    return tuple(excerpt(entry, noise) for path in files for entry in yaml.safe_load(path.read_text()))


def excerpt(entry: dict[str, Any], noise: dict[str, str]) -> Excerpt:
    expected = entry["expected"]
    logs = [log(kind, entry[kind], noise) for kind in ("stdout", "stderr") if kind in entry]
    tasks = tuple(job(facts, f"4711_{number}") for number, facts in enumerate(entry.get("tasks", ())))
    known = job(entry["job"], said(logs)) if entry["job"] is not None else None
    return Excerpt(
        entry["name"], tuple([expected] if isinstance(expected, str) else expected), known, tasks, tuple(logs)
    )


def said(logs: list[LogText]) -> str:
    """The number of the job: the last one that Slurm's lines name."""
    named = [number for text in logs for line in text.lines if (number := named_job(line.text)) is not None]
    return named[-1] if named else "4711"


def log(kind: Literal["stdout", "stderr"], text: str, noise: dict[str, str]) -> LogText:
    lines = [noise[line[1:]].rstrip("\n") if line.startswith("@") else line for line in text.split("\n")]
    data = "\n".join(lines).replace("␍", "\r").encode()
    return read_text(f"logs/slurm/run-4711.{'err' if kind == 'stderr' else 'out'}", kind, data, b"", len(data))


def job(facts: dict[str, Any], job_id: str) -> Job:
    """A job as accounting tells it: a batch step that ended as the job did, and the srun step where there was one."""
    elapsed = facts.get("elapsed", 600)
    began = facts.get("started", True) and facts["state"] != "PENDING"
    memory = parse_memory(facts["mem"]) if "mem" in facts else None
    peak = parse_memory(facts["rss"]) if "rss" in facts else None
    inner = facts.get("step")
    steps = [step("batch", facts, peak)] if began else []
    steps += [step("0", inner, None)] if inner else []
    return Job(
        job_id=parse_job_id(job_id), name="run", state=facts["state"], sources=("sacct",),
        raw_state=facts["state"], user="mw", partition="gpu", reason=facts.get("reason"),
        exit_code=facts.get("exit", 0), signal=facts.get("signal"),
        derived_exit_code=inner.get("exit") if inner else None, cancelled_by=facts.get("by"),
        submitted=STARTED - timedelta(minutes=5), started=STARTED if began else None,
        ended=STARTED + timedelta(seconds=elapsed) if facts["state"] != "PENDING" else None,
        elapsed_seconds=elapsed if began else 0,
        resources=Resources(
            nodes=1, memory_bytes=memory, memory_per_node_bytes=memory, time_limit_seconds=facts.get("limit", 86400)
        ),
        steps=tuple(steps),
    )  # fmt: skip


def step(number: str, facts: dict[str, Any], peak: int | None) -> Step:
    killed = facts["state"] in {"TIMEOUT", "PREEMPTED", "NODE_FAIL"}
    return Step(
        step_id=f"4711.{number}",
        name="batch" if number == "batch" else "program",
        state="CANCELLED" if killed else facts["state"],
        exit_code=facts.get("exit", 0),
        signal=facts.get("signal"),
        max_rss_bytes=peak,
        elapsed_seconds=facts.get("elapsed", 600),
    )


@cache
def misses() -> tuple[Miss, ...]:
    """The excerpts with another category than the one expected; those said with confidence first."""
    found = []
    for known in excerpts():
        said = diagnose(known.job, known.tasks, known.logs)
        if said.category not in known.expected:
            found.append(Miss(known.name, known.expected, said))
    return tuple(sorted(found, key=lambda miss: not miss.sure))


def test_most_logs_of_other_clusters_get_their_category_and_hardly_any_a_wrong_one():
    total, missed = len(excerpts()), misses()
    wrong = sum(miss.sure for miss in missed)
    figures = f"{total - len(missed)} of {total} right, {wrong} wrong with confidence"
    print("", figures, *missed, sep="\n")  # noqa: T201 - what pytest -s is for
    assert len(missed) <= 0.15 * total, figures
    assert wrong <= 0.05 * total, figures


def test_every_category_has_logs_of_other_clusters():
    expected = {category for known in excerpts() for category in known.expected}
    assert expected >= {*by_id(), "unknown", "none"}


@pytest.mark.parametrize(("category", "least"), [("unknown", 15), ("none", 10)])
def test_undecided_and_clean_ends_are_among_them(category, least):
    assert sum(known.expected[0] == category for known in excerpts()) >= least


def test_no_two_excerpts_have_one_name():
    names = [known.name for known in excerpts()]
    assert sorted(names) == sorted(set(names))
