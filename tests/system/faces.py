"""The two ways in, driven for real: an MCP client over stdio, and the command line, both as the cluster's user."""

from __future__ import annotations

import json
import os
import pty
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from slurm_agent_tools.devcluster import login_node
from slurm_agent_tools.devcluster.definition import Cluster
from slurm_agent_tools.devcluster.login_node import LoginNode


@dataclass
class Place:
    """A project of the cluster's user and the environment in which agents work there."""

    cluster: Cluster
    project: Path
    extra: dict[str, str] = field(default_factory=dict)
    another: Callable[[], Place] | None = None

    @property
    def programs(self) -> Path:
        """Where Slurm's own commands are."""
        return self.cluster.bin_dir or Path("/usr/bin")

    def environment(self) -> dict[str, str]:
        home = str(self.project.parent)
        plain = {"PATH": os.environ["PATH"], "HOME": home, "USER": self.cluster.user, "LOGNAME": self.cluster.user}
        return plain | {"XDG_STATE_HOME": f"{home}/.state"} | self.cluster.environment() | self.extra

    def own(self) -> None:
        """Give everything in the place to the user: tests write as root. Not what a link in it leads to."""
        if os.geteuid() == 0:
            user = pwd.getpwnam(self.cluster.user)
            for path in (self.project.parent, *self.project.parent.rglob("*")):
                os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)

    def as_user(self, argv: list[str]) -> list[str]:
        """The argument vector that runs something as the user."""
        return self.cluster.as_user(argv)

    def run(self, argv: list[str], *, stdin: bytes = b"", seconds: float = 90) -> subprocess.CompletedProcess[bytes]:
        """Run something as the user in the project."""
        return subprocess.run(
            self.as_user(argv), input=stdin, capture_output=True, cwd=self.project,
            env=self.environment(), timeout=seconds, check=False,
        )  # fmt: skip

    def slurm(self, *argv: str, stdin: bytes = b"") -> str:
        """A Slurm command that must succeed; its standard output."""
        done = self.run(list(argv), stdin=stdin)
        assert done.returncode == 0, (argv, done.stderr)
        return done.stdout.decode("utf-8", "backslashreplace").strip()

    def cli(self, tool: str, *words: str, seconds: float = 90) -> tuple[int, dict[str, Any]]:
        """`python -m tools.agent_tools.TOOL`: exit code and the one JSON document, in full where `words` say nothing."""
        told = words if "--detail" in words else ("--detail", "full", *words)
        done = self.run([sys.executable, "-m", f"tools.agent_tools.{tool}", *told], seconds=seconds)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError as error:
            raise AssertionError((tool, words, done.returncode, done.stdout, done.stderr)) from error

    def server(self) -> StdioServerParameters:
        """Our server as an MCP client starts it."""
        argv = self.as_user([sys.executable, "-m", "slurm_agent_tools", "serve"])
        return StdioServerParameters(command=argv[0], args=argv[1:], env=self.environment(), cwd=str(self.project))

    @asynccontextmanager
    async def client(self, mode: str = "auto") -> AsyncIterator[Client]:
        async with Client(self.server(), mode=mode) as client:
            yield client


@dataclass
class Laptop(Place):
    """The same project on another machine: no Slurm commands, no slurm.conf, only ssh and the way to the login node.

    The project here lies beside `there`, the project on the cluster.
    """

    there: Path = Path("/")

    @property
    def settings(self) -> Path:
        """The user's file of settings, in which a cluster is named: an agent may write the project's."""
        return self.project.parent / ".config/slurm-agent-tools/settings.toml"

    def table(self, name: str) -> str:
        """The head of a table in it that holds for this project alone."""
        return f'[projects."{self.project}".{name}]\n'

    def environment(self) -> dict[str, str]:
        programs = self.project.parent / "programs"
        found = super().environment() | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{programs}"}
        return {name: value for name, value in found.items() if not name.startswith("SLURM_")}

    def as_user(self, argv: list[str]) -> list[str]:
        program, *words = self.cluster.as_user(argv)
        return [shutil.which(program) or program, *words]  # PATH there has nothing of the system


def laptop(place: Place, login: LoginNode) -> Laptop:
    """A laptop whose settings name the devcluster's login node as the cluster `lab`."""
    project, programs = place.project.parent / "laptop", place.project.parent / "programs"
    for folder in (project, programs):
        folder.mkdir(exist_ok=True)
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} "$@"\n')  # no link: it is given to the user
    (programs / "ssh").chmod(0o755)
    (project / "slurm-agent.toml").touch()
    made = Laptop(place.cluster, project, there=place.project)
    made.settings.parent.mkdir(parents=True, exist_ok=True)
    made.settings.write_text(
        f'{made.table("clusters.lab")}host = "{login.host}"\nremote_root = "{place.project}"\n'
        f'ssh_config = "{login.config}"\n'
    )
    place.own()
    return made


def at_terminal(
    place: Place, words: list[str], typed: str, opens: Callable[[str], None] | None = None
) -> tuple[int, str]:
    """Run a command of ours on a pseudo-terminal, type a line when it asks, and return code and screen.

    Where it shows several pages, each is followed by the next. `opens` is given the link that it prints, once.
    """
    argv = place.cluster.as_user([sys.executable, "-m", "slurm_agent_tools", *words])
    pid, handle = pty.fork()
    if pid == 0:  # pragma: no cover - the child
        os.chdir(place.project)
        os.execvpe(argv[0], argv, place.environment())  # noqa: S606 - an argument vector
    screen, sent, pages, end = b"", False, 0, time.monotonic() + 60
    while time.monotonic() < end:
        ready, _, _ = select.select([handle], [], [], 0.2)
        if ready:
            try:
                piece = os.read(handle, 65536)
            except OSError:
                break
            if not piece:
                break
            screen += piece
        if screen.count(b"anything else ends this: ") > pages:
            os.write(handle, b"\n")
            pages += 1
        link = re.search(rb"http://\S+/enrol/\S+(?=\r\n)", screen)
        if opens is not None and link is not None:
            opens, shows = None, opens
            shows(link[0].decode())
        if b"Type " in screen and not sent:
            os.write(handle, typed.encode() + b"\n")
            sent = True
    else:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(handle)
    return os.waitstatus_to_exitcode(status), screen.decode("utf-8", "replace")


@asynccontextmanager
async def connected(place: Place, site_socket: str) -> AsyncIterator[Client]:
    """An MCP client whose server is `slurm-agent-tools connect`."""
    served = place.server()
    words = [*served.args[:-1], "connect", "--socket", site_socket]
    server = StdioServerParameters(command=served.command, args=words, env=served.env, cwd=served.cwd)
    async with Client(server) as client:
        yield client


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """One tool call over MCP, answered in full where nothing else is asked; errors as their structured content."""
    result = await client.call_tool(tool, {"detail": "full"} | arguments)
    assert result.structured_content is not None, result
    return result.structured_content


def cut_connections(cluster: Cluster) -> None:
    """End every connection to the cluster's sshd at once. What ends with its parent needs no signal of its own."""
    for pid in login_node.sessions(cluster):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
