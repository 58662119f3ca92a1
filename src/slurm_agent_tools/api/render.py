"""A reply for a person: the summary, then the facts that are known, in pieces that a terminal draws (`drawing`).

Everywhere else they are plain lines. A piece holds no hidden sign: names and log lines come from jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from slurm_agent_tools.text import sanitize
from slurm_agent_tools.units import format_duration, human_memory

_SKIP = frozenset({"summary", "as_of", "decision", "status", "report", "script", "content", "data_only"})

_UNKNOWN: tuple[Any, ...] = (None, [], {})

_EXACT = 2**53
"""Below it each whole number is one of its own as a float."""

_QUIET = frozenset({"pass", "not_evaluated"})


class Line(NamedTuple):
    """One line, and what it says, which `drawing` has a colour for: a status, an outcome, heading, faint."""

    text: str
    style: str = ""

    def lines(self) -> list[str]:
        """As plain text."""
        return [self.text]


class Table(NamedTuple):
    """Rows below their header, and the plain lines that stand for them where nothing is drawn."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    plain: Sequence[str]

    def lines(self) -> list[str]:
        """As plain text."""
        return list(self.plain)


Piece = Line | Table

_Tell = Callable[[Sequence[str], str], list[Piece]]


def pieces(body: Mapping[str, Any]) -> list[Piece]:
    """What shows one document, a failure included."""
    if set(body) == {"error"}:
        error = body["error"]
        return _texts([f"error ({error['code']}): {error['message']}", *([error["hint"]] if error["hint"] else [])])
    summary = body["summary"]
    shown = _texts([f"{body['status']}: {summary}"], str(body["status"]))
    known = {key: value for key, value in body.items() if key not in _SKIP and not _told(key, value, summary)}
    shown += [piece for key, value in known.items() for piece in _entry(key, value, _texts)]
    if body.get("decision"):
        shown += decision(body["decision"], summary)
    if body.get("report"):
        shown += _report(body["report"])
    for key, mark in (("script", ""), ("content", "| ")):
        shown += [Line(plain(f"{mark}{line}")) for line in str(body[key]).split("\n")] if body.get(key) else []
    return shown


def _report(report: Mapping[str, Any]) -> list[Piece]:
    """The report in Markdown, or in brief its figures."""
    if "text" in report:
        return _texts(str(report["text"]).splitlines())
    return [*_entry("report", report, _texts)]


def lines(shown: Iterable[Piece]) -> list[str]:
    """The pieces as plain text."""
    return [line for piece in shown for line in piece.lines()]


def _texts(shown: Iterable[str], style: str = "") -> list[Piece]:
    """Every further line of a text is indented: no text from outside begins a line that looks like one of ours."""
    return [
        Line(plain("    " * (index > 0) + piece), style)
        for line in shown
        for index, piece in enumerate(line.split("\n"))
    ]


def _whole(shown: Iterable[str], style: str = "") -> list[Piece]:
    """Every text is one line, its line ends spelled out."""
    return [Line(plain(line), style) for line in shown]


def facts(body: Mapping[str, Any]) -> list[Piece]:
    """Every known entry of a document, nested ones indented, each on one line."""
    return [piece for key, value in body.items() for piece in _entry(key, value, _whole)]


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


def decision(body: Mapping[str, Any], said: str = "") -> list[Piece]:
    """The verdict, every rule that did not pass with its remedy, and what the guard adds.

    Of a rule that `said` holds already only the name is repeated.
    """
    policy = body.get("policy")
    which = f"  (policy {policy['version']}, {policy['sha256'][:12]})" if policy else ""
    shown = _texts([f"verdict: {body['verdict']}{which}"], str(body["verdict"]))
    for rule in body["rules"]:
        if rule["outcome"] not in _QUIET:
            again = rule.get("message", "") in said  # in brief not told where it stands elsewhere
            message = "" if again else f": {rule['message']}"
            shown += _texts([f"  {rule['outcome']} {rule['id']}{message}"], str(rule["outcome"]))
            shown += _texts(f"     {line}" for line in str(rule.get("remedy") or "").splitlines() if not again)
    open_rules = [rule["id"] for rule in body["rules"] if _open(rule)]
    shown += _texts([f"  not evaluated without a cluster: {', '.join(open_rules)}"] if open_rules else [])
    return shown + _texts(f"  pinned {pin['option']}: {pin['why']}" for pin in body.get("pinned", []))


def _entry(key: str, value: Any, tell: _Tell, indent: str = "") -> Iterator[Piece]:
    """One `key: value`, nested ones below it; what is not known is left out."""
    if value is None or value in ([], {}):
        return
    if not isinstance(value, Mapping | list):
        yield from tell([f"{indent}{key}: {_flat(value)}"], "")
        return
    yield from tell([f"{indent}{key}:"], "heading")
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _entry(str(name), inner, tell, f"{indent}  ")
        return
    if all(isinstance(item, list) and item for item in value) and len(set(map(len, value))) == 1:
        header, *rows = ([_cell(cell) for cell in item] for item in value)
        yield table(
            header, rows, [f"{indent}  {line}" for line in aligned([[*map(plain, row)] for row in [header, *rows]])]
        )
        return
    listed = tell([f"{indent}  - {_flat(item)}" for item in value], "")
    yield from [_table(value, lines(listed))] if all(isinstance(item, Mapping) for item in value) else listed


def _table(items: Sequence[Mapping[str, Any]], told: Sequence[str]) -> Table:
    """One row an item; a column for each name of which something is known."""
    names = dict.fromkeys(name for item in items for name, value in item.items() if value not in _UNKNOWN)
    rows = [[_flat(item[name]) if item.get(name) not in _UNKNOWN else "" for name in names] for item in items]
    return table(list(names), rows, told)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], told: Iterable[str]) -> Table:
    """A table, each cell one line without hidden signs."""
    return Table([*map(plain, header)], [[*map(plain, row)] for row in rows], [*map(plain, told)])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, in columns as wide as they have to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _flat(item: Any, *, within: bool = False) -> str:
    """One line; `within` another one what has several parts stands in brackets, so that it is seen where it ends."""
    if isinstance(item, Mapping):
        known = ((name, value) for name, value in item.items() if value not in _UNKNOWN)
        text = "  ".join(f"{name}={_flat(value, within=True)}" for name, value in known)
        return f"({text})" if within else text
    if isinstance(item, list):
        text = ", ".join(_flat(value, within=True) for value in item)
        return f"[{text}]" if within else text
    if isinstance(item, float) and item.is_integer() and abs(item) < _EXACT:  # 40.0 trials are 40
        return str(int(item))
    return str(item)


def _cell(item: Any) -> str:
    return "-" if item in _UNKNOWN else _flat(item)


def plain(line: str) -> str:
    """One line without hidden signs: names and log lines come from jobs and must not steer the terminal."""
    return sanitize.visible(line).replace("\n", "\\n")
