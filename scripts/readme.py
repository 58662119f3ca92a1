"""Run the demo once; put what it prints, its moving picture and the plot of its campaign into the documentation.

Run by `make readme`.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import moving_picture

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "tutorial" / "demo.md"
MOVING = DOCS / "images" / "demo.svg"
PLOTTED = DOCS / "images" / "campaign.svg"
BLOCK = re.compile(r"(<!-- demo output: [^\n]*-->\n```text\n).*?(```\n<!-- end of demo output -->)", re.DOTALL)
PROJECT = re.compile(r"^project of the user \S+: (.+)$", re.MULTILINE)
PLOT = re.compile(r'<svg (?:(?!</svg>).)*aria-label="training: loss by rate".*?</svg>', re.DOTALL)
LEFT_OUT = re.compile(r"   \| |   \|$|memory limits:|project of the user")  # of the picture: whole files and places
WORDS = (
    "A terminal in which make demo runs: an agent's calls look at a cluster, submit a job, diagnose one that ran out "
    "of memory, and are refused what the policy forbids; each answer is compared with what Slurm says."
)


def main() -> int:
    """Refresh all three; the demo's exit code when it did not agree with Slurm."""
    demo = [sys.executable, "-m", "slurm_agent_tools", "demo", "--yes"]
    code, lines = moving_picture.record(demo, {**os.environ, "PYTHONUNBUFFERED": "1"})
    if code == 0:
        output = "".join(f"{line.text}\n" for line in lines)
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(BLOCK.sub(lambda block: block[1] + output + block[2], page), encoding="utf-8")
        picture = moving_picture.draw(moving_picture.shown(lines, LEFT_OUT), "make demo", WORDS)
        MOVING.write_text(picture, encoding="utf-8")
        PLOTTED.write_text(plot(output), encoding="utf-8")
    return code


def plot(output: str) -> str:
    """The plot of the report that the demo's campaign wrote."""
    project = PROJECT.search(output)
    page = "" if project is None else (Path(project[1]) / "campaigns/rates.report.html").read_text(encoding="utf-8")
    found = PLOT.search(page)
    if found is None:
        raise SystemExit("the demo's report has no plot of the loss by the rate")
    return f"{found[0]}\n"


if __name__ == "__main__":
    sys.exit(main())
