"""Now: what runs and waits of one's own, which GPUs are free or idle, and what needs a look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.insights import use_curves
from slurm_agent_tools.models.job import HELD_UP, Job
from slurm_agent_tools.models.shapes import RunningShown
from slurm_agent_tools.models.toolset_arguments import GetFleet
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.web_page import PageAsked, WebPage, look_fresh
from slurm_agent_tools.services import fleet_look, job_alerts, present
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.units import JobId

_SHOWN = 20
"""Jobs that are shown one by one."""

_LOOKED = timedelta(seconds=10)
"""How old progress and use may be: both ends of each job's output are read for them, perhaps over SSH."""


@dataclass(slots=True)
class _JobLooks:
    """What was seen of one caller's running jobs, and when."""

    at: datetime | None = None
    by_job: dict[int, job_alerts.ObservedJob | None] = field(default_factory=dict)


_looks: defaultdict[Owner, _JobLooks] = defaultdict(_JobLooks)

_SECTIONS = ["free", "idle", "waits", "alerts"]


async def gather(context: ClusterContext, _: PageAsked) -> dict[str, Any]:
    """The record of the page. It notes nothing down: that a person looked is not that an agent did."""
    await look_fresh(context, context.slurm.accounting.week)
    queue = context.slurm.mine(await context.slurm.queue()).going()
    states = queue.states()
    waiting = sum(number for state, number in states.items() if state in HELD_UP)
    newest = queue.jobs(queue.newest(_SHOWN))
    running = await _running(context, [job for job in newest if job.state not in HELD_UP])
    fleet = (await fleet_look.get_fleet(context, GetFleet(sections=_SECTIONS, detail="full"))).model_dump(mode="json")
    waits = fleet["waits"] if "jobs" in (fleet["waits"] or {}) else {"jobs": []}
    return fragments.plain(
        {
            "running": running,
            "waiting": _waiting([job for job in newest if job.state in HELD_UP], waits["jobs"]),
            "counts": {"running": len(queue) - waiting, "waiting": waiting, "not_shown": len(queue) - len(newest)},
            "free": fleet["free"],
            "idle": fleet["idle"],
            "alerts": fleet["alerts"],
            "not_measured": fleet["not_measured"],
            "user": context.slurm.user,
        }
    )


async def _running(context: ClusterContext, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Each with how far it came, by what its output and sstat tell."""
    bases, now, kept = {job.job_id.base for job in jobs}, context.clock.now(), _looks[context.owner]
    if kept.at is None or now - kept.at >= _LOOKED:
        kept.at, kept.by_job = now, {}
    kept.by_job |= await _looked(context, sorted(bases - kept.by_job.keys()))
    return [_shown(job, kept.by_job.get(job.job_id.base), context.clock.now()) for job in jobs]


async def _looked(context: ClusterContext, bases: Sequence[int]) -> dict[int, job_alerts.ObservedJob | None]:
    """What is seen of these jobs by their number; None where nothing is."""
    try:
        views = await context.slurm.jobs([JobId(base) for base in bases], patient=False) if bases else {}
    except SlurmError:
        views = {}
    questions = {}
    for job_id, view in views.items():
        run = await context.db(context.store.by_job, context.owner, job_id.base)
        questions[job_id.base] = ConcurrentQuestion(partial(job_alerts.look, context, view, run))
    await ask_all(*questions.values())
    for base, question in questions.items():
        seen = None if question.answer is None else question.answer.running
        use_curves.looks.keep(context.owner, base, context.clock.now(), seen)
    return dict.fromkeys(bases) | {base: question.answer for base, question in questions.items()}


def _shown(job: Job, look: job_alerts.ObservedJob | None, now: datetime) -> dict[str, Any]:
    told = present.brief_job(job).model_dump(mode="json") | {"nodes": job.nodes, "partition": job.partition}
    seen = None if look is None else look.running
    limit = job.resources.time_limit_seconds
    passed = None if job.started is None else (now - job.started).total_seconds()
    left = None if passed is None or limit is None or limit <= 0 else max(0.0, limit - passed)
    measured = seen.model_dump(mode="json") if seen is not None else dict.fromkeys(RunningShown.model_fields)
    return told | {"passed_seconds": passed, "left_seconds": left, "limit_seconds": limit, "use": measured}


def _waiting(jobs: Sequence[Job], told: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each with why it waits in a sentence, where get_fleet tells one, else with Slurm's own word."""
    known = {one["job_id"]: one for one in told}
    found = []
    for job in jobs:
        one = known.get(str(job.job_id)) or known.get(str(job.job_id.base)) or {}
        found.append(
            {
                "job_id": str(job.job_id),
                "name": job.name,
                "partition": job.partition,
                "state": job.state,
                "why": one.get("why") or job.reason or fragments.UNKNOWN,
                "never": one.get("never", False),
                "waited_seconds": one.get("waited_seconds"),
                "start_from": one.get("start_from"),
                "start_to": one.get("start_to"),
                "basis": one.get("basis"),
            }
        )
    return found


PAGE = WebPage("now", "Now", gather)
