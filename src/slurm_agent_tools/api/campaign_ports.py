"""What a campaign needs from outside: it calls the services as every caller does, so nothing passes the guard by."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from slurm_agent_tools.api import trial_looks, trial_results, views
from slurm_agent_tools.api.stage_code import StageHashes
from slurm_agent_tools.api.trial_values import TrialValues
from slurm_agent_tools.campaigns import campaign_report, outcomes
from slurm_agent_tools.campaigns.advice import advice
from slurm_agent_tools.campaigns.batch import Batch, run_key
from slurm_agent_tools.campaigns.file_reader import FOLDER
from slurm_agent_tools.campaigns.ports import (
    BatchHasToWait,
    BatchIsRefused,
    BatchIsSent,
    BatchIsUnconfirmed,
    BatchWasNeverSent,
    FoundBatch,
    SendOutcome,
    SentTrial,
    TrialLook,
)
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.campaigns.trial_identity import names_trial
from slurm_agent_tools.diagnosis import lessons
from slurm_agent_tools.errors import (
    AgentToolsError,
    InputError,
    SlurmGarbled,
    SlurmRefused,
    SlurmUncertain,
    SlurmUnreachable,
    StorageError,
    UnknownJob,
)
from slurm_agent_tools.insights import experiment_results
from slurm_agent_tools.models.arguments import CancelJob
from slurm_agent_tools.models.campaign import Trial, TrialEnd, TrialId
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.models.result import SaveResult
from slurm_agent_tools.models.submission_answer import SubmitReply
from slurm_agent_tools.policy.evaluate import format_refusal
from slurm_agent_tools.policy.rules.files import inside, protected_by
from slurm_agent_tools.services import (
    cancel,
    failures,
    generation,
    jobs,
    project_paths,
    recovery,
    results,
    submission_facts,
    submit,
)
from slurm_agent_tools.services.context import Caller, ClusterContext, ProjectFiles
from slurm_agent_tools.store.submissions import GIVEN_UP
from slurm_agent_tools.transport.git_state import git_state
from slurm_agent_tools.units import JobId

_TOOL = "advance_campaign"

_LARGEST = 2**20

_NOT_SAVED = "nothing to save"

_LATER = 60.0
"""Seconds until a try after what passes by itself."""


_ASK_AGAIN = "Call plan_jobs again, and write the uri of its answer into the campaign's file."

_MOST_PLANNED = 1000
"""Jobs of a plan that name trials: each trial is compared with all of them."""


def _base(one: SentTrial) -> int:
    return jobs.parse(one.job_id).base


@dataclass(frozen=True, slots=True)
class ServicePorts:
    """The ports of one campaign for one call. `smoke_jobs`: for each stage the job whose smoke run passed.

    `failed`: the run_key of each failed trial. `hashes`: of what stages run, kept while one call goes on.
    `ended`: jobs that a look saw to have ended, by their ids.
    """

    context: ClusterContext
    caller: Caller
    name: str
    file: CampaignFile
    smoke_jobs: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    hashes: StageHashes = field(default_factory=StageHashes)
    ended: dict[str, JobView] = field(default_factory=dict)

    async def code_hash(self, stage: CampaignStage) -> str:
        """See StageHashes."""
        there = self.context.there
        return await self.hashes.of(there.files, there.root, stage, far=self.context.elsewhere is not None)

    async def texts(self, paths: Sequence[str]) -> Mapping[str, str]:
        """As they are here now. Raises InputError for one that is not there."""
        found = {}
        for path in paths:
            _, data = await project_paths.read_file(self.context.here, "campaign", path, limit=_LARGEST)
            found[path] = data.decode("utf-8", "surrogateescape")
        return found

    async def plan_order(self, uri: str) -> tuple[str, ...]:
        """The jobs of a kept plan that name trials, by their starts. Raises InputError for one that cannot serve."""
        try:
            kept = await views.kept_plan(self.context, uri.rpartition("/")[2])
        except InputError as error:
            raise InputError("plan", uri, "is none of the last plans", hint=_ASK_AGAIN) from error
        jobs = {job.name: job for job in kept.plan.problem.jobs if names_trial(self.file, job.name)}
        if not 0 < len(jobs) <= _MOST_PLANNED:
            hint = 'Name the jobs of the plan after settings of trials, such as "lr=0.1", and after a stage if needed.'
            raise InputError("plan", uri, f"has {len(jobs)} jobs that name trials, not 1 to {_MOST_PLANNED}", hint=hint)
        for name, job in jobs.items():
            before = next((one for one in job.after if one in jobs), None)
            if before is not None:
                hint = "Trials of a round do not wait for each other: leave it out of `after`, and plan again."
                raise InputError("plan", uri, f"has {name!r} wait for {before!r}", hint=hint)
        return tuple(dict.fromkeys(one.job.name for one in kept.plan.schedule.placed if one.job.name in jobs))

    async def write(self, batch: Batch) -> None:
        """Each file where the policy lets scripts be generated. Raises InputError where it does not."""
        for path, text in {**batch.files, batch.script_path: batch.script_text}.items():
            folders = (*self.context.policy.policy.write.generate_script.folders, f"{FOLDER}/{self.name}")
            await self._write(path, text, folders, mode=0o700 if path == batch.script_path else 0o600)

    async def _write(self, path: str, text: str, folders: Sequence[str], *, mode: int = 0o600) -> None:
        """One file of the campaign's own; on a cluster elsewhere also there, where its job reads it."""
        sides = [self.context.here, *([self.context.there] if self.context.elsewhere is not None else [])]
        for side in sides:
            real = await self._place(side, path, folders, len(text.encode()))
            if await side.files.read(real, size=len(text.encode()) + 1) == text.encode():
                continue
            await side.files.make_folder(posixpath.dirname(real))
            if not await side.files.write_new(real, text.encode(), mode=mode):
                await side.files.write_over(real, text.encode(), mode=mode)
            await self._log("written", path=path, size=len(text.encode()))

    async def _place(self, side: ProjectFiles, path: str, folders: Sequence[str], size: int) -> str:
        """Where it lies. Raises InputError where the policy, or a link on the way, forbids it."""
        real = await project_paths.resolve(side, "campaign", path)
        policy = self.context.policy.policy
        if not any(inside(real, posixpath.normpath(posixpath.join(side.root, folder))) for folder in folders):
            raise InputError(
                "campaign", path, f"is in none of {', '.join(folders) or 'no folder'}", hint="Ask a person."
            )
        if protected_by(real, side.root, policy) is not None or size > policy.sizes.result_bytes:
            raise InputError("campaign", path, "is protected by the policy, or too large", hint="Ask a person.")
        return real

    async def _log(self, event: str, **facts: object) -> None:
        await self.context.log_decision(
            self.caller, self.context.own_decision("allow"), _TOOL, event, campaign=self.name, **facts
        )

    @property
    def most_slots(self) -> int:
        """The guard's limit of concurrent jobs."""
        return self.context.policy.policy.limits.max_concurrent_jobs

    async def free_slots(self) -> int:
        """As the guard counts them; all where that cannot be read now: the guard counts again in `send`."""
        try:
            return await submission_facts.free_slots(self.context)
        except (SlurmGarbled, StorageError):
            return self.most_slots

    async def send(self, batch: Batch, stage: CampaignStage) -> SendOutcome:
        """As submit_job does it, with a written reason only where the guard asks for one that the campaign has."""
        ask = outcomes.submission(self.file, batch, self._smoke_limit)
        try:
            against = await self._values(batch)
            if against is not None:
                found = await self.find(batch.key)
                return against if isinstance(found, BatchWasNeverSent) else found
            await self.context.slurm.queue(max_age=0)  # a controller that is away leaves no script for a person
            await self.context.db(self.context.store.mark_read, self.context.owner, "status", self.context.clock.now())
            reply = await submit.submit_job(self.context, ask, self.caller)
            reason = outcomes.written_reason(self.name, batch, reply, self.smoke_jobs.get(stage.name), self.failed)
            if reason is not None:
                reply = await submit.submit_job(
                    self.context, ask.model_copy(update={"justification": reason}), self.caller
                )
        except (SlurmGarbled, StorageError) as error:  # such as another submission that is going on: it passes
            found = await self.find(batch.key)
            return BatchHasToWait(_LATER, error.message) if isinstance(found, BatchWasNeverSent) else found
        except (InputError, SlurmRefused) as error:
            found = await self.find(batch.key)  # its key may have been sent before
            if isinstance(found, BatchWasNeverSent):
                return BatchIsRefused(f"{error.message}. {error.hint}".strip(), person=False)
            return found
        return outcomes.outcome(reply, batch.width)

    async def _values(self, batch: Batch) -> BatchIsRefused | None:
        """What the guard has against the values of the batch's trials, which its script does not tell."""
        context, values = self.context, TrialValues([batch])
        rules = await values.added(batch, context.there.root, context.there.files)
        if not rules:
            return None
        decision = await generation.judge_script(
            context, batch.script_text.encode(), batch.script_path,
            justification=self.file.justification, reader=values.reader(batch),
        )  # fmt: skip
        against = [one for one in decision.rules if one.id in rules and one.outcome in outcomes.SEVERE]
        if not against:
            return None
        await context.log_decision(self.caller, decision, _TOOL, "decided", path=batch.script_path, campaign=self.name)
        return BatchIsRefused(
            f"With the values of its trials: {format_refusal(decision)}",
            person=False,
            rules=tuple(one.id for one in against),
        )

    @property
    def _smoke_limit(self) -> int:
        return self.context.policy.policy.smoke_first.smoke_time_limit

    async def dry_run(self, batch: Batch) -> SubmitReply:
        """What the guard and Slurm say of a batch whose files are there."""
        ask = outcomes.submission(self.file, batch, self._smoke_limit)
        return await submit.submit_job(self.context, ask.model_copy(update={"dry_run": True}), self.caller)

    async def find(self, key: str) -> FoundBatch:
        """By the ledger, completed by what the queue and the accounting show. Raises SlurmError."""
        try:
            return await self._found(key)
        except (SlurmGarbled, StorageError) as error:
            return BatchIsUnconfirmed(error.message)

    async def _found(self, key: str) -> FoundBatch:
        context = self.context
        known = await context.db(context.store.by_key, context.owner, key)
        if known is not None and known.phase not in {"released", "cancelled", *GIVEN_UP}:
            await recovery.complete(context, await context.slurm.queue(max_age=0))
            known = await context.db(context.store.by_key, context.owner, key)
        if known is None or known.phase in {"cancelled", *GIVEN_UP}:
            return BatchWasNeverSent()
        if known.phase == "released" and known.job_id is not None:
            return BatchIsSent(known.job_id)
        return BatchIsUnconfirmed(f"Slurm may have the job of {key}: {known.phase}.")

    async def look(self, sent: Sequence[SentTrial]) -> Sequence[TrialLook]:
        """See trial_looks."""
        try:
            found = await trial_looks.look_at_trials(self.context, self.caller, self.file, sent, self.ended)
        except (SlurmGarbled, StorageError) as error:
            return [TrialLook(one.trial.id, "unknown", why=error.message) for one in sent]
        ended = {look.trial: look.end for look in found if look.end is not None}
        for one in sent:
            end = ended.get(one.trial.id)
            if one.smoke and end is not None and end.passed:
                self.smoke_jobs[one.trial.stage] = end.job_id
            if one.stage is not None and end is not None and not end.passed:
                self.failed.add(run_key(one.trial, one.stage))
        return found

    async def cancel(self, sent: Sequence[SentTrial], reason: str) -> Mapping[TrialId, str | None]:
        """As cancel_job does it, and only what has not begun since it was looked at. Raises SlurmUnreachable."""
        try:
            begun = trial_looks.going(await self.context.slurm.queue(max_age=0), map(_base, sent))
        except SlurmGarbled as error:
            return {one.trial.id: error.message for one in sent}
        kept: dict[TrialId, str | None] = {one.trial.id: None for one in sent if jobs.parse(one.job_id) in begun}
        left = sorted((one for one in sent if one.trial.id not in kept), key=_base)
        for base, parts in groupby(left, key=_base):
            listed = list(parts)
            problem = await self._cancel(base, [jobs.parse(one.job_id) for one in listed], reason[:500])
            if problem is not None:
                kept |= {one.trial.id: problem or None for one in listed}
        return kept

    async def _cancel(self, base: int, ids: Sequence[JobId], reason: str) -> str | None:
        """Cancel what belongs to one job, tasks of an array by one command; why it was not, "" where it is over."""
        tasks = [one.task for one in ids if one.task is not None]
        try:
            if len(tasks) > 1:
                answer = await cancel.cancel_tasks(self.context, base, tasks, reason, self.caller)
            else:
                answer = await cancel.cancel_job(
                    self.context, CancelJob(job_id=str(ids[0]), reason=reason), self.caller
                )
        except UnknownJob:
            return ""
        except (SlurmGarbled, SlurmRefused, SlurmUncertain, StorageError) as error:
            return error.message
        if answer.status == "already_finished":
            return ""
        return (answer.reason or answer.summary) if answer.status == "blocked" else None

    async def save_results(self, ended: Sequence[tuple[Trial, TrialEnd]]) -> Mapping[TrialId, str]:
        """One file for a trial, whoever asks how often. Those that did not fail are written together."""
        asked = {trial.id: self._result(trial, end) for trial, end in ended}
        found = await self._saved_before(asked)
        seen = {trial.id: self.ended.get(end.job_id) for trial, end in ended}
        together = {
            trial: (ask, view)
            for trial, ask in asked.items()
            if trial not in found and ask.status != "failed" and (view := seen[trial]) is not None
        }
        try:
            paths = await trial_results.save_all(self.context, list(together.values()), self.caller) if together else []
            found |= {trial: path or _NOT_SAVED for trial, path in zip(together, paths, strict=True)}
        except (InputError, StorageError):  # of one of them: the others count, each by itself
            found = await self._saved_before(asked)
        return found | {trial: await self._save(ask, seen[trial]) for trial, ask in asked.items() if trial not in found}

    async def _saved_before(self, asked: Mapping[TrialId, SaveResult]) -> dict[TrialId, str]:
        """Where the results are that were written before; noted again, as a crash may have come in between."""
        folder = await project_paths.resolve(self.context.here, "result", results.FOLDER)
        files = [name for name in await self.context.files.list(folder) or [] if name.endswith(".json")]
        newest = experiment_results.newest(files, {ask.name for ask in asked.values()})
        found, notes = dict[TrialId, str](), list[Callable[[], object]]()
        for trial, ask in asked.items():
            if ask.name not in newest:
                continue
            try:
                path, record = await results.load(self.context, "result", f"{results.FOLDER}/{newest[ask.name]}")
            except InputError:  # another's file of that name is no result of this trial
                continue
            job = record.environment.slurm_job
            if job is not None and job.job.job_id == ask.job_id:
                found[trial] = path
                notes.append(results.note(self.context, path, record))
        await self.context.db(self.context.store.together, notes)
        return found

    async def _save(self, ask: SaveResult, view: JobView | None) -> str:
        try:
            return (await results.save_result(self.context, ask, self.caller, view)).file_path or _NOT_SAVED
        except SlurmUnreachable:
            raise
        except AgentToolsError as error:
            return f"not saved: {error.message}"

    def _result(self, trial: Trial, end: TrialEnd) -> SaveResult:
        return SaveResult(
            name=f"{self.name}-{trial.id}",
            status="success" if end.passed else "cancelled" if end.state == "CANCELLED" else "failed",
            config={"stage": trial.stage, **trial.settings},
            metrics=outcomes.figures(end),
            notes=trial.mended or end.problem,
            job_id=end.job_id,
        )

    async def write_lesson(self, failed: TrialEnd, mended: Trial, end: TrialEnd) -> str | None:
        """A line in the project's lessons, once."""
        place = lessons.PLACE
        real = await project_paths.resolve(self.context.here, "lessons", place)
        before = await self.context.files.read(real, size=lessons.LONGEST + 1) or b""
        if len(before) > lessons.LONGEST:
            raise StorageError(f"{place} is larger than {lessons.LONGEST} bytes", hint="Move old lessons elsewhere.")
        text = before.decode("utf-8", "surrogateescape")  # what is there stays as it is, byte for byte
        what = f"{failed.explanation or failed.problem} ({self.name}, {mended.stage}, job {failed.job_id})"
        how = f"{mended.mended} (job {end.job_id})"
        line = lessons.lesson(self.context.clock.now().date(), failed.category or "failed", what, how)
        whole = lessons.with_lesson(text, line)
        if whole == text:
            return None
        data = whole.encode("utf-8", "surrogateescape")
        plan, decision = await failures.judged(self.context, place, len(data), adds=True)
        await self.context.log_decision(self.caller, decision, _TOOL, "decided", path=place, size=plan.size)
        if decision.verdict != "allow" or plan.path is None:
            return None
        if not await self.context.files.write_new(plan.path, data, mode=0o600):
            await self.context.files.write_over(plan.path, data, mode=0o600)
        return line

    async def write_report(self, file: CampaignFile, state: CampaignState) -> str | None:
        """Both forms beside the file; the path of the one in Markdown."""
        git = await git_state(self.context.project)
        told = None if git.commit is None else f"{git.commit[:12]}{' with changes' if git.dirty else ''}"
        advised = advice(file, state)
        facts = campaign_report.ReportFacts(self.name, self.context.clock.now(), told, advised)
        files: Mapping[str, str] = campaign_report.report_files(file, state, facts)
        for path, text in files.items():
            real = await self._place(self.context.here, path, [FOLDER], len(text.encode()))
            try:
                if not await self.context.files.write_new(real, text.encode(), mode=0o600):
                    await self.context.files.write_over(real, text.encode(), mode=0o600)
            except StorageError as error:
                raise StorageError(f"{path}: {error.message}", hint=error.hint) from error
        return next(iter(files), None)
