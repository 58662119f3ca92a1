"""What is shown of a campaign: counts, the best so far, what happened, and a table where it is asked for. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from slurm_agent_tools.campaigns.arms import arms, chosen, full_name, in_words, varied
from slurm_agent_tools.campaigns.plots import number
from slurm_agent_tools.campaigns.state import CampaignState, TrialState, trial_value
from slurm_agent_tools.models.campaign import (
    BatchRefused,
    BatchSent,
    CampaignEvent,
    CampaignFinished,
    CampaignStopped,
    Noted,
    PersonDecided,
    RevisionBegun,
    RoundDesigned,
    RoundJudged,
    StageStopped,
    TrialEnded,
    TrialId,
    TrialsLeftOut,
)
from slurm_agent_tools.models.campaign_answer import BestShown, CampaignCounts, CampaignQuestion, CampaignSpent
from slurm_agent_tools.models.campaign_file import CampaignFile
from slurm_agent_tools.text.sanitize import line

_BRIEF_LINES, _BRIEF_TEXT = 7, 110

_TABLE_BYTES = 1250
"""Of a brief table, as JSON."""

Row = list[object]


def counts(state: CampaignState, running: Collection[TrialId] = ()) -> CampaignCounts:
    """How many trials stand where; `running`: those of which Slurm said so."""
    found: Counter[str] = Counter(_standing(trial, running) for trial in state.trials.values())
    return CampaignCounts(**{name: found[name] for name in CampaignCounts.model_fields})


def _standing(trial: TrialState, running: Collection[TrialId]) -> str:
    if trial.end is not None:
        return "done" if trial.passed else "failed"
    if trial.phase in {"refused", "left_out"}:
        return "not sent"
    if trial.phase == "sent":
        return "running" if trial.trial.id in running else "pending"
    return "planned"


def best(file: CampaignFile, state: CampaignState, name: str) -> list[BestShown]:
    """Of each stage the configuration to go on with, as far as any run of it passed."""
    found = []
    for stage in file.stages:
        of_stage = arms(file, state, stage.name)
        arm = chosen(state, stage.name, of_stage)
        if arm is None or not arm.passed:
            continue
        verdicts = [one for judged in state.judged.values() for one in judged.verdicts if one.arm == arm.arm]
        shown = varied(of_stage) or list(arm.settings)
        found.append(
            BestShown(
                stage=stage.name,
                settings={key: arm.settings[key] for key in shown if key in arm.settings},
                value=_rounded(arm.value),
                trial=full_name(name, arm.passed[0].trial.id),
                verdict=verdicts[-1].verdict if verdicts else None,
            )
        )
    return found


def spent(state: CampaignState) -> CampaignSpent:
    """Hours as the limits count them; the price of what ended, where all of it has one."""
    ended = [trial.end for trial in state.trials.values() if trial.end is not None and trial.trial.reuses is None]
    prices = [end.cost for end in ended]
    known = bool(prices) and None not in prices
    return CampaignSpent(
        gpu_hours=round(state.spent.gpu_hours, 3),
        cpu_hours=round(state.spent.cpu_hours, 3),
        cost=round(sum(price or 0.0 for price in prices), 4) if known else None,
        currency=next((end.currency for end in ended if end.currency), None) if known else None,
    )


def limits(file: CampaignFile) -> dict[str, float]:
    """What may be spent, as the file says."""
    told = {name: getattr(file.limits, name) for name in ("gpu_hours", "cpu_hours", "rounds", "trials", "at_once")}
    return {name: value for name, value in told.items() if value is not None}


def question(state: CampaignState) -> CampaignQuestion | None:
    """What a person has to decide."""
    asked = state.question
    return None if asked is None else CampaignQuestion(text=asked.text, choices=dict(asked.choices))


def summary(file: CampaignFile, state: CampaignState, name: str, running: Collection[TrialId] = ()) -> str:
    """One or two sentences on how it stands."""
    stands = counts(state, running)
    total = sum(stands.model_dump().values())
    if state.status == "planned":
        return f"Campaign {name} has not begun: advance_campaign begins it, view=plan shows what it would do."
    if state.question is not None:
        return f"Campaign {name} waits for a person: {_cut(state.question.text, 300)}"
    head = f"Campaign {name} is {state.status}"
    if state.over:
        head += f": {_cut(state.reason or 'done', 200).rstrip('.')}"
    else:
        kind = file.rounds[state.round].kind if state.round < len(file.rounds) else "last"
        head += f", round {state.round} ({kind})"
    text = f"{head}. {stands.done} of {total} trials passed"
    text += f", {stands.failed} failed" if stands.failed else ""
    active = stands.running + stands.pending
    text += f", {active} in the queue" if active else ""
    return f"{text}.{_best_in_words(file, state, name)}"


def _best_in_words(file: CampaignFile, state: CampaignState, name: str) -> str:
    what = file.objective.metric or "seconds"
    told = [
        f"{one.stage}: {in_words(one.settings, list(one.settings))} ({what} {number(one.value)})"  # type: ignore[arg-type]
        for one in best(file, state, name)
        if one.value is not None
    ]
    return f" Best so far, {'; '.join(told[:3])}." if told else ""


# --- what happened ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Happened:
    """Sentences in order, how many were left out, and the jobs that were submitted."""

    lines: tuple[str, ...]
    left_out: int
    submitted: tuple[str, ...]


def happened(events: Sequence[CampaignEvent], *, full: bool) -> Happened:
    """What came of these events; in brief the last few, each cut short."""
    lines = [line(text) for text in _told(events)]
    submitted = tuple(str(event.job_id) for event in events if isinstance(event, BatchSent))
    if full:
        return Happened(tuple(lines), 0, submitted)
    kept = [_cut(text, _BRIEF_TEXT) for text in lines[-_BRIEF_LINES:]]
    return Happened(tuple(kept), len(lines) - len(kept), submitted)


def _told(events: Sequence[CampaignEvent]) -> Iterator[str]:
    """Ends of one round together, everything else by itself."""
    ends: list[TrialEnded] = []
    for event in events:
        if isinstance(event, TrialEnded):
            ends.append(event)
            continue
        yield from _ends(ends)
        ends = []
        yield from _one(event)
    yield from _ends(ends)


def _ends(ends: Sequence[TrialEnded]) -> Iterator[str]:
    good = sum(one.end.passed for one in ends)
    if good:
        yield f"{_number(good, 'trial')} passed."
    causes: dict[str, list[TrialEnded]] = {}
    for one in ends:
        if not one.end.passed:
            causes.setdefault(one.end.category or one.end.state, []).append(one)
    for category, failed in causes.items():
        listed = ", ".join(str(one.trial) for one in failed[:3]) + (", ..." if len(failed) > 3 else "")
        yield f"{listed} failed ({category}): {failed[0].end.explanation or failed[0].end.problem}"


def _one(event: CampaignEvent) -> Iterator[str]:
    if isinstance(event, RevisionBegun) and event.revision > 1:
        yield f"The file changed: revision {event.revision}."
    elif isinstance(event, RoundDesigned):
        yield from _designed(event)
    elif isinstance(event, BatchRefused):
        yield f"Not sent: {event.reason}"
    elif isinstance(event, StageStopped):
        yield f"Stage {event.stage} is stopped: {event.reason}"
    elif isinstance(event, TrialsLeftOut):
        yield f"{_number(len(event.trials), 'trial')} not sent: {event.reason}"
    elif isinstance(event, RoundJudged):
        yield f"Round {event.round} is judged: {event.text}"
    elif isinstance(event, PersonDecided):
        yield f"{event.by} decided: {event.choice}."
    elif isinstance(event, CampaignStopped | CampaignFinished):
        yield f"{'Stopped' if isinstance(event, CampaignStopped) else 'Finished'}: {event.reason}"
    elif isinstance(event, Noted) and event.what in {"lesson", "note"}:
        yield event.text


def _designed(event: RoundDesigned) -> Iterator[str]:
    mends = [trial for trial in event.trials if trial.replaces is not None]
    yield from (f"{trial.id} mends {trial.replaces}: {trial.mended}." for trial in mends)
    reused = sum(trial.reuses is not None for trial in event.trials)
    new = len(event.trials) - len(mends) - reused
    if new or reused:
        more = f", {reused} are known already" if reused else ""
        yield f"Round {event.round}: {_number(new, 'trial')} designed{more}."


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


# --- the table --------------------------------------------------------------------------------------------------------


def table(file: CampaignFile, state: CampaignState, *, full: bool) -> tuple[list[Row], int]:
    """A row for each trial under one with the columns' names, the best first; and how many do not fit in brief."""
    trials = [trial for trial in state.trials.values() if trial.trial.purpose != "smoke"] or [*state.trials.values()]
    names = _varied(trials)
    stages = len(file.stages) > 1
    value = file.objective.metric or "seconds"
    rows: list[Row] = [["trial", *(["stage"] if stages else []), *names, "state", value, "queue_s", "run_s"]]
    used = len(json.dumps(rows[0]))
    ordered = sorted(trials, key=lambda trial: _rank(file, state, trial))
    for trial in ordered:
        row = _row(file, state, trial, names, stages=stages)
        used += len(json.dumps(row)) + 2
        if not full and used > _TABLE_BYTES:
            break
        rows.append(row)
    return rows, len(ordered) - len(rows) + 1


def _varied(trials: Sequence[TrialState]) -> list[str]:
    values: dict[str, set[str]] = {}
    for trial in trials:
        for name, value in trial.trial.settings.items():
            values.setdefault(name, set()).add(str(value))
    return [name for name, seen in values.items() if len(seen) > 1]


def _rank(file: CampaignFile, state: CampaignState, trial: TrialState) -> tuple[bool, float, TrialId]:
    value = trial_value(file, state, trial.trial.id) if trial.passed else None
    sign = -1.0 if file.objective.maximize else 1.0
    return value is None, 0.0 if value is None else sign * value, trial.trial.id


def _row(file: CampaignFile, state: CampaignState, trial: TrialState, names: Sequence[str], *, stages: bool) -> Row:
    end = trial.end
    stands = _standing(trial, ())
    if end is not None and not end.passed:
        stands = end.category or "failed"
    return [
        str(trial.trial.id),
        *([trial.trial.stage] if stages else []),
        *(trial.trial.settings.get(name) for name in names),
        stands,
        _rounded(trial_value(file, state, trial.trial.id)) if trial.passed else None,
        None if end is None else _rounded(end.queue_seconds),
        None if end is None else _rounded(end.run_seconds),
    ]


def _rounded(value: float | None) -> float | None:
    """Four digits."""
    return None if value is None else float(f"{value:.4g}")
