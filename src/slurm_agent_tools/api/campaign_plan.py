"""What a campaign would do: trials by round, their hours, price and wait, and what the guard says. Writes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.api.trial_scripts import TrialScripts
from slurm_agent_tools.api.trial_values import TrialValues
from slurm_agent_tools.campaigns.batch import GENERATED, Batch, batches
from slurm_agent_tools.campaigns.campaign_budget import cpu_seconds, gpu_seconds
from slurm_agent_tools.campaigns.design import next_trials, superseded
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.campaigns.trial_count import heaviest, most_trials
from slurm_agent_tools.diagnosis import completion
from slurm_agent_tools.insights import measured_waits, queue_history
from slurm_agent_tools.models.campaign import Trial, TrialId, TrialRequest
from slurm_agent_tools.models.campaign_file import CampaignFile, HalvingRound, SearchRound, SmokeRound
from slurm_agent_tools.models.decision import Decision
from slurm_agent_tools.models.job import PastWaits
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.policy.evaluate import format_refusal
from slurm_agent_tools.services import generation
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.units import how_many

_HOUR = 3600

_REASON = 400

_MOST_ROWS = 30
"""Rows of a table with a row for each job."""


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """Equal trials of a round. Hours and price are at most these: for the whole time limit. None: not known."""

    round: int
    stage: str
    trials: int
    gpu_hours: float
    cpu_hours: float
    cost: float | None
    wait_seconds: float | None
    decision: Decision


@dataclass(frozen=True, slots=True)
class LaterTrials:
    """What a round may have beside its planned batches, as it comes out: at most so many trials and hours."""

    round: int
    trials: int
    gpu_hours: float
    cpu_hours: float


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """All that can be told before anything runs. `later`: what depends on what comes out.

    `left`: trials, GPU hours and CPU hours that the file's limits leave. `mends`: whether its fixes may add runs.
    """

    batches: tuple[PlannedBatch, ...]
    later: tuple[LaterTrials, ...]
    left: tuple[float, float, float]
    mends: bool

    @property
    def rows(self) -> list[list[object]]:
        """A table under its columns' names; where there are many jobs, those of a stage and verdict in one row."""
        head: list[object] = ["round", "stage", "trials", "gpu_h", "cpu_h", "cost", "wait_s", "guard"]
        made: list[list[object]] = [
            [
                one.round, one.stage, one.trials, round(one.gpu_hours, 2), round(one.cpu_hours, 2),
                None if one.cost is None else round(one.cost, 2), one.wait_seconds, one.decision.verdict,
            ]
            for one in (self.batches if len(self.batches) <= _MOST_ROWS else _together(self.batches))
        ]  # fmt: skip
        rest: list[list[object]] = [
            [one.round, "at most, as it comes out", one.trials, round(one.gpu_hours, 2), round(one.cpu_hours, 2)]
            + [None] * 3
            for one in self.later
            if one.trials
        ]
        return [head, *made, *rest]

    @property
    def summary(self) -> str:
        """How much it is at most, and the first thing that stands against it."""
        known = sum(one.trials for one in self.batches)
        every = [*self.batches, *self.later]
        names = ("trials", "gpu_hours", "cpu_hours")
        most = [sum(getattr(one, name) for one in every) for name in names]
        trials, gpus, cpus = map(min, most, self.left)
        told = f"{'' if trials == known else 'at most '}{how_many(int(trials), 'trial')}"
        told += f" ({known} known now)" if known < trials else ""
        told += f", at most {gpus:.2f} GPU hours and {cpus:.2f} CPU hours"
        if any(amount > limit for amount, limit in zip(most, self.left, strict=True)):
            told += ", which is what the file's limits leave"
        elif self.mends:
            told += " where none has to be mended"
        against = next((one for one in self.batches if one.decision.verdict != "allow"), None)
        if against is None:
            return f"{told}. The guard allows every trial as far as it can tell before."
        reason = format_refusal(against.decision)[:_REASON]
        return f"{told}. The guard does not let round {against.round} ({against.stage}) through: {reason}"


def _together(planned: Sequence[PlannedBatch]) -> Iterator[PlannedBatch]:
    """Jobs of one round, stage and verdict as one, in their order; the longest wait that is known."""
    groups: dict[tuple[int, str, str], list[PlannedBatch]] = {}
    for one in planned:
        groups.setdefault((one.round, one.stage, one.decision.verdict), []).append(one)
    for group in groups.values():
        costs = [one.cost for one in group if one.cost is not None]
        yield replace(
            group[0],
            trials=sum(one.trials for one in group),
            gpu_hours=sum(one.gpu_hours for one in group),
            cpu_hours=sum(one.cpu_hours for one in group),
            cost=sum(costs) if len(costs) == len(group) else None,
            wait_seconds=max((one.wait_seconds for one in group if one.wait_seconds is not None), default=None),
        )


async def campaign_plan(
    context: ClusterContext, name: str, file: CampaignFile, state: CampaignState, texts: Mapping[str, str]
) -> CampaignPlan:
    """Rounds that are not judged yet. `state` knows the code of each stage; `texts`: see `batch.batches`."""
    past = await queue_history.recent_waits(context)
    at_once = min(file.limits.at_once, context.policy.policy.limits.max_concurrent_jobs)
    found: list[PlannedBatch] = []
    later: list[LaterTrials] = []
    scripts = TrialScripts()
    for number in range(len(file.rounds)):
        if number in state.judged:
            continue
        all_trials = list(_trials(file, name, number, state))
        trials = [trial for trial in all_trials if trial.reuses is None]
        made = batches(name, file, trials, at_once, texts=texts)
        by_id = {trial.id: trial for trial in trials}
        path = f"{GENERATED}/{name}-r{number}.sh"  # one name for all, as no text can know under which one it is sent
        values = TrialValues(made, scripts.read)
        found += [await _planned(context, file, batch, path, by_id, past, values) for batch in made]
        if not _all_known(file, number, state):
            later.append(_later(file, number, state, all_trials))
    return CampaignPlan(tuple(found), tuple(later), _left(file, state), bool(file.fixes))


def _all_known(file: CampaignFile, number: int, state: CampaignState) -> bool:
    """Whether a round's trials are all known now: it goes in one wave, from what rounds before it have shown."""
    earlier = (at for at, this in enumerate(file.rounds[:number]) if not isinstance(this, SmokeRound))
    this = file.rounds[number]
    return isinstance(this, SmokeRound) or (
        not isinstance(this, HalvingRound | SearchRound) and all(at in state.judged for at in earlier)
    )


def _later(file: CampaignFile, number: int, state: CampaignState, known: Sequence[Trial]) -> LaterTrials:
    """What a round has at most beside what it had and the `known`, which it is about to have."""
    had = [
        one.trial
        for one in state.of_round(number)
        if one.phase != "planned" and one.trial.replaces is None and not superseded(one, state)
    ]
    count, gpus, cpus = 0, 0, 0
    for stage_name, most in most_trials(file, number).items():
        if stage_name in state.stopped_stages:
            continue
        open_now = max(0, most - sum(trial.stage == stage_name for trial in had))
        coming = [trial for trial in known if trial.stage == stage_name and trial.replaces is None]
        each_cpu, each_gpu = heaviest(file, file.stage(stage_name))
        counted = [trial.request for trial in coming if trial.reuses is None]
        again = len(coming) - len(counted)  # what ran before is not run again, and asks for nothing
        count += max(0, open_now - len(coming))
        cpus += max(0, (open_now - again) * each_cpu - sum(map(cpu_seconds, counted)))
        gpus += max(0, (open_now - again) * each_gpu - sum(map(gpu_seconds, counted)))
    return LaterTrials(number, count, gpus / _HOUR, cpus / _HOUR)


def _left(file: CampaignFile, state: CampaignState) -> tuple[float, float, float]:
    """Trials, GPU hours and CPU hours below the limits; infinite where there is none."""
    limits, spent = file.limits, state.spent
    pairs = ((limits.trials, spent.trials), (limits.gpu_hours, spent.gpu_hours), (limits.cpu_hours, spent.cpu_hours))
    trials, gpus, cpus = (math.inf if limit is None else max(0, limit - used) for limit, used in pairs)
    return trials, gpus, cpus


def _trials(file: CampaignFile, name: str, number: int, state: CampaignState) -> Iterator[Trial]:
    """Those that were designed and not sent, and the next wave."""
    yield from (one.trial for one in state.of_round(number) if one.phase == "planned")
    yield from next_trials(file, name, number, state)


async def _planned(
    context: ClusterContext,
    file: CampaignFile,
    batch: Batch,
    path: str,
    trials: Mapping[TrialId, Trial],
    past: PastWaits,
    values: TrialValues,
) -> PlannedBatch:
    first = trials[batch.trials[0]]
    count, request = len(batch.trials), first.request
    gpus, cpus = gpu_seconds(request) * count / _HOUR, cpu_seconds(request) * count / _HOUR
    price, _ = completion.price(cpus, {"other": gpus} if gpus else {}, context.settings.rates)
    waits = measured_waits.measure_waits(measured_waits.same_shape(past.waits, _resources(request)))
    decision = await generation.judge_script(
        context, batch.script_text.encode(), path, justification=file.justification, reader=values.reader(batch)
    )
    return PlannedBatch(batch.trials[0].round, first.stage, count, gpus, cpus, price, waits.median, decision)


def _resources(request: TrialRequest) -> Resources:
    return Resources(
        partition=request.partition,
        nodes=request.nodes,
        cpus=request.cpus,
        gpus=request.gpus,
        memory_bytes=request.memory_bytes,
        time_limit_seconds=request.time_limit_seconds,
    )
