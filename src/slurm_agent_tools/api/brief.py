"""The answers of tools as callers get them: whole, or in brief with only what decides or is new.

A brief answer is made from the full record here and nowhere else. It has no nulls and says no text twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from slurm_agent_tools.api import serialize
from slurm_agent_tools.api.serialize import Document
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.models.job import ACTIVE_STATES
from slurm_agent_tools.models.shapes import Reply
from slurm_agent_tools.text import sanitize

ONLY_FULL: Mapping[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "BriefShown": "started queue_seconds",
        "JobShown": "partition user submitted time_limit_seconds derived_exit_code derived_signal sources",
        "ResourcesShown": "memory memory_per_gpu time_limit",
        "Alert": "escalation",
        "PolicyUsed": "layers",
        "DecisionShown": "pinned",
        "StatusReply": "slurm_calls age_seconds",
        "QueueSection": "grounds waits",
        "PolicySection": "sha256 source",
        "ExpectedWait": "note jobs",
        "Sizing": "memory time cpus",
        "RunningShown": "job_id parts elapsed_seconds time_left_seconds memory memory_bytes memory_limit"
        " memory_limit_bytes memory_share memory_task_peak_bytes cpu_seconds cpu_share estimated_from",
        "CompletionReport": "job_id outcome queue_seconds run_seconds max_rss requested text steps steps_not_shown"
        " queue retry",
        "UsageShown": "cpu_seconds cpu_allocated_seconds gpu_allocated_seconds memory_peak memory_allocated_bytes"
        " memory_allocated memory_node_bytes",
        "GpuUseShown": "memory note",
        "Cost": "gpu_hours_by_type note",
        "Recommendation": "target",
        "RequestChange": "what",
        "LogFile": "size_bytes read_bytes",
        "ResultRecord": "config environment notes",
        "ResultBrief": "timestamp",
        "WaitMeasured": "p95",
        "PartitionShown": "default_time",
        "AlternativeShown": "expected",
        "Spent": "note cpu_hours",
        "FleetReply": "use use_not_shown",
        "CostSection": "today week partition_gpu_hour gpu_hour cpu_hour results",
        "ShareShown": "hours share",
        "WaitingShown": "waited_seconds partition basis slurm_says",
        "NodesInState": "names since",
        "UseBeside": "cpus memory_bytes",
        "EndingShown": "left_seconds",
        "InventorySection": "memory memory_bytes partitions reservations cpus gpus nodes",
        "TierShown": "gpu_memory gpus",
        "FreeSection": "memory gpus_used cpus_used memory_bytes memory_used_bytes note tiers fragmentation",
        "LargestStart": "nodes memory_bytes cpus_one_node memory_one_node memory",
    }.items()
}
"""By the name of a shape: the fields that a brief answer leaves out."""

ONLY_WHEN: Mapping[str, frozenset[str]] = {
    "token": frozenset({"unconfirmed"}),
    "idempotency_key": frozenset({"unconfirmed"}),
    "requested": frozenset({"dry_run", "submitted"}),
    "expected_wait": frozenset({"dry_run"}),
}
"""Fields at the top of an answer that only these of its states have in brief."""

USUAL: Mapping[str, Any] = {
    "restarts": 0,
    "managed": True,
    "tasks_not_shown": 0,
    "not_shown": 0,
    "alternatives_not_shown": 0,
    "happened_not_shown": 0,
    "rows_not_shown": 0,
    "basis": 0,
    "default": False,
    "state": "UP",
    "gpus_per_node": 0,
    "cloud_nodes": 0,
    "jobs_not_shown": 0,
    "idle_not_shown": 0,
    "alerts_not_shown": 0,
    "campaigns_not_shown": 0,
    "results_not_shown": 0,
    "quotas_not_shown": 0,
    "waiting": 0,
    "starved": False,
    "use_not_shown": 0,
    "ends_soon_not_shown": 0,
    "largest_not_shown": 0,
    "queue_not_shown": 0,
    "never": False,
    "gpus_blocked": 0,
    "troubled_not_shown": 0,
    "not_measured_not_shown": 0,
}
"""What a field holds nearly always; in brief it is told where it holds something else."""

_PROSE = frozenset({"reason", "explanation", "cause", "note", "why", "text", "suggestions", "warnings"})

_NOTE = "Note: "

_SHORT = 24  # a text below this many characters may stand twice

_GOES_WELL = frozenset({*ACTIVE_STATES, "COMPLETED"})

_QUIET = frozenset({"pass", "not_evaluated"})

_ACTION = {"deny": "denied by", "approve": "a person is needed by", "justify": "a written reason is needed by"}

_MOST: Mapping[str, tuple[tuple[str, int, str], ...]] = {
    "WaitReply": (("tasks", 8, "tasks_not_shown"),),
    "SlurmSection": (("jobs", 4, "not_shown"), ("finished_recently", 2, "not_shown")),
    "AnalyzeReply": (("errors", 5, "errors_not_shown"),),
    "SyncReply": (("differs", 20, "differs_not_shown"), ("kept", 10, "kept_not_shown")),
    "ChooseReply": (("alternatives", 5, "alternatives_not_shown"),),
    "CostSection": (("campaigns", 1, "campaigns_not_shown"),),
    "SharesSection": (("quotas", 2, "quotas_not_shown"),),
    "WaitsSection": (("jobs", 1, "jobs_not_shown"), ("queue", 1, "queue_not_shown")),
    "InventorySection": (("troubled", 1, "troubled_not_shown"),),
    "FreeSection": (("largest_start_now", 2, "largest_not_shown"),),
    "FleetReply": (
        ("not_measured", 1, "not_measured_not_shown"),
        ("alerts", 1, "alerts_not_shown"),
        ("idle", 2, "idle_not_shown"),
        ("ends_soon", 1, "ends_soon_not_shown"),
    ),
}
"""By the name of a shape: lists of it, how many brief answers show, and where the others are counted."""


def answer(reply: Reply, ask: ToolArguments) -> Document:
    """The one JSON document of an answer, as `ask.detail` wants it."""
    return serialize.document(reply) if ask.detail == "full" else brief(reply)


def brief(reply: Reply) -> Document:
    """Only what decides or is new. Times are whole seconds; sizes are bytes."""
    body = _pruned(reply, reply.model_dump(mode="json"))
    for change in (_granted, _complained, _refusal, _once):
        change(body)
    body = _ordered(sanitize.document(body))
    told = [name for name in reply.written_by_others if sanitize.holds(body, name)]
    return body | ({"data_only": told} if told else {})


def _ordered(body: Document) -> Document:
    """What everybody reads comes first."""
    first = {name: body[name] for name in ("status", "summary", "as_of") if name in body}
    return first | body


def _pruned(record: Any, dumped: Mapping[str, Any]) -> Document:
    """A record without what only the full answer has, and without what is not known."""
    kinds = [kind.__name__ for kind in type(record).__mro__]
    left_out = frozenset[str]().union(*(ONLY_FULL.get(kind, ()) for kind in kinds))
    found = {
        name: _value(getattr(record, name), dumped[name])
        for name in (type(record).model_fields if isinstance(record, BaseModel) else record.__dataclass_fields__)
        if name in dumped and name not in left_out
    }
    if "WaitReply" in kinds:
        found |= _failed(found)
    for name, most, count in (place for kind in kinds for place in _MOST.get(kind, ())):
        if (more := len(found[name] or ()) - most) > 0:
            found |= {name: found[name][:most], count: (found.get(count) or 0) + more}
    made = {name: value for name, value in found.items() if not _says_nothing(name, value)}
    if kinds[0] == "DecisionShown":
        return _decision(made)
    if kinds[0] == "JobShown" and "ended" not in made:  # how long it waited and ran so far is in the summary
        return {name: value for name, value in made.items() if name not in {"queue_seconds", "run_seconds"}}
    if "BriefShown" in kinds and made["state"] == "COMPLETED":  # one of several that are over, and no trouble
        return {name: value for name, value in made.items() if name not in {"nodes", "run_seconds"}}
    if isinstance(record, Reply):
        return {name: value for name, value in made.items() if record.status in ONLY_WHEN.get(name, {record.status})}
    return made


def _failed(found: Document) -> Document:
    """Of an array's tasks those that failed, without what they share with it; the others are counted by their state."""
    tasks = [task for task in found["tasks"] if task["state"] not in _GOES_WELL]
    failed = sum(count for state, count in found["tasks_by_state"].items() if state not in _GOES_WELL)
    told = [{name: task[name] for name in task if name not in _OF_THE_WHOLE} for task in tasks]
    return {"tasks": told, "tasks_not_shown": failed - len(tasks)}


_OF_THE_WHOLE = frozenset({"name", "run_seconds", "ended"})


def _value(value: Any, dumped: Any) -> Any:
    if isinstance(value, BaseModel) or is_dataclass(value):
        return _pruned(value, dumped)
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, list | tuple):
        return [_value(item, shown) for item, shown in zip(value, dumped, strict=True)]
    if isinstance(value, dict) and any(isinstance(item, BaseModel) for item in value.values()):
        return {name: _value(item, dumped[name]) for name, item in value.items()}
    return dumped


def _says_nothing(name: str, value: Any) -> bool:
    return value is None or value in ([], {}, "") or (name in USUAL and value == USUAL[name])


def _decision(made: Document) -> Document:
    """The rules that did not pass, and how many did; which policy decided where it did not simply allow."""
    rules = made.get("rules", [])
    spoken = [_rule(rule) for rule in rules if rule["outcome"] not in _QUIET]
    passed = sum(rule["outcome"] == "pass" for rule in rules)
    made = made | {"rules": spoken, "rules_passed": passed}
    return made if spoken else {name: value for name, value in made.items() if name != "policy"}


def _rule(rule: Document) -> Document:
    """A rule without the figures and lines that its message or its remedy quote."""
    told = f"{rule['message']}\n{rule.get('remedy', '')}"
    kept = {name: value for name, value in rule.items() if name not in {"observed", "limit"} or str(value) not in told}
    lines = [line for line in kept.pop("evidence", []) if str(line["text"]).strip() not in told]
    return kept | ({"evidence": lines} if lines else {})


def _granted(body: Document) -> None:
    """Of what was asked for only what Slurm did not give as it was asked."""
    asked, granted = body.get("requested"), body.get("granted")
    if asked and granted:
        body["requested"] = {name: value for name, value in asked.items() if granted.get(name) != value}
        if not body["requested"]:
            del body["requested"]


def _complained(body: Document) -> None:
    """A rule that is among the errors or warnings is named in the decision, not told again."""
    told = {one["message"] for name in ("errors", "warnings") for one in body.get(name, ()) if "message" in one}
    rules = body.get("decision", {}).get("rules", [])
    rules[:] = [{"id": rule["id"], "outcome": rule["outcome"]} if rule["message"] in told else rule for rule in rules]


def _refusal(body: Document) -> None:
    """Why it was refused, in the names of the rules: their texts stand in the decision, once."""
    rules, reason = body.get("decision", {}).get("rules", []), body.get("reason")
    severe = [rule for rule in rules if rule["outcome"] in _ACTION]
    if not reason or not severe or not all(rule.get("message", "") in reason for rule in severe):
        return
    body["reason"] = "; ".join(
        f"{words} {', '.join(rule['id'] for rule in severe if rule['outcome'] == outcome)}"
        for outcome, words in _ACTION.items()
        if any(rule["outcome"] == outcome for rule in severe)
    )
    body["summary"] = body["summary"].replace(reason, f"{body['reason']}. What to change stands with each rule.")


def _once(body: Document) -> None:
    """Take out texts that stood before: in the summary, in the decision, then from top to bottom."""
    said = [str(body.get("summary", ""))]

    def again(text: str) -> bool:
        if len(text) >= _SHORT and any(text.rstrip(".") in other for other in said):
            return True
        said.append(text)
        return False

    lines: list[str] = []
    for name in [name for name in body if name not in {"summary", "config_summary", "reason"}]:
        if isinstance(body[name], dict | list):
            _without(body[name], again, lines)
            if body[name] in ({}, []):
                del body[name]


def _without(here: Any, again: Callable[[str], bool], lines: list[str]) -> None:
    """Below one place: prose that was said, and lines of a log that were shown."""
    if isinstance(here, list):
        here[:] = [item for item in here if not _shown(item, lines)]
        for item in here:
            _without(item, again, lines)
        return
    if not isinstance(here, dict):
        return
    for name, value in [*here.items()]:
        if name == "remedy" and isinstance(value, str):
            here[name] = "\n".join(line for line in value.split("\n") if not line.startswith(_NOTE) or not again(line))
        elif name in _PROSE and isinstance(value, str):
            if "line" not in here and again(value):
                del here[name]
        elif name in _PROSE and isinstance(value, list) and all(isinstance(item, str) for item in value):
            here[name] = [item for item in value if not again(item)]
            if not here[name]:
                del here[name]
        else:
            _without(value, again, lines)


def _shown(item: Any, lines: list[str]) -> bool:
    """Whether a line's text stood before; it is remembered."""
    if not isinstance(item, dict) or not {"file", "line", "text"} <= set(item):
        return False
    known = item["text"] in lines
    lines.append(item["text"])
    return known


# --- What is new since the last answer -------------------------------------------------------------------------------

_WAITED = "wait_for_job"

_MOVES = frozenset({"as_of", "summary", "next_poll_seconds", "suggested_timeout_seconds", "running", "estimated_start"})
"""What differs from look to look of a job that simply goes on; the summary says what of it matters."""

_ALWAYS = ("status", "summary", "as_of")

_SHOWS = ("job_id", "state")

_NEXT = ("next_poll_seconds", "suggested_timeout_seconds")


class LastAnswers:
    """What one caller was told of each job: a wait that is repeated in brief answers what changed since."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, ...], Document] = {}
        self._alerts: dict[tuple[str, ...], None] = {}

    def alerts(self, document: Document, *, look: bool) -> list[Document]:
        """The alerts of an answer that a client hears of: all; where a view looks again, those that are new."""
        found = document.get("alerts")
        listed = found if isinstance(found, list) else []  # an error where they could not be read
        keyed = [((one["code"], one["severity"], one.get("job_id") or ""), one) for one in listed]
        fresh = [one for key, one in keyed if not (look and key in self._alerts)]
        self._alerts = dict.fromkeys([*self._alerts, *(key for key, _ in keyed)][-_REMEMBERED:])
        return fresh

    def new(self, tool: str, ask: ToolArguments, body: Document) -> Document:
        """The answer, or what is new in it where the same was asked before; remembers it."""
        if tool != _WAITED or ask.detail == "full":
            return body
        key = (ask.cluster or "", *_named(ask))
        before = self._told.pop(key, None)
        self._told[key] = body  # the newest last
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        return body if before is None else _changes(body, before)


_REMEMBERED = 200


def _named(ask: ToolArguments) -> Iterator[str]:
    wanted = ask.model_dump(include={"job_id", "job_ids"}, exclude_none=True)
    for value in wanted.values():
        yield from value if isinstance(value, list) else [value]


def _changes(body: Document, before: Document) -> Document:
    """Which places of an answer say something else than before; who and how it stands is always told."""
    kept = {name: body[name] for name in _ALWAYS}
    kept["summary"] = _said_anew(body["summary"], before["summary"])
    found = {name: _news(value, before.get(name)) for name, value in body.items() if name not in {*_MOVES, *_ALWAYS}}
    kept |= {name: value for name, value in found.items() if value not in (None, {}, [])}
    if "job" in body:
        kept["job"] = {name: body["job"][name] for name in _SHOWS} | kept.get("job", {})
    kept |= {name: body[name] for name in _NEXT if name in body}
    kept.pop("data_only", None)
    told = [name for name in body.get("data_only", []) if name in kept]
    told = [name for name in told if name != "job" or not set(kept["job"]) <= {*_SHOWS}]
    return kept | ({"data_only": told} if told else {})


def _said_anew(now: str, before: str) -> str:
    """The first sentence of a summary, and of the others those that the last one had not."""
    first, *others = now.split(". ")
    told = [text for text in others if text.rstrip(".") not in before]
    return ". ".join([first, *told]).rstrip(".") + "."


def _news(now: Any, before: Any) -> Any:
    """What of a value was not told: new items of a list, changed entries of a job; None where nothing is new."""
    if now == before:
        return None
    if isinstance(now, list) and isinstance(before, list):
        known = [_lasting(item) for item in before]
        return [item for item in now if _lasting(item) not in known]
    if isinstance(now, dict) and isinstance(before, dict) and "job_id" in now:
        return {name: value for name, value in now.items() if value != before.get(name)}
    return now


def _lasting(item: Any) -> Any:
    """An item of a list without what grows while nothing happens."""
    return {name: value for name, value in item.items() if name != "run_seconds"} if isinstance(item, dict) else item
