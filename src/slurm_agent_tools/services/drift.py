"""Drift: a job that is no longer what was allowed when it was submitted. It is told and logged, never ended."""

from __future__ import annotations

import hashlib
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import anyio

from slurm_agent_tools.errors import SlurmError, SlurmGarbled, StorageError
from slurm_agent_tools.models.job import Job, JobView
from slurm_agent_tools.models.job_resources import Growth, Resources, claims, grown_since
from slurm_agent_tools.models.request import JobRequest, ScriptReading
from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.policy.document import VIOLATIONS
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.store.submissions import Comparison, Drifted, Submission

_AT_ONCE = 4

_QUEUE_AGE = 60.0

_RULES = {"memory": "memory-per-gpu", "gpus": "gpus", "time": "time-limit"}


@dataclass(frozen=True, slots=True)
class DriftWatch:
    """Who looks, with which tool; `fresh`: nothing that was seen before counts."""

    context: ClusterContext
    caller: Caller
    tool: str
    fresh: bool = False

    async def all_of_mine(self, view: JobView | None = None, managed: frozenset[int] | None = None) -> list[Alert]:
        """Every active job of this user, a job that was just looked at as it was seen. Never raises SlurmError.

        `managed`: the ids of the guard's jobs, where they were read already.
        """
        seen = [] if view is None else parts(view)
        bases = {job.job_id.base for job in seen} | ({view.job.job_id.base} if view is not None else set())
        try:
            queue = await self.context.slurm.queue(max_age=_QUEUE_AGE)
        except SlurmError:
            return await self.at(seen)  # the answer is about something else, and says itself when Slurm is silent
        if managed is None:
            managed = await self.context.db(self.context.store.managed_ids, self.context.owner)
        return await self.at([*seen, *self.context.slurm.mine(queue).jobs(sorted(managed - bases))])

    async def remembered(self, jobs: Iterable[Job]) -> list[Alert]:
        """The same of these jobs as it was found when they were last compared; Slurm is not asked."""
        active = {job.job_id.base for job in jobs if job.active}
        known = await self.context.db(self.context.store.released, self.context.owner, sorted(active)) if active else []
        found = [_alert(run, _last(run)) for _, run in known]
        return [alert for alert in found if alert is not None]

    async def at(self, jobs: Iterable[Job]) -> list[Alert]:
        """One alert for each of these jobs that drifted, and for each that could not be compared in time.

        Raises StorageError.
        """
        rows: dict[int, list[Job]] = defaultdict(list)
        for job in jobs:
            if job.active:
                rows[job.job_id.base].append(job)
        known = await self.context.db(self.context.store.released, self.context.owner, list(rows)) if rows else []
        found: dict[str, Alert | None] = {}
        unwritten: list[StorageError] = []
        room = anyio.Semaphore(_AT_ONCE)

        async def compare(project: str, run: Submission) -> None:
            async with room:
                try:
                    found[run.token] = await self._compare(project, run, rows[run.job_id or 0])
                except StorageError as error:  # a group would wrap it
                    unwritten.append(error)

        with anyio.move_on_after(self.context.settings.slurm.read_timeout):
            async with anyio.create_task_group() as group:
                for project, run in known:
                    group.start_soon(compare, project, run)
        if unwritten:
            raise unwritten[0]
        answers = [found.get(run.token, _unknown(run, "it took too long")) for _, run in known]
        return [alert for alert in answers if alert is not None]

    async def _compare(self, project: str, run: Submission, rows: Sequence[Job]) -> Alert | None:
        before, row = _last(run), _row(rows)
        started = not any(job.state == "PENDING" for job in rows)
        # A started job can hardly be changed without a trace in its rows; one that waits can (its memory, its GPUs).
        if self.fresh or not started or before.row != row:
            try:
                found = Comparison(row, started, tuple(await self._differences(project, run, before, row)))
            except SlurmError as error:
                return _unknown(run, error.message)
            await self._note(run, before, found)
        else:
            found = before
        return _alert(run, found)

    async def _differences(self, project: str, run: Submission, before: Comparison, row: str) -> list[Drifted]:
        age = 0 if self.fresh or row != before.row else self.context.settings.slurm.cache_seconds
        ask = self.context.slurm.details
        told = await ask(run.job_id or 0, max_age=age) or await ask(run.job_id or 0, max_age=0)
        if not told and run.job_id in (await self.context.slurm.queue(max_age=0)).going().bases:
            raise SlurmGarbled("the record of the job cannot be told from what its owner wrote into it.")
        records = [job for job in told if job.active]
        found: dict[Drifted, None] = {}
        for now, change in _changes(_allowed(run), records):
            found[Drifted(change.kind, change.what, self._severity(run, change, now))] = None
        return [*found, *(await self._files(project, run, before, records) if records else [])]

    async def _files(self, project: str, run: Submission, before: Comparison, records: Sequence[Job]) -> list[Drifted]:
        """Files that changed between check and start; once the job has begun nothing new can be found."""
        begun = all(job.state != "PENDING" for job in records)
        if begun and before.begun:
            return [told for told in before.told if told.kind == "file"]
        started = min((job.started for job in records if job.started is not None), default=None) if begun else None
        root = _root(self.context, project)
        changed = [] if root is None else await _changed_files(self.context, root, run.files, started)
        return [Drifted("file", what, "medium") for what in changed]

    def _severity(self, run: Submission, change: Growth, now: Resources) -> Literal["high", "medium"]:
        """High where the policy would not simply allow the number that the job has now."""
        if change.kind in _RULES:
            from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate  # noqa: PLC0415 - the rules are loaded where something has to be judged

            reading = ScriptReading(run.script_path, run.script_sha256, "", JobRequest(gpus=now.gpus or None))
            evaluation = EvaluationContext(
                self.context.policy,
                self.context.project,
                user=self.context.owner.user,
                today=self.context.clock.now().date(),
                numbers=now,
                pinned=(),
            )
            rules = evaluate(reading, evaluation).rules
            grave = any(rule.outcome in VIOLATIONS for rule in rules if rule.id == _RULES[change.kind])
        elif change.kind == "array":
            grave = (now.array_concurrency or 0) > self.context.policy.policy.limits.max_concurrent_jobs
        else:
            grave = change.kind in {"partition", "requeue"}  # neither was ever judged
        return "high" if grave else "medium"

    async def _note(self, run: Submission, before: Comparison, found: Comparison) -> None:
        """Remember it, and log what is new; whoever notes it first logs it."""
        if found == before or not await self.context.db(self.context.store.note_drift, run, found):
            return
        known = {told.what for told in before.told}
        fresh = [told.what for told in found.told if told.what not in known]
        if fresh:
            decision = replace(self.context.own_decision("allow"), id=run.decision_id)
            await self.context.log_decision(
                self.caller, decision, self.tool, "drift", job_id=run.job_id, token=run.token, script=run.script_path,
                script_sha256=run.script_sha256, differences=fresh,
            )  # fmt: skip


def parts(view: JobView) -> list[Job]:
    """The rows of one job: its array tasks or components, else itself."""
    return list(view.tasks) or [view.job]


def _row(rows: Sequence[Job]) -> str:
    """What the queue shows of a job, in brief: when it changes, the job is compared again."""
    texts = sorted(
        f"{job.job_id} {job.state} {job.started} {job.partition} {job.nodes} {job.resources.cpus} "
        f"{job.resources.time_limit_seconds}"
        for job in rows
    )
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _last(run: Submission) -> Comparison:
    """How it was found when it was last compared; it may never have been."""
    return run.drift or Comparison("")


def _allowed(run: Submission) -> list[Resources]:
    """What the policy allowed, in the worst placement, and what Slurm made of it before it was released."""
    return [run.requested] if run.granted is None else [run.requested, run.granted]


def _changes(allowed: Sequence[Resources], records: Sequence[Job]) -> Iterator[tuple[Resources, Growth]]:
    """Each difference with the numbers that it was found in; an array's tasks at once are those of all its parts."""
    for record in records:
        now = replace(record.resources, array_concurrency=None)
        for change in grown_since(allowed, now, started=record.state != "PENDING"):
            yield now, change
        if record.requeue:
            yield now, Growth("requeue", "Slurm would requeue it by itself")
    for claim in claims(record for record in records if record.state != "COMPLETING"):
        now = Resources(array_concurrency=claim.width)
        for change in grown_since(allowed, now, started=False):
            yield now, change


def _root(context: ClusterContext, project: str) -> str | None:
    """Where a project's jobs run; None for another project whose folder on that cluster is not known."""
    if context.there == context.here:
        return project
    return context.there.root if project == context.project else None


async def _changed_files(
    context: ClusterContext, root: str, files: Mapping[str, str], begun: datetime | None
) -> list[str]:
    """Files that the script runs and that are not what was checked; of a started job those changed before it began."""
    from slurm_agent_tools.scripts.reader import MAX_FILE  # noqa: PLC0415 - loads all that reads scripts

    found = []
    for path, checked in files.items():
        real = posixpath.join(root, path)
        try:
            stat = await context.there.files.stat(real)
            if stat is None or stat.kind != "file" or stat.size > MAX_FILE:
                now = None
            elif begun is not None and stat.modified > begun + timedelta(seconds=1):
                continue  # whether it was the same when the job began cannot be told any more
            else:
                now = await context.there.files.read(real, size=MAX_FILE + 1)
        except StorageError:
            now = None
        if (now is None and begun is None) or (now is not None and hashlib.sha256(now).hexdigest() != checked):
            found.append(f"{path}, which the script runs, is not the file that was checked")
    return found


def _alert(run: Submission, found: Comparison) -> Alert | None:
    if not found.told:
        return None
    severity: Literal["high", "medium"] = "high" if any(told.severity == "high" for told in found.told) else "medium"
    listed = "; ".join(told.what for told in found.told)
    message = f"Job {run.job_id} is not what was allowed at its submission: {listed}. It was left as it is."
    return Alert(severity=severity, code="drift", message=message, job_id=str(run.job_id))


def _unknown(run: Submission, why: str) -> Alert:
    message = f"Whether job {run.job_id} is still what was allowed could not be looked at: {why}"
    return Alert(severity="medium", code="drift-not-checked", message=message, job_id=str(run.job_id))
