import ast
import functools
from importlib.util import find_spec
from pathlib import Path

import pytest

POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "spwd", "syslog", "termios", "tty"}
ROOTS = ("slurm.ssh", "slurm.sshlogin", "slurm.sshtarget", "slurm.sshlink", "slurm.sshsession", "slurm.sshfiles", "slurm.checkup",
         "mcp", "serving", "cli", "tool_commands")  # fmt: skip


@pytest.mark.proves("ssh-needs-no-posix")
def test_nothing_on_the_ssh_way_needs_a_posix_system():
    seen: set[str] = set()
    queue = [f"slurm_agent_tools.{root}" for root in ROOTS]
    while queue:
        module = queue.pop()
        if module not in seen:
            seen.add(module)
            queue += [name for name in loaded(module) if name.startswith("slurm_agent_tools.")]
    assert {"slurm_agent_tools.slurm.runner", "slurm_agent_tools.ledger.store"} <= seen
    assert {module: loaded(module) & POSIX_ONLY for module in seen if loaded(module) & POSIX_ONLY} == {}


@functools.cache
def loaded(module: str) -> frozenset[str]:
    """What a module of ours imports when it is loaded: not inside of functions, nor for the type checker."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return frozenset()
    found: set[str] = set()
    for part in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(part, ast.Import):
            found |= {alias.name for alias in part.names}
        elif isinstance(part, ast.ImportFrom) and part.module:
            found |= {part.module, *(f"{part.module}.{alias.name}" for alias in part.names)}
    return frozenset(name for name in found if not name.startswith("slurm_agent_tools.") or find_spec_safe(name))


def find_spec_safe(name: str) -> bool:
    """Whether it is a module, not something in one."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
