"""Campaigns: those of the project in a table, and one with its trials and the plots of its report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread
from markupsafe import Markup

from slurm_agent_tools.api import campaign_tools
from slurm_agent_tools.campaigns.campaign_report import ReportFacts, report_sections
from slurm_agent_tools.campaigns.file_reader import FOLDER, checked_name
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.errors import AgentToolsError, SlurmError
from slurm_agent_tools.models.toolset_arguments import GetCampaign
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.web_page import SLOW, PageAsked, WebPage
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.text import sanitize, svg_plots
from slurm_agent_tools.text.report_formats import Bullets, Paragraph, Picture, ReportBlock, ReportTable
from slurm_agent_tools.text.svg_plots import TimeBar
from slurm_agent_tools.transport.git_state import git_state

_MOST = 50

_DRAWN, _QUEUED = 60, 500
"""Trials in the picture of times, and the newest jobs of the queue that are looked at for it."""

_CALLER = Caller("dashboard")


async def gather(context: ClusterContext, asked: PageAsked) -> dict[str, Any]:
    """The record of the page: of one campaign where the address names it. Raises InputError and StorageError."""
    if asked.rest:
        return await _one(context, checked_name(asked.rest))
    names = await anyio.to_thread.run_sync(_names, Path(context.project))
    rows = [await _row(context, name) for name in names[:_MOST]]
    told = fragments.plain({"rows": rows, "not_shown": max(0, len(names) - _MOST)})
    return told | {"one": None, "sections": []}


def _names(project: Path) -> list[str]:
    """The files of campaigns, the one that was changed last first; no link is followed."""
    folder = project / FOLDER
    if not folder.is_dir() or folder.is_symlink():
        return []
    found = [path for path in folder.glob("*.yaml") if path.is_file() and not path.is_symlink()]
    return [path.stem for path in sorted(found, key=lambda path: path.lstat().st_mtime, reverse=True)]


async def _row(context: ClusterContext, name: str) -> dict[str, Any]:
    """How one stands; of a file that cannot be read, why."""
    shown = sanitize.shown(sanitize.line(name))
    try:
        ask = GetCampaign(name=name, view="state")
        told = await campaign_tools.get_campaign(context, ask, _CALLER)
    except (AgentToolsError, ValueError) as error:
        return {"name": shown, "error": str(error), "told": None}
    return {"name": shown, "error": None, "told": told.model_dump(mode="json")}


async def _one(context: ClusterContext, name: str) -> dict[str, Any]:
    ask = GetCampaign(name=name, view="table", detail="full")
    told = await campaign_tools.get_campaign(context, ask, _CALLER)
    campaign = await campaign_tools.opened(context, name)
    git = await git_state(context.project)
    told_git = None if git.commit is None else f"{git.commit[:12]}{' with changes' if git.dirty else ''}"
    facts = ReportFacts(name, context.clock.now(), told_git)
    sections = report_sections(campaign.file, campaign.state, facts) if campaign.state.revision else []
    table = told.table or [[]]
    record = fragments.plain(
        {
            "rows": [],
            "not_shown": 0,
            "one": told.model_dump(mode="json") | {"name": name},
            "columns": [str(cell) for cell in table[0]],
            "trials": [["" if cell is None else str(cell) for cell in row] for row in table[1:]],
        }
    )
    return record | {
        "gantt": _gantt(campaign.state, await _running(context), context.clock.now()),
        "sections": [{"title": one.title, "blocks": [_block(block) for block in one.blocks]} for one in sections],
    }


async def _running(context: ClusterContext) -> dict[str, datetime]:
    """When each of the caller's running jobs began, as 123 or 123_4; nothing where the queue does not answer."""
    try:
        queue = context.slurm.mine(await context.slurm.queue()).going()
    except SlurmError:
        return {}
    jobs = queue.jobs(queue.newest(_QUEUED))
    return {str(job.job_id): job.started for job in jobs if job.state == "RUNNING" and job.started is not None}


def _gantt(state: CampaignState, running: Mapping[str, datetime], now: datetime) -> Markup | None:
    """Which trial waited and ran when, hours since the first was sent; None before any ran."""
    bars: dict[str, list[tuple[datetime, datetime, str]]] = {}
    for name, trial in state.trials.items():
        end, began = trial.end, running.get(trial.job_id or "")
        if end is not None and end.started is not None and end.ended is not None:
            sent = end.started - timedelta(seconds=end.queue_seconds or 0)
            ran = (end.started, end.ended, "passed" if end.passed else "failed")
            bars[str(name)] = [*([(sent, end.started, "waited")] if sent < end.started else []), ran]
        elif end is None and began is not None:
            bars[str(name)] = [(began, now, "runs")]
    if not bars:
        return None
    shown = dict([*bars.items()][-_DRAWN:])
    first = min(begin for one in shown.values() for begin, _, _ in one)

    def hours(at: datetime) -> float:
        return (at - first).total_seconds() / 3600

    rows = [
        (name, [TimeBar(hours(begin), hours(end), kind, f"{name} {kind} {begin:%d %b %H:%M:%S} to {end:%H:%M:%S}")
                for begin, end, kind in one])
        for name, one in shown.items()
    ]  # fmt: skip
    left_out = len(bars) - len(shown)
    title = "Which trial ran when" + (f" (the last {len(shown)}; {left_out} before are not drawn)" if left_out else "")
    picture = svg_plots.what_ran_when(rows, title=title, unit="hours since the first was sent")
    return Markup(svg_plots.unstyled(picture))  # noqa: S704 - every text in it is escaped there


def _block(block: ReportBlock) -> dict[str, Any]:
    """One part of a report for the template; texts are escaped there, plots are our own."""
    if isinstance(block, Paragraph):
        return {"kind": "paragraph", "text": sanitize.line(block.text)}
    if isinstance(block, Bullets):
        return {"kind": "bullets", "items": [sanitize.line(item) for item in block.items]}
    if isinstance(block, ReportTable):
        rows = [[sanitize.line(cell) for cell in row] for row in block.rows]
        return {"kind": "table", "header": [sanitize.line(cell) for cell in block.header], "rows": rows}
    return _picture(block)


def _picture(block: Picture) -> dict[str, Any]:
    picture = Markup(svg_plots.unstyled(block.svg))  # noqa: S704 - every text in it is escaped there
    return {"kind": "picture", "svg": picture, "caption": sanitize.line(block.caption)}


PAGE = WebPage("campaigns", "Campaigns", gather, age=SLOW, named=True)
