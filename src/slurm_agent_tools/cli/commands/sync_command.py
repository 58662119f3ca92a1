"""The subcommand `sync`: the project's files to a cluster over SSH and back, once or as long as a job runs."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from slurm_agent_tools.api import brief, printing
from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.cli.terminal import at_terminal
from slurm_agent_tools.errors import InputError, SlurmError, StorageError
from slurm_agent_tools.models.arguments import GetStatus, WaitForJob
from slurm_agent_tools.models.sync_answer import SyncReply
from slurm_agent_tools.models.toolset_arguments import SyncFiles
from slurm_agent_tools.settings import Settings, load
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion
from slurm_agent_tools.text import log_events
from slurm_agent_tools.units import human_memory

if TYPE_CHECKING:
    from slurm_agent_tools.services.sync import LocalLook

DONE, BLOCKED, AGAIN = 0, 3, 4

MIXED = True

_SECONDS = 5.0

_TRIES = 5
"""How often a file that cannot be brought is tried again once its job has ended."""


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
    if "files" not in settings.toolsets:
        hint = "Add files to the setting toolsets; slurm-agent-tools doctor says where it was set."
        raise InputError("command", "sync", "belongs to the toolset files, which is switched off", hint=hint)
    log_events.configure(settings.log_level)
    ask = SyncFiles(
        direction=args.direction, paths=args.paths or None, delete=args.delete, dry_run=args.dry_run,
        cluster=args.cluster, detail="full" if args.full else "brief",
    )  # fmt: skip
    box = Toolbox.open(settings)
    try:
        reply = await (_followed(box, ask, args) if args.follow else _once(box, ask, _looked_ahead(settings, ask)))
    finally:
        with anyio.CancelScope(shield=True):
            await box.close()
    printing.document(brief.answer(reply, ask), as_json=args.json)
    return {"blocked": BLOCKED, "partial": AGAIN}.get(reply.status, DONE)


def _looked_ahead(settings: Settings, ask: SyncFiles) -> ConcurrentQuestion[LocalLook] | None:
    """Look at the files here while the host lets us in, where there is one.

    All that the login needs is loaded first, and then, while the host answers, what looks at the files.
    """
    clusters = settings.clusters
    name = ask.cluster or settings.cluster or (next(iter(clusters)) if len(clusters) == 1 else "")
    if name not in clusters or clusters[name].host is None:
        return None
    importlib.import_module("slurm_agent_tools.transport.ssh.ssh_login")

    async def look() -> LocalLook:
        room = await anyio.to_thread.run_sync(importlib.import_module, "slurm_agent_tools.services.sync")
        found: LocalLook = await room.look_ahead(str(settings.project_root.resolve()), ask)
        return found

    return ConcurrentQuestion(look)


async def _once(box: Toolbox, ask: SyncFiles, early: ConcurrentQuestion[LocalLook] | None = None) -> SyncReply:
    with printing.moving(sys.stderr) as moved:

        async def tell(done: float, total: float | None, name: str) -> None:
            moved(done, total, name)

        reply = await box.call("sync_files", ask, progress=tell, asked=at_terminal, early=early)
    if not isinstance(reply, SyncReply):  # pragma: no cover - the tool has no other answer
        raise TypeError(reply)
    return reply


async def _followed(box: Toolbox, ask: SyncFiles, args: argparse.Namespace) -> SyncReply:
    """Pull until the job is over, and once more. A cluster or a file that is away meanwhile is no end."""
    received = size = tries = 0
    said = ""
    while True:
        goes_on = await _goes_on(box, args)
        reply: SyncReply | None = None
        try:
            reply = await _once(box, ask)
        except (SlurmError, StorageError) as error:
            if not goes_on:
                raise
            printing.note(f"{error.message} Trying again.")
        if reply is not None:
            received, size = received + reply.received, size + reply.bytes
            if reply.received or (reply.status != "done" and reply.summary != said):
                printing.note(said := reply.summary)
            refused = reply.status == "blocked" and reply.blocker == "policy"
            tries = 0 if goes_on or reply.received or reply.status != "partial" else tries + 1
            if refused or (not goes_on and (reply.status != "partial" or tries >= _TRIES)):
                all_of_it = f"In all, {received} brought here ({human_memory(size)}). Last: {reply.summary}"
                return reply.model_copy(update={"received": received, "bytes": size, "summary": all_of_it})
        await anyio.sleep(args.every)


async def _goes_on(box: Toolbox, args: argparse.Namespace) -> bool:
    """Whether a job may still write. Where nobody can tell, it may."""
    from slurm_agent_tools.models.status_answer import SlurmSection, StatusReply  # noqa: PLC0415 - to follow alone

    try:
        if args.job is not None:
            reply = await box.call("wait_for_job", WaitForJob(job_id=args.job, timeout_seconds=0, cluster=args.cluster))
            return reply.status != "finished"
        status = await box.call("get_status", GetStatus(sections=["jobs"], refresh=True, cluster=args.cluster))
    except SlurmError as error:
        printing.note(f"{error.message} Trying again.")
        return True
    jobs = status.slurm if isinstance(status, StatusReply) else None
    return not isinstance(jobs, SlurmSection) or jobs.active_jobs > 0
