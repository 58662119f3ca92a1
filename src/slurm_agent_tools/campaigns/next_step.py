"""What to do next in a campaign: a pure function of its file, of what happened so far, and of the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from slurm_agent_tools.campaigns.campaign_budget import affordable
from slurm_agent_tools.campaigns.design import next_trials
from slurm_agent_tools.campaigns.ports import SentTrial
from slurm_agent_tools.campaigns.rules.judge import finished_early, judge_round
from slurm_agent_tools.campaigns.rules.stage_questions import changing, question
from slurm_agent_tools.campaigns.rules.trial_failures import mending, stopping
from slurm_agent_tools.campaigns.state import STOP, CampaignState, TrialState
from slurm_agent_tools.campaigns.trial_identity import plan_place, plan_words
from slurm_agent_tools.models.campaign import (
    CampaignEvent,
    CampaignFinished,
    CampaignStopped,
    RoundDesigned,
    Trial,
    TrialId,
    TrialsLeftOut,
)
from slurm_agent_tools.models.campaign_file import CampaignFile

BUDGET = "budget"
"""How the reason begins for which a trial is left out that would pass a limit."""


@dataclass(frozen=True, slots=True)
class Decide:
    """Write down what follows from what is known."""

    event: CampaignEvent


@dataclass(frozen=True, slots=True)
class SendTrials:
    """Send these as jobs, as many as fit: at most `at_once` of them may be active."""

    trials: tuple[Trial, ...]
    at_once: int


@dataclass(frozen=True, slots=True)
class SendAgain:
    """Ask for a batch of which it is not known whether Slurm has it, by the same key."""

    key: str


@dataclass(frozen=True, slots=True)
class FindBatch:
    """Find out whether Slurm has a batch, without sending it."""

    key: str


@dataclass(frozen=True, slots=True)
class LookAtTrials:
    """See where trials stand that Slurm has; those in `cancel` are cancelled, and `why`, when they have not begun."""

    sent: tuple[SentTrial, ...]
    cancel: frozenset[TrialId] = frozenset()
    why: str = ""


@dataclass(frozen=True, slots=True)
class SaveTrials:
    """Save the results of ended trials, and the lessons of those that mended a failure."""

    results: tuple[TrialId, ...]
    lessons: tuple[TrialId, ...]


@dataclass(frozen=True, slots=True)
class WriteReport:
    """Write the report as it stands."""


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Nothing more can be done now. Seconds until a look is worth it."""

    seconds: float
    why: str


CampaignStep = Decide | SendTrials | SendAgain | FindBatch | LookAtTrials | SaveTrials | WriteReport | WaitFor


def needs_revision(state: CampaignState, sha256: str, code: dict[str, str]) -> bool:
    """Whether the file, or what its stages run, is another than the present revision's.

    A campaign that was stopped stays so; one that is finished goes on where its file was changed.
    """
    if state.status == "stopped":
        return False
    changed = state.file_sha256 != sha256
    return changed or (dict(state.code) != code and not state.over)


def next_steps(file: CampaignFile, name: str, state: CampaignState, now: datetime) -> tuple[CampaignStep, ...]:
    """What can be done now, in order. `file`: as it is in the state's revision; `name`: the campaign's.

    Steps are carried out until one of them made an event; then they are asked for again. () where a person has to
    decide, or nothing is left to be done. The same arguments give the same steps.
    """
    steps: list[CampaignStep] = [*_saving(state)]
    if state.over:  # what is found is looked at as well, and cancelled where the campaign was stopped
        steps += [*(FindBatch(key) for key in _sending(state)), *_looking(state)]
    else:
        steps += [*_looking(state), *_sending_again(file, state)]
        event = _decision(file, name, state)
        if event is not None:
            return (*steps, Decide(event))
        if not state.phases.get("sending"):
            steps += _to_send(file, state)
    if state.report_due:
        steps.append(WriteReport())
    return (*steps, *_waiting(state, now))


def active(state: CampaignState) -> int:
    """How many trials Slurm may be running together: of an array as many as its throttle lets."""
    return sum(_width(state, key, count) for key, count in _open_keys(state).items())


def seconds_to_wait(state: CampaignState, now: datetime) -> float:
    """Until a look is worth it: as long as the newest job has been there already, as many fail in their first moments.

    But no longer than a part of what the shortest may take, or has waited; 5 s at least and half an hour at most: a
    smoke run is waited for, a run or a queue of hours is asked for rarely.
    """
    ages = [(_age(state, trial, now), expected_seconds(state, trial.trial)) for trial in _one_of_each_batch(state)]
    part = min((max(age, expected) / _LOOKS for age, expected in ages), default=0.0)
    begun = max(_FIRST, min((age for age, _ in ages), default=0.0))
    return min(_MOST, max(_LEAST, min(part, begun)))


_LEAST, _FIRST, _MOST, _LOOKS = 5.0, 10.0, 1800.0, 12.0

_AT_A_TIME = 1000
"""Trials of which jobs are made at a time: as many as an array has tasks."""


# --- what follows from what is known ----------------------------------------------------------------------------------

_Rule = Callable[[CampaignFile, str, CampaignState], CampaignEvent | None]


def _decision(file: CampaignFile, name: str, state: CampaignState) -> CampaignEvent | None:
    for rule in _RULES:
        event = rule(file, name, state)
        if event is not None:
            return event
    return None


def _person_stops(_: CampaignFile, __: str, state: CampaignState) -> CampaignEvent | None:
    decided = next((one for one in state.decisions.values() if one.choice == STOP), None)
    if decided is None:
        return None
    # Whether a person or an agent called is not known here: only who it was by the call.
    return CampaignStopped(
        f"{decided.question} was answered with stop through advance_campaign by {decided.by}", decided.by
    )


def _stage_stops(file: CampaignFile, _: str, state: CampaignState) -> CampaignEvent | None:
    return stopping(file, state)


def _mends(file: CampaignFile, _: str, state: CampaignState) -> CampaignEvent | None:
    trial = mending(file, state)
    if trial is None:
        return None
    return RoundDesigned(trial.id.round, state.revision, state.hypotheses[trial.id.round], (trial,))


def _asks(file: CampaignFile, name: str, state: CampaignState) -> CampaignEvent | None:
    return question(file, name, state, settled=_settled(state))


def _leaves_out(file: CampaignFile, _: str, state: CampaignState) -> CampaignEvent | None:
    """What passes a limit while nothing counts that could take less than it asked for."""
    planned = _sendable(state)
    if not planned or _active_trials(state) or _may_be_let_through(state):
        return None
    fit, limit = affordable((one.trial for one in planned), state.spent, file.limits, most=1)
    if fit:
        return None
    reason = f"{BUDGET}: with it the campaign would pass limits.{limit}"
    return TrialsLeftOut(tuple(one.trial.id for one in planned), reason)


def _goes_on(file: CampaignFile, name: str, state: CampaignState) -> CampaignEvent | None:
    """The next wave, the judgement of the round, or the end: once all is settled and nobody has to decide."""
    if state.question is not None or not _settled(state):
        return None
    number = next((number for number in range(len(file.rounds)) if number not in state.judged), None)
    reason = _finished(file, state, number)
    if reason is not None or number is None:
        return CampaignFinished(reason or "all rounds are judged")
    wave = () if _beyond_budget(state) else _wave(file, name, state, number)
    stop = changing(state, wave)
    if stop is not None:
        return stop
    if wave or number not in state.hypotheses:
        return RoundDesigned(number, state.revision, file.rounds[number].hypothesis, wave)
    return judge_round(file, number, state)


def _finished(file: CampaignFile, state: CampaignState, number: int | None) -> str | None:
    """Why the campaign is over before this round begins; None where it is not, or the round has begun."""
    if number is not None and number in state.hypotheses:
        return None
    if _beyond_budget(state):
        return BUDGET
    if number is not None and all(stage.name in state.stops for stage in file.stages):
        return "every stage was stopped"
    return finished_early(file, state) if state.judged else None


_RULES: tuple[_Rule, ...] = (_person_stops, _mends, _stage_stops, _asks, _leaves_out, _goes_on)


def _beyond_budget(state: CampaignState) -> bool:
    left = state.in_phase("left_out")
    return any(one.revision == state.revision and (one.why or "").startswith(BUDGET) for one in left)


def _wave(file: CampaignFile, name: str, state: CampaignState, number: int) -> tuple[Trial, ...]:
    """The next trials of a round: none that failed exactly so before, and the same as one that passed is not run."""
    found = (
        one
        for one in next_trials(file, name, number, state)
        if one.stage not in state.stops and (one.identity, one.request) not in state.failed_requests
    )
    reused = state.passed_identities
    return tuple(
        replace(one, reuses=reused[one.identity]) if one.reuses is None and one.identity in reused else one
        for one in found
    )


# --- what is sent, looked at and waited for ---------------------------------------------------------------------------


def _sending(state: CampaignState) -> list[str]:
    found = (state.trials[trial].key for trial in state.phases.get("sending", ()))
    return [key for key in dict.fromkeys(found) if key is not None]


def _sending_again(file: CampaignFile, state: CampaignState) -> Iterator[CampaignStep]:
    """What was being sent; what a person let through after all waits until it fits beside what runs."""
    widths = {key: _width(state, key, count) for key, count in _open_keys(state).items()}
    sending = _sending(state)
    taken = sum(width for key, width in widths.items() if key not in sending)
    for key in sending:
        first = state.trials[state.batches[key].intended.trials[0]].trial
        if first.stage in state.stops:
            yield FindBatch(key)
        elif not taken or taken + widths[key] <= file.limits.at_once:
            yield SendAgain(key)
        taken += widths[key]


def _may_be_let_through(state: CampaignState) -> bool:
    """Whether a person has yet to decide on a refused job: what it asks for counts until then."""
    refused = (state.batches[about].refused for about in state.undecided if about in state.batches)
    return any(one is not None and one.person for one in refused)


def _held(state: CampaignState) -> frozenset[str]:
    """Stages of which a job was refused, and nobody has said yet what is to be done about it."""
    keys = [about for about in state.undecided if about in state.batches]
    return frozenset(state.trials[state.batches[key].intended.trials[0]].trial.stage for key in keys)


def _sendable(state: CampaignState) -> list[TrialState]:
    held = _held(state)
    return [one for one in state.in_phase("planned") if one.trial.stage not in held]


def _to_send(file: CampaignFile, state: CampaignState) -> Iterator[SendTrials]:
    free = file.limits.at_once - active(state)
    if free <= 0:
        return
    names = [plan_words(job) for job in state.order]
    waiting = sorted(_sendable(state), key=lambda one: plan_place(one.trial, names))  # those alike keep their order
    planned = (one.trial for one in waiting[:_AT_A_TIME])
    fit, _ = affordable(planned, state.spent, file.limits)  # before groups: a limit leaves out the last of each
    first = tuple(fit[:free] if names else _first_groups(fit, free))
    if first:
        yield SendTrials(first, free)


def _first_groups(planned: Sequence[Trial], most: int) -> Iterator[Trial]:
    """The trials of the first groups that may be one array each, in order: of others no script needs to be made now."""
    groups: set[tuple[object, ...]] = set()
    for one in planned:
        group = (one.id.round, one.stage, one.purpose, one.request)
        if group in groups or len(groups) < most:
            groups.add(group)
            yield one


def _settled(state: CampaignState) -> bool:
    """Whether nothing runs, is about to, or could be sent."""
    return not (_active_trials(state) or _sendable(state))


def _active_trials(state: CampaignState) -> list[TrialState]:
    return [*state.in_phase("sending"), *state.in_phase("sent")]


def _open_keys(state: CampaignState) -> Counter[str]:
    return Counter(one.key for one in _active_trials(state) if one.key is not None)


def _width(state: CampaignState, key: str, count: int) -> int:
    return min(count, state.batches[key].intended.at_once or count)


def _saving(state: CampaignState) -> Iterator[SaveTrials]:
    if state.unsaved or state.unlearned:
        yield SaveTrials(tuple(state.unsaved), tuple(state.unlearned))


def _looking(state: CampaignState) -> Iterator[LookAtTrials]:
    sent = [
        SentTrial(one.trial, one.job_id, smoke=state.is_smoke(one.trial.id))
        for one in state.in_phase("sent")
        if one.job_id is not None
    ]
    whole = state.status == "stopped"
    if sent:
        cancel = frozenset(one.trial.id for one in sent if whole or one.trial.stage in state.stops)
        why = "the campaign was stopped" if whole else "their stage was stopped: its runs failed alike"
        yield LookAtTrials(tuple(sent), cancel, why if cancel else "")


def _waiting(state: CampaignState, now: datetime) -> Iterator[WaitFor]:
    waiting = len(_active_trials(state))
    if waiting:
        yield WaitFor(
            seconds_to_wait(state, now), f"{waiting} trial{'s are' if waiting > 1 else ' is'} queued or running"
        )


def _one_of_each_batch(state: CampaignState) -> list[TrialState]:
    return list({one.key: one for one in _active_trials(state)}.values())


def _age(state: CampaignState, trial: TrialState, now: datetime) -> float:
    """Seconds since it was sent."""
    return 0.0 if trial.key is None else (now - state.batches[trial.key].at).total_seconds()


def expected_seconds(state: CampaignState, trial: Trial) -> float:
    """Seconds that a run may take: those of the last one of its stage and round, else its time limit."""
    for identifier in reversed(state.rounds[trial.id.round]):
        other = state.trials[identifier]
        if other.trial.stage == trial.stage and other.end is not None and other.end.run_seconds is not None:
            return other.end.run_seconds
    return float(trial.request.time_limit_seconds)
