"""The way of an allowed request into Slurm: intent, held job, comparison, release. Each step is in the ledger first."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from slurm_agent_tools.errors import SlurmError, SlurmRefused, SlurmUncertain, StorageError, UnknownJob
from slurm_agent_tools.models.decision import decision_shown
from slurm_agent_tools.models.job import SUBMISSION_PREFIX, Job, comment_for, token_in
from slurm_agent_tools.models.job_resources import grown_since
from slurm_agent_tools.models.shapes import ResourcesShown
from slurm_agent_tools.models.submission_answer import Advised, LogPaths, SubmitReply
from slurm_agent_tools.policy.evaluate import evaluate
from slurm_agent_tools.scripts.effective_request import named
from slurm_agent_tools.services import submission_facts
from slurm_agent_tools.services.context import ClusterContext, new_id
from slurm_agent_tools.services.submission_request import (
    GivenTicket,
    SubmissionRequest,
    blocked,
    context_of,
    log_decision,
    reply,
)
from slurm_agent_tools.slurm.commands.sbatch import TestOnly
from slurm_agent_tools.store.submissions import Decided, Submission
from slurm_agent_tools.units import JobId, by_task


def options(request: SubmissionRequest) -> list[str]:
    """sbatch's options: what the guard always sets, what was asked, what was pinned."""
    always = ["--hold", "--ignore-pbs", "--no-requeue", f"--job-name={request.name}"]
    if request.effective.export is None:
        always.append("--export=ALL")  # all of an environment that holds the policy's variables only
    asked = [option for option in request.options if not option.startswith("--job-name=")]
    return [*always, *asked, *(pin.option for pin in request.pinned)]


def job_environment(context: ClusterContext) -> dict[str, str]:
    """The variables that pass to a job: those that the policy lists, nothing else."""
    environment = context.environment.environ
    return {name: environment[name] for name in context.policy.policy.pass_environment if name in environment}


async def trial(context: ClusterContext, request: SubmissionRequest) -> TestOnly:
    """Slurm's own opinion of the request, before anything is sent."""
    return await context.slurm.test_only(
        options(request),
        request.data,
        request.arguments.args or (),
        cwd=context.there.root,
        env=job_environment(context),
    )


async def send(context: ClusterContext, request: SubmissionRequest) -> SubmitReply | None:
    """Submit held and go on with it. SlurmUnreachable only when surely nothing was sent.

    None where somebody else used the person's yes meanwhile: it is used up with the intent, in one act.
    """
    now, ticket = context.clock.now(), request.ticket or GivenTicket()
    submission = Submission(
        token=ticket.token or f"{SUBMISSION_PREFIX}{new_id()}", idempotency_key=request.key, phase="intent",
        created=now, updated=now,
        script_path=request.reading.path, script_sha256=request.reading.sha256, request_sha256=request.request_sha256,
        job_name=request.name, slots=request.resources.array_concurrency or 1, decision_id=request.verdict.id,
        run_id=request.arguments.run_id, requested=request.resources, files=request.reading.files,
        approval_id=None if request.ticket or request.verdict.approval is None else request.verdict.approval.id,
        estimated_start=None if request.advised is None else request.advised.estimated_start, work=request.work,
        stage=None if request.ladder is None else request.arguments.stage or "production",
        configuration=None if request.ladder is None else request.ladder.configuration,
        parts=None if request.ladder is None else request.ladder.parts,
    )  # fmt: skip
    await _log_folders(context, request)
    decided = Decided(request.verdict, request.advised, request.foretold)
    if not await context.db(context.store.add, context.owner, submission, decided):
        return None
    try:
        sent = await context.slurm.submit(
            [*options(request), f"--comment={comment_for(submission.token, submission.run_id)} {ticket.word}".rstrip()],
            request.data, request.arguments.args or (),
            cwd=context.there.root, env=job_environment(context),
        )  # fmt: skip
    except SlurmUncertain as error:
        return await _uncertain(context, request, submission, error)
    except SlurmError as error:
        job = await _queued(context, submission) if isinstance(error, SlurmRefused) else None
        if job is None:
            await _given_up(context, request, submission, error)
            raise
        number = job.job_id.base  # a site's own sbatch can fail after the real one was done
    else:
        number = sent.job_id
    with taken(request, f"Slurm took {request.name} as job {number}"):
        submission = await context.db(context.store.update, submission, phase="held", job_id=number)
        return await proceed(context, request, submission)


async def _queued(context: ClusterContext, submission: Submission) -> Job | None:
    """Its job, where the queue can be read and shows one."""
    with contextlib.suppress(SlurmError):
        return context.slurm.mine(await context.slurm.queue(max_age=0)).commented(submission.token)
    return None


async def _given_up(
    context: ClusterContext, request: SubmissionRequest, submission: Submission, error: SlurmError
) -> None:
    phase = "refused" if isinstance(error, SlurmRefused) else "lost"
    await context.db(context.store.update, submission, phase=phase)
    await log_decision(context, request, phase, token=submission.token, error=error.message)


@contextmanager
def taken(request: SubmissionRequest, what: str) -> Iterator[None]:
    """A ledger that fails from here on leaves a job behind: the error says so, and how to go on with it."""
    try:
        yield
    except StorageError as error:
        hint = f"{error.hint} Then call again with idempotency_key {request.key}: it goes on with that job."
        raise StorageError(f"{what}, but {error.message}", hint=hint) from error


async def _log_folders(context: ClusterContext, request: SubmissionRequest) -> None:
    """Make the folders of the job's logs inside the project: without them Slurm fails a job and leaves no trace."""
    start = posixpath.join(context.there.root, request.effective.chdir or "")
    for path in (request.effective.output, request.effective.error):
        folder = posixpath.dirname(path or "")
        if folder and "%" not in folder and "\\" not in folder:
            real = await context.there.files.real_path(posixpath.join(start, folder))
            if real.startswith(context.there.root.rstrip("/") + "/"):
                await context.there.files.make_folder(real)


async def proceed(context: ClusterContext, request: SubmissionRequest, submission: Submission) -> SubmitReply:
    """Compare the held job with what was allowed, release it, answer. A loss on the way is `unconfirmed`."""
    job_id = JobId(submission.job_id or 0)
    try:
        granted = await context.slurm.held(job_id)
        if token_in(granted.comment) != submission.token:
            return await _another(context, request, submission)
        fewer = (granted.resources.gpus or 0) < (request.resources.gpus or 0)
        shown = await _with_all_gpus(context, request, granted) if fewer else granted
        differences = differences_of(context, request, shown, await context.slurm.batch_script(job_id))
        if submission.approval_id is None and request.ticket is None and _capped(request):
            differences += await submission_facts.reasons_crowded(context, job_id)
        if differences:
            return await _withdraw(context, request, submission, differences)
        await context.slurm.release(job_id)
    except SlurmRefused as error:
        return await _withdraw(context, request, submission, [error.message])
    except UnknownJob as error:
        return await _gone(context, request, submission, error)
    except SlurmError as error:
        return await unconfirmed(context, request, submission, error.message)
    return await _released(context, request, submission, granted)


async def _another(context: ClusterContext, request: SubmissionRequest, submission: Submission) -> SubmitReply:
    """The number that sbatch gave is not that of the job with the token: that job is left as it is.

    The one with the token is gone on with, where the queue shows it.
    """
    wrong_id, job = submission.job_id, await _queued(context, submission)
    if job is not None and job.job_id.base != wrong_id:
        known = await context.db(context.store.update, submission, phase="held", job_id=job.job_id.base)
        return await proceed(context, request, known)
    known = await context.db(context.store.update, submission, phase="unconfirmed", job_id=None)
    reason = f"sbatch named job {wrong_id}, which does not have the token of this submission; it was left as it is."
    return await unconfirmed(context, request, known, reason)


async def _released(
    context: ClusterContext, request: SubmissionRequest, submission: Submission, granted: Job | None
) -> SubmitReply:
    """The answer for a job that Slurm may run. It counts once it is in the ledger, so the log comes first."""
    await log_decision(context, request, "submitted", token=submission.token, job_id=submission.job_id)
    known: dict[str, object] = {"phase": "released", "released": context.clock.now()}
    if granted is not None:
        paths = {"stdout": granted.stdout, "stderr": granted.stderr}
        if request.resources.array_tasks is not None:
            paths = {which: by_task(path) for which, path in paths.items()}
        known |= {"granted": granted.resources, **paths}
    submission = await context.db(context.store.update, submission, **known)
    return answer(submission, Decided(request.verdict, request.advised), alone=request.alone)


def answer(run: Submission, decided: Decided, *, again: str = "", alone: bool = False) -> SubmitReply:
    """The answer for a released job, by the ledger. `again`: what the call has in common with an earlier one.

    `alone`: no other job waited, which the ledger does not keep.
    """
    advised, at = decided.advised or Advised(), run.released or run.updated
    what = f"Job {run.job_id} ({run.job_name}) is submitted{run.requested.in_words}"
    if run.granted is not None and (run.granted.cpus or 0) < (run.requested.cpus or 0):
        what += " (at most: `granted` is what Slurm counts until it has placed the job)"
    what += "."
    starts = f" {advised.awaits}" if advised.awaits else submission_facts.starts(advised.expected_wait, alone=alone)
    if again:
        what = f"Nothing new was sent: at {at:%Y-%m-%d %H:%M:%S UTC} an earlier call with the same {again} submitted"
        what, starts = f"{what} job {run.job_id} ({run.job_name}){run.requested.in_words}.", ""
    return SubmitReply(
        status="submitted",
        summary=f"{what}{starts} Wait for it with wait_for_job.{advised.summary}",
        as_of=at,
        job_id=str(run.job_id),
        token=run.token,
        idempotency_key=run.idempotency_key,
        run_id=run.run_id,
        pinned=list(decided.decision.pinned),
        requested=ResourcesShown.of(run.requested),
        granted=None if run.granted is None else ResourcesShown.of(run.granted),
        log_paths=None if run.granted is None else LogPaths(stdout=run.stdout, stderr=run.stderr),
        decision=decision_shown(decided.decision),
        **advised.shown,
    )


def _capped(request: SubmissionRequest) -> bool:
    """Whether the limit of concurrent jobs counts for this job: the policy's level did not let it go beyond."""
    (rule,) = (rule for rule in request.verdict.rules if rule.id == "concurrent-jobs")
    beyond = isinstance(rule.observed, int) and isinstance(rule.limit, int) and rule.observed > rule.limit
    return rule.outcome == "not_evaluated" or (rule.outcome == "pass" and not beyond)


async def report(context: ClusterContext, request: SubmissionRequest, submission: Submission) -> SubmitReply:
    """The answer for a job that an earlier call released before its answer was lost."""
    try:
        granted = await context.slurm.held(JobId(submission.job_id or 0))
    except (SlurmError, UnknownJob):  # over and forgotten by the controller: the job id is what matters
        granted = None
    return await _released(context, request, submission, granted)


async def _withdraw(
    context: ClusterContext, request: SubmissionRequest, submission: Submission, differences: list[str]
) -> SubmitReply:
    """Slurm made something else of it than was checked: it never runs."""
    from slurm_agent_tools.services import jobs  # noqa: PLC0415 - a job that is released needs nothing of it

    try:
        await jobs.cancel(context, JobId(submission.job_id or 0))
    except SlurmError as error:
        return await unconfirmed(
            context, request, submission, f"{'; '.join(differences)}; cancelling it: {error.message}"
        )
    await context.db(context.store.update, submission, phase="cancelled")
    await log_decision(
        context, request, "withdrawn", token=submission.token, job_id=submission.job_id, differences=differences
    )
    reason = f"Slurm would not grant what was checked, so the held job was cancelled: {'; '.join(differences)}"
    return blocked(context, request, "policy", human=False, reason=reason)


async def _gone(
    context: ClusterContext, request: SubmissionRequest, submission: Submission, error: UnknownJob
) -> SubmitReply:
    """The held job vanished before it was released: it never ran, and the caller decides whether to send it again."""
    if await _queued(context, submission) is not None:
        return await _another(context, request, submission)
    await context.db(context.store.update, submission, phase="cancelled")
    await log_decision(
        context, request, "vanished", token=submission.token, job_id=submission.job_id, error=error.message
    )
    raise SlurmRefused(
        f"Slurm took {request.name} as job {submission.job_id} and forgot it before it was released; it did not run",
        hint="Look at get_status, then call again.",
    ) from error


async def _uncertain(
    context: ClusterContext, request: SubmissionRequest, submission: Submission, error: SlurmUncertain
) -> SubmitReply:
    with taken(request, f"Slurm may have taken {request.name}"):
        submission = await context.db(context.store.update, submission, phase="unconfirmed")
        try:
            job = await context.slurm.find_token(submission.token)
        except SlurmError:
            job = None
        if job is None:
            return await unconfirmed(context, request, submission, error.message)
    with taken(request, f"Slurm took {request.name} as job {job.job_id.base}"):
        submission = await context.db(context.store.update, submission, phase="held", job_id=job.job_id.base)
        return await proceed(context, request, submission)


async def unconfirmed(
    context: ClusterContext, request: SubmissionRequest, submission: Submission, reason: str
) -> SubmitReply:
    """sbatch or what followed may have been carried out: the same key finds out before anything is sent again."""
    await log_decision(context, request, "unconfirmed", token=submission.token, job_id=submission.job_id, error=reason)
    summary = f"Slurm may have accepted {request.name}; call again with idempotency_key {request.key}. {reason}"
    return reply(context, request, "unconfirmed", summary).model_copy(
        update={
            "reason": reason,
            "token": submission.token,
            "job_id": None if submission.job_id is None else str(submission.job_id),
        }
    )


# --- What was checked is what runs: Slurm's own numbers of a job beside those that were allowed -----------------------

_NUMBERS = ("memory-per-gpu", "gpus", "time-limit")

_SEVERITY = ("pass", "warn", "not_evaluated", "justify", "approve", "deny")


def differences_of(context: ClusterContext, request: SubmissionRequest, granted: Job, script: bytes) -> list[str]:
    """Everything in which Slurm's resolved request is not what the policy allowed; empty when all is well."""
    differing, counted = [], request.resources
    if script != request.data:
        differing.append("the script that Slurm holds is not the script that was checked")
    if granted.name != request.name:
        differing.append(f"the name is {granted.name!r}, asked was {request.name!r}")
    if granted.requeue:
        differing.append("Slurm would requeue the job by itself")
    if request.arguments.priority is not None:
        differing += priority(request, granted)
    if request.effective.find("ntasks-per-node") and counted.memory_per_node_bytes and counted.nodes:
        # a site's floor asks for the memory of each node in place of that of each CPU: so much, with fewer tasks too
        every = counted.memory_per_node_bytes * counted.nodes
        counted = replace(counted, memory_bytes=max(counted.memory_bytes or 0, every))
    differing += [change.what for change in grown_since([counted], granted.resources, started=False)]
    return differing + _harsher(context, request, granted)


async def _with_all_gpus(context: ClusterContext, request: SubmissionRequest, granted: Job) -> Job:
    """Until a job has started, Slurm shows of the GPUs of whole nodes only those that were named: count them all."""
    counted, shown = request.resources, granted.resources
    chosen = named(request.effective, await context.slurm.partitions(max_age=submission_facts.PARTITIONS_AGE))
    if not request.effective.find("exclusive") and not (chosen and all(one.exclusive for one in chosen)):
        return granted
    share = None if shown.memory_bytes is None or not counted.gpus else -(-shown.memory_bytes // counted.gpus)
    return replace(granted, resources=replace(shown, gpus=counted.gpus, memory_per_gpu_bytes=share))


def priority(request: SubmissionRequest, granted: Job) -> list[str]:
    """A priority that was asked for and did not come. What the script alone asks for is its site's business."""
    if request.arguments.priority == "low":
        asked = int(request.effective.find("nice")[-1].value or 0)
        if granted.nice is not None and granted.nice < asked:
            return [f"the nice value is {granted.nice}, asked was {asked}"]
    if request.arguments.priority == "high" and granted.qos != request.effective.qos:
        return [f"the QOS is {granted.qos}, asked was {request.effective.qos}"]
    return []


def _harsher(context: ClusterContext, request: SubmissionRequest, granted: Job) -> list[str]:
    """Rules about numbers that judge what Slurm resolved more severely than what was asked."""
    if request.verdict.policy.sha256 != context.policy.sha256:  # a site's service judged, whose ticket bounds the job
        return []
    evaluation = context_of(
        context, request, numbers=granted.resources, pinned=request.pinned, grant=request.verdict.approval,
        decision_id=request.verdict.id,
    )  # fmt: skip
    before = {rule.id: rule.outcome for rule in request.verdict.rules}
    after = [rule for rule in evaluate(request.reading, evaluation).rules if rule.id in _NUMBERS]
    return [rule.message for rule in after if _SEVERITY.index(rule.outcome) > max(2, _SEVERITY.index(before[rule.id]))]
