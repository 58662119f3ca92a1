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
    if file.how in {"make", "config", "other", "notebook"}:
        return file.how
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


def modules(name: str, importer: str, folders: Sequence[str]) -> Iterator[list[str]]:
    """For each part of a dotted name the paths that its module may have, seen from the importing file and upwards."""
    bare = name.lstrip(".")
    here = posixpath.dirname(importer)
    if bare != name:
        for _ in range(len(name) - len(bare) - 1):
            here = posixpath.dirname(here)
        roots = [here]
        yield [posixpath.join(here, "__init__.py")]
    else:
        roots = list(dict.fromkeys((here, "", *folders, posixpath.dirname(here))))
    parts = [part for part in bare.split(".") if part.isidentifier()]
    for length in range(1, min(len(parts), 6) + 1):
        inner = "/".join(parts[:length])
        yield [
            posixpath.normpath(posixpath.join(root, path))
            for root in roots
            for path in (f"{inner}.py", f"{inner}/__init__.py")
        ]


def under(path: str, folders: Sequence[str]) -> bool:
    """Whether a path lies in one of these folders, as far as both are plain."""
    normal = posixpath.normpath(path)
    plain = [posixpath.normpath(folder) for folder in plain_folders(folders)]
    return any(folder != "." and normal.startswith(f"{folder}/") for folder in plain)


def plain_folders(folders: Sequence[str]) -> list[str]:
    """Folders without computed parts."""
    return [folder for folder in folders if folder and UNKNOWN not in folder and not SIGNS.search(folder)]
