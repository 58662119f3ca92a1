"""The project's git state, without running anything that the repository configures."""

from __future__ import annotations

import os

from slurm_agent_tools import process
from slurm_agent_tools.replies import GitState

_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


async def state(project: str) -> GitState:
    """Commit, branch and whether tracked files differ; all None outside a repository or without git."""
    commit = await _git(project, "rev-parse", "HEAD")
    if commit is None:
        return GitState()
    branch = await _git(project, "rev-parse", "--abbrev-ref", "HEAD")
    changes = await _git(project, "status", "--porcelain", "--untracked-files=no")
    return GitState(commit=commit, branch=branch, dirty=None if changes is None else bool(changes))


async def _git(project: str, *words: str) -> str | None:
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    try:
        ended = await process.run(
            ["git", *_SAFE, "-C", project, *words], env={**env, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}, timeout=5
        )
    except FileNotFoundError:
        return None
    return ended.stdout.decode("utf-8", "replace").strip() if ended.exit_code == 0 else None
