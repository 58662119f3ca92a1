r"""A plan as a person reads it before a yes: every byte of it is there, on lines that no text in it can imitate.

Signs that cannot be seen are spelled out as Python spells them (\x1b, \u202e), and \x20{90} stands for 90 blanks. Long
lines go on below, behind a `+`; each line of the script stands behind its number.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache

from slurm_agent_tools.text import sanitize

COLUMNS = 80

_GUTTER = 8

_PLAIN_BLANKS = 40
"""Blanks in a row that are shown as they are; in more of them the eye loses what comes behind."""

_BEGIN, _END = "--- the script", "--- end of the script ---"

_REASONS = "needs a person because"

_PROMPT = 6
"""Rows of a terminal for what is asked behind a page: nothing of the page may leave the screen for it."""

_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})

_UNSEEN = frozenset({"Mn", "Me", "Zs", "Cn"})
"""Kinds of signs that sit on another one, are blanks of another kind, or stand for no character."""

_DRAWS_NOTHING = re.compile("[\u1160-\u11ff\u2800\ud7b0-\ud7ff]")
"""Letters that are drawn into the one before, and a picture that is empty: alone they are nothing that is seen."""


def head(name: str, sha256: str, expires: datetime) -> str:
    """The first lines of what is shown and signed: they bind it to one question, one plan and one time."""
    until = expires.isoformat(timespec="seconds")
    return f"slurm-agent-tools approval\nid: {name}\nplan: {sha256}\nexpires: {until}\n"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """One `name: value` a line."""
    return "".join(f"{line}\n" for name, value in pairs for line in _folded(f"{name}: {spelled(value)}", COLUMNS))


def reasons(lines: Sequence[str], asked_by: str) -> str:
    """Why a person is asked, a rule a line, and by whom."""
    told = [f"{_REASONS}:", *(f"  {spelled(line)}" for line in lines), f"asked by: {spelled(asked_by)}"]
    return "".join(f"{one}\n" for line in told for one in _folded(line, COLUMNS))


def reasons_fit(text: str, rules: Sequence[str]) -> bool:
    """Whether a text gives a reason for each of these rules and names who asked, and holds nothing else.

    Nothing that a terminal would act on may be in it: it could paint over what is read.
    """
    begins = [f"{_REASONS}:", *(f"  {rule}: " for rule in rules), "asked by: "]
    lines = [line for line in text.splitlines() if not line.startswith(f"{'':>5} + ")]
    return _plain(text) and len(lines) == len(begins) and all(map(str.startswith, lines, begins))


@lru_cache(maxsize=4)  # of a megabyte it takes a second, and one question asks for it several times
def script(data: bytes) -> str:
    """All lines of a script, each behind its number."""
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    if not lines[-1]:
        lines.pop()
    odd: list[int] = []
    rows: list[str] = []
    for number, line in enumerate(lines, 1):
        shown = spelled(line)
        odd += [number] if shown.lstrip(" ") != line.lstrip(" \t") else []
        rows += _numbered(number, shown)
    told = f"; signs that cannot be seen are spelled out in lines {_listed(odd)}" if odd else ""
    return "\n".join([f"{_BEGIN}: {len(lines)} lines, {len(data)} bytes{told} ---", *rows, _END, ""])


def _numbered(number: int, line: str) -> Iterator[str]:
    for place, piece in enumerate(_pieces(line, COLUMNS - _GUTTER)):
        yield f"{number:>5} | {piece}" if place == 0 else f"{'':>5} + {piece}"


def _listed(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - 20} more" if len(numbers) > 20 else ""
    return ", ".join(map(str, numbers[:20])) + more


def spelled(line: str) -> str:
    """One line in which everything can be seen. Tabs at its beginning are blanks; what stands at its end is spelled."""
    start = len(line) - len(line.lstrip(" \t"))
    body = line[start:].rstrip(" \t")
    end = line[start + len(body) :] if body else ""
    shown = "".join(map(_seen, sanitize.line(body))) if not body.isascii() else sanitize.line(body)
    blanks = line[:start].expandtabs(8) if body else ""
    last = line[:start] if not body else end
    return _runs(blanks) + _runs(shown) + "".join(_counted(one[0]) for one in re.finditer(r" +|\t+", last))


def _seen(sign: str) -> str:
    """Signs that nobody would see, or that turn the direction of a line, spelled out."""
    unseen = (unicodedata.category(sign) in _UNSEEN and sign != " ") or _DRAWS_NOTHING.match(sign)
    odd = unseen or unicodedata.bidirectional(sign) in _RIGHT_TO_LEFT
    return sign.encode("unicode_escape", "surrogatepass").decode() if odd else sign


def _runs(text: str) -> str:
    return re.sub(rf" {{{_PLAIN_BLANKS + 1},}}", lambda found: _counted(found[0]), text)


def _counted(blanks: str) -> str:
    name = r"\t" if blanks[0] == "\t" else r"\x20"
    return name * len(blanks) if len(blanks) < 4 else f"{name}{{{len(blanks)}}}"


def _folded(line: str, columns: int) -> Iterator[str]:
    """The line in pieces, at a blank where there is one; what goes on stands behind a `+`, where no line can begin."""
    at = 0
    while at < len(line):
        room = columns - _GUTTER if at else columns
        # Each sign takes a column at least. What is behind them is not copied: a line may have a million signs.
        piece = next(_pieces(line[at : at + room], room))
        blank = piece.rfind(" ")
        if at + len(piece) < len(line) and blank > columns // 2:
            piece = piece[:blank]
        yield f"{'':>5} + {piece}" if at else piece
        at += len(piece)


def _pieces(line: str, columns: int) -> Iterator[str]:
    if line.isascii():
        yield from (line[place : place + columns] for place in range(0, max(len(line), 1), columns))
        return
    piece, used = "", 0
    for sign in line:
        wide = _width(sign)
        if used + wide > columns:
            yield piece
            piece, used = "", 0
        piece, used = piece + sign, used + wide
    yield piece


def _width(text: str) -> int:
    """The columns that a text takes."""
    return len(text) if text.isascii() else sum(1 + (unicodedata.east_asian_width(sign) in {"W", "F"}) for sign in text)


# --- The question at a client, and page by page at a terminal ---------------------------------------------------------


def fenced(text: str) -> str:
    """The text as a client shows it that reads Markdown: nothing in it is taken for markup."""
    longest = max((len(found[0]) for found in re.finditer("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def pages(text: str, size: os.terminal_size) -> list[str]:
    """The text in pages that fit a terminal, each line whole."""
    columns, rows = max(size.columns, 20), min(max(size.lines - _PROMPT, 8), 100)
    made, used = [""], 0
    for line in text.splitlines(keepends=True):
        # A wide sign that does not fit at the end of a row leaves a column empty.
        height = max(1, -(-_width(line.rstrip("\n")) // (columns - (not line.isascii()))))
        if used + height > rows and made[-1]:
            made.append("")
            used = 0
        made[-1] += line
        used += height
    return made


# --- What two plans have not in common --------------------------------------------------------------------------------


def differences(before: str, now: str, names: Sequence[str] | None = None) -> list[str]:
    """What differs in another plan, a sentence each; `names`: the facts that are compared, all but the head's."""
    old, new = _read(before), _read(now)
    told = [] if _plain(before) else ["its text holds signs that a terminal would act on"]
    told += [
        f"{name} was {_short(old.get(name))} and is {_short(new.get(name))}"
        for name in (dict.fromkeys([*old, *new]) if names is None else names)
        if old.get(name) != new.get(name)
    ]
    first, second = _lines(before), _lines(now)
    if first != second:
        at = next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), 0)
        told.append(f"the script differs from line {_line_number(second, at) or _line_number(first, at) or 1} on")
    return told


def _plain(text: str) -> bool:
    """Whether all of a text can be seen, as all can that was made here: somebody may have written into the ledger."""
    return sanitize.visible(text) == text


def value(plan: str, name: str) -> str | None:
    """A fact of a plan."""
    return _read(plan).get(name)


def _read(plan: str) -> dict[str, str]:
    """The facts of a plan, those of one name together; without what names the question, and why it is asked."""
    found: dict[str, list[str]] = {}  # joined once: a fact may stand in thousands of lines
    last = ""
    for line in plan.split(f"{_REASONS}:\n", 1)[0].splitlines()[4:]:
        if line.startswith(f"{'':>5} + "):
            found.setdefault(last, []).append(line[_GUTTER:])
            continue
        last, _, text = line.partition(": ")
        pieces = found.setdefault(last, [])
        pieces += [", ", text] if pieces else [text]
    return {name: "".join(pieces) for name, pieces in found.items()}


def _lines(plan: str) -> list[str]:
    return plan.partition(f"\n{_BEGIN}")[2].splitlines()[1:]


def _line_number(rows: Sequence[str], at: int) -> str | None:
    """The number of the line of a script to which a row belongs; None behind the last one."""
    if at >= len(rows) or rows[at] == _END:
        return None
    return next((row[:5].strip() for row in reversed(rows[: at + 1]) if row[6:7] == "|"), None)


def _short(text: str | None) -> str:
    return "nothing" if text is None else text if len(text) <= 200 else f"{text[:200]}..."
