"""What a login node asks of the person at this terminal, such as a one-time code. Nothing typed is kept or logged."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import anyio.to_thread

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
