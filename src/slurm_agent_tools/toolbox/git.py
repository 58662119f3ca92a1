"""The project's git state, without running anything that the repository configures."""

from __future__ import annotations

import os

from slurm_agent_tools import process
from slurm_agent_tools.replies import GitState

_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
# A repository inside the repository would be looked at with its own settings.
_STATUS = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
_FILTERS = ("config", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")


async def state(project: str) -> GitState:
    """Commit, branch and whether tracked files differ; all None outside a repository or without git."""
    commit = await _git(project, "rev-parse", "HEAD")
    if not commit:
        return GitState()
    branch = await _git(project, "rev-parse", "--abbrev-ref", "HEAD")
    changes = None if await _own_filters(project) else await _git(project, *_STATUS)
    return GitState(commit=commit, branch=branch or None, dirty=None if changes is None else bool(changes))


async def _own_filters(project: str) -> bool:
    """Whether the repository itself names programs that git would run to compare files: then it is not asked."""
    listed = await _git(project, *_FILTERS, nothing=1)
    return listed is None or any(line.split()[0] not in {"global", "system"} for line in listed.splitlines())


async def _git(project: str, *words: str, nothing: int = 0) -> str | None:
    """What git says, empty text with the exit code `nothing`; None where it fails or is not there."""
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    try:
        ended = await process.run(
            ["git", *_SAFE, "-C", project, *words], env={**env, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}, timeout=5
        )
    except FileNotFoundError:
        return None
    return ended.stdout.decode("utf-8", "replace").strip() if ended.exit_code in {0, nothing} else None
