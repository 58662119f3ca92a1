"""Which plots a campaign has: the aim by each parameter, how time is split, all parameters at once, what was spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from slurm_agent_tools.campaigns.arms import Arm, arms, in_words, retry_seconds, varied
from slurm_agent_tools.campaigns.plots import PlotPoint, growing, parallel_coordinates, scatter, stacked_bars
from slurm_agent_tools.campaigns.report_formats import Picture
from slurm_agent_tools.campaigns.state import CampaignState, trial_value
from slurm_agent_tools.models.campaign_file import CampaignFile

_MOST_BARS = 16


def aim_name(file: CampaignFile) -> str:
    """What counts, for a heading."""
    return file.objective.metric or "seconds, all in all"


def of_stage(file: CampaignFile, state: CampaignState, stage: str) -> Iterator[Picture]:
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
    other = next((name for name in varied(found) if name != parameter), None)
    runs = [(arm, run) for arm in found for run in arm.passed if parameter in arm.settings]
    values = [arm.settings[parameter] for arm, _ in runs]
    ordered = None if all(_is_number(value) for value in values) else sorted({str(value) for value in values})
    points = []
    for arm, run in runs:
        value = trial_value(file, state, run.trial.id)
        if value is not None:
            setting = arm.settings[parameter]
            x = float(setting) if ordered is None else float(ordered.index(str(setting)))
            group = "" if other is None or other not in arm.settings else f"{other}={arm.settings[other]}"
            points.append(PlotPoint(x, value, group, f"{run.trial.id}: {in_words(arm.settings, varied(found))}"))
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


def spending(file: CampaignFile, state: CampaignState) -> str:
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
