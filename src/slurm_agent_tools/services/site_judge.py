"""A request judged by the site's service: what it is told, what it answers, and that a ticket is not left lying open.

The user's program submits by itself; only the verdict and the ticket are the service's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio

from slurm_agent_tools.errors import InputError, SiteUnreachable
from slurm_agent_tools.models.decision import Decision
from slurm_agent_tools.services.context import ClusterContext, SiteJudge
from slurm_agent_tools.services.submission_request import GivenTicket, SubmissionRequest
from slurm_agent_tools.store.submissions import from_text

_TOLD = 50
"""Analysed jobs that are told of, the newest first."""


@asynccontextmanager
async def judged(
    context: ClusterContext, site: SiteJudge, request: SubmissionRequest
) -> AsyncIterator[SubmissionRequest]:
    """The request with the service's verdict, and with a ticket for an allowed one, which is settled at the end.

    One that was not spent is taken back: nobody else can use it, and it holds no slot.
    """
    given = await ask(context, site, request)
    token = None if given.ticket is None else given.ticket.token
    try:
        yield given
    except BaseException:
        if token is not None:
            with anyio.CancelScope(shield=True):
                await _settle(site, token)
        raise
    if token is not None:
        await site.tell("settle", {"token": token})


async def _settle(site: SiteJudge, token: str) -> None:
    """Once this returns the slot of a ticket that was not spent is free. A service that is away does it later."""
    try:
        await site.ask("settle", {"token": token})
    except SiteUnreachable:
        return


async def ask(
    context: ClusterContext, site: SiteJudge, request: SubmissionRequest, *, dry: bool = False, facts: bool = True
) -> SubmissionRequest:
    """The request as the service judges it. `dry`: without a question or a ticket; `facts`: as Slurm is now."""
    caller = request.caller
    seen = await context.db(context.store.last_read, context.owner, "status")
    runs = await context.db(context.store.accepted, context.owner)
    words = {
        "arguments": request.arguments.model_dump(mode="json", exclude_defaults=True),
        "caller": [caller.client, caller.version, caller.face],
        "status_read": None if seen is None else seen.isoformat(),
        "analysed": [[run.job_id, run.category] for run in runs if run.analysed is not None][:_TOLD],
        "dry": dry,
        "facts": facts,
    }
    answer = await site.ask("judge", words)
    ticket = GivenTicket(
        answer.get("token"), str(answer.get("word") or ""), answer.get("question"), str(answer.get("note") or "")
    )
    made = replace(request.as_decided(from_text(Decision, str(answer["decision"]))), ticket=ticket)
    if answer.get("script_sha256") != request.reading.sha256:
        if ticket.token is not None:
            await _settle(site, ticket.token)
        raise InputError("script", request.arguments.script, "has changed while it was judged", hint="Call again.")
    return made
