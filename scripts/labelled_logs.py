"""Measures the diagnosis on a folder of logs that somebody labelled by reading them.

    python scripts/labelled_logs.py FOLDER          the figures and every error
    python scripts/labelled_logs.py FOLDER --all    every log, with what was said of it

FOLDER holds the logs and a file `labels.yaml`, which maps each file's name to what is right:

    torch-oom.log: gpu-out-of-memory                the category
    torch-nccl.log: [nccl-timeout, cuda-error]      several that are right
    array-3.log:                                    with what Slurm's records say
      expected: host-out-of-memory
      state: OUT_OF_MEMORY                          Slurm's state; without it the log stands alone
      exit: 1                                       exit code
      signal: 9                                     signal that ended the job
      job: 4711                                     its number; else the last one that a line of Slurm's names
      name: train                                   its name
      partition: gpu
      nodes: gpu03                                  Slurm's host list
      user: ada
      by: ada                                       who cancelled it, a name or a uid
      reason: TimeLimit                             Slurm's reason
      step: {state: FAILED, exit: 1, signal: 9}     how its srun step ended, where it had one
      elapsed: 600                                  seconds
      limit: 3600                                   seconds
      mem: 16G                                      asked for on a node
      rss: 15G                                      peak of a task
      stderr: array-3.err                           a second file: standard error; the first is standard output then
      comment: anything

Categories are those of docs/concepts/diagnosis.md, `none` and `unknown` among them; that page says what
`storage-fault`, `container-start` and `unknown` stand for, and which goes first. A file that is not in `labels.yaml`
is named and left out; a label without its file ends with 2.

    right          the category is one of those expected, of all logs
    wrong          another category than one expected, said with a confidence above 0.5, of all logs
    named          of the logs where `unknown` and `none` are not expected: those whose category is right
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import yaml

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.excerpt import LogText, named_job, read_text
from slurm_agent_tools.diagnosis.signatures import by_id
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import Job, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.units import parse_job_id, parse_memory

LABELS = "labels.yaml"
SURE = 0.5
WANTED = {"right": 92.0, "wrong above 0.5": 1.0, "named": 85.0}
"""Percent: at least, at most, at least."""
NOT_FAILED = frozenset({"unknown", "none"})
STARTED = datetime(2026, 3, 4, 22, 15, tzinfo=UTC)
FACTS = frozenset(
    {
        "expected", "state", "exit", "signal", "job", "name", "partition", "nodes", "user", "by", "reason", "step",
        "elapsed", "limit", "mem", "rss", "stderr", "comment",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    """One log, what is right and what was said."""

    name: str
    expected: tuple[str, ...]
    said: Diagnosis

    @property
    def right(self) -> bool:
        """True where the category is one of those expected."""
        return self.said.category in self.expected

    @property
    def sure(self) -> bool:
        """Wrong, and said as if it were known."""
        return not self.right and self.said.confidence > SURE and self.said.category != "unknown"

    @property
    def failure(self) -> bool:
        """True where a kind of failure is expected and nothing else."""
        return not NOT_FAILED & set(self.expected)

    def __str__(self) -> str:
        mark = "right " if self.right else "WRONG " if self.sure else "missed"
        first = self.said.evidence[0] if self.said.evidence else None
        shown = "-" if first is None else f"{first.line}: {first.text[:160]}"
        said = f"{self.said.category} ({self.said.confidence})"
        return f"{mark} {self.name}: expected {' or '.join(self.expected)}, said {said}, {shown}"


def judged(folder: Path) -> list[Judged]:
    """Every labelled log of the folder. Raises ValueError for a label that cannot be used."""
    labels = yaml.safe_load((folder / LABELS).read_text(encoding="utf-8")) or {}
    return [_judged(folder, name, entry) for name, entry in labels.items()]


def _judged(folder: Path, name: str, entry: str | Sequence[str] | Mapping[str, Any]) -> Judged:
    facts = dict(entry) if isinstance(entry, Mapping) else {"expected": entry}
    if facts.keys() - FACTS:
        raise ValueError(f"{name}: unknown fields {sorted(facts.keys() - FACTS)}")
    expected = [facts["expected"]] if isinstance(facts["expected"], str) else list(facts["expected"])
    foreign = set(expected) - {*by_id(), *NOT_FAILED}
    if foreign or not expected:
        raise ValueError(f"{name}: {sorted(foreign) or 'nothing'} is no category")
    texts = [_text(folder / name, "stdout" if "stderr" in facts else "stderr")]
    texts += [_text(folder / facts["stderr"], "stderr")] if "stderr" in facts else []
    job = _job({"job": _number(texts), **facts}) if "state" in facts else None
    return Judged(name, tuple(expected), diagnose(job, (), texts))


def _text(path: Path, kind: Literal["stdout", "stderr"]) -> LogText:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path.name}: {error.strerror}") from error
    return read_text(str(path), kind, data, b"", len(data))


def _number(texts: Sequence[LogText]) -> str:
    named = [job for text in texts for line in text.lines if (job := named_job(line.text)) is not None]
    return named[-1] if named else "4711"


def _job(facts: Mapping[str, Any]) -> Job:
    """A job as accounting tells it: a batch step that ended as the job did, and the srun step where there is one."""
    number, inner = str(facts["job"]), facts.get("step")
    memory = parse_memory(str(facts["mem"])) if "mem" in facts else None
    steps = [_step(number, "batch", facts), *([_step(number, "0", inner)] if inner else [])]
    elapsed = facts.get("elapsed")
    return Job(
        job_id=parse_job_id(number),
        name=facts.get("name", "run"),
        state=facts["state"],
        sources=("sacct",),
        raw_state=facts["state"],
        user=facts.get("user"),
        partition=facts.get("partition"),
        nodes=facts.get("nodes"),
        reason=facts.get("reason"),
        exit_code=facts.get("exit", 0),
        signal=facts.get("signal"),
        derived_exit_code=inner.get("exit") if inner else None,
        cancelled_by=facts.get("by"),
        submitted=STARTED - timedelta(minutes=5),
        started=STARTED,
        ended=STARTED + timedelta(seconds=600 if elapsed is None else elapsed),
        elapsed_seconds=elapsed,
        resources=Resources(
            nodes=1, memory_bytes=memory, memory_per_node_bytes=memory, time_limit_seconds=facts.get("limit")
        ),
        steps=tuple(steps),
    )


def _step(number: str, name: str, facts: Mapping[str, Any]) -> Step:
    stopped = facts["state"] in {"TIMEOUT", "PREEMPTED", "NODE_FAIL"}
    return Step(
        step_id=f"{number}.{name}",
        name="batch" if name == "batch" else "program",
        state="CANCELLED" if stopped else facts["state"],
        exit_code=facts.get("exit", 0),
        signal=facts.get("signal"),
        max_rss_bytes=parse_memory(str(facts["rss"])) if "rss" in facts else None,
    )


def figures(found: Sequence[Judged]) -> dict[str, float]:
    """The three figures in percent."""
    failures = [item for item in found if item.failure]
    return {
        "right": _percent([item.right for item in found]),
        "wrong above 0.5": _percent([item.sure for item in found]),
        "named": _percent([item.right for item in failures]),
    }


def _percent(told: Sequence[bool]) -> float:
    return 100 * sum(told) / len(told) if told else 0.0


def report(found: Sequence[Judged], *, whole: bool = False) -> Iterator[str]:
    """The figures beside what is wanted, then the errors, those said with confidence first."""
    told, failures = figures(found), [item for item in found if item.failure]
    counted = {
        "right": (sum(item.right for item in found), len(found)),
        "wrong above 0.5": (sum(item.sure for item in found), len(found)),
        "named": (sum(item.right for item in failures), len(failures)),
    }
    for name, wanted in WANTED.items():
        limit = "at most" if name.startswith("wrong") else "at least"
        part, total = counted[name]
        yield f"{name:16} {told[name]:5.1f} %   {part} of {total}   wanted: {limit} {wanted:.0f} %"
    shown = [item for item in found if whole or not item.right]
    yield from (str(item) for item in sorted(shown, key=lambda item: (item.right, not item.sure)))


def main(words: Sequence[str] | None = None) -> int:
    """Print the report; 0 where it holds, 1 where a figure is not reached, 2 where the labels cannot be used."""
    parser = argparse.ArgumentParser(description="Measure the diagnosis on labelled logs.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="show every log")
    asked = parser.parse_args(words)
    try:
        found = judged(asked.folder)
    except (ValueError, KeyError, OSError) as error:
        print(f"labels cannot be used: {error}", file=sys.stderr)
        return 2
    print(*report(found, whole=asked.all), sep="\n")
    labelled = {item.name for item in found} | {LABELS}
    others = sorted(path.name for path in asked.folder.iterdir() if path.is_file() and path.name not in labelled)
    print(*(f"not labelled: {name}" for name in others if not name.endswith(".err")), sep="\n")
    told = figures(found)
    held = told["right"] >= WANTED["right"] and told["named"] >= WANTED["named"]
    return 0 if held and told["wrong above 0.5"] <= WANTED["wrong above 0.5"] else 1


if __name__ == "__main__":
    sys.exit(main())
