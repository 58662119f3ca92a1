r"""A transcript: what an agent does in a task, a line each as JSON, played through any MCP client and counted.

    {"tool": "submit_job", "arguments": {"script": "train.sh"}, "as": "sent"}
    {"tool": "wait_for_job", "arguments": {"job_id": "${sent.job_id}"}, "until": {"status": "finished"}}
    {"resource": "slurm://history?tag=failed", "as": "past"}
    {"edit": "train.sh", "old": "--mem=1G", "new": "--mem=2G"}
    {"write": "best.txt", "text": "${sent.job_id}\n"}

`as` names an answer; `${NAME.FIELD.0}` stands for a value in it, `${task.job}` for one that the task's preparation
told. `until` repeats a call as long as the answer says something else. `edit` and `write` are the agent's own editor:
they are played, and cost nothing of ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

_VALUE = re.compile(r"\$\{([^${}]+)\}")
_REPEATS = 60
_KINDS = ("tool", "resource", "edit", "write")


class TranscriptError(Exception):
    """A transcript cannot be read, or cannot go on: the answers are not what it needs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: `body` for placeholders, and the bytes that the client hands to its model."""

    body: Any
    size: int


class Caller:
    """The two things that a transcript asks of an MCP client."""

    def __init__(
        self, tool: Callable[[str, dict[str, Any]], Awaitable[Answer]], resource: Callable[[str], Awaitable[Answer]]
    ) -> None:
        """Take the client's calls."""
        self.tool, self.resource = tool, resource


@dataclass(slots=True)
class Call:
    """One call: bytes of its arguments and of its answer."""

    tool: str
    arguments: Any
    answer: Any
    asked: int
    answered: int


@dataclass(slots=True)
class Cost:
    """The calls of a task."""

    calls: list[Call] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """Bytes of the arguments."""
        return sum(call.asked for call in self.calls)

    @property
    def answered(self) -> int:
        """Bytes of the answers."""
        return sum(call.answered for call in self.calls)


def read(path: Path) -> list[dict[str, Any]]:
    """The steps of a transcript. TranscriptError with the line that is none."""
    steps = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            step = json.loads(line)
        except ValueError as error:
            raise TranscriptError(f"{path.name}:{number}: {error}") from None
        if not isinstance(step, dict) or sum(kind in step for kind in _KINDS) != 1:
            raise TranscriptError(f"{path.name}:{number}: a step has one of {', '.join(_KINDS)}")
        steps.append(step)
    return steps


async def play(
    steps: Sequence[Mapping[str, Any]],
    caller: Caller,
    project: Path,
    values: Mapping[str, Any],
    cost: Cost,
    wrote: Callable[[Path], None] = lambda _: None,
) -> None:
    """Play the steps in a project, and count them. `wrote` is told each file and folder that was made.

    TranscriptError where an answer lacks what a later step needs.
    """
    known: dict[str, Any] = {"task": dict(values)}
    for step in steps:
        if "tool" in step or "resource" in step:
            answer = await _ask(step, caller, known, cost)
            if "as" in step:
                known[step["as"]] = answer.body
        else:
            _edit(step, project, known, wrote)


async def _ask(step: Mapping[str, Any], caller: Caller, known: Mapping[str, Any], cost: Cost) -> Answer:
    for _ in range(_REPEATS):
        if "resource" in step:
            uri = str(filled(step["resource"], known))
            answer = await caller.resource(uri)
            cost.calls.append(Call("resource", uri, answer.body, len(uri.encode()), answer.size))
        else:
            arguments = dict(filled(step.get("arguments", {}), known))
            answer = await caller.tool(step["tool"], arguments)
            cost.calls.append(Call(step["tool"], arguments, answer.body, size(arguments), answer.size))
        wanted = step.get("until", {})
        if all(isinstance(answer.body, dict) and answer.body.get(key) == value for key, value in wanted.items()):
            return answer
        if isinstance(answer.body, dict) and "error" in answer.body:
            raise TranscriptError(f"{step}: {answer.body['error']}")
    raise TranscriptError(f"{step}: not so after {_REPEATS} calls")


def _edit(step: Mapping[str, Any], project: Path, known: Mapping[str, Any], wrote: Callable[[Path], None]) -> None:
    name = PurePosixPath(step.get("edit") or step["write"])
    if name.is_absolute() or ".." in name.parts:
        raise TranscriptError(f"{name}: not in the project")
    path = project / name
    if "write" in step:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(filled(step["text"], known)), encoding="utf-8")
        for made in (path, *(project / parent for parent in name.parents)):
            wrote(made)
        return
    before = path.read_text(encoding="utf-8")
    if step["old"] not in before:
        raise TranscriptError(f"{name} has no {step['old']!r}")
    path.write_text(before.replace(step["old"], str(filled(step["new"], known))), encoding="utf-8")


def filled(value: Any, known: Mapping[str, Any]) -> Any:
    """A value with its placeholders filled in; one that is a placeholder and nothing else keeps its type."""
    if isinstance(value, dict):
        return {key: filled(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, known) for each in value]
    if not isinstance(value, str):
        return value
    whole = _VALUE.fullmatch(value)
    if whole:
        return _value(whole[1], known)
    return _VALUE.sub(lambda found: str(_value(found[1], known)), value)


def _value(path: str, known: Mapping[str, Any]) -> Any:
    value: Any = known
    for part in path.split("."):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise TranscriptError(f"no answer has ${{{path}}}") from None
    return value


def size(value: Any) -> int:
    """Bytes of a value as JSON without spaces."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
