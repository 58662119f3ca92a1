"""What there is to see of a job that waits or runs: gathered from Slurm and the ledger within a moment.

Nothing here fails a call: what does not answer in time is "not measured".
"""

from __future__ import annotations

import heapq
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import anyio

from slurm_agent_tools.diagnosis import alerts, limits
from slurm_agent_tools.diagnosis.kinds import Estimate, Facts
from slurm_agent_tools.diagnosis.stuck import unavailable
from slurm_agent_tools.history import waits
from slurm_agent_tools.history.records import JobRecord
from slurm_agent_tools.ledger.records import Submission
from slurm_agent_tools.model import Job, Node, Partition, Reservation
from slurm_agent_tools.replies import Alert, RunningShown
from slurm_agent_tools.slurm import hosts
from slurm_agent_tools.slurm.client import JobView
from slurm_agent_tools.slurm.queue import Queue
from slurm_agent_tools.slurm.running import Use
from slurm_agent_tools.toolbox import headway, usage
from slurm_agent_tools.toolbox.desk import Desk
from slurm_agent_tools.toolbox.drift import parts
from slurm_agent_tools.toolbox.later import Later, ask_all
from slurm_agent_tools.units import JobId

SECONDS = 1.0
"""All questions together: a wait answers when its time is up."""
_PARTITIONS_AGE = 60.0
_LIKE = 50
_MOST = 20


@dataclass(frozen=True, slots=True)
class Seen:
    """Alerts about one job, what it uses while it runs, and when it is expected to start while it waits."""

    alerts: list[Alert]
    running: RunningShown | None = None
    estimated_start: datetime | None = None


def _facts(desk: Desk, job: Job, rows: Iterable[Job]) -> Facts:
    """What a job's own rows tell."""
    found = tuple(rows)
    waiting = [row for row in found if row.state == "PENDING"]
    needed = {row.job_id: hosts.named(row.required_nodes or unavailable(row)) for row in waiting}
    return Facts(job, found, desk.clock.now(), tuple(hosts.named(row.nodes) for row in found), needed)


async def look(desk: Desk, view: JobView, run: Submission | None) -> Seen:
    """Look at one job, submitted by `run`, and around it, for a second at most. Raises StorageError for the ledger."""
    found = _facts(desk, view.job, parts(view))
    if view.over:
        return Seen(alerts.alerts(found))
    asked = _Asked(desk, found, run)
    with anyio.move_on_after(SECONDS):
        await asked.gather()
    facts = await asked.facts()
    expected = min((part.expected_start for part in facts.waiting if part.expected_start is not None), default=None)
    return Seen(
        alerts.alerts(facts),
        None if facts.using is None else usage.shown(facts, asked.missing),
        None if facts.running else expected,
    )


class _Asked:
    """The questions of one look, each with its own answer, error, or nothing in time."""

    def __init__(self, desk: Desk, facts: Facts, run: Submission | None) -> None:
        self.desk, self._facts, self._run = desk, facts, run
        slurm, base = desk.slurm, facts.job.job_id.base
        self.nodes: Later[tuple[Node, ...]] = Later(slurm.nodes)
        self.partitions: Later[dict[str, Partition]] = Later(partial(slurm.partitions, max_age=_PARTITIONS_AGE))
        self.reservations: Later[tuple[Reservation, ...]] = Later(slurm.running.reservations)
        self.queue: Later[Queue] = Later(slurm.queue)
        self.use: Later[Use] = Later(partial(slurm.running.use, [base]))
        self.estimate: Later[Estimate | None] = Later(partial(_estimate, desk, facts, run))
        self.progress: Later[float | None] = Later(partial(_progress, desk, facts))

    async def gather(self) -> None:
        """Ask all that bears on this job at once."""
        more: list[Later[Any]] = [self.use, self.progress] if self._facts.running else []
        waiting = [self.estimate] if self._facts.waiting else []
        await ask_all(self.nodes, self.partitions, self.reservations, self.queue, *more, *waiting)

    @property
    def missing(self) -> str | None:
        """Why nothing is known of what the job uses; None where it was told."""
        if self.use.error is not None:
            return f"not measured: {self.use.error.message}"
        return None if self.use.answer is not None else "not measured: sstat took too long"

    async def facts(self) -> Facts:
        """All that is known now."""
        known = self._facts
        using = limits.measure(known.parts, self.use.answer)
        return replace(
            known,
            nodes=self.nodes.answer,
            partitions=self.partitions.answer,
            reservations=self.reservations.answer,
            using=None if using is None else replace(using, progress=self.progress.answer),
            pending=None if self.queue.answer is None else self.desk.slurm.mine(self.queue.answer).states()["PENDING"],
            estimate=self.estimate.answer,
            like=await _like(self.desk, self._run) if known.running else (),
        )


async def _progress(desk: Desk, facts: Facts) -> float | None:
    """How far it came; of several parts at once nobody asks."""
    return await headway.share(desk, facts.running[0], facts.now) if len(facts.parts) == 1 else None


def _promised(run: Submission | None) -> Estimate | None:
    """How long Slurm expected it to wait when it was submitted."""
    told = json.loads(run.reply_json).get("estimated_start") if run is not None and run.reply_json else None
    if run is None or not told:
        return None
    seconds = (datetime.fromisoformat(told) - run.created).total_seconds()
    return Estimate(max(0.0, seconds), "by Slurm at its submission")


async def _estimate(desk: Desk, facts: Facts, run: Submission | None) -> Estimate | None:
    """The same, else what jobs like it waited here lately."""
    job, promised = facts.job, _promised(run)
    if promised is not None or job.submitted is None:
        return promised
    if (facts.now - job.submitted).total_seconds() <= alerts.PATIENCE:
        return None
    past = await desk.slurm.past()
    waited = waits.measure(waits.alike(past.waits, job.resources)) if past is not None else waits.Measured(0)
    if waited.median is None:
        return None
    return Estimate(waited.median, f"the median of {waited.jobs} jobs like it here lately")


async def _like(desk: Desk, run: Submission | None) -> Sequence[JobRecord]:
    """Earlier runs of the same script, else of the same name."""
    if run is None:
        return ()
    same = await desk.db(desk.store.history, desk.owner, script_sha256=run.script_sha256, limit=_LIKE)
    if alerts.typical(same) is not None:
        return same
    return await desk.db(desk.store.history, desk.owner, name=run.job_name, limit=_LIKE)


# --- all jobs of a caller ----------------------------------------------------------------------------------------


async def of_all(
    desk: Desk, rows: Sequence[Job], nodes: Sequence[Node] | None, partitions: Mapping[str, Partition] | None
) -> list[Alert]:
    """Alerts about the newest of these jobs, from what the queue shows of them and for a second at most.

    A failure is told until its job was looked at. What a job uses is not asked for here.
    """
    groups: defaultdict[int, list[Job]] = defaultdict(list)
    for row in rows:
        groups[row.job_id.base].append(row)
    newest = heapq.nlargest(_MOST, groups)
    kept = Later(desk.slurm.running.reservations)
    if any(row.active for base in newest for row in groups[base]):
        with anyio.move_on_after(SECONDS):
            await kept.run()
    found: list[Alert] = []
    for base in sorted(newest):
        facts = await _brief(desk, groups[base])
        found += alerts.alerts(replace(facts, nodes=nodes, partitions=partitions, reservations=kept.answer))
    return found


async def _brief(desk: Desk, rows: list[Job]) -> Facts:
    """One job from its rows; those parts that ended before it was last looked at are left out."""
    base = JobId(rows[0].job_id.base)
    read = await desk.db(desk.store.last_read, desk.owner, f"job:{base}")
    told = [row for row in rows if row.active or read is None or row.ended is None or row.ended > read]
    whole = replace(next((row for row in rows if row.active), rows[0]), job_id=base)
    facts = _facts(desk, whole, told)
    waits_now = any(row.state == "PENDING" for row in told)
    if not waits_now:
        return facts
    run = await desk.db(desk.store.by_job, desk.owner, base.base)
    return replace(facts, estimate=_promised(run))
