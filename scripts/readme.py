"""Run the demo; put what it prints into README.md, and the plot of its campaign beside it. Run by `make readme`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"(<!-- demo output: [^\n]*-->\n```text\n).*?(```\n<!-- end of demo output -->)", re.DOTALL)


PICTURE = README.parent / "docs" / "images" / "campaign.svg"
PROJECT = re.compile(r"^project of the user \S+: (.+)$", re.MULTILINE)
PLOT = re.compile(r'<svg (?:(?!</svg>).)*aria-label="training: loss by rate".*?</svg>', re.DOTALL)


def main() -> int:
    """Refresh both; the demo's exit code when it did not agree with Slurm."""
    demo = [sys.executable, "-m", "slurm_agent_tools", "demo", "--yes"]
    shown = subprocess.run(demo, stdout=subprocess.PIPE, text=True, check=False)
    if shown.returncode == 0:
        text = README.read_text(encoding="utf-8")
        README.write_text(BLOCK.sub(lambda block: block[1] + shown.stdout + block[2], text), encoding="utf-8")
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(plot(shown.stdout), encoding="utf-8")
    return shown.returncode


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
