"""The person at this terminal: asked for a yes, or what a login node asks, such as a one-time code.

Nothing typed is kept or logged.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import anyio.to_thread

from slurm_agent_tools.errors import AgentToolsError

Prompts = Sequence[tuple[str, bool]]


async def at_terminal(title: str, instructions: str, prompts: Prompts) -> Sequence[str] | None:
    """The person at this terminal; None where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return await anyio.to_thread.run_sync(_typed, title, instructions, prompts)


def _typed(title: str, instructions: str, prompts: Prompts) -> Sequence[str] | None:
    import getpass  # noqa: PLC0415 - each command knows this way to ask, and few login nodes do

    for line in filter(None, (title, instructions)):
        sys.stderr.write(f"{ascii(line)[1:-1]}\n")
    try:
        return [_line(ascii(text)[1:-1]) if shown else getpass.getpass(ascii(text)[1:-1]) for text, shown in prompts]
    except (EOFError, KeyboardInterrupt):
        return None


def _line(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline().rstrip("\r\n")


# --- A yes: from the terminal that controls this process, and from nowhere else ---------------------------------------


@contextmanager
def person(what: str, otherwise: str = "") -> Iterator[tuple[TextIO, TextIO]]:
    """The terminal that controls this process. Raises AgentToolsError without one: a pipe is no person."""
    hint = f"Run it yourself in a terminal window{otherwise and f'; {otherwise}'}."
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AgentToolsError(f"{what} needs a person at a terminal, and this is none", hint=hint)
    try:
        handle = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError as error:
        raise AgentToolsError(f"{what} needs a person at a terminal, and there is none", hint=hint) from error
    reading = os.fdopen(handle, "r", encoding="utf-8", errors="replace")
    with reading, os.fdopen(os.dup(handle), "w", encoding="utf-8", errors="backslashreplace") as writing:
        yield reading, writing


def person_types(reading: TextIO, writing: TextIO, text: str) -> str:
    """The line that is typed once this is shown: what was typed or pasted before that answers nothing."""
    import termios  # noqa: PLC0415 - not everywhere, and neither is a terminal of this kind

    termios.tcflush(reading, termios.TCIFLUSH)
    writing.write(text)
    writing.flush()
    return reading.readline()
