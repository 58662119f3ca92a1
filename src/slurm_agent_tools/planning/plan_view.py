"""A plan as it is answered: in brief with its order in groups, and whole, row by row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from slurm_agent_tools.models.plan_answer import PlanGroup, PlanReply, SlicesOffered, SubmissionShown
from slurm_agent_tools.models.toolset_arguments import PlanJobs
from slurm_agent_tools.planning.gantt import gantt
from slurm_agent_tools.planning.job_plan import GatheredJob, JobPlan
from slurm_agent_tools.planning.job_progress import JobProgress
from slurm_agent_tools.planning.packing import gpus_of_shares
from slurm_agent_tools.planning.plan_submissions import PlannedSubmission, at_once
from slurm_agent_tools.planning.planned_job import PlannedJob
from slurm_agent_tools.planning.predict_run import RunPrediction
from slurm_agent_tools.planning.replanning import told_progress
from slurm_agent_tools.planning.schedule import JobSchedule, PlacedJob
from slurm_agent_tools.planning.slices import PlannedSlice, SliceOffer
from slurm_agent_tools.text.report_formats import Bullets, Paragraph, Picture, ReportSection, ReportTable, page
from slurm_agent_tools.text.sanitize import line
from slurm_agent_tools.units import format_duration, how_many

GROUPS, SUBMISSIONS = 8, 8
"""How many an answer shows at most."""

_SHORTER = ((GROUPS, SUBMISSIONS), (GROUPS, 4), (4, 4), (4, 2), (2, 2), (2, 1), (2, 0))

_LARGEST = 2900
"""Bytes of an answer: of what is longer fewer groups and submissions are shown; the resource holds all."""

_NAMES, _LONGEST = 4, 32

_PAGE = 200
"""Rows of a page's tables."""

SCHEME = "slurm://plans/"


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan as it is shown. `slots`: jobs at once by the policy; `steps`: its submissions.

    `verdicts`: what the policy said of each submission as its script was then, `because`: by which rules. `gathered`:
    what was foretold of its jobs. `first_start`: what the one that is submitted first waits. `made`: when; `begun`:
    when the first plan of the same work was. `job_ids`: of kinds that run or wait in the queue. `changes`: what became
    of the plan before. `slices`: what slices would be worth, of jobs that checkpoint. `far`: of calls that another
    scheduler's jobs need the arguments of generate_script.
    """

    plan: JobPlan
    slots: int
    scripts: Mapping[str, str | None]
    steps: tuple[PlannedSubmission, ...]
    made: datetime
    begun: datetime
    assumptions: tuple[str, ...] = ()
    verdicts: Mapping[str, Any] = field(default_factory=dict)
    because: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    far: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gathered: tuple[GatheredJob, ...] = ()
    first_start: str | None = None
    job_ids: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    slices: SliceOffer | None = None

    def first_of(self, gathered: Iterable[GatheredJob]) -> GatheredJob | None:
        """The one of these that is submitted first; None where all are."""
        return next((one for one in gathered if self.left and one.job.name == self.left[0].job), None)

    @property
    def left(self) -> tuple[PlannedSubmission, ...]:
        """What is still to be submitted."""
        return tuple(step for step in self.steps if step.job not in self.job_ids)

    @property
    def ends(self) -> datetime:
        """When all will have ended."""
        return self.made + timedelta(seconds=self.plan.schedule.makespan)

    @property
    def judged(self) -> list[tuple[str, str, str | None]]:
        """Name, script and array of every submission to Slurm that has a script, in their order."""
        found = [(step.key, self.scripts.get(step.job), step.array) for step in self.left if step.at is None]
        return [(name, script, array) for name, script, array in found if script is not None]


def plan_id(ask: PlanJobs, plan: JobPlan) -> str:
    """The same question of the same moment has the same."""
    told = ask.model_dump_json(exclude={"detail"}) + repr(plan.problem.seconds)
    return hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def remade(
    kept: KeptPlan, jobs: Sequence[PlannedJob], progress: Mapping[str, JobProgress], earlier: KeptPlan
) -> KeptPlan:
    """The plan of what is left of `jobs`, with what became of the one before."""
    ids = {job.name: job.sent for job in kept.plan.problem.jobs if job.sent is not None}
    kept = replace(kept, begun=earlier.begun, job_ids=ids)
    delay = (kept.ends - earlier.ends).total_seconds()
    return replace(kept, changes=told_progress(jobs, progress, earlier.begun, delay))


def plan_reply(kept: KeptPlan, number: str) -> PlanReply:
    """The answer."""
    plan = kept.plan
    schedule, naive = plan.schedule, plan.naive
    value = plan.measured(schedule)
    steps = [_shown(one, kept, _short, _NAMES) for one in kept.left[:SUBMISSIONS]]
    priced = any(pool.gpu_hour or pool.cpu_hour for pool in plan.problem.pools)
    missed = list(dict.fromkeys(_short(one.name) for one in schedule.missed))
    reply = PlanReply(
        status="infeasible" if plan.impossible else "planned",
        summary=_summary(plan, schedule, naive),
        as_of=kept.made,
        objective=plan.objective,
        makespan_seconds=round(schedule.makespan),
        mean_completion_seconds=round(schedule.mean_completion),
        bound_seconds=round(min(plan.bound, value)),
        gap=round(value / plan.bound - 1, 4) if plan.bound else 0.0,
        naive_seconds=round(plan.measured(naive)),
        cost=round(schedule.cost, 2) if priced else None,
        missed=_listed(missed),
        method="exact" if plan.exact else "lists",
        run_times=_listed(_run_times(kept.gathered)),
        first_start=kept.first_start,
        changes=list(kept.changes),
        slices=_offered(kept, naive),
        assumptions=[*kept.assumptions, *_by_limits(kept.gathered), *_assumed(kept, schedule)],
        uri=f"{SCHEME}{number}",
        gantt_uri=f"{SCHEME}{number}/gantt",
    )
    for most, calls in _SHORTER:
        shown = {"groups": groups(schedule, most), "submissions": steps[:calls]}
        left = {"submissions_not_shown": len(kept.left) - len(steps[:calls])}
        reply = reply.model_copy(update=shown | left)
        if len(json.dumps(reply.model_dump(mode="json", exclude_none=True))) <= _LARGEST:
            break
    return reply


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
                **({"job_id": kept.job_ids[one.job.name]} if one.job.name in kept.job_ids else {}),
            }
            for one in schedule.placed
        ],
        "submissions": [_shown(one, kept, line).model_dump(mode="json", exclude_none=True) for one in kept.left],
        "run_times": [f"{line(name)}: {said.text}" for name, said in _foretold(kept.gathered)],
        **({"slices": [_slice(one, kept) for one in kept.slices.slices]} if kept.slices is not None else {}),
    }


def _offered(kept: KeptPlan, naive: JobSchedule) -> SlicesOffered | None:
    """What slices are worth and cost, in words."""
    offer = kept.slices
    if offer is None:
        return None
    text = (
        f"In slices of 1, 2, 4, ... GPU hours, a job ends on average after {_time(offer.mean_completion)}"
        f", whatever is known of run times; the order given {_time(naive.mean_completion)}, this plan"
        f" {_time(kept.plan.schedule.mean_completion)} if its times are right. {offer.restarts} restarts lose"
        f" {_time(offer.lost)}. Make the script with generate_script, checkpoint: dir, resume_from, signal_before."
    )
    return SlicesOffered(
        summary=text,
        mean_completion_seconds=round(offer.mean_completion),
        restarts=offer.restarts,
        lost_seconds=round(offer.lost),
        calls=len(offer.slices),
    )


def _slice(one: PlannedSlice, kept: KeptPlan) -> dict[str, Any]:
    """One call of submit_job: its names are those of slices."""
    step = one.submission
    shown = {
        "job": line(step.job),
        "script": kept.scripts.get(one.job),
        "time_limit": None if one.time_limit is None else format_duration(round(one.time_limit)),
        "dependency": step.dependency(lambda name: f"<{line(name)}>"),
        "after": [line(name) for name in step.behind] or None,
    }
    return {name: value for name, value in shown.items() if value is not None}


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
    calls = [_shown(one, kept, line) for one in kept.left[:_PAGE]]
    rows = [
        (
            one.job,
            one.script or _far_words(one.generate_script),
            one.array or "",
            one.dependency or "",
            ", ".join(one.after or []),
            one.verdict or "",
        )
        for one in calls
    ]
    more = len(kept.left) - len(rows)
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
        ReportSection("Assumptions", (Bullets((*kept.changes, *kept.assumptions, *_assumed(kept, schedule))),)),
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
    """One call, its names as `told`, or their jobs' ids where there are some; of those that end before it so many."""
    script, ids = kept.scripts.get(one.job), kept.job_ids
    arguments = kept.far.get(one.key)
    return SubmissionShown(
        job=told(one.job),
        how=one.how,
        script=script if arguments is None else None,
        array=one.array if arguments is None else None,
        dependency=one.dependency(lambda name: ids.get(name) or f"<{told(name)}>"),
        after=[ids.get(name) or told(name) for name in one.behind[:names]] or None,
        verdict=kept.verdicts.get(one.key),
        because=list(kept.because.get(one.key, ())) or None,
        generate_script=None if arguments is None else dict(arguments),
    )


def _far_words(arguments: Mapping[str, Any] | None) -> str:
    """What a page shows of a call of generate_script."""
    return "" if arguments is None else f"generate_script for {arguments['backend']} ({arguments['format']})"


def _foretold(jobs: Iterable[GatheredJob]) -> list[tuple[str, RunPrediction]]:
    """Kinds of which similar jobs say how long they run."""
    return [(one.job.name, one.said) for one in jobs if one.said is not None and one.said.basis]


def _run_times(jobs: Iterable[GatheredJob]) -> list[str]:
    """Each with its interval of eight in ten, and on how many jobs that rests."""
    return [
        f"{_short(name)}: {_time(said.expected or 0)} ({said.interval or 'too few for an interval'}, by {said.jobs})"
        for name, said in _foretold(jobs)
    ]


def _by_limits(jobs: Iterable[GatheredJob]) -> list[str]:
    """Which of them are planned with their time limits, as one sentence."""
    names = [_short(one.job.name) for one in jobs if one.said is not None and not one.said.basis]
    return [f"No job like it has ended, so the time limit counts: {', '.join(_listed(names))}."] if names else []


def _listed(texts: Sequence[str]) -> list[str]:
    """The first ones, and how many more."""
    return [*texts[:_NAMES], *([f"{len(texts) - _NAMES} more"] if len(texts) > _NAMES else [])]


def _short(name: str) -> str:
    """Cut in the middle: names of configurations mostly differ in their ends."""
    told, half = line(name), (_LONGEST - 3) // 2
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 3 - half]}...{told[-half:]}"


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
        missed = f"{how_many(len(schedule.missed), 'deadline')} {'is' if len(schedule.missed) == 1 else 'are'} missed"
        return f"{text} {missed}, {len(naive.missed)} in the order given."
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
