"""What git says of a folder, for a saved result, and which files it tracks.

A repository's settings name filters, monitors, hooks and ways to fetch, and those of the user may name more for it. So
git never reads either: commit and branch are read from the repository's files here, and git compares the work tree by
a folder of ours that stands for the repository, with its objects and its index and none of its settings.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from slurm_agent_tools.models.result import GitState
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport.process import program, run, search_path

_SMALL, _REFS = 64 * 2**10, 16 * 2**20  # bytes: a file of one line or of settings; every packed branch and tag

_MOST_OBJECTS = 200_000  # files that are looked at; git packs them from some thousands on

_HASH = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")

_BRANCH = re.compile(r"ref: (refs/(?:[^\x00-\x20/.][^\x00-\x20/]*/)*[^\x00-\x20/.][^\x00-\x20/]*)")

# A repository inside the repository would be looked at with its own settings.
_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=dirty")

_TRACKED = ("ls-files", "-z")

_ATTRIBUTE = ("check-attr", "-z", "--stdin", "filter")

# Settings that say how files are compared and can name no program, as git itself writes them.
_SECTION = re.compile(r"\s*\[\s*([^\]\s]+)[^\]]*\]")
_COMPARED = re.compile(
    r"\s*(filemode|symlinks|ignorecase|autocrlf|eol)\s*=\s*(true|false|input|lf|crlf|native)\s*", re.IGNORECASE
)

_BOUNDED = 'ulimit -d 400000 2>/dev/null; exec "$@"'  # KB; what git maps of files does not count

# No settings of the machine or the user, no locks, no fetching, no question.
_ALONE = {
    "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Repository:
    """Where its parts lie: the work tree, the folder of this work tree's own state, and that of all work trees."""

    tree: Path
    own: Path
    shared: Path


async def git_state(project: str) -> GitState:
    """Commit, branch (`HEAD` where there is none) and whether tracked files differ; None for what is not known."""
    repository = await anyio.to_thread.run_sync(_repository, Path(project))
    if repository is None:
        return GitState()
    branch, commit = await anyio.to_thread.run_sync(_head, repository)
    if commit is None:
        return GitState()
    return GitState(commit=commit, branch=branch, dirty=await _changed(repository, commit, Path(project)))


async def tracked_files(project: str) -> tuple[str, ...] | None:
    """The files of a project that git tracks, relative to it, sorted; None without a repository that can be read."""
    root, repository = await anyio.to_thread.run_sync(_rooted, project)
    if repository is None:
        return None
    index, git = await anyio.to_thread.run_sync(_index, repository), _bounded_git(root)
    if index is None or not git:
        return None
    _, commit = await anyio.to_thread.run_sync(_head, repository)
    with tempfile.TemporaryDirectory(prefix="slurm-agent-") as folder:
        env = _prepared(repository, root, Path(folder), commit or "ref: refs/heads/none", index)
        listed = await _said([*git, *_TRACKED], repository.tree, env)
    if listed is None:
        return None
    below = root.relative_to(repository.tree).as_posix()
    stem = b"" if below == "." else os.fsencode(below) + b"/"
    names = {name.removeprefix(stem) for name in listed.split(b"\0") if name and name.startswith(stem)}
    return tuple(sorted(name.decode("utf-8", "surrogateescape") for name in names))


def _rooted(project: str) -> tuple[Path, _Repository | None]:
    root = Path(project).resolve()
    return root, _repository(root)


def _prepared(repository: _Repository, project: Path, folder: Path, head: str, index: str) -> dict[str, str]:
    """Make a folder the stand-in of a repository; the environment in which git reads it."""
    _stand_in(folder, head, _text(repository.shared / "config", _SMALL))
    return _ALONE | {
        "PATH": search_path(os.environ.get("PATH", os.defpath), project), "HOME": str(folder), "GIT_DIR": str(folder),
        "GIT_WORK_TREE": str(repository.tree), "GIT_INDEX_FILE": index,
        "GIT_OBJECT_DIRECTORY": str(repository.shared / "objects"),
    }  # fmt: skip


def _repository(project: Path) -> _Repository | None:
    """The repository of the nearest folder upward that has one."""
    project = project.resolve()
    for tree in (project, *project.parents):
        said = _text(tree / ".git", _SMALL)  # a file, where its folder lies elsewhere
        own = tree / (said.removeprefix("gitdir:").strip() if said.startswith("gitdir:") else ".git")
        if _text(own / "HEAD", _SMALL):
            return _Repository(tree, own, own / _text(own / "commondir", _SMALL).strip())
    return None


def _head(repository: _Repository) -> tuple[str, str | None]:
    """The branch and the commit of the work tree."""
    said = _text(repository.own / "HEAD", _SMALL).strip()
    branch = _BRANCH.fullmatch(said)
    if branch is None:
        return "HEAD", said if _HASH.fullmatch(said) else None
    name = branch[1]
    commit = _text(repository.shared / name, _SMALL).strip()
    if _HASH.fullmatch(commit) is None:
        packed = _text(repository.shared / "packed-refs", _REFS)
        line = re.search(rf"^({_HASH.pattern}) {re.escape(name)}$", packed, re.MULTILINE)
        return name.removeprefix("refs/heads/"), line[1] if line else None
    return name.removeprefix("refs/heads/"), commit


def _text(path: Path, limit: int) -> str:
    """A regular file of at most `limit` bytes, links resolved; empty where there is none."""
    try:
        return safe_open.read(path, limit).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return ""


async def _changed(repository: _Repository, commit: str, project: Path) -> bool | None:
    """Whether a tracked file differs from the commit; None where only a filter could tell, and git is not asked."""
    index, git = await anyio.to_thread.run_sync(_index, repository), _bounded_git(project)
    if index is None or not git:
        return None
    with tempfile.TemporaryDirectory(prefix="slurm-agent-") as folder:
        env = _prepared(repository, project, Path(folder), commit, index)
        tracked = await _said([*git, *_TRACKED], repository.tree, env)
        if tracked is None or await anyio.to_thread.run_sync(_waits, repository.tree, tracked):
            return None
        listed = await _said([*git, *_STATUS], repository.tree, env)
        if not listed:
            return None if listed is None else False
        entries = listed.removesuffix(b"\0").split(b"\0")
        if any(entry[:2] != b" M" for entry in entries):  # staged, deleted, of another kind
            return True
        paths = b"".join(entry[3:] + b"\0" for entry in entries)
        filters = (await _said([*git, *_ATTRIBUTE], repository.tree, env, paths) or b"").split(b"\0")[2::3]
        return True if {b"unspecified", b"unset"} & set(filters) else None


def _index(repository: _Repository) -> str | None:
    """Where the index is; None where it, or another file that git reads to its end, is not a regular one."""
    index = os.path.realpath(repository.own / "index")
    elsewhere = repository.shared / "objects/info/alternates"
    ends = Path(index).is_file() and (not elsewhere.exists() or elsewhere.is_file())
    return index if ends and _stored(repository.shared / "objects") else None


def _stored(objects: Path) -> bool:
    """Whether all objects are stored files: at a pipe git would wait. Not of more than anybody has."""
    folders, left = [str(objects)], _MOST_OBJECTS
    try:
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir():
                        folders.append(entry.path)
                    elif left < 0 or not entry.is_file():
                        return False
    except OSError:
        return False
    return left >= 0


def _waits(tree: Path, tracked: bytes) -> bool:
    """Whether git would wait for somebody: it opens the attributes of each folder, and for a pipe that never ends.

    Also where there are more folders than anybody has.
    """
    folders, root, left = {b""}, os.fsencode(tree), _REFS
    for path in tracked.split(b"\0"):
        folder = path.rpartition(b"/")[0]
        while folder not in folders:
            folders.add(folder)
            left -= len(folder)
            if left < 0:  # names that somebody made up: each part of each of them is a folder
                return True
            folder = folder.rpartition(b"/")[0]
    for folder in folders:
        try:
            kind = os.lstat(b"/".join([root, folder, b".gitattributes"])).st_mode
        except OSError:
            continue
        if not (stat.S_ISREG(kind) or stat.S_ISLNK(kind) or stat.S_ISDIR(kind)):  # git follows no link there
            return True
    return False


def _bounded_git(project: Path) -> list[str]:
    """git as it is started: an object that unfolds without end ends git, not this machine. Empty where it is not."""
    git, shell = program("git", project), program("sh", project)
    if git is None:
        return []
    return [git] if shell is None else [shell, "-c", _BOUNDED, "sh", git]


def _stand_in(folder: Path, commit: str, settings: str) -> None:
    """Make a folder a repository at this commit, with those of the settings that say how files are compared."""
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text(f"{commit}\n", encoding="utf-8")
    lines = ["[core]", "bare = false", *(f"{name} = {value}" for name, value in _comparing(settings).items())]
    if len(commit) == 64:
        lines += ["repositoryformatversion = 1", "[extensions]", "objectformat = sha256"]
    (folder / "config").write_text("\n".join([*lines, ""]), encoding="utf-8")


def _comparing(settings: str) -> dict[str, str]:
    section, found = "", dict[str, str]()
    for line in settings.splitlines():
        heading, value = _SECTION.match(line), _COMPARED.fullmatch(line)
        if heading is not None:
            section = heading[1].lower()
        elif value is not None and section == "core":
            found[value[1].lower()] = value[2].lower()
    return found


async def _said(argv: Sequence[str], tree: Path, env: Mapping[str, str], stdin: bytes = b"") -> bytes | None:
    """What git says in a work tree; None where it fails."""
    try:
        ended = await run(argv, stdin=stdin, env=env, cwd=str(tree), timeout=5)
    except OSError:
        return None
    return ended.stdout if ended.exit_code == 0 and not ended.truncated else None
