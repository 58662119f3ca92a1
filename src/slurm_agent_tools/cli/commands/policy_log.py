"""`policy log`: the decisions taken here, filtered, and followed as they come."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from slurm_agent_tools.api import printing, render
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.units import parse_time_limit

if TYPE_CHECKING:
    from slurm_agent_tools.store.decision_log import Entry


DONE, FAILED = 0, 1

_PAUSE = 0.3

_LAST = 20

_ABOUT = ("script", "path", "job_name", "job_id", "note", "summary")
"""What an entry is about, in a line for people."""

_TOGETHER = 100
"""Entries that are drawn at once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `policy log`."""
    parser.add_argument(
        "--last", type=int, metavar="N", help="the newest N (20; with --since all); 0 for none before --follow"
    )
    parser.add_argument("--verdict", choices=["allow", "justify", "approve", "deny"], help="only this verdict")
    parser.add_argument("--rule", metavar="RULE", help="only decisions in which this rule spoke")
    parser.add_argument("--event", metavar="EVENT", help="only this event, for example submitted or drift")
    parser.add_argument("--job", metavar="ID", help="only what concerns this job")
    parser.add_argument(
        "--since", metavar="TIME", help="a time like 2027-01-31T08:00, or a duration back like 02:00:00 or 7-00:00:00"
    )
    parser.add_argument("--follow", action="store_true", help="go on printing new ones until interrupted")
    parser.add_argument("--json", action="store_true", help="print one decision a line")
    parser.add_argument(
        "--verify", action="store_true", help="is each line as it was written, and none missing? Ends with 1 if not"
    )
    parser.add_argument(
        "--begin-anew", action="store_true", help="keep this log under another name, and begin one that names it"
    )


def show(path: Path, args: argparse.Namespace) -> int:
    """Print what is asked for; returns the exit code. Raises InputError and StorageError.

    Somebody else may have blown up the log, so that it is read twice, a line at a time, rather than held.
    """
    since = _since(args.since)
    found = _Wanted(path, args, since)
    if args.last is None and since is not None:
        _print(found, as_json=args.json)
    else:
        total = sum(1 for _ in found)
        most = _most(total, args.last)
        _print(islice(_Wanted(path, args, since), total - most, total), as_json=args.json)
    found.tell()
    while args.follow:
        time.sleep(_PAUSE)
        moved = path.exists() and path.stat().st_size < found.place  # it was moved away, and a new one begun
        found = _Wanted(path, args, since, 0 if moved else found.place)
        _print(found, as_json=args.json)
        found.tell()
    return DONE


class _Wanted:
    """The entries that are asked for, one at a time. Raises StorageError.

    `place`: how far it was read, in bytes.
    """

    def __init__(self, path: Path, args: argparse.Namespace, since: datetime | None, place: int = 0) -> None:
        self._path, self._args, self._since = path, args, since
        self.place, self._damaged = place, 0

    def __iter__(self) -> Iterator[Entry]:
        from slurm_agent_tools.store import decision_log  # noqa: PLC0415 - the other policy commands load no ledger

        for line in decision_log.read(self._path, self.place):
            self.place = line.end
            if line.entry is None:
                self._damaged += 1
            elif _wanted(line.entry, self._args, self._since):
                yield line.entry

    def tell(self) -> None:
        """Say how many lines that were passed are no entries."""
        if self._damaged:
            lines = f"{self._damaged} lines of {self._path}"
            printing.note(f"{lines} were cut off, by a full disk or a crash, and are left out")


def verify(path: Path, args: argparse.Namespace) -> int:
    """Whether the log is whole, and which lines are not as they were written; returns the exit code."""
    from slurm_agent_tools.store import decision_log  # noqa: PLC0415 - the other policy commands load no ledger

    found, head = decision_log.verified(path)
    breaks = [{"line": line, "what": what} for line, what in sorted(found.breaks)]
    if args.json:
        told = {
            "status": "broken" if breaks else "whole", "path": str(path), "lines": found.lines, "begins": found.begins,
            "before_the_chain": found.before, "cut_off": found.cut_off, "breaks": breaks,
            "in_the_ledger": None if head is None else head.lines,
        }  # fmt: skip
        printing.lines([json.dumps(told, separators=(",", ":"))])
        return FAILED if breaks else DONE
    printing.lines(f"line {one['line']} {one['what']}" for one in breaks)
    printing.lines([f"{path}: {len(breaks)} breaks" if breaks else f"{path} is whole: {found.lines} lines"])
    if found.before:
        printing.note(f"{found.before} lines are older than the chain of hashes, which begins at line {found.begins}")
    if found.cut_off:
        printing.note(f"cut off by a full disk or a crash: lines {', '.join(map(str, found.cut_off))}")
    if head is None:
        printing.note("the ledger knows nothing of this log: whether its last lines are missing cannot be told")
    return FAILED if breaks else DONE


def _most(total: int, last: int | None) -> int:
    """How many of those that are asked for are shown; what is left out without having been asked for is told."""
    if last is None and total > _LAST:
        printing.note(f"the newest {_LAST} of {total}; --last N or --since TIME shows more")
    return min(total, _LAST if last is None else max(last, 0))


def _print(entries: Iterable[Entry], *, as_json: bool) -> None:
    if as_json:
        printing.lines(json.dumps(entry, separators=(",", ":")) for entry in entries)
        return
    told = (render.Line(render.plain(_line(entry)), str(entry.get("verdict"))[:20]) for entry in entries)
    while together := list(islice(told, _TOGETHER)):
        printing.show(together)


def _line(entry: Entry) -> str:
    about = " ".join(str(entry[name]) for name in _ABOUT if entry.get(name))
    spoken = _rules(entry)
    told = f"  [{', '.join(spoken)}]" if spoken else ""
    who = f"{entry.get('user')}/{entry.get('principal') or entry.get('client') or entry.get('by') or '?'}"
    event, verdict, tool = (str(entry.get(name) or "?") for name in ("event", "verdict", "tool"))
    return sanitize.bounded(f"{entry['at']}  {event:<11} {verdict:<8} {tool:<15} {who}  {about}{told}")


def _rules(entry: Entry) -> list[str]:
    """The ids of the rules that spoke. Somebody else may have written the line: what does not fit is passed by."""
    rules = entry.get("rules")
    return [str(rule.get("id")) for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []


def _at(entry: Entry) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(entry["at"]))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.astimezone()


def _since(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) - timedelta(seconds=_duration(text))
    return moment if moment.tzinfo else moment.astimezone()


def _duration(text: str) -> int:
    try:
        return parse_time_limit(text)
    except ValueError as error:
        hint = "Write 2027-01-31T08:00, 02:00:00 or, for a week, 7-00:00:00."
        raise InputError("since", text, "is no time and no duration", hint=hint) from error


def _wanted(entry: Entry, args: argparse.Namespace, since: datetime | None) -> bool:
    at = _at(entry)
    return (
        (args.verdict is None or entry.get("verdict") == args.verdict)
        and (args.rule is None or args.rule in _rules(entry))
        and (args.event is None or entry.get("event") == args.event)
        and (args.job is None or str(entry.get("job_id")) == args.job)
        and (since is None or at is None or at >= since)
    )
