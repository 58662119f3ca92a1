"""What to try next, from what a campaign's runs measured: a sentence each, with the figures it rests on. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from slurm_agent_tools.campaigns.state import CampaignState, TrialState
from slurm_agent_tools.insights.sizing import ENOUGH, MEMORY, TIME, memory_of_runs, size, size_memory, whole_cpus
from slurm_agent_tools.models.campaign import TrialEnd, TrialRequest
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage
from slurm_agent_tools.models.job_sizing import SizingFigure
from slurm_agent_tools.units import format_duration, format_memory, human_memory

_LONG_QUEUE = 60.0
"""Seconds in the queue below which nothing is to be gained."""

_LITTLE = 0.5
"""A share of what was asked for below which it is little used."""

_BUSY = 0.8

_OUT_OF_MEMORY = {"host-out-of-memory": "memory", "gpu-out-of-memory": "GPU memory"}


@dataclass(frozen=True, slots=True)
class _Run:
    """One run that ended, and what it asked for."""

    state: TrialState
    request: TrialRequest
    end: TrialEnd


@dataclass(frozen=True, slots=True)
class _StageRuns:
    """The runs of a stage, smoke runs apart: those are too short to tell what it uses."""

    file: CampaignFile
    state: CampaignState
    stage: CampaignStage
    passed: list[_Run]
    failed: list[_Run]


def advice(file: CampaignFile, state: CampaignState) -> tuple[str, ...]:
    """What was measured and what follows from it, what matters most first; () where nothing does."""
    stages = [_runs(file, state, stage) for stage in file.stages]
    found = list(_bottleneck(stages))
    for rule in (_memory_failures, _waiting, _gpus, _cpus, _memory, _time_limit):
        for stage in stages:
            found += [f"{stage.stage.name}: {said}" for said in rule(stage)]
    return tuple(found)


def _runs(file: CampaignFile, state: CampaignState, stage: CampaignStage) -> _StageRuns:
    ended = [
        _Run(found, found.trial.request, found.end)
        for found in state.trials.values()
        if found.trial.stage == stage.name and found.end is not None and found.trial.reuses is None
    ]
    smoke = {run.state.trial.id for run in ended if state.is_smoke(run.state.trial.id)}
    return _StageRuns(
        file,
        state,
        stage,
        [run for run in ended if run.end.passed and run.state.trial.id not in smoke],
        [run for run in ended if not run.end.passed],
    )


def _bottleneck(stages: Sequence[_StageRuns]) -> Iterator[str]:
    """The stage that takes most of the time of all, by the configurations that are gone on with."""
    times = {stage.stage.name: _usual_time(stage) for stage in stages}
    known = {name: time for name, time in times.items() if time is not None}
    total = sum(queue + run for queue, run in known.values())
    if len(known) < 2 or total <= 0:
        return
    name, (queue, run) = max(known.items(), key=lambda item: sum(item[1]))
    kind = next(stage.stage.kind for stage in stages if stage.stage.name == name)
    left_out = f"; not known of {', '.join(n for n in times if n not in known)}" if len(known) < len(times) else ""
    yield (
        f"{name} ({kind.upper()}) is the bottleneck: {(queue + run) / total:.0%} of the time of all stages"
        f" ({_clock(queue)} of waiting and {_clock(run)} of running, of {_clock(total)} in all{left_out});"
        " what is gained there counts most."
    )


def _usual_time(stage: _StageRuns) -> tuple[float, float] | None:
    """Median seconds in the queue and of running; of the configuration that is gone on with, where it is known."""
    best = {judged.best.get(stage.stage.name) for judged in stage.state.judged.values()}
    chosen = [run for run in stage.passed if run.state.trial.arm in best] or stage.passed
    pairs = [(run.end.queue_seconds, run.end.run_seconds) for run in chosen]
    known = [(queue, run) for queue, run in pairs if queue is not None and run is not None]
    if not known:
        return None
    return median(queue for queue, _ in known), median(run for _, run in known)


def _memory_failures(stage: _StageRuns) -> Iterator[str]:
    for category, what in _OUT_OF_MEMORY.items():
        failed = [run for run in stage.failed if run.end.category == category]
        if failed:
            yield _of_memory(stage, category, what, failed)


def _of_memory(stage: _StageRuns, category: str, what: str, failed: Sequence[_Run]) -> str:
    said = f"{len(failed)} {_plural('run', len(failed))} ran out of {what}"
    mends = [stage.state.replaced.get(run.state.trial.id) for run in failed]
    mended = [stage.state.trials[mend] for mend in mends if mend is not None and stage.state.trials[mend].passed]
    if mended:
        last = mended[-1].trial
        return f"{said}, and {last.id} passed ({last.mended or 'mended'}): write that into the file from the start."
    if any(fix.on == category and (not fix.stages or stage.stage.name in fix.stages) for fix in stage.file.fixes):
        return f"{said}, also after the fix that the file allows: a smaller batch or chunk is what is left to try."
    asked = [run.request.memory_bytes for run in failed if run.request.memory_bytes is not None]
    figure = size(MEMORY, SizingFigure(failed=max(asked, default=0) or None), enough=False)
    enough = figure.recommended if category == "host-out-of-memory" else None
    much = f", for instance memory: {format_memory(enough)}" if enough else ", for instance half the batch"
    return f"{said}, and the file allows no fix: add one for {category}{much}."


def _waiting(stage: _StageRuns) -> Iterator[str]:
    """A long queue: whether large requests waited longer than small ones."""
    known = [
        (run.request, run.end.queue_seconds, run.end.run_seconds)
        for run in stage.passed
        if run.end.queue_seconds is not None and run.end.run_seconds is not None
    ]
    if not known:
        return
    queue, running = median(wait for _, wait, _ in known), median(run for _, _, run in known)
    sizes: dict[tuple[int, int, int], list[float]] = {}
    for request, wait, _ in known:
        sizes.setdefault((request.gpus, request.nodes or 1, request.cpus or 1), []).append(wait)
    small, large = min(sizes), max(sizes)
    shorter, longer = median(sizes[small]), median(sizes[large])
    if small != large and longer >= max(2 * shorter, shorter + _LONG_QUEUE):
        yield (
            f"{_asked(large)} waited {_clock(longer)} in the middle and {_asked(small)} {_clock(shorter)}:"
            " smaller jobs, and more of them at once, start sooner."
        )
    elif queue >= max(_LONG_QUEUE, _LITTLE * running):
        yield (
            f"{_clock(queue)} in the queue for {_clock(running)} of running, with {_asked(large)}:"
            " split the work into smaller jobs and more of them, or ask for less of each."
        )


def _gpus(stage: _StageRuns) -> Iterator[str]:
    used = _usual([run.end.gpu_used for run in stage.passed])
    if used is None or used >= _LITTLE or stage.stage.kind != "gpu":
        return
    busy = _usual([run.end.cpu_used for run in stage.passed])
    others = [other.name for other in stage.file.stages if other.kind == "cpu"]
    where = f"the CPU stage {others[-1]}" if others else "a CPU stage before it"
    if busy is not None and busy >= _BUSY:
        yield (
            f"its GPUs are used {used:.0%} while its CPUs are {busy:.0%} busy, so they wait for data:"
            f" move that work to {where}, or ask for more CPUs beside each GPU."
        )
    else:
        cpus = "not measured" if busy is None else f"{busy:.0%}"
        yield (
            f"its GPUs are used {used:.0%} (CPUs {cpus}): a larger batch or several runs on one GPU;"
            f" if it reads while it computes, prepare the data in {where}."
        )


def _cpus(stage: _StageRuns) -> Iterator[str]:
    used = _usual([run.end.cpu_used for run in stage.passed])
    asked = max((run.request.cpus or 0 for run in stage.passed), default=0)
    if used is None or used >= _LITTLE or asked < 2:
        return
    enough = whole_cpus(used * asked)
    if enough < asked:
        yield f"its CPUs are used {used:.0%} of up to {asked}: ask for {enough}, or run more at once in each job."


def _memory(stage: _StageRuns) -> Iterator[str]:
    pairs = [(run.end.memory_peak_bytes, run.end.memory_allocated_bytes) for run in stage.passed]
    known = [(peak, allocated) for peak, allocated in pairs if peak is not None and allocated]
    if not known:
        return
    most, asked = max(peak for peak, _ in known), max(allocated for _, allocated in known)
    used = SizingFigure(runs=len(known), requested=asked, used=float(most))
    need = memory_of_runs([(float(peak), 1) for peak, _ in known])
    figure = size(MEMORY, used) if need.needed is None or need.left_out else size_memory(used, need)
    if figure.recommended is not None and figure.recommended <= _LITTLE * asked:
        yield (
            f"of {human_memory(asked)} at most {human_memory(most)} was used in {len(known)}"
            f" {_plural('run', len(known))}: {format_memory(figure.recommended)} is enough, and more fit on a node."
        )


def _time_limit(stage: _StageRuns) -> Iterator[str]:
    known = [(run.end.run_seconds, run.request.time_limit_seconds) for run in stage.passed if run.end.run_seconds]
    if len(known) < ENOUGH:
        return
    most, asked = max(run or 0.0 for run, _ in known), max(limit for _, limit in known)
    figure = size(TIME, SizingFigure(runs=len(known), requested=asked, used=most))
    if figure.recommended is not None and figure.recommended <= _LITTLE * asked:
        yield (
            f"it asks for {_clock(asked)} and took {_clock(most)} at most in {len(known)} runs:"
            f" {_clock(figure.recommended)} lets it start in gaps that are too short for it now."
        )


def _usual(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _asked(size_of: tuple[int, int, int]) -> str:
    gpus, nodes, cpus = size_of
    parts = [f"{cpus} {_plural('CPU', cpus)}"]
    if gpus:
        parts.insert(0, f"{gpus} {_plural('GPU', gpus)}")
    if nodes > 1:
        parts.append(f"{nodes} nodes")
    return f"runs with {' and '.join(parts)}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _clock(seconds: float) -> str:
    return format_duration(round(seconds))
