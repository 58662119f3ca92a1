"""Decisions: what agents asked, what was refused and why, what a person said yes to, and what waits for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.web_page import PageAsked, WebPage
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store import decision_log
from slurm_agent_tools.store.decision_log import Entry

_BYTES, _SHOWN = 2**20, 100

_ABOUT = ("script", "path", "job_name", "job_id", "note", "summary", "reason")

VERDICTS = ("allow", "justify", "approve", "deny")


async def gather(context: ClusterContext, _: PageAsked) -> dict[str, Any]:
    """The record of the page. Raises StorageError."""
    entries = await context.db(_latest, context)
    problem = await context.db(context.store.log_problem)
    waiting = await context.db(context.store.approvals.open, context.owner)
    there, away = await _at_site(context)
    rest = fragments.plain(
        {
            "counts": {verdict: sum(one.get("verdict") == verdict for one in entries) for verdict in VERDICTS},
            "problem": problem,
            "away": away,
            "waiting": [
                {
                    "id": one.id,
                    "job_name": one.job_name,
                    "created": one.created.isoformat(),
                    "expires": one.expires.isoformat(),
                    "granted": one.granted is not None,
                    "site": None,
                }
                for one in waiting
            ]
            + there,
        }
    )
    return rest | {"entries": entries}


def narrow(record: Mapping[str, Any], asked: PageAsked) -> dict[str, Any]:
    """The entries of one verdict, or all, the newest first."""
    chosen = asked.text("verdict")
    chosen = chosen if chosen in VERDICTS else ""
    found = [one for one in reversed(record["entries"]) if not chosen or one.get("verdict") == chosen]
    rows = fragments.plain({"rows": [_row(one) for one in found[:_SHOWN]]})
    return {**record, **rows, "found": len(found), "chosen": chosen}


def _latest(context: ClusterContext) -> list[Entry]:
    """The last entries of this project, of the end of a log that may be long."""
    path = context.store.decisions
    start = max(0, path.stat().st_size - _BYTES) if path.exists() else 0
    found = (line.entry for line in decision_log.read(path, start))
    return [entry for entry in found if entry is not None and entry.get("project") == context.project]


async def _at_site(context: ClusterContext) -> tuple[list[dict[str, Any]], str | None]:
    """The questions of the site's service, to which these pages lead and take no answer; or why none can be told."""
    if context.site is None:
        return [], None
    try:
        told = (await context.site.ask("questions", {}))["questions"]
    except AgentToolsError as error:
        return [], error.message
    pages = [str(one.get("page") or "") for one in told]
    return [
        {"id": str(one["id"]), "job_name": str(one["job_name"]), "created": None, "expires": str(one["expires"]),
         "granted": bool(one["granted"]), "site": page if page.startswith("https://") else ""}
        for one, page in zip(told, pages, strict=True)
    ], None  # fmt: skip


def _row(entry: Entry) -> dict[str, Any]:
    """One entry. The file is the user's, so that others may have written it: every part is taken as text."""
    rules = entry.get("rules")
    approval = entry.get("approval")
    said = [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
    return {
        "at": str(entry.get("at")),
        "event": str(entry.get("event")),
        "tool": str(entry.get("tool")),
        "verdict": str(entry.get("verdict")),
        "who": str(entry.get("principal") or entry.get("client") or entry.get("by") or "not known"),
        "about": " ".join(str(entry[name]) for name in _ABOUT if entry.get(name)),
        "rules": [{"id": str(rule.get("id")), "message": str(rule.get("message"))} for rule in said[:20]],
        "approved": f"{approval.get('by')} ({approval.get('channel')})" if isinstance(approval, dict) else None,
    }


PAGE = WebPage("decisions", "Decisions", gather, narrow)
