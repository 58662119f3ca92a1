"""A reply as a few lines for a person at a terminal: the summary, then the facts that are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slurm_agent_tools.text import sanitize
from slurm_agent_tools.units import format_duration, human_memory

_SKIP = frozenset({"summary", "as_of", "decision", "status", "report", "script", "content", "data_only"})

_QUIET = frozenset({"pass", "not_evaluated"})


def lines(body: Mapping[str, Any]) -> list[str]:
    """The lines that show one document, a failure included."""
    if set(body) == {"error"}:
        error = body["error"]
        return _indented([f"error ({error['code']}): {error['message']}", *([error["hint"]] if error["hint"] else [])])
    summary = body["summary"]
    shown = [f"{body['status']}: {summary}"]
    known = {key: value for key, value in body.items() if key not in _SKIP and not _told(key, value, summary)}
    shown += [line for key, value in known.items() for line in _entry(key, value, 0)]
    if body.get("decision"):
        shown += decision(body["decision"], summary)
    if body.get("report"):
        shown += str(body["report"]["text"]).splitlines()
    shown = _indented(shown)
    shown += [plain(line) for line in str(body.get("script") or "").split("\n") if body.get("script")]
    return shown + [plain(f"| {line}") for line in str(body.get("content") or "").split("\n") if body.get("content")]


def _indented(shown: Iterable[str]) -> list[str]:
    """Every further line of a text is indented: no text from outside begins a line that looks like one of ours."""
    return [plain("    " * (index > 0) + piece) for line in shown for index, piece in enumerate(line.split("\n"))]


def facts(body: Mapping[str, Any]) -> list[str]:
    """Every known entry of a document, nested ones indented."""
    return [plain(line) for key, value in body.items() for line in _entry(key, value, 0)]


def readable(value: Any, name: str = "") -> Any:
    """A policy with bytes and seconds as people write them; `name` is the way to the value."""
    if name.endswith(".priority.high") and not value["qos"]:
        return "not offered"
    if isinstance(value, dict):
        return {key: readable(inner, f"{name}.{key}") for key, inner in value.items()}
    if isinstance(value, int) and ("memory" in name or name.endswith("_bytes")):
        return human_memory(value)
    return format_duration(value) if isinstance(value, int) and "time_limit" in name else value


def _told(key: str, value: Any, summary: str) -> bool:
    """True for a reason that the summary holds word by word."""
    return key == "reason" and str(value) in summary


def _open(rule: Mapping[str, Any]) -> bool:
    """True for a rule that would have something to say if the cluster were asked."""
    idle = ("Does not concern ", "There is no script ")
    return rule["outcome"] == "not_evaluated" and not str(rule["message"]).startswith(idle)


def decision(body: Mapping[str, Any], said: str = "") -> list[str]:
    """The verdict, every rule that did not pass with its remedy, and what the guard adds.

    Of a rule that `said` holds already only the name is repeated.
    """
    shown = [f"verdict: {body['verdict']}  (policy {body['policy']['version']}, {body['policy']['sha256'][:12]})"]
    for rule in body["rules"]:
        if rule["outcome"] not in _QUIET:
            again = rule["message"] in said
            shown.append(f"  {rule['outcome']} {rule['id']}" + ("" if again else f": {rule['message']}"))
            shown += [f"     {line}" for line in str(rule["remedy"] or "").splitlines() if not again]
    open_rules = [rule["id"] for rule in body["rules"] if _open(rule)]
    shown += [f"  not evaluated without a cluster: {', '.join(open_rules)}"] if open_rules else []
    shown += [f"  pinned {pin['option']}: {pin['why']}" for pin in body.get("pinned", [])]
    return shown


def _entry(key: str, value: Any, depth: int) -> Iterator[str]:
    """One `key: value`, nested ones below it; what is not known is left out."""
    indent = "  " * depth
    if value is None or value in ([], {}):
        return
    if isinstance(value, Mapping):
        yield f"{indent}{key}:"
        for name, inner in value.items():
            yield from _entry(str(name), inner, depth + 1)
    elif isinstance(value, list):
        yield f"{indent}{key}:"
        for item in value:
            yield f"{indent}  - {_flat(item)}"
    else:
        yield f"{indent}{key}: {value}"


def _flat(item: Any) -> str:
    if isinstance(item, Mapping):
        return "  ".join(f"{name}={_flat(value)}" for name, value in item.items() if value not in (None, [], {}))
    return str(item)


def plain(line: str) -> str:
    """One line without hidden signs: names and log lines come from jobs and must not steer the terminal."""
    return sanitize.visible(line).replace("\n", "\\n")
