"""A newcomer's walk through the tutorial, on a machine where the tools are installed and nothing else is.

Run by root, in the interpreter of the newcomer's first way: everything that the page has is typed by the newcomer, and the
one line that a person with rights is asked to run is run by root. The agent is a client that starts what the folder's own
`.mcp.json` says. Prints how long each part took, and every answer that differs from the page.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from tests.system import shown_pages

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorial/first-experiment.md").read_text(encoding="utf-8")
NEWCOMER = "newcomer"
AUTHOR = "researcher"  # who ran the page
WITH_AGENT = "## 4. Look"


@dataclass
class Terminal:
    """The newcomer's, with what was exported in it."""

    project: Path
    exported: dict[str, str] = field(default_factory=dict)

    def words(self, argv: list[str]) -> list[str]:
        """As the newcomer: root's own terminal is not theirs."""
        return ["setpriv", f"--reuid={NEWCOMER}", f"--regid={NEWCOMER}", "--init-groups", *argv]

    def environment(self) -> dict[str, str]:
        """What a login gives, and what was exported since."""
        plain = {"HOME": pwd.getpwnam(NEWCOMER).pw_dir, "USER": NEWCOMER, "PATH": os.environ["PATH"]}
        words = self.words(["bash", "-lc", "env -0"])
        login = subprocess.run(words, env=plain, capture_output=True, text=True, check=True).stdout
        return dict(pair.split("=", 1) for pair in login.split("\0") if "=" in pair) | self.exported

    def run(self, argv: list[str], *, seconds: float = 300) -> subprocess.CompletedProcess[bytes]:
        """One command."""
        return subprocess.run(
            self.words(argv),
            cwd=self.project,
            env=self.environment(),
            capture_output=True,
            timeout=seconds,
            check=False,
        )

    def own(self) -> None:
        """What is written for the newcomer is theirs."""
        account = pwd.getpwnam(NEWCOMER)
        for path in (self.project, *self.project.rglob("*")):
            os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)

    def server(self) -> StdioServerParameters:
        """As a client starts it that has found the folder's `.mcp.json`."""
        (said,) = json.loads((self.project / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"].values()
        first, *others = self.words([said["command"], *said["args"]])
        env = self.environment() | said.get("env", {})
        return StdioServerParameters(command=first, args=others, env=env, cwd=str(self.project))


class Walk(shown_pages.Run):
    """The page's run by the newcomer, who is not its author."""

    def started(self, words: list[str]) -> list[str]:
        """The command that was installed, found as any terminal finds it."""
        return words

    def named_as_shown(self, text: str) -> str:
        """With the names of the page's author."""
        return super().named_as_shown(text).replace(NEWCOMER, AUTHOR)


@contextmanager
def part(name: str) -> Iterator[None]:
    """Say how long it took."""
    begun = time.monotonic()
    yield
    print(f"{name:24} {time.monotonic() - begun:6.1f} s", flush=True)  # noqa: T201 - what it is run for


def bring_up(terminal: Terminal, up: str, env: str) -> None:
    """The Slurm of the page, by the page's own commands."""
    with part("packages of Slurm"):
        asked = terminal.run(["bash", "-c", up])
        line = re.search(r"sudo (apt-get install .*)", (asked.stdout + asked.stderr).decode())
        if asked.returncode == 0 or line is None:
            raise SystemExit(f"$ {up}\n{asked}\nnames no line to run")
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(shlex.split(line[1]), env=quiet, capture_output=True, check=True)
    with part("private Slurm comes up"):
        must(terminal, up)
    before = terminal.environment()
    after = terminal.run(["bash", "-c", f"{env}; env -0"]).stdout.decode().split("\0")
    terminal.exported = {
        name: value for name, _, value in (pair.partition("=") for pair in after) if name and before.get(name) != value
    }


def must(terminal: Terminal, command: str) -> None:
    """Type what has to end well."""
    done = terminal.run(["bash", "-c", command])
    if done.returncode != 0:
        raise SystemExit(f"$ {command}\n{done.stdout.decode()}{done.stderr.decode()}")


async def walk(terminal: Terminal) -> list[shown_pages.Difference]:
    """The rest of the page, first without an agent, then with one."""
    there, agent, rest = PAGE.partition(WITH_AGENT)
    page: Any = Walk(terminal, None)  # type: ignore[arg-type] - the client comes when the folder is set up
    differs = await shown_pages.run(there, page)
    async with Client(terminal.server()) as page.client:
        return differs + await shown_pages.run(agent + rest, page)


def main() -> None:
    """Exits with the answers that differ."""
    terminal = Terminal(Path(pwd.getpwnam(NEWCOMER).pw_dir) / "experiments")
    terminal.project.mkdir()
    terminal.own()
    up, env, down = [
        line
        for found in shown_pages.BLOCK.finditer(PAGE)
        if found["kind"] == "text"
        for line in found["body"].splitlines()
    ]
    bring_up(terminal, up, env)
    with part("the tutorial's page"):
        differs = asyncio.run(walk(terminal))
    if differs:
        raise SystemExit("\n\n".join(map(str, differs)))
    must(terminal, down)


if __name__ == "__main__":
    main()
