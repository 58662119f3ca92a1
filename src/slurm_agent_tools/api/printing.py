"""What commands print: one JSON document on standard output, or a few lines for a person."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from slurm_agent_tools.api import render
from slurm_agent_tools.api.serialize import Document
from slurm_agent_tools.text import sanitize


def document(body: Document, *, as_json: bool) -> None:
    """The answer of a tool or a command."""
    if as_json:
        lines([json.dumps(body, indent=2, allow_nan=False)])
    else:
        show(render.pieces(body))


def show(pieces: Sequence[render.Piece], *, anew: bool = False) -> None:
    """Pieces for a person: drawn on a terminal, plain lines everywhere else. `anew`: in place of what it shows."""
    if sys.stdout.isatty():
        from slurm_agent_tools.api import drawing  # noqa: PLC0415 - rich takes 35 ms, and draws for terminals alone

        drawing.draw(pieces, sys.stdout, anew=anew)
    else:
        lines(render.lines(pieces))


def failure(body: Document, *, as_json: bool) -> None:
    """A failure: the document on standard output, or lines on standard error."""
    if as_json:
        document(body, as_json=True)
    else:
        note("\n".join(render.lines(render.pieces(body))))


def lines(texts: Iterable[str]) -> None:
    """Lines on standard output; what the terminal cannot encode is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    for text in map(sanitize.visible, texts):  # each is one line or more of ours; what was put into it steers nothing
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    sys.stdout.flush()


@contextmanager
def moving(stream: TextIO) -> Iterator[Callable[[float, float | None, str], None]]:
    """What shows a person at a terminal how many of how many bytes are over, and of which file; nothing elsewhere."""
    if stream.isatty():
        from slurm_agent_tools.api import drawing  # noqa: PLC0415 - see above

        with drawing.bar(stream) as moved:
            yield moved
    else:
        yield lambda *_: None


@contextmanager
def stages(stream: TextIO) -> Iterator[Callable[[str, int, int, str], None]]:
    """What shows a person at a terminal a bar for each stage: its name, done, all, a word; nothing elsewhere."""
    if stream.isatty():
        from slurm_agent_tools.api import drawing  # noqa: PLC0415 - see above

        with drawing.bars(stream) as tell:
            yield tell
    else:
        yield lambda *_: None


def note(text: str) -> None:
    """One line on standard error, beside the answer."""
    sys.stderr.write(sanitize.shown(text) + "\n")
    sys.stderr.flush()
