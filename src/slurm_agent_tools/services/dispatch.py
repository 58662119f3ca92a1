"""The way of an allowed request into Slurm: intent, held job, comparison, release. Each step is in the ledger first."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager

from slurm_agent_tools.errors import SlurmError, SlurmRefused, SlurmUncertain, StorageError, UnknownJob
from slurm_agent_tools.models.decision import Advised, decision_shown
from slurm_agent_tools.models.job import SUBMISSION_PREFIX, Job, comment_for, token_in
from slurm_agent_tools.models.submission_answer import LogPaths, SubmitReply
from slurm_agent_tools.services import present, snapshot, submission_advice, verification
from slurm_agent_tools.services.context import ClusterContext, new_id
from slurm_agent_tools.services.submission_request import SubmissionRequest, blocked, log_decision, reply
from slurm_agent_tools.slurm.commands.sbatch import TestOnly
from slurm_agent_tools.store.submissions import Decided, Submission
from slurm_agent_tools.units import JobId


def options(case: SubmissionRequest) -> list[str]:
    """sbatch's options: what the guard always sets, what was asked, what was pinned."""
    always = ["--hold", "--ignore-pbs", "--no-requeue", f"--job-name={case.name}"]
    if case.request.export is None:
        always.append("--export=ALL")  # all of an environment that holds the policy's variables only
    asked = [option for option in case.options if not option.startswith("--job-name=")]
    return [*always, *asked, *(pin.option for pin in case.pinned)]


def job_environment(context: ClusterContext) -> dict[str, str]:
    """The variables that pass to a job: those that the policy lists, nothing else."""
    found = context.environment.environ
    return {name: found[name] for name in context.policy.policy.pass_environment if name in found}


async def trial(context: ClusterContext, case: SubmissionRequest) -> TestOnly:
    """Slurm's own opinion of the request, before anything is sent."""
    return await context.slurm.test_only(
        options(case), case.data, case.ask.args or (), cwd=context.there.root, env=job_environment(context)
    )


async def send(context: ClusterContext, case: SubmissionRequest) -> SubmitReply | None:
    """Submit held and go on with it. SlurmUnreachable only when surely nothing was sent.

    None where somebody else used the person's yes meanwhile: it is used up with the intent, in one act.
    """
    now = context.clock.now()
    submission = Submission(
        token=f"{SUBMISSION_PREFIX}{new_id()}", idempotency_key=case.key, phase="intent", created=now, updated=now,
        script_path=case.reading.path, script_sha256=case.reading.sha256, request_sha256=case.request_sha256,
        job_name=case.name, slots=case.resources.array_concurrency or 1, decision_id=case.verdict.id,
        run_id=case.ask.run_id, requested=case.resources, files=case.reading.files,
        approval_id=None if case.verdict.approval is None else case.verdict.approval.id,
        estimated_start=None if case.advised is None else case.advised.estimated_start,
    )  # fmt: skip
    await _log_folders(context, case)
    if not await context.db(context.store.add, context.owner, submission, Decided(case.verdict, case.advised)):
        return None
    try:
        sent = await context.slurm.submit(
            [*options(case), f"--comment={comment_for(submission.token, submission.run_id)}"],
            case.data, case.ask.args or (),
            cwd=context.there.root, env=job_environment(context),
        )  # fmt: skip
    except SlurmUncertain as error:
        return await _uncertain(context, case, submission, error)
    except SlurmError as error:
        found = await _queued(context, submission) if isinstance(error, SlurmRefused) else None
        if found is None:
            await _given_up(context, case, submission, error)
            raise
        number = found.job_id.base  # a site's own sbatch can fail after the real one was done
    else:
        number = sent.job_id
    with taken(case, f"Slurm took {case.name} as job {number}"):
        submission = await context.db(context.store.update, submission, phase="held", job_id=number)
        return await proceed(context, case, submission)


async def _queued(context: ClusterContext, submission: Submission) -> Job | None:
    """Its job, where the queue can be read and shows one."""
    with contextlib.suppress(SlurmError):
        return context.slurm.mine(await context.slurm.queue(fresh=True)).commented(submission.token)
    return None


async def _given_up(
    context: ClusterContext, case: SubmissionRequest, submission: Submission, error: SlurmError
) -> None:
    phase = "refused" if isinstance(error, SlurmRefused) else "lost"
    await context.db(context.store.update, submission, phase=phase)
    await log_decision(context, case, phase, token=submission.token, error=error.message)


@contextmanager
def taken(case: SubmissionRequest, what: str) -> Iterator[None]:
    """A ledger that fails from here on leaves a job behind: the error says so, and how to go on with it."""
    try:
        yield
    except StorageError as error:
        hint = f"{error.hint} Then call again with idempotency_key {case.key}: it goes on with that job."
        raise StorageError(f"{what}, but {error.message}", hint=hint) from error


async def _log_folders(context: ClusterContext, case: SubmissionRequest) -> None:
    """Make the folders of the job's logs inside the project: without them Slurm fails a job and leaves no trace."""
    start = posixpath.join(context.there.root, case.request.chdir or "")
    for path in (case.request.output, case.request.error):
        folder = posixpath.dirname(path or "")
        if folder and "%" not in folder and "\\" not in folder:
            real = await context.there.files.real_path(posixpath.join(start, folder))
            if real.startswith(context.there.root.rstrip("/") + "/"):
                await context.there.files.make_folder(real)


async def proceed(context: ClusterContext, case: SubmissionRequest, submission: Submission) -> SubmitReply:
    """Compare the held job with what was allowed, release it, answer. A loss on the way is `unconfirmed`."""
    job_id = JobId(submission.job_id or 0)
    try:
        granted = await context.slurm.held(job_id)
        if token_in(granted.comment) != submission.token:
            return await _another(context, case, submission)
        differences = verification.differences(context, case, granted, await context.slurm.batch_script(job_id))
        if submission.approval_id is None and _capped(case):
            differences += await snapshot.reasons_crowded(context, job_id)
        if differences:
            return await _withdraw(context, case, submission, differences)
        await context.slurm.release(job_id)
    except SlurmRefused as error:
        return await _withdraw(context, case, submission, [error.message])
    except UnknownJob as error:
        return await _gone(context, case, submission, error)
    except SlurmError as error:
        return await unconfirmed(context, case, submission, error.message)
    return await _released(context, case, submission, granted)


async def _another(context: ClusterContext, case: SubmissionRequest, submission: Submission) -> SubmitReply:
    """The number that sbatch gave is not that of the job with the token: that job is left as it is.

    The one with the token is gone on with, where the queue shows it.
    """
    wrong, found = submission.job_id, await _queued(context, submission)
    if found is not None and found.job_id.base != wrong:
        known = await context.db(context.store.update, submission, phase="held", job_id=found.job_id.base)
        return await proceed(context, case, known)
    known = await context.db(context.store.update, submission, phase="unconfirmed", job_id=None)
    reason = f"sbatch named job {wrong}, which does not have the token of this submission; it was left as it is."
    return await unconfirmed(context, case, known, reason)


async def _released(
    context: ClusterContext, case: SubmissionRequest, submission: Submission, granted: Job | None
) -> SubmitReply:
    """The answer for a job that Slurm may run. It counts once it is in the ledger, so the log comes first."""
    await log_decision(context, case, "submitted", token=submission.token, job_id=submission.job_id)
    known: dict[str, object] = {"phase": "released", "released": context.clock.now()}
    if granted is not None:
        known |= {"granted": granted.resources, "stdout": granted.stdout, "stderr": granted.stderr}
    submission = await context.db(context.store.update, submission, **known)
    return answer(submission, Decided(case.verdict, case.advised))


def answer(run: Submission, decided: Decided) -> SubmitReply:
    """The answer for a job that was released, from what the ledger has of it: the same whenever it is asked for."""
    advised = decided.advised or Advised()
    what = f"Job {run.job_id} ({run.job_name}) is submitted{present.brief(run.requested)}."
    starts = f" {advised.awaits}" if advised.awaits else submission_advice.starts(advised.expected_wait)
    return SubmitReply(
        status="submitted",
        summary=f"{what}{starts} Wait for it with wait_for_job.{present.advice_summary(advised)}",
        as_of=run.released or run.updated,
        job_id=str(run.job_id),
        token=run.token,
        idempotency_key=run.idempotency_key,
        run_id=run.run_id,
        pinned=list(decided.decision.pinned),
        requested=present.resources(run.requested),
        granted=None if run.granted is None else present.resources(run.granted),
        log_paths=None if run.granted is None else LogPaths(stdout=run.stdout, stderr=run.stderr),
        decision=decision_shown(decided.decision),
        **present.advice(advised),
    )


def _capped(case: SubmissionRequest) -> bool:
    """Whether the limit of concurrent jobs counts for this job: the policy's level did not let it go beyond."""
    (rule,) = (rule for rule in case.verdict.rules if rule.id == "concurrent-jobs")
    beyond = isinstance(rule.observed, int) and isinstance(rule.limit, int) and rule.observed > rule.limit
    return rule.outcome == "not_evaluated" or (rule.outcome == "pass" and not beyond)


async def report(context: ClusterContext, case: SubmissionRequest, submission: Submission) -> SubmitReply:
    """The answer for a job that an earlier call released before its answer was lost."""
    try:
        granted = await context.slurm.held(JobId(submission.job_id or 0))
    except (SlurmError, UnknownJob):  # over and forgotten by the controller: the job id is what matters
        granted = None
    return await _released(context, case, submission, granted)


async def _withdraw(
    context: ClusterContext, case: SubmissionRequest, submission: Submission, differences: list[str]
) -> SubmitReply:
    """Slurm made something else of it than was checked: it never runs."""
    from slurm_agent_tools.services import jobs  # noqa: PLC0415 - a job that is released needs nothing of it

    try:
        await jobs.cancel(context, JobId(submission.job_id or 0))
    except SlurmError as error:
        return await unconfirmed(context, case, submission, f"{'; '.join(differences)}; cancelling it: {error.message}")
    await context.db(context.store.update, submission, phase="cancelled")
    await log_decision(
        context, case, "withdrawn", token=submission.token, job_id=submission.job_id, differences=differences
    )
    reason = f"Slurm would not grant what was checked, so the held job was cancelled: {'; '.join(differences)}"
    return blocked(context, case, "policy", human=False, reason=reason)


async def _gone(
    context: ClusterContext, case: SubmissionRequest, submission: Submission, error: UnknownJob
) -> SubmitReply:
    """The held job vanished before it was released: it never ran, and the caller decides whether to send it again."""
    if await _queued(context, submission) is not None:
        return await _another(context, case, submission)
    await context.db(context.store.update, submission, phase="cancelled")
    await log_decision(context, case, "vanished", token=submission.token, job_id=submission.job_id, error=error.message)
    raise SlurmRefused(
        f"Slurm took {case.name} as job {submission.job_id} and forgot it before it was released; it did not run",
        hint="Look at get_status, then call again.",
    ) from error


async def _uncertain(
    context: ClusterContext, case: SubmissionRequest, submission: Submission, error: SlurmUncertain
) -> SubmitReply:
    with taken(case, f"Slurm may have taken {case.name}"):
        submission = await context.db(context.store.update, submission, phase="unconfirmed")
        try:
            found = await context.slurm.find_token(submission.token)
        except SlurmError:
            found = None
        if found is None:
            return await unconfirmed(context, case, submission, error.message)
    with taken(case, f"Slurm took {case.name} as job {found.job_id.base}"):
        submission = await context.db(context.store.update, submission, phase="held", job_id=found.job_id.base)
        return await proceed(context, case, submission)


async def unconfirmed(
    context: ClusterContext, case: SubmissionRequest, submission: Submission, reason: str
) -> SubmitReply:
    """sbatch or what followed may have been carried out: the same key finds out before anything is sent again."""
    await log_decision(context, case, "unconfirmed", token=submission.token, job_id=submission.job_id, error=reason)
    summary = f"Slurm may have accepted {case.name}; call again with idempotency_key {case.key}. {reason}"
    return reply(context, case, "unconfirmed", summary).model_copy(
        update={
            "reason": reason,
            "token": submission.token,
            "job_id": None if submission.job_id is None else str(submission.job_id),
        }
    )
