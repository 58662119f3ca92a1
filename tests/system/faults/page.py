"""The troubleshooting page, and what the tests of faults share."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.system.faces import Place

PAGE = Path(__file__).parents[3] / "docs/guides/troubleshooting.md"
LONG = bool(os.environ.get("SOAK"))
SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu --time=5\n#SBATCH --output=/dev/null\nsleep {}\n"
# What a sbatch of ours does with a dry run: it asks the real one.
TRIAL = 'for word; do [ "$word" = --test-only ] && exec /usr/bin/sbatch "$@"; done\n'


def quoted(heading: str) -> list[str]:
    """What the page quotes under a heading, as patterns."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line.removeprefix("> ") for line in section.splitlines() if line.startswith("> ")]
    return [".*".join(map(re.escape, line.split("…"))) for line in lines]


def says(heading: str, text: str, number: int = 0) -> None:
    """The message is the one that the page quotes."""
    assert re.search(quoted(heading)[number], text, re.DOTALL), (quoted(heading)[number], text)


def script(place: Place, name: str, seconds: float = 0.1) -> str:
    (place.project / f"{name}.sh").write_text(SCRIPT.format(seconds) + f": {name}\n")
    place.own()
    return f"{name}.sh"


def submitted(place: Place, name: str, *words: str) -> str:
    """A submission that must succeed; its job id."""
    code, reply = place.cli("submit_job", f"--script={script(place, name)}", f"--job-name={name}", *words)
    assert (code, reply["status"]) == (0, "submitted"), reply
    return reply["job_id"]
