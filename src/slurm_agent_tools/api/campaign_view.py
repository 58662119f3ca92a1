"""What is shown of a campaign: counts, the best so far, what happened, and a table where it is asked for. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence

from slurm_agent_tools.campaigns.arms import arms, chosen, differing, full_name, in_words, varied
from slurm_agent_tools.campaigns.measured import Arm
from slurm_agent_tools.campaigns.state import CampaignState, TrialState, trial_value
from slurm_agent_tools.models.campaign import TrialId
from slurm_agent_tools.models.campaign_answer import BestShown, CampaignCounts, CampaignQuestion, CampaignSpent
from slurm_agent_tools.models.campaign_file import CampaignFile
from slurm_agent_tools.text.svg_plots import number

_BRIEF_LINES, _BRIEF_TEXT = 7, 110

_TABLE_BYTES = 1250
"""Of a brief table, as JSON."""

Row = list[object]


def counts(state: CampaignState, running: Collection[TrialId] = ()) -> CampaignCounts:
    """How many trials stand where; `running`: those of which Slurm said so."""
    found: Counter[str] = Counter(_standing(trial, running) for trial in state.trials.values())
    return CampaignCounts(**{name: found[name] for name in CampaignCounts.model_fields})


def by_stage(file: CampaignFile, state: CampaignState, running: Collection[TrialId] = ()) -> dict[str, CampaignCounts]:
    """The same for each stage."""
    found: dict[str, Counter[str]] = {stage.name: Counter() for stage in file.stages}
    for trial in state.trials.values():
        found.setdefault(trial.trial.stage, Counter())[_standing(trial, running)] += 1
    return {
        stage: CampaignCounts(**{name: stands[name] for name in CampaignCounts.model_fields})
        for stage, stands in found.items()
    }


def _standing(trial: TrialState, running: Collection[TrialId]) -> str:
    if trial.end is not None:
        return "done" if trial.passed else "failed"
    if trial.phase in {"refused", "left_out"}:
        return "not sent"
    if trial.phase == "sent":
        return "running" if trial.trial.id in running else "pending"
    return "planned"


def best(file: CampaignFile, state: CampaignState, name: str) -> list[BestShown]:
    """Of each stage the configuration to go on with, as far as any run of it passed; and the run that shows its value.

    The value is the median of its runs, so the run that is named is the one with that value, or the nearest to it.
    """
    found = []
    for stage in file.stages:
        of_stage = arms(file, state, stage.name)
        arm = chosen(state, stage.name, of_stage)
        if arm is None or not arm.passed:
            continue
        verdicts = [one for judged in state.judged.values() for one in judged.verdicts if one.arm == arm.arm]
        shown = _in_order(file, varied(of_stage) or list(arm.settings))
        found.append(
            BestShown(
                stage=stage.name,
                settings={key: arm.settings[key] for key in shown if key in arm.settings},
                value=_rounded(arm.value),
                trial=full_name(name, _middle_run(file, state, arm)),
                verdict=verdicts[-1].verdict if verdicts else None,
            )
        )
    return found


def _middle_run(file: CampaignFile, state: CampaignState, arm: Arm) -> TrialId:
    """The run of a configuration whose value is nearest to its median; of equals the first."""
    told = [(run.trial.id, trial_value(file, state, run.trial.id)) for run in arm.passed]
    known = [(abs(value - arm.median), trial) for trial, value in told if value is not None]
    return min(known, key=lambda pair: pair[0])[1] if known else arm.passed[0].trial.id


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
    runs = {stage.name: _runs_in_words(file, state, stage.name) for stage in file.stages}
    told = [
        f"{one.stage}: {in_words(one.settings, list(one.settings))} ({what} {number(one.value)}{runs[one.stage]})"  # type: ignore[arg-type]
        for one in best(file, state, name)
        if one.value is not None
    ]
    return f" Best so far, {'; '.join(told[:3])}." if told else ""


def _runs_in_words(file: CampaignFile, state: CampaignState, stage: str) -> str:
    """What the value of a stage's best is where it is not that of one run."""
    arm = chosen(state, stage, arms(file, state, stage))
    return f", the median of {len(arm.values)} runs" if arm is not None and len(arm.values) > 1 else ""


def brief_lines(lines: Sequence[str]) -> tuple[list[str], int]:
    """The last few sentences, each cut short, and how many were left out."""
    kept = [_cut(text, _BRIEF_TEXT) for text in lines[-_BRIEF_LINES:]]
    return kept, len(lines) - len(kept)


def _cut(text: str, most: int) -> str:
    """So much of a text, to the end of a word where there is one."""
    if len(text) <= most:
        return text
    kept = text[: most - 3]
    whole = kept.rpartition(" ")[0].rstrip(" ,;:") if not text[most - 3].isspace() else kept
    return f"{whole if len(whole) > most // 2 else kept}..."


# --- the table --------------------------------------------------------------------------------------------------------


def table(file: CampaignFile, state: CampaignState, *, full: bool) -> tuple[list[Row], int]:
    """A row for each trial under one with the columns' names, the best first; and how many do not fit in brief."""
    trials = [trial for trial in state.trials.values() if trial.trial.purpose != "smoke"] or [*state.trials.values()]
    names = _in_order(file, differing(trial.trial.settings for trial in trials))
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


def _in_order(file: CampaignFile, names: Sequence[str]) -> list[str]:
    """As the file names them, resources last."""
    known = [name for stage in file.stages for name in stage.parameters]
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


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
