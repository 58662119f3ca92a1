"""The way of an allowed request into Slurm: intent, held job, comparison, release. Each step is in the ledger first."""

from __future__ import annotations

import contextlib
import json
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from slurm_agent_tools.errors import SlurmError, SlurmRefused, SlurmUncertain, StorageError, UnknownJob
from slurm_agent_tools.ledger.records import Submission
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import ExpectedWait, LogPaths, SubmitReply
from slurm_agent_tools.slurm import comment
from slurm_agent_tools.slurm.client import Granted, TestOnly
from slurm_agent_tools.toolbox import advice, jobs, live, show, verify
from slurm_agent_tools.toolbox.case import Case, blocked, log_decision, reply
from slurm_agent_tools.toolbox.desk import Desk, new_id
from slurm_agent_tools.units import JobId

_PATIENCE = 1.0  # seconds for what is only good to know


def options(case: Case) -> list[str]:
    """sbatch's options: what the guard always sets, what was asked, what was pinned."""
    always = ["--hold", "--ignore-pbs", "--no-requeue", f"--job-name={case.name}"]
    if case.request.export is None:
        always.append("--export=ALL")  # all of an environment that holds the policy's variables only
    asked = [option for option in case.options if not option.startswith("--job-name=")]
    return [*always, *asked, *(pin.option for pin in case.pinned)]


def environment(desk: Desk) -> dict[str, str]:
    """The variables that pass to a job: those that the policy lists, nothing else."""
    found = desk.around.environ
    return {name: found[name] for name in desk.policy.policy.pass_environment if name in found}


async def trial(desk: Desk, case: Case) -> TestOnly:
    """Slurm's own opinion of the request, before anything is sent."""
    return await desk.slurm.test_only(
        options(case), case.data, case.ask.args or (), cwd=desk.there.root, env=environment(desk)
    )


async def send(desk: Desk, case: Case) -> SubmitReply | None:
    """Submit held and go on with it. SlurmUnreachable only when surely nothing was sent.

    None where somebody else used the person's yes meanwhile: it is used up with the intent, in one act.
    """
    now = desk.clock.now()
    submission = Submission(
        token=f"{comment.PREFIX}{new_id()}", idempotency_key=case.key, phase="intent", created=now, updated=now,
        script_path=case.reading.path, script_sha256=case.reading.sha256, request_sha256=case.request_sha256,
        job_name=case.name, slots=case.resources.array_concurrency or 1, decision_id=case.verdict.id,
        run_id=case.ask.run_id, request_json=show.resources(case.resources).model_dump_json(),
        approval_id=None if case.verdict.approval is None else case.verdict.approval.id,
        files_json=json.dumps(dict(case.reading.files), sort_keys=True),
    )  # fmt: skip
    await _log_folders(desk, case)
    if not await desk.db(desk.store.add, desk.owner, submission):
        return None
    try:
        sent = await desk.slurm.submit(
            [*options(case), f"--comment={comment.build(submission.token, submission.run_id)}"],
            case.data, case.ask.args or (),
            cwd=desk.there.root, env=environment(desk),
        )  # fmt: skip
    except SlurmUncertain as error:
        return await _uncertain(desk, case, submission, error)
    except SlurmError as error:
        found = await _queued(desk, submission) if isinstance(error, SlurmRefused) else None
        if found is None:
            await _given_up(desk, case, submission, error)
            raise
        number = found.job_id.base  # a site's own sbatch can fail after the real one was done
    else:
        number = sent.job_id
    with taken(case, f"Slurm took {case.name} as job {number}"):
        submission = await desk.db(desk.store.update, submission, phase="held", job_id=number)
        return await proceed(desk, case, submission)


async def _queued(desk: Desk, submission: Submission) -> Job | None:
    """Its job, where the queue can be read and shows one."""
    with contextlib.suppress(SlurmError):
        return desk.slurm.mine(await desk.slurm.queue(fresh=True)).commented(submission.token)
    return None


async def _given_up(desk: Desk, case: Case, submission: Submission, error: SlurmError) -> None:
    phase = "refused" if isinstance(error, SlurmRefused) else "lost"
    await desk.db(desk.store.update, submission, phase=phase)
    await log_decision(desk, case, phase, token=submission.token, error=error.message)


@contextmanager
def taken(case: Case, what: str) -> Iterator[None]:
    """A ledger that fails from here on leaves a job behind: the error says so, and how to go on with it."""
    try:
        yield
    except StorageError as error:
        hint = f"{error.hint} Then call again with idempotency_key {case.key}: it goes on with that job."
        raise StorageError(f"{what}, but {error.message}", hint=hint) from error


async def _log_folders(desk: Desk, case: Case) -> None:
    """Make the folders of the job's logs inside the project: without them Slurm fails a job and leaves no trace."""
    start = posixpath.join(desk.there.root, case.request.chdir or "")
    for path in (case.request.output, case.request.error):
        folder = posixpath.dirname(path or "")
        if folder and "%" not in folder and "\\" not in folder:
            real = await desk.there.files.real_path(posixpath.join(start, folder))
            if real.startswith(desk.there.root.rstrip("/") + "/"):
                await desk.there.files.make_folder(real)


async def proceed(desk: Desk, case: Case, submission: Submission) -> SubmitReply:
    """Compare the held job with what was allowed, release it, answer. A loss on the way is `unconfirmed`."""
    job_id = JobId(submission.job_id or 0)
    try:
        granted = await desk.slurm.held(job_id)
        differences = verify.differences(desk, case, granted, await desk.slurm.batch_script(job_id))
        if submission.approval_id is None and _capped(case):
            differences += await live.crowded(desk, job_id)
        if differences:
            return await _withdraw(desk, case, submission, differences)
        await desk.slurm.release(job_id)
    except SlurmRefused as error:
        return await _withdraw(desk, case, submission, [error.message])
    except UnknownJob as error:
        return await _gone(desk, case, submission, error)
    except SlurmError as error:
        return await unconfirmed(desk, case, submission, error.message)
    return await _dated(desk, case, submission, await _released(desk, case, submission, granted))


async def _released(desk: Desk, case: Case, submission: Submission, granted: Granted | None) -> SubmitReply:
    """The answer for a job that Slurm may run. It counts once it is in the ledger, so the log comes first."""
    answer = _submitted(desk, case, submission, granted)
    await log_decision(desk, case, "submitted", token=submission.token, job_id=submission.job_id)
    await desk.db(desk.store.update, submission, phase="released", reply_json=answer.model_dump_json())
    return answer


async def _dated(desk: Desk, case: Case, submission: Submission, answer: SubmitReply) -> SubmitReply:
    """The answer with the start that the scheduler expects of the released job, where it has thought of one by now."""
    if desk.slurm.verdict.kind != "calm" or (case.advised is not None and case.advised.awaits is not None):
        return answer
    start = None
    with contextlib.suppress(SlurmError), anyio.move_on_after(_PATIENCE):
        start = await desk.slurm.expected_start(JobId(submission.job_id or 0))
    if start is None:
        return answer
    answer = advice.at(answer, start, desk.clock.now())
    hint = "" if case.advised is None else case.advised.hint
    told = _told(case, submission, answer.expected_wait) + hint
    answer = answer.model_copy(update={"summary": told})
    with contextlib.suppress(StorageError):  # the answer without it is on disk
        await desk.db(desk.store.update, submission, reply_json=answer.model_dump_json())
    return answer


def _capped(case: Case) -> bool:
    """Whether the limit of concurrent jobs counts for this job: the policy's level did not let it go beyond."""
    (rule,) = (rule for rule in case.verdict.rules if rule.id == "concurrent-jobs")
    return rule.outcome == "not_evaluated" or (rule.outcome == "pass" and not _beyond(rule.observed, rule.limit))


def _beyond(observed: object, limit: object) -> bool:
    return isinstance(observed, int) and isinstance(limit, int) and observed > limit


async def report(desk: Desk, case: Case, submission: Submission) -> SubmitReply:
    """The answer for a job that an earlier call released before its answer was lost."""
    try:
        granted = await desk.slurm.held(JobId(submission.job_id or 0))
    except (SlurmError, UnknownJob):  # over and forgotten by the controller: the job id is what matters
        granted = None
    return await _released(desk, case, submission, granted)


def _submitted(desk: Desk, case: Case, submission: Submission, granted: Granted | None) -> SubmitReply:
    wait = None if case.advised is None else case.advised.expected_wait
    return reply(desk, case, "submitted", _told(case, submission, wait)).model_copy(
        update={
            "job_id": str(submission.job_id),
            "token": submission.token,
            "granted": None if granted is None else show.resources(granted.resources),
            "log_paths": None if granted is None else LogPaths(stdout=granted.stdout, stderr=granted.stderr),
        }
    )


def _told(case: Case, submission: Submission, wait: ExpectedWait | None) -> str:
    """What was submitted, what it asks for, and when it starts as far as Slurm tells."""
    what = f"Job {submission.job_id} ({case.name}) is submitted{show.brief(case.resources)}."
    awaits = None if case.advised is None else case.advised.awaits
    starts = advice.starts(wait) if awaits is None else f" {awaits}"
    return f"{what}{starts} Wait for it with wait_for_job."


async def _withdraw(desk: Desk, case: Case, submission: Submission, differences: list[str]) -> SubmitReply:
    """Slurm made something else of it than was checked: it never runs."""
    try:
        await jobs.cancel(desk, JobId(submission.job_id or 0))
    except SlurmError as error:
        return await unconfirmed(desk, case, submission, f"{'; '.join(differences)}; cancelling it: {error.message}")
    await desk.db(desk.store.update, submission, phase="cancelled")
    await log_decision(
        desk, case, "withdrawn", token=submission.token, job_id=submission.job_id, differences=differences
    )
    reason = f"Slurm would not grant what was checked, so the held job was cancelled: {'; '.join(differences)}"
    return blocked(desk, case, "policy", human=False, reason=reason)


async def _gone(desk: Desk, case: Case, submission: Submission, error: UnknownJob) -> SubmitReply:
    """The held job vanished before it was released: it never ran, and the caller decides whether to send it again."""
    await desk.db(desk.store.update, submission, phase="cancelled")
    await log_decision(desk, case, "vanished", token=submission.token, job_id=submission.job_id, error=error.message)
    raise SlurmRefused(
        f"Slurm took {case.name} as job {submission.job_id} and forgot it before it was released; it did not run",
        hint="Look at get_status, then call again.",
    ) from error


async def _uncertain(desk: Desk, case: Case, submission: Submission, error: SlurmUncertain) -> SubmitReply:
    with taken(case, f"Slurm may have taken {case.name}"):
        submission = await desk.db(desk.store.update, submission, phase="unconfirmed")
        try:
            found = await desk.slurm.find_token(submission.token)
        except SlurmError:
            found = None
        if found is None:
            return await unconfirmed(desk, case, submission, error.message)
    with taken(case, f"Slurm took {case.name} as job {found.job_id.base}"):
        submission = await desk.db(desk.store.update, submission, phase="held", job_id=found.job_id.base)
        return await proceed(desk, case, submission)


async def unconfirmed(desk: Desk, case: Case, submission: Submission, reason: str) -> SubmitReply:
    """sbatch or what followed may have been carried out: the same key finds out before anything is sent again."""
    await log_decision(desk, case, "unconfirmed", token=submission.token, job_id=submission.job_id, error=reason)
    summary = f"Slurm may have accepted {case.name}; call again with idempotency_key {case.key}. {reason}"
    return reply(desk, case, "unconfirmed", summary).model_copy(
        update={
            "reason": reason,
            "token": submission.token,
            "job_id": None if submission.job_id is None else str(submission.job_id),
        }
    )
