"""The command line: one subcommand per tool, and the commands around them.

PYTHONPATH comes before Python's own library, and an empty part of it is the working folder. What of it leads into the
project is left out here, for this process and those that it starts, before any other module is imported: a file of the
project may have the name of a module. What the interpreter itself loads from there is too early for that.
"""

import os
import sys

_MARKS = ("slurm-agent.toml", ".git")


def _outside(path: str) -> bool:
    """Whether a folder lies outside the project, links resolved; that of our own package counts as outside."""
    place = os.path.join(os.path.realpath(path), "")
    return not place.startswith(_PROJECT) or __file__.startswith(place)


def _project() -> str:
    """The folder that the settings will take for the project, as far as it is known before they are read."""
    folder = start = os.path.realpath(os.environ.get("SLURM_AGENT_PROJECT_ROOT") or os.getcwd())
    while not any(os.path.lexists(os.path.join(folder, mark)) for mark in _MARKS):
        if os.path.dirname(folder) == folder:
            return start
        folder = os.path.dirname(folder)
    return folder


_NAMED = os.environ.get("PYTHONPATH", "")
if _NAMED and not sys.flags.ignore_environment:
    _PROJECT = os.path.join(_project(), "")
    _KEPT = [part for part in _NAMED.split(os.pathsep) if os.path.isabs(part) and _outside(part)]
    os.environ["PYTHONPATH"] = os.pathsep.join(_KEPT)
    _DROPPED = {os.path.abspath(part) for part in _NAMED.split(os.pathsep)} - {os.path.abspath(part) for part in _KEPT}
    sys.path[:] = [part for part in sys.path if part not in _DROPPED]
