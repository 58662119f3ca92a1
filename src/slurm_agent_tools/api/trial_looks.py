"""Where the trials of a campaign stand: one look for all, and of those that ended all that can be found out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from slurm_agent_tools.campaigns import trial_metrics
from slurm_agent_tools.campaigns.outcomes import TrialFacts, cancelled, trial_end
from slurm_agent_tools.campaigns.ports import SentTrial, TrialLook
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.diagnosis import excerpt
from slurm_agent_tools.diagnosis.excerpt import FilePiece, LogText, assemble
from slurm_agent_tools.errors import InputError, SlurmError, StorageError, UnknownJob
from slurm_agent_tools.models.arguments import AnalyzeLog
from slurm_agent_tools.models.campaign import TrialId
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import HELD_UP, Job, JobView
from slurm_agent_tools.services import (
    completion_report,
    jobs,
    log_analysis,
    log_files,
    log_parts,
    log_paths,
    project_paths,
)
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.slurm.client import JobViews
from slurm_agent_tools.slurm.commands.squeue import Queue
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.transport.base import Stat
from slurm_agent_tools.units import JobId

_PAUSES, _PAUSE = 5, 0.4
"""The accounting is told of the steps a moment after the end of a job."""

_CLOCKS = timedelta(minutes=1)
"""How far the clocks of the controller and of the machine that keeps the files may differ."""


async def look_at_trials(
    context: ClusterContext,
    caller: Caller,
    file: CampaignFile,
    sent: Sequence[SentTrial],
    ended: MutableMapping[str, JobView],
) -> list[TrialLook]:
    """Where each stands. One question to the queue for all, one to the accounting for those that ended.

    `ended` gets the job of each of these by its id. Raises SlurmError.
    """
    ids = {one.trial.id: jobs.parse(one.job_id) for one in sent}
    views = await _settled(context, await context.slurm.jobs(_with_wholes(ids)))
    ended.update({str(job_id): view for job_id, view in views.items() if view.over})
    bases = sorted({one.base for one in ids.values()})
    look = _TrialsLook(context, caller, file, views, await context.db(context.store.by_jobs, context.owner, bases))
    looks = [await look.at(one, ids[one.trial.id]) for one in sent]
    wholes = [view for base in bases if (view := views.get(JobId(base))) is not None]
    # the ledger remembers how each job ended, and that it was looked at
    await jobs.remember_all(context, [await jobs.in_full(context, view) for view in wholes])
    return looks


async def running_trials(context: ClusterContext, state: CampaignState) -> frozenset[TrialId]:
    """Trials that run by the queue; none where it does not answer."""
    sent = {one.job_id: one.trial.id for one in state.in_phase("sent") if one.job_id is not None}
    if not sent:
        return frozenset()
    ids = {jobs.parse(text): trial for text, trial in sent.items()}
    try:
        queue = await context.slurm.queue()
    except SlurmError:
        return frozenset()
    found = going(queue, (one.base for one in ids))
    return frozenset(trial for job_id, trial in ids.items() if job_id in found)


def going(queue: Queue, bases: Iterable[int]) -> frozenset[JobId]:
    """What of these jobs, and of their tasks, has begun and is not over."""
    listed = queue.jobs(sorted(set(bases)))
    return frozenset(job.job_id for job in listed if job.active and job.state not in HELD_UP)


def _with_wholes(ids: Mapping[TrialId, JobId]) -> list[JobId]:
    return list(dict.fromkeys([*(one.whole for one in ids.values()), *ids.values()]))


async def _settled(context: ClusterContext, views: JobViews) -> JobViews:
    """The same once the accounting has the steps of what ended; asked for two seconds at most."""
    for _ in range(_PAUSES):
        late = [job_id for job_id, view in views.items() if view.over and completion_report.lags(view)]
        if not late:
            break
        await context.clock.sleep(_PAUSE)
        try:
            views |= await context.slurm.jobs(late, fresh=True)
        except SlurmError:
            break
    return views


@dataclass(frozen=True, slots=True)
class _TrialsLook:
    """One look at trials. `views`: what Slurm tells of them; `runs`: what the ledger does, by the number of the job."""

    context: ClusterContext
    caller: Caller
    file: CampaignFile
    views: JobViews
    runs: Mapping[int, Submission]

    async def at(self, one: SentTrial, job_id: JobId) -> TrialLook:
        """One trial; unknown, and why, while nobody can tell."""
        view = self.views.get(job_id)
        if view is None:
            return await self._unseen(one, job_id)
        job = view.job
        if job.active:
            started = None if job.state in HELD_UP else job.started
            phase = "running" if started is not None else "pending"
            return TrialLook(one.trial.id, phase, started, expected_start=job.expected_start)  # type: ignore[arg-type]
        if job.state == "UNKNOWN":
            return TrialLook(one.trial.id, "unknown", why=job.reason or "Slurm does not tell its state", gone=True)
        return await self._over(one, view)

    async def _over(self, one: SentTrial, view: JobView) -> TrialLook:
        stage = one.stage or self.file.stage(one.trial.stage)
        facts = await self._facts(stage, one.trial.id, JobView(view.job, (), view.missing))
        end = trial_end(self.file, stage, view.job, facts, self.context.settings.rates, smoke=one.smoke)
        return TrialLook(one.trial.id, "ended", view.job.started, end)

    async def _unseen(self, one: SentTrial, job_id: JobId) -> TrialLook:
        """A job that Slurm does not show: as the ledger saw it end, else unknown, and who answered without it.

        The controller did, or this would not be asked. Of an accounting it counts only where it has to know the job:
        where this cluster has one, and the ledger knows that the job went there.
        """
        if self.views.silent is not None:
            why = f"the accounting does not answer: {self.views.silent.message}"
            return TrialLook(one.trial.id, "unknown", why=why, gone=True)
        whole = self.views.get(job_id.whole)
        if whole is not None and not whole.over:
            return TrialLook(one.trial.id, "pending")
        run = self.runs.get(job_id.base)
        if run is not None and run.phase == "cancelled":
            return TrialLook(one.trial.id, "ended", end=cancelled(str(job_id)))
        if run is not None and run.outcome is not None and job_id == job_id.whole:
            return await self._over(one, await jobs.look(self.context, job_id))
        absent = self.context.slurm.accounting.missing
        known = "the accounting has no record of it" if run is not None else "the ledger does not know the job"
        unrecorded = absent is None and run is not None
        return TrialLook(one.trial.id, "unknown", why=absent or known, gone=True, unrecorded=unrecorded)

    async def _facts(self, stage: CampaignStage, trial: TrialId, view: JobView) -> TrialFacts:
        """What the run left behind; of one that failed why."""
        if view.job.state != "COMPLETED":
            return TrialFacts(diagnosis=await _diagnosis(self.context, self.caller, view.job))
        there, uncounted = await _files_there(self.context, stage, trial, view.job)
        facts = TrialFacts(files_there=there, uncounted=uncounted)
        try:
            run = self.runs.get(view.job.job_id.base)
            return replace(facts, metrics=await _metrics(self.context, stage, trial, view, run))
        except (InputError, StorageError) as error:
            return replace(facts, unread=error.message)


async def _files_there(
    context: ClusterContext, stage: CampaignStage, trial: TrialId, job: Job
) -> tuple[list[str], str | None]:
    """Those of `passes.files` that count, and why one of the others does not, where that is not its absence."""
    there, uncounted = [], None
    for path in stage.passes.files:
        named = path.replace("{trial}", str(trial))
        try:
            real = await project_paths.resolve(context.there, "passes.files", named)
            stat = await context.there.files.stat(real)
            if stat is not None:
                _check_age("passes.files", named, stat, job)
                there.append(path)
        except (InputError, StorageError) as error:  # such as a link out of the project: that run's fault alone
            uncounted = error.message
    return there, uncounted


def _check_age(field: str, path: str, stat: Stat, job: Job) -> None:
    """Raise InputError for a file that an earlier run left there, and this one did not write.

    A folder tells only when a name in it was added or taken away, and a job that began again may have written before
    its last start: neither is judged.
    """
    if stat.kind != "file" or job.started is None or job.restarts:
        return
    if stat.modified < job.started - _CLOCKS:
        raise InputError(field, path, "was there before the run began, which did not write it")


async def _diagnosis(context: ClusterContext, caller: Caller, job: Job) -> Diagnosis | None:
    """As analyze_log tells it: the ledger keeps it, so that the guard knows that somebody looked."""
    try:
        reply = await log_analysis.analyze_log(context, AnalyzeLog(job_id=str(job.job_id), mode="error"), caller)
    except UnknownJob:
        return None
    return reply.diagnosis


async def _metrics(
    context: ClusterContext, stage: CampaignStage, trial: TrialId, view: JobView, run: Submission | None
) -> Mapping[str, float]:
    """From the file, by the patterns, or what analyze_log finds. Raises InputError for what cannot be read."""
    source = stage.metrics
    if source is not None and source.file is not None:
        path = source.file.replace("{trial}", str(trial))
        _, stat = await project_paths.regular(context.there, "metrics.file", path)
        _check_age("metrics.file", path, stat, view.job)
        _, data = await project_paths.read_file(context.there, "metrics.file", path, limit=trial_metrics.LARGEST)
        kind: Literal["json", "csv"] = "json" if path.endswith(".json") else "csv"
        return trial_metrics.metrics_of(stage, data.decode("utf-8", "replace"), kind)
    if source is not None:
        return await _of_log(context, stage, view.job, run)
    found, *_ = await log_analysis.figures(context, view)
    return found.get("" if view.job.job_id.task is None else str(view.job.job_id.task), found.get("", {}))


async def _of_log(
    context: ClusterContext, stage: CampaignStage, job: Job, run: Submission | None
) -> Mapping[str, float]:
    """What the patterns find last in what the run wrote, standard output and errors one after the other.

    Only the ends are read where they tell all; else all of a small log, and of a large one what matters.
    """
    paths = await log_paths.paths_of(context, job, run)
    wanted = set() if stage.metrics is None else set(stage.metrics.pattern or ())
    text, whole = "", True
    for path, kind in reversed(paths):
        log, whole = await _end(context, path, kind)
        text = f"{_text(log)}\n{text}"
        if not whole:
            break
    found = trial_metrics.metrics_of(stage, text, "log")
    if whole or wanted <= set(found):
        return found
    logs = [(await log_files.read(context, path, kind)).text for path, kind in paths]
    return trial_metrics.metrics_of(stage, "\n".join(map(_text, logs)), "log")


async def _end(context: ClusterContext, path: str, kind: log_paths.Kind) -> tuple[LogText | None, bool]:
    """The end of one file, read at once, and whether that is all of it; as log_files.read has it where that fails."""
    files = context.there.files
    try:
        real = await project_paths.resolve(context.there, "path", path)
        data = await files.read(real, size=log_parts.SMALL + 1)
        offset = 0
        if data is not None and len(data) > log_parts.SMALL and (stat := await files.stat(real)) is not None:
            offset = max(0, stat.size - log_parts.SMALL)
            data = await files.read(real, offset=offset, size=log_parts.SMALL)
    except (InputError, StorageError):  # such as a folder for logs outside of the project
        data, offset = None, 0
    if data is None:
        return (await log_files.read(context, path, kind)).text, True
    piece = FilePiece(offset, offset + len(data), data, 0 if offset else 1)
    return assemble(path, kind, excerpt.narrow([piece]), piece.end), not offset


def _text(log: LogText | None) -> str:
    return "" if log is None else "\n".join(line.text for line in log.lines)
