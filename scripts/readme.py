"""Run the demo and put what it prints into README.md. Run by `make readme`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"(<!-- demo output: [^\n]*-->\n```text\n).*?(```\n<!-- end of demo output -->)", re.DOTALL)


def main() -> int:
    """Refresh the block; the demo's exit code when it did not agree with Slurm."""
    demo = [sys.executable, "-m", "slurm_agent_tools", "demo", "--yes"]
    shown = subprocess.run(demo, stdout=subprocess.PIPE, text=True, check=False)
    if shown.returncode == 0:
        text = README.read_text(encoding="utf-8")
        README.write_text(BLOCK.sub(lambda block: block[1] + shown.stdout + block[2], text), encoding="utf-8")
    return shown.returncode


if __name__ == "__main__":
    sys.exit(main())
