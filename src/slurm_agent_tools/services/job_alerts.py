"""What there is to see of a job that waits or runs: gathered from Slurm and the ledger within a moment.

Nothing here fails a call: what does not answer in time is "not measured".
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import anyio

from slurm_agent_tools.diagnosis import alert_types, alerts
from slurm_agent_tools.diagnosis.alert_types import AlertFacts, WaitEstimate
from slurm_agent_tools.diagnosis.cannot_start import unavailable
from slurm_agent_tools.insights import measured_waits
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.node import Node, Partition, Reservation
from slurm_agent_tools.models.shapes import Alert, RunningShown
from slurm_agent_tools.services import running_job
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.drift import parts
from slurm_agent_tools.slurm import node_list
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.slurm.commands.squeue import Queue
from slurm_agent_tools.slurm.occasional_questions import Use
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner, Submission
from slurm_agent_tools.units import JobId

SECONDS = 1.0
"""All questions together: a wait answers when its time is up."""

_PARTITIONS_AGE = 60.0

_MOST = 20


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """Alerts about one job, what it uses while it runs, and when it is expected to start while it waits."""

    alerts: list[Alert]
    running: RunningShown | None = None
    estimated_start: datetime | None = None


def _facts(context: ClusterContext, job: Job, rows: Iterable[Job]) -> AlertFacts:
    """What a job's own rows tell."""
    found = tuple(rows)
    waiting = [row for row in found if row.state == "PENDING"]
    needed = {row.job_id: node_list.named(row.required_nodes or unavailable(row)) for row in waiting}
    return AlertFacts(job, found, context.clock.now(), tuple(node_list.named(row.nodes) for row in found), needed)


async def look(context: ClusterContext, view: JobView, run: Submission | None) -> ObservedJob:
    """Look at one job, submitted by `run`, and around it, for a second at most. Raises StorageError for the ledger."""
    found = _facts(context, view.job, parts(view))
    if view.over:
        return ObservedJob(alerts.alerts(found))
    asked = _Asked(context, found, run)
    with anyio.move_on_after(SECONDS):
        await asked.gather()
    facts = await asked.facts()
    expected = min((part.expected_start for part in facts.waiting if part.expected_start is not None), default=None)
    return ObservedJob(
        alerts.alerts(facts),
        None if facts.using is None else running_job.shown(facts, asked.missing),
        None if facts.running else expected,
    )


class _Asked:
    """The questions of one look, each with its own answer, error, or nothing in time."""

    def __init__(self, context: ClusterContext, facts: AlertFacts, run: Submission | None) -> None:
        self.context, self._facts, self._run = context, facts, run
        slurm, base = context.slurm, facts.job.job_id.base
        self.nodes: ConcurrentQuestion[tuple[Node, ...]] = ConcurrentQuestion(slurm.nodes)
        self.partitions: ConcurrentQuestion[dict[str, Partition]] = ConcurrentQuestion(
            partial(slurm.partitions, max_age=_PARTITIONS_AGE)
        )
        self.reservations: ConcurrentQuestion[tuple[Reservation, ...]] = ConcurrentQuestion(slurm.running.reservations)
        self.queue: ConcurrentQuestion[Queue] = ConcurrentQuestion(slurm.queue)
        self.use: ConcurrentQuestion[Use] = ConcurrentQuestion(partial(slurm.running.use, [base]))
        self.estimate: ConcurrentQuestion[WaitEstimate | None] = ConcurrentQuestion(
            partial(_estimate, context, facts, run)
        )
        self.progress: ConcurrentQuestion[float | None] = ConcurrentQuestion(
            partial(running_job.whole_share, context, facts, run)
        )

    async def gather(self) -> None:
        """Ask all that bears on this job at once."""
        more: list[ConcurrentQuestion[Any]] = [self.use, self.progress] if self._facts.running else []
        waiting = [self.estimate] if self._facts.waiting else []
        await ask_all(self.nodes, self.partitions, self.reservations, self.queue, *more, *waiting)

    @property
    def missing(self) -> str | None:
        """Why nothing is known of what the job uses; None where it was told."""
        if self.use.error is not None:
            return f"not measured: {self.use.error.message}"
        return None if self.use.answer is not None else "not measured: sstat took too long"

    async def facts(self) -> AlertFacts:
        """All that is known now."""
        known = self._facts
        using = alert_types.measure(known.parts, self.use.answer)
        return replace(
            known,
            nodes=self.nodes.answer,
            partitions=self.partitions.answer,
            reservations=self.reservations.answer,
            using=None if using is None else replace(using, progress=self.progress.answer),
            pending=None
            if self.queue.answer is None
            else self.context.slurm.mine(self.queue.answer).states()["PENDING"],
            estimate=self.estimate.answer,
            like=await running_job.like(self.context, self._run) if known.running else (),
        )


def _promised(run: Submission | None) -> WaitEstimate | None:
    """How long Slurm expected it to wait when it was submitted."""
    if run is None or run.estimated_start is None:
        return None
    seconds = (run.estimated_start - run.created).total_seconds()
    return WaitEstimate(max(0.0, seconds), "by Slurm at its submission")


async def _estimate(context: ClusterContext, facts: AlertFacts, run: Submission | None) -> WaitEstimate | None:
    """The same, else what jobs like it waited here lately."""
    job, promised = facts.job, _promised(run)
    if promised is not None or job.submitted is None:
        return promised
    if (facts.now - job.submitted).total_seconds() <= alerts.PATIENCE:
        return None
    past = await context.slurm.past()
    waited = (
        measured_waits.measure_waits(measured_waits.same_shape(past.waits, job.resources))
        if past is not None
        else measured_waits.MeasuredWaits(0)
    )
    if waited.median is None:
        return None
    return WaitEstimate(waited.median, f"the median of {waited.jobs} jobs like it here lately")


# --- all jobs of a caller ----------------------------------------------------------------------------------------


async def of_all(
    context: ClusterContext,
    rows: Sequence[Job],
    nodes: Sequence[Node] | None,
    partitions: Mapping[str, Partition] | None,
) -> list[Alert]:
    """Alerts about the newest of these jobs, from what the queue shows of them and for a second at most.

    A failure is told until its job was looked at. What a job uses is not asked for here.
    """
    groups: defaultdict[int, list[Job]] = defaultdict(list)
    for row in rows:
        groups[row.job_id.base].append(row)
    newest = heapq.nlargest(_MOST, groups)
    kept = ConcurrentQuestion(context.slurm.running.reservations)
    if any(row.active for base in newest for row in groups[base]):
        with anyio.move_on_after(SECONDS):
            await kept.run()
    found: list[Alert] = []
    for base, known in (await context.db(_records, context.store, context.owner, sorted(newest))).items():
        facts = _brief(context, groups[base], *known)
        found += alerts.alerts(replace(facts, nodes=nodes, partitions=partitions, reservations=kept.answer))
    return found


def _records(store: Store, owner: Owner, bases: Sequence[int]) -> dict[int, tuple[datetime | None, Submission | None]]:
    """Of each job when it was last looked at, and its submission; all at once, off the event loop."""
    return {base: (store.last_read(owner, f"job:{base}"), store.by_job(owner, base)) for base in bases}


def _brief(context: ClusterContext, rows: list[Job], read: datetime | None, run: Submission | None) -> AlertFacts:
    """One job from its rows; those parts that ended before it was last looked at (`read`) are left out."""
    base = JobId(rows[0].job_id.base)
    told = [row for row in rows if row.active or read is None or row.ended is None or row.ended > read]
    whole = replace(next((row for row in rows if row.active), rows[0]), job_id=base)
    facts = _facts(context, whole, told)
    waits_now = any(row.state == "PENDING" for row in told)
    return replace(facts, estimate=_promised(run)) if waits_now else facts
