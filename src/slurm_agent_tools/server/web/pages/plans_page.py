"""Plans: the last ones that were kept, and one with its order as a picture, its bound and its submissions."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from slurm_agent_tools.api.views import kept_plan
from slurm_agent_tools.planning import plan_view
from slurm_agent_tools.planning.gantt import gantt
from slurm_agent_tools.planning.plan_view import KeptPlan
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.web_page import SLOW, PageAsked, WebPage
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store.plan_files import PlanFiles

_PICTURED = 2000
"""Jobs up to which a plan is drawn."""


async def gather(context: ClusterContext, asked: PageAsked) -> dict[str, Any]:
    """The record of the page: of one plan where the address names it. Raises InputError and StorageError."""
    if asked.rest:
        kept = await kept_plan(context, asked.rest)
        told = plan_view.plan_reply(kept, asked.rest).model_dump(mode="json")
        return fragments.plain({"one": told | {"id": asked.rest}, "rows": []}) | {"picture": _picture(kept)}
    files = PlanFiles(context.store.folder, context.owner)
    rows = []
    for number in await context.db(files.ids):
        found = await context.db(files.find, number, KeptPlan)
        if found is not None:
            told = plan_view.plan_reply(found, number).model_dump(mode="json")
            rows.append({"id": number, "jobs": len(found.plan.schedule.placed), **told})
    return fragments.plain({"one": None, "rows": rows}) | {"picture": None}


def _picture(kept: KeptPlan) -> Markup | None:
    """The plan as SVG; None of one with too many jobs to be seen."""
    schedule = kept.plan.schedule
    if len(schedule.placed) > _PICTURED:
        return None
    return Markup(gantt(schedule, "Which GPU runs what when"))  # noqa: S704 - every text in it is escaped there


PAGE = WebPage("plans", "Plans", gather, age=SLOW, named=True)
