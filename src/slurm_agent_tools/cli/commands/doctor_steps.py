"""The whole way to a cluster, step by step, for `doctor`: what was seen, and what to do where it fails."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from slurm_agent_tools.api.client_files import CLIENTS, SERVER, servers
from slurm_agent_tools.errors import AgentToolsError, SlurmError
from slurm_agent_tools.settings import devcluster_place, workstation_place
from slurm_agent_tools.settings.setting_sources import PREFIX, user_file
from slurm_agent_tools.slurm.commands import sacct, scontrol
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport.base import Completed, Transport
from slurm_agent_tools.transport.local import LocalTransport
from slurm_agent_tools.transport.ssh.remote import SshTransport

_CLOCK = 30.0  # seconds; times in answers and the ages of caches are off by as much


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One thing that was looked at. `todo` is empty where it is well."""

    name: str
    ok: bool
    seen: str
    todo: str = ""


async def check_steps(place: Transport) -> AsyncIterator[CheckStep]:
    """Look at one thing after the other; ends after the first that fails."""
    looks: list[tuple[str, Callable[[], Awaitable[list[CheckStep]]]]] = [
        ("slurm", partial(_commands, place)), ("controller", partial(_controller, place)),
        ("accounting", partial(_accounting, place)), ("project", partial(_root, place)),
        ("clock", partial(_clock, place)),
    ]  # fmt: skip
    if isinstance(place, LocalTransport):
        looks.append(("walls", partial(_walls, place)))
    if isinstance(place, SshTransport):
        looks = [("name", partial(_name_and_port, place)), ("login", partial(_key_and_login, place)), *looks]
    for name, look in looks:
        try:
            found = await look()
        except _Failed as failed:
            found = failed.steps
        except AgentToolsError as error:
            found = [CheckStep(name, ok=False, seen=error.message, todo=error.hint)]
        for step in found:
            yield step
            if not step.ok:
                return


def client_steps(folder: Path) -> list[CheckStep]:
    """The client files of a project that name this server, and whether what they start is found from here."""
    found = []
    for client in filter(lambda one: one.table, CLIENTS.values()):
        entry = (servers(folder / client.config, client.table) or {}).get(SERVER)
        if isinstance(entry, dict):
            command = entry.get("command")
            command = command.get("path") if isinstance(command, dict) else command
            ok = command is None or shutil.which(str(command)) is not None  # without one it names a server over HTTP
            does = f"asks {entry.get('url')}" if command is None else f"starts {command}"
            seen = sanitize.line(f"{client.config} {does}") + ("" if ok else ", which is not found on PATH")
            todo = "" if ok else "Write the full path of the program there, or install it for your user."
            found.append(CheckStep(client.title.lower(), ok=ok, seen=seen, todo=todo))
    none = CheckStep(
        "clients", ok=False, seen=f"no client file in {folder} names this server", todo="slurm-agent-tools init"
    )
    return found or [none]


async def slurm_name(place: Transport) -> str | None:
    """What Slurm itself calls the cluster, as get_status tells it; None where it does not say."""
    try:
        config = scontrol.parse_config(await place.runner.run(scontrol.config_argv()))
    except SlurmError:
        return None
    return sanitize.line(config["ClusterName"])


class _Failed(Exception):
    def __init__(self, *found: CheckStep) -> None:
        self.steps = list(found)


async def _name_and_port(place: SshTransport) -> list[CheckStep]:
    from slurm_agent_tools.transport.ssh import ssh_login, target  # noqa: PLC0415 - loads asyncssh

    hop = target.first(place.settings)
    goal = target.target(hop, place.settings, await ssh_login.asked(hop, place.settings))
    for _ in range(target.JUMPS):  # the first one of all is reached from here
        if goal.jumps:
            hop = goal.jumps[0]
            goal = target.target(hop, place.settings, await ssh_login.asked(hop, place.settings))
    if goal.command:
        return [CheckStep("name", ok=True, seen=f"{goal.spelled} through a ProxyCommand")]
    try:
        found = await anyio.getaddrinfo(goal.host, goal.port)
    except OSError:
        todo = "Check `host`, the network and VPN."
        raise _Failed(CheckStep("name", ok=False, seen=f"{goal.host} is not a known name", todo=todo)) from None
    name = CheckStep("name", ok=True, seen=f"{goal.host} is {found[0][4][0]}")
    try:
        with anyio.fail_after(place.settings.connect_timeout):
            stream = await anyio.connect_tcp(goal.host, goal.port)
    except (OSError, TimeoutError):
        bad = f"nothing answers at {goal.host}:{goal.port}"
        raise _Failed(
            name, CheckStep("tcp", ok=False, seen=bad, todo="Check `port`, the network and the VPN.")
        ) from None
    await stream.aclose()
    return [name, CheckStep("tcp", ok=True, seen=f"{goal.host}:{goal.port} answers")]


async def _key_and_login(place: SshTransport) -> list[CheckStep]:
    from slurm_agent_tools.transport.ssh import login_failure  # noqa: PLC0415

    try:
        connection = await place.link.connect()
    except login_failure.Distrusted as error:
        return [CheckStep("host key", ok=False, seen=error.message, todo=error.hint)]
    except SlurmError as error:
        return [CheckStep("login", ok=False, seen=error.message, todo=error.hint)]
    key = connection.get_server_host_key()
    shown = "" if key is None else f"{key.get_algorithm()} {key.get_fingerprint()} "
    environ = await place.environ()
    return [
        CheckStep("host key", ok=True, seen=f"{shown}is known"),
        CheckStep(
            "login", ok=True, seen=f"as {place.key.removeprefix('ssh:')}, PATH={sanitize.line(environ.get('PATH', ''))}"
        ),
    ]


def _gone(place: Transport) -> list[CheckStep]:
    """That the configuration of this terminal is not there, of which Slurm's commands say nothing and wait."""
    conf = os.environ.get("SLURM_CONF", "")
    mine = isinstance(place, LocalTransport) and bool(conf) and place.key == str(Path(conf).resolve())
    if not mine or Path(conf).exists():
        return []
    seen = f"SLURM_CONF names {sanitize.line(conf)}, which is not there"
    todo = f"{devcluster_place.hint()}Run `unset SLURM_CONF`, or bring up again what it belonged to."
    return [CheckStep("slurm", ok=False, seen=seen, todo=todo)]


async def _commands(place: Transport) -> list[CheckStep]:
    if gone := _gone(place):
        return gone
    done = await place.runner.run(["sinfo", "--version"])
    own = workstation_place.offer()
    here = f"{devcluster_place.hint()}{own[0].upper()}{own[1:]}. Else set {PREFIX}SLURM__BIN_DIR or"
    here += f" {PREFIX}SLURM__CONF, or bin_dir or conf below [slurm] in {user_file()};"
    here += " for a cluster behind a login node, write [clusters.NAME] there."
    there = f"Set bin_dir or conf in {user_file()}, below [clusters.NAME.slurm]."
    todo = "" if done.exit_code == 0 else there if isinstance(place, SshTransport) else here
    return [CheckStep("slurm", ok=not todo, seen=_said(done), todo=todo)]


async def _controller(place: Transport) -> list[CheckStep]:
    done = await place.runner.run(["scontrol", "ping"])
    todo = "" if done.exit_code == 0 else "Wait a minute and try `scontrol ping`; else ask the site."
    return [CheckStep("controller", ok=not todo, seen=_said(done), todo=todo)]


async def _accounting(place: Transport) -> list[CheckStep]:
    done = await place.runner.run(["sacct", "--noheader", "--allocations", "--starttime=now"])
    if done.exit_code == 0:
        return [CheckStep("accounting", ok=True, seen="sacct answers")]
    if sacct.disabled(done):
        return [
            CheckStep("accounting", ok=True, seen="switched off on this cluster: only the controller tells of jobs")
        ]
    return [CheckStep("accounting", ok=False, seen=_said(done), todo="Ask the site whether slurmdbd is up and in use.")]


async def _walls(place: LocalTransport) -> list[CheckStep]:
    """What does not hold on this cluster: nothing that a person has to mend, but that it refuses this user's jobs."""
    instead = place.refused()
    walls = [CheckStep("walls", ok=True, seen=note) for note in place.notes() if not instead or instead not in note]
    refused = CheckStep("user", ok=False, seen="root's jobs are refused here", todo=instead)
    return [*walls, refused] if instead else walls


async def _root(place: Transport) -> list[CheckStep]:
    environment = await place.login_environment()
    return [CheckStep("project", ok=True, seen=f"{environment.root}, as {environment.user}")]


async def _clock(place: Transport) -> list[CheckStep]:
    before = time.time()
    done = await place.runner.run(["date", "+%s"])
    middle = (before + time.time()) / 2
    if done.exit_code != 0:
        return [CheckStep("clock", ok=False, seen=_said(done), todo="Try `date` there.")]
    ahead = int(done.stdout) + 0.5 - middle
    words = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine"
    ok = abs(ahead) <= _CLOCK
    return [CheckStep("clock", ok=ok, seen=words, todo="" if ok else "Set this machine's clock by the network (NTP).")]


def _said(done: Completed) -> str:
    if done.exit_code is None:
        return "no answer in time"
    if done.stdout.strip():
        return sanitize.line(done.stdout.decode("utf-8", "replace").strip())[:200]
    errors = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return sanitize.line(errors[-1])[:200] if errors else "nothing"  # the last line is the one that ended it
