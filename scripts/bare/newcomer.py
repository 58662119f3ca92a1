"""What somebody does who has Python and nothing else: install it in each way, then the tutorial.

The system is a bare one without make and git, with what Debian has apart from Python: `python3-venv` and `pipx`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import system
from system import View

PYTHON_ONLY = "python-only"
INSTALLED = "installed"
DIST = "/srv/dist"  # where the files of a release lie in there
_TAKE = "apt-get purge -y -q --autoremove make git"
_GIVE = "apt-get install -y -q --no-install-recommends python3-venv pipx"


@dataclass(frozen=True)
class Step:
    """A command in the bare system."""

    name: str
    view: View
    command: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)


def steps(folder: Path, dist: Path) -> Iterator[Step]:
    """All of them; `dist` has what `make dist` made, when the first is asked for."""
    _hand_over(folder, dist)
    python = View(layer=PYTHON_ONLY)
    yield Step("Python only", python, ("sh", "-c", f"(apt-get update -q && {_TAKE} && {_GIVE}) >/dev/null"))
    ways = ("python3", "tests/bare/install_ways.py", DIST)
    user = View(user=system.NEWCOMER, over=PYTHON_ONLY, layer=INSTALLED)
    yield Step("wheel, pipx, uv and bundle, by a newcomer", user, ways)
    home = f"/home/{system.NEWCOMER}"
    walk = (f"{home}/tools/bin/python", "tests/bare/tutorial_walk.py")
    yield Step("the tutorial, by a newcomer", View(over=INSTALLED), walk, {"PYTHONPATH": "/src"})


def _hand_over(folder: Path, dist: Path) -> None:
    """The files of a release as a download leaves them there."""
    place = folder / "layers" / PYTHON_ONLY / "changes" / DIST[1:]
    place.mkdir(parents=True)
    for made in [*dist.glob("*.whl"), *dist.glob("*.mcpb")]:
        shutil.copy(made, place)
