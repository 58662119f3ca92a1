"""Draw what a program printed, and when, as a picture that moves: one SVG file, without a script in it.

The lines come in at the bottom of a window, as they came; pauses are shortened. Who asked their system for less motion
sees the last window, standing.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

ROWS, COLUMNS = 26, 112
WIDTH, HEIGHT, MARGIN, BAR = 7.9, 17, 14, 30  # of a character, a line, the edge and the title, in pixels
SHORTEST, LONGEST, LAST = 0.22, 1.4, 4.0  # seconds that a line stands alone, and the last window
STYLES = (
    (re.compile(r"\d+\. |\d+ of \d+ checks"), "head"),
    (re.compile(r" {3}[>$] "), "call"),
    (re.compile(r" {3}= "), "same"),
    (re.compile(r" {3}! "), "wrong"),
    (re.compile(r" {3}\.\.\. "), "faint"),
)
LIGHTS = ("#ff5f57", "#febc2e", "#28c840")
LOOK = """
  text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #c9d1d9; white-space: pre }
  .title { fill: #8b949e } .head { fill: #ffffff; font-weight: bold } .call { fill: #79c0ff } .same { fill: #7ee787 }
  .wrong { fill: #ff7b72 } .faint { fill: #8b949e }
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output, and the second at which it came."""

    at: float
    text: str


def record(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int, list[Line]]:
    """Run a program to its end: its exit code, and what it printed."""
    begin = time.monotonic()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=dict(environment)) as process:
        lines = [Line(time.monotonic() - begin, line.rstrip("\n")) for line in process.stdout or ()]
    return process.returncode, lines


def shown(lines: Iterable[Line], left_out: re.Pattern[str]) -> list[Line]:
    """The lines of the picture, at the moments at which they come in it."""
    found: list[Line] = []
    before = moment = 0.0
    for line in lines:
        if not left_out.match(line.text):
            moment += min(max(line.at - before, SHORTEST), LONGEST)
            found.append(Line(moment, line.text[:COLUMNS]))
        before = line.at
    return found


def draw(lines: Sequence[Line], title: str, words: str) -> str:
    """The picture; `words` say what is on it to who cannot see it."""
    wide, high = round(COLUMNS * WIDTH + 2 * MARGIN), ROWS * HEIGHT + 2 * MARGIN + BAR
    whole = lines[-1].at + LAST
    steps = " ".join(f"{100 * line.at / whole:.2f}% {{ {_up(count)} }}" for count, line in enumerate(lines, 1))
    rows = "\n".join(
        f'<text class="{_style(line.text)}" x="{MARGIN}" y="{(number + ROWS + 1) * HEIGHT}">{escape(line.text)}</text>'
        for number, line in enumerate(lines)
        if line.text
    )
    lights = "".join(
        f'<circle cx="{20 + 18 * place}" cy="16" r="5" fill="{fill}"/>' for place, fill in enumerate(LIGHTS)
    )
    size = f'viewBox="0 0 {wide} {high}" width="{wide}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(words)}">
<style>{LOOK}  .moving {{ animation: come {whole:.1f}s step-end infinite }}
  @keyframes come {{ 0% {{ {_up(0)} }} {steps} }}
  @media (prefers-reduced-motion: reduce) {{ .moving {{ animation: none; {_up(len(lines))} }} }}
</style>
<rect width="{wide}" height="{high}" rx="8" fill="#0d1117"/>
{lights}
<text class="title" x="{wide / 2:.0f}" y="20" text-anchor="middle">{escape(title)}</text>
<svg y="{BAR}" height="{ROWS * HEIGHT + 5}"><g class="moving" xml:space="preserve">
{rows}
</g></svg>
</svg>
"""


def _up(number: int) -> str:
    """The text is moved up by so many lines."""
    return f"transform: translateY({-number * HEIGHT}px)"


def _style(text: str) -> str:
    return next((name for pattern, name in STYLES if pattern.match(text)), "plain")
