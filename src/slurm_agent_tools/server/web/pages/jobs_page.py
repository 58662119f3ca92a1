"""Jobs: those of the project that go on or are remembered, by words, state and tag."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.insights.accounting_history import DAYS, AccountingHistory, accounting_history
from slurm_agent_tools.insights.job_search import search, tags
from slurm_agent_tools.models.job import Job, JobRecord
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.web_page import SLOW, TICK, PageAsked, WebPage
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.answer_cache import SharedAnswer
from slurm_agent_tools.store.submissions import Owner

_MOST, _ACTIVE, _SHOWN = 10_000, 2000, 100


_known: dict[Owner, SharedAnswer[AccountingHistory]] = {}
"""What is remembered, which is asked less often than the queue."""


async def gather(context: ClusterContext, _: PageAsked) -> dict[str, Any]:
    """What the queue has of the user's jobs, and what is remembered of the project's, newest first."""
    if context.owner not in _known:
        _known[context.owner] = SharedAnswer(context.clock, partial(accounting_history, context, limit=_MOST))
    known = await _known[context.owner].get(SLOW * context.slurm.verdict.factor)
    problem = known.silent
    try:
        age = TICK * context.slurm.verdict.factor
        queue = context.slurm.mine(await context.slurm.queue(max_age=age)).going()
        active = list(queue.jobs(queue.newest(_ACTIVE)))
        active.sort(key=lambda job: -job.job_id.base)
    except SlurmError as error:
        active, problem = [], f"{error.message} {error.hint}"
    going = {str(job.job_id.base) for job in active}
    return {
        "active": active,
        "past": [record for record in known.records if record.job_id not in going],
        "problem": problem,
        "days": DAYS,
    }


def narrow(record: Mapping[str, Any], asked: PageAsked) -> dict[str, Any]:
    """The jobs with these words, this state and this tag."""
    words, state, tag = asked.text("q"), asked.text("state").upper(), asked.text("tag")
    past = record["past"]
    found = search(past, tags=[tag] if tag else [], query=words, limit=_MOST) if tag or words else past
    active = [] if tag else [job for job in record["active"] if _has(job, words)]
    states = sorted({one.state for one in (*active, *found)} | ({state} if state else set()))
    fitting = [one for one in (*active, *found) if not state or one.state == state]
    rows = [_active(one) if isinstance(one, Job) else _past(one) for one in fitting[:_SHOWN]]
    return fragments.plain(
        {
            "as_of": record["as_of"],
            "jobs": rows,
            "found": len(fitting),
            "days": record["days"],
            "states": states,
            "asked": {"words": words, "chosen": state, "tag": tag},
            "problem": record["problem"],
        }
    )


def _has(job: Job, words: str) -> bool:
    told = f"{job.job_id} {job.name}".casefold()
    return all(word in told for word in words.casefold().split())


def _active(job: Job) -> dict[str, Any]:
    return _row(str(job.job_id), job.name, job.state, job.partition, job.submitted, job.started, None, ()) | {
        "seconds": job.elapsed_seconds
    }


def _past(one: JobRecord) -> dict[str, Any]:
    used = None if one.usage is None else one.usage.elapsed_seconds
    made = _row(one.job_id, one.name, one.state, one.partition, one.submitted, one.started, one.ended, tags(one))
    return made | {"seconds": used}


def _row(
    job_id: str,
    name: str,
    state: str,
    partition: str | None,
    submitted: datetime | None,
    started: datetime | None,
    ended: datetime | None,
    named: Any,
) -> dict[str, Any]:
    moments = {"submitted": submitted, "started": started, "ended": ended}
    told = {key: None if at is None else at.isoformat() for key, at in moments.items()}
    return {"job_id": job_id, "name": name, "state": state, "partition": partition, "tags": list(named), **told}


PAGE = WebPage("jobs", "Jobs", gather, narrow)
