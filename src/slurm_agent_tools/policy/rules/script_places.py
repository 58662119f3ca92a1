"""Where the lines, commands and here-documents of a script stand, looked for once for all that is found in it.

There may be hundreds of findings behind hundreds of thousands of lines: what is asked for each of them takes no look
at all of the script.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate

from slurm_agent_tools.models.request import ScriptLayout, ShellCommand

LEAVES = frozenset({"call", "declaration", "arithmetic", "test"})
"""Kinds of commands that hold no others in their lists."""


class _Spans:
    """Stretches of a text, by where they begin. Which of them are at a place is found without a look at each."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))  # of this one and all before it

    def touched(self, first: int, last: int) -> range:
        """The numbers of those that begin up to `last`, from the first one on that may end behind `first`."""
        return range(bisect_right(self._ends, first), bisect_right(self._starts, last))


class ScriptPlaces:
    """The beginnings of lines, the commands of each and its here-documents: looked for once, however much is found."""

    def __init__(self, lines: Sequence[str], layout: ScriptLayout | None) -> None:
        commands = layout.commands if layout is not None else ()
        self.begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self.functions = frozenset(one.name for one in commands if one.kind == "function")
        self._at = defaultdict[int, list[ShellCommand]](list)
        for one in commands:
            self._at[one.line].append(one)
        self._leaves = sorted((one for one in commands if one.kind in LEAVES), key=lambda one: (one.start, one.end))
        self._leaf_spans = _Spans((one.start, one.end) for one in self._leaves)
        self._documents = _Spans(span for one in commands for span in one.heredocs)

    def here(self, line: int) -> list[ShellCommand]:
        """The commands that begin in a line, or else those that go on in it."""
        if line in self._at:
            return self._at[line]
        first = self.begins[min(line, len(self.begins)) - 1]
        last = self.begins[line] - 1 if line < len(self.begins) else first
        over = (self._leaves[number] for number in self._leaf_spans.touched(first, last))
        return sorted((one for one in over if one.end > first), key=lambda one: one.index)

    def quoted(self, line: int) -> bool:
        """Whether a line stands in a here-document."""
        start = self.begins[min(line, len(self.begins)) - 1]
        return bool(self._documents.touched(start, start))
