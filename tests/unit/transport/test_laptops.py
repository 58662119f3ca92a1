import ast
import functools
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest

POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "spwd", "syslog", "termios", "tty"}
SSH = (
    "connection",
    "identity_keys",
    "known_hosts",
    "login_failure",
    "remote",
    "session",
    "sftp_files",
    "ssh_config",
    "ssh_login",
    "target",
)
ROOTS = (
    *(f"transport.ssh.{name}" for name in SSH),
    "cli.commands.doctor_steps",
    "server.mcp_server",
    "cli.commands.serve_command",
    "cli.main",
    "cli.commands.tool_command",
)


@pytest.mark.proves("ssh-needs-no-posix")
def test_nothing_on_the_ssh_way_needs_a_posix_system():
    seen: set[str] = set()
    queue = [f"slurm_agent_tools.{root}" for root in ROOTS]
    while queue:
        module = queue.pop()
        if module not in seen:
            seen.add(module)
            queue += [name for name in loaded(module) if name.startswith("slurm_agent_tools.")]
    assert {"slurm_agent_tools.transport.base", "slurm_agent_tools.store.ledger"} <= seen
    assert {module: loaded(module) & POSIX_ONLY for module in seen if loaded(module) & POSIX_ONLY} == {}


@pytest.mark.proves("no-posix-over-ssh")
async def test_a_login_and_its_commands_and_files_work_without_posix(node):
    settings = node.settings()
    (node.folder / "bin").mkdir()
    (node.folder / "bin" / "ssh").symlink_to(shutil.which("ssh"))  # Windows has it, and no other program of ours
    code = f"""
import anyio
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.transport.ssh.remote import SshTransport
async def main():
    place = SshTransport("there", ClusterSettings.model_validate_json({settings.model_dump_json()!r}))
    done = await place.runner.run(["echo", "it's"])
    await place.files.write_new({str(node.folder / "new")!r}, done.stdout)
    print((await place.login_environment()).root)
    await place.close()
anyio.run(main)
"""
    argv = [sys.executable, str(Path(__file__).parents[1] / "no_posix.py"), code]
    environment = {"HOME": str(node.folder), "USERNAME": "alice", "LOGNAME": "alice", "PATH": str(node.folder / "bin")}
    done = await anyio.run_process(argv, env=environment, check=False)
    assert (done.stdout.decode(), done.returncode) == (f"{node.folder}\n", 0), done.stderr.decode()
    assert (node.folder / "new").read_text() == "it's\n"


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
