"""Small factories for plans: a script's lines and what they mean, beside the real reader."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

from slurm_agent_tools.api.rule_examples import CPU, FILE, GPU, NOW, OLD, PROJECT
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import (
    Directive,
    Evidence,
    Finding,
    JobRequest,
    ScriptLayout,
    ScriptReading,
    ShellCommand,
    ShellWord,
)
from slurm_agent_tools.policy.plan import LiveFacts, PastRun, PlannedRequest

_NOTHING = Resources()


def live(**facts: Any) -> LiveFacts:
    """An idle cluster with the partitions gpu (default), cpu and old (down), looked at a minute ago."""
    stated: dict[str, Any] = {
        "now": NOW,
        "partitions": {p.name: p for p in (GPU, CPU, OLD)},
        "active_jobs": 0,
        "status_read": NOW - timedelta(minutes=1),
    }
    return LiveFacts(**{**stated, **facts})


def script(*lines: str) -> str:
    """A batch script of these lines; directives come first."""
    return "\n".join(["#!/bin/bash", *lines, ""])


def asks(
    *lines: str,
    resources: Resources = _NOTHING,
    findings: tuple[Finding, ...] = (),
    live: LiveFacts | None = None,
    justification: str | None = None,
    request_sha256: str | None = None,
    reason: str | None = None,
    **request: Any,
) -> PlannedRequest:
    """The plan to submit a script of these lines; `request`, `resources` and `reason` say what the lines mean."""
    text = script(*lines)
    directives = tuple(_directive(number, line) for number, line in enumerate(lines, 2) if line.startswith("#SBATCH"))
    return PlannedRequest(
        tool="submit_job",
        project=PROJECT,
        reading=ScriptReading(
            path=FILE,
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            text=text,
            request=JobRequest(directives=directives, justification=reason, **request),
            findings=findings,
        ),
        resources=resources,
        request_sha256=request_sha256,
        justification=justification,
        live=live,
    )


def _directive(number: int, line: str) -> Directive:
    option, _, value = line.removeprefix("#SBATCH --").partition("  #")[0].strip().partition("=")
    return Directive(option, value or None, "script", Evidence(FILE, number, line))


def does(rule: str, what: str, line: str, *, level: str = "deny") -> PlannedRequest:
    """The plan to submit a script in which `line`, before the job's work, does something that `rule` speaks about."""
    finding = Finding(rule, what, Evidence(FILE, 2, line), level)  # type: ignore[arg-type]
    plan = asks(line, "python train.py", findings=(finding,))
    reading = plan.reading
    if reading is None or re.search(r"[|&;\"'`]", line):
        return plan
    return replace(plan, reading=replace(reading, layout=_laid_out(reading.text)))


def _laid_out(text: str) -> ScriptLayout:
    """The places of simple commands, one in each line, as the reader finds them."""
    commands, start = list[ShellCommand](), 0
    for number, line in enumerate(text.split("\n"), 1):
        found = list(re.finditer(r"\S+", line))
        words = tuple(ShellWord(start + word.start(), start + word.end(), word[0]) for word in found)
        end, declared = start + len(line), line.startswith("export ")
        named = {"assigns": words[1:]} if declared else {"words": words}
        place: tuple[Any, ...] = (len(commands), -1, "body", 1, "declaration" if declared else "call", start, end, end)
        if words and not line.startswith("#"):
            commands.append(ShellCommand(*place, number, **named))  # type: ignore[arg-type, call-arg]
        start = end + 1
    return ScriptLayout(tuple(commands))


def past(job_id: str, **facts: Any) -> PastRun:
    """An earlier run of the example script."""
    stated: dict[str, Any] = {
        "job_id": job_id,
        "script_path": FILE,
        "script_sha256": "0" * 64,
        "job_name": "train",
        "request_sha256": "1" * 64,
        "submitted": NOW - timedelta(hours=2),
    }
    return PastRun(**{**stated, **facts})
