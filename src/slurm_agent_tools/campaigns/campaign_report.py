"""The report of a campaign, in the order in which a person reads it: aim, rounds, findings, choice, risks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from slurm_agent_tools.campaigns.arms import (
    aim_name,
    arms,
    chosen,
    full_name,
    in_words,
    job_ids,
    plots_of_stage,
    retry_seconds,
    spending_plot,
    varied,
)
from slurm_agent_tools.campaigns.measured import Arm
from slurm_agent_tools.campaigns.state import CampaignState, TrialState
from slurm_agent_tools.models.campaign import ArmVerdict
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage, SmokeRound
from slurm_agent_tools.text.report_formats import (
    Bullets,
    Paragraph,
    Picture,
    ReportBlock,
    ReportSection,
    ReportTable,
    markdown,
    page,
)
from slurm_agent_tools.text.svg_plots import number
from slurm_agent_tools.units import format_duration, format_memory, how_many

_MOST_ROWS = 40
"""Of a table: a report is read by people, `compare_results` and the ledger have the rest."""

_NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """What a report says beside the campaign itself. `git`: the project's state in words, None outside a repository."""

    name: str
    at: datetime
    git: str | None = None
    advice: tuple[str, ...] = ()


def report_files(file: CampaignFile, state: CampaignState, facts: ReportFacts) -> dict[str, str]:
    """The report's files by their paths in the project: Markdown, and one page with the plots."""
    title = file.title or f"Campaign {facts.name}"
    sections = report_sections(file, state, facts)
    base = f"campaigns/{facts.name}.report"
    return {f"{base}.md": markdown(title, sections), f"{base}.html": page(title, sections)}


def report_sections(file: CampaignFile, state: CampaignState, facts: ReportFacts) -> list[ReportSection]:
    """Its eight parts."""
    return [
        ReportSection("Objective and scope", tuple(_scope(file, state, facts))),
        ReportSection("Rounds", (_rounds(file, state),)),
        ReportSection("Findings by stage", tuple(_stages(file, state))),
        ReportSection("Fit of the resources", tuple(_resources(file, state, facts))),
        ReportSection("Failures and what mended them", tuple(_failures(state, facts))),
        ReportSection("Chosen configuration", tuple(_choice(file, state))),
        ReportSection("What was written down", tuple(_written(state, facts))),
        ReportSection("Risks and the next trial", tuple(_risks(file, state, facts))),
    ]


def _scope(file: CampaignFile, state: CampaignState, facts: ReportFacts) -> Iterator[ReportBlock]:
    aim = file.objective
    words = (
        f"Least time (queue, run and retries) to this work: {aim.wall_clock}"
        if aim.metric is None
        else f"{'Highest' if aim.maximize else 'Lowest'} {aim.metric}"
    )
    target = "" if aim.target is None else f", aiming at {number(aim.target)}"
    stages = ", ".join(f"{stage.name} ({stage.kind.upper()})" for stage in file.stages)
    ending = f": {state.reason.rstrip('.')}" if state.reason else ""
    yield Paragraph(f"{words}{target}. Stages: {stages}. Revision {state.revision} of campaigns/{facts.name}.yaml.")
    yield Paragraph(f"State on {facts.at:%Y-%m-%d %H:%M %Z}: {state.status.replace('_', ' ')}{ending}.")
    yield ReportTable(("", "spent", "limit"), tuple(_spending(file, state)))
    yield Picture(spending_plot(file, state), "Hours by the time at which runs ended")


def _spending(file: CampaignFile, state: CampaignState) -> Iterator[tuple[str, ...]]:
    hours = state.spent
    limits = file.limits
    yield ("CPU hours", f"{hours.cpu_hours:.2f}", _limit(limits.cpu_hours))
    yield ("GPU hours", f"{hours.gpu_hours:.2f}", _limit(limits.gpu_hours))
    yield ("trials", str(hours.trials), str(limits.trials))
    costs: dict[str, float] = {}
    for trial in state.trials.values():
        if trial.end is not None and trial.end.cost is not None and trial.trial.reuses is None:
            costs[trial.end.currency or ""] = costs.get(trial.end.currency or "", 0.0) + trial.end.cost
    yield ("cost", "; ".join(f"{cost:.2f} {unit}".strip() for unit, cost in costs.items()) or "no price is known", "")


def _limit(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _rounds(file: CampaignFile, state: CampaignState) -> ReportTable:
    rows = []
    for place, described in enumerate(file.rounds):
        trials = state.of_round(place)
        if not trials:
            rows.append((f"r{place}", described.kind, described.hypothesis, "", "", "not begun"))
            continue
        judged = state.judged.get(place)
        count = len({(trial.trial.stage, trial.trial.arm) for trial in trials})
        outcome = "goes on" if judged is None else judged.text
        shape = f"{count} configurations, {how_many(len(trials), 'run')}" if count > 1 else how_many(len(trials), "run")
        hypothesis = state.hypotheses.get(place, described.hypothesis)
        rows.append((f"r{place}", described.kind, hypothesis, shape, job_ids(trials), outcome))
    return ReportTable(("round", "kind", "hypothesis", "configurations", "jobs", "outcome"), tuple(rows))


def _stages(file: CampaignFile, state: CampaignState) -> Iterator[ReportBlock]:
    totals = {stage.name: _usual_seconds(arms(file, state, stage.name)) for stage in file.stages}
    known = {name: total for name, total in totals.items() if total}
    if len(known) > 1:
        slowest = max(known, key=lambda name: known[name])
        share = known[slowest] / sum(known.values())
        yield Paragraph(
            f"The bottleneck is {slowest}: {format_duration(round(known[slowest]))} of"
            f" {format_duration(round(sum(known.values())))} in the best configurations ({share:.0%})."
        )
    for stage in file.stages:
        yield from _stage(file, state, stage)


def _usual_seconds(found: Sequence[Arm]) -> float | None:
    """Queue and run of the best configuration, the median of its runs."""
    best = next((arm for arm in found if arm.passed), None)
    runs = [] if best is None else [run.end for run in best.passed if run.end and run.end.run_seconds is not None]
    return median((end.queue_seconds or 0.0) + (end.run_seconds or 0.0) for end in runs) if runs else None


def _stage(file: CampaignFile, state: CampaignState, stage: CampaignStage) -> Iterator[ReportBlock]:
    found = arms(file, state, stage.name)
    if not found:
        yield Paragraph(f"{stage.name}: no run but a smoke run has ended.")
        return
    names = varied(found)
    rows = [_arm_row(state, arm, names) for arm in found[:_MOST_ROWS]]
    more = f" The best {_MOST_ROWS} of {len(found)} are shown." if len(found) > _MOST_ROWS else ""
    yield Paragraph(f"{stage.name} ({stage.kind.upper()}): {how_many(len(found), 'configuration')}.{more}")
    header = ("configuration", "runs", aim_name(file), "spread", "queue", "run", "retries", "verdict")
    yield ReportTable(header, tuple(rows))
    yield from plots_of_stage(file, state, stage.name)


def _verdict(state: CampaignState, arm: Arm) -> ArmVerdict | None:
    """The last verdict on these very runs: the same configuration at another length has one of its own."""
    rounds = sorted(arm.rounds & state.judged.keys(), reverse=True)
    found = (one for place in rounds for one in state.judged[place].verdicts)
    return next((one for one in found if (one.stage, one.arm) == (arm.stage, arm.arm)), None)


def _arm_row(state: CampaignState, arm: Arm, names: Sequence[str]) -> tuple[str, ...]:
    verdict = _verdict(state, arm)
    ends = [run.end for run in arm.passed if run.end is not None]
    spread = f"{number(min(arm.values))} to {number(max(arm.values))}" if len(arm.values) > 1 else "one run"
    retries = [retry_seconds(state, run) for run in arm.passed]
    words = "" if verdict is None else f"{verdict.verdict}: {verdict.reason}"
    return (
        in_words(arm.settings, names),
        f"{len(arm.passed)} of {len(arm.passed) + len(arm.failed)}",
        _NOT_MEASURED if arm.value is None else number(arm.value),
        spread if arm.values else "",
        _middle([end.queue_seconds for end in ends]),
        _middle([end.run_seconds for end in ends]),
        _middle(list(retries)) if any(retries) else "none",
        words,
    )


def _middle(found: Sequence[float | None]) -> str:
    known = [value for value in found if value is not None]
    return format_duration(round(median(known))) if known else _NOT_MEASURED


def _resources(file: CampaignFile, state: CampaignState, facts: ReportFacts) -> Iterator[ReportBlock]:
    header = ("stage", "memory, most used of allocated", "CPUs busy", "GPUs busy", "CPU hours", "GPU hours")
    for kind in ("cpu", "gpu"):
        rows = [_fit(state, stage) for stage in file.stages if stage.kind == kind]
        if rows:
            yield Paragraph(f"{kind.upper()} stages:")
            yield ReportTable(header, tuple(rows))
    if facts.advice:
        yield Bullets(facts.advice)


def _fit(state: CampaignState, stage: CampaignStage) -> tuple[str, ...]:
    ends = [
        trial.end for trial in state.trials.values()
        if trial.trial.stage == stage.name and trial.end is not None and trial.trial.reuses is None
    ]  # fmt: skip
    fullest = max(
        (end for end in ends if end.memory_peak_bytes is not None),
        key=lambda end: (end.memory_peak_bytes or 0) / (end.memory_allocated_bytes or 1),
        default=None,
    )
    memory = _NOT_MEASURED
    if fullest is not None and fullest.memory_peak_bytes is not None:
        allocated = fullest.memory_allocated_bytes
        memory = f"{format_memory(fullest.memory_peak_bytes)} of {format_memory(allocated) if allocated else 'unknown'}"
    return (
        stage.name,
        memory,
        _share([end.cpu_used for end in ends]),
        _share([end.gpu_used for end in ends]),
        f"{sum(end.cpu_hours or 0 for end in ends):.2f}",
        f"{sum(end.gpu_hours or 0 for end in ends):.2f}",
    )


def _share(found: Sequence[float | None]) -> str:
    known = [value for value in found if value is not None]
    return f"{median(known):.0%}" if known else _NOT_MEASURED


def _failures(state: CampaignState, facts: ReportFacts) -> Iterator[ReportBlock]:
    failed = [trial for trial in state.trials.values() if trial.failed]
    if not failed:
        yield Paragraph("No run failed.")
        return
    mends = {trial.trial.replaces: trial for trial in state.trials.values() if trial.trial.replaces is not None}
    rows = [_failure(trial, mends.get(trial.trial.id), facts.name) for trial in failed[:_MOST_ROWS]]
    header = ("trial", "job", "what happened", "what was done", "outcome")
    yield ReportTable(header, tuple(rows))
    if len(failed) > _MOST_ROWS:
        yield Paragraph(f"{how_many(len(failed) - _MOST_ROWS, 'more run')} failed.")
    if state.stopped_stages:
        yield Paragraph(f"Stopped after the same failure again: {', '.join(sorted(state.stopped_stages))}.")


def _failure(trial: TrialState, mend: TrialState | None, name: str) -> tuple[str, ...]:
    end = trial.end
    what = "" if end is None else "; ".join(filter(None, (end.category or end.state, end.explanation or end.problem)))
    if mend is None:
        done, outcome = "nothing: the file allows no fix, or it was used up", "left as it is"
    else:
        done = f"{mend.trial.mended or 'a fix of the file'} ({full_name(name, mend.trial.id)})"
        outcome = "not over yet" if mend.end is None else "it ran" if mend.passed else "it failed again"
    return (full_name(name, trial.trial.id), trial.job_id or "none", what, done, outcome)


def _choice(file: CampaignFile, state: CampaignState) -> Iterator[ReportBlock]:
    total: list[float] | None = []
    before: list[float] | None = []
    for stage in file.stages:
        found = arms(file, state, stage.name)
        best = chosen(state, stage.name, found)
        if best is None:
            yield Paragraph(f"{stage.name}: nothing can be chosen, no configuration has a run that counts.")
            total = before = None
            continue
        told = _sure(best, _verdict(state, best))
        yield Paragraph(f"{stage.name}: {in_words(best.settings, list(best.settings))}. {told}")
        baseline = next((arm for arm in found if arm.purpose == "baseline" and arm.value is not None), None)
        if total is not None and best.value is not None:
            total.append(best.value)
        if before is not None and baseline is not None and baseline.value is not None:
            before.append(baseline.value)
    if file.objective.wall_clock is not None and total and before and len(total) == len(before) == len(file.stages):
        less = f" ({1 - sum(total) / sum(before):.0%} less)" if sum(before) else ""
        yield Paragraph(
            f"Expected time for all stages: {format_duration(round(sum(total)))} instead of"
            f" {format_duration(round(sum(before)))} with the defaults{less},"
            " queue and retries as they were in these runs."
        )


def _sure(arm: Arm, verdict: ArmVerdict | None) -> str:
    value = "" if arm.value is None else f"Its median is {number(arm.value)} over {how_many(len(arm.values), 'run')}"
    if verdict is None or verdict.low is None or verdict.high is None:
        return f"{value}; one run or too few to tell how sure that is." if value else ""
    return f"{value}; it gains {verdict.low:+.1%} to {verdict.high:+.1%} over the baseline (95%)."


def _written(state: CampaignState, facts: ReportFacts) -> Iterator[ReportBlock]:
    results = [note for note in state.notes if note.what == "result"]
    lost = [note for note in results if note.text.startswith("not saved")]
    lessons = [note.text for note in state.notes if note.what == "lesson"]
    saved = f"{how_many(len(results) - len(lost), 'result')} {'is' if len(results) - len(lost) == 1 else 'are'}"
    yield Paragraph(f"{saved} in results/: compare_results takes any of them by name.")
    if lost:
        yield Bullets(tuple(f"{full_name(facts.name, one.trial)}: {one.text}" for one in lost if one.trial is not None))
    yield Bullets(tuple(lessons) or ("No lesson was written: no failure was mended.",))
    yield Paragraph(f"Git: {facts.git}." if facts.git else "The project is no git repository.")


def _risks(file: CampaignFile, state: CampaignState, facts: ReportFacts) -> Iterator[ReportBlock]:
    items = list(_doubts(file, state))
    if state.question is not None:
        items.insert(0, f"A person has to decide: {state.question.text}")
    yield Bullets((*items, *facts.advice[:1]) or ("None is known.",))


def _is_length(stage: CampaignStage, name: str) -> bool:
    return name in stage.parameters and stage.parameters[name].length


def _doubts(file: CampaignFile, state: CampaignState) -> Iterator[str]:
    for stage in file.stages:
        found = [arm for arm in arms(file, state, stage.name) if arm.values]
        if found and len(found[0].values) == 1:
            yield f"{stage.name}: the best configuration rests on one run; repeat it and the baseline to rely on it."
        for name in (name for name in varied(found) if not _is_length(stage, name)):
            values = sorted(
                {arm.settings[name] for arm in found if isinstance(arm.settings.get(name), int | float)}, key=float
            )
            if len(values) > 1 and found[0].settings.get(name) in (values[0], values[-1]):
                best = found[0].settings[name]
                yield f"{stage.name}: the best {name} ({best}) is at the edge of what was tried; try beyond it."
    waits = any(isinstance(described, SmokeRound) for described in file.rounds)
    if not waits:
        yield "No smoke round is in the file: a mistake is found by the first full run."
