"""One request that waits for a person: all of it, and a button where a passkey can say yes to it."""

from __future__ import annotations

from typing import Any

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.server.web.passkey_questions import text_sha256, unanswerable
from slurm_agent_tools.server.web.web_page import PageAsked, WebPage
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.text import sanitize


async def gather(context: ClusterContext, asked: PageAsked) -> dict[str, Any]:
    """The record of the page. The text is whole, as at a terminal: nothing is masked, hidden signs are spelled out."""
    item = await context.db(context.store.approvals.find, context.owner, asked.rest)
    if item is None:
        raise InputError("id", asked.rest, "is no question of this user", hint="Begin at the decisions.")
    ended = {"used": item.used, "declined": item.declined, "expired": item.expires <= context.clock.now()}
    return {
        "id": item.id,
        "job_name": sanitize.line(item.job_name),
        "plan": sanitize.visible(item.plan),
        "shown": text_sha256(item),
        "expires": item.expires.isoformat(),
        "ended": next((what for what, is_so in ended.items() if is_so), None),
        "without": await unanswerable(context, item),
        "worth": context.policy.worth("passkey"),
    }


PAGE = WebPage("approve", "A request that waits", gather, age=0.0, listed=False, named=True, script="passkey.js")
