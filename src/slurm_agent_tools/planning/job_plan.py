"""One plan: from what was asked for to the best schedule that is known, its bound and the naive order beside it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights.capacity import usable
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.models.toolset_arguments import JobAsked, PoolAsked
from slurm_agent_tools.planning import exact, lists
from slurm_agent_tools.planning.bounds import completion_bound, makespan_bound
from slurm_agent_tools.planning.placing import Placement
from slurm_agent_tools.planning.plan_submissions import PlannedSubmission
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.predict_run import RunPrediction
from slurm_agent_tools.planning.schedule import JobSchedule, Objective, PlanProblem, plan_problem
from slurm_agent_tools.units import (
    UNLIMITED,
    format_duration,
    format_memory,
    how_many,
    indices,
    parse_memory,
    parse_span,
)

_NEAR = 1.0002

_NAME = 60
"""Letters of a job's name elsewhere."""

_SPANS = 'Write how long, such as "2h", "90min" or "1-12:00:00".'


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The best schedule that is known. `bound`: seconds of the objective that no order beats.

    `method`: lists, or exact where the solver found a better one. `impossible`: jobs that no order ends in time.
    """

    problem: PlanProblem
    objective: Objective
    placement: Placement
    rule: str
    bound: float
    exact: bool = False

    @property
    def schedule(self) -> JobSchedule:
        """What starts when."""
        return self.placement.schedule(self.problem)

    @property
    def naive(self) -> JobSchedule:
        """In the order given, where who does not fit holds up all behind it."""
        return lists.naive(self.problem).schedule(self.problem)

    def measured(self, schedule: JobSchedule) -> float:
        """Seconds of the objective: the mean completion, else the makespan."""
        return schedule.mean_completion if self.objective == "mean_completion" else schedule.makespan

    @property
    def impossible(self) -> tuple[str, ...]:
        """Kinds that would miss their deadline even if nothing else ran but what they wait for."""
        heads, _ = self.problem.longest_path
        return tuple(
            job.name
            for job, head in zip(self.problem.jobs, heads, strict=True)
            if job.deadline is not None and head + job.seconds > job.deadline
        )


def by_lists(jobs: Sequence[PlannedJob], pools: Sequence[JobPool], objective: Objective) -> JobPlan:
    """The plan of the best list. Raises InputError."""
    problem = plan_problem(jobs, pools)
    best = lists.best_list(problem, objective)
    bound = completion_bound(problem) if objective == "mean_completion" else makespan_bound(problem)
    plan = JobPlan(problem, objective, best.placement, best.rule, bound)
    return replace(plan, bound=min(bound, plan.measured(plan.schedule)))  # sums of the same times may differ by a hair


def question(plan: JobPlan, seconds: float) -> bytes | None:
    """What the solver is asked; None where nothing is left to find, or it is not for the solver."""
    value = plan.measured(plan.schedule)
    if plan.objective != "deadlines" and value <= plan.bound * _NEAR:
        return None
    if plan.objective == "deadlines" and not plan.schedule.missed:
        return None
    return exact.question(plan.problem, plan.placement, plan.objective, seconds)


def improved(plan: JobPlan, output: bytes) -> JobPlan:
    """The plan with what the solver printed: never worse than before."""
    found = exact.answer(plan.problem, plan.placement, plan.objective, output)
    bound = plan.bound if plan.objective == "mean_completion" else max(plan.bound, found.bound or 0.0)
    if found.placement is None:
        return replace(plan, bound=min(bound, plan.measured(plan.schedule)))
    better = replace(plan, placement=found.placement, exact=True)
    return replace(better, bound=min(bound, better.measured(better.schedule)))


def far_call(step: PlannedSubmission, job: PlannedJob, script: str | None, asked: Resources | None) -> dict[str, Any]:
    """The arguments of generate_script for what is started by another scheduler. `asked`: what its script asks for.

    A script of Slurm's is a script of bash there. Its time limit counts; without one twice what is expected.
    """
    limit = None if asked is None else asked.time_limit_seconds
    seconds = limit if limit is not None and limit != UNLIMITED else 2 * math.ceil(job.seconds / 60) * 60
    nodes = None if asked is None else asked.nodes
    found: dict[str, Any] = {
        "name": job.name[:_NAME],
        "command": None if script is None else f"bash {shlex.quote(script)}",
        "gpus": job.gpus,
        "cpus": job.cpus or None,
        "memory": format_memory(job.memory_bytes) if job.memory_bytes else None,
        "time_limit": format_duration(seconds),
        "array": step.array,
        "nodes": nodes if nodes is not None and nodes > 1 else None,
        "format": step.at,
        "backend": step.place,
    }
    return {name: value for name, value in found.items() if value is not None}


# --- what was asked for -----------------------------------------------------------------------------------------------


def planned_job(asked: JobAsked, now: datetime, known: Resources | None, usual: float | None) -> PlannedJob:
    """One kind as it is planned. `known`: what its script asks for; `usual`: seconds that it is foretold to run.

    A script that asks for an array has as many copies as that has tasks, where no count says otherwise; where they are
    as many, their numbers are the script's.

    Raises InputError where nothing says how long it runs, or what was written cannot be read.
    """
    field = f"jobs {asked.name!r}"
    wanted = asked.resources
    # Whoever submits a script that asks for an array submits all its tasks.
    count = known.array_tasks if asked.count == 1 and known is not None and known.array_tasks else asked.count
    limit = None if known is None or known.time_limit_seconds == UNLIMITED else known.time_limit_seconds
    if asked.expected is not None:
        seconds: float | None = _span(f"{field}: expected", asked.expected)
    else:
        seconds = usual if usual is not None else limit
    if seconds is None:
        hint = 'No run of it is known, and no time limit. Say how long one runs, such as "2h".'
        raise InputError(f"{field}: expected", None, "is needed", hint=hint)
    gpus = wanted.gpus if wanted is not None else (known.gpus or 0) if known is not None else 0
    memory = None if wanted is None or wanted.memory is None else _memory(f"{field}: memory", wanted.memory)
    return PlannedJob(
        name=asked.name,
        seconds=seconds,
        gpus=0 if asked.share is not None else gpus,
        cpus=(wanted.cpus if wanted is not None else known.cpus if known is not None else None) or 0,
        memory_bytes=memory or (known.memory_bytes if known is not None and wanted is None else None) or 0,
        count=count,
        after=tuple(asked.after or ()),
        deadline=None if asked.deadline is None else _deadline(f"{field}: deadline", asked.deadline, now),
        priority=asked.priority,
        share=asked.share,
        restart=None if asked.restart is None else _span(f"{field}: restart", asked.restart),
        numbers=_numbers(count, known),
    )


def _numbers(count: int, known: Resources | None) -> tuple[int, ...]:
    """The numbers of so many tasks by the script's array; none where they are those from 0 on, or others."""
    if known is None or known.array is None or known.array_tasks != count:
        return ()
    found = tuple(sorted(indices(known.array.partition("%")[0].strip("[]"))))
    return () if found == tuple(range(count)) else found


@dataclass(frozen=True, slots=True)
class GatheredJob:
    """One kind with what its script asks for, and what was foretold of its run time where nobody said it.

    `sha256`: of its script.
    """

    job: PlannedJob
    asked: Resources | None = None
    said: RunPrediction | None = None
    sha256: str = ""


def one_of(pools: Sequence[JobPool]) -> Resources:
    """What a job holds of which nothing is said: one GPU, on pools without GPUs one CPU."""
    return Resources(gpus=1) if any(pool.gpus for pool in pools) else Resources(cpus=1)


def job_pools(asked: Sequence[PoolAsked] | None, nodes: Iterable[Node], slots: int) -> tuple[list[JobPool], list[str]]:
    """The pools to plan on, and what is assumed of them: those asked for, else the usable nodes under the cap."""
    if asked is not None:
        return [_pool(one, number) for number, one in enumerate(asked)], []
    good = [node for node in nodes if usable(node)]
    gpus, cpus = sum(node.gpus for node in good), sum(node.cpus for node in good)
    pool = JobPool("cluster", gpus, cpus, sum(node.memory_bytes for node in good), slots)
    has = f"{how_many(gpus, 'GPU')} and {how_many(cpus, 'CPU')} of {how_many(len(good), 'usable node')}"
    told = f"The pool: {has}, and {how_many(slots, 'job')} at once by the policy."
    return [pool], [told + " Jobs of others are not counted."]


def _pool(asked: PoolAsked, number: int) -> JobPool:
    name = asked.name or ("pool" if number == 0 else f"pool{number + 1}")
    memory = None if asked.memory is None else _memory(f"pool {name!r}: memory", asked.memory)
    return JobPool(name, asked.gpus, asked.cpus, memory, asked.jobs, asked.gpu_hour or 0, asked.cpu_hour or 0)


def _span(field: str, text: str) -> float:
    try:
        seconds = parse_span(text)
    except ValueError as error:
        raise InputError(field, text, "is no length of time", hint=_SPANS) from error
    if seconds == UNLIMITED:  # which a time limit of Slurm may be
        raise InputError(field, text, "is no length of time", hint=_SPANS)
    return float(seconds)


def _memory(field: str, text: str) -> int:
    try:
        return parse_memory(text)
    except ValueError as error:
        raise InputError(field, text, str(error), hint='Write it as "16G".') from error


def _deadline(field: str, text: str, now: datetime) -> float:
    """Seconds from now, of a time as ISO 8601 writes it or of a length of time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _span(field, text)
    if moment.tzinfo is None:
        raise InputError(field, text, "names no time zone", hint='Write "2026-11-24T08:00+01:00", or "6h" from now.')
    if moment <= now:
        raise InputError(field, text, "is not in the future", hint="Give a time that is still to come.")
    return (moment - now).total_seconds()
