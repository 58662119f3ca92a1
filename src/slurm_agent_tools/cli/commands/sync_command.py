"""The subcommand `sync`: the project's files to a cluster over SSH and back, once or as long as a job runs.

All but the login is loaded while the login node answers: `sync_call`.
"""

from __future__ import annotations

import argparse
import importlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from slurm_agent_tools.cli.terminal import at_terminal
from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.settings import Settings, load
from slurm_agent_tools.text import log_events
from slurm_agent_tools.transport.base import asker

if TYPE_CHECKING:
    from slurm_agent_tools.transport.ssh.remote import SshTransport

MIXED = True

_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `sync`."""
    parser.description = (
        "push: send the files that git tracks and that are not the same there. pull: bring logs, results and"
        " checkpoints back. status: name what differs. A file .slurm-agent-sync in the project says what else goes"
        " there (a pattern), what comes back (pull: PATTERN) and what stays (!PATTERN)."
    )
    parser.add_argument("direction", choices=("push", "pull", "status"))
    parser.add_argument("paths", nargs="*", default=[], metavar="PATTERN", help="only these files, folders or patterns")
    parser.add_argument(
        "--delete", action="append", metavar="NAME", help="push: delete this one file there; may be given again"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be done")
    parser.add_argument("--follow", action="store_true", help="pull: again every few seconds, until no job runs")
    parser.add_argument("--job", metavar="JOBID", help="with --follow: until this job has ended")
    parser.add_argument("--every", type=float, default=_SECONDS, metavar="N", help="with --follow: seconds between (5)")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings")
    parser.add_argument("--full", action="store_true", help="name every file")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


async def run(args: argparse.Namespace) -> int:
    """Bring files over; 3 where nothing may be, 4 where something is left. Raises AgentToolsError."""
    if args.follow and (args.direction != "pull" or args.dry_run):
        raise InputError("follow", True, "is for pull, and not for a dry run", hint="Leave one of them out.")
    if not 0 < args.every <= 3600:
        raise InputError("every", args.every, "is out of range", hint="Give seconds, at most 3600.")
    settings = load()
    settings.need_toolset("files", "sync")
    log_events.configure(settings.log_level)
    clusters = settings.clusters
    name = args.cluster or settings.cluster or (next(iter(clusters)) if len(clusters) == 1 else "")
    if name not in clusters or clusters[name].host is None:
        return int(await _room().call(settings, args))
    return await _beside_the_login(settings, args, name)


def _room() -> Any:
    return importlib.import_module("slurm_agent_tools.cli.commands.sync_call")


async def _beside_the_login(settings: Settings, args: argparse.Namespace, name: str) -> int:
    """Log in, and load what the call needs while the host answers. What is wrong with the login, the call says."""
    importlib.import_module("slurm_agent_tools.transport.ssh.ssh_login")  # whole, before anything is waited for
    host = importlib.import_module("slurm_agent_tools.transport.ssh.remote").SshTransport(name, settings.clusters[name])
    codes, failures = list[int](), list[AgentToolsError]()

    async def call() -> None:
        room = await anyio.to_thread.run_sync(_room)
        try:
            codes.append(await room.call(settings, args, {name: host}))
        except AgentToolsError as error:
            failures.append(error)

    asker.set(at_terminal)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_logged_in, host)
            group.start_soon(call)
    finally:
        with anyio.CancelScope(shield=True):
            await host.close()
    if failures:
        raise failures[0]
    return codes[0]


async def _logged_in(host: SshTransport) -> None:
    with suppress(AgentToolsError):
        await host.login_environment()
