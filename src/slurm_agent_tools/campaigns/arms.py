"""The configurations of a campaign with all that their runs showed: what tables and reports are made from; plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from slurm_agent_tools.campaigns.measured import Arm
from slurm_agent_tools.campaigns.state import CampaignState, TrialState, trial_value
from slurm_agent_tools.models.campaign import Setting, TrialId
from slurm_agent_tools.models.campaign_file import CampaignFile
from slurm_agent_tools.text.report_formats import Picture
from slurm_agent_tools.text.svg_plots import PlotPoint, growing, parallel_coordinates, scatter, stacked_bars

_MOST_BARS = 16


def retry_seconds(state: CampaignState, trial: TrialState) -> float:
    """Seconds in the queue and in failed runs that this trial mends, those that were measured."""
    before = (one.end for one in state.chain(trial.trial.id)[1:])
    return sum((end.queue_seconds or 0.0) + (end.run_seconds or 0.0) for end in before if end is not None)


def arms(file: CampaignFile, state: CampaignState, stage: str) -> list[Arm]:
    """Each configuration of a stage, the best first; those without a value last. Smoke runs are none.

    Of what the stage runs now there may be no run: then those of before count.
    """
    grouped: dict[tuple[object, ...], list[TrialState]] = {}
    for trial in state.trials.values():
        if trial.trial.stage == stage and trial.trial.purpose != "smoke" and trial.end is not None:
            grouped.setdefault(_same(trial), []).append(trial)
    found = [_arm(file, state, runs) for runs in grouped.values()]
    worst = float("inf")
    sign = -1 if file.objective.maximize else 1
    return sorted(found, key=lambda arm: worst if arm.value is None else sign * arm.value)


def _same(trial: TrialState) -> tuple[object, ...]:
    return tuple(sorted((name, str(value)) for name, value in trial.trial.settings.items()))


def _arm(file: CampaignFile, state: CampaignState, runs: Sequence[TrialState]) -> Arm:
    first = runs[0].trial
    once: dict[TrialId, TrialState] = {}
    for run in runs:
        if run.passed:
            once.setdefault(run.trial.reuses or run.trial.id, run)
    every = tuple(once.values())
    good = tuple(run for run in every if not state.changed_code(run.trial.id)) or every
    values = (trial_value(file, state, run.trial.id) for run in good)
    return Arm(
        stage=first.stage,
        arm=first.arm,
        settings=first.settings,
        purpose=first.purpose,
        passed=good,
        failed=tuple(run for run in runs if run.failed),
        values=tuple(value for value in values if value is not None),
        rounds=frozenset(run.trial.id.round for run in runs),
    )


def chosen(state: CampaignState, stage: str, found: Sequence[Arm]) -> Arm | None:
    """The configuration that the last judged round goes on with, else the best that has a value.

    A smoke round compares nothing. Of several lengths it is the one that the round ran: there it was compared.
    """
    compared = (place for place in state.judged if not all(map(state.is_smoke, state.rounds.get(place, ()))))
    for place in sorted(compared, reverse=True):
        best = state.judged[place].best.get(stage)
        matching = [arm for arm in found if arm.arm == best and arm.value is not None]
        match = next((arm for arm in matching if place in arm.rounds), next(iter(matching), None))
        if match is not None:
            return match
    return next((arm for arm in found if arm.value is not None), None)


def varied(found: Iterable[Arm]) -> list[str]:
    """The settings that differ between configurations."""
    return differing(arm.settings for arm in found)


def differing(settings: Iterable[Mapping[str, Setting]]) -> list[str]:
    """The names whose values differ, in the order in which they are met."""
    values: dict[str, set[str]] = {}
    for one in settings:
        for name, value in one.items():
            values.setdefault(name, set()).add(str(value))
    return [name for name, seen in values.items() if len(seen) > 1]


def in_words(settings: Mapping[str, Setting], names: Sequence[str]) -> str:
    """`name=value` of these settings; of none that it is the only configuration."""
    return ", ".join(f"{name}={settings[name]}" for name in names if name in settings) or "as the file states"


def job_ids(trials: Iterable[TrialState]) -> str:
    """The ids of their jobs, arrays once: `12, 14_[1-3]`, for a table."""
    tasks: dict[str, list[str]] = {}
    for trial in trials:
        if trial.job_id is not None:
            base, _, task = trial.job_id.partition("_")
            tasks.setdefault(base, []).append(task)
    return ", ".join(base if not any(parts) else f"{base}_[{_runs(parts)}]" for base, parts in tasks.items())


def _runs(parts: Iterable[str]) -> str:
    """Numbers as ranges: 1-3,5."""
    numbers = sorted({int(part) for part in parts if part.isdecimal()})
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def full_name(name: str, trial: TrialId) -> str:
    """NAME/rROUND/tNUMBER."""
    return f"{name}/r{trial.round}/t{trial.number}"


# --- Plots ------------------------------------------------------------------------------------------------------------


def aim_name(file: CampaignFile) -> str:
    """What counts, for a heading."""
    return file.objective.metric or "seconds, all in all"


def plots_of_stage(file: CampaignFile, state: CampaignState, stage: str) -> Iterator[Picture]:
    """The plots of one stage."""
    found = arms(file, state, stage)
    names = varied(found)
    for name in names:
        yield Picture(metric_by(file, state, stage, name), f"{aim_name(file)} by {name}, one dot a run")
    if len(names) > 1:
        lines = [
            ([*(_number_or_text(arm.settings.get(name)) for name in names), arm.value], arm.value)
            for arm in found
            if arm.value is not None and all(name in arm.settings for name in names)
        ]
        title = f"{stage}: all parameters at once"
        axes = [*names, aim_name(file)]
        drawn = parallel_coordinates(axes, lines, title=title, best_is_high=file.objective.maximize)
        yield Picture(drawn, "One line a configuration; the best in orange")
    told = "Where the time went: median seconds of the runs that count"
    yield Picture(_time_split(state, found, names, stage), told)


def metric_by(file: CampaignFile, state: CampaignState, stage: str, parameter: str) -> str:
    """One dot a run: the aim by one parameter, coloured by another where a second one varies."""
    found = arms(file, state, stage)
    names = varied(found)
    other = next((name for name in names if name != parameter), None)
    runs = [(arm, run) for arm in found for run in arm.passed if parameter in arm.settings]
    values = [arm.settings[parameter] for arm, _ in runs]
    ordered = None if all(_is_number(value) for value in values) else sorted({str(value) for value in values})
    places = {text: float(place) for place, text in enumerate(ordered or ())}
    points = []
    for arm, run in runs:
        value = trial_value(file, state, run.trial.id)
        if value is not None:
            setting = arm.settings[parameter]
            x = float(setting) if ordered is None else places[str(setting)]
            group = "" if other is None or other not in arm.settings else f"{other}={arm.settings[other]}"
            points.append(PlotPoint(x, value, group, f"{run.trial.id}: {in_words(arm.settings, names)}"))
    points.sort(key=lambda point: point.group)
    title = f"{stage}: {aim_name(file)} by {parameter}"
    return scatter(points, title=title, x=parameter, y=aim_name(file), ordered=ordered)


def _time_split(state: CampaignState, found: Sequence[Arm], names: Sequence[str], stage: str) -> str:
    rows = []
    for arm in found[:_MOST_BARS]:
        ends = [run.end for run in arm.passed if run.end is not None]
        queue = [end.queue_seconds for end in ends if end.queue_seconds is not None]
        run = [end.run_seconds for end in ends if end.run_seconds is not None]
        if run:
            retries = median(retry_seconds(state, one) for one in arm.passed)
            parts = {"queue": median(queue) if queue else 0.0, "run": median(run), "retries": retries}
            rows.append((in_words(arm.settings, names), parts))
    return stacked_bars(rows, title=f"{stage}: queue, run and retries", unit="seconds")


def spending_plot(file: CampaignFile, state: CampaignState) -> str:
    """CPU or GPU hours as they grew with each run that ended: GPU hours where any stage has GPUs."""
    gpus = any(stage.kind == "gpu" for stage in file.stages)
    unit, limit = ("GPU hours", file.limits.gpu_hours) if gpus else ("CPU hours", file.limits.cpu_hours)
    ends = sorted(
        (trial.end for trial in state.trials.values() if trial.end is not None and trial.trial.reuses is None),
        key=lambda end: end.ended.timestamp() if end.ended is not None else 0.0,
    )
    timed = [end for end in ends if end.ended is not None]
    total, points = 0.0, []
    for end in timed:
        total += (end.gpu_hours if gpus else end.cpu_hours) or 0.0
        begun = timed[0].ended
        if end.ended is not None and begun is not None:
            points.append(((end.ended - begun).total_seconds() / 3600, total))
    return growing(points, title=f"{unit} spent", x="hours since the first run ended", y=unit, limit=limit)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_or_text(value: object) -> float | str:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
