"""A plan as it is answered: in brief with its order in groups, and whole, row by row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.plan_answer import PlanGroup, PlanReply, SubmissionShown
from slurm_agent_tools.models.toolset_arguments import PlanJobs
from slurm_agent_tools.planning.gantt import gantt
from slurm_agent_tools.planning.job_plan import GatheredJob, JobPlan
from slurm_agent_tools.planning.packing import gpus_of_shares
from slurm_agent_tools.planning.plan_submissions import PlannedSubmission, at_once
from slurm_agent_tools.planning.schedule import JobSchedule, PlacedJob
from slurm_agent_tools.text.report_formats import Bullets, Paragraph, Picture, ReportSection, ReportTable, page
from slurm_agent_tools.text.sanitize import line
from slurm_agent_tools.units import format_duration

GROUPS, SUBMISSIONS = 8, 8
"""How many an answer shows: it stays under 3 KB."""

_NAMES, _LONGEST = 4, 32

_PAGE = 200
"""Rows of a page's tables."""

SCHEME = "slurm://plans/"


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan as it is shown. `slots`: jobs at once by the policy; `steps`: its submissions.

    `verdicts`: what the policy said of each script as it was then. `gathered`: what was foretold of its jobs.
    `first_start`: what the one that is submitted first waits.
    """

    plan: JobPlan
    slots: int
    scripts: Mapping[str, str | None]
    steps: tuple[PlannedSubmission, ...]
    assumptions: tuple[str, ...] = ()
    verdicts: Mapping[str, Any] = field(default_factory=dict)
    gathered: tuple[GatheredJob, ...] = ()
    first_start: str | None = None

    def first_of(self, gathered: Iterable[GatheredJob]) -> GatheredJob:
        """The one of these that starts first."""
        first = self.plan.schedule.placed[0].job.name
        return next(one for one in gathered if one.job.name == first)

    @property
    def judged(self) -> list[str]:
        """Every script once, in the order of the submissions."""
        scripts = [self.scripts.get(step.job) for step in self.steps]
        return list(dict.fromkeys(script for script in scripts if script is not None))


class KeptPlans:
    """The last plans by whose they are and what was asked, the newest last."""

    def __init__(self, most: int = 32) -> None:
        self._most = most
        self._plans: dict[tuple[object, str], KeptPlan] = {}

    def keep(self, owner: object, ask: PlanJobs, plan: KeptPlan) -> str:
        """Its id: the same question of the same moment has the same."""
        told = ask.model_dump_json(exclude={"detail"}) + repr(plan.plan.problem.seconds)
        plan_id = hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:12]
        self._plans.pop((owner, plan_id), None)
        self._plans[owner, plan_id] = plan
        while len(self._plans) > self._most:
            del self._plans[next(iter(self._plans))]
        return plan_id

    def find(self, owner: object, plan_id: str) -> KeptPlan:
        """Raises InputError for one that is not among the last ones."""
        found = self._plans.get((owner, plan_id))
        if found is None:
            raise InputError("plan_id", plan_id, "is none of the last plans of this process", hint="Call plan_jobs.")
        return found


def plan_reply(kept: KeptPlan, plan_id: str, as_of: datetime) -> PlanReply:
    """The answer."""
    plan = kept.plan
    schedule, naive = plan.schedule, plan.naive
    value = plan.measured(schedule)
    steps = [_shown(one, kept, _short, _NAMES) for one in kept.steps[:SUBMISSIONS]]
    priced = any(pool.gpu_hour or pool.cpu_hour for pool in plan.problem.pools)
    missed = list(dict.fromkeys(_short(one.name) for one in schedule.missed))
    return PlanReply(
        status="infeasible" if plan.impossible else "planned",
        summary=_summary(plan, schedule, naive),
        as_of=as_of,
        objective=plan.objective,
        makespan_seconds=round(schedule.makespan),
        mean_completion_seconds=round(schedule.mean_completion),
        bound_seconds=round(min(plan.bound, value)),
        gap=round(value / plan.bound - 1, 4) if plan.bound else 0.0,
        naive_seconds=round(plan.measured(naive)),
        cost=round(schedule.cost, 2) if priced else None,
        missed=_listed(missed),
        method="exact" if plan.exact else "lists",
        groups=groups(schedule),
        submissions=steps,
        submissions_not_shown=max(0, len(kept.steps) - SUBMISSIONS),
        run_times=_listed(_run_times(kept.gathered)),
        first_start=kept.first_start,
        assumptions=[*kept.assumptions, *_by_limits(kept.gathered), *_assumed(kept, schedule)],
        uri=f"{SCHEME}{plan_id}",
        gantt_uri=f"{SCHEME}{plan_id}/gantt",
    )


def whole(kept: KeptPlan) -> dict[str, Any]:
    """Every job with its times, and every submission."""
    plan = kept.plan
    schedule = plan.schedule
    return {
        "objective": plan.objective,
        "rule": plan.rule,
        "makespan_seconds": round(schedule.makespan),
        "bound_seconds": round(plan.bound),
        "jobs": [
            {
                "name": line(one.name),
                "start": round(one.start),
                "end": round(one.end),
                "pool": one.pool,
                "gpus": list(one.gpus),
                **({"late_seconds": round(one.late)} if one.late else {}),
            }
            for one in schedule.placed
        ],
        "submissions": [_shown(one, kept, line).model_dump(mode="json", exclude_none=True) for one in kept.steps],
    }


def plan_page(kept: KeptPlan, title: str) -> str:
    """One page of HTML that needs nothing else: the picture, the order in groups, the calls, what is assumed."""
    plan = kept.plan
    schedule = plan.schedule
    value, bound = plan.measured(schedule), min(plan.bound, plan.measured(schedule))
    figures = {
        "Planned": value, "No order is below": bound, "In the order given": plan.measured(plan.naive),
        "All have ended after": schedule.makespan, "A job ends on average after": schedule.mean_completion,
    }  # fmt: skip
    order = [
        (_time(one.start), "" if one.last_start is None else _time(one.last_start), one.jobs, one.place)
        for one in groups(schedule, _PAGE)
    ]
    calls = [_shown(one, kept, line) for one in kept.steps[:_PAGE]]
    rows = [
        (
            one.job,
            one.script or "",
            one.array or "",
            one.dependency or "",
            ", ".join(one.after or []),
            one.verdict or "",
        )
        for one in calls
    ]
    more = len(kept.steps) - len(rows)
    sections = [
        ReportSection(
            "Schedule",
            (
                Paragraph(_summary(plan, schedule, plan.naive)),
                Picture(gantt(schedule, title), "Which GPU runs what when."),
                ReportTable(("Figure", "Time"), tuple((name, _time(told)) for name, told in figures.items())),
            ),
        ),
        ReportSection("Order", (ReportTable(("From", "Last start", "Jobs", "Pool"), tuple(order)),)),
        ReportSection(
            "Submissions",
            (
                ReportTable(("Job", "Script", "Array", "Dependency", "Once ended", "Policy"), tuple(rows)),
                *([Paragraph(f"{more} more are not shown.")] if more else []),
            ),
        ),
        ReportSection("Assumptions", (Bullets((*kept.assumptions, *_assumed(kept, schedule))),)),
    ]
    return page(title, sections)


def groups(schedule: JobSchedule, most: int = GROUPS) -> list[PlanGroup]:
    """The order of starts in a few groups: by kind where that is enough, else what starts at once and equal parts."""
    runs: list[list[PlacedJob]] = []
    for one in schedule.placed:
        if runs and runs[-1][-1].job.name == one.job.name:
            runs[-1].append(one)
        else:
            runs.append([one])
    if len(runs) > most:
        now = [one for one in schedule.placed if one.start == 0]
        rest = schedule.placed[len(now) :]
        size = -(-len(rest) // (most - 1)) or 1
        runs = [now, *(list(rest[first : first + size]) for first in range(0, len(rest), size))]
    return [_group(run) for run in runs if run]


def _group(part: Sequence[PlacedJob]) -> PlanGroup:
    counts: dict[str, int] = {}
    for one in part:
        counts[one.job.name] = counts.get(one.job.name, 0) + 1
    shown = [_short(name) + (f" x{many}" if many > 1 else "") for name, many in list(counts.items())[:_NAMES]]
    left = sum(list(counts.values())[_NAMES:])
    places = ", ".join(dict.fromkeys(one.pool for one in part))
    return PlanGroup(
        jobs=", ".join(shown) + (f" and {left} more" if left else ""),
        start=round(part[0].start),
        last_start=round(part[-1].start) if part[-1].start > part[0].start else None,
        place=_short(places),
    )


def _shown(
    one: PlannedSubmission, kept: KeptPlan, told: Callable[[str], str], names: int | None = None
) -> SubmissionShown:
    """One call, its names as `told`; of those that end before it so many."""
    script = kept.scripts.get(one.job)
    return SubmissionShown(
        job=told(one.job),
        how=one.how,
        script=script,
        array=one.array,
        dependency=one.dependency(told),
        after=[told(name) for name in one.behind[:names]] or None,
        verdict=kept.verdicts.get(script) if script is not None else None,
    )


def _run_times(jobs: Iterable[GatheredJob]) -> tuple[str, ...]:
    """What was foretold by similar jobs, and on how many that rests."""
    known = [(one.job.name, one.said) for one in jobs if one.said is not None and one.said.basis]
    return tuple(f"{_short(name)}: {said.text}" for name, said in known)


def _by_limits(jobs: Iterable[GatheredJob]) -> list[str]:
    """Which of them are planned with their time limits, as one sentence."""
    names = [_short(one.job.name) for one in jobs if one.said is not None and not one.said.basis]
    return [f"No job like it has ended, so the time limit counts: {', '.join(_listed(names))}."] if names else []


def _listed(texts: Sequence[str]) -> list[str]:
    """The first ones, and how many more."""
    return [*texts[:_NAMES], *([f"{len(texts) - _NAMES} more"] if len(texts) > _NAMES else [])]


def _short(name: str) -> str:
    told = line(name)
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 3]}..."


def _time(seconds: float) -> str:
    return format_duration(round(seconds))


def _summary(plan: JobPlan, schedule: JobSchedule, naive: JobSchedule) -> str:
    copies = plan.problem.size
    what = "one job" if copies == 1 else f"{copies} jobs"
    measure = "ends on average after" if plan.objective == "mean_completion" else "takes"
    value, usual = plan.measured(schedule), plan.measured(naive)
    text = (
        f"The plan of {what} {measure} {_time(value)}; the order given {_time(usual)}, and at least {_time(plan.bound)}"
    )
    text += " is needed."
    if plan.impossible:
        names = ", ".join(_short(name) for name in plan.impossible[:_NAMES])
        return f"{text} No order meets the deadline of {names}."
    if schedule.missed:
        return f"{text} {len(schedule.missed)} deadlines are missed, {len(naive.missed)} in the order given."
    return text


def _assumed(kept: KeptPlan, schedule: JobSchedule) -> list[str]:
    plan = kept.plan
    told = [
        "Jobs run as long as expected; plan again when some end earlier or later.",
        "Order given: each waits for those before it. Slurm's backfilling may do better than that.",
    ]
    most = at_once(schedule.placed)
    if most > kept.slots:
        told.append(
            f"It runs up to {most} jobs at once, and the policy lets {kept.slots} through: it will take longer."
        )
    if any(pool.gpus is None for pool in plan.problem.pools) and any(job.gpus for job in plan.problem.jobs):
        told.append("A pool names no GPUs: they count as unlimited there.")
    if plan.problem.shared:
        least = gpus_of_shares(plan.problem.jobs)
        told.append(f"Shares need a site with MPS or shards; all at once they need {least} GPUs or more.")
    if any(pool.gpus and pool.gpus > 1 for pool in plan.problem.pools):
        told.append("GPUs count as one pool: how they lie on nodes is not looked at.")
    return told
