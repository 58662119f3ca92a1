"""What a person at a terminal sees: the pieces of `render` with colours and tables, drawn by rich.

Texts come from jobs: they are Text objects without hidden signs, never rich's markup, whatever brackets they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from slurm_agent_tools.api import render
from slurm_agent_tools.text import sanitize

_STYLES = {
    "heading": "bold",
    "faint": "dim",
    **dict.fromkeys(("ok", "allow", "submitted", "finished", "valid", "written", "saved", "cancelled"), "green"),
    **dict.fromkeys(("warn", "justify", "partial", "unconfirmed", "running", "pending", "unknown"), "yellow"),
    **dict.fromkeys(("failed", "approve", "deny", "blocked", "invalid", "no_log"), "red"),
}

_INDENT = 4


def draw(pieces: Iterable[render.Piece], file: TextIO, *, anew: bool = False) -> None:
    """Write the pieces to a terminal. Its width, colours and wishes (NO_COLOR, TERM) are rich's to find out.

    `anew`: in place of what it shows.
    """
    console = Console(file=file, markup=False, emoji=False, highlight=False)
    if anew:
        console.clear()
    encoding = file.encoding or "utf-8"
    for piece in pieces:
        if isinstance(piece, render.Line):
            console.print(_text(piece.text, encoding, _STYLES.get(piece.style, "")), soft_wrap=True)
        else:
            console.print(Padding(_table(piece, encoding), (0, 0, 0, _INDENT)))
    file.flush()


@contextmanager
def bar(file: TextIO) -> Iterator[Callable[[float, float | None, str], None]]:
    """A line that tells how many of how many bytes are over, and of which file; gone at the end."""
    console = Console(file=file, markup=False, emoji=False, highlight=False)
    shown = [BarColumn(), DownloadColumn(), TextColumn("{task.description}", markup=False)]
    with Progress(*shown, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total, name: progress.update(
            task, completed=done, total=total, description=sanitize.line(name)[:60]
        )


@contextmanager
def bars(file: TextIO) -> Iterator[Callable[[str, int, int, str], None]]:
    """A line for each name that is told of: how many of how many are over, and a word on it; they stay at the end."""
    console = Console(file=file, markup=False, emoji=False, highlight=False)
    name, what = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[what]}", markup=False)
    with Progress(name, BarColumn(), MofNCompleteColumn(), what, console=console) as progress:
        known: dict[str, TaskID] = {}

        def tell(stage: str, done: int, total: int, text: str) -> None:
            if stage not in known:
                known[stage] = progress.add_task(sanitize.line(stage)[:40], total=total, what="")
            progress.update(known[stage], completed=done, total=total, what=sanitize.line(text)[:60])

        yield tell


def _text(text: str, encoding: str, style: str = "") -> Text:
    """As the terminal can show it: what its encoding lacks is escaped."""
    return Text(sanitize.visible(text).encode(encoding, "backslashreplace").decode(encoding), style)


def _table(piece: render.Table, encoding: str) -> Table:
    """A table without lines around it; words that are too long for their column go on below."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in piece.header:
        made.add_column(_text(name, encoding), overflow="fold")
    for row in piece.rows:
        made.add_row(*(_text(cell, encoding) for cell in row))
    return made
