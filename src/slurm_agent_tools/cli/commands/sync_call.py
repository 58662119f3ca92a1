"""What `sync` does once its cluster is named: one call of sync_files, or one after another as long as a job runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from slurm_agent_tools.api import brief, printing
from slurm_agent_tools.api.toolbox import Toolbox, closed_after
from slurm_agent_tools.cli.terminal import at_terminal
from slurm_agent_tools.errors import SlurmError, StorageError
from slurm_agent_tools.models.arguments import GetStatus, WaitForJob
from slurm_agent_tools.models.sync_answer import SyncReply
from slurm_agent_tools.models.toolset_arguments import SyncFiles
from slurm_agent_tools.services.sync import LocalLook, look_ahead
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion
from slurm_agent_tools.units import human_memory

if TYPE_CHECKING:
    from slurm_agent_tools.transport.base import Transport

DONE, BLOCKED, AGAIN = 0, 3, 4

_TRIES = 5
"""How often a file that cannot be brought is tried again once its job has ended."""


async def call(settings: Settings, args: argparse.Namespace, places: Mapping[str, Transport] | None = None) -> int:
    """Bring files over and print the answer. `places`: hosts that let us in meanwhile. Raises AgentToolsError."""
    ask = SyncFiles(
        direction=args.direction, paths=args.paths or None, delete=args.delete, dry_run=args.dry_run,
        cluster=args.cluster, detail="full" if args.full else "brief",
    )  # fmt: skip
    early = _looked_ahead(settings, ask) if places else None
    async with closed_after(Toolbox.open(settings, places)) as box:
        reply = await (_followed(box, ask, args) if args.follow else _once(box, ask, early))
    printing.document(brief.answer(reply, ask), as_json=args.json)
    return {"blocked": BLOCKED, "partial": AGAIN}.get(reply.status, DONE)


def _looked_ahead(settings: Settings, ask: SyncFiles) -> ConcurrentQuestion[LocalLook]:
    """Look at the files here while the host lets us in."""

    async def look() -> LocalLook:
        return await look_ahead(str(settings.project_root.resolve()), ask)

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
