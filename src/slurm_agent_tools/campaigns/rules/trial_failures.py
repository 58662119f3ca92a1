"""What follows from a failure: the file's fix for it, or that its stage stops. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from slurm_agent_tools.campaigns.file_checks import value_problem
from slurm_agent_tools.campaigns.state import CampaignState, TrialPhase, TrialState
from slurm_agent_tools.campaigns.trial_identity import arm_of, identity_of, request_of
from slurm_agent_tools.models.campaign import (
    Setting,
    StageStopped,
    Trial,
    TrialEnd,
    TrialId,
    TrialRequest,
)
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage, Fix
from slurm_agent_tools.units import format_duration, format_memory

_RUNNING: tuple[TrialPhase, ...] = ("planned", "sending", "sent")


def cause_of(end: TrialEnd) -> str:
    """What tells this failure from others: without a diagnosis the state in which it ended."""
    return end.cause or end.category or end.state


def mending(file: CampaignFile, state: CampaignState) -> Trial | None:
    """The next trial that mends a failure as the file allows; None where there is none to be designed now."""
    for failed in _unmended(state):
        trial = _mended(file, state, failed)
        if trial is not None and not _runs_now(state, trial):
            return trial
    return None


def stopping(file: CampaignFile, state: CampaignState) -> StageStopped | None:
    """The next stage to stop: its runs failed alike as often as the file bears, or its smoke run cannot be mended."""
    counted: dict[str, Counter[str]] = {}
    for failed in _unmended(state):
        if failed.end is None or _mended(file, state, failed) is not None:
            continue
        stage, cause = failed.trial.stage, cause_of(failed.end)
        chain = state.chain(failed.trial.id)
        if state.is_smoke(failed.trial.id):
            return StageStopped(stage, cause, f"its smoke run failed: {_problem(failed.end)}")
        found = counted.setdefault(stage, Counter())
        found.update(cause_of(one.end) for one in chain if one.end is not None and not one.passed)
        if found[cause] >= file.limits.same_failure:
            return StageStopped(stage, cause, f"{found[cause]} runs failed alike: {_problem(failed.end)}")
    return _refused_alike(file, state)


def refusal_cause(rules: tuple[str, ...], reason: str) -> str:
    """What tells this refusal from others."""
    return f"refused: {', '.join(rules) or reason}"


def _refused_alike(file: CampaignFile, state: CampaignState) -> StageStopped | None:
    counted: Counter[tuple[str, str]] = Counter()
    for batch in state.batches.values():
        first = state.trials[batch.intended.trials[0]]
        if batch.refused is None or batch.revision != state.revision or first.trial.stage in state.stops:
            continue
        cause = refusal_cause(batch.refused.rules, batch.refused.reason)
        counted[first.trial.stage, cause] += 1
        if counted[first.trial.stage, cause] >= file.limits.same_failure:
            return StageStopped(first.trial.stage, cause, f"its jobs were refused: {batch.refused.reason}")
    return None


def _problem(end: TrialEnd) -> str:
    return end.problem or end.explanation or end.state


def _unmended(state: CampaignState) -> Iterator[TrialState]:
    """Failed trials that count: by code that runs still, of a stage that goes on, mended by nothing else."""
    for identifier in state.failed_requests.values():
        failed = state.trials[identifier]
        gone = identifier in state.replaced or identifier in state.forgiven or failed.trial.stage in state.stops
        if not gone and not state.changed_code(identifier):
            yield failed


def _runs_now(state: CampaignState, trial: Trial) -> bool:
    """Whether the same is about to run, or runs: its end is awaited, and then counts for this one too."""
    return any(found.trial.identity == trial.identity for phase in _RUNNING for found in state.in_phase(phase))


# --- the file's fix ---------------------------------------------------------------------------------------------------


def _mended(file: CampaignFile, state: CampaignState, failed: TrialState) -> Trial | None:
    """The trial that the file's first fix makes of a failed one; None where none is allowed or changes anything.

    How often a fix was used is counted along the trials that mend each other: a second run of a configuration that
    failed alike gets the same fix, and not a further one.
    """
    stage = next((one for one in file.stages if one.name == failed.trial.stage), None)
    end = failed.end
    number = failed.trial.id.round
    if stage is None or end is None or number in state.judged or number not in state.hypotheses:
        return None
    used = Counter(one.trial.fix for one in state.chain(failed.trial.id))
    for fix in file.fixes:
        if fix.on != end.category or (fix.stages is not None and stage.name not in fix.stages):
            continue
        if used[fix_hash(fix)] < fix.at_most:
            trial = _applied(fix, stage, state, failed, end)
            if trial is not None:
                return trial
    return None


def fix_hash(fix: Fix) -> str:
    """12 hex digits that are the same for the same fix, wherever it stands in the file."""
    text = json.dumps(fix.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _applied(fix: Fix, stage: CampaignStage, state: CampaignState, failed: TrialState, end: TrialEnd) -> Trial | None:
    before = failed.trial
    settings = dict(before.settings)
    words = [*_multiplied(fix, settings), *_changed(fix, stage, settings)]
    smoke = state.is_smoke(before.id)
    request = request_of(stage, settings, smoke=smoke, like=before.request)
    request, more = _larger(fix, request, before.request, end)
    if more and "memory" in settings and "memory" not in stage.parameters and request.memory_bytes is not None:
        settings["memory"] = format_memory(request.memory_bytes)
    words += more
    identity = identity_of(stage, settings, before.repeat, state.code.get(stage.name, ""))
    if not words or (identity, request) in state.failed_requests:
        return None
    number = max(trial.number for trial in state.rounds[before.id.round]) + 1
    return replace(
        before,
        id=TrialId(before.id.round, number),
        purpose="fix",
        arm=arm_of(stage, settings),
        identity=identity,
        settings=settings,
        request=request,
        replaces=before.id,
        mended=", ".join(words),
        reuses=state.passed_identities.get(identity),
        fix=fix_hash(fix),
    )


def _multiplied(fix: Fix, settings: dict[str, Setting]) -> Iterator[str]:
    for name, factor in fix.multiply.items():
        value = settings.get(name)
        if value is None or isinstance(value, bool | str):
            continue
        product = value * factor
        made = product if isinstance(value, float) or not math.isfinite(product) else int(product)
        if made == value or value_problem(made) or (isinstance(value, int) and made < 1 <= value):
            continue
        settings[name] = made
        yield f"{name} {value:g} -> {made:g}"


def _changed(fix: Fix, stage: CampaignStage, settings: dict[str, Setting]) -> Iterator[str]:
    for name, value in fix.change.items():
        if name in stage.parameters and settings.get(name) != value:
            yield f"{name} {settings.get(name)} -> {value}"
            settings[name] = value


def _larger(fix: Fix, request: TrialRequest, before: TrialRequest, end: TrialEnd) -> tuple[TrialRequest, list[str]]:
    """The request with the memory that the diagnosis proposes, at most what the fix allows, and with its time."""
    words = []
    if fix.memory is not None and end.proposed_memory_bytes is not None:
        memory = min(fix.memory, end.proposed_memory_bytes)
        if before.memory_bytes is None or memory > before.memory_bytes:
            was = "not stated" if before.memory_bytes is None else format_memory(before.memory_bytes)
            words.append(f"memory {was} -> {format_memory(memory)}")
            request = replace(request, memory_bytes=memory)
    if fix.time_limit is not None and fix.time_limit > before.time_limit_seconds:
        words.append(f"time limit {format_duration(before.time_limit_seconds)} -> {format_duration(fix.time_limit)}")
        request = replace(request, time_limit_seconds=fix.time_limit)
    return request, words
