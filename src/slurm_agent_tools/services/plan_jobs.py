"""What starts when: jobs and pools are gathered, lists and the solver plan them, the policy judges their scripts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio.to_thread

from slurm_agent_tools.insights.accounting_history import accounting_history
from slurm_agent_tools.models.plan_answer import PlanReply
from slurm_agent_tools.models.toolset_arguments import JobAsked, PlanJobs
from slurm_agent_tools.planning import exact, job_plan, plan_view
from slurm_agent_tools.planning.job_plan import JobPlan
from slurm_agent_tools.planning.plan_submissions import submissions
from slurm_agent_tools.planning.plan_view import KeptPlan
from slurm_agent_tools.planning.schedule import JobPool, PlannedJob
from slurm_agent_tools.services import project_paths
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.generation import judge_script
from slurm_agent_tools.transport import process

_JUDGED = 100

_NEEDED = ("HOME", "PYTHONHOME", "PYTHONPATH", "SYSTEMROOT")  # by which Python finds its modules

plans = plan_view.KeptPlans()
"""The last plans of this process, for their resources; a plan is no record, and made again from the same arguments."""


async def plan_jobs(context: ClusterContext, ask: PlanJobs) -> PlanReply:
    """The plan. Raises InputError, which names the job, and SlurmError where no pool is given and Slurm is away."""
    slots = context.policy.policy.limits.max_concurrent_jobs
    nodes = await context.slurm.nodes() if ask.pool is None else ()
    pools, assumed = job_plan.job_pools(ask.pool, nodes, slots)
    jobs = [await _job(context, one, pools) for one in ask.jobs]
    until = anyio.current_time() + ask.seconds
    plan = await anyio.to_thread.run_sync(partial(job_plan.by_lists, jobs, pools, ask.objective))
    plan = await _improved(plan, until - anyio.current_time())
    steps = submissions(plan.schedule, slots)
    kept = KeptPlan(plan, slots, {one.name: one.script for one in ask.jobs}, steps, tuple(assumed))
    kept = replace(kept, verdicts={script: await _verdict(context, script) for script in kept.judged[:_JUDGED]})
    plan_id = plans.keep(context.owner, ask, kept)
    return plan_view.plan_reply(kept, plan_id, context.clock.now())


async def _job(context: ClusterContext, asked: JobAsked, pools: Sequence[JobPool]) -> PlannedJob:
    """One kind, with what its script asks for and its completed runs took; smoke runs are shorter by design."""
    if asked.script is None:
        return job_plan.planned_job(asked, context.clock.now(), job_plan.one_of(pools), None)
    script = await project_paths.asked_of(context, f"jobs {asked.name!r}: script", asked.script)
    usual = None
    if asked.expected is None:
        past = await accounting_history(context, name=script.name, script_path=script.path)
        staged = await context.db(context.store.staged, context.owner)
        usual = job_plan.usual_seconds(past.records, [str(run.job_id) for run in staged if run.stage == "smoke"])
    return job_plan.planned_job(asked, context.clock.now(), script.requested, usual)


async def _improved(plan: JobPlan, seconds: float) -> JobPlan:
    """What the solver makes of it, in a process of its own that is ended when its time is up."""
    question = job_plan.question(plan, seconds) if exact.available() else None
    if question is None:
        return plan
    argv = [sys.executable, "-P", "-m", exact.__name__]
    env = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    limits = {"RLIMIT_DATA": exact.MEMORY}
    done = await process.run(argv, stdin=question, env=env, cwd=os.sep, timeout=seconds + exact.GRACE, limits=limits)
    return await anyio.to_thread.run_sync(job_plan.improved, plan, done.stdout)


async def _verdict(context: ClusterContext, script: str) -> Any:
    project_files = await project_paths.either(context, "script", script)
    limit = context.policy.policy.sizes.script_bytes
    real, data = await project_paths.read_script(project_files, "script", script, limit=limit)
    return (await judge_script(context, data, project_paths.relative(project_files, real))).verdict
