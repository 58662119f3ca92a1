"""Applies a remedy as somebody would who reads nothing but the answer: word for word, without a thought of its own."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from slurm_agent_tools.models.arguments import Stage
from slurm_agent_tools.policy.plan import LiveFacts

SCRIPT = "the script"
STEP = re.compile(
    r"(?P<replace>Replace (?P<old>line [\d, line]+?)(?: of (?P<old_file>\S+))? \(`.*`\)(?:, indented like it,)? by:$)"
    r"|(?P<delete>Delete (?P<gone>line [\d, line]+?)(?: of (?P<gone_file>\S+))? \(`.*`\)\.$)"
    r"|(?P<add>Add:$)"
    r'|(?P<call>Call again with \w+="[^"]*"(?:(?:, | and )\w+="[^"]*")*\.)'
    r"|(?:Call again without the argument (?P<without>[\w-]+)\.)"
    r'|(?:wait_for_job with job_id="(?P<wait>[^"]+)")'
    r'|(?:Call analyze_log with job_id="(?P<analyse>[^"]+)"\.)'
    r"|(?P<status>Call get_status\b)"
    r"|(?P<generate>Call generate_script, )"
    r"|(?:Change (?P<change>\S+) itself, if the cause of job \d+ lies in it, then submit it again\.$)"
    r"|(?:Shorten (?P<shorten>\S+) to at most (?P<size>\S+):)"
    r"|(?:Save at most (?P<save>[^:]+):)"
    r"|(?:Run `(?P<run>sed -i .+)`\.$)"
    r"|(?P<words>Change line [\d, line]+?(?: of \S+)? \(`.*`\) yourself: .+\.$)"
    r"|(?P<person>Ask a person)"
    r"|(?P<note>Note: |Do (?:both|all of this):$)"
)
WAY = re.compile(r"Or [^`]*:$")
FILLED = {
    "<why this job needs it>": "the 30B model needs it, measured",
    "<what changed outside the script: the code, a package, the data, a node>": "the data was mended by hand",
    "<why no smoke run is needed>": "the other cluster ran it to its end",
    "<why the same work twice>": "measures the noise between runs",
    "<id of a job that get_status shows>": "11",
}


class NotApplicable(AssertionError):
    """A step that cannot be done from the answer alone."""


@dataclass
class Request:
    """Everything that somebody who asks can change."""

    files: dict[str, str]
    script: str
    arguments: dict[str, str] = field(default_factory=dict)
    justification: str | None = None
    live: LiveFacts | None = None
    output_dir: str | None = None
    name: str | None = None
    save_at_most: str | None = None
    approved: bool = False
    stage: Stage | None = None

    @property
    def text(self) -> str:
        return self.files[self.script]


def ways(remedy: str) -> list[str]:
    """The ways that a remedy offers, the first one first."""
    found: list[list[str]] = [[]]
    for line in remedy.splitlines():
        if WAY.fullmatch(line):
            found.append([])
        else:
            found[-1].append(line)
    return ["\n".join(lines) for lines in found]


def apply(remedies: list[str], request: Request) -> None:
    """Do what these ways say. Of two that change one line the first is done: the next answer tells the rest."""
    edits: dict[str, dict[int, list[str]]] = {}
    for way in remedies:
        for step, lines in steps(way):
            _do(step, lines, request, edits)
    for file, changes in edits.items():
        request.files[file] = _edited(request.files[file], changes)


def steps(way: str) -> list[tuple[re.Match[str], list[str]]]:
    """The steps with the lines that belong to them."""
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in way.splitlines():
        match = STEP.match(line)
        if match is not None:
            found.append((match, []))
        elif found and (found[-1][0]["replace"] or found[-1][0]["add"]):
            found[-1][1].append(line)
        else:
            raise NotApplicable(f"no step is meant by: {line!r}")
    if all(match["note"] for match, _ in found):
        raise NotApplicable(f"nothing to do in: {way!r}")
    return found


def _do(step: re.Match[str], lines: list[str], request: Request, edits: dict[str, dict[int, list[str]]]) -> None:
    if request.live is not None and any("<id of a job" in line for line in lines):
        request.live = replace(request.live, known_jobs=request.live.known_jobs | {"11"})
    lines = [_filled(line) for line in lines]
    if step["replace"]:
        assert lines, step[0]
        _change(step["old"], step["old_file"] or request.script, lines, edits, request)
    elif step["delete"]:
        _change(step["gone"], step["gone_file"] or request.script, [], edits, request)
    elif step["add"]:
        edits.setdefault(request.script, {}).setdefault(0, []).extend(lines)
    elif step["call"]:
        for name, value in re.findall(r'(\w+)="([^"]*)"', step["call"]):
            _argument(name, _filled(value), request)
    elif step["without"]:
        request.arguments.pop(step["without"])
    else:
        _act(step, request)


def _filled(text: str) -> str:
    for placeholder, words in FILLED.items():
        text = text.replace(placeholder, words)
    assert "<" not in text or "<<" in text or "#SBATCH" not in text, text
    return text


def _change(where: str, file: str, lines: list[str], edits: dict[str, dict[int, list[str]]], request: Request) -> None:
    numbers = [int(number) for number in re.findall(r"\d+", where)]
    changes = edits.setdefault(file, {})
    if any(number in changes for number in numbers):
        return
    for number in numbers:
        assert 1 <= number <= len(request.files[file].split("\n")), where
        changes[number] = []
    first = request.files[file].split("\n")[numbers[0] - 1]
    indent = first[: len(first) - len(first.lstrip())] if file != request.script else ""
    changes[numbers[0]] = [f"{indent}{line}" for line in lines]


def _edited(text: str, changes: Mapping[int, list[str]]) -> str:
    new: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        new += changes.get(number, [line])
        if number == 1:
            new += changes.get(0, [])
    return "\n".join(new)


def _argument(name: str, value: str, request: Request) -> None:
    if name == "justification":
        request.justification = value
    elif name == "output_dir":
        request.output_dir = value
    elif name == "stage":
        request.stage = {one: one for one in get_args(Stage)}[value]
    elif name == "name":
        request.name = value
    else:
        request.arguments[{"time_limit": "time", "job_name": "job-name"}.get(name, name)] = value


def _act(step: re.Match[str], request: Request) -> None:
    """A call of another tool, and what it changes."""
    if step["wait"]:
        request.live = _ended(request.live, step["wait"])
    elif step["analyse"]:
        request.live = _analysed(request.live, step["analyse"])
    elif step["status"]:
        request.live = _looked(request.live)
    elif step["generate"]:
        request.script = "scripts/slurm/generated/made.sh"
        request.files[request.script] = "#!/bin/bash\n#SBATCH --time=01:00:00\npython train.py\n"
    elif step["change"]:
        request.files[step["change"]] += "# as the diagnosis says\n"
    elif step["shorten"]:
        request.files[step["shorten"]] = request.files[step["shorten"]][:1000]
    elif step["run"]:
        _, _, expression, file = shlex.split(step["run"])
        done = subprocess.run(["sed", expression], input=request.files[file].encode(), capture_output=True, check=True)
        request.files[file] = done.stdout.decode()
    elif step["save"]:
        request.save_at_most = step["save"]
    elif step["person"]:
        request.approved = True


def _ended(live: LiveFacts | None, job_id: str) -> LiveFacts:
    assert live is not None
    ladder = live.ladder
    tried = () if ladder is None else ladder.runs
    known = {str(job.job_id.whole) for job in live.active} | {run.job_id for run in (*live.history, *tried)}
    assert job_id in known
    if ladder is not None:
        ended = (replace(run, state="passed" if run.job_id == job_id else run.state) for run in tried)
        live = replace(live, ladder=replace(ladder, runs=tuple(ended)))
    history = tuple(replace(run, active=run.active and run.job_id != job_id) for run in live.history)
    fewer = None if live.slots_after is None else live.slots_after - 1
    pending = None if live.pending_after is None else live.pending_after - 1
    return replace(
        live, history=history, active_jobs=live.active_jobs - 1, slots_after=fewer, pending_after=pending,
        active=tuple(job for job in live.active if str(job.job_id.whole) != job_id),
    )  # fmt: skip


def _analysed(live: LiveFacts | None, job_id: str) -> LiveFacts:
    assert live is not None
    tried = () if live.ladder is None else live.ladder.runs
    assert job_id in {run.job_id for run in (*live.history, *tried)}
    history = tuple(replace(run, analysed=run.analysed or run.job_id == job_id) for run in live.history)
    return replace(live, history=history)


def _looked(live: LiveFacts | None) -> LiveFacts:
    """Time passes until get_status shows what one waits for: room, a count, a partition that is up."""
    assert live is not None
    ladder = None if live.ladder is None else replace(live.ladder, problem=None)
    return replace(
        live, ladder=ladder, status_read=live.now, active_jobs=0, slots_after=None, active=(), submissions_today=0,
        pending_after=1, gpu_hours_today=0.0, cpu_hours_today=0.0,
        partitions={name: replace(p, state="UP") for name, p in live.partitions.items()},
    )  # fmt: skip
