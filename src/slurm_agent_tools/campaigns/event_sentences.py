"""What happened to a campaign, in plain sentences: texts from outside as one visible line, without secrets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.models.campaign import (
    BatchIntended,
    BatchRefused,
    BatchSent,
    CampaignEvent,
    CampaignFinished,
    CampaignStopped,
    Noted,
    PersonDecided,
    QuestionAsked,
    RevisionBegun,
    RoundDesigned,
    RoundJudged,
    StageStopped,
    TrialEnded,
    TrialId,
    TrialsLeftOut,
)
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.units import how_many

_SHOWN = 300


def plain(text: str) -> str:
    """A text of others as one short visible line."""
    found = sanitize.line(sanitize.mask(text))
    return found if len(found) <= _SHOWN else f"{found[: _SHOWN - 3]}..."


def trials_in_words(trials: Sequence[TrialId]) -> str:
    """`r1-t3`, `r1-t1 to r1-t24`, or the first of those that do not follow each other and how many more there are."""
    if not trials:
        return "no trial"
    if len(trials) == 1:
        return str(trials[0])
    first, last = min(trials), max(trials)
    if first.round == last.round and last.number - first.number == len(trials) - 1:
        return f"{first} to {last}"
    shown = ", ".join(map(str, trials[:3]))
    return shown if len(trials) <= len(trials[:3]) else f"{shown} and {len(trials) - 3} more"


def told(events: Iterable[CampaignEvent], state: CampaignState) -> list[str]:
    """A sentence for what happened, trials that ended together in one. `state`: after the events."""
    listed = list(events)
    ended = [event for event in listed if isinstance(event, TrialEnded)]
    return [*_ended(ended), *(line for event in listed for line in _one(event, state))]


def _ended(ended: Sequence[TrialEnded]) -> Iterator[str]:
    passed = [event.trial for event in ended if event.end.passed]
    if passed:
        yield f"{trials_in_words(passed)} passed."
    causes: dict[str, list[TrialId]] = {}
    for event in ended:
        if not event.end.passed:
            causes.setdefault(event.end.problem or event.end.state, []).append(event.trial)
    for cause, trials in causes.items():
        yield f"{trials_in_words(trials)} failed: {plain(cause)}."


def _again(event: RevisionBegun, state: CampaignState) -> int | None:
    """The first round that had begun and begins anew; None where all stay."""
    kept, before = event.rounds_kept, (one for one in state.trials.values() if one.revision < event.revision)
    again = kept is not None and any(one.trial.id.round >= kept for one in before)
    return kept if again else None


def _one(event: CampaignEvent, state: CampaignState) -> Iterator[str]:  # noqa: C901, PLR0912 - one line for each kind
    match event:
        case RevisionBegun():
            again = _again(event, state)
            more = "" if again is None else f"; rounds from {again} on are gone through again, what ran of them counts"
            yield f"Revision {event.revision} of the file begins{more}."
        case RoundDesigned(trials=(trial,)) if trial.replaces is not None:
            yield f"{trial.replaces} is mended by {trial.id}: {plain(trial.mended or '')}."
        case RoundDesigned():
            reused = sum(trial.reuses is not None for trial in event.trials)
            known = f", {reused} of them run before" if reused else ""
            yield f"Round {event.round} was designed: {how_many(len(event.trials), 'trial')}{known}."
        case BatchSent():
            yield f"{trials_in_words(state.batches[event.key].intended.trials)} sent as job {event.job_id}."
        case BatchRefused():
            yield f"{trials_in_words(state.batches[event.key].intended.trials)} not sent: {plain(event.reason)}"
        case TrialsLeftOut():
            yield f"{trials_in_words(event.trials)} left out: {plain(event.reason)}."
        case StageStopped():
            yield f"Stage {event.stage} was stopped: {plain(event.reason)}."
        case RoundJudged():
            yield f"Round {event.round} was judged: {plain(event.text)}"
        case QuestionAsked():
            yield f"A person has to decide: {plain(event.text)}"
        case PersonDecided():
            yield f"{event.question} was answered through advance_campaign by {plain(event.by)}: {event.choice}."
        case CampaignStopped():
            yield f"Stopped: {plain(event.reason)}."
        case CampaignFinished():
            yield f"Finished: {plain(event.reason)}."
        case Noted(what="note" | "report" | "lesson" | "missed" | "unrecorded"):
            yield f"{event.what.capitalize()}: {plain(event.text)}"
        case BatchIntended() | TrialEnded() | Noted():
            return
