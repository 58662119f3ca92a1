"""What starts when: jobs and pools are gathered, lists and the solver plan them, the policy judges their scripts."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from slurm_agent_tools.backends import pages
from slurm_agent_tools.backends.export.exported_job import of_slurm
from slurm_agent_tools.errors import InputError, SlurmError, StorageError
from slurm_agent_tools.insights import queue_history
from slurm_agent_tools.insights.accounting_history import accounting_history, known_before
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.job import ACTIVE_STATES, Job, JobRecord
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.plan_answer import PlanReply
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.models.script_arguments import GenerateScript
from slurm_agent_tools.models.shapes import Verdict
from slurm_agent_tools.models.toolset_arguments import JobAsked, PlanJobs
from slurm_agent_tools.planning import exact, job_plan, job_progress, plan_view, replanning
from slurm_agent_tools.planning.foretold import RecentStarts, RunHistory
from slurm_agent_tools.planning.job_plan import GatheredJob, JobPlan
from slurm_agent_tools.planning.job_progress import JobProgress
from slurm_agent_tools.planning.plan_submissions import FarKind, submissions_at
from slurm_agent_tools.planning.plan_view import KeptPlan
from slurm_agent_tools.planning.planned_job import JobPool
from slurm_agent_tools.planning.slices import slice_offer
from slurm_agent_tools.policy.document import VIOLATIONS
from slurm_agent_tools.policy.evaluate import evaluate
from slurm_agent_tools.services import project_paths
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.services.generation import drafted, judge_script
from slurm_agent_tools.services.submission_facts import Snapshot, live_facts, take_snapshot
from slurm_agent_tools.services.submission_request import context_of, open_request, tried_before
from slurm_agent_tools.store.plan_files import PlanFiles
from slurm_agent_tools.transport import process
from slurm_agent_tools.units import JobId

_JUDGED = 100

_NEEDED = ("HOME", "PYTHONHOME", "PYTHONPATH", "SYSTEMROOT")  # by which Python finds its modules

interrupted: ContextVar[anyio.Event | None] = ContextVar("interrupted", default=None)
"""Whoever sets this event has the best plan so far."""


async def plan_jobs(context: ClusterContext, caller: Caller, ask: PlanJobs) -> PlanReply:
    """The plan. Raises InputError, which names the job, and SlurmError where no pool is given and Slurm is away."""
    slots = context.policy.policy.limits.max_concurrent_jobs
    nodes = await context.slurm.nodes() if ask.pool is None else ()
    pools, assumed = job_plan.job_pools(ask.pool, nodes, slots)
    history = await _history(context, ask)
    gathered = [await _job(context, one, pools, history) for one in ask.jobs]
    jobs = [one.job for one in gathered]
    files, scripts = PlanFiles(context.store.folder, context.owner), {one.name: one.script for one in ask.jobs}
    earlier, progress = await _so_far(context, files, scripts, gathered)
    until = anyio.current_time() + ask.seconds
    plan = await anyio.to_thread.run_sync(
        partial(job_plan.by_lists, replanning.jobs_left(jobs, progress), pools, ask.objective)
    )
    plan = await _improved(plan, until - anyio.current_time())
    steps = submissions_at(plan.schedule, slots, await _far(context, ask))
    now = context.clock.now()
    kept = KeptPlan(plan, slots, scripts, steps, now, now, tuple(assumed))
    kept = replace(kept, far=_far_calls(kept, gathered))
    if earlier is not None:
        kept = plan_view.remade(kept, jobs, progress, earlier)
    if not kept.job_ids:  # what is in the queue is not cut any more
        kept = replace(kept, slices=await anyio.to_thread.run_sync(slice_offer, plan.problem.jobs, pools, slots))
    judged = await _judged(context, caller, kept.judged[:_JUDGED])
    judged = await _judged_far(context, kept, judged)
    notes = (*kept.assumptions, *([judged.note] if judged.note else []))
    kept = replace(kept, verdicts=judged.verdicts, because=judged.because, assumptions=notes)
    first = kept.first_of(gathered) if ask.pool is None else None
    start = None if first is None else await _first_start(context, first)
    kept = replace(kept, gathered=tuple(gathered), first_start=start)
    plan_id = plan_view.plan_id(ask, plan)
    try:
        await context.db(files.keep, plan_id, kept)
    except StorageError as error:
        kept = replace(kept, assumptions=(*kept.assumptions, f"Its resources are missing: {error.message}."))
    return plan_view.plan_reply(kept, plan_id)


async def _so_far(
    context: ClusterContext, files: PlanFiles, scripts: Mapping[str, str | None], gathered: Sequence[GatheredJob]
) -> tuple[KeptPlan | None, Mapping[str, JobProgress]]:
    """The plan before of the same work, and what became of it; nothing where all has ended: it is to be done anew.

    Slurm is asked only where a job of it was submitted. Raises SlurmError, and InputError where all that is left is
    what failed.
    """
    earlier = await context.db(files.last, KeptPlan, lambda kept: replanning.same_work(kept.scripts, scripts))
    if earlier is None:
        return None, {}
    sent = await context.db(context.store.history, context.owner, since=earlier.begun)
    if not job_progress.submissions_of(scripts, sent):
        return None, {}
    records = [one for one in (await accounting_history(context)).records if one.submitted >= earlier.begun]
    found = job_progress.submissions_of(scripts, records)
    jobs = [one.job for one in gathered]
    sent_now = [(record, job.array) for job in jobs for record in found.get(job.name, ())]
    rows = await _rows(context, sent_now)
    texts = {one.job.name: one.sha256 for one in gathered if one.sha256}
    progress = job_progress.job_progress(jobs, found, rows, context.clock.now(), texts)
    return (earlier, progress) if progress and replanning.jobs_left(jobs, progress) else (None, {})


async def _rows(context: ClusterContext, records: Sequence[tuple[JobRecord, bool]]) -> Mapping[str, Sequence[Job]]:
    """What Slurm tells of these jobs, by their ids: of arrays every task, of others what is in the queue.

    Of those that are neither there nor known to have ended, too: one that was cancelled before it ran. Each with
    whether it is of an array. Raises SlurmError.
    """
    rows: dict[str, list[Job]] = {}
    for job in context.slurm.mine(await context.slurm.queue()):
        if job.active:
            rows.setdefault(str(job.job_id.base), []).append(job)
    going = ACTIVE_STATES | {"UNKNOWN"}
    asked = [one for one, array in records if array or (one.state in going and one.job_id not in rows)]
    views = await context.slurm.jobs([JobId(int(one.job_id)) for one in asked]) if asked else {}
    return rows | {str(job_id.base): list(view.tasks or (view.job,)) for job_id, view in views.items()}


async def _far(context: ClusterContext, ask: PlanJobs) -> Mapping[str, FarKind]:
    """The pools that have the name of a page of PBS or Kubernetes. Raises ConfigError for an unreadable page."""
    if ask.pool is None or not any(one.name for one in ask.pool):
        return {}
    found = await anyio.to_thread.run_sync(pages.found_pages, Path(context.project))
    kinds: dict[str, FarKind] = {}
    for one in found:
        if one.page.kind in {"pbs", "kubernetes"}:
            kinds[one.name] = one.page.kind
    return {one.name: kinds[one.name] for one in ask.pool if one.name is not None and one.name in kinds}


def _far_calls(kept: KeptPlan, gathered: Sequence[GatheredJob]) -> Mapping[str, Mapping[str, Any]]:
    """Of every submission to another scheduler the arguments of generate_script."""
    asked = {one.job.name: one.asked for one in gathered}
    jobs = {job.name: job for job in kept.plan.problem.jobs}
    return {
        step.key: job_plan.far_call(step, jobs[step.job], kept.scripts.get(step.job), asked.get(step.job))
        for step in kept.steps
        if step.at is not None
    }


async def _history(context: ClusterContext, ask: PlanJobs) -> RunHistory | None:
    """All that this user's jobs took; None where nothing is asked of it."""
    if all(one.expected is not None or one.script is None for one in ask.jobs):
        return None
    past = await accounting_history(context)
    return await anyio.to_thread.run_sync(RunHistory, await known_before(context, past.records))


async def _job(
    context: ClusterContext, asked: JobAsked, pools: Sequence[JobPool], history: RunHistory | None
) -> GatheredJob:
    """One kind, with what its script asks for and what similar jobs took."""
    now = context.clock.now()
    if asked.script is None:
        return GatheredJob(job_plan.planned_job(asked, now, job_plan.one_of(pools), None))
    script = await project_paths.asked_of(context, f"jobs {asked.name!r}: script", asked.script)
    if asked.expected is not None or history is None:
        job = job_plan.planned_job(asked, now, script.requested, None)
        return GatheredJob(job, script.requested, sha256=script.sha256)
    said = replace(history.estimate(script.name, script.path, script.requested), similar=())
    usual = said.expected if said.basis else None
    job = job_plan.planned_job(asked, now, script.requested, usual)
    return GatheredJob(job, script.requested, said, script.sha256)


async def _first_start(context: ClusterContext, first: GatheredJob) -> str | None:
    """What the job that is submitted first waits, by the queue as it is and the waits of the last days."""
    queue = await context.slurm.queue()
    if not queue.states()["PENDING"]:
        return "nobody is waiting now"
    past = await queue_history.recent_waits(context)
    known = await known_before(context, starts=past.waits)
    starts = await anyio.to_thread.run_sync(RecentStarts, known)
    usual = next((name for name, one in (await context.slurm.partitions()).items() if one.default), None)
    asked = first.asked or Resources(cpus=first.job.cpus or None, gpus=first.job.gpus)
    wanted = replace(asked, partition=asked.partition or usual)
    now = context.clock.now().timestamp()
    return starts.estimate(wanted, context.environment.user, context.slurm.mine(queue), now).text


async def _improved(plan: JobPlan, seconds: float) -> JobPlan:
    """What the solver makes of it, in a process of its own that is ended when its time is up."""
    question = job_plan.question(plan, seconds) if exact.available() else None
    if question is None:
        return plan
    argv = [sys.executable, "-P", "-m", exact.__name__]
    env = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    limits = {"RLIMIT_DATA": exact.MEMORY}
    most, stop = seconds + exact.GRACE, interrupted.get()
    done = await process.run(argv, stdin=question, env=env, cwd=os.sep, timeout=most, limits=limits, stop=stop)
    return await anyio.to_thread.run_sync(job_plan.improved, plan, done.stdout)


# --- what the guard says of each call ---------------------------------------------------------------------------------

_OF_BEFORE = frozenset({"smoke-first", "auto-retry"})
"""Rules that rest on what was tried before, known now as when the call is made; others are of that moment."""

_SEVERITY: tuple[Verdict, ...] = ("allow", "justify", "approve", "deny")


@dataclass(frozen=True, slots=True)
class _Judged:
    """What the guard says of every call that has a script, and which rules say so. `note`: what could not be asked."""

    verdicts: Mapping[str, Verdict]
    because: Mapping[str, tuple[str, ...]]
    note: str | None = None


async def _judged(context: ClusterContext, caller: Caller, calls: Sequence[tuple[str, str, str | None]]) -> _Judged:
    """`calls`: name, script and array of each."""
    verdicts: dict[str, Verdict] = {}
    because: dict[str, tuple[str, ...]] = {}
    note, snapshot = None, None
    for name, script, array in calls:
        rules = await _rules(context, script, array)
        try:
            snapshot = snapshot or await take_snapshot(context, JobRequest(), fresh=False)
            rules += await _of_before(context, caller, snapshot, SubmitJob(script=script, array=array))
        except (SlurmError, StorageError) as error:
            note = f"What was tried of the scripts before is not known, so no verdict rests on it: {error.message}."
        outcomes: list[Verdict] = [rule.outcome for rule in rules if rule.outcome in _SEVERITY]
        verdicts[name] = max(["allow", *outcomes], key=_SEVERITY.index)
        because[name] = tuple(dict.fromkeys(rule.id for rule in rules))
    return _Judged(verdicts, because, note)


async def _rules(context: ClusterContext, script: str, array: str | None) -> list[RuleDecision]:
    """What stands against a script as it is."""
    project_files = await project_paths.either(context, "script", script)
    limit = context.policy.policy.sizes.script_bytes
    real, data = await project_paths.read_script(project_files, "script", script, limit=limit)
    arguments = None if array is None else {"array": array}
    judged = await judge_script(context, data, project_paths.relative(project_files, real), arguments=arguments)
    return [rule for rule in judged.rules if rule.outcome in VIOLATIONS]


async def _of_before(
    context: ClusterContext, caller: Caller, snapshot: Snapshot, arguments: SubmitJob
) -> list[RuleDecision]:
    """What stands against a call by what was tried before, as submit_job would say. Raises SlurmError, StorageError."""
    request = await open_request(context, arguments, caller)
    known = await live_facts(context, snapshot, request.reading, work=request.work)
    known = replace(known, ladder=await tried_before(context, request, known))
    judged = evaluate(request.reading, context_of(context, request, live=known))
    return [rule for rule in judged.rules if rule.id in _OF_BEFORE and rule.outcome in VIOLATIONS]


async def _judged_far(context: ClusterContext, kept: KeptPlan, judged: _Judged) -> _Judged:
    """The same with what generate_script says of what it would write for other schedulers."""
    verdicts, because = dict(judged.verdicts), dict(judged.because)
    for step in kept.left[:_JUDGED]:
        arguments = kept.far.get(step.key)
        if arguments is None or "command" not in arguments:
            continue
        script = kept.scripts.get(step.job) or ""
        project_files = await project_paths.either(context, "script", script)
        limit = context.policy.policy.sizes.script_bytes
        _, data = await project_paths.read_script(project_files, "script", script, limit=limit)
        named = of_slurm(data.decode(errors="replace"))
        if named is not None:
            verdicts[step.key] = "deny"
            because[step.key] = (f"{script} names {named} of Slurm, which {step.at} has not: write it for bash alone.",)
            continue
        try:
            decision = (await drafted(context, GenerateScript.model_validate(dict(arguments)))).decision
        except InputError as error:
            verdicts[step.key], because[step.key] = "deny", (f"{error.message} {error.hint or ''}".strip(),)
        else:
            verdicts[step.key] = decision.verdict
            because[step.key] = tuple(rule.id for rule in decision.rules if rule.outcome in VIOLATIONS)
    return replace(judged, verdicts=verdicts, because=because)
