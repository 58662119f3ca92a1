"""What the demo prints, and its count of what differed."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable

from slurm_agent_tools import printing, render

_BOLD, _GREEN, _RED, _FAINT = "1", "32", "31", "2"


class Paper:
    """Plain lines on standard output, with colours on a terminal only."""

    def __init__(self, *, colours: bool | None = None) -> None:
        self._colours = sys.stdout.isatty() if colours is None else colours
        self._steps = 0
        self._latest = ""
        self.checks = 0
        self.differences: list[str] = []

    def step(self, title: str) -> None:
        """A numbered heading."""
        self._steps += 1
        printing.lines(["", self._painted(_BOLD, f"{self._steps}. {title}")])

    def call(self, tool: str, arguments: Iterable[tuple[str, object]]) -> None:
        """The tool call that follows."""
        words = " ".join(f"{name}={_words(value)}" for name, value in arguments)
        printing.lines([self._painted(_FAINT, line) for line in _wrapped(f"> {tool} {words}")])

    def say(self, text: str) -> None:
        """Text, wrapped and indented; its own line ends are kept."""
        for line in text.splitlines():
            printing.lines(_wrapped(line))

    def page(self, title: str, text: str) -> None:
        """A file or an output as it is, line by line."""
        lines = [f"   | {render.plain(line)}".rstrip() for line in text.splitlines()]
        printing.lines([self._painted(_FAINT, f"   {title}"), *lines])

    def news(self, what: str, text: str) -> None:
        """Say the text unless the last news was the same."""
        if what != self._latest:
            self._latest = what
            self.say(text)

    def check(self, what: str, ours: object, slurms: object) -> None:
        """One comparison of what our tools said with what Slurm (or the file system) says."""
        self.checks += 1
        if ours == slurms:
            printing.lines([self._painted(_GREEN, f"   = {what}: {render.plain(_words(slurms))}")])
        else:
            line = f"{what}: we say {_words(ours)}, it is {_words(slurms)}"
            self.differences.append(line)
            printing.lines([self._painted(_RED, f"   ! {render.plain(line)}")])

    def end(self) -> int:
        """The closing line; 0 when everything agreed, else 1."""
        bad = len(self.differences)
        verdict = f"{self.checks - bad} of {self.checks} checks agree with what Slurm says."
        printing.lines(["", self._painted(_RED if bad else _GREEN, verdict)])
        return 1 if bad else 0

    def _painted(self, colour: str, text: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self._colours else text


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(render.plain(text), 110, initial_indent="   ", subsequent_indent="     ") or [""]


def _words(value: object) -> str:
    """A value as a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_words(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return str(value)
