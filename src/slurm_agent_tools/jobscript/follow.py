"""Which file a command means, and in which language it is written."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from slurm_agent_tools.jobscript.program import File
from slurm_agent_tools.jobscript.words import SIGNS, UNKNOWN
from slurm_agent_tools.jobscript.wrappers import SHELLS, name_of


def interpreter(line: str) -> str:
    """`shell`, `python`, or the name of something that is not read, from the words behind `#!`."""
    words = [name_of(word) for word in line.split()]
    name = next((word for word in words if word != "env" and not word.startswith("-") and "=" not in word), "")
    if name in SHELLS - {"zsh"}:
        return "shell"
    return "python" if re.fullmatch(r"python[\d.]*", name) else name or "nothing"


def kind(file: File, content: str) -> str:
    """`shell`, `python`, `nothing` for what is no text, or the name of another language."""
    if "\0" in content:
        return "nothing"
    if file.how in {"source", "shell"}:
        return "shell"
    if file.how in {"python", "module"} or file.path.endswith(".py"):
        return "python"
    return interpreter(content.split("\n", 1)[0][2:]) if content.startswith("#!") else "shell"


def candidates(file: File, folders: Sequence[str]) -> Iterator[str]:
    """Paths in the project that a file may have, seen from the project's root, the script's folder and each `cd`."""
    path = file.path
    if file.how == "module":
        inner = path.replace(".", "/")
        paths = [f"{inner}.py", f"{inner}/__main__.py"] if re.fullmatch(r"[\w.]+", path) else []
    elif SIGNS.search(path):
        # A computed folder (`$SLURM_SUBMIT_DIR/run.sh`, `$(dirname "$0")/lib.sh`): the rest is looked for.
        behind = SIGNS.split(path)[-1]
        paths = [behind.lstrip("/")] if behind.startswith("/") and len(behind) > 1 else []
    else:
        paths = [path]
    for one in paths:
        if posixpath.isabs(one):
            yield posixpath.normpath(one)
            continue
        for folder in dict.fromkeys(("", *folders)):
            yield posixpath.normpath(posixpath.join(folder, one))


def plain_folders(folders: Sequence[str]) -> list[str]:
    """Folders without computed parts."""
    return [folder for folder in folders if folder and UNKNOWN not in folder and not SIGNS.search(folder)]
